"""Extrema with their arguments, found lane by lane: the loop body of tiles with buffers.

A lane goes through its iterations in the order of the plain loop, so among them the value alone decides which one counts; of
where it was the lane keeps the step. The indices are worked out, and what the lanes have found is compared with what there was,
when a block of rows is done. What there was may be of a later iteration: of values like it a lane keeps one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lapwing.codegen.body.expression import C_TYPES, stripped
from lapwing.codegen.body.names import PairNames
from lapwing.codegen.body.statements import StatementWriter
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.transposed import ITEMSIZES, MARGIN, arguments_of_extrema

_NEVER = -1  # no step


@dataclass(frozen=True)
class Private:
    """What a lane keeps: ``name``, a parameter of the loop body, a C array of all lanes' (lane 0 is the one at ``MARGIN``), its
    type, and what it begins with."""

    name: str
    lanes: str
    dtype: str
    start: str


class Extrema:
    """Those of one loop body."""

    def __init__(self, writer: StatementWriter, c: PairNames) -> None:
        self._writer, self._c = writer, c
        self._statements = arguments_of_extrema(writer.bound.body)
        self._kinds = {a.name: a for a in writer.bound.body.accumulators}

    def private(self) -> Iterator[Private]:
        for statement in self._statements:
            yield from self._private_of(statement)

    def parameters(self, accumulator: t.Accumulator) -> list[tuple[str, str]]:
        """Of the loop body's function, for an accumulator with all that belongs to it, and the arguments of its call."""
        statement = next((s for s in self._statements if s.name == accumulator.name), None)
        if statement is None:
            return []
        kept = self._private_of(statement)
        step = (f"int64_t {self._c.step}", self._c.step)
        return [*((f"{C_TYPES[p.dtype]} *{p.name}", f"&{p.name}") for p in kept), step]

    def update(self, statement: t.TypedAccumulate) -> Iterator[str]:
        """An iteration of a lane. Without branches, which vectors have not."""
        best, step, *payload = self._private_of(statement)
        kind, names = self._kinds[statement.name], self._writer.names
        here = names.get(("value for", kind.name), f"{kind.name}_here")
        found = names.get(("found", kind.name), f"{kind.name}_found")
        value = self._writer.printer.print(statement.value)
        yield f"const {C_TYPES[kind.dtype]} {here} = {stripped(value)};"
        like = "" if "=" in kind.operator else f" | (({here} == *{best.name}) & (*{step.name} == {_NEVER}))"
        better = f"{here} {kind.operator} *{best.name}"
        yield f"const bool {found} = {f'({better}){like}' if like else better};"
        texts = [here, f"({C_TYPES[step.dtype]}){self._c.step}"]
        texts += [self._writer.printer.print(its) for _, its in self._kept_payload(statement)]
        for private, text in zip((best, step, *payload), texts, strict=True):
            yield f"*{private.name} = {found} ? {stripped(text)} : *{private.name};"

    def fold(self, statement: t.TypedAccumulate) -> Iterator[str]:
        """What a lane has found, at the indices of its iteration."""
        best, _, *payload = self._private_of(statement)
        lane = f"[{self._c.lane} + {MARGIN}]"
        kept = {name: f"{p.lanes}{lane}" for (name, _), p in zip(self._kept_payload(statement), payload, strict=True)}
        texts = {name: kept.get(name) or stripped(self._writer.printer.print(its)) for name, its in statement.payload}
        yield from self._writer.extremum_update(statement, f"{best.lanes}{lane}", texts)

    def found_step(self, statement: t.TypedAccumulate) -> tuple[str, str]:
        """C texts: whether a lane has found something, and at which step."""
        step = f"{self._private_of(statement)[1].lanes}[{self._c.lane} + {MARGIN}]"
        return f"{step} != {_NEVER}", step

    @property
    def statements(self) -> list[t.TypedAccumulate]:
        return self._statements

    def _private_of(self, statement: t.TypedAccumulate) -> list[Private]:
        """The value, the step, and what else was to be kept."""
        kind, writer = self._kinds[statement.name], self._writer
        best = writer.accumulator(kind.name)
        step = writer.names.get(("step of", kind.name), f"{best}_step")
        step_dtype = "int32" if ITEMSIZES.get(kind.dtype) == 4 else "int64"
        found = [self._kept(best, kind.dtype, best), self._kept(step, step_dtype, str(_NEVER))]
        for name, _ in self._kept_payload(statement):
            own = writer.accumulator(name)
            found.append(self._kept(own, self._kinds[name].dtype, own))
        return found

    def _kept(self, name: str, dtype: str, start: str) -> Private:
        return Private(name, self._writer.names.get(("lanes of", name), f"{name}_lanes"), dtype, start)

    @staticmethod
    def _kept_payload(statement: t.TypedAccumulate) -> list[tuple[str, t.Typed]]:
        """What is more than indices."""
        return [(name, value) for name, value in statement.payload if not isinstance(value, t.Index)]
