"""What the text of a Fortran procedure says of it."""

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
# Heads that say what a linker calls the procedure, or that its interface is elsewhere.
_TIED_NAME = re.compile(r"(?i)\bbind\s*\(|\bmodule\s+(?:recursive\s+)?subroutine\b")


def is_pure(procedure: Procedure, source: Source) -> bool:
    """Whether the procedure can call nothing that changes anything else."""
    if procedure.kind == "program":
        return False
    text = _COMMENT["fixed" if source.form == "fixed" else "free"].sub(" ", source.text(procedure.span))
    before = _KIND.match(text)
    # ``module procedure`` has its attributes elsewhere.
    return before is None or bool({"pure", "elemental", "module"}.intersection(re.findall(r"\w+", before[1].lower())))


def is_bound(head: str) -> bool:
    """Whether other languages may run the procedure."""
    return _BOUND.search(head) is not None


def called_without_name(text: str) -> list[str]:
    """Where a procedure becomes an operator's, an assignment's or a type's, in a text with its lines joined."""
    return _WITHOUT_NAME.findall(text)


def can_take_other_name(procedure: Procedure, head: str) -> bool:
    """Whether it is called by the name in its head alone, and needs no interface where it has no host."""
    return not _TIED_NAME.search(head) and (
        procedure.host is not None or not any(map(_wants_interface, procedure.parameters))
    )


def _wants_interface(dummy: Symbol) -> bool:
    """Whether only procedures with an interface may have such a dummy argument."""
    shaped = dummy.dimensions is not None and not has_explicit_shape(dummy.dimensions)
    special = dummy.optional or dummy.pointer or dummy.allocatable or dummy.target or dummy.by_value or dummy.volatile
    return shaped or special or dummy.type.base in ("struct", "other")
