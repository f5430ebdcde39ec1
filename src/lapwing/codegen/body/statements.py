"""Statements of a nest printed as C, with the names of one module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lapwing.affine.affine import Affine
from lapwing.codegen.body.expression import C_TYPES, SUFFIXES, Printer, stripped
from lapwing.codegen.body.names import Names
from lapwing.codegen.body.text import element, indented, mentions
from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.typed import loads

_Place = tuple[int, ...]  # of a statement: its position in its block, after that of the statement the block is in


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
        self.printer = Printer(self._name, self.element, self._extent, self.affine)

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

    def _extent(self, array: str, axis: int) -> str:
        position = [a.name for a in self.bound.arrays].index(array)
        return f"tile->arrays[{position}].shape[{axis}]"

    # -- statements --------------------------------------------------------------------------------------------------

    def statements(self) -> Iterator[str]:
        """The loop body; reductions are updated through pointers of their names, traps noted through ``trap``."""
        yield from self._block(self.bound.body.statements, ())

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
            case t.TypedAccumulate(position=position) if position:
                yield from self._extremum(statement)
            case t.TypedAccumulate(name=name):
                kind = next(a for a in self.bound.body.accumulators if a.name == name)
                pointer = self.accumulator(name)
                yield self.accumulate(kind, pointer if kind.exact_sum else f"*{pointer}", value)

    def _extremum(self, statement: t.TypedAccumulate) -> Iterator[str]:
        """An extremum with its argument: of equal values the first iteration's counts, or the last one's."""
        kind = next(a for a in self.bound.body.accumulators if a.name == statement.name)
        best, value = self.accumulator(kind.name), self.names.get(("value for", kind.name), f"{kind.name}_here")
        yield "{"
        yield f"    const {C_TYPES[kind.dtype]} {value} = {stripped(self.printer.print(statement.value))};"
        places = [
            (self.printer.print(x), f"*{self.accumulator(f'{kind.name} at {loop.name}')}")
            for x, loop in zip(statement.position, self.nest.loops, strict=True)
        ]
        earlier = ""
        for here, there in reversed(places):
            earlier = f"{here} < {there}" + (f" || ({here} == {there} && ({earlier}))" if earlier else "")
        counts = f"!({earlier})" if kind.operator in (">=", "<=") else f"({earlier})"
        yield f"    if ({value} {kind.operator[0]} *{best} || ({value} == *{best} && {counts})) {{"
        yield f"        *{best} = {value};"
        for here, there in places:
            yield f"        {there} = {here};"
        for name, its in statement.payload:
            yield f"        *{self.accumulator(name)} = {stripped(self.printer.print(its))};"
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
            case t.TypedFor(index=index, start=start, stop=stop, step=step, body=body):
                x = self.index(index.name)
                end = self.names.get(("end", *place), f"{x}_end")
                first, last = (stripped(self.printer.print(bound)) for bound in (start, stop))
                yield f"const int64_t {end} = {last};"
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
                yield f"for (int64_t {x} = {first}; {goes_on}; {moves}) {{"
                yield from self._inner_block(body, place)
                yield "}"
            case t.TypedWhile(test=test, body=body):
                text = stripped(self.printer.print(test))
                # A loop that would go on because of what was met on the way must end.
                yield f"while (*trap == 0 && ({text})) {{" if self.bound.body.traps else f"while ({text}) {{"
                yield from self._inner_block(body, place)
                yield "}"
            case t.TypedCheck():
                yield self.printer.check(statement)
            case t.TypedJump(kind=kind):
                yield f"{kind};"

    def _inner_block(self, statements: Sequence[t.TypedStatement], place: _Place) -> Iterator[str]:
        lines = list(self._block(statements, place))
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
        yield from self._unused(self.bound.body.statements, list(self.statements()))

    def add_exactly(self, accumulator: t.Accumulator, value: str) -> str:
        """Another term of an exact sum."""
        raise NotImplementedError

    def accumulate(self, accumulator: t.Accumulator, target: str, value: str) -> str:
        """One update of the reduction kept in ``target``."""
        if accumulator.exact_sum:
            return self.add_exactly(accumulator, stripped(value))
        if accumulator.operator in ("=", "set", "is set", "kind", "noted"):
            return f"{target} = {stripped(value)};"
        if accumulator.operator == "+":
            cast = "" if accumulator.dtype in ("int64", "int32") else f"({C_TYPES[accumulator.dtype]})"
            return f"{target} = {cast}({target} + {value});"
        return f"{target} = lw_{accumulator.operator}_{SUFFIXES[accumulator.dtype]}({target}, {stripped(value)});"
