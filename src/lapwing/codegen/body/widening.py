"""Loop bodies in which all values have one size, although arrays have elements of several: for the lanes of vectors
(``codegen.lanes.vectors``), and for compilers, which make no masks of one size from comparisons of another.

    h: int32, way: int8                        h: int32, way: int8 in lanes of int32
        h = max(0, h[i-1, j-1] + s, ...)   →       h = ...
        way[i, j] = int8(a + way[i, j-1])          way[i, j] = wrapped(a + way[i, j-1])

The size of lanes is given. A value of a narrower type is kept as the number that it is, in the lanes' type of its kind: what may
have wrapped in its own type is wrapped there explicitly (the low bits, extended by their sign: Warren, "Hacker's Delight",
section 2-5), unless an interval of what it may be says that it fits (Moore 1966). Floats of four bytes are in lanes of eight what
they are in memory, and rounded when vectors are stored; a body that computes with four bytes and with eight is left alone,
because compilers would round in vectors of half the length.

Of an integer that is wider than lanes either all of its values fit them, or only its low bits are wanted, as of what is converted
to a narrower type: those of sums, differences, products and bitwise operations are made of the low bits of operands. Everything
else stays as it is, and is no body for vectors then (``codegen.lanes.vector_bodies``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.promotion import dtype_range, holds_exactly
from lapwing.tiling.invariants import is_invariant
from lapwing.tiling.transposed import ITEMSIZES

WIDE = {2: "int16", 4: "int32", 8: "int64"}  # integers in lanes of so many bytes
_FLOATS = {4: "float32", 8: "float64"}
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_BITWISE = frozenset(("&", "|", "^"))
_MODULAR = _BITWISE | {"+", "-", "*", "unary -", "unary ~"}  # whose low bits are made of the low bits of operands
_WRAPPING = frozenset(("+", "-", "*", "unary -", "unary ~", "abs", "numpy.absolute", "numpy.square"))
_CHOOSING = frozenset(
    ("min", "max", "numpy.maximum", "numpy.minimum", "numpy.fmax", "numpy.fmin", "numpy.clip", "numpy.where")
)
_INTEGER = _WRAPPING | _BITWISE | _CHOOSING | {"numpy.sign"}
_EXACT_FLOAT = frozenset(("unary -", "abs", "numpy.fabs", "numpy.absolute", "min", "max", "numpy.where")) | {
    f"numpy.{name}" for name in ("floor", "ceil", "trunc", "rint", "copysign")
}

Interval = tuple[int, int]


def of_one_size(body: t.TypedBody, size: int) -> t.TypedBody:
    """A straight body in which all values have ``size`` bytes, as far as that can be: stores to arrays of narrower elements are
    given numbers that those hold, in the lanes' type. Other bodies are returned as they are."""
    return _Lanes(size).body(body) if size in WIDE and body.is_straight else body


def in_rows(body: t.TypedBody) -> t.TypedBody:
    """A straight body that chooses between values of several sizes with all of the largest size; others as they are."""
    kinds = t.TypedStore | t.TypedLocal | t.TypedAccumulate
    if not body.is_straight or not all(isinstance(s, kinds) for s in body.statements):
        return body
    nodes = [node for s in body.statements for value in t.own_values(s) for node in t.walk(value)]
    targets = [s.target for s in body.statements if isinstance(s, t.TypedStore)]
    elements = {ITEMSIZES.get(node.dtype, 0) for node in (*nodes, *targets) if isinstance(node, t.Load)}
    reduced = [s for s in body.statements if isinstance(s, t.TypedAccumulate)]
    size = max({*elements, *(ITEMSIZES[n.dtype] for n in nodes if n.dtype in _FLOATS.values())}, default=0)
    if len(elements) < 2 or 0 in elements or size not in _FLOATS or not any(isinstance(n, t.Select) for n in nodes):
        return body
    if any(node.dtype.startswith("complex") for node in nodes):  # which are as large as integers are
        return body
    if any(s.position or s.payload or s.value.dtype not in (WIDE[size], _FLOATS[size]) for s in reduced):
        return body
    found = _Rows(size).body(body).statements
    statements = tuple(_with_type_of_element(s) for s in found)
    if not all(_has_one_size(s.value, size) for s in found if isinstance(s, kinds)):
        return body
    return replace(body, statements=statements)


