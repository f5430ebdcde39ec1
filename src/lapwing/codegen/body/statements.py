"""Statements of a nest printed as C, with the names of one module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

from lapwing.affine.affine import Affine
from lapwing.codegen.body.conditional_calls import for_strips
from lapwing.codegen.body.distribution import Part, StripCall, distributed, may_raise
from lapwing.codegen.body.expression import (  # fmt: skip
    C_TYPES,
    SUFFIXES,
    Printer,
    is_quick_power,
    is_recurrence,
    is_scan,
    is_sum_scan,
    strip_arguments,
    strip_call,
    stripped,
)
from lapwing.codegen.body.if_conversion import without_branches
from lapwing.codegen.body.names import Names
from lapwing.codegen.body.text import element, indented, mentions, plus
from lapwing.codegen.body.unrolling import copies
from lapwing.codegen.body.versions import checks_at_ends
from lapwing.codegen.body.wrapping import Wrapping, middle, wrapping
from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.typed import loads
from lapwing.tiling.branches import branches

INDEPENDENT = "#pragma GCC ivdep"  # of a loop's iterations
# "ivdep" and "omp simd" free the iterations of one loop from each other, not those of the loop around it. Compilers have
# got that wrong; nothing moves across this line.
IN_ORDER = '__asm__ volatile("" ::: "memory");'
IGNORED = "ignored"  # the variable in which it is noted that what is computed before its turn may raise
IGNORED_TRAP = f"int64_t {IGNORED} = 0;"

_Place = tuple[int, ...]  # of a statement: its position in its block, after that of the statement the block is in


def _condition(call: StripCall) -> tuple[t.Local, bool] | None:
    """Where a function is called, if not everywhere, and whether it takes little."""
    return None if call.where is None else (call.where, is_quick_power(call.operation))


_FEWEST_IN_STRIPS = 32  # iterations that wait for one another: strips of fewer take more time than they save


class StatementWriter:
    """Prints the body of a bound nest. Text depends on types and structure, never on sizes."""

    def __init__(self, bound: BoundNest) -> None:
        self.bound = bound
        self.nest = bound.nest
        self.names = Names()
        self.loops = {loop.name: loop for loop in self.nest.loops}
        self._inner = {s.index for s in ir.all_statements(self.nest.body) if isinstance(s, ir.For)}
        for loop in self.nest.loops:
            self.index(loop.name)
        for array in bound.arrays:
            self.array(array.name)
        self.in_strips = False  # whether inner loops may be gone through in strips
        values = (v for s in t.all_statements(bound.body.statements) for v in t.own_values(s))
        dtypes = {node.dtype for value in values for node in t.walk(value)}
        # Of what says whether something holds in iterations of a strip.
        self._inner_bodies: dict[int, tuple[t.TypedFor, tuple[t.TypedStatement, ...]]] = {}  # by the loops' ids
        self._versions: dict[int, t.TypedFor] = {}  # by their ids, loops that are one of two versions
        self._mask_dtype = "int64" if "float64" in dtypes or "float32" not in dtypes else "int32"
        self._one_by_one: dict[int, t.TypedFor] = {}  # loops that are no scans, by their ids
        self._settled: dict[int, t.TypedFor] = {}  # loops that are not done as several any more, by their ids
        self._loop_numbers: dict[_Place, int] = {}  # of those that may be gone through in strips
        # Of what functions give for a strip: the array that they fill, and how far behind the iteration's place it is there.
        self._strip_places: dict[t.Local, tuple[t.Local, int]] = {}
        self._term_places: dict[str, str] = {}  # of sums to which every iteration of a strip adds one term
        self.printer = Printer(self._name, self.element, self.extent, self.affine)

    # -- names -------------------------------------------------------------------------------------------------------

    def index(self, loop: str) -> str:
        return self.names.get(("index", loop), loop)

    def coordinate(self, loop: str) -> str:
        """The coordinate in the domain: the index itself, its negative where the loop descends, or the skewed one."""
        if self.is_skewed(loop):
            return self.names.get(("coordinate", loop), f"skewed_{loop}")
        return self.index(loop) if self.loops[loop].step == 1 else self.names.get(("coordinate", loop), f"minus_{loop}")

    def is_skewed(self, loop: str) -> bool:
        skew = self.bound.skew
        return skew is not None and skew.moves(self.nest.loop_names.index(loop))

    def index_from_coordinates(self, loop: str) -> Iterator[str]:
        """The declaration of the user's index, where it is not the coordinate itself."""
        skew, names, step = self.bound.skew, self.nest.loop_names, self.loops[loop].step
        if skew is not None and self.is_skewed(loop):
            row = zip(names, skew.inverse[names.index(loop)], strict=True)
            terms = tuple((self.coordinate(name), step * factor) for name, factor in row if factor)
            yield f"const int64_t {self.index(loop)} = {Affine(0, terms[::-1])};"
        elif step == -1:
            yield f"const int64_t {self.index(loop)} = -{self.coordinate(loop)};"

    def array(self, name: str) -> str:
        return self.names.get(("array", name), name)

    def stride(self, array: str, axis: int) -> str:
        return self.names.get(("stride", array, axis), f"{array}_s{axis}")

    def scalar(self, name: str) -> str:
        return self.names.get(("scalar", name), name.replace(".shape[", "_shape").replace("]", ""))

    def accumulator(self, name: str) -> str:
        return self.names.get(("accumulator", name), name.replace(" ", "_"))

    def _name(self, node: t.Scalar | t.Index | t.Local) -> str:
        match node:
            case t.Scalar(name=name):
                return self.scalar(name)
            case t.Index(name=name):
                return self.index(name)
            case t.Local(name=name, version=version):
                return self.names.get(("local", name, version), name if version == 1 else f"{name}_{version}")

    def affine(self, affine: Affine) -> str:
        """An affine expression over the user's indices and symbols."""
        renamed = Affine(
            affine.constant,
            tuple(
                (self.index(n) if n in self.loops or n in self._inner else self.scalar(n), c) for n, c in affine.terms
            ),
        )
        return str(renamed)

    def element(self, array: str, subscripts: list[str]) -> str:
        return element(self.array(array), [self.stride(array, axis) for axis in range(len(subscripts) - 1)], subscripts)

    def extent(self, array: str, axis: int) -> str:
        return self.names.get(("extent", array, axis), f"{array}_n{axis}")

    # -- statements --------------------------------------------------------------------------------------------------

    def statements(self) -> Iterator[str]:
        """The loop body; reductions are updated through pointers of their names, traps noted through ``trap``."""
        yield from self._block(self.body_statements(), ())

    def body_statements(self) -> Sequence[t.TypedStatement]:
        return self.bound.body.statements

    def _block(self, statements: Sequence[t.TypedStatement], place: _Place) -> Iterator[str]:
        """Statements in a row. What is stored before a loop or a condition may have changed after it."""
        self.printer.kept = {}
        for position, statement in enumerate(statements):
            if isinstance(statement, t.SimpleStatement):
                yield from self._simple(statement, statements[position + 1 :], (*place, position))
            else:
                yield from self._structured(statement, (*place, position))
                self.printer.kept = {}
        self.printer.kept = {}

    def _simple(self, statement: t.SimpleStatement, later: Sequence[t.TypedStatement], place: _Place) -> Iterator[str]:
        value = self.printer.print(statement.value)
        match statement:
            case t.TypedStore(target=target):
                kept = {load: name for load, name in self.printer.kept.items() if load.array != target.array}
                if any(target in loads(other) for other in later if isinstance(other, t.SimpleStatement)):
                    # C cannot know that nothing else was written in between, and would load it again.
                    name = self.names.get(("kept", *place), f"{target.array}_new")
                    yield f"const {C_TYPES[target.dtype]} {name} = {stripped(value)};"
                    kept[target] = value = name
                yield f"{self.printer.load(target)} = {stripped(value)};"
                self.printer.kept = kept
            case t.TypedLocal(local=local):
                yield f"const {C_TYPES[local.dtype]} {self._name(local)} = {stripped(value)};"
            case t.TypedAssign(local=local):
                yield f"{self._name(local)} = {stripped(value)};"
            case t.TypedRounded():
                yield from self.rounded(statement, stripped(value))
            case t.TypedAccumulate(position=position) if position:
                yield from self.extremum(statement)
            case t.TypedAccumulate(name=name):
                kind = next(a for a in self.bound.body.accumulators if a.name == name)
                pointer = self.accumulator(name)
                yield self.accumulate(kind, pointer if kind.exact_sum else f"*{pointer}", value)

    def extremum(self, statement: t.TypedAccumulate) -> Iterator[str]:
        """An extremum with its argument, through pointers of their names."""
        payload = {name: stripped(self.printer.print(its)) for name, its in statement.payload}
        yield from self.extremum_update(statement, stripped(self.printer.print(statement.value)), payload, "*")

    def extremum_update(
        self, statement: t.TypedAccumulate, value: str, payload: Mapping[str, str], deref: str = ""
    ) -> Iterator[str]:
        """An extremum and its argument brought up to date: of equal values the first iteration's counts, or the last one's.
        value, payload: C texts; deref: what leads from the accumulators' names to them."""
        kind = next(a for a in self.bound.body.accumulators if a.name == statement.name)
        best, here = self.accumulator(kind.name), self.names.get(("value for", kind.name), f"{kind.name}_here")
        yield "{"
        yield f"    const {C_TYPES[kind.dtype]} {here} = {value};"
        places = [
            (self.printer.print(x), f"{deref}{self.accumulator(f'{kind.name} at {loop.name}')}")
            for x, loop in zip(statement.position, self.nest.loops, strict=True)
        ]
        earlier = ""
        for now, there in reversed(places):
            earlier = f"{now} < {there}" + (f" || ({now} == {there} && ({earlier}))" if earlier else "")
        counts = f"!({earlier})" if kind.operator in (">=", "<=") else f"({earlier})"
        yield f"    if ({here} {kind.operator[0]} {deref}{best} || ({here} == {deref}{best} && {counts})) {{"
        yield f"        {deref}{best} = {here};"
        for now, there in places:
            yield f"        {there} = {now};"
        for name, text in payload.items():
            yield f"        {deref}{self.accumulator(name)} = {text};"
        yield "    }"
        yield "}"

    def _structured(self, statement: t.TypedStatement, place: _Place) -> Iterator[str]:
        match statement:
            case t.TypedVariable(local=local, value=value):
                first = "" if value is None else f" = {stripped(self.printer.print(value))}"
                yield f"{C_TYPES[local.dtype]} {self._name(local)}{first};"
            case t.TypedIf(test=test, then=then, otherwise=otherwise):
                yield f"if ({stripped(self.printer.print(test))}) {{"
                yield from self._inner_block(then, (*place, 0))
                if otherwise:
                    yield "} else {"
                    yield from self._inner_block(otherwise, (*place, 1))
                yield "}"
            case t.TypedFor(index=index, start=start, stop=stop, step=step):
                if lanes := self.in_lanes(statement, place):
                    yield from lanes
                    return
                several = (statement,) if id(statement) in self._settled else self.several(statement)
                if len(several) > 1 or not isinstance(several[0], t.TypedFor):
                    yield from self._block(several, place)
                    return
                is_version, statement = id(statement) in self._versions, several[0]
                start, stop, body = statement.start, statement.stop, statement.body
                if not is_version and (versions := self._in_versions(statement, place)):
                    yield from versions
                    return
                if scan := self._as_scan(statement, place):
                    yield from scan
                    return
                x = self.index(index.name)
                end = self.names.get(("end", *place), f"{x}_end")
                first, last = (stripped(self.printer.print(bound)) for bound in (start, stop))
                yield f"const int64_t {end} = {last};"
                body = self._body_of_inner(statement)
                if wraps := self._wraps_of_inner(statement):
                    yield from self._split_inner(statement, body, (first, end), wraps, place)
                    return
                if parts := self.parts_of_inner(statement, body, place):
                    strips = list(self._strip_loop(x, (first, end), parts, place, statement.independent))
                    if statement.independent or any(part.calls for part in parts):
                        yield from strips
                        return
                    yield f"if ({end} - {first} < {_FEWEST_IN_STRIPS}) {{"
                    yield f"    for (int64_t {x} = {first}; {x} < {end}; ++{x}) {{"
                    yield from indented(list(self._inner_block(body, place)))
                    yield from ("    }", "} else")
                    yield from strips
                    return
                if isinstance(step, t.Literal) and isinstance(step.value, int):
                    by = step.value
                    goes_on = f"{x} {'<' if by > 0 else '>'} {end}"
                    moves = f"++{x}" if by == 1 else f"--{x}" if by == -1 else f"{x} += {by}"
                else:
                    each = self.names.get(("step", *place), f"{x}_step")
                    yield f"const int64_t {each} = {stripped(self.printer.print(step))};"
                    # None where the step is zero, for which there is no other way to end.
                    goes_on, moves = (
                        f"({each} > 0 && {x} < {end}) || ({each} < 0 && {x} > {end})",
                        f"{x} = lw_next({x}, {each}, {end})",
                    )
                if statement.independent and step == t.Literal("int64", 1):
                    yield from self._independent_loop(body, index.name, (first, end), place)
                    return
                yield from (INDEPENDENT,) if statement.independent else ()
                yield from (f"#pragma GCC unroll {times}",) if (times := copies(statement)) else ()
                yield f"for (int64_t {x} = {first}; {goes_on}; {moves}) {{"
                yield from self._inner_block(body, place)
                yield "}"
                yield from (IN_ORDER,) if statement.independent else ()
            case t.TypedWhile(test=test, body=body):
                text = stripped(self.printer.print(test))
                # A loop that would go on because of what was met on the way must end.
                yield f"while (*trap == 0 && ({text})) {{" if self.bound.body.traps else f"while ({text}) {{"
                yield from self._inner_block(body, place)
                yield "}"
            case t.TypedCheck():
                yield self.printer.check(statement)
            case t.TypedStrips(arrays=arrays):
                yield from (f"{C_TYPES[dtype]} {self.array(name)}[LW_STRIP];" for name, dtype in arrays)
            case t.TypedJump(kind=kind):
                yield f"{kind};"

    def in_lanes(self, loop: t.TypedFor, place: tuple[int, ...]) -> Sequence[str]:
        """An inner loop of which many iterations are done together; none where it is as it stands."""
        return ()

    def _independent_loop(
        self, body: Sequence[t.TypedStatement], index: str, bounds: tuple[str, str], place: _Place
    ) -> Iterator[str]:
        """A loop that counts up by ones and whose iterations are independent."""
        x, (opening, (first, last)) = self.index(index), self.peeled(body, index, bounds, place)
        lines = [INDEPENDENT, f"for (int64_t {x} = {first}; {x} < {last}; ++{x}) {{"]
        lines += [*self._inner_block(body, place), "}"]
        yield from (opening, *indented(lines), "}") if opening else lines
        yield IN_ORDER

    def peeled(
        self, body: Sequence[t.TypedStatement], index: str, bounds: tuple[str, str], place: _Place
    ) -> tuple[str, tuple[str, str]]:
        """The opening of a loop around an independent one that is done in two parts, and the bounds of these; none, and its own,
        where it is done as it stands."""
        return "", bounds

    def _in_versions(self, loop: t.TypedFor, place: _Place) -> Sequence[str]:
        """An inner loop with and without checks of indices; none where it has no such indices, or is one of the two."""
        if not self.in_strips or self.printer.inside:
            return ()
        number = len(self._versions) // 2 + 1
        start, stop = (t.Local("int64", f"{loop.index.name} {what}", number) for what in ("from", "until"))
        by = t.Literal("int64", loop.step.value) if isinstance(loop.step, t.Literal) else None
        if by is None:
            return ()
        last = t.Operation("int64", "-", (stop, by))
        found = checks_at_ends(replace(loop, start=start, stop=stop), start, last)
        if found is None:
            return ()
        checks, free = found
        checked = replace(loop, start=start, stop=stop)
        self._versions |= {id(free): free, id(checked): checked}
        self._settled |= {id(checked): checked, **({id(free): free} if id(loop) in self._settled else {})}
        tests = [f"lw_inside({stripped(self.printer.print(c.index))}, {self.extent(c.array, c.axis)})" for c in checks]
        lines = [
            f"const int64_t {self._name(local)} = {stripped(self.printer.print(bound))};"
            for local, bound in ((start, loop.start), (stop, loop.stop))
        ]
        lines.append(f"if ({' & '.join(tests)}) {{")
        lines += indented(list(self._structured(free, (*place, 0))))
        lines.append("} else {")
        lines += indented(list(self._structured(checked, (*place, 1))))
        return [*lines, "}"]

    def several(self, loop: t.TypedFor) -> Sequence[t.TypedStatement]:
        """Statements in the place of an inner loop: others than the loop alone where it is done as several."""
        return (loop,)

    def with_scans(self, loop: t.TypedFor) -> Sequence[t.TypedStatement] | None:
        """The body of an inner loop with scans in the place of recurrences along it; None where there is anything else that
        iterations wait for."""
        return None

    def _as_scan(self, loop: t.TypedFor, place: _Place) -> Sequence[str]:
        """An inner loop of integers that wait for the iteration before, as a scan where it is long enough; none where it is not
        such a loop."""
        counts_up = isinstance(loop.step, t.Literal) and loop.step.value == 1
        if (
            not (self.in_strips and counts_up)
            or loop.independent
            or self.printer.inside
            or id(loop) in self._one_by_one
        ):
            return ()
        body = self.with_scans(loop)
        parts = () if body is None else self.parts_of(body, loop.index.name, True, (*place, 0))
        scans = [call.operation for part in parts for call in part.calls if is_scan(call.operation)]
        if not scans:
            return ()
        x, end = self.index(loop.index.name), self.names.get(("end", *place), f"{self.index(loop.index.name)}_end")
        begin = self.names.get(("begin", *place), f"{x}_begin")
        first, last = (stripped(self.printer.print(bound)) for bound in (loop.start, loop.stop))
        alone = replace(loop)
        kind = "SUM" if all(map(is_sum_scan, scans)) else "SCAN"
        self._one_by_one[id(alone)] = self._settled[id(alone)] = self._versions[id(alone)] = alone
        return [
            "{",
            f"    const int64_t {begin} = {first}, {end} = {last};",
            f"    if (LW_{kind}_PAYS_{SUFFIXES[scans[0].dtype]} && {end} - {begin} >= LW_SCAN_FEWEST) {{",
            *indented(list(self._strip_loop(x, (begin, end), parts, (*place, 0), True)), 2),
            "    } else {",
            *indented(list(self._structured(alone, (*place, 1))), 2),
            "    }",
            "}",
        ]

    # -- loops in strips, distributed over several ----------------------------------------------------------------------

    def _body_of_inner(self, loop: t.TypedFor) -> tuple[t.TypedStatement, ...]:
        """What an inner loop does, without branches but those that are better than choices between values, and with functions
        called before conditions."""
        if not self.in_strips:
            return loop.body
        _, body = self._inner_bodies.get(id(loop), (loop, None))
        if body is None:
            body = self._converted_body(loop)
            self._inner_bodies[id(loop)] = loop, body
        return body

    def _converted_body(self, loop: t.TypedFor) -> tuple[t.TypedStatement, ...]:
        counts_up = isinstance(loop.step, t.Literal) and loop.step.value == 1
        declared = {s.local for s in t.all_statements(loop.body) if isinstance(s, t.TypedVariable)}
        assigned = {s.local for s in t.all_statements(loop.body) if isinstance(s, t.TypedAssign)}
        body = replace(self.bound.body, statements=loop.body)
        independent = loop.independent and assigned <= declared
        exists = loop.exist.__contains__
        if not independent:
            body = without_branches(self.bound, body, exists, stays=branches(loop, assigned - declared))
        elif not counts_up:
            body = without_branches(self.bound, body, exists)
        if counts_up:
            body = for_strips(self.bound, body, loop.index.name, independent, exists)
        return body.statements

    def _wraps_of_inner(self, loop: t.TypedFor) -> Wrapping:
        """What wraps along an inner loop of which iterations are independent, so that they are worth vectors."""
        if not (loop.independent and self.in_strips and isinstance(loop.step, t.Literal) and loop.step.value == 1):
            return {}
        return wrapping(loop.body, loop.index.name)

    def _split_inner(
        self,
        loop: t.TypedFor,
        body: Sequence[t.TypedStatement],
        bounds: tuple[str, str],
        wraps: Wrapping,
        place: _Place,
    ) -> Iterator[str]:
        """An inner loop in three parts: nothing wraps in the middle one."""
        x, (begin, end) = self.index(loop.index.name), bounds
        first, last = (self.names.get((part, *place), f"{x}_{part}") for part in ("first", "last"))
        low, high = middle(wraps, end, self.printer.print)
        yield f"const int64_t {first} = lw_min_i64({end}, lw_max_i64({begin}, {low}));"
        yield f"const int64_t {last} = lw_max_i64({first}, {high});"
        yield f"for (int64_t {x} = {begin}; {x} < {first}; ++{x}) {{"
        yield from self._inner_block(loop.body, place)
        yield "}"
        with self.where_inside(wraps):
            if parts := self.parts_of_inner(loop, body, place):
                yield from self._strip_loop(x, (first, last), parts, place, True)
            else:
                yield from self._independent_loop(body, loop.index.name, (first, last), place)
        yield f"for (int64_t {x} = {last}; {x} < {end}; ++{x}) {{"
        yield from self._inner_block(loop.body, place)
        yield "}"

    @contextmanager
    def where_inside(self, wraps: Wrapping) -> Iterator[None]:
        """What is written is for iterations in which none of these wraps."""
        around = self.printer.inside
        self.printer.inside = around | frozenset(wraps)
        try:
            yield
        finally:
            self.printer.inside = around

    def parts_of_inner(self, loop: t.TypedFor, body: Sequence[t.TypedStatement], place: _Place) -> tuple[Part, ...]:
        counts_up = isinstance(loop.step, t.Literal) and loop.step.value == 1
        if not (self.in_strips and counts_up):
            return ()
        return self.parts_of(body, loop.index.name, loop.independent, place)

    def parts_of(
        self, body: Sequence[t.TypedStatement], index: str, independent: bool, place: _Place = ()
    ) -> tuple[Part, ...]:
        """The loops that one is distributed over; none where it stays whole."""
        number = self._loop_numbers.setdefault(place, len(self._loop_numbers) + 1)
        sums = [a.name for a in self.bound.body.accumulators if a.exact_sum]
        parts = distributed(body, index, independent, self.printer.named, number, sums)
        for call in (call for part in parts for call in part.calls):
            (first, _), *_ = call.results
            self._strip_places |= {local: (first, behind) for local, behind in call.results}
        return parts

    def _strip_loop(
        self, x: str, bounds: tuple[str, str], parts: Sequence[Part], place: _Place, independent: bool
    ) -> Iterator[str]:
        """A loop inside of the body: the function of the body has all that it takes."""
        first, end = bounds
        strip, strip_end = (self.names.get((name, *place), name) for name in ("strip", "strip_end"))
        yield "{"
        yield from indented(list(self.strips(parts)))
        yield f"    for (int64_t {strip} = {first}; {strip} < {end}; {strip} += LW_STRIP) {{"
        yield f"        const int64_t {strip_end} = lw_min_i64({strip} + LW_STRIP, {end});"
        own = next(part for part in parts if part.is_last)
        for number, part in enumerate(parts):
            if part.statements:
                sums = [a for a in self.bound.body.accumulators if a.name in part.sums]
                lines = [line for a in sums for line in self.room_for_terms(a, f"{strip_end} - {strip}", "*")]
                lines += [] if part is own and not independent else [INDEPENDENT]
                lines.append(f"for (int64_t {x} = {strip}; {x} < {strip_end}; ++{x}) {{")
                if not part.is_last and any(map(may_raise, part.statements)):
                    lines += [f"    {IGNORED_TRAP}", f"    int64_t *const trap = &{IGNORED};"]
                with self._terms_at(sums, f"{x} - {strip}", "*"):
                    lines += self._part_block(part, f"{x} - {strip}", (*place, number))
                lines.append("}")
                lines += [line for a in sums for line in self.terms_added(a, f"{strip_end} - {strip}", "*")]
                yield from indented(lines, 2)
            yield from indented(list(self.strip_calls(part, x, (strip, strip_end))), 2)
        yield "    }"
        yield "}"
        yield from (IN_ORDER,) if independent else ()

    def _part_block(self, part: Part, iteration: str, place: _Place) -> Iterator[str]:
        for local in part.incoming:
            yield f"    const {C_TYPES[local.dtype]} {self._name(local)} = {self.value_in_strip(local, iteration)};"
        kept = [f"{self.in_strip(local, iteration)} = {self._name(local)};" for local in part.outgoing]
        yield from self._inner_block(part.statements, place, kept)

    def strip_of(self, local: t.Local) -> str:
        """The array with what a local is in all iterations of a strip."""
        return self.names.get(("strip of", local), f"{self._name(local)}_strip")

    def in_strip(self, local: t.Local, iteration: str) -> str:
        """Its element that is the local's value in an iteration."""
        array, behind = self._strip_places.get(local, (local, 0))
        return f"{self.strip_of(array)}[{plus(iteration, behind)}]"

    def value_in_strip(self, local: t.Local, iteration: str) -> str:
        """The local's value in an iteration."""
        element = self.in_strip(local, iteration)
        return f"{element} != 0" if local.dtype == "bool" else element

    def strip_type(self, local: t.Local) -> str:
        """The C type of its elements: where it says whether something holds, an integer as wide as numbers are, of which
        compilers make masks."""
        return C_TYPES[self._mask_dtype if local.dtype == "bool" else local.dtype]

    def strips(self, parts: Sequence[Part]) -> Iterator[str]:
        """Declares those arrays."""
        for local in dict.fromkeys(local for part in parts for local in part.outgoing):
            yield f"{self.strip_type(local)} {self.strip_of(local)}[LW_STRIP];"
        for part in parts:
            for call in part.calls:
                (first, _), *_ = call.results
                if is_scan(call.operation):
                    yield from self._aligned_strip(first)
                    continue
                size = "LW_STRIP + LW_STRIP_MARGIN" if call.further else "LW_STRIP"
                yield f"{C_TYPES[first.dtype]} {self.strip_of(first)}[{size}];"

    def _aligned_strip(self, local: t.Local) -> Iterator[str]:
        """Declares the array of what a scan gives: behind the element before the first iteration begins a vector."""
        name, c_type = self.strip_of(local), C_TYPES[local.dtype]
        room = self.names.get(("room of", local), f"{name}_room")
        yield f"{c_type} {room}[LW_STRIP + LW_SCAN_VECTOR / sizeof({c_type})] LW_SCAN_ALIGNED;"
        yield f"{c_type} *const {name} = {room} + LW_SCAN_VECTOR / sizeof({c_type}) - 1;"

    def strip_calls(self, part: Part, x: str, strip: tuple[str, str]) -> Iterator[str]:
        """The calls that follow a part of a loop, over iterations from the first one of a strip to its end."""
        first, end = strip
        for where, calls in groupby(part.calls, _condition):
            for together in [[call] for call in calls] if where is None else [list(calls)]:
                lines: list[str] = []
                arguments = [argument for call in together for argument in strip_arguments(call.operation)]
                if any(isinstance(argument, t.Load) for argument in arguments):
                    lines.append(f"const int64_t {x} = {first};")
                if where is not None:
                    lines += self._places(*where, f"{end} - {first}")
                for call in together:
                    given = list(self._arguments_of_strip(call.operation))
                    result, count = self.strip_of(call.results[0][0]), plus(f"{end} - {first}", call.further)
                    if where is None:
                        lines.append(strip_call(call.operation, given, self._scalars_of(call), result, count))
                    else:
                        lines += self._packed_call(call, given, result, count)
                yield from lines if len(lines) == 1 else ("{", *indented(lines), "}")

    def _scalars_of(self, call: StripCall) -> list[str]:
        """What a scan takes besides its strips, as C texts."""
        if not is_scan(call.operation):
            return []
        taken = len(strip_arguments(call.operation))
        return [stripped(self.printer.print(operand)) for operand in call.operation.operands[taken:]]

    def _arguments_of_strip(self, operation: t.Operation) -> Iterator[str]:
        for number, argument in enumerate(strip_arguments(operation)):
            if number or not is_recurrence(operation):
                yield self._argument_of_strip(argument)
            elif isinstance(argument, t.Load):  # which may be wider in memory than in the strip
                yield stripped(self.printer.print(argument))
            else:
                yield f"*({self._argument_of_strip(argument)})"

    def _argument_of_strip(self, argument: t.Typed) -> str:
        if isinstance(argument, t.Load):
            return f"&{self.printer.in_array(argument)}"
        assert isinstance(argument, t.Local)
        array, behind = self._strip_places.get(argument, (argument, 0))
        return plus(self.strip_of(array), behind)

    def _places(self, where: t.Local, is_quick: bool, count: str) -> Iterator[str]:
        """Which iterations of a strip call functions that are called where a condition holds."""
        places, some = (self.names.get(name, name) for name in ("places", "some"))
        yield f"int32_t {places}[LW_STRIP];"
        function = f"lw_{'most_' if is_quick else ''}places_{SUFFIXES[self._mask_dtype]}"
        yield f"const int64_t {some} = {function}({places}, {self._argument_of_strip(where)}, {count});"

    def _packed_call(self, call: StripCall, arguments: Sequence[str], result: str, count: str) -> Iterator[str]:
        """The call for those iterations alone."""
        places, some, packed = (self.names.get(name, name) for name in ("places", "some", "packed"))
        suffix, where = SUFFIXES[call.operation.dtype], f"{places}, {some}, {count}"
        rooms = [f"{packed}[{number}]" for number in range(len(arguments) + 1)]
        given = [
            f"lw_pack_{suffix}({room}, {argument}, {where})" for room, argument in zip(rooms, arguments, strict=False)
        ]
        target = f"{some} < {count} ? {rooms[-1]} : {result}"
        yield "{"
        yield f"    {C_TYPES[call.operation.dtype]} {packed}[{len(rooms)}][LW_STRIP];"
        yield f"    {strip_call(call.operation, given, self._scalars_of(call), target, some)}"
        yield f"    lw_unpack_{suffix}({result}, {rooms[-1]}, {where});"
        yield "}"

    def _inner_block(
        self, statements: Sequence[t.TypedStatement], place: _Place, last: Sequence[str] = ()
    ) -> Iterator[str]:
        lines = [*self._block(statements, place), *last]
        yield from indented(lines)
        yield from indented(list(self._unused(statements, lines)))

    def _unused(self, statements: Sequence[t.TypedStatement], lines: Sequence[str]) -> Iterator[str]:
        """Silence warnings about temporaries the user set and never read."""
        if statements and isinstance(statements[-1], t.TypedJump):
            return
        for statement in statements:
            if isinstance(statement, t.TypedLocal):
                name = self._name(statement.local)
                if sum(mentions(line, name) for line in lines) == 1:
                    yield f"(void){name};"

    def unused_locals(self) -> Iterator[str]:
        yield from self._unused(self.body_statements(), list(self.statements()))

    def add_exactly(self, accumulator: t.Accumulator, value: str) -> str:
        """Another term of an exact sum."""
        raise NotImplementedError

    def room_for_terms(self, accumulator: t.Accumulator, count: str, deref: str = "") -> Iterator[str]:
        """Makes room for so many terms of an exact sum. deref: what leads from the name of the number of terms to it."""
        raise NotImplementedError

    def terms_added(self, accumulator: t.Accumulator, count: str, deref: str = "") -> Iterator[str]:
        """Notes that there are so many more terms."""
        raise NotImplementedError

    def place_of_term(self, accumulator: t.Accumulator, iteration: str, deref: str = "") -> str:
        """Where a strip's iteration puts its term, of those that there is room for."""
        raise NotImplementedError

    @contextmanager
    def _terms_at(self, sums: Sequence[t.Accumulator], iteration: str, deref: str = "") -> Iterator[None]:
        """What is written is an iteration of a strip, which adds one term to each of these sums."""
        self._term_places = {a.name: self.place_of_term(a, iteration, deref) for a in sums}
        try:
            yield
        finally:
            self._term_places = {}

    def rounded(self, statement: t.TypedRounded, value: str) -> Iterator[str]:
        """An exact sum that begins with a value, rounded."""
        raise NotImplementedError

    def accumulate(self, accumulator: t.Accumulator, target: str, value: str) -> str:
        """One update of the reduction kept in ``target``."""
        if accumulator.name in self._term_places:
            return f"{self._term_places[accumulator.name]} = {stripped(value)};"
        if accumulator.exact_sum:
            return self.add_exactly(accumulator, stripped(value))
        if accumulator.operator in ("=", "set", "is set", "kind", "noted"):
            return f"{target} = {stripped(value)};"
        if accumulator.operator in ("+", "terms"):
            cast = "" if accumulator.dtype in ("int64", "int32") else f"({C_TYPES[accumulator.dtype]})"
            return f"{target} = {cast}({target} + {value});"
        return f"{target} = lw_{accumulator.operator}_{SUFFIXES[accumulator.dtype]}({target}, {stripped(value)});"
