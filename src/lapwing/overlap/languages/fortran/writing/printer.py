"""Writing Fortran: statements, comments and declarations as lines of either source form, and names not yet taken."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from lapwing.errors import RefusedError
from lapwing.overlap.ir.expressions import (
    Constant,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Operation,
    Slice,
    Text,
)

FIXED_WIDTH = 72
FREE_WIDTH = 132
FIXED_START = 6  # a statement begins behind the label and the continuation mark
CONTINUED_INDENT = 5
LONGEST_NAME = 63

# What must stay on one line: literals, words, numbers with their exponents, operators of several characters.
_TOKEN = re.compile(
    r"""\w*'(?:[^']|'')*'\w*|\w*"(?:[^"]|"")*"\w*|\.[a-z]+\.|(?:\d+\.?(?![a-z]+\.)\d*|\.\d+)(?:[ed][+-]?\d+)?(?:_\w+)?"""
    r"""|[a-z]\w*|\*\*|//|==|/=|<=|>=|=>|::|\(/|/\)|\s+|.""",
    re.IGNORECASE | re.DOTALL,
)

_SPELLING = {"!=": "/=", "&&": ".and.", "||": ".or."}
_LOGICAL_SPELLING = {"==": ".eqv.", "!=": ".neqv."}
_LOGICAL_RESULT = {"==", "!=", "<", "<=", ">", ">=", "&&", "||", "!"}
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "!": 3,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "//": 5,
    "+": 6,
    "-": 6,
    "neg": 6,
    "*": 7,
    "/": 7,
    "**": 8,
}
_HIGHEST = 9


# ---- lines --------------------------------------------------------------------------------------------------------------


