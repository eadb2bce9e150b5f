"""What an audit found, in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import fill

from torch import Tensor

from smelib.auditing.traces import Traces
from smelib.types import Reconstruction, Update

# Chosen on the first half of the scale of benchmarks/audit.py; its second half shows what they do.
RECOVERED, PARTLY = 0.03, 0.12  # the mismatch up to which pictures were recovered, or partly
FOREIGN = 0.2  # the mismatch beyond which what two starts agree on is not the client's
AGREE = 25.0  # dB between the pictures of two starts

NEVER = "That is no proof of safety: a stronger attack, more steps or a better guess may do more."


def judged(mismatch: float, agreement: float) -> str:
    """recovered, partly recovered, or not recovered: from what needs no truth."""
    if mismatch <= RECOVERED and agreement >= AGREE:
        return "recovered"
    limit = FOREIGN if agreement >= AGREE else PARTLY
    return "partly recovered" if mismatch <= limit else "not recovered"


@dataclass(frozen=True)
class Report:
    """What the server can rebuild of an update, and what was assumed on the way.

    `agreement` is the mean PSNR between the pictures of two independent starts, in decibels; None
    where the attack was interrupted before there were two.
    `update` is the one attacked, under the network's own names. `tried` has the mismatch that each
    normalisation leaves, where one was searched for; `renamed` which of the given weights became
    which of the network's, where their names differ.
    """

    found: Reconstruction
    agreement: float | None
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
        """recovered, partly recovered, not recovered, or not finished; never "safe"."""
        if self.agreement is None:
            return "not finished"
        return judged(self.found.similarity, self.agreement)

    def explain(self) -> str:
        """The verdict and its reasons."""
        left = f"The pictures leave {self.found.similarity:.1%} of the update's direction"
        if self.agreement is None:
            return (
                f"Not finished: interrupted after {self.found.steps} steps, before a second start "
                f"could confirm the first. {left} unexplained."
            )
        measured = (
            f"{left} unexplained, and two independent starts agree to {self.agreement:.1f} dB."
        )
        if self.verdict == "recovered":
            return (
                f"Recovered. {measured} Most such pictures in this book's runs were the client's, "
                "not all: look at them."
            )
        if self.verdict == "partly recovered" and self.found.similarity <= RECOVERED:
            return (
                f"Partly recovered. {measured} They explain the update and still differ: it leaves "
                "much open, or the sample count is another."
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
            lines.append(
                f"Normalisation: {self.normalisation}, the least mismatch for the range of values "
                f"that its pictures use (mismatch alone: {listed})."
            )
        held = self.found.labels.tolist()
        more = f" and {len(held) - 20} more" if len(held) > 20 else ""
        lines.append(f"Labels: {', '.join(map(str, held[:20]))}{more}.")
        lines.append(f"Assumed: {'; '.join(self.assumed)}.")
        if self.renamed:
            shown = [f"{a} → {b}" for a, b in list(self.renamed.items())[:4]]
            more = len(self.renamed) - len(shown)
            lines.append(f"Names: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}.")
        return "\n".join(fill(line, 80, subsequent_indent="  ") for line in lines)