def _has_one_size(node: t.Typed, size: int) -> bool:
    """Whether nothing but elements that are widened has another size."""
    is_element = isinstance(node, t.Convert | t.Operation) and all(isinstance(o, t.Load) for o in t.children(node))
    if is_invariant(node) or is_element:
        return node.dtype in ("bool", WIDE[size], _FLOATS[size])
    return node.dtype in ("bool", WIDE[size], _FLOATS[size]) and (
        isinstance(node, t.Load) or all(_has_one_size(child, size) for child in t.children(node))
    )


def is_of_indices(node: t.Typed) -> bool:
    """Whether an integer is known from where the iteration is: indices are wide in every loop, and compared or made narrow."""
    if not node.dtype.startswith("int"):
        return False
    match node:
        case _ if is_invariant(node):
            return not any(map(t.may_raise, t.walk(node)))
        case t.Index() | t.AffineValue():
            return True
        case t.Operation(operator="+" | "-" | "*" | "unary -", operands=operands, trap=None):
            return all(map(is_of_indices, operands))
    return False


class _Other(Exception):
    """There is something for which lanes have no values."""


class _Lanes:
    def __init__(self, size: int) -> None:
        self._size, self._integer, self._float = size, WIDE[size], _FLOATS.get(size)
        self._locals: dict[t.Typed, t.Local] = {}  # those that hold variables of other types, or their low bits
        self._stored: dict[t.Typed, t.Local] = {}  # those that hold what elements were given
        self._count = 0
        self._intervals: dict[t.Typed, Interval] = {}

    def body(self, body: t.TypedBody) -> t.TypedBody:
        found: list[t.TypedStatement] = []
        loaded = [
            {n for value in t.own_values(s) for n in t.walk(value) if isinstance(n, t.Load)}
            if not isinstance(s, t.TypedStore)
            else {n for n in t.walk(s.value) if isinstance(n, t.Load)}
            for s in body.statements
        ]
        for number, given in enumerate(body.statements):
            statement = _with_type_of_element(given)
            later = set[t.Load]().union(*loaded[number + 1 :])
            try:
                found += list(self._statement(statement, later))  # all or nothing
            except _Other:
                found.append(statement)
        return replace(body, statements=tuple(_needed(found, body)))

    def _statement(self, statement: t.TypedStatement, later: set[t.Load]) -> Iterator[t.TypedStatement]:
        match statement:
            case t.TypedStore(target=target, value=value):
                self._stored.pop(target, None)
                stored = self._rounded_when_stored(value, target in later) or self._value(value)
                if target in later and self._is_narrow(target.dtype):
                    # Elements hold no more than their type, and vectors are of the lanes'.
                    self._count += 1
                    local = t.Local(stored.dtype, f"{target.array} stored", self._count)
                    self._intervals[local] = self._interval(value)
                    yield t.TypedLocal(statement.line, statement.text, local, stored)
                    stored = self._stored[target] = local
                yield replace(statement, value=stored)
            case t.TypedLocal(local=local, value=value):
                yield from self._local(statement, local, value)
            case t.TypedAccumulate(value=value, payload=payload):
                kept = ((name, its if isinstance(its, t.Index) else self._value(its)) for name, its in payload)
                yield replace(statement, value=self._value(value), payload=tuple(kept))
            case _:
                yield t.with_values(statement, self._value)

    def _rounded_when_stored(self, value: t.Typed, is_read: bool) -> t.Typed | None:
        """Of what is rounded to a float of four bytes in lanes of eight, that before, where nothing in the iteration reads it."""
        match value:
            case t.Convert("float32", t.Typed(dtype="float64") as operand, None) if self._size == 8 and not is_read:
                return self._value(operand)
        return None

    def _local(self, statement: t.TypedLocal, local: t.Local, value: t.Typed) -> Iterator[t.TypedStatement]:
        """A variable; of one that has another type also that, for whoever has no other."""
        if local.dtype.startswith(("int", "uint")):
            self._intervals[local] = self._interval(value)
        if local.dtype == "bool" or local.dtype == self._of_kind(local.dtype):
            yield replace(statement, value=self._value(value))
            return
        yield statement
        is_wider = ITEMSIZES.get(local.dtype, 0) > self._size
        own = self._low(value) if is_wider else self._value(value)
        self._locals[local] = replace(local, dtype=own.dtype, name=f"{local.name} in lanes")
        yield replace(statement, local=self._locals[local], value=own)

    # -- types -----------------------------------------------------------------------------------------------------------

    def _of_kind(self, dtype: str) -> str | None:
        """The lanes' type for numbers of a type; None where there is none."""
        if dtype.startswith("float"):
            return self._float
        return self._integer if dtype.startswith(("int", "uint")) else None

    def _lane_type(self, dtype: str) -> str:
        found = self._of_kind(dtype)
        if found is None or not holds_exactly(found, dtype):
            raise _Other
        return found

    def _is_narrow(self, dtype: str) -> bool:
        return 0 < ITEMSIZES.get(dtype, 0) < self._size

    # -- values ----------------------------------------------------------------------------------------------------------

    def _value(self, node: t.Typed) -> t.Typed:
        """The number in the lanes' type; a truth value as it is."""
        if node in self._stored:
            return self._stored[node]
        if is_invariant(node):
            return self._of_arguments(node)
        match node:
            case t.Load(dtype=dtype):
                # Indices of lookups are wide.
                element = t.mapped(node, self._value) if self._size == 8 else node
                return (
                    element if dtype in ("bool", self._of_kind(dtype)) else t.Convert(self._lane_type(dtype), element)
                )
            case t.Local(dtype=dtype) if dtype in ("bool", self._of_kind(dtype)):
                return node
            case t.Local(dtype=dtype) if self._is_narrow(dtype) and node in self._locals:
                return self._locals[node]
            case t.Index(dtype=dtype) | t.AffineValue(dtype=dtype) if dtype == self._integer:
                return node
            case t.Convert(trap=None):
                return self._converted(node)
            case t.Operation():
                return self._computed(node)
            case t.Select(dtype=dtype, test=test, then=then, otherwise=otherwise):
                lane_type = dtype if dtype == "bool" else self._lane_type(dtype)
                arms = self._value(then), self._value(otherwise)
                return replace(node, dtype=lane_type, test=self._value(test), then=arms[0], otherwise=arms[1])
        raise _Other

    def _of_arguments(self, node: t.Typed) -> t.Typed:
        if node.dtype in ("bool", self._of_kind(node.dtype)):
            return node
        lane_type = self._lane_type(node.dtype)
        return replace(node, dtype=lane_type) if isinstance(node, t.Literal) else t.Convert(lane_type, node)

    def _operand(self, node: t.Typed) -> t.Typed:
        """The number in the lanes' type, although its own may be wider."""
        if ITEMSIZES.get(node.dtype, 0) <= self._size:
            return self._value(node)
        if not node.dtype.startswith("int") or not _is_inside(self._interval(node), dtype_range(self._integer)):
            raise _Other
        return self._low(node)

    def _converted(self, node: t.Convert) -> t.Typed:
        dtype, operand = node.dtype, node.operand
        source = operand.dtype
        if dtype == "bool":
            return replace(node, operand=self._operand(operand))
        lane_type = self._lane_type(dtype)
        if source == "bool":
            return t.Convert(lane_type, self._value(operand))
        if source.startswith("float"):
            if not dtype.startswith("float"):
                if dtype != lane_type:
                    raise _Other  # of what does not fit there is no value to rely on
                return t.Convert(dtype, self._value(operand))
            if ITEMSIZES[dtype] < ITEMSIZES[source]:
                raise _Other
            return self._value(operand)
        if dtype.startswith("float"):
            number = self._operand(operand)
            if dtype != lane_type and ITEMSIZES[source] > 2:
                raise _Other  # which is rounded
            return t.Convert(lane_type, number)
        return self._wrapped(self._low(operand), dtype, self._interval(operand))

    def _computed(self, node: t.Operation) -> t.Typed:
        operator, operands, dtype = node.operator, node.operands, node.dtype
        if operator in COMPARISONS and (
            all(isinstance(o, t.Load) and o not in self._stored for o in operands) or all(map(is_of_indices, operands))
        ):
            return node
        computing = operands[0].dtype
        values = tuple(map(self._operand, operands))
        if dtype == "bool" or (dtype == self._of_kind(dtype) and computing == dtype):
            return replace(node, operands=values)
        lane_type = self._lane_type(dtype)
        found = replace(node, dtype=lane_type, operands=values)
        if dtype.startswith("float"):
            if not computing.startswith("float") and operator == "/" and dtype == lane_type:
                return found
            if operator in _EXACT_FLOAT and computing == dtype:
                return found
        elif operator in _INTEGER and node.trap is None:
            interval = self._interval_of_operation(node) if operator in _WRAPPING else dtype_range(dtype)
            return self._wrapped(found, dtype, interval)
        raise _Other

    def _wrapped(self, node: t.Typed, dtype: str, interval: Interval | None) -> t.Typed:
        """What a type makes of an integer, given its low bits in the lanes' type."""
        if dtype == self._integer or (interval is not None and _is_inside(interval, dtype_range(dtype))):
            return node

        def number(value: int) -> t.Literal:
            return t.Literal(self._integer, value)

        bits = 8 * ITEMSIZES[dtype]
        low = t.Operation(self._integer, "&", (node, number(2**bits - 1)))
        if dtype.startswith("uint"):
            return low
        sign = number(2 ** (bits - 1))
        return t.Operation(self._integer, "-", (t.Operation(self._integer, "^", (low, sign)), sign))

    def _low(self, node: t.Typed) -> t.Typed:
        """The low bits of an integer, as one of the lanes' type."""
        if not node.dtype.startswith(("int", "uint")):
            raise _Other
        if ITEMSIZES[node.dtype] <= self._size:
            return self._value(node)
        match node:
            case t.Literal(value=int(value)):
                least, _ = dtype_range(self._integer)
                return t.Literal(self._integer, (value - least) % 2 ** (8 * self._size) + least)
            case _ if is_of_indices(node) or is_invariant(node):
                return t.Convert(self._integer, node)
            case t.Local() if node in self._locals:
                return self._locals[node]
            case t.Convert(operand=t.Typed(dtype="bool") as operand, trap=None):
                return t.Convert(self._integer, self._value(operand))
            case t.Convert(operand=operand, trap=None):
                return self._low(operand)
            case t.Operation(operator=operator, operands=operands, trap=None) if operator in _MODULAR:
                return replace(node, dtype=self._integer, operands=tuple(map(self._low, operands)))
            case t.Operation(operator=operator, operands=operands, trap=None) if operator in _CHOOSING:
                return replace(node, dtype=self._integer, operands=tuple(map(self._operand, operands)))
            case t.Select(test=test, then=then, otherwise=otherwise):
                arms = self._low(then), self._low(otherwise)
                return replace(node, dtype=self._integer, test=self._value(test), then=arms[0], otherwise=arms[1])
        raise _Other

    # -- intervals -------------------------------------------------------------------------------------------------------

    def _interval(self, node: t.Typed) -> Interval:
        """What an integer may be: that of its type, where no more is known."""
        whole = (0, 1) if node.dtype == "bool" else dtype_range(node.dtype) if "int" in node.dtype else (0, 0)
        found: Interval | None = None
        match node:
            case t.Literal(value=int(value)):
                found = (value, value)
            case t.Local():
                found = self._intervals.get(node)
            case t.Convert(operand=t.Typed(dtype=source) as operand, trap=None) if source == "bool" or "int" in source:
                found = self._interval(operand)
            case t.Select(then=then, otherwise=otherwise):
                one, other = self._interval(then), self._interval(otherwise)
                found = min(one[0], other[0]), max(one[1], other[1])
            case t.Operation(operands=(first, *_)) if "int" in node.dtype and "int" in first.dtype:
                found = self._interval_of_operation(node)
        return found if found is not None and _is_inside(found, whole) else whole

    def _interval_of_operation(self, node: t.Operation) -> Interval | None:
        """What the exact result of an operation may be."""
        intervals = [self._interval(operand) for operand in node.operands]
        lows, highs = zip(*intervals, strict=True)
        match node.operator:
            case "+":
                return sum(lows), sum(highs)
            case "-":
                return lows[0] - highs[1], highs[0] - lows[1]
            case "*":
                ends = [a * b for a in intervals[0] for b in intervals[1]]
                return min(ends), max(ends)
            case "unary -":
                return -highs[0], -lows[0]
            case "max" | "numpy.maximum" | "numpy.fmax":
                return max(lows), max(highs)
            case "min" | "numpy.minimum" | "numpy.fmin":
                return min(lows), min(highs)
            case "&" if min(lows) >= 0:
                return 0, min(highs)
        return None


