"""32-bit integers of lanes that are 64 bits wide held as 64-bit ones: an argument that is handed on (``arg = k``) then goes from
iteration to iteration without being converted, and masks fit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.codegen.outer_loops.expressions import Lanes
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.promotion import holds_exactly

NARROW, WIDE = "int32", "int64"


def widened(statements: Sequence[t.TypedStatement], lanes: Lanes) -> tuple[t.TypedStatement, ...]:
    """Statements of which locals that vary hold the same integers in 64 bits."""
    return _Widening(statements, lanes).rewritten(statements)


class _Widening:
    def __init__(self, statements: Sequence[t.TypedStatement], lanes: Lanes) -> None:
        self._lanes = lanes
        given: dict[t.Local, list[t.Typed]] = {}
        for s in t.all_statements(statements):
            if isinstance(s, t.TypedLocal | t.TypedAssign | t.TypedVariable) and s.value is not None:
                given.setdefault(s.local, []).append(s.value)
        # 64-bit locals that only ever hold what fits 32 bits: the greatest fixed point.
        self._small = {local for local in given if local.dtype == WIDE}
        while large := {v for v in self._small if not all(map(self._is_small, given[v]))}:
            self._small -= large

    def _is_small(self, node: t.Typed) -> bool:
        """Whether a 64-bit integer is known to fit 32 bits."""
        match node:
            case t.Literal(value=int() as value):
                return -(2**31) <= value < 2**31
            case t.Local():
                return node in self._small
            case t.Convert(operand=operand):
                return holds_exactly(NARROW, operand.dtype)
            case t.Select(then=then, otherwise=otherwise):
                return self._is_small(then) and self._is_small(otherwise)
        return False

    def _is_held(self, node: t.Typed) -> bool:
        return isinstance(node, t.Local) and node.dtype == NARROW and node in self._lanes.varying

    @staticmethod
    def _wide(local: t.Local) -> t.Local:
        return replace(local, dtype=WIDE, name=f"{local.name} wide")

    def _in_64_bits(self, node: t.Typed) -> t.Typed:
        """A 32-bit integer with the same value."""
        match node:
            case t.Local() if self._is_held(node):
                return self._wide(node)
            case t.Literal():
                return replace(node, dtype=WIDE)
            case t.Select(test=test, then=then, otherwise=otherwise, speculable=speculable) if self._lanes.varies(node):
                arms = self._in_64_bits(then), self._in_64_bits(otherwise)
                return t.Select(WIDE, self._visited(test), *arms, speculable)
            case t.Convert(operand=operand, trap=None) if operand.dtype == WIDE and self._is_small(operand):
                return self._visited(operand)
        return t.Convert(WIDE, self._visited(node))

    def _visited(self, node: t.Typed) -> t.Typed:
        if self._is_held(node):
            assert isinstance(node, t.Local)
            return t.Convert(NARROW, self._wide(node))
        if isinstance(node, t.Convert) and node.dtype == WIDE and node.operand.dtype == NARROW and node.trap is None:
            return self._in_64_bits(node.operand)
        return t.mapped(node, self._visited)

    def rewritten(self, statements: Sequence[t.TypedStatement]) -> tuple[t.TypedStatement, ...]:
        found: list[t.TypedStatement] = []
        for s in statements:
            match s:
                case t.TypedFor(body=body):
                    heads = (self._visited(s.start), self._visited(s.stop), self._visited(s.step))
                    found.append(replace(s, start=heads[0], stop=heads[1], step=heads[2], body=self.rewritten(body)))
                case t.TypedIf(test=test, then=then, otherwise=otherwise):
                    arms = self.rewritten(then), self.rewritten(otherwise)
                    found.append(replace(s, test=self._visited(test), then=arms[0], otherwise=arms[1]))
                case t.TypedLocal(local=local, value=value) | t.TypedAssign(local=local, value=value) if self._is_held(
                    local
                ):
                    found.append(replace(s, local=self._wide(local), value=self._in_64_bits(value)))
                case t.TypedVariable(local=local, value=first) if self._is_held(local):
                    of = None if first is None else self._in_64_bits(first)
                    found.append(replace(s, local=self._wide(local), value=of))
                case _:
                    found.append(t.with_values(s, self._visited))
        return tuple(found)
