"""What an exported driver cannot do, with the line and advice, and what Python would raise where the program comes."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from lapwing.errors import RefusedError
from lapwing.export.driver.values import Known, NeedsValue, Register, Several, Value
from lapwing.loopnest.source import FunctionSource


class Raises(Exception):
    """Where the program comes here Python raises; the text says what."""


def refuse(source: FunctionSource, node: ast.AST, found: str, advice: str) -> NoReturn:
    raise RefusedError(f"{source.file}:{getattr(node, 'lineno', source.first)}: {found}. {advice}.")


def raise_there(source: FunctionSource, node: ast.AST, error: Exception) -> NoReturn:
    """Python raises an error here: perhaps no run comes here."""
    line = getattr(node, "lineno", source.first)
    raise Raises(f"{source.file}:{line}: {error}; the plain loop raises {type(error).__name__} here") from error


def must_be_known(source: FunctionSource, node: ast.expr, value: Value, what: str) -> Any:
    """The value of an expression that must be known before the program runs. Raises NeedsValue where it is left to the program,
    and RefusedError where it is none."""
    match value:
        case Known(value=found):
            return found
        case Register():
            raise NeedsValue(value, what)
        case Several(items=items):
            for item in items:
                if isinstance(item, Register):
                    raise NeedsValue(item, what)
    refuse(source, node, f"{what} is {ast.unparse(node)}", "Give it a number")
