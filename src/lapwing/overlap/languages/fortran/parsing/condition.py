"""The value of a condition of the preprocessor's."""

from __future__ import annotations

import re
from collections.abc import Callable

UNKNOWN = "(unknown)"
"""What a macro stands for of which it is not known."""

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|&&|\|\||[!=<>]=|[-+*/%!<>()]|\S)")
_COMMENT = re.compile(r"/\*.*?\*/|\\\n")
# By how strongly they bind, the weakest first.
_OPERATORS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))
_DEEPEST = 20  # macros that stand for others


class _NotRead(Exception):
    pass


def evaluate(condition: str, lookup: Callable[[str], str | None]) -> int | None:
    """What follows ``#if``, in integers. ``lookup``: a macro's text, None where it is not defined, or UNKNOWN.

    None if the value is not certain, or the condition is not read.
    """
    try:
        return _Reader(condition, lookup, 0).whole()
    except _NotRead:
        return None


class _Reader:
    def __init__(self, text: str, lookup: Callable[[str], str | None], depth: int) -> None:
        self._tokens = _TOKEN.findall(_COMMENT.sub(" ", text))
        self._lookup = lookup
        self._depth = depth
        self._at = 0

    def whole(self) -> int | None:
        value = self._binary(0)
        if self._at != len(self._tokens):
            raise _NotRead
        return value

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise _NotRead
        self._at += 1
        token: str = self._tokens[self._at - 1]
        return token

    def _take(self, token: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at] == token
        self._at += found
        return found

    def _binary(self, level: int) -> int | None:
        if level == len(_OPERATORS):
            return self._unary()
        value = self._binary(level + 1)
        while self._at < len(self._tokens) and self._tokens[self._at] in _OPERATORS[level]:
            value = _operated(self._next(), value, self._binary(level + 1))
        return value

    def _unary(self) -> int | None:
        token = self._next()
        if token in ("!", "-", "+"):
            value = self._unary()
            return None if value is None else {"!": int(not value), "-": -value, "+": value}[token]
        if token == "(":
            value = self._binary(0)
            if not self._take(")"):
                raise _NotRead
            return value
        if token.isdigit():
            return int(token)
        if token == "defined":
            inside = self._take("(")
            name = self._next()
            if inside and not self._take(")"):
                raise _NotRead
            text = self._lookup(name)
            return None if text == UNKNOWN else int(text is not None)
        return self._macro(token)

    def _macro(self, name: str) -> int | None:
        text = self._lookup(name) if re.match(r"[A-Za-z_]", name) and self._depth < _DEEPEST else UNKNOWN
        if text == UNKNOWN:
            return None
        return 0 if text is None or text == name else _Reader(text, self._lookup, self._depth + 1).whole()


def _operated(operator: str, left: int | None, right: int | None) -> int | None:
    if operator in ("&&", "||"):
        decides = int(operator == "||")  # the value of either side that decides alone
        sides = [None if side is None else int(side != 0) for side in (left, right)]
        return decides if decides in sides else None if None in sides else 1 - decides
    if left is None or right is None or (operator in "/%" and right == 0):
        return None
    return {
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        ">": lambda: int(left > right),
        "<=": lambda: int(left <= right),
        ">=": lambda: int(left >= right),
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: int(left / right),
        "%": lambda: left - right * int(left / right),
    }[operator]()
