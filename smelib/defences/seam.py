"""A function from update to update; the one that does nothing, and several in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from smelib.errors import InputError
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


def compose(*defences: Defence) -> Defence:
    """One defence after the other, from the left: `compose(clip(1), noise(0.1))`.

    They share one random stream, so that no two draw the same numbers.
    """
    for i, defence in enumerate(defences):
        if not callable(defence):
            raise InputError(
                f"defence {i + 1} of {len(defences)} is {defence!r}; give functions of "
                "(update, generator), like defences.clip(1.0)."
            )

    def defend(update: Update, generator: torch.Generator) -> Update:
        for defence in defences:
            update = defence(update, generator)
        return update

    return defend
