"""What a client does before it sends: its one say in what the server sees.

Hand one to `local_update(..., defence=...)`. The naive attack is not told; the one that knows is in
`smelib.aware`. More data per client, and larger batches, need no code: they are the `Client` and
the `Protocol`.
"""

from __future__ import annotations

from smelib.defences.accounting import client_epsilon, reconstruction_bound
from smelib.defences.masking import Message, SecureSum, secure_sum
from smelib.defences.seam import Defence, compose, none
from smelib.defences.sending import clip, noise, quantise, random_k, sign, top_k
from smelib.defences.training import Private, dp_sgd, sample_epsilon

__all__ = [
    "Defence",
    "Message",
    "Private",
    "SecureSum",
    "client_epsilon",
    "clip",
    "compose",
    "dp_sgd",
    "noise",
    "none",
    "quantise",
    "random_k",
    "reconstruction_bound",
    "sample_epsilon",
    "secure_sum",
    "sign",
    "top_k",
]
