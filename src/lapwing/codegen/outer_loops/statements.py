"""The iterations of a loop done together in lanes, as C: some vectors of them, side by side in every statement.

Straight statements in a row are one loop over these vectors. What they set for later is kept in arrays of vectors, which
compilers keep in registers. Where lanes go through an inner loop from or to different iterations, vectors do those that all
lanes have, and each lane does its others by itself, before and after; what has to follow iteration by iteration does so, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lapwing.codegen.body.expression import C_TYPES, SUFFIXES, Printer, stripped
from lapwing.codegen.body.names import Names
from lapwing.codegen.body.text import indented, mentions
from lapwing.codegen.outer_loops.candidates import OuterLoop, is_divided, is_ragged, rows_of
from lapwing.codegen.outer_loops.expressions import Lanes
from lapwing.codegen.outer_loops.independence import first_of
from lapwing.codegen.outer_loops.skewing import wanted_where
from lapwing.codegen.outer_loops.windows import Window
from lapwing.loopnest.binding import typed as t

VECTORS = 4  # LW_VECTORS of outer_loops.h
VECTORS_OF_ROWS = 2  # where squares of rows take registers, too

# Prints statements as they are, each by itself, at a place of its own.
Scalar = Callable[[Sequence[t.TypedStatement]], Iterator[str]]


class LaneStatements:
    """Writes the statements of one loop. name: of its index in C; scalar: prints statements for one iteration; accumulator: the C
    name of what points to one."""

    def __init__(
        self,
        loop: OuterLoop,
        printer: Printer,
        names: Names,
        name: str,
        stride: Callable[[str, int], str],
        scalar: Scalar,
        accumulator: Callable[[str], str],
    ) -> None:
        self.loop = loop
        self.lanes = Lanes(loop.index, loop.varying, printer, stride, self.element, self.own)
        self._printer, self._names, self._x, self._scalar = printer, names, name, scalar
        self._accumulator = accumulator
        self._handed_on = {s.local for s in loop.statements if isinstance(s, t.TypedLocal | t.TypedVariable)}
        later = (local for local in _locals_in(loop.later) if local in self._handed_on)
        self._mentioned = Counter((*_locals_in(loop.statements), *later))
        self._wanted = {
            local: where
            for s in t.all_statements(loop.statements)
            if isinstance(s, t.TypedFor)
            for local, where in wanted_where(s.body).items()
            if where[0] in loop.varying
        }
        self._stored: dict[t.Load, str] = {}  # of elements that are stored square by square, their places in these
        self._kept_steps: dict[t.Load, int] = {}  # of stores, for how many steps lanes keep what they stored
        for one in loop.carried:
            self._kept_steps[one.store] = max(one.steps, self._kept_steps.get(one.store, 0))

    def own(self, what: str) -> str:
        """A C name for what only vectors need."""
        return self._names.get(("outer loop", what), what)

    def vector(self, local: t.Local) -> str:
        """The C name of a local's vectors."""
        return self._names.get(("lanes of local", local), f"{self._printer.name(local)}_lanes")

    def element(self, local: t.Local) -> str:
        """The vector of a local at hand."""
        return self.vector(local) if local in self._private else f"{self.vector(local)}[{self.own('vector')}]"

    _private: frozenset[t.Local] = frozenset()

    # -- blocks ----------------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """All of them, for iterations from that of the C variable of the index on."""
        yield f"const int64_t {self._first} = {self._x};"
        yield from self._block(self.loop.statements)
        if self.loop.later:
            used = sorted(set(_locals_in(self.loop.later)) & self._handed_on, key=str)
            assigned = {s.local for s in t.all_statements(self.loop.later) if isinstance(s, t.TypedAssign)}
            own = [local for local in used if local in assigned]
            yield from self._by_lane(used, own, list(self._scalar(self.loop.later)))

    @property
    def _first(self) -> str:
        return self._printer.name(first_of(self.loop.index))

    @property
    def last(self) -> str:
        """Where the last vector begins at most."""
        return self._names.get(("last lanes", self.loop.index), f"{self._x}_last")

    def _at_vector(self, number: str) -> str:
        """Where a vector begins."""
        if not self.loop.repeats:
            return f"{self._first} + {number} * LW_LANES"
        return f"lw_min_i64({self._first} + {number} * LW_LANES, {self.last})"

    def _block(self, statements: Sequence[t.TypedStatement]) -> Iterator[str]:
        group: list[t.TypedStatement] = []

        def flushed() -> Iterator[str]:
            if group:
                yield from self._together(group)
                group.clear()

        for statement in statements:
            match statement:
                case t.TypedVariable(local=local, value=None) if local in self.loop.varying:
                    yield f"{self._declared(local)};"
                case t.TypedVariable(local=local, value=t.Typed() as value) if local in self.loop.varying:
                    yield f"{self._declared(local)};"
                    group.append(t.TypedAssign(statement.line, statement.text, local, value))
                case t.TypedLocal(local=local) | t.TypedAssign(local=local) if local in self.loop.varying:
                    group.append(statement)
                case t.TypedStore() | t.TypedAccumulate():
                    group.append(statement)
                case t.TypedLocal() | t.TypedVariable():
                    yield from self._scalar((statement,))
                case t.TypedAssign():
                    yield from flushed()
                    yield from self._scalar((statement,))
                case t.TypedIf(test=test, then=then, otherwise=otherwise):
                    yield from flushed()
                    yield f"if ({stripped(self._printer.print(test))}) {{"
                    yield from indented(list(self._block(then)))
                    if otherwise:
                        yield "} else {"
                        yield from indented(list(self._block(otherwise)))
                    yield "}"
                case t.TypedFor():
                    yield from flushed()
                    yield from self._ragged(statement) if is_ragged(statement, self.lanes) else self._for(statement)
                case _:
                    raise AssertionError(statement)
        yield from flushed()

    def _declared(self, local: t.Local) -> str:
        return f"lw_lanes_{SUFFIXES[local.dtype]} {self.vector(local)}[LW_VECTORS]"

    def _together(self, group: Sequence[t.TypedStatement]) -> Iterator[str]:
        """Straight statements, for one vector after the other."""
        own = {s.local for s in group if isinstance(s, t.TypedLocal)}
        inside = Counter(_locals_in(group))
        self._private = frozenset(local for local in own if inside[local] == self._mentioned[local])
        for local in sorted(own - self._private, key=str):
            yield f"{self._declared(local)};"
        vector, lines = self.own("vector"), list[str]()
        for statement in group:
            assert isinstance(statement, t.TypedStore | t.TypedLocal | t.TypedAssign | t.TypedAccumulate)
            before, value = self.lanes.print(statement.value)
            lines += before
            match statement:
                case t.TypedAccumulate(name=name):
                    kind = next(a for a in self.loop.extrema if a.name == name)
                    best = f"{self._extremum(kind)}[{vector}]"
                    function = "lw_greater" if kind.operator == "max" else "lw_lesser"
                    lines.append(f"{best} = {function}_{SUFFIXES[kind.dtype]}({best}, {value});")
                case t.TypedStore(target=target):
                    if target in self._kept_steps:
                        now = f"{self._ago(target, 0)}[{vector}]"
                        lines.append(f"{now} = {value};")
                        value = now
                    square = self._stored.get(target)
                    lines.append(f"{square} = {value};" if square else self.lanes.store(target, value))
                case t.TypedLocal(local=local) if local in self._wanted and any(
                    map(is_divided, t.walk(statement.value))
                ):
                    test, holds = self._wanted[local]
                    condition = f"lw_any({self.element(test)})" if holds else f"!lw_all({self.element(test)})"
                    lines[len(lines) - len(before) :] = [
                        *(
                            [f"lw_lanes_{SUFFIXES[local.dtype]} {self.element(local)};"]
                            if local in self._private
                            else ()
                        ),
                        f"{self.element(local)} = (lw_lanes_{SUFFIXES[local.dtype]}){{0}};",
                        f"if ({condition}) {{",
                        *indented([*before, f"{self.element(local)} = {value};"]),
                        "}",
                    ]
                case t.TypedLocal(local=local) | t.TypedAssign(local=local):
                    const = f"const lw_lanes_{SUFFIXES[local.dtype]} " if local in self._private else ""
                    lines.append(f"{const}{self.element(local)} = {value};")
        self._private = frozenset()
        yield "#pragma GCC unroll 4"
        yield f"for (int {vector} = 0; {vector} < {self.own('vectors')}; ++{vector}) {{"
        if any(mentions(line, self._x) for line in lines):
            yield f"    const int64_t {self._x} = {self._at_vector(vector)};"
        yield from indented(lines)
        yield "}"

    # -- loops -----------------------------------------------------------------------------------------------------------

    def _for(self, loop: t.TypedFor) -> Iterator[str]:
        """An inner loop that all lanes go through alike."""
        assert isinstance(loop.step, t.Literal)
        x, by = self._printer.name(loop.index), loop.step.value
        begin, end = (stripped(self._printer.print(bound)) for bound in (loop.start, loop.stop))
        assert isinstance(by, int)
        stop = self._names.get(("lanes end", id(loop)), f"{x}_stop")
        yield f"const int64_t {stop} = {end};"
        if squares := self._squares_of(loop):
            yield from self._in_squares(loop, *squares, begin, stop)
            return
        goes_on = f"{x} {'<' if by > 0 else '>'} {stop}"
        moves = f"++{x}" if by == 1 else f"--{x}" if by == -1 else f"{x} += {by}"
        yield f"for (int64_t {x} = {begin}; {goes_on}; {moves}) {{"
        yield from indented(list(self._block(loop.body)))
        yield "}"

    def _squares_of(self, loop: t.TypedFor) -> tuple[Sequence[Window], Sequence[t.Load]] | None:
        """The elements of the lanes' own rows that a loop loads, and stores, as many at once as there are lanes, if any."""
        rows = rows_of(loop, self.lanes, self.loop.most_rows, self.loop.ahead)
        stores = self.loop.stored_squares(loop, self.lanes)
        return (rows, stores) if rows or stores else None

    def _in_squares(
        self, loop: t.TypedFor, rows: Sequence[Window], stores: Sequence[t.Load], begin: str, end: str
    ) -> Iterator[str]:
        """A loop in which each lane goes through rows of its own: as many elements of all of them at once as there are lanes."""
        x, vector = self._printer.name(loop.index), self.own("vector")
        first, step = self._names.get(("square", id(loop)), f"{x}_square"), self.own("step")
        names = {w: self._names.get(("window", id(loop), w.first), f"{w.first.array}_square") for w in rows}
        stored = {load: self._names.get(("stored square", id(loop), load), f"{load.array}_stored") for load in stores}

        def of_vectors(lines: Sequence[str]) -> Iterator[str]:
            yield f"for (int {vector} = 0; {vector} < {self.own('vectors')}; ++{vector}) {{"
            yield f"    const int64_t {self._x} = {self._at_vector(vector)};"
            yield from indented(lines)
            yield "}"

        def is_backwards(load: t.Load) -> bool:
            return self.lanes.along_rows(load, loop.index.name) < 0

        def square(what: str, load: t.Load, vectors: str) -> list[str]:
            statement = self.lanes.square(what, load, vectors)
            last = [f"const int64_t {x} = {first} + LW_LANES - 1;", statement]  # which is the first in memory
            return ["{", *indented(last), "}"] if is_backwards(load) else [statement]

        def at(load: t.Load, behind: int = 0) -> str:
            return f"LW_LANES - 1 - {step}" if is_backwards(load) else f"{step} + {behind}" if behind else step

        yield "{"
        yield f"    int64_t {x} = {begin};"
        for window, name in names.items():
            kept = f"{window.behind} + LW_LANES" if window.behind else "LW_LANES"
            yield f"    lw_lanes_{SUFFIXES[window.first.dtype]} {name}[LW_VECTORS][{kept}];"
        before = [
            f"{name}[{vector}][{offset} + LW_LANES] = {self.lanes.load(window.element(offset))};"
            for window, name in names.items()
            for offset in range(window.behind)
        ]
        if before:
            yield f"    if ({x} <= {end} - LW_LANES) {{"
            yield from indented(list(of_vectors(before)), 2)
            yield "    }"
        yield f"    for (; {x} <= {end} - LW_LANES; {x} += LW_LANES) {{"
        yield f"        const int64_t {first} = {x};"
        for load, name in stored.items():
            yield f"        lw_lanes_{SUFFIXES[load.dtype]} {name}[LW_VECTORS][LW_LANES];"
        loads: list[str] = []
        for window, name in names.items():
            here = f"{name}[{vector}]"
            loads += [f"{here}[{k}] = {here}[{k} + LW_LANES];" for k in range(window.behind)]
            loads += square(
                "load", window.element(window.behind), f"{here} + {window.behind}" if window.behind else here
            )
        if loads:
            yield from indented(list(of_vectors(loads)), 2)
        yield "        #pragma GCC unroll 16"
        yield f"        for (int {step} = 0; {step} < LW_LANES; ++{step}) {{"
        yield f"            const int64_t {x} = {first} + {step};"
        self._stored = {load: f"{name}[{vector}][{at(load)}]" for load, name in stored.items()}
        placed = {
            load: f"{name}[{vector}][{at(load, offset)}]"
            for window, name in names.items()
            for load, offset in window.offsets.items()
        }
        body = list(self._step(loop, placed))
        self._stored = {}
        yield from indented([*body, *([] if any(mentions(line, x) for line in body) else [f"(void){x};"])], 3)
        yield "        }"
        if stored:
            stores_back = [line for load, name in stored.items() for line in square("store", load, f"{name}[{vector}]")]
            yield from indented(list(of_vectors(stores_back)), 2)
        yield "    }"
        yield f"    for (; {x} < {end}; ++{x}) {{"
        yield from indented(list(self._step(loop)), 2)
        yield "    }"
        yield "}"

    def _extremum(self, kind: t.Accumulator) -> str:
        """The C name of the vectors in which lanes look for one."""
        return self._names.get(("extremum in lanes", kind.name), f"{self._accumulator(kind.name)}_lanes")

    # -- what is carried from step to step ---------------------------------------------------------------------------------

    def _ago(self, target: t.Load, steps: int) -> str:
        """The C name of what lanes stored so many steps before."""
        return self._names.get(("stored", target, steps), f"{target.array}_{f'{steps}_ago' if steps else 'now'}")

    def _step(self, loop: t.TypedFor, placed: Mapping[t.Load, str] | None = None) -> Iterator[str]:
        """An iteration of an inner loop in all lanes. placed: elements that are in vectors, by their C texts."""
        vector = self.own("vector")
        names = {c: self._names.get(("carried", c.load), f"{c.load.array}_before") for c in self.loop.carried}
        for c, name in names.items():
            if c.by_lane_before:
                suffix, stored = SUFFIXES[c.load.dtype], self._ago(c.store, c.steps)
                first = f"lw_all_{suffix}({self._printer.in_array(c.load)})"
                yield f"lw_lanes_{suffix} {name}[LW_VECTORS];"
                yield "#pragma GCC unroll 4"
                yield f"for (int {vector} = 0; {vector} < {self.own('vectors')}; ++{vector}) {{"
                yield f"    const int64_t {self._x} = {self._first};"
                yield (
                    f"    {name}[{vector}] = lw_behind_{suffix}({vector} ? {stored}[{vector} - 1] : {first}, "
                    f"{stored}[{vector}]);"
                )
                yield "}"
        self.lanes.placed = {
            **(placed or {}),
            **{
                c.load: f"{name if c.by_lane_before else self._ago(c.store, c.steps)}[{vector}]"
                for c, name in names.items()
            },
        }
        yield from self._block(loop.body)
        self.lanes.placed = {}
        if self._kept_steps:
            yield "#pragma GCC unroll 4"
            yield f"for (int {vector} = 0; {vector} < {self.own('vectors')}; ++{vector}) {{"
            for target, steps in self._kept_steps.items():
                for k in range(steps, 0, -1):
                    yield f"    {self._ago(target, k)}[{vector}] = {self._ago(target, k - 1)}[{vector}];"
            yield "}"

    def _stored_before(self, x: str, bounds: tuple[str, str]) -> Iterator[str]:
        """For one lane, what it stored before the steps that all lanes have."""
        begin, end = bounds
        lane = self.own("lane")
        for target, steps in self._kept_steps.items():
            own = max((c.steps for c in self.loop.carried if c.store == target and not c.by_lane_before), default=0)
            for k in range(1, steps + 1):
                # The last lane's are wanted by itself alone: others it may not have.
                others = "" if k <= own else f" && {lane} < {self.own('vectors')} * LW_LANES - 1"
                there = f"{begin} < {end}{others}"
                yield f"if ({there}) {{"
                yield f"    const int64_t {x} = {begin} - {k};"
                place = f"[{lane} / LW_LANES][{lane} % LW_LANES]"
                yield f"    {self._ago(target, k)}{place} = {self._printer.in_array(target)};"
                yield "}"

    def _ragged(self, loop: t.TypedFor) -> Iterator[str]:
        """An inner loop that lanes go through from or to different iterations."""
        x = self._printer.name(loop.index)
        start, stop = (stripped(self._printer.print(bound)) for bound in (loop.start, loop.stop))
        begin, end = (self._names.get((what, id(loop)), f"{x}_{what}") for what in ("all_from", "all_until"))
        handed_on = sorted(self._set_in(self.loop.statements) & set(_locals_in((loop,))), key=str)
        declared = self._set_in(loop.body)
        used = [local for local in handed_on if local not in declared]
        of_bounds = [local for local in used if local in set(_locals_of(loop.start, loop.stop))]
        assigned = [s.local for s in loop.body if isinstance(s, t.TypedAssign) and s.local not in declared]
        yield f"int64_t {begin} = INT64_MIN, {end} = INT64_MAX;"
        yield from self._by_lane(
            of_bounds,
            (),
            [f"{begin} = lw_max_i64({begin}, {start});", f"{end} = lw_min_i64({end}, {stop});"],
        )
        yield f"if ({begin} > {end}) {begin} = {end};"
        body = list(self._scalar(loop.body))

        def alone(first: str, last: str, behind: Sequence[str] = ()) -> Iterator[str]:
            lines = [f"for (int64_t {x} = {first}; {x} < {last}; ++{x}) {{", *indented(body), "}", *behind]
            return self._by_lane(used, assigned, lines)

        for target, steps in self._kept_steps.items():
            names = ", ".join(f"{self._ago(target, k)}[LW_VECTORS]" for k in range(steps + 1))
            yield f"lw_lanes_{SUFFIXES[target.dtype]} {names};"
        yield from alone(start, f"lw_min_i64({begin}, {stop})", list(self._stored_before(x, (begin, end))))
        for kind in self.loop.extrema:
            suffix, name = SUFFIXES[kind.dtype], self._extremum(kind)
            yield f"lw_lanes_{suffix} {name}[LW_VECTORS];"
            first = f"lw_all_{suffix}(*{self._accumulator(kind.name)})"
            vector = self.own("vector")
            yield f"for (int {vector} = 0; {vector} < LW_VECTORS; ++{vector}) {name}[{vector}] = {first};"
        if squares := self._squares_of(loop):
            yield from self._in_squares(loop, *squares, begin, end)
        else:
            yield f"for (int64_t {x} = {begin}; {x} < {end}; ++{x}) {{"
            yield from indented(list(self._step(loop)))
            yield "}"
        lane = self.own("lane")
        for kind in self.loop.extrema:
            best, place = f"*{self._accumulator(kind.name)}", f"[{lane} / LW_LANES][{lane} % LW_LANES]"
            better = f"lw_{kind.operator}_{SUFFIXES[kind.dtype]}({best}, {self._extremum(kind)}{place})"
            yield f"for (int {lane} = 0; {lane} < {self.own('vectors')} * LW_LANES; ++{lane}) {best} = {better};"
        yield from alone(f"lw_max_i64({start}, {end})", stop)

    def _by_lane(self, used: Iterable[t.Local], assigned: Iterable[t.Local], lines: Sequence[str]) -> Iterator[str]:
        """Statements for one iteration after the other, which take locals out of their vectors and put some back."""
        lane, kept = self.own("lane"), set(assigned)
        yield f"for (int {lane} = 0; {lane} < {self.own('vectors')} * LW_LANES; ++{lane}) {{"
        place = f"{self._first} + {lane}"
        if self.loop.repeats:
            place = f"{self._at_vector(f'{lane} / LW_LANES')} + {lane} % LW_LANES"
        yield f"    const int64_t {self._x} = {place};"
        for local in dict.fromkeys((*used, *assigned)):
            if local in self.loop.varying:
                const = "" if local in kept else "const "
                truth = " != 0" if local.dtype == "bool" else ""
                name = self._printer.name(local)
                yield f"    {const}{C_TYPES[local.dtype]} {name} = {self._at(local, lane)}{truth};"
        yield from indented(lines)
        for local in sorted(kept, key=str):
            name = self._printer.name(local)
            yield f"    {self._at(local, lane)} = {f'-{name}' if local.dtype == 'bool' else name};"
        yield f"    (void){self._x};"
        yield "}"

    def _at(self, local: t.Local, lane: str) -> str:
        return f"{self.vector(local)}[{lane} / LW_LANES][{lane} % LW_LANES]"

    @staticmethod
    def _set_in(statements: Iterable[t.TypedStatement]) -> set[t.Local]:
        return {s.local for s in t.all_statements(statements) if isinstance(s, t.TypedLocal | t.TypedVariable)}


def _locals_of(*values: t.Typed) -> Iterator[t.Local]:
    for value in values:
        yield from (node for node in t.walk(value) if isinstance(node, t.Local))


def _locals_in(statements: Iterable[t.TypedStatement]) -> Iterator[t.Local]:
    """Every mention of a local in expressions, and where it is assigned to."""
    for statement in t.all_statements(statements):
        yield from _locals_of(*t.own_values(statement))
        if isinstance(statement, t.TypedAssign):
            yield statement.local


def free_names(loop: OuterLoop) -> tuple[list[t.Local], list[t.Index]]:
    """The locals that iterations take from around the loop, and the indices of loops inside of it."""
    statements = (*loop.statements, *loop.later)
    own = LaneStatements._set_in(statements)
    inner = [s.index for s in t.all_statements(statements) if isinstance(s, t.TypedFor)]
    return sorted(set(_locals_in(statements)) - own, key=str), inner
