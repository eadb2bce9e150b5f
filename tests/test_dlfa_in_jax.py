"""DLFA equals a second transcription of its published equations."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="a second DLFA needs JAX")
def test_loss_and_gradient_are_those_of_the_published_equations() -> None:
    script = Path(__file__).with_name("dlfa_in_jax.py")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    gaps = json.loads(run.stdout)
    assert gaps["value"] < 1e-9
    assert gaps["gradient"] < 1e-7
