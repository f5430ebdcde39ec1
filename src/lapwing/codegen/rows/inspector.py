"""The function of a tile module that looks for what its loops may raise, before they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lapwing.codegen.body.inspection import inspector
from lapwing.codegen.body.loop_ends import mentions_index
from lapwing.codegen.body.text import Lines, indented, mentions, wrapped
from lapwing.codegen.rows.loops import LoopWriter
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.invariants import raises_alike


class InspectorWriter(LoopWriter):
    """Writes ``lw_tile_inspect``; see ``lapwing.h``."""

    def __init__(self, bound: BoundNest, checks: Sequence[t.TypedStatement]) -> None:
        super().__init__(replace(bound, body=replace(bound.body, statements=tuple(checks))))
        self.printer.named = {}  # what is computed before the loops is not there yet

    @classmethod
    def of(cls, bound: BoundNest) -> InspectorWriter | None:
        """That of a nest; None where nothing can be said before its loops run, or need be."""
        if bound.skew is not None or raises_alike(bound.body):
            return None
        checks = inspector(bound.body, bound.nest.written)
        writer = None if checks is None else cls(bound, checks)
        if writer is None or (writer._ragged_bounds and bound.nest.sweep_depth):
            return None
        # Else it would take about as long as what it looks at.
        used = [loop.name for loop in bound.nest.loops if _mention(bound.body.statements, loop.name)]
        return writer if writer._depth() < len(used) + _depth(bound.body.statements) else None

    def _depth(self) -> int:
        """How deep loops are in which something is looked at."""
        return max((len(loops) + _depth(statements) for loops, statements in self._groups()), default=0)

    def source(self) -> Iterator[str]:
        loops = self._loops()
        yield "int64_t lw_tile_inspect(const lw_tile *tile, const lw_box *box) {"
        text = "\n".join(loops)
        declared = [*self.array_declarations(text), *self.scalar_declarations(text)]
        state = ["int64_t raises = 0, negative = 0;", "int64_t *const trap = &raises, *const from_end = &negative;"]
        for line in indented([*declared, *state, *loops]):
            yield from wrapped(line)
        yield "    (void)trap;"
        yield "    (void)from_end;"
        yield "    return raises ? LW_MAY_RAISE : negative ? LW_FROM_END : LW_INSIDE;"
        yield "}"

    def _loops(self) -> list[str]:
        """What is looked at before all loops, and in those that it depends on."""
        lines, position = Lines(), 0
        for loops, statements in self._groups():
            if loops:
                others = [k for k in range(len(self.nest.loops)) if k not in loops]
                tests = " && ".join(f"box->lo[{k}] < box->hi[{k}]" for k in others)
                lines.open(*([f"if ({tests}) {{"] if tests else ["{"]))
            for k in loops:
                self._open(lines, k)
            for statement in statements:
                lines.add(*self._block((statement,), (position,)))
                position += 1
            lines.close_all()
        return lines.texts

    def _groups(self) -> list[tuple[tuple[int, ...], list[t.TypedStatement]]]:
        """Statements by the loops that they depend on (loop fission: they do nothing but look); those that depend on others are
        left together."""
        found: dict[tuple[int, ...], list[t.TypedStatement]] = {}
        for position, statement in enumerate(self.bound.body.statements):
            loops = tuple(self._needed("\n".join(self._block((statement,), (position,)))))
            found.setdefault(loops, []).append(statement)
        apart = t.TypedCheck | t.TypedIf | t.TypedFor
        if not all(isinstance(statement, apart) for statement in self.bound.body.statements):
            before = found.pop((), [])
            rest = [s for s in self.bound.body.statements if s not in before]
            found = {tuple(sorted({k for loops in found for k in loops})): rest}
            found |= {(): before} if before else {}
        return sorted(found.items(), key=lambda group: group[0] != ())

    def _needed(self, text: str) -> list[int]:
        """The loops whose indices a text mentions, and those that their bounds depend on."""
        named = [k for k, loop in enumerate(self.nest.loops) if mentions(text, self.index(loop.name))]
        return list(range(named[-1] + 1)) if named and self._ragged_bounds else named

    def _open(self, lines: Lines, k: int) -> None:
        if k >= self.nest.sweep_depth:
            self.open_loop(lines, k)
            return
        name = self.nest.loops[k].name
        x = self.coordinate(name)
        lines.open(f"for (int64_t {x} = box->lo[{k}]; {x} < box->hi[{k}]; ++{x}) {{")
        lines.add(*self.index_from_coordinates(name))


def _depth(statements: Sequence[t.TypedStatement]) -> int:
    """How deep inner loops are, those aside that do the same again and again."""
    found = [0]
    for statement in statements:
        match statement:
            case t.TypedFor(index=index, body=body):
                found.append(_depth(body) + _mention(body, index.name))
            case t.TypedWhile(body=body):
                found.append(1 + _depth(body))
            case t.TypedIf(then=then, otherwise=otherwise):
                found.append(_depth((*then, *otherwise)))
    return max(found)


def _mention(statements: Sequence[t.TypedStatement], name: str) -> bool:
    values = (value for s in t.all_statements(statements) for value in t.own_values(s))
    return any(mentions_index(value, name) for value in values)
