"""The list of references has the keys of the text, [Zhu et al., 2019], sorted by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unicodedata import normalize

from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as Plain
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting import BaseSortingStyle
from sphinx.application import Sphinx


def key(entry: Entry) -> str:
    """Who and when, as the text says it: one name, two names, or the first and others."""
    authors = entry.persons["author"]
    names = [" ".join(map(str, p.rich_prelast_names + p.rich_last_names)) for p in authors]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{who}, {entry.fields['year']}"


class Labels(BaseLabelStyle):
    """Each entry's key; two entries may not share one."""

    def format_labels(self, sorted_entries: Sequence[Entry]) -> Iterator[str]:
        """One key for each entry, in order."""
        keys = [key(entry) for entry in sorted_entries]
        if twice := {k for k in keys if keys.count(k) > 1}:
            raise ValueError(f"two papers would be called [{min(twice)}]; tell them apart")
        yield from keys


class Order(BaseSortingStyle):
    """By key; letters with accents stand where those without do."""

    def sorting_key(self, entry: Entry) -> str:
        """The key in small letters."""
        return normalize("NFKD", key(entry)).encode("ascii", "ignore").decode().lower()


class Style(Plain):
    """Entries as usual, in the order of their keys."""

    default_label_style = Labels
    default_sorting_style = Order


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    register_plugin("pybtex.style.formatting", "author_year", Style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
