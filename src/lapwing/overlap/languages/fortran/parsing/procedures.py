"""Queries on the text of a Fortran procedure."""

from __future__ import annotations

import re

from lapwing.overlap.ir.expressions import Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import has_explicit_shape
from lapwing.overlap.source.spans import Source

_KIND = re.compile(r"(?is)(.*?)\b(?:subroutine|function|procedure)\b")
_COMMENT = {"free": re.compile(r"!.*"), "fixed": re.compile(r"(?m)^[cC*!].*|!.*|^     [^ 0]|\n")}
_BOUND = re.compile(r"(?i)\bbind\s*\(")
_WITHOUT_NAME = re.compile(
    r"(?ims)^[ \t]*interface[ \t]+(?:operator|assignment|read|write)\b.*?^[ \t]*end[ \t]*interface\b"
    r"|^[ \t]*(?:(?:procedure|generic|final)\b[^\n]*(?:::|=>)|final\b)[^\n]*"
)
# Heads that specify a linker name, or an interface defined elsewhere.
_TIED_NAME = re.compile(r"(?i)\bbind\s*\(|\bmodule\s+(?:recursive\s+)?subroutine\b")


def is_pure(procedure: Procedure, source: Source) -> bool:
    """Whether the procedure may call nothing with side effects."""
    if procedure.kind == "program":
        return False
    text = _COMMENT["fixed" if source.form == "fixed" else "free"].sub(" ", source.text(procedure.span))
    before = _KIND.match(text)
    # The attributes of a ``module procedure`` are elsewhere.
    return before is None or bool({"pure", "elemental", "module"}.intersection(re.findall(r"\w+", before[1].lower())))


def is_bound(head: str) -> bool:
    """Whether other languages may call the procedure."""
    return _BOUND.search(head) is not None


def called_without_name(text: str) -> list[str]:
    """Text that binds procedures to an operator, an assignment or a type, in a text with joined lines."""
    return _WITHOUT_NAME.findall(text)


def can_take_other_name(procedure: Procedure, head: str) -> bool:
    """Whether it is called only by the name in its head, and, if it has no host, needs no explicit interface."""
    return not _TIED_NAME.search(head) and (
        procedure.host is not None or not any(map(_wants_interface, procedure.parameters))
    )


def _wants_interface(dummy: Symbol) -> bool:
    """Whether such a dummy argument requires an explicit interface."""
    shaped = dummy.dimensions is not None and not has_explicit_shape(dummy.dimensions)
    special = dummy.optional or dummy.pointer or dummy.allocatable or dummy.target or dummy.by_value or dummy.volatile
    return shaped or special or dummy.type.base in ("struct", "other")
