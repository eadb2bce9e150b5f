"""What an audit found, in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from smelib.auditing.traces import Traces
from smelib.types import Reconstruction, Update

# From the runs of benchmarks/audit.py: see `results/audit.json`.
RECOVERED, PARTLY = 0.03, 0.12  # the mismatch up to which pictures were recovered, or partly
AGREE = 18.0  # dB between the pictures of two starts: what both find was in the update

NEVER = "That is no proof of safety: a stronger attack, more steps or a better guess may do more."


@dataclass(frozen=True)
class Report:
    """What the server can rebuild of an update, and what was assumed on the way.

    `agreement` is the mean PSNR between the pictures of two independent starts, in decibels.
    `update` is the one attacked, under the network's own names. `tried` has the mismatch that each
    normalisation leaves, where one was searched for; `renamed` which of the given weights became
    which of the network's, where their names differ.
    """

    found: Reconstruction
    agreement: float
    normalisation: str
    traces: Traces
    warnings: list[str]
    assumed: list[str]
    update: Update
    tried: dict[str, float] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def images(self) -> Tensor:
        """The pictures, `[N, C, H, W]` in [0, 1]."""
        return self.found.images

    @property
    def verdict(self) -> str:
        """recovered, partly recovered, or not recovered; never "safe"."""
        if self.found.similarity <= RECOVERED and self.agreement >= AGREE:
            return "recovered"
        if self.found.similarity <= PARTLY or self.agreement >= AGREE:
            return "partly recovered"
        return "not recovered"

    def explain(self) -> str:
        """The verdict and its reasons."""
        mismatch, agreement = self.found.similarity, self.agreement
        measured = (
            f"The pictures leave {mismatch:.1%} of the update's direction unexplained, and two "
            f"independent starts agree to {agreement:.1f} dB."
        )
        if self.verdict == "recovered":
            return (
                f"Recovered. {measured} In this book's runs such pictures show the client's images."
            )
        if self.verdict == "partly recovered":
            return (
                f"Partly recovered. {measured} Look at the pictures: some may be legible, others "
                "mixtures."
            )
        return f"Not recovered by this attack. {measured} {NEVER}"

    def __str__(self) -> str:
        lines = [self.explain()]
        lines += [f"Warning: {text}" for text in self.warnings]
        if self.tried:
            ranked = sorted(self.tried.items(), key=lambda item: item[1])
            listed = ", ".join(f"{k} {v:.3f}" for k, v in ranked)
            lines.append(f"Normalisation: {self.normalisation}, found by mismatch ({listed}).")
        lines.append(f"Assumed: {'; '.join(self.assumed)}.")
        if self.renamed:
            shown = [f"{a} → {b}" for a, b in list(self.renamed.items())[:4]]
            more = len(self.renamed) - len(shown)
            lines.append(f"Names: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}.")
        return "\n".join(lines)
