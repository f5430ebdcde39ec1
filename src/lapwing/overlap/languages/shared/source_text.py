"""Expressions as spelled in the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lapwing.overlap.ir.expressions import Cast, Constant, Expression, Name, Number, Operation
from lapwing.overlap.source.spans import Source

WithoutComments = Callable[[Source, Sequence[str]], list[str]]
"""The lines of an expression without comments and continuation marks."""


def expression_text(source: Source, expression: Expression, plain: WithoutComments) -> str:
    """The expression as spelled in the source, on one line."""
    if expression.span is None:
        if isinstance(expression, Number):
            return str(expression.value)
        if isinstance(expression, Name):
            return expression.symbol.name
        if isinstance(expression, Constant):
            return expression.name
        if isinstance(expression, Operation) and len(expression.arguments) == 2:
            left, right = (_in_parentheses(source, e, plain) for e in expression.arguments)
            return f"{left} {expression.operator} {right}"
        if isinstance(expression, Cast):
            return expression_text(source, expression.value, plain)
        raise ValueError(f"{expression} stands nowhere")
    lines = source.text(expression.span).splitlines()
    if len(lines) > 1:
        lines = plain(source, lines)
    return " ".join(" ".join(lines).split())


def _in_parentheses(source: Source, expression: Expression, plain: WithoutComments) -> str:
    text = expression_text(source, expression, plain)
    return text if re.fullmatch(r"\w+(\([\w, ]*\))?", text) else f"({text})"
