"""Fortran expressions as spelled in the source, for reuse in generated code."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.languages.shared import source_text
from lapwing.overlap.source.spans import Source


def expression_text(source: Source, expression: Expression) -> str:
    """The expression as spelled in the source, on one line."""
    return source_text.expression_text(source, expression, _without_comments)


def _without_comments(source: Source, lines: Sequence[str]) -> list[str]:
    if source.form == "fixed":
        kept = [line for line in lines[1:] if line[:1].upper() not in ("C", "*", "!") and line.strip()]
        return [lines[0][:72], *(line[6:72] for line in kept)]
    return [line.split("!")[0].strip().strip("&") for line in lines]
