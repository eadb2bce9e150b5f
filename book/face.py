"""Cut the face of the figures out of the face of the pages, for matplotlib and for an installation.

    python book/face.py FOLDER

FOLDER has Source Serif 4's TTF or WOFF2 files as Adobe releases them. Their licence keeps the name
Source for the whole, so what is cut out has another.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from smelib.viz.figures import FACE

FONTS = Path(__file__).resolve().parents[1] / "smelib" / "viz" / "fonts"
KEPT = (
    *range(0x20, 0x100),  # Latin
    *range(0x391, 0x3CA),  # Greek
    *range(0x2000, 0x20A0),  # punctuation, raised and lowered digits
    *range(0x2100, 0x2300),  # letters as signs, fractions, arrows, mathematics
    *range(0x25A0, 0x2718),  # squares, circles, ticks
)
CUTS = {"Regular": ("Regular", 400), "Semibold": ("Bold", 700)}  # the page's bold is its semibold

# At one size the capitals are as tall, and the lines as far apart, as in matplotlib's own face.
EM, ASCENT, DESCENT = 920, 854, -217


def cut(font: TTFont, style: str, weight: int) -> None:
    """Leave the glyphs that figures need, and kerning; then name what is left."""
    options = subset.Options(layout_features=["kern"], hinting=False, name_IDs=[0, 13, 14])
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=KEPT)
    cutter.subset(font)
    compact = f"{FACE}-{style}".replace(" ", "")
    for number, text in {1: FACE, 2: style, 3: compact, 4: f"{FACE} {style}", 6: compact}.items():
        font["name"].setName(text, number, 3, 1, 0x409)
    font["OS/2"].usWeightClass = weight
    font["head"].unitsPerEm = EM
    lines, system = font["hhea"], font["OS/2"]
    lines.ascent, lines.descent, lines.lineGap = ASCENT, DESCENT, 0
    system.sTypoAscender, system.sTypoDescender, system.sTypoLineGap = ASCENT, DESCENT, 0
    font.flavor = None


def main() -> int:
    """Write the two cuts that figures use."""
    for name, (style, weight) in CUTS.items():
        (source,) = Path(sys.argv[1]).glob(f"SourceSerif4-{name}[.-]*")
        font = TTFont(source, recalcTimestamp=False)
        cut(font, style, weight)
        written = FONTS / f"{style.lower()}.ttf"
        font.save(written)
        print(
            f"{written.name}: {len(font.getBestCmap())} characters, {written.stat().st_size} bytes"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
