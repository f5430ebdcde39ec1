"""Costly functions of some of a nest's indices alone, evaluated once for each value of those, before the loops (loop-invariant
code motion, with the array that scalar expansion makes: Allen and Kennedy, chapters 2 and 5).

    before                                             after
    for i in range(1, n):                              for j in range(m):
        for j in range(m):                                 table[j] = math.exp(-k[j])
            u[i, j] = u[i - 1, j] * math.exp(-k[j])    for i in range(1, n):
                                                           for j in range(m):
                                                               u[i, j] = u[i - 1, j] * float(table[j])

A function of one combination of several indices, as ``d ** (i - j)``, has a table over the values of that. Whether the loops come
to an evaluation is not asked: where one of those for a table raises, the nest is to be run as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lapwing.affine.affine import Affine
from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest, bind
from lapwing.loopnest.functions import CASTS

_FEWEST_ITERATIONS = 1 << 12  # of a nest that is worth another one before it
_FEWEST_USES = 8  # of each element of a table, on average
_MOST_ELEMENTS = 1 << 17  # of a table: it is to stay in the cache
_CHEAP = frozenset({"sqrt", "fabs", "absolute", "floor", "ceil", "trunc", "copysign", "minimum", "maximum", *CASTS})

_Form = tuple[tuple[str, int], ...]  # the terms of an affine expression over indices


@dataclass(frozen=True)
class Table:
    """``nest`` stores its elements, each at the place of its indices less the least ones."""

    name: str
    shape: tuple[int, ...]
    nest: ir.LoopNest


@dataclass(frozen=True)
class Tabulation:
    """A nest that looks up what ``tables`` hold, arrays of float64 that are further arguments of it."""

    nest: ir.LoopNest
    tables: tuple[Table, ...]


def tabulation(bound: BoundNest, arguments: Mapping[str, Any], surroundings: Mapping[str, Any]) -> Tabulation | None:
    """The nest with tables, where they are worth it. arguments, surroundings: those that it is bound to."""
    nest = bound.nest
    values = (value for s in ir.all_statements(nest.body) for value in ir.own_expressions(s))
    if nest.is_generic or bound.domain.is_empty or not any(map(_is_costly, values)):
        return None
    tabulating = _Tabulating(bound, arguments, surroundings)
    body = tuple(map(tabulating.statement, nest.body))
    tables = tuple(tabulating.tables)
    if not tables:
        return None
    names = tuple(table.name for table in tables)
    return Tabulation(
        replace(nest, body=body, arrays=(*nest.arrays, *names), parameters=(*nest.parameters, *names)), tables
    )


class _Tabulating:
    def __init__(self, bound: BoundNest, arguments: Mapping[str, Any], surroundings: Mapping[str, Any]) -> None:
        self.bound, self.nest = bound, bound.nest
        self.arguments, self.surroundings = arguments, surroundings
        self.ranges = {} if bound.nest.is_sequential else bound.domain.index_ranges()  # also of the inner loops around
        self.iterations = bound.domain.box_volume  # of these together
        self.tables: list[Table] = []
        self.known: dict[Any, ir.Expression | None] = {}  # the look-up of an expression, if there is one
        statements = list(ir.all_statements(self.nest.body))
        self.counts = Counter(s.name for s in statements if isinstance(s, ir.SetTemporary))
        self.variables: dict[str, ir.Expression] = {}  # what those are worth that are set at one place, and have been
        self.taken = {
            *self.nest.parameters, *self.nest.arrays, *self.nest.loop_names, *bound.parameters,
            *(s.name for s in statements if isinstance(s, ir.SetTemporary | ir.Accumulate)),
            *(s.index for s in statements if isinstance(s, ir.For)),
            *(target for setup in self.nest.setups for target in setup.targets),
        }  # fmt: skip

    # -- the nest with look-ups ------------------------------------------------------------------------------------------

    def statement(self, statement: ir.Statement) -> ir.Statement:
        match statement:
            case ir.AddTerm():
                return statement
            case ir.Store(value=value):
                return replace(statement, value=self.expression(value))
            case ir.SetTemporary(name=name, value=value):
                found = replace(statement, value=self.expression(value))
                if self.counts[name] == 1 and type(statement) is ir.SetTemporary:
                    self.variables[name] = value
                return found
            case ir.Accumulate(value=value, payload=payload):
                kept = tuple((name, self.expression(its)) for name, its in payload)
                return replace(statement, value=self.expression(value), payload=kept)
            case ir.If(test=test, then=then, otherwise=otherwise):
                test = self.expression(test)
                return ir.If(statement.line, statement.text, test, self._block(then), self._block(otherwise))
            case ir.While(body=body):
                return replace(statement, body=self._block(body))
            case ir.For(body=body):
                with self._inside(statement):
                    return replace(statement, body=self._block(body))
        return statement

    def _block(self, statements: Sequence[ir.Statement]) -> tuple[ir.Statement, ...]:
        """Statements that the ones after them may follow without having been done."""
        before = dict(self.variables)
        found = tuple(map(self.statement, statements))
        self.variables = before
        return found

    @contextmanager
    def _inside(self, loop: ir.For) -> Iterator[None]:
        """What stands in an inner loop, whose index has a range where its bounds are affine."""
        before = self.ranges, self.iterations
        if (ends := self._ends(loop)) is not None and loop.index not in self.ranges:
            self.ranges = {**self.ranges, loop.index: ends}
            self.iterations *= ends[1] + 1 - ends[0]
        yield
        self.ranges, self.iterations = before

    def _ends(self, loop: ir.For) -> tuple[int, int] | None:
        """The least and the largest index that an inner loop may have."""
        step = loop.fixed_step
        start, stop = (None if end is None else end.substitute(self.bound.symbols) for end in loop.affine)
        if not step or start is None or stop is None or not start.names | stop.names <= self.ranges.keys():
            return None
        first, last = self._range(start), self._range(stop)
        ends = (first[0], last[1] - 1) if step > 0 else (last[0] + 1, first[1])
        return ends if ends[0] <= ends[1] else None

    def expression(self, node: ir.Expression) -> ir.Expression:
        """An expression with look-ups in the place of the largest parts that have tables."""
        if _is_costly(node) and (found := self._look_up(node)) is not None:
            return found
        return _mapped(node, self.expression)

    def _look_up(self, node: ir.Expression) -> ir.Expression | None:
        alone = self._alone(node)
        if alone is None or (is_number := self._is_pythons(alone)) is None:
            return None
        key = alone, tuple(self.ranges[part.name] for part in _walk(alone) if isinstance(part, ir.LoopIndex))
        if key not in self.known:
            places = self._places(alone)
            self.known[key] = None if places is None else self._tabulated(alone, places, is_number)
        return self.known[key]

    def _tabulated(self, node: ir.Expression, places: Mapping[str, Affine], is_number: bool) -> ir.Expression | None:
        """The look-up of a new table; None where that has no float64. places: the loops of its nest, and what each is in the nest
        that looks it up."""
        line, forms = node.line, {place.terms: name for name, place in places.items()}
        ends = list(map(self._range, places.values()))
        name = self._fresh("table")
        inside = [ir.LoopIndex(index, line=line) for index in places]
        store = ir.Store(
            line,
            f"{name} = …",
            _element(name, inside, [low for low, _ in ends], [Affine.of(index) for index in places]),
            _over(node, forms) if any(len(form) > 1 for form in forms) else node,
        )
        loops = tuple(
            ir.Loop(index, (Affine(low),), (Affine(high + 1),), 1, line)
            for index, (low, high) in zip(places, ends, strict=True)
        )
        nest = replace(
            self.nest, name=f"{self.nest.name}_{name}", parameters=(*self.nest.parameters, name), loops=loops,
            body=(store,), arrays=(*(a for a in self.nest.arrays if a not in self.nest.written), name), written=(name,),
            accumulators=(), returns=(), returns_tuple=False, sweep_depth=0, axis_loops={name: tuple(places)}, dead=(),
            assumed=(), by_sweep=False,
        )  # fmt: skip
        table = Table(name, tuple(high + 1 - low for low, high in ends), nest)
        if not self._holds(table):
            return None
        self.tables.append(table)
        outside = [_expression_of(place, line) for place in places.values()]
        element = _element(name, outside, [low for low, _ in ends], list(places.values()))
        return ir.Call("float", (element,), line=line) if is_number else element

    def _holds(self, table: Table) -> bool:
        """Whether the elements of a table are float64 before they are stored, and its nest is not refused."""
        arguments = {**self.arguments, table.name: ArrayShape("float64", table.shape)}
        try:
            body = bind(NestAnalysis(table.nest), arguments, self.surroundings).body
        except RefusedError:
            return False
        values = [s.value for s in t.all_statements(body.statements) if isinstance(s, t.TypedStore)]
        return all(value.dtype == "float64" and not isinstance(value, t.Convert) for value in values)

    def _fresh(self, name: str) -> str:
        number = len(self.tables) + 1
        while (found := f"{name}_{number}") in self.taken:
            number += 1
        self.taken.add(found)
        return found

    # -- what has a table ------------------------------------------------------------------------------------------------

    def _alone(self, node: ir.Expression) -> ir.Expression | None:
        """An expression with what variables are in the place of those; None where it is over more than indices, arguments and
        elements that the nest does not store to."""
        match node:
            case ir.Constant() | ir.Parameter():
                return node
            case ir.LoopIndex(name=name):
                return node if name in self.ranges else None
            case ir.Temporary(name=name):
                value = self.variables.get(name)
                return None if value is None else self._alone(value)
            case ir.Access(array=array, affine=affine, from_end=from_end, taken=taken):
                if array in self.nest.written or None in affine or from_end or taken:
                    return None
            case ir.Unary() | ir.Binary() | ir.Call():
                pass
            case _:
                return None
        parts = [self._alone(child) for child in ir.children(node)]
        found = [part for part in parts if part is not None]
        return _mapped(node, iter(found).__next__, True) if len(found) == len(parts) else None

    def _is_pythons(self, node: ir.Expression) -> bool | None:
        """Whether what an expression gives is a number of Python's own rather than of NumPy's; None where that is not known."""
        match node:
            case ir.Constant() | ir.LoopIndex():
                return True
            case ir.Parameter(name=name):
                value = self.bound.parameters.get(name)
                return False if isinstance(value, np.generic) else True if type(value) in (bool, int, float) else None
            case ir.Access():
                return False
            case ir.Call(function="float" | "int"):
                return True
            case ir.Call(function=function) if function.startswith(("math.", "numpy.")):
                return function.startswith("math.")
        kinds = [self._is_pythons(child) for child in ir.children(node)]
        if None in kinds:
            return None
        if isinstance(node, ir.Call) and len(set(kinds)) > 1:  # max of both may give either
            return None
        return all(kinds)

    def _places(self, node: ir.Expression) -> dict[str, Affine] | None:
        """The loops of a table's nest, and what their indices are in this one; None where a table is not worth it."""
        forms = _forms(node)
        names = {name for form in forms for name, _ in form}
        if names != {part.name for part in _walk(node) if isinstance(part, ir.LoopIndex)}:  # as in i - i
            return None
        if len(forms) == 1 and len(names) > 1:
            if any(isinstance(part, ir.Access) for part in _walk(node)):
                return None
            (form,) = forms
            places = {self._fresh("index"): Affine(0, form)}
        else:
            places = {name: Affine.of(name) for name in self.ranges if name in names}
        ends = map(self._range, places.values())
        elements = math.prod(high + 1 - low for low, high in ends)
        if not places or elements > _MOST_ELEMENTS:
            return None
        return places if self.iterations >= max(_FEWEST_ITERATIONS, elements * _FEWEST_USES) else None

    def _range(self, affine: Affine) -> tuple[int, int]:
        """The least and the largest value of an expression over indices."""
        ends = [sorted(factor * end for end in self.ranges[name]) for name, factor in affine.terms]
        return affine.constant + sum(low for low, _ in ends), affine.constant + sum(high for _, high in ends)


