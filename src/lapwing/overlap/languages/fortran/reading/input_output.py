"""Input and output statements: which variables they read and which they write."""

from __future__ import annotations

import re

from tree_sitter import Node

from lapwing.overlap.ir.expressions import Constant, Element, Expression, Member, Name, Text
from lapwing.overlap.ir.statements import InputOutput, Statement
from lapwing.overlap.languages.fortran.parsing.file import Unreadable
from lapwing.overlap.languages.fortran.parsing.joined import joined
from lapwing.overlap.languages.fortran.reading.expressions import ExpressionReader
from lapwing.overlap.source.spans import Source, Span

_JUMPS = {"end", "err", "eor"}
_RESULTS = {"iostat", "iomsg", "size", "newunit", "id"}
_INQUIRED = {"unit", "file", "id"}  # all else INQUIRE gives
_OF_FILES = {"open_statement", "close_statement", "inquire_statement"}
_ON_FILES = {"read_statement", "file_position_statement"}
_STANDARD_UNITS = {"0", "5", "6"}
_OPEN_STANDARD = re.compile(
    rb"\bopen[ \t]*\((?![^)\n]*\bnewunit\b)[ \t]*(?:unit[ \t]*=[ \t]*)?(?!0*[1-9]\d+\b|[1-47-9]\b)", re.IGNORECASE
)


def opens_standard_units(source: Source) -> bool:
    """Whether an OPEN statement may be of a unit that is connected from the start: one that is neither new nor another number."""
    return any(_OPEN_STANDARD.search(text) for text in joined(source))


def read_input_output(expressions: ExpressionReader, node: Node, span: Span, label: str | None) -> Statement:
    """Raises Unreadable for jumps (END=, ERR=), NAMELIST, and derived types that a procedure may read or write."""
    file = expressions.file
    if file.name(node.children[0]) == "pause":
        raise Unreadable("PAUSE")
    reads: list[Expression] = []
    writes: list[Expression] = []
    for child in node.children:
        if child.type == "unit_identifier":
            for part in child.children:
                _unit(expressions, part, node.type, reads, writes)
        elif child.type == "format_identifier":
            formats = [expressions.read(part) for part in child.children if part.type in expressions.readers]
            if not all(map(_may_be_format, formats)):
                raise Unreadable("NAMELIST")
            reads += formats
        elif child.type == "keyword_argument":
            _keyword(expressions, child, node.type, reads, writes)
        elif child.type in ("output_item_list", "input_item_list"):
            items = writes if child.type == "input_item_list" else reads
            before = len(items)
            _items(expressions, child, items, reads, writes)
            defined = expressions.scope.world.overloads.input_output
            if defined and any(map(expressions.may_be_structure, items[before:])):
                raise Unreadable("input or output that may call a procedure")
    return InputOutput(
        tuple(part for part in reads if not isinstance(part, Text)),
        tuple(writes),
        node.type in _OF_FILES or (node.type in _ON_FILES and _is_on_file(expressions, node)),
        span=span,
        label=label,
    )


def _is_on_file(expressions: ExpressionReader, node: Node) -> bool:
    """Whether a READ, FLUSH or the like may be of a file that other ranks have, too: no text, and no standard unit."""
    units = [part for child in node.children if child.type == "unit_identifier" for part in child.children]
    for child in node.children:
        name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
        if child.type == "keyword_argument" and name is not None and value is not None:
            units += [value] if expressions.file.name(name) == "unit" else []
    if not units or expressions.file.name(units[-1]) == "*":
        return False
    unit = units[-1]
    if expressions.file.name(unit).strip("() ") in _STANDARD_UNITS and not expressions.scope.world.opens_standard_units:
        return False
    return unit.type not in expressions.readers or not _may_be_text(expressions, expressions.read(unit))


def _unit(
    expressions: ExpressionReader, node: Node, statement: str, reads: list[Expression], writes: list[Expression]
) -> None:
    """A unit's number is read; a character variable is written or read as a file."""
    if node.type not in expressions.readers:
        return
    value = expressions.read(node)
    internal = statement == "write_statement" and _may_be_text(expressions, value)
    (writes if internal else reads).append(value)


def _may_be_format(value: Expression) -> bool:
    """Whether a name by itself is a variable with a format: a NAMELIST stands at the same place, and may be from anywhere."""
    if not isinstance(value, Name):
        return not isinstance(value, Constant)
    return value.symbol.type.base == "character" or value.symbol.dimensions is not None


def _may_be_text(expressions: ExpressionReader, value: Expression) -> bool:
    """Whether a unit may be a variable with characters."""
    match value:
        case Name(symbol=symbol):
            return symbol.type.base == "character" or symbol.key.startswith("unknown ")
        case Element(base=base):
            return _may_be_text(expressions, base)
        case Member(field_name=name):
            return expressions.scope.world.field_types.get(name) != "number"
    return False


def _keyword(
    expressions: ExpressionReader, node: Node, statement: str, reads: list[Expression], writes: list[Expression]
) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None:
        raise Unreadable("an input or output statement")
    word = expressions.file.name(name)
    if word in _JUMPS:
        raise Unreadable(f"{word.upper()}= in an input or output statement")
    if word in ("nml", "namelist"):
        raise Unreadable("NAMELIST")
    if value.type not in expressions.readers:
        return
    if word == "unit":
        _unit(expressions, value, statement, reads, writes)
        return
    given = word in _RESULTS or (statement == "inquire_statement" and word not in _INQUIRED)
    (writes if given else reads).append(expressions.read(value))


def _items(
    expressions: ExpressionReader,
    node: Node,
    into: list[Expression],
    reads: list[Expression],
    writes: list[Expression],
) -> None:
    for item in node.children:
        if item.type == "implied_do_loop_expression":
            into += expressions.implied_values(item)
            reads += expressions.implied_reads(item)
            writes += [Name(symbol) for symbol in expressions.implied_variables(item)]
        elif item.type in expressions.readers:
            into.append(expressions.read(item))
