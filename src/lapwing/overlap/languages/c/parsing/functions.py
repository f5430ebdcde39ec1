"""What the text of a C function says of it."""

from __future__ import annotations

import re

from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.source.spans import Source

_CONSTANT = re.compile(r"\bconst(?:expr|eval)\b|__attribute__\s*\(\(.*?\b(?:__)?(?:pure|const)(?:__)?\b")
_INLINE = re.compile(r"\b(?:__)?inline(?:__)?\b")
_STATIC = re.compile(r"\bstatic\b")


def is_pure(head: str) -> bool:
    """Whether the function can call nothing that changes anything else."""
    return _CONSTANT.search(head) is not None


def is_defined_alike(head: str) -> bool:
    """Whether all files that define the function must define the same."""
    return _INLINE.search(head) is not None and _STATIC.search(head) is None


def can_take_other_name(function: Procedure, head: str) -> bool:
    """Not K&R's, whose parameters are declared between the parentheses and the brace; and each has a name."""
    ends = head.rstrip().removesuffix("{").rstrip().endswith((")", "noexcept", "const", "override"))
    return ends and all(p.name for p in function.parameters)


def is_member(function: Procedure, source: Source) -> bool:
    """C++: whether a class or a namespace holds the function, its name is overloaded, or its parameters have default values: a
    declaration made from its head would be another one's, or not allowed."""
    head = source.data[function.span.start : function.body.span.start]
    return function.key not in (function.name, f"{source.path.name}::{function.name}") or b"=" in head
