"""Loop bodies that compute with 16-bit integers where ranges prove that no value is larger (interval analysis), although arrays
hold larger ones: vectors have two or four times as many lanes then.

    h[i, j] = max(0, h[i-1, j-1] + (2 if a[i] == b[j] else -1), h[i-1, j] - 1, h[i, j-1] - 1)

Every operation of such a body is exact in both types, so that results are the same. How large values get is found when the tile
runs, by evaluating the body on ranges (``codegen/ranges.h``), with the scalars of the call and from the elements that rows begin
with. That takes sums of which one term alone comes from other iterations, minima, maxima and choices: what is computed of them
grows by no more from row to row than what it is computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from lapwing.codegen.body.expression import Printer
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.invariants import is_invariant

NARROW = "int16"
WIDER = ("int32", "int64")  # what is narrowed
_SMALLER = {"int8": (-128, 127), "uint8": (0, 255), "bool": (0, 1)}
_SUMS = ("+", "-", "unary -")
_EXTREMA = {"max": "max", "min": "min", "numpy.maximum": "max", "numpy.minimum": "min"}
_ABSOLUTES = ("abs", "numpy.absolute")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_TESTS = ("&&", "||", "not", "&", "|", "^", "==", "!=")


class _Wide(Exception):
    """There is something that may be large, or that is no integer."""


def narrowed(body: t.TypedBody, placed: Collection[t.Load]) -> t.TypedBody | None:
    """The body with 16-bit integers, None where it cannot be had. placed: the elements that are kept in buffers, of which those
    that are wider become narrow ones."""
    try:
        return _Narrowing(body, placed).body()
    except _Wide:
        return None


class _Narrowing:
    def __init__(self, body: t.TypedBody, placed: Collection[t.Load]) -> None:
        self._given, self._placed = body, placed
        self._stored = {s.target.array for s in body.simple if isinstance(s, t.TypedStore)}
        self._carried: set[t.Local] = set()  # those that come from other iterations

    def body(self) -> t.TypedBody:
        if not self._given.is_straight:
            raise _Wide
        statements = tuple(map(self._statement, self._given.simple))
        accumulators = tuple(map(self._accumulator, self._given.accumulators))
        return replace(self._given, statements=statements, accumulators=accumulators, traps=())

    @staticmethod
    def _accumulator(accumulator: t.Accumulator) -> t.Accumulator:
        if accumulator.operator not in ("max", "min") or accumulator.dtype not in WIDER:
            raise _Wide
        return replace(accumulator, dtype=NARROW)

    def _statement(self, statement: t.SimpleStatement) -> t.TypedStatement:
        match statement:
            case t.TypedStore(target=target, value=value):
                if target not in self._placed or target.dtype not in WIDER:
                    raise _Wide
                return replace(statement, target=replace(target, dtype=NARROW), value=self._value(value))
            case t.TypedLocal(local=local, value=value):
                if local.dtype == "bool":
                    return replace(statement, value=self._test(value))
                if self._is_carried(value):
                    self._carried.add(local)
                return replace(statement, local=self._local(local), value=self._value(value))
            case t.TypedAccumulate(value=value, position=()):
                return replace(statement, value=self._value(value))
        raise _Wide

    @staticmethod
    def _local(local: t.Local) -> t.Local:
        if local.dtype not in WIDER:
            raise _Wide
        return replace(local, dtype=NARROW)

    def _value(self, node: t.Typed) -> t.Typed:
        """The integer in 16 bits."""
        if is_invariant(node) and node.dtype != "bool":
            return _of_arguments(node)
        if node.dtype == "bool":
            return t.Convert(NARROW, self._test(node))
        match node:
            case t.Load(dtype=dtype) if dtype in _SMALLER and _is_affine(node):
                return t.Convert(NARROW, node)
            case t.Load() if is_table(node) and node.array not in self._stored:
                indices = (s for s in node.subscripts if isinstance(s, t.LookupSubscript))
                inside = tuple(replace(s, trap=None, counts_from_end=False) for s in indices)
                return t.Convert(NARROW, replace(node, subscripts=inside))
            case t.Load(dtype=dtype) if node in self._placed and dtype in WIDER and node.array in self._stored:
                return replace(node, dtype=NARROW)
            case t.Local():
                return self._local(node)
            case t.Convert(dtype=dtype, operand=operand) if dtype in WIDER:
                # What fits 16 bits fits, so that nothing raises.
                return self._value(operand)
            case t.Operation(operator=operator, operands=operands, dtype=dtype, trap=None) if dtype in WIDER:
                known = operator in (*_SUMS, *_EXTREMA, *_ABSOLUTES)
                if known and (operator not in _SUMS or sum(map(self._is_carried, operands)) <= 1):
                    return replace(node, dtype=NARROW, operands=tuple(map(self._value, operands)))
            case t.Select(dtype=dtype, test=test, then=then, otherwise=otherwise) if dtype in WIDER:
                arms = self._value(then), self._value(otherwise)
                return replace(node, dtype=NARROW, test=self._test(test), then=arms[0], otherwise=arms[1])
        raise _Wide

    def _test(self, node: t.Typed) -> t.Typed:
        """The truth value of narrow integers."""
        if is_invariant(node) and not any(map(t.may_raise, t.walk(node))):
            return node
        match node:
            case t.Local(dtype="bool"):
                return node
            case t.Load(dtype="bool") if _is_affine(node):
                return node
            case t.Operation(operator=operator, operands=operands) if operator in COMPARISONS:
                compared = tuple(map(_unconverted, operands))
                if all(map(self._is_letter, compared)):
                    return replace(node, operands=compared)
                if all(o.dtype != "bool" for o in operands):
                    return replace(node, operands=tuple(map(self._value, operands)))
                if operator in _TESTS and all(o.dtype == "bool" for o in operands):
                    return replace(node, operands=tuple(map(self._test, operands)))
            case t.Operation(operator="truth", operands=(operand,)) if operand.dtype in WIDER:
                return replace(node, operands=(self._value(operand),))
            case t.Operation(operator=operator, operands=operands) if operator in _TESTS:
                if all(o.dtype == "bool" for o in operands):
                    return replace(node, operands=tuple(map(self._test, operands)))
            case t.Select(dtype="bool", test=test, then=then, otherwise=otherwise):
                return replace(node, test=self._test(test), then=self._test(then), otherwise=self._test(otherwise))
        raise _Wide

    def _is_letter(self, node: t.Typed) -> bool:
        """Whether it is an element that is compared and nothing else, which vectors narrow where they can."""
        is_integer = node.dtype in (*WIDER, "int8", "uint8")
        return isinstance(node, t.Load) and node not in self._placed and is_integer and _is_affine(node)

    def _is_carried(self, node: t.Typed) -> bool:
        """Whether the value comes from other iterations."""
        match node:
            case t.Select(then=then, otherwise=otherwise):
                return self._is_carried(then) or self._is_carried(otherwise)
            case t.Local():
                return node in self._carried
            case t.Load():
                return node.array in self._stored
        return node.dtype != "bool" and any(map(self._is_carried, t.children(node)))


def _of_arguments(node: t.Typed) -> t.Typed:
    if node.dtype not in (*WIDER, "int16", "int8", "uint8") or any(map(t.may_raise, t.walk(node))):
        raise _Wide
    if isinstance(node, t.Literal):
        assert isinstance(node.value, int)
        if not -(2**15) < node.value < 2**15:
            raise _Wide
        return replace(node, dtype=NARROW, value=int(node.value))
    return t.Convert(NARROW, node)


def is_table(load: t.Load) -> bool:
    """Whether it is an element of a table of integers that two others are the indices of. Where these are inside is tested before
    narrow integers are computed with."""
    is_integer = load.dtype in (*WIDER, "int16", "int8", "uint8")
    return is_integer and len(load.subscripts) == 2 and all(map(_is_indexed, load.subscripts))


def _is_indexed(subscript: t.AffineSubscript | t.LookupSubscript) -> bool:
    return (
        isinstance(subscript, t.LookupSubscript) and (letter := letter_of(subscript)) is not None and _is_affine(letter)
    )


def letter_of(subscript: t.LookupSubscript) -> t.Load | None:
    """The element that is an index."""
    index = subscript.index
    if isinstance(index, t.Convert) and index.trap is None and index.dtype in WIDER:
        index = index.operand
    is_integer = index.dtype in (*WIDER, "int16", "int8", "uint8")
    return index if isinstance(index, t.Load) and is_integer and len(index.subscripts) == 1 else None


def _is_affine(load: t.Load) -> bool:
    return all(isinstance(s, t.AffineSubscript) for s in load.subscripts)


def _unconverted(node: t.Typed) -> t.Typed:
    """The integer that was converted, which has the same value."""
    if isinstance(node, t.Convert) and node.trap is None and node.dtype in WIDER:
        return node.operand if isinstance(node.operand, t.Load) else node
    return node


class RangePrinter:
    """Prints a narrowed body as one on ranges.

    ranges: of every element the C text of its range, and of tables that of theirs; now: of an array that of what is stored to it.
    """

    def __init__(self, printer: Printer, ranges: Mapping[t.Load, str], now: Callable[[str], str]) -> None:
        self._printer, self._ranges, self._now = printer, ranges, now

    def statements(self, body: t.TypedBody) -> Iterator[str]:
        for statement in body.simple:
            yield from self._compared(statement)
            match statement:
                case t.TypedStore(target=target, value=value):
                    yield f"{self._now(target.array)} = {self._range(value)};"
                case t.TypedLocal(local=local, value=value) if local.dtype != "bool":
                    yield f"const lw_range {self._printer.name(local)} = {self._range(value)};"
                case t.TypedAccumulate(value=value) if not isinstance(value, t.Load):
                    yield f"(void){self._range(value)};"

    def _compared(self, statement: t.TypedStatement) -> Iterator[str]:
        """What is computed to be compared alone."""
        nodes = (node for value in t.own_values(statement) for node in t.walk(value))
        tests = (node for node in nodes if isinstance(node, t.Operation) and node.operator in (*COMPARISONS, "truth"))
        for operand in dict.fromkeys(operand for test in tests for operand in test.operands):
            if operand.dtype == NARROW and not isinstance(operand, t.Literal | t.Local | t.Load):
                yield f"(void){self._range(operand)};"

    def _range(self, node: t.Typed) -> str:
        match node:
            case t.Literal(value=value):
                return f"lw_range_of({value}, all)"
            case t.Load():
                return self._ranges[node]
            case t.Local():
                return self._printer.name(node)
            case t.Convert(operand=t.Load() as table) if table in self._ranges:
                name = self._ranges[table]
                return f"lw_range_between({name}.low, {name}.high, all)"
            case t.Convert(operand=operand) if operand.dtype in _SMALLER and not is_invariant(operand):
                low, high = _SMALLER[operand.dtype]
                return f"lw_range_between({low}, {high}, all)"
            case t.Convert(operand=operand):
                return f"lw_range_of({self._printer.print(operand)}, all)"
            case t.Select(then=then, otherwise=otherwise):
                return f"lw_range_join({self._range(then)}, {self._range(otherwise)})"
            case t.Operation(operator=operator, operands=operands):
                ranges = ", ".join(map(self._range, operands))
                if operator in _EXTREMA:
                    return f"lw_range_{_EXTREMA[operator]}({ranges})"
                name = {"+": "plus", "-": "minus", "unary -": "negative"}.get(operator, "abs")
                return f"lw_range_{name}({ranges}, all)"
        raise AssertionError(node)
