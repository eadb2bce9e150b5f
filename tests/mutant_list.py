"""Small faults that the tests must notice, module by module: what `make mutants` tries.

A mutant is one change of one place: `old` must occur exactly once in the module's file. `breaks`
says what a reader of the results would suffer. Where no test can tell the mutant from the module,
`equivalent` says why; it still counts as a survivor.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault: this text instead of that, and what it breaks."""

    old: str
    new: str
    breaks: str
    equivalent: str = ""


@dataclass(frozen=True)
class Module:
    """A file of smelib, its mutants, and the tests that judge them: the quickest to fail first."""

    file: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


MODULES = {
    "params": Module(
        "smelib/params.py",
        ("tests/test_properties.py",),
        (
            Mutant("(start[k], end[k], alpha)", "(end[k], start[k], alpha)", "alpha = 0 is not IG"),
            Mutant("(start[k], end[k], alpha)", "(start[k], end[k], -alpha)", "away from wT"),
            Mutant("k: a[k] - b[k]", "k: b[k] - a[k]", "the update is turned round"),
            Mutant("alpha=scale)", "alpha=-scale)", "clients climb"),
            Mutant("torch.addcmul(a[k], b[k], scale)", "a[k]", "the simulation stands still"),
            Mutant("return dot(a, a).sqrt()", "return dot(a, a)", "the cosine is not a cosine"),
            Mutant("(norm(a) * norm(b))", "norm(a)", "the cosine grows with the gradient"),
            Mutant("return dot(a, b) /", "return -dot(a, b) /", "attacks seek the opposite"),
            Mutant("factor * v", "v", "scaling does nothing"),
            Mutant("w / total * item[k]", "item[k] / len(items)", "N does not weigh in FedAvg"),
        ),
    ),
    "pairing": Module(
        "smelib/pairing.py",
        ("tests/test_metrics.py",),
        (
            Mutant("torch.cdist(true, found)", "torch.cdist(found, true)", "the order is inverted"),
            Mutant("(cost.numpy())[1]", "(-cost.numpy())[1]", "the worst pairing is taken"),
            Mutant("(cost.numpy())[1]", "(cost.numpy())[0]", "nothing is paired"),
            Mutant("found).square()", "found)", "distances are added up, not squared errors"),
            Mutant(".cpu().double()", ".double().cpu()", "no pairing on a Mac's GPU"),
            Mutant("< len(originals):", "< 0:", "an original without an image goes unnoticed"),
        ),
    ),
    "metrics": Module(
        "smelib/metrics.py",
        ("tests/test_metrics.py",),
        (
            Mutant("float(-10 *", "float(-20 *", "twice the decibels"),
            Mutant("float(-10 *", "float(10 *", "a better image has a lower PSNR"),
            Mutant(".mean().log10()", ".sum().log10()", "PSNR falls with the number of pixels"),
            Mutant(".square().mean()", ".abs().mean()", "absolute instead of squared error"),
            Mutant("min(7, *image", "min(5, *image", "SSIM of another window than published"),
            Mutant("if side < 3:", "if side < 2:", "SSIM from a window without variance"),
            Mutant("(side + 1) % 2", "0", "an even window, which SSIM does not have"),
            Mutant("data_range=1.0", "data_range=255.0", "SSIM's constants drown the image"),
            Mutant("channel_axis=0", "channel_axis=2", "columns are taken for channels"),
            Mutant("order = match(images, originals)", "order = range(len(images))", "no pairing"),
            Mutant("(images[i], original) for", "(images[0], original) for", "one image for all"),
            Mutant("float(np.mean(psnrs))", "float(np.max(psnrs))", "the best stands for all"),
            Mutant("float(np.mean(ssims))", "float(np.median(ssims))", "median for mean"),
            Mutant("or images.ndim != 4", "", "one image's channels are taken for images"),
            Mutant(".detach().cpu().double()", ".detach().cpu()", "scores in single precision"),
        ),
    ),
}
