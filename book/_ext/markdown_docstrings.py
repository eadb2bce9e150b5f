"""The kernel's docstrings are Markdown, as `help()` shows them; autodoc wants reStructuredText.

And what autodoc takes for something else than it is: an enum's call, a field that holds a function,
a type's name that is no class.
"""

from __future__ import annotations

import re
from enum import Enum

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autodoc import AttributeDocumenter, Documenter, MethodDocumenter
from sphinx.util.nodes import make_refnode

BRACKETS = re.compile(r"\[[^]`]*\b[A-Z][A-Za-z]+\d\d\b[^]`]*\]")
KEY = re.compile(r"\b([A-Z][A-Za-z]+)(\d\d)\b")
SPAN = re.compile(r"`([^`]+)`|\$([^$]+)\$")
DEFAULT = re.compile(r"<function (\w+)>|<function [\w.]*<lambda>>|<factory>")
# Whose short name is also one of ours, and what to print: the name under which one imports it.
FOREIGN = {"~torch.utils.data.dataset.Dataset": "torch.utils.data.Dataset"}


def to_rst(text: str) -> str:
    """Write `code` and $mathematics$ the other way; *emphasis* is the same in both."""
    text = SPAN.sub(lambda m: f"``{m[1]}``" if m[1] else f":math:`{m[2]}`", text)
    return BRACKETS.sub(lambda m: KEY.sub(cited, m[0]), text)


def cited(key: re.Match) -> str:
    """A short key as the text's, with a link to its entry: Zhu23 is [Zhu et al., 2023]."""
    return f":cite:label:`{key[1].lower()}20{key[2]}`"


def docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list) -> None:
    """Replace the lines of one docstring, in place, as autodoc asks."""
    lines[:] = to_rst("\n".join(lines)).split("\n")


def signature(
    app: Sphinx, what: str, name: str, obj: object, options: object, given: str | None, result: str
) -> tuple[str | None, str]:
    """Make a dataclass's defaults readable: `adam` for `<function adam>`. Nobody calls an enum."""
    if isinstance(obj, type) and issubclass(obj, Enum):
        return "", result
    for short, full in FOREIGN.items():
        given = given and given.replace(short, full)
    return given and DEFAULT.sub(lambda m: m[1] or "...", given), result


def alias(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Node
) -> nodes.Node | None:
    """A link to the entry of a type's name, as `Params`: a value, where Sphinx asks a class."""
    name = node.get("reftarget", "")
    if node.get("refdomain") != "py" or name not in app.config.autodoc_type_aliases:
        return None
    known = env.get_domain("py").get_objects()
    found = [
        (doc, anchor)
        for full, _, kind, doc, anchor, _ in known
        if kind == "data" and full.endswith(f".{name}")
    ]
    if len(found) != 1:
        return None
    return make_refnode(app.builder, node["refdoc"], *found[0], shown, name)


def skipped(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out what Python itself says of a named tuple's fields: their numbers."""
    return True if (getattr(obj, "__doc__", "") or "").startswith("Alias for field") else None


class Field(AttributeDocumenter):
    """A field whose default is a function: an attribute, where autodoc sees a method."""

    objtype = "dataclass_field"
    directivetype = "attribute"
    priority = MethodDocumenter.priority + 10

    @classmethod
    def can_document_member(cls, member: object, name: str, isattr: bool, parent: object) -> bool:
        """Whether the class, which `parent` documents, has a field of this name."""
        fields = getattr(getattr(parent, "object", None), "__dataclass_fields__", {})
        return isinstance(parent, Documenter) and name in fields and callable(member)

    def generate(self, *given: object, **named: object) -> None:
        """Listed, as other fields are, only where a comment `#:` says what it is."""
        known = self.parse_name() and self.import_object()
        if known and self.get_attribute_comment(self.parent, self.objpath[-1]):
            super().generate(*given, **named)

    def should_suppress_value_header(self) -> bool:
        """The default stands in the class's signature, by its name."""
        return True


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_autodocumenter(Field)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skipped)
    app.connect("missing-reference", alias)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
