"""C expressions as spelled in the source, for reuse in generated code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lapwing.overlap.ir.expressions import Expression, Name
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.languages.shared import source_text
from lapwing.overlap.source.spans import Source, Span


def expression_text(source: Source, expression: Expression) -> str:
    """The expression as spelled in the source, on one line."""
    return source_text.expression_text(source, expression, _without_comments)


def _without_comments(source: Source, lines: Sequence[str]) -> list[str]:
    return [re.sub(r"//.*", "", line) for line in lines]


def ends(source: Source, loop: Loop) -> tuple[str, str] | None:
    """The first and the last iteration of ``for (i = a; i < b; i++)`` as the source spells them; None for other heads."""
    name = re.escape(loop.variable.name)
    head = " ".join(source.text(Span(loop.span.source, loop.span.start, loop.body.span.start)).split())
    pattern = rf"for ?\((?:[\w ]+ )?{name} ?= ?([^;]+); ?{name} ?(<=|>=|<|>) ?([^;]+); ?[^;]*\)"
    found = re.match(pattern, head)
    if found is None or re.search(r"/[*/]|\\", head) or "," in found[1] or re.search(r"[?&|^]|==|!=|,", found[3]):
        return None
    first, last = (
        text if text.isdigit() or is_one_term(source, loop, text) else f"({text})"
        for text in (found[1].strip(), found[3].strip())
    )
    return first, {"<": f"({last} - 1)", ">": f"({last} + 1)"}.get(found[2], last)


def is_one_term(source: Source, loop: Loop, text: str) -> bool:
    """Whether the text is a variable in the loop's head or the name of a number: an apparent name may be a macro."""
    return any(e.symbol.name == text for e in loop.every_expression() if isinstance(e, Name)) or _is_number_macro(
        source, text
    )


def _is_number_macro(source: Source, name: str) -> bool:
    """Whether the file itself defines the name, always as a number or as something in parentheses."""
    pattern = rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b[ \t]*(.*?)[ \t]*(?:/[*/].*)?$"
    bodies = re.findall(pattern, source.data.decode("latin-1"), re.MULTILINE)
    return bool(bodies) and all(re.fullmatch(r"\w+|\([^()]*\)", body) for body in bodies)
