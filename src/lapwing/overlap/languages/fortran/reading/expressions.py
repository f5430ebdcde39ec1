"""Expressions: from tree-sitter's nodes to the program model's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tree_sitter import Node

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
    Symbol,
    Text,
    Unread,
)
from lapwing.overlap.languages.fortran.parsing.file import File, Unreadable, child_of
from lapwing.overlap.languages.fortran.reading.intrinsics import UNMISTAKABLE
from lapwing.overlap.languages.fortran.reading.overloads import OPERATORS
from lapwing.overlap.languages.fortran.reading.scope import Entity, Scope, StatementFunction
from lapwing.overlap.languages.fortran.reading.units import UNITS, Unit
from lapwing.overlap.libraries import summaries
from lapwing.overlap.source.spans import Span

_INTEGER = re.compile(r"\d+")
_REAL = re.compile(r"(\d+\.?\d*|\.\d+)(?:[ed]([+-]?\d+))?")
# Intrinsic functions whose value may be of the type of their arguments, whatever that is.
_OF_ANY_TYPE = frozenset(
    "cshift eoshift findloc merge pack reduce reshape spread transfer transpose unpack null".split()
)
_LEFT_OUT = Constant("left out")  # an OPTIONAL argument
_PUNCTUATION = {"(", ")", ",", "[", "]", "(/", "/)"}


class ExpressionReader:
    """Reads the expressions of ``file`` with the names of ``scope``. ``symbol_of`` makes an entity's symbol.

    Every method raises Unreadable for what the model has no word for and must not be passed over.
    """

    def __init__(self, scope: Scope, file: File, symbol_of: Callable[[Entity], Symbol]) -> None:
        self.scope = scope
        self.file = file
        self.symbol_of = symbol_of
        self.symbols: dict[str, Symbol] = {}  # of names read before, as spelled
        self.readers: dict[str, Callable[[Node], Expression]] = {
            "identifier": self.identifier,
            "number_literal": self.number,
            "boolean_literal": self.literal,
            "string_literal": self.literal,
            "hollerith_constant": self.literal,
            "call_expression": self.call,
            "math_expression": self.binary,
            "relational_expression": self.binary,
            "logical_expression": self.binary,
            "concatenation_expression": self.concatenation,
            "unary_expression": self.binary,
            "parenthesized_expression": self.parenthesized,
            "derived_type_member_expression": self.member,
            "extent_specifier": self.slice,
            "array_literal": self.array,
            "complex_literal": self.complex,
            "implied_do_loop_expression": self.implied_loop,
            "null_literal": self.null,
        }

    def read(self, node: Node) -> Expression:
        reader = self.readers.get(node.type)
        return reader(node) if reader is not None else self.unread(node)

    # ---- names ----------------------------------------------------------------------------------------------------------

    def identifier(self, node: Node) -> Expression:
        text = self.file.text(node)
        span = self.file.span(node)
        known = self.symbols.get(text)
        if known is not None:
            return Name(known, span=span)
        if text in self.file.macros:
            return self.macro(text, node)
        name = text.lower()
        entity = self.scope.find(name)
        if entity is None:
            if name.startswith("mpi_"):
                return Constant(text.upper(), span=span)
            kind = self.scope.kind_name(name)
            if kind is not None:
                return Constant(kind, span=span)
            if self.scope.names_procedure(name):
                return Constant(name, span=span)
            entity = self.scope.implied(name, self.file, span)
            if entity.unknown is not None and name in self.scope.world.externals:
                return Unread(text, (Name(self.symbol_of(entity), span=span),), span=span)
        if entity.external and not entity.pointer and not entity.argument:
            return Constant(name, span=span)
        if entity.common is None and entity.scope.unit.name != name and self.is_function(name, entity):
            return Constant(name, span=span)
        symbol = self.symbols[text] = self.symbol_of(entity)
        return Name(symbol, span=span)

    def is_function(self, name: str, entity: Entity) -> bool:
        """Whether a name declared with a type only is that of an external function, which is called there then: others are hidden
        by the declaration."""
        plain = entity.shape is None and not entity.argument and not entity.parameter and entity.value is None
        if not plain or entity.scope.unit.kind == "module":
            return False
        unit = self.scope.world.externals.get(name)
        if unit is None or unit.kind != "function" or entity.saved:
            return False
        here = entity.scope.unit
        called = re.compile(rf"\b{name}[\s&]*\(", re.IGNORECASE)
        found = (match.start() for match in called.finditer(here.file.text(here.node)))
        return any(self.is_called_at(here.node.start_byte + start, name, entity) for start in found)

    def is_called_at(self, at: int, name: str, entity: Entity) -> bool:
        """Whether a name at this byte of its file's tree is followed by arguments, and is the entity there."""
        here = entity.scope.unit
        node = here.file.parsed.root.descendant_for_byte_range(at, at + 1)
        call = None if node is None or node.type != "identifier" else node.parent
        if node is None or call is None or call.type != "call_expression" or call.children[0] != node:
            return False
        owner: Node | None = call
        while owner is not None and owner.type not in UNITS:
            owner = owner.parent
        scopes = (
            scope for unit, scope in self.scope.world.scopes.items() if unit.file is here.file and unit.node == owner
        )
        return any(scope.find(name) is entity for scope in scopes)

    def macro(self, text: str, node: Node) -> Expression:
        value = self.file.macros[text].strip().strip("()")
        if _INTEGER.fullmatch(value):
            return Number(int(value), span=self.file.span(node))
        raise Unreadable(f"the macro {text}")

    def variable(self, node: Node) -> Symbol:
        """A plain variable: a loop's, for example."""
        found = self.read(node)
        if not isinstance(found, Name):
            raise Unreadable(f"{self.file.text(node)} where a variable should be")
        return found.symbol

    # ---- literals -------------------------------------------------------------------------------------------------------

    def number(self, node: Node) -> Expression:
        text = self.file.name(node).split("_")[0].replace(" ", "")
        span = self.file.span(node)
        if _INTEGER.fullmatch(text):
            return Number(int(text), span=span)
        match = _REAL.fullmatch(text)
        if match is None:
            return Text(text, span=span)
        return Number(float(f"{match.group(1)}e{match.group(2) or 0}"), span=span)

    def literal(self, node: Node) -> Expression:
        return Text(self.file.text(node), span=self.file.span(node))

    def complex(self, node: Node) -> Expression:
        return Invocation("cmplx", self.values(node), span=self.file.span(node))

    def null(self, node: Node) -> Expression:
        return Invocation("null", (), span=self.file.span(node))

    def array(self, node: Node) -> Expression:
        values = tuple(self.read(child) for child in node.children if self.is_operand(child))
        return Operation("[]", values, span=self.file.span(node))

    def is_operand(self, node: Node) -> bool:
        return node.is_named and node.type not in ("intrinsic_type", "derived_type", "comment")

    # ---- operations -----------------------------------------------------------------------------------------------------

    def binary(self, node: Node) -> Expression:
        operands: list[Expression] = []
        operator = ""
        for child in node.children:
            if child.type == "user_defined_operator":
                # Fixed form allows blanks anywhere: ``. eq.`` is ``.eq.``.
                operator = self.file.name(child).replace(" ", "")
                if operator not in OPERATORS:
                    return self.unread(node)
            elif child.is_named:
                operands.append(self.read(child))
            else:
                operator = child.type.lower()
        operator = OPERATORS.get(operator, operator)
        if self.may_call(operator, operands):
            return self.unread(node)
        span = self.file.span(node)
        if operator == "**" and _is_power(node.children[0]):
            return self.powers(node, span)
        if len(operands) == 1 and operator in ("+", "-"):
            return operands[0] if operator == "+" else negated(operands[0], span)
        return Operation(operator, tuple(operands), span=span)

    def powers(self, node: Node, span: Span) -> Expression:
        """``a**b**c`` is ``a**(b**c)``; tree-sitter groups it from the left."""
        parts: list[Node] = []
        while _is_power(node):
            parts.append(node.children[2])
            node = node.children[0]
        first, *rest = [self.read(part) for part in parts]
        for part in (*rest, self.read(node)):
            first = Operation("**", (part, first))
        return replace(first, span=span)

    def concatenation(self, node: Node) -> Expression:
        operands = self.values(node)
        if self.may_call("//", operands):
            return self.unread(node)
        return Operation("//", operands, span=self.file.span(node))

    def may_call(self, operator: str, operands: Sequence[Expression]) -> bool:
        """Whether an operator between these may stand for a procedure."""
        return self.scope.world.overloads.may_call(operator, any(map(self.may_be_structure, operands)))

    def may_be_structure(self, value: Expression) -> bool:
        """Whether its type may be a derived one."""
        match value:
            case Name(symbol=symbol):
                return symbol.type.base in ("struct", "other")
            case Element(base=base):
                return self.may_be_structure(base)
            case Member(field_name=name):
                return self.scope.world.field_types.get(name) not in ("number", "character")
            case Invocation(name=str(name), arguments=arguments) if summaries.lookup(name, "fortran") is not None:
                return name in _OF_ANY_TYPE and any(map(self.may_be_structure, arguments))
            case Invocation(name=name):
                return self.may_return_structure(name)
            case Operation(operator="()" | "[]", arguments=arguments):
                return any(map(self.may_be_structure, arguments))
        return isinstance(value, Unread)

    def may_end(self, value: Expression) -> bool:
        """Whether a (FINAL) procedure may be called before it is assigned."""
        if not self.scope.world.overloads.final or not self.may_be_structure(value):
            return False
        base = value.base if isinstance(value, Element) else value
        return not isinstance(base, Name) or self.scope.world.overloads.may_end(base.symbol.type.text)

    def may_return_structure(self, name: str | None) -> bool:
        """Whether a function's value, or what looks like one, may be of a derived type."""
        unit = None if name is None else self.scope.procedure(name)
        scope = None if unit is None else self.scope.world.scopes[unit]
        if scope is None or scope.result is None:
            return True
        return self.symbol_of(scope.entities[scope.result]).type.base in ("struct", "other")

    def parenthesized(self, node: Node) -> Expression:
        inner = next((child for child in node.children if child.is_named), None)
        if inner is None:
            return self.unread(node)
        # The span takes the parentheses along: what replaces the expression must not change how it binds.
        return replace(self.read(inner), span=self.file.span(node))

    # ---- elements and function calls ------------------------------------------------------------------------------------

    def call(self, node: Node) -> Expression:
        children = node.children
        base = children[0]
        span = self.file.span(node)
        if base.type == "identifier":
            expression = self.named(base, children[1], span)
        elif base.type == "derived_type_member_expression":
            expression = self.field(base, children[1], span)
        else:
            expression = Element(self.read(base), self.values(children[1]), span=span)
        for more in children[2:]:
            expression = Element(expression, self.values(more), span=span)
        return expression

    def named(self, base: Node, arguments: Node, span: Span) -> Expression:
        """``name(…)``: an element of an array, a substring, or a function's value."""
        text = self.file.text(base)
        name = text.lower()
        if text in self.file.macros:
            raise Unreadable(f"the macro {text}")
        function = self.scope.statement_function(name)
        if function is not None:
            return self.unread_call(name, function, arguments, span)
        entity = self.scope.find(name)
        if entity is not None and not entity.external and self.is_array(entity):
            return Element(self.identifier(base), self.values(arguments), span=span)
        if entity is not None and not entity.external and child_of(arguments, "extent_specifier") is not None:
            return Element(self.identifier(base), self.values(arguments), span=span)
        if name == "kind" and entity is None and arguments.named_child_count == 1:
            literal = arguments.named_children[0]
            if literal.type == "number_literal":
                return Number(8 if "d" in self.file.name(literal) else 4, span=span)
        if entity is None and self.scope.procedure(name) is None and self.scope.unknown_sources():
            return self.unread_array(name, base, arguments, span)
        return self.invocation(name, entity, arguments, span)

    def is_array(self, entity: Entity) -> bool:
        return entity.shape is not None

    def invocation(self, name: str, entity: Entity | None, arguments: Node, span: Span) -> Expression:
        called = self.scope.called(name)
        positional, keywords = self.arguments(arguments, name)
        values = (*positional, *(value for _, value in keywords))
        unit = None if called is None else self.scope.procedure(name)
        if unit is not None and keywords:
            placed = self.placed(unit, positional, dict(keywords))
            if placed is None:
                return Unread(f"{name}(…)", values, span=span)
            values = placed
        indirect = entity is not None and (entity.argument or entity.pointer)
        if called is None and not indirect:
            return Unread(f"{name}(…)", values, span=span)
        return Invocation(called, values, span=span)

    def unread_call(self, name: str, function: StatementFunction, arguments: Node, span: Span) -> Expression:
        """A statement function's value: it may use any variable of the procedure it stands in."""
        there = ExpressionReader(function.scope, function.scope.unit.file, self.symbol_of)
        # They stand somewhere else, so they have no span here.
        used = (replace(there.identifier(node), span=None) for node in function.used())
        return Unread(f"{name}(…)", (*self.values(arguments), *used), span=span)

    def unread_array(self, name: str, base: Node, arguments: Node, span: Span) -> Expression:
        """An array or a function from somewhere that could not be read."""
        if name in UNMISTAKABLE or name.startswith("mpi_"):
            return self.invocation(name, None, arguments, span)
        return Unread(f"{name}(…)", (self.identifier(base), *self.values(arguments)), span=span)

    def arguments(self, node: Node | None, callee: str | None) -> tuple[list[Expression], list[tuple[str, Expression]]]:
        """Actual arguments: by position, then those by keyword, which are put in order if the callee's is known."""
        positional: list[Expression] = []
        keywords: dict[str, Expression] = {}
        for child in node.children if node is not None else ():
            if child.type == "keyword_argument":
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name is None or value is None:
                    raise Unreadable("a keyword without a value")
                keywords[self.file.name(name)] = self.actual(value)
            elif child.is_error or child.type in ("assumed_size", "statement_label_reference"):
                raise Unreadable("an alternate return")
            elif child.type not in _PUNCTUATION:
                positional.append(self.actual(child))
        unit = self.scope.procedure(callee) if callee is not None and keywords else None
        if unit is not None:
            order = self.scope.world.scopes[unit].parameters
            while len(positional) < len(order) and order[len(positional)] in keywords:
                positional.append(keywords.pop(order[len(positional)]))
        return positional, list(keywords.items())

    def placed(
        self, unit: Unit, positional: Sequence[Expression], keywords: dict[str, Expression]
    ) -> tuple[Expression, ...] | None:
        """Actual arguments where the dummy ones are, of which some are left out; None if a keyword names none of them."""
        rest = self.scope.world.scopes[unit].parameters[len(positional) :]
        if not keywords.keys() <= set(rest):
            return None
        return (*positional, *(keywords.get(name, _LEFT_OUT) for name in rest))

    def actual(self, node: Node) -> Expression:
        value = self.read(node)
        if node.type == "parenthesized_expression" and isinstance(value, Name | Element | Member):
            # (x) is passed by value: the callee gets a copy.
            return Operation("()", (value,), span=value.span)
        return value

    def values(self, node: Node) -> tuple[Expression, ...]:
        """Indices or operands in order; a keyword's value without its keyword."""
        result = []
        for child in node.children:
            if child.type == "keyword_argument":
                value = child.child_by_field_name("value")
                result += [self.read(value)] if value is not None else []
            elif child.is_named and child.type not in ("comment", "user_defined_operator"):
                result.append(self.read(child))
        return tuple(result)

    def slice(self, node: Node) -> Expression:
        parts: list[Expression | None] = [None, None, None]
        position = 0
        for child in node.children:
            if child.type == ":":
                position += 1
            elif child.type == "::":
                position += 2
            elif child.is_named and child.type != "assumed_size":
                parts[position] = self.read(child)
        return Slice(*parts, span=self.file.span(node))

    def target(self, node: Node) -> Expression:
        """What is assigned: there ``name(…)`` is no function's value."""
        value = self.read(node)
        if isinstance(value, Invocation | Unread) and node.type == "call_expression":
            base = node.children[0]
            if base.type == "identifier":
                return Element(self.identifier(base), self.values(node.children[1]), span=value.span)
        return value

    # ---- components -----------------------------------------------------------------------------------------------------

    def member(self, node: Node) -> Expression:
        base, name = node.children[0], child_of(node, "type_member")
        if name is None:
            return self.unread(node)
        return Member(self.read(base), self.file.name(name), span=self.file.span(node))

    def field(self, base: Node, arguments: Node, span: Span) -> Expression:
        """``a%b(…)``: an element of a component, or a type-bound function."""
        member = self.read(base)
        if not isinstance(member, Member):
            return self.unread(base)
        kind = self.scope.world.fields.get(member.field_name)
        substring = child_of(arguments, "extent_specifier") is not None
        if kind == "array" or (kind == "scalar" and substring):
            return Element(member, self.values(arguments), span=span)
        positional, keywords = self.arguments(arguments, None)
        values = (member.base, *positional, *(value for _, value in keywords))
        if kind == "procedure":
            return Invocation(None, values, span=span)
        return Unread(self.file.text(base), values, span=span)

    # ---- what varies inside an expression -------------------------------------------------------------------------------

    def implied_loop(self, node: Node) -> Expression:
        values = (*self.implied_values(node), *self.implied_reads(node))
        return Operation("[]", values, span=self.file.span(node))

    def implied_values(self, node: Node) -> tuple[Expression, ...]:
        """Of ``(a(i), b(i), i = 1, n)``: its values, with all the loop's variable goes through where it is an index."""
        variable, extent = self.implied_extent(node)
        return tuple(swept(value, variable, extent) for value in self.implied_items(node))

    def implied_reads(self, node: Node) -> tuple[Expression, ...]:
        """What it reads besides: for its bounds, and in indices of which the whole extent is left."""
        variable, extent = self.implied_extent(node)
        inner = [child for child in node.children if child.type == "implied_do_loop_expression"]
        bounds = [part for child in inner for value in self.implied_reads(child) for part in _besides(value, variable)]
        found = (*bounds, *(part for value in (*self.implied_items(node), *bounds) for part in _lost(value, variable)))
        return (*_besides(extent, variable), *(swept(value, variable, extent) for value in found))

    def implied_items(self, node: Node) -> list[Expression]:
        values: list[Expression] = []
        for child in node.children:
            if child.type == "implied_do_loop_expression":
                values += self.implied_values(child)
            elif self.is_operand(child) and child.type != "loop_control_expression":
                values.append(self.read(child))
        return values

    def implied_extent(self, node: Node) -> tuple[Symbol, Slice]:
        """The variable of an implied loop, and what it goes through."""
        control = child_of(node, "loop_control_expression")
        if control is None:
            raise Unreadable("an implied loop without bounds")
        variable, *bounds = self.control(control)
        return variable, Slice(*bounds)

    def implied_variables(self, node: Node) -> list[Symbol]:
        """The variables of an implied loop and of those inside it."""
        found = [self.control(child)[0] for child in node.children if child.type == "loop_control_expression"]
        for child in node.children:
            if child.type == "implied_do_loop_expression":
                found += self.implied_variables(child)
        return found

    def control(self, node: Node) -> tuple[Symbol, Expression, Expression, Expression]:
        """``i = lower, upper, step``."""
        parts = [child for child in node.children if child.is_named]
        if not 3 <= len(parts) <= 4:
            raise Unreadable("a loop's bounds")
        step: Expression = self.read(parts[3]) if len(parts) == 4 else Number(1)
        return self.variable(parts[0]), self.read(parts[1]), self.read(parts[2]), step

    def unread(self, node: Node) -> Expression:
        mentions = tuple(self.read(inner) for inner in node.children if inner.type in self.readers)
        return Unread(self.file.text(node), mentions, span=self.file.span(node))


