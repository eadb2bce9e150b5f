"""What a client does to its update before it sends: its one say in what the server sees.

Hand one to `local_update(..., defence=...)`. The attack is not told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from smelib.types import Update

Defence: TypeAlias = Callable[[Update, torch.Generator], Update]
"""From the update that training gave to the update that is sent.

A defence is any function of two arguments. The `Update` holds the weights before and after, and
$N$; the `torch.Generator` is the defence's own stream of random numbers, so that the same seed
sends the same update. It is on the CPU: draw there, and move what you drew to the weights' device.

Return a new `Update` with the same `before`, which the server knows anyway, and change nothing in
place. What needs a parameter is a function that returns a defence:

.. code-block:: python

    def noise(scale: float) -> Defence:
        def defend(update: Update, generator: torch.Generator) -> Update:
            after = {
                name: w + scale * torch.randn(w.shape, generator=generator).to(w)
                for name, w in update.after.items()
            }
            return Update(update.before, after, update.samples)

        return defend
"""


def none(update: Update, generator: torch.Generator) -> Update:
    """Send the update as it is: what plain FedAvg does, and what every attack hopes for."""
    return update
