"""Loops in lanes as functions of a module, and the loops that call them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce

from lapwing.codegen.body.expression import C_TYPES, stripped
from lapwing.codegen.body.text import indented, wrapped
from lapwing.codegen.outer_loops.candidates import OuterLoop, outer_loop
from lapwing.codegen.outer_loops.expressions import Lanes
from lapwing.codegen.outer_loops.statements import VECTORS, VECTORS_OF_ROWS, LaneStatements, free_names
from lapwing.codegen.rows.module import ModuleWriter, name_in
from lapwing.loopnest.binding import typed as t
from lapwing.machine.vectors import vector_bytes

_Place = tuple[int, ...]
_MASKS = {1: "int8_t", 2: "int16_t", 4: "int32_t", 8: "int64_t"}
FEWEST_STEPS = 4  # of a skewed loop, in which lanes are alone at both ends, for each of them
WHOLE: _Place = (-1,)  # the place of the nest's own innermost loop


class OuterLoopWriter(ModuleWriter):
    """Writes loops around reductions whose iterations are independent."""

    _in_a_lane = False  # whether what is printed is what an iteration does by itself, of a loop that has lanes

    @property
    def is_in_part(self) -> bool:
        """Whether what is printed is part of the loop body, whose places say nothing to others."""
        return False

    @contextmanager
    def _of_one_iteration(self) -> Iterator[None]:
        """Loops in what is printed have no lanes: that would be much code for what seldom runs."""
        before, self._in_a_lane = self._in_a_lane, True
        try:
            yield
        finally:
            self._in_a_lane = before

    @cached_property
    def _lanes_at(self) -> dict[_Place, tuple[OuterLoop, str, list[str]] | None]:
        """The loops that have been looked at, by their places: each with the name of its function, and that function."""
        return {}

    def lanes_headers(self) -> list[str]:
        """What lane functions take: how many lanes there are, and their header."""
        size = max((made[0].size for made in self._lanes_at.values() if made is not None), default=0)
        if not size:
            return []
        return [
            f"#define LW_LANES {vector_bytes() // size}",
            f"#define LW_MASK {_MASKS[size]}",
            '#include "outer_loops.h"',
        ]

    def lane_functions(self) -> Iterator[str]:
        """The functions of all loops that are printed."""
        for made in self._lanes_at.values():
            if made is not None:
                yield from (*made[2], "")

    def in_lanes(self, loop: t.TypedFor, place: _Place) -> Sequence[str]:
        if not self.in_strips or not (isinstance(loop.step, t.Literal) and loop.step.value == 1):
            return ()
        if self._in_a_lane or self.is_in_part or self.printer.inside:
            return ()
        made = self._made(loop.body, loop.index.name, place)
        if made is None:
            return ()
        x = self.index(loop.index.name)
        end = self.names.get(("end", *place), f"{x}_end")
        first, last = (stripped(self.printer.print(bound)) for bound in (loop.start, loop.stop))
        with self._of_one_iteration():
            one_by_one = list(self._inner_block(loop.body, place))
        before, at_each = self._lane_loops_of(made, x, first, end)
        return [
            "{",
            *indented([f"const int64_t {end} = {last};", *before]),
            f"    for (; {x} < {end}; ++{x}) {{",
            *indented([*at_each, *one_by_one]),
            "    }",
            "}",
        ]

    def make_innermost(self, index: str, is_chain: bool) -> None:
        """Looks at the nest's innermost loop. is_chain: whether its iterations wait for one another."""
        self._made(self.bound.body.statements, index, WHOLE, is_chain)

    def innermost_in_lanes(self, index: str, begin: str, end: str) -> tuple[list[str], list[str]]:
        """What goes before that loop, from which iterations are left that are done one by one, and before each of these; nothing
        where it is as it stands."""
        made = self._lanes_at.get(WHOLE)
        return ([], []) if made is None else self._lane_loops_of(made, self.index(index), begin, end)

    def _lane_loops_of(
        self, made: tuple[OuterLoop, str, list[str]], x: str, begin: str, end: str
    ) -> tuple[list[str], list[str]]:
        """The call for as many iterations as make vectors, if there are enough for one, and what lanes go through together is
        long enough: before the loop over those that are left, or in it, where others come first."""
        loop, call, _ = made
        lines, until = [f"int64_t {x} = {begin};"], end
        if loop.first or loop.until:
            first, until = (self.names.get(("lanes", what, x), f"{x}_{what}") for what in ("whole_from", "whole_until"))
            ends = [(first, "lw_max_i64", x, loop.first), (until, "lw_min_i64", end, loop.until)]
            for name, function, own, others in ends:
                printed = (stripped(self.printer.print(other)) for other in others)
                lines.append(f"const int64_t {name} = {reduce(f'{function}({{}}, {{}})'.format, printed, own)};")
        enough = f"{until} - {x} >= LW_LANES"
        if loop.length is not None:
            enough += f" && {stripped(self.printer.print(loop.length))} >= {FEWEST_STEPS} * LW_LANES"
        if until == end:
            return [*lines, f"if ({enough}) {x} = {call.format(x, end)};"], []
        inside = [
            f"if ({x} == {first} && {enough}) {{",
            f"    {x} = {call.format(x, until)};",
            f"    if ({x} == {end}) break;",
        ]
        return lines, [*inside, "}"]

    @staticmethod
    def _calls(loop: OuterLoop, call: str, x: str, end: str) -> list[str]:
        """Calls for iterations from one on that make a vector at least."""
        most = VECTORS_OF_ROWS if loop.rows else VECTORS
        counts = [count for count in (4, 2, 1) if count <= most]
        several = _lanes_of(most)
        lines = [f"for (; {x} <= {end} - {several}; {x} += {several}) {call.format(x, most, 'INT64_MAX')};"]
        if loop.repeats:
            # The last vector has some of the iterations before it once more.
            tests = [f"{end} - {x} > {_lanes_of(count)}" for count in counts[1:]] + [f"{x} < {end}"]
            for number, (count, test) in enumerate(zip(counts, tests, strict=True)):
                last = f"{end} - LW_LANES"
                lines.append(f"{'else ' if number else ''}if ({test}) {call.format(x, count, last)};")
            return [*lines, f"return {end};"]
        for count in counts[1:]:
            some = _lanes_of(count)
            lines.append(f"if ({x} <= {end} - {some}) {{")
            lines += [f"    {call.format(x, count, 'INT64_MAX')};", f"    {x} += {some};", "}"]
        return [*lines, f"return {x};"]

    def _made(
        self,
        body: Sequence[t.TypedStatement],
        index: str,
        place: _Place,
        is_chain: bool = False,
        is_measured: bool = False,
    ) -> tuple[OuterLoop, str, list[str]] | None:
        known = self._lanes_at
        if place not in known:
            known[place] = None
            probe = Lanes(index, frozenset(), self.printer, self.stride, str, str)
            loop = outer_loop(self.bound, body, index, probe, is_chain, is_measured)
            if loop is not None:
                made = (loop, *self._function_of(loop, place))
                del known[place]  # functions stand behind those that they call
                known[place] = made
        return known[place]

    def _function_of(self, loop: OuterLoop, place: _Place) -> tuple[str, list[str]]:
        """The call of a loop's function, into which the first iteration and where the loop ends are inserted, and which gives the
        first one that is left; and it, behind that of one strip."""
        x, kept = self.index(loop.index), self.printer.kept

        def scalar(statements: Sequence[t.TypedStatement]) -> Iterator[str]:
            with self._of_one_iteration():
                yield from list(self._block(statements, (*place, -1)))

        writer = LaneStatements(loop, self.printer, self.names, x, self.stride, scalar, self.accumulator)
        body = list(writer.lines())
        self.printer.kept = kept
        local, inner = free_names(loop)
        outer = [i for i in self._indices_around(loop) if i.name not in {n.name for n in inner}]
        own = {x, *(self.index(i.name) for i in inner)}
        parameters = [p for p in self.parameters_of("\n".join(body)) if p[1] not in own]
        parameters += [(f"{C_TYPES[v.dtype]} {self.printer.name(v)}", self.printer.name(v)) for v in local]
        parameters += [(f"int64_t {self.index(i.name)}", self.index(i.name)) for i in outer]
        shared, given = (list(dict.fromkeys(texts)) for texts in zip(*parameters, strict=True))
        name = self.names.get(("lane function", place), f"{self.point_name()}_along_{x}")
        driver, end = (
            self.names.get(("lane loop", place), f"{name}_in_lanes"),
            self.names.get(("lanes end", x), f"{x}_stop"),
        )
        declared = [*shared, f"int64_t {x}", f"const int {writer.own('vectors')}"]
        inserted = ["{}", "{}"]
        if loop.repeats:
            declared.append(f"int64_t {writer.last}")
            inserted.append("{}")
        lines = [*wrapped(f"LW_INLINE void {name}({', '.join(declared)}) {{")]
        for line in indented(body):
            lines += wrapped(line)
        head = f"LW_APART int64_t {driver}({', '.join([*shared, f'int64_t {x}', f'int64_t {end}'])}) {{"
        lines += ["}", "", *wrapped(head)]
        passed = list(map(name_in, shared))
        for line in indented(self._calls(loop, f"{name}({', '.join([*passed, *inserted])})", x, end)):
            lines += wrapped(line)
        return f"{driver}({', '.join([*given, '{}', '{}'])})", [*lines, "}"]

    def _indices_around(self, loop: OuterLoop) -> list[t.Index]:
        """The indices of inner loops around a loop that its iterations mention."""
        names = dict.fromkeys(
            name
            for statement in t.all_statements((*loop.statements, *loop.later))
            for value in t.own_values(statement)
            for node in t.walk(value)
            for name in t.indices_of(node)
        )
        return [t.Index("int64", name) for name in names if name in self._inner and name != loop.index]


def _lanes_of(vectors: int) -> str:
    return "LW_LANES" if vectors == 1 else f"{vectors} * LW_LANES"
