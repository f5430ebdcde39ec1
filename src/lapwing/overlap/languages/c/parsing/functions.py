"""Queries on the text of a C function."""

from __future__ import annotations

import re

from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.source.spans import Source

_CONSTANT = re.compile(r"\bconst(?:expr|eval)\b|__attribute__\s*\(\(.*?\b(?:__)?(?:pure|const)(?:__)?\b")
_INLINE = re.compile(r"\b(?:__)?inline(?:__)?\b")
_STATIC = re.compile(r"\bstatic\b")


def is_pure(head: str) -> bool:
    """Whether the function may call nothing with side effects."""
    return _CONSTANT.search(head) is not None


def is_defined_alike(head: str) -> bool:
    """Whether the function's definitions in several files must be identical."""
    return _INLINE.search(head) is not None and _STATIC.search(head) is None


def can_take_other_name(function: Procedure, head: str) -> bool:
    """Not K&R style, with parameters declared between the parentheses and the brace; and each parameter has a name."""
    ends = head.rstrip().removesuffix("{").rstrip().endswith((")", "noexcept", "const", "override"))
    return ends and all(p.name for p in function.parameters)


def is_member(function: Procedure, source: Source) -> bool:
    """C++: whether the function is a member of a class or a namespace, is overloaded, or has default arguments: a declaration
    made from its head would declare another function, or be ill-formed."""
    head = source.data[function.span.start : function.body.span.start]
    return function.key not in (function.name, f"{source.path.name}::{function.name}") or b"=" in head
