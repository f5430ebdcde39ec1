"""Chains of operations from one iteration of a loop to the next: how long they are, and how to make them shorter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.promotion import PARTS, is_inexact

# Cycles from an operand to the result, about alike on all cores of the last ten years.
_FLOAT_CYCLES = {"+": 4, "-": 4, "*": 4, "/": 14, "sqrt": 18, "min": 4, "max": 4, "abs": 1, "//": 40, "%": 40}
# The longer of the two parts; quotients by Smith's algorithm.
_COMPLEX_CYCLES = {
    "*": 8, "scaled": 8, "power of 2": 8, "power of 3": 16, "python power": 24, "/": 50, "python /": 50, "modulus": 40,
    "real": 0, "imag": 0, "conjugate": 1,
}  # fmt: skip
_INTEGER_CYCLES = {"*": 3, "wrap": 2, "min": 2, "max": 2, "abs": 2, "/": 18, "//": 20, "%": 20}
_CALL_CYCLES = 40  # of the math library, powers too
_CONVERSION_CYCLES, _SELECT_CYCLES = 5, 2
_NOT_CHAINED = -(10**6)


def chain_cycles(body: t.TypedBody, loop: str, step: int) -> int:
    """About how many cycles a point waits for the one before it along a loop: the longest chain of operations from an
    element that one wrote to the element that the next will read. step: that of the loop, 1 or -1."""
    chain, longest = _Chain(body, loop, step), 0
    for statement in body.simple:
        longest = max(longest, chain.note(statement))
    return longest


def handed_on_cycles(statements: Sequence[t.TypedStatement], carried: Collection[t.Local], loop: str) -> int:
    """The same in straight statements of a loop that counts up, which also hands on variables."""
    body = t.TypedBody(tuple(statements), (), ())
    chain, longest = _Chain(body, loop, 1), 0
    chain.begin_with(carried)
    for statement in body.simple:
        longest = max(longest, chain.note(statement))
    return max([longest, *map(chain.cycles, carried)])


def shortened(body: t.TypedBody, loop: str, step: int) -> t.TypedBody:
    """The body with the operands of integer minima and maxima in another order (tree height reduction): those that wait
    for the point before come last, so that the next point waits for as few operations as can be.

    Of integers the least is the same in any order; of floats, where a NaN or a zero with a sign takes part, it is not.
    """
    if not body.is_straight:
        return body
    chain, statements = _Chain(body, loop, step), []
    for statement in body.simple:
        statement = replace(statement, value=_reordered(statement.value, chain))
        chain.note(statement)
        statements.append(statement)
    return replace(body, statements=tuple(statements))


def waits_for_integers(body: t.TypedBody, loop: str, step: int) -> bool:
    """Whether what iterations of a loop read that earlier ones wrote are integers of the one before, of four bytes or eight."""
    targets = [s.target for s in body.simple if isinstance(s, t.TypedStore)]
    loads = (load for s in body.simple for load in t.loads(s))
    behind = ((load, distance_behind(load, target, loop) * step) for load in loads for target in targets)
    carried = [(load, distance) for load, distance in behind if distance > 0]
    return bool(carried) and all(load.dtype in ("int32", "int64") and distance == 1 for load, distance in carried)


class _Chain:
    """How many cycles after the point before it a value is there, statement by statement."""

    def __init__(self, body: t.TypedBody, loop: str, step: int) -> None:
        self._loop, self._step = loop, step
        self._stores = [s.target for s in body.simple if isinstance(s, t.TypedStore)]
        self._known: dict[t.Typed, int] = {}  # of temporaries and elements set so far

    def begin_with(self, carried: Collection[t.Local]) -> None:
        """Variables have what the iteration before left in them."""
        self._known |= dict.fromkeys(carried, 0)

    def note(self, statement: t.SimpleStatement) -> int:
        """The cycles of the element a statement sets, 0 for others; from here on its value is known."""
        cycles = self.cycles(statement.value)
        match statement:
            case t.TypedStore(target=target):
                self._known[target] = cycles
                return cycles
            case t.TypedLocal(local=local):
                self._known[local] = cycles
            case t.TypedAssign(local=local):  # one of several, under conditions
                self._known[local] = max(cycles, self._known.get(local, _NOT_CHAINED))
        return 0

    def cycles(self, node: t.Typed) -> int:
        """Negative where the value does not depend on the point before."""
        if node in self._known:
            return self._known[node]
        if isinstance(node, t.Load):
            behind = (distance_behind(node, target, self._loop) * self._step for target in self._stores)
            return 0 if any(distance > 0 for distance in behind) else _NOT_CHAINED
        deepest = max(map(self.cycles, t.children(node)), default=_NOT_CHAINED)
        return deepest + latency_cycles(node) if deepest >= 0 else _NOT_CHAINED


def _reordered(node: t.Typed, chain: _Chain) -> t.Typed:
    match node:
        case t.Operation(operator="min" | "max", dtype=dtype, operands=operands) if "int" in dtype:
            leaves = [leaf for operand in operands for leaf in _leaves(operand, node)]
            first, *others = sorted((_reordered(leaf, chain) for leaf in leaves), key=chain.cycles)
            return _folded(node, first, others)
        case t.Operation(operands=operands):
            return replace(node, operands=tuple(_reordered(o, chain) for o in operands))
        case t.Convert(operand=operand):
            return replace(node, operand=_reordered(operand, chain))
        case t.Select(test=test, then=then, otherwise=otherwise):
            test, then, otherwise = (_reordered(part, chain) for part in (test, then, otherwise))
            return replace(node, test=test, then=then, otherwise=otherwise)
    return node


def _leaves(node: t.Typed, of: t.Operation) -> list[t.Typed]:
    """The operands of a tree of one operator in one type."""
    if isinstance(node, t.Operation) and (node.operator, node.dtype) == (of.operator, of.dtype):
        return [leaf for operand in node.operands for leaf in _leaves(operand, of)]
    return [node]


def _folded(of: t.Operation, first: t.Typed, others: Sequence[t.Typed]) -> t.Typed:
    for other in others:
        first = replace(of, operands=(first, other))
    return first


def distance_behind(load: t.Load, target: t.Load, loop: str) -> int:
    """How far along a loop an element lies behind the one that is written; 0 where it differs in other ways."""
    if load.array != target.array:
        return 0
    found = 0
    for read, written in zip(load.subscripts, target.subscripts, strict=True):
        if not (isinstance(read, t.AffineSubscript) and isinstance(written, t.AffineSubscript)):
            return 0
        apart = written.affine - read.affine
        if apart.terms or (apart.constant and loop not in written.affine.names):
            return 0
        found += apart.constant
    return found


def latency_cycles(node: t.Typed) -> int:
    """From its operands to its result, of an operation alone."""
    match node:
        case t.Convert(operand=operand):
            mixed = is_inexact(operand.dtype) != is_inexact(node.dtype)
            return _CONVERSION_CYCLES if mixed else 0
        case t.Select():
            return _SELECT_CYCLES
        case t.Operation(operator=operator, operands=operands):
            if powers.is_power(node) and powers.exponent(node) in powers.QUICK:
                return 3 * _FLOAT_CYCLES["*"]
            if t.is_numpy_loop(node):
                return 2 * _CALL_CYCLES
            if operator.startswith("math.") or operator == "**":
                return _CALL_CYCLES
            if operands[0].dtype in PARTS:
                return _COMPLEX_CYCLES.get(operator, _FLOAT_CYCLES["+"])
            if operands[0].dtype.startswith("float"):
                return _FLOAT_CYCLES.get(operator, _SELECT_CYCLES)
            return _INTEGER_CYCLES.get(operator, 1)
    return 0