class _Rows(_Lanes):
    """The same of elements where they lie, which are widened one by one."""

    def _value(self, node: t.Typed) -> t.Typed:
        if not isinstance(node, t.Load) or node in self._stored or node.dtype.startswith("float"):
            return super()._value(node)
        if node.dtype == self._integer:
            return super()._value(node)
        wide = t.Operation(self._integer, "widened", (node,))
        return t.Operation("bool", "!=", (wide, t.Literal(self._integer, 0))) if node.dtype == "bool" else wide

    def _computed(self, node: t.Operation) -> t.Typed:
        if node.operator in COMPARISONS and all(isinstance(o, t.Load) for o in node.operands):
            return replace(node, operands=tuple(map(self._operand, node.operands)))
        return super()._computed(node)


def _with_type_of_element(statement: t.TypedStatement) -> t.TypedStatement:
    """The statement; what it stores has the type of the element."""
    if isinstance(statement, t.TypedStore) and statement.value.dtype != statement.target.dtype:
        return replace(statement, value=t.Convert(statement.target.dtype, statement.value))
    return statement


def _is_inside(interval: Interval, other: Interval) -> bool:
    return other[0] <= interval[0] and interval[1] <= other[1]


def _needed(statements: list[t.TypedStatement], given: t.TypedBody) -> list[t.TypedStatement]:
    """Statements without variables that nobody uses any more."""
    before = {s.local for s in given.statements if isinstance(s, t.TypedLocal) and not _uses(given.statements, s.local)}
    kept: list[t.TypedStatement] = []
    used: set[t.Typed] = set()
    for statement in reversed(statements):
        if isinstance(statement, t.TypedLocal) and statement.local not in used and statement.local not in before:
            continue
        kept.append(statement)
        used |= set(_locals_in(statement))
    return kept[::-1]


def _uses(statements: tuple[t.TypedStatement, ...], local: t.Local) -> bool:
    return any(local in _locals_in(statement) for statement in statements)


def _locals_in(statement: t.TypedStatement) -> Iterator[t.Typed]:
    values = (value for inner in t.all_statements((statement,)) for value in t.own_values(inner))
    return (node for value in values for node in t.walk(value) if isinstance(node, t.Local))