def _is_costly(node: ir.Expression) -> bool:
    """Whether a function or a power is called that takes longer than to look one up. Those of arguments alone are evaluated
    before the loops anyway."""
    return any(
        (isinstance(part, ir.Binary) and part.operator == "**")
        or (isinstance(part, ir.Call) and "." in part.function and part.function.split(".")[1] not in _CHEAP)
        for part in _walk(node)
        if any(isinstance(leaf, ir.LoopIndex | ir.Access | ir.Temporary) for leaf in _walk(part))
    )


def _walk(node: ir.Expression) -> Sequence[ir.Expression]:
    return [node, *(part for child in ir.children(node) for part in _walk(child))]


def _affine(node: ir.Expression) -> Affine | None:
    """An expression over indices and numbers in the text."""
    match node:
        case ir.LoopIndex(name=name):
            return Affine.of(name)
        case ir.Constant(value=value) if type(value) is int:
            return Affine(value)
        case ir.Unary(operator="-", operand=operand):
            found = _affine(operand)
            return None if found is None else -found
        case ir.Binary(operator="+" | "-" | "*" as operator, left=left, right=right):
            one, other = _affine(left), _affine(right)
            if one is None or other is None:
                return None
            if operator != "*":
                return one + other if operator == "+" else one - other
            if not one.terms or not other.terms:
                return other * one.constant if not one.terms else one * other.constant
    return None


