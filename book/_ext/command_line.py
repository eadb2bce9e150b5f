"""`{options} attack` on a page: a command's options as its `--help` has them, in a table."""

from __future__ import annotations

import argparse
import io
import re
from contextlib import redirect_stdout, suppress

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def actions(command: str) -> list[argparse.Action]:
    """What a command of `smelib` takes; it learns that itself when it is first called."""
    from smelib.cli.parser import parser

    top = parser()
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        top.parse_args([command, "--help"])
    (commands,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    return [a for a in commands.choices[command]._actions if a.dest != "help"]


def _words(text: str) -> list[nodes.Node]:
    """A sentence whose options and quoted names are set as what they are, something to type."""
    parts = re.split(r"(--[\w-]+|'[^' ]+')", text)
    typed = [part.strip("'") for part in parts]
    return [
        nodes.literal(typed[i], typed[i]) if i % 2 else nodes.Text(part)
        for i, part in enumerate(parts)
    ]


def _row(*cells: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


class Options(SphinxDirective):
    """A table of one command's options."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One row for each option, in the order of `--help`."""
        rows = []
        for action in actions(self.arguments[0]):
            name = (action.option_strings or [action.dest])[0]
            rows.append(_row([nodes.literal(name, name)], _words(action.help or "")))
        group = nodes.tgroup("", nodes.colspec(colwidth=30), nodes.colspec(colwidth=70), cols=2)
        group += nodes.thead("", _row(_words("option"), _words("what it is")))
        group += nodes.tbody("", *rows)
        return [nodes.table("", group, classes=["options"])]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("options", Options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
