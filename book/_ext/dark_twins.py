"""On a dark page a figure has lighter ink: a twin of its PNG, drawn when the page is written.

A figure is stored once, on no ground of its own, in ink that is told from white and from dark. On a
dark page that is dim: words have a contrast of 4, SME's blue has less. The twin's ink is mixed with
white; pictures in it, digits and photographs, stay as they are. `book.css` shows one of the two.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import find_objects, label, maximum_filter, minimum_filter
from sphinx.application import Sphinx

# How much white is mixed in. Greys get more than the attacks' colours: words are then easy to read,
# and grey stays told from DLFA's green, which looks grey to readers who see no red or no green.
IN_GREY, IN_COLOUR = 0.5, 0.15
SIDE = 21  # pixels: a patch at least as high and as wide may be a picture; strokes are thinner
FEW = 8  # colours, and a patch is a bar: the plainest digit of the book has sixteen

FIGURE = re.compile(r'<a class="[^"]*image-reference"[^>]*>\s*<img [^>]*>\s*</a>|<img [^>]*>')
SOURCE = re.compile(r'src="[^"]*?([^"/]+\.png)"')


def pictures(pixels: np.ndarray) -> np.ndarray:
    """Where `[H, W, 4]` pixels show pictures: `[H, W]`, true on solid patches of many colours."""
    core = minimum_filter(pixels[..., 3] == 255, SIDE)
    if not core.any():
        return core
    colours = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    patches, _ = label(core)
    for i, box in enumerate(find_objects(patches), 1):
        patch = patches[box] == i
        if len(np.unique(colours[box][patch])) <= FEW:
            core[box][patch] = False
    return maximum_filter(core, SIDE)


def lighten(colours: np.ndarray) -> np.ndarray:
    """Colours `[..., 3]`, 0 to 255, with white mixed in: a half in greys, less in all others."""
    colours = np.asarray(colours, np.float32)
    spread = colours.max(-1, keepdims=True) - colours.min(-1, keepdims=True)
    white = IN_COLOUR + (IN_GREY - IN_COLOUR) * np.clip(1 - spread / 32, 0, 1)
    return (colours + white * (255 - colours)).round().astype(np.uint8)


def twin(pixels: np.ndarray) -> np.ndarray:
    """A figure's `[H, W, 4]` pixels for a dark page: lighter ink, the same pictures."""
    ink = (pixels[..., 3] > 0) & ~pictures(pixels)
    out = pixels.copy()
    out[ink, :3] = lighten(pixels[ink, :3])
    return out


def both(figure: str, name: str, size: tuple[int, int]) -> str:
    """A figure's HTML twice, for light and for dark pages; the one that is hidden is not loaded.

    Its shape is said, so that the page does not move when it comes.
    """
    width, height = size
    figure = figure.replace("<img ", f'<img width="{width}" height="{height}" loading="lazy" ')
    if ' class="' not in figure:
        figure = figure.replace("<img ", '<img class="" ')
    light, dark = (figure.replace(' class="', f' class="on-{on} ', 1) for on in ("light", "dark"))
    return light + dark.replace(f"/{name}", f"/{beside(name)}")


def beside(name: str) -> str:
    """The twin's file name."""
    stem, _, kind = name.rpartition(".")
    return f"{stem}-dark.{kind}"


def _page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    files = {name: path for path, (pages, name) in app.env.images.items() if page in pages}
    folder = Path(app.outdir, app.builder.imagedir)

    def paired(match: re.Match) -> str:
        found = SOURCE.search(match[0])
        if not found or found[1] not in files:
            return match[0]
        with Image.open(Path(app.srcdir, files[found[1]])) as image:
            if image.mode != "RGBA":
                return match[0]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(twin(np.asarray(image))).save(folder / beside(found[1]))
            return both(match[0], found[1], image.size)

    if "body" in context and app.builder.format == "html":
        context["body"] = FIGURE.sub(paired, context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("html-page-context", _page, priority=600)  # after `narrow`, which writes widths
    return {"parallel_read_safe": True, "parallel_write_safe": True}
