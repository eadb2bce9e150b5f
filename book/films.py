"""Compute what the front page shows: two films of an attack, and the picture for social media.

python book/films.py          attacks, and writes book/front/ and book/_static/social-card.png
python book/films.py --shell  computes nothing: puts the present script and style of the
                              filmstrip into the films that are stored, in notebooks too
"""

from __future__ import annotations

import json
import re
import sys
from html import escape
from pathlib import Path

import nbformat
import torch
from repository import notebooks

import smelib
from smelib.viz.film import script

ROOT = Path(__file__).resolve().parents[1]
FRONT = ROOT / "book" / "front"
CARD = ROOT / "book" / "_static" / "social-card.png"
SHELL = re.compile(r'onload="[^"]*"')
IMAGES, EPOCHS = 8, 10


def attacked(name: str) -> tuple[smelib.data.Client, smelib.Reconstruction]:
    """The first client of a data set, and what SME makes of its update."""
    client = smelib.data.client(name, samples=IMAGES, seed=0, distinct_labels=True)
    model = smelib.models.cnn(client.shape, client.classes)
    protocol = smelib.Protocol(epochs=EPOCHS, batch_size=IMAGES)
    update = smelib.local_update(model, client, protocol)
    attack = {"preset": "fast", "snapshots": 33, "progress": False}
    return client, smelib.attacks.sme(model, update, client.labels, **attack)


def film(name: str, title: str, *, autoplay: bool) -> tuple[str, dict, torch.Tensor]:
    """The film of an attack, the numbers that a page may quote, and its originals and pictures."""
    client, stolen = attacked(name)
    psnr = [smelib.evaluate(frame, client.images).psnr for frame in stolen.snapshots]
    mismatch = stolen.history["similarity"]
    strip = smelib.viz.filmstrip(
        "step",
        stolen.snapshot_steps,
        {"SME": stolen.snapshots},
        {
            "PSNR in dB": {"SME": psnr},
            "mismatch 1 − cos": {"SME": (range(len(mismatch)), mismatch)},
        },
        client.images,
        title=title,
        name=f"film-{name}",
        autoplay=autoplay,
        largest=180_000,  # the front page has two, and is to open quickly
    )
    order = smelib.pairing.match(stolen.images, client.images)
    numbers = {"psnr": round(psnr[-1], 1), "steps": stolen.steps, "images": IMAGES}
    return strip._repr_html_(), numbers, torch.stack([client.images, stolen.images[order]])


def social_card(rows: torch.Tensor) -> None:
    """1200 by 630: the sentence, digits on the device, the line, digits on the server."""
    import matplotlib.pyplot as plt

    ink, seen = smelib.viz.COLOURS["truth"], smelib.viz.COLOURS["sme"]
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    text = {"fontfamily": "DejaVu Sans", "ha": "left"}
    figure.text(0.06, 0.86, "What the Server Sees", fontsize=38, fontweight="bold", **text)
    figure.text(
        0.06, 0.76, "Your pictures never leave your phone. Here they are.", fontsize=22, **text
    )
    for row, (name, colour, y) in enumerate(
        (("on the phone", ink, 0.47), ("at the server", seen, 0.13))
    ):
        figure.text(0.06, y + 0.1, name, fontsize=18, color=colour, va="center", **text)
        axis = figure.add_axes((0.24, y, 0.72, 0.2))
        axis.imshow(smelib.viz.grid(rows[row], gap=4), cmap="gray", vmin=0, vmax=255)
        axis.set_axis_off()
    line = plt.Line2D([0.06, 0.96], [0.4, 0.4], linestyle=(0, (1, 3)), linewidth=3, color=ink)
    figure.add_artist(line)
    figure.savefig(CARD, facecolor="white")
    plt.close(figure)


def renewed(html: str) -> str:
    """A stored film with today's script and style."""
    return SHELL.sub(lambda _: f'onload="{escape(script())}"', html)


def renew() -> None:
    """Give every stored film today's script and style."""
    for path in FRONT.glob("film-*.html"):
        path.write_text(renewed(path.read_text("utf-8")), "utf-8")
    for path in notebooks(ROOT):
        notebook, before = nbformat.read(path, as_version=4), path.read_text("utf-8")
        for output in (o for c in notebook.cells for o in c.get("outputs", [])):
            html = output.get("data", {}).get("text/html", "")
            if 'class="smelib-film"' in html:
                output["data"]["text/html"] = renewed(html)
        text = nbformat.writes(notebook) + "\n"
        if text != before:
            path.write_text(text, "utf-8")
            print(f"{path.name} has today's filmstrip")


def main() -> int:
    """Attack twice and write, or renew what is written."""
    if sys.argv[1:] == ["--shell"]:
        renew()
        return 0
    numbers = {}
    for name, title, autoplay in (
        ("mnist", f"{IMAGES} digits, from the weights after {EPOCHS} epochs", True),
        ("photos", f"{IMAGES} photographs, the same attack", False),
    ):
        html, numbers[name], rows = film(name, title, autoplay=autoplay)
        (FRONT / f"film-{name}.html").write_text(html + "\n", "utf-8")
        print(f"film-{name}.html: {len(html) / 1000:.0f} kB, {numbers[name]['psnr']} dB")
        if name == "mnist":
            social_card(rows)
    (FRONT / "films.json").write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