def _forms(node: ir.Expression) -> set[_Form]:
    """The terms of the largest affine expressions over indices in an expression, which it is a function of."""
    affine = _affine(node)
    if affine is not None:
        return {affine.terms} if affine.terms else set()
    return {form for child in ir.children(node) for form in _forms(child)}


def _over(node: ir.Expression, names: Mapping[_Form, str]) -> ir.Expression:
    """An expression with loops' indices in the place of forms."""
    affine = _affine(node)
    if affine is not None and affine.terms:
        return _expression_of(Affine.of(names[affine.terms]) + affine.constant, node.line)
    return _mapped(node, lambda child: _over(child, names))


def _expression_of(affine: Affine, line: int) -> ir.Expression:
    found: ir.Expression | None = None
    for name, factor in affine.terms:
        term: ir.Expression = ir.LoopIndex(name, line=line)
        if factor != 1:
            term = ir.Binary("*", ir.Constant(factor, line=line), term, line=line)
        found = term if found is None else ir.Binary("+", found, term, line=line)
    constant = ir.Constant(affine.constant, line=line)
    if found is None:
        return constant
    return ir.Binary("+", found, constant, line=line) if affine.constant else found


def _element(array: str, places: Sequence[ir.Expression], least: Sequence[int], affine: Sequence[Affine]) -> ir.Access:
    """The element of a table for values of its indices."""
    subscripts = tuple(
        ir.Binary("-", place, ir.Constant(low, line=place.line), line=place.line) if low else place
        for place, low in zip(places, least, strict=True)
    )
    indices = tuple(place - low for place, low in zip(affine, least, strict=True))
    return ir.Access(array, subscripts, indices, f"{array}[…]", line=places[0].line)


def _mapped(node: ir.Expression, change: Callable[..., ir.Expression], are_given: bool = False) -> ir.Expression:
    """An expression with other children. change: what each becomes; are_given: change gives them in their order."""

    def one(child: ir.Expression) -> ir.Expression:
        return change() if are_given else change(child)

    match node:
        case ir.Unary(operand=operand):
            return replace(node, operand=one(operand))
        case ir.Binary(left=left, right=right) | ir.Comparison(left=left, right=right):
            return replace(node, left=one(left), right=one(right))
        case ir.Boolean(operands=operands):
            return replace(node, operands=tuple(map(one, operands)))
        case ir.Conditional(test=test, then=then, otherwise=otherwise):
            return replace(node, test=one(test), then=one(then), otherwise=one(otherwise))
        case ir.Call(arguments=arguments):
            return replace(node, arguments=tuple(map(one, arguments)))
        case ir.Access(subscripts=subscripts):
            return replace(node, subscripts=tuple(map(one, subscripts)))
    return node