def _is_power(node: Node) -> bool:
    return node.type == "math_expression" and len(node.children) == 3 and node.children[1].type == "**"


def negated(value: Expression, span: Span) -> Expression:
    if isinstance(value, Number):
        return Number(-value.value, span=span)
    return Operation("neg", (value,), span=span)


def swept(value: Expression, variable: Symbol, extent: Slice) -> Expression:
    """The expression for all values of a variable at once: where it is an index, the range; where in one, the whole extent."""
    if isinstance(value, Element):
        indices = tuple(_swept_index(index, variable, extent) for index in value.indices)
        return replace(value, base=swept(value.base, variable, extent), indices=indices)
    if isinstance(value, Member):
        return replace(value, base=swept(value.base, variable, extent))
    if isinstance(value, Operation | Invocation):
        return replace(value, arguments=tuple(swept(part, variable, extent) for part in value.arguments))
    return value


def _swept_index(index: Expression, variable: Symbol, extent: Slice) -> Expression:
    if isinstance(index, Name) and index.symbol == variable:
        return extent
    if any(isinstance(part, Name) and part.symbol == variable for part in index.walk()):
        return Slice(None, None, None)
    return index


def _lost(value: Expression, variable: Symbol) -> Iterator[Expression]:
    """What indices read that ``swept`` replaces by the whole extent."""
    for element in value.walk():
        for index in element.indices if isinstance(element, Element) else ():
            if any(isinstance(part, Name) and part.symbol == variable for part in index.walk()):
                yield from _besides(index, variable)


def _besides(value: Expression, variable: Symbol) -> Iterator[Expression]:
    """The parts of an expression without the variable's own value."""
    if isinstance(value, Operation | Slice):
        for part in value.operands():
            yield from _besides(part, variable)
    elif not isinstance(value, Number) and not (isinstance(value, Name) and value.symbol == variable):
        yield value