def statement_lines(text: str, indent: int, form: str, label: str | None = None) -> str:
    """One statement as source lines, each with its line end; ``indent``: the blanks before it (fixed form: at least 6).

    Lines are split between words only, behind commas where there are some. Raises RefusedError if a word or literal is longer
    than a line.
    """
    fixed = form == "fixed"
    width, least = (FIXED_WIDTH, FIXED_START) if fixed else (FREE_WIDTH - len(" &"), 0)
    # Statements nested deeply begin further left rather than being cut into crumbs.
    start = min(max(indent, least), width // 2)
    further = start + CONTINUED_INDENT
    if max(map(len, _TOKEN.findall(text)), default=0) > width - further:
        further = least
    pieces = split(text.strip(), width - start, width - further)
    heads = _heads(start, further, fixed, label)
    lines = [heads[min(number, 1)] + piece for number, piece in enumerate(pieces)]
    return ("\n" if fixed else " &\n").join(lines) + "\n"


def _heads(start: int, further: int, fixed: bool, label: str | None) -> tuple[str, str]:
    """What stands before the first line's text and before that of the others."""
    first = " " * start if label is None else f"{label} ".rjust(FIXED_START).ljust(start)
    return first, "     &".ljust(further) if fixed else " " * further


def split(text: str, first: int, others: int) -> list[str]:
    """The text in pieces of at most ``first`` and then ``others`` characters."""
    pieces: list[str] = []
    line = ""
    comma = 0  # where the line's last comma ends
    for token in (match.group() for match in _TOKEN.finditer(text)):
        if not token.strip():
            line += token if line else ""
            continue
        if len(line) + len(token) > (others if pieces else first):
            cut = comma if 2 * comma > len(line) else len(line)
            pieces.append(line[:cut].rstrip())
            line, comma = line[cut:].lstrip(), 0
            if line and len(line) + len(token) > others:
                pieces.append(line.rstrip())
                line = ""
            _check_length(token, others)
        line += token
        comma = len(line) if token == "," else comma
    pieces.append(line.rstrip())
    return [piece for piece in pieces if piece]


def _check_length(token: str, room: int) -> None:
    if len(token) > room:
        raise RefusedError(
            f"{token!r} does not fit into a line of Fortran: found {len(token)} characters, expected at most {room}. "
            "Make it shorter, for example with a name for the value."
        )


def comment_line(text: str, indent: int, form: str) -> str:
    """A comment, on several lines where it is too long for one."""
    fixed = form == "fixed"
    # In column 6 the mark would be one of continuation.
    start = max(indent, FIXED_START) if fixed else indent
    width = FIXED_WIDTH if fixed else FREE_WIDTH
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and start + 2 + len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "".join(f"{' ' * start}! {part}\n" for part in [*lines, line])


# ---- declarations and names ---------------------------------------------------------------------------------------------


def declaration(type_text: str, name: str, bounds: Sequence[str] = (), attributes: Sequence[str] = ()) -> str:
    """``double precision, save :: b(5, n)``: the text of one variable's declaration."""
    shape = f"({', '.join(bounds)})" if bounds else ""
    return f"{', '.join((type_text, *attributes))} :: {name}{shape}"


def fresh_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or with a number behind it if it is taken; upper and lower case are the same."""
    used = {name.lower() for name in taken}
    base = wanted[:LONGEST_NAME]
    number = 1
    name = base
    while name.lower() in used:
        number += 1
        ending = f"_{number}"
        name = base[: LONGEST_NAME - len(ending)] + ending
    return name


# ---- expressions --------------------------------------------------------------------------------------------------------


def expression_text(value: Expression) -> str:
    """The expression in Fortran. Raises RefusedError for what cannot be written again from the model: reals, whose kind and
    digits only the source has, and expressions that were not understood."""
    return _text(value, 0)


def _text(value: Expression, around: int) -> str:
    if isinstance(value, Operation):
        return _operation(value, around)
    if isinstance(value, Number) and isinstance(value.value, int):
        return f"({value.value})" if value.value < 0 and around > 0 else str(value.value)
    if isinstance(value, Name):
        return value.symbol.name
    if isinstance(value, Constant):
        return value.name
    if isinstance(value, Text):
        return value.text
    if isinstance(value, Element):
        return f"{_text(value.base, _HIGHEST)}({_list(value.indices)})"
    if isinstance(value, Member):
        return f"{_text(value.base, _HIGHEST)}%{value.field_name}"
    if isinstance(value, Invocation) and value.name is not None:
        return f"{value.name}({_list(value.arguments)})"
    if isinstance(value, Slice):
        ends = ":".join("" if end is None else _text(end, 0) for end in (value.lower, value.upper))
        return ends if value.step is None else f"{ends}:{_text(value.step, 0)}"
    raise RefusedError(
        f"a {type(value).__name__} cannot be written as Fortran: expected whole numbers, names, elements and operations on "
        "them. Copy its text from the source instead."
    )


def _list(values: Sequence[Expression]) -> str:
    return ", ".join(_text(value, 0) for value in values)


def _is_logical(value: Expression) -> bool:
    if isinstance(value, Element):
        return _is_logical(value.base)
    if isinstance(value, Operation):
        return value.operator in _LOGICAL_RESULT
    if isinstance(value, Text):
        return value.text.lower() in (".true.", ".false.")
    return isinstance(value, Name) and value.symbol.type.base == "logical"


def _operation(value: Operation, around: int) -> str:
    if value.operator == "[]":
        return f"(/ {_list(value.arguments)} /)"
    if value.operator == "()":
        return f"({_text(value.arguments[0], 0)})"
    own = _PRECEDENCE.get(value.operator)
    if own is None:
        raise RefusedError(f"the operator {value.operator!r} has no spelling in Fortran")
    operator = _SPELLING.get(value.operator, value.operator)
    if value.operator in _LOGICAL_SPELLING and any(_is_logical(part) for part in value.arguments):
        operator = _LOGICAL_SPELLING[value.operator]
    if len(value.arguments) == 1:
        text = (".not. " if value.operator == "!" else "-") + _text(value.arguments[0], own + 1)
    else:
        left, right = value.arguments[0], value.arguments[1]
        # a ** b ** c is a ** (b ** c), all others group from the left; relations do not chain.
        tight_left = value.operator == "**" or own == _PRECEDENCE["=="]
        gap = "" if value.operator in ("*", "/", "**") else " "
        text = f"{_text(left, own + tight_left)}{gap}{operator}{gap}{_text(right, own + 1)}"
    return f"({text})" if own < around else text
