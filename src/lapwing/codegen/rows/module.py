"""What the generated C of a nest has in common: names, declarations, statements, loops of copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, reduce

from lapwing.affine.affine import Affine
from lapwing.codegen.body.expression import C_TYPES, SUFFIXES, loop_variable, stripped
from lapwing.codegen.body.statements import StatementWriter
from lapwing.codegen.body.text import indented, mentions, plus, times, wrapped
from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import scalar_type
from lapwing.loopnest.binding.scalars import scalar_places
from lapwing.loopnest.binding.typed import children, numpy_loops, walk
from lapwing.tiling.invariants import conditional_invariants, costly_invariants, raising_invariants

EXACT_WORDS = 72  # LW_EXACT_WORDS of support.h


class ModuleWriter(StatementWriter):
    """Writes the parts of a C module for one bound nest."""

    def __init__(self, bound: BoundNest) -> None:
        super().__init__(bound)
        # What is computed before the loops: its C name, and its text there.
        self._invariants: list[tuple[t.Typed, str, str]] = []
        self._conditional: set[str] = set()  # the names of those that not every iteration comes to
        alike = dict.fromkeys((*raising_invariants(bound.body), *costly_invariants(bound.body)))
        conditional = conditional_invariants(bound.body)
        named: dict[t.Typed, str] = {}
        for number, node in enumerate((*alike, *conditional), 1):
            name = named[node] = self.names.get(("invariant", node), f"invariant_{number}")
            # Each by itself, though one may be part of another.
            self._invariants.append((node, name, self.printer.print(node)))
        for node in conditional:
            # What may raise is noted apart, and where an iteration comes to it.
            name = named[node]
            named[node] = f"lw_noting_{SUFFIXES[node.dtype]}({name}, {self._own_trap(name)}, trap)"
            self._conditional.add(name)
        self.printer.named = named

    def _own_trap(self, invariant: str) -> str:
        return self.names.get(("trap of", invariant), f"{invariant}_trap")

    # -- scalars and accumulators ------------------------------------------------------------------------------------

    def scalar_names(self) -> tuple[str, ...]:
        """The parameters generated code can use, in the order of the tile's scalars."""
        return tuple(self.bound.parameters)

    def scalar_c_type(self, name: str) -> str:
        kind = scalar_type(self.bound.parameters[name])
        assert kind is not None
        return "int32_t" if kind.dtype == "int64" and name in self._narrow_scalars else C_TYPES[kind.dtype]

    @cached_property
    def _narrow_scalars(self) -> frozenset[str]:
        """Integer scalars that the body only ever uses as 32-bit ones; gcc vectorises better without conversions."""
        used: dict[str, set[str]] = {name: {"int64"} for name, _ in self.nest.symbols}
        for node in self._nodes():
            if isinstance(node, t.Convert) and isinstance(node.operand, t.Scalar):
                used.setdefault(node.operand.name, set()).add(node.dtype)
        bare = [n for node in self._nodes() if not isinstance(node, t.Convert) for n in children(node)]
        bare += [value for s in t.all_statements(self.bound.body.statements) for value in t.own_values(s)]
        for node in bare:
            if isinstance(node, t.Scalar):
                used.setdefault(node.name, set()).add(node.dtype)
        return frozenset(name for name, dtypes in used.items() if dtypes == {"int32"})

    def _nodes(self) -> Iterator[t.Typed]:
        for statement in t.all_statements(self.bound.body.statements):
            for value in t.own_values(statement):
                yield from walk(value)

    def _has_floats_of_integers(self) -> bool:
        """Whether floats become integers, and integers that may be such ones become floats."""

        def is_integer(node: t.Typed) -> bool:
            return "int" in node.dtype and not isinstance(node, t.Index | t.AffineValue | t.Literal)

        into = [n for n in self._nodes() if isinstance(n, t.Convert) and is_integer(n) and "float" in n.operand.dtype]
        computed = (n for n in self._nodes() if isinstance(n, t.Convert | t.Operation) and "float" in n.dtype)
        return bool(into) and any(is_integer(operand) for node in computed for operand in children(node))

    def accumulator_offsets(self) -> dict[str, int]:
        return accumulator_offsets(self.bound.body.accumulators)

    def word(self, accumulator: t.Accumulator, row: str = "") -> str:
        """Where a reduction is handed over. row: of which sweep, where each has its own."""
        offset = str(self.accumulator_offsets()[accumulator.name])
        if row:
            offset = plus(times(accumulator_words(self.bound.body.accumulators), row), int(offset))
        is_float = accumulator.dtype.startswith("float") and not accumulator.exact_sum
        return f"tile->accumulators[{offset}].{'f' if is_float else 'i'}"

    @property
    def pointer_to_sum(self) -> str:
        """The C type of what leads to the words of an exact sum."""
        return "int64_t *const"

    # -- text --------------------------------------------------------------------------------------------------------

    def heading(self, what: str) -> Iterator[str]:
        yield f"/* {what} Generated by Lapwing from {self.nest.name}:"
        yield " *"
        indent = ""
        for loop in self.nest.loops:
            step = "" if loop.step == 1 else ", -1"
            first, beyond = ("max", "min") if loop.step == 1 else ("min", "max")
            start = "" if loop.starts == (Affine(0),) and not step else f"{_extremum(first, loop.starts)}, "
            yield f" *   {indent}for {loop.name} in range({start}{_extremum(beyond, loop.stops)}{step}):"
            indent += "    "
        for line in _source_lines(self.nest.body):
            yield f" *   {indent}{line.replace('*/', '* /')}"
        yield " */"
        yield '#include "lapwing.h"'
        if len(self.bound.body.traps) == 1:
            yield "#define LW_ONE_TRAP"
        if self._has_floats_of_integers():
            yield "#define LW_FLOATS_OF_INTEGERS"
        yield '#include "support.h"'
        for name, dtype in numpy_loops(self.bound.body):
            yield f"lw_numpy_loop {loop_variable(name, dtype)};"

    def declarations(self, body: str) -> Iterator[str]:
        """Local names for what the body uses of the tile: arrays, their strides and extents, scalars, accumulators."""
        yield from self.array_declarations(body)
        yield from self.scalar_declarations(body)
        for accumulator in self.bound.body.accumulators:
            name, c_type = self.accumulator(accumulator.name), C_TYPES[accumulator.dtype]
            if accumulator.exact_sum:
                yield f"{self.pointer_to_sum} {name} = &{self.word(accumulator)};"
                yield from self.terms(accumulator)
            else:
                yield f"{c_type} {name} = ({c_type}){self.word(accumulator)};"
        if self.bound.body.traps:
            yield "int64_t trap = tile->trap;"

    def array_declarations(self, body: str) -> Iterator[str]:
        for position, array in enumerate(self.bound.arrays):
            for axis in range(len(array.shape)):
                if mentions(body, self.extent(array.name, axis)):
                    yield f"const int64_t {self.extent(array.name, axis)} = tile->arrays[{position}].shape[{axis}];"
            if not mentions(body, self.array(array.name)):
                continue
            const = "" if array.name in self.nest.written else "const "
            c_type = C_TYPES[array.dtype]
            yield f"{const}{c_type} *restrict const {self.array(array.name)} = tile->arrays[{position}].base;"
            for axis in range(len(array.shape) - 1):
                if mentions(body, self.stride(array.name, axis)):
                    yield f"const int64_t {self.stride(array.name, axis)} = tile->arrays[{position}].stride[{axis}];"

    def scalar_declarations(self, body: str) -> Iterator[str]:
        for name, position in scalar_places(self.bound.parameters).items():
            if mentions(body, self.scalar(name)):
                c_type = self.scalar_c_type(name)
                if c_type == C_TYPES["complex128"] or c_type == C_TYPES["complex64"]:
                    part = "" if c_type == C_TYPES["complex128"] else "(float)"
                    parts = ", ".join(f"{part}tile->scalars[{position + k}].f" for k in (0, 1))
                    suffix = "c64" if part else "c128"
                    yield f"const {c_type} {self.scalar(name)} = lw_{suffix}({parts});"
                    continue
                field = "f" if c_type in ("double", "float") else "i"
                cast = "" if c_type in ("double", "int64_t") else f"({c_type})"
                yield f"const {c_type} {self.scalar(name)} = {cast}tile->scalars[{position}].{field};"

    def terms(self, accumulator: t.Accumulator) -> Iterator[str]:
        """Declares room for terms of an exact sum, which are added many at once."""
        terms, count = self.terms_names(accumulator)
        yield f"double {terms}[LW_TERMS + LW_PAIR] __attribute__((aligned(64)));"
        yield f"int64_t {count} = 0;"

    def add_exactly(self, accumulator: t.Accumulator, value: str) -> str:
        name, (terms, count) = self.accumulator(accumulator.name), self.terms_names(accumulator)
        return f"lw_exact_put({name}, {terms}, {count}, {value});"

    def room_for_terms(self, accumulator: t.Accumulator, count: str, deref: str = "") -> Iterator[str]:
        name, (terms, kept) = self.accumulator(accumulator.name), self.terms_names(accumulator)
        yield f"{deref}{kept} = lw_exact_keep({name}, {terms}, {deref}{kept}, {count});"

    def terms_added(self, accumulator: t.Accumulator, count: str, deref: str = "") -> Iterator[str]:
        yield f"{deref}{self.terms_names(accumulator)[1]} += {count};"

    def place_of_term(self, accumulator: t.Accumulator, iteration: str, deref: str = "") -> str:
        terms, kept = self.terms_names(accumulator)
        return f"{terms}[{deref}{kept} + {iteration}]"

    def rounded(self, statement: t.TypedRounded, value: str) -> Iterator[str]:
        accumulator = next(a for a in self.bound.body.accumulators if a.name == statement.accumulator)
        name, (terms, count) = self.accumulator(accumulator.name), self.terms_names(accumulator)
        if not accumulator.exact_sum:
            yield f"const int64_t {self._name(statement.local)} = {value} + *{name};"
            yield f"*{name} = 0;"
            return
        noted, local = (C_TYPES["bool"], self._name(statement.noted)), self._name(statement.local)
        yield f"const {noted[0]} {noted[1]} = lw_exact_has_terms({name}, *{count});"
        yield f"const {C_TYPES[statement.local.dtype]} {local} = lw_exact_rounded({name}, {terms}, {count}, {value});"
        yield f"(void){noted[1]};"

    def terms_names(self, accumulator: t.Accumulator) -> tuple[str, str]:
        """The C names of the terms of an exact sum that are not yet added, and of their number."""
        name = self.accumulator(accumulator.name)
        terms = self.names.get(("terms", accumulator.name), f"{name}_terms")
        return terms, self.names.get(("count", accumulator.name), f"{name}_count")

    def write_back(self) -> Iterator[str]:
        for accumulator in self.bound.body.accumulators:
            if accumulator.exact_sum:
                yield f"lw_exact_add_all({', '.join((self.accumulator(accumulator.name), *self.terms_names(accumulator)))});"
            else:
                yield f"{self.word(accumulator)} = {self.accumulator(accumulator.name)};"
        if self.bound.body.traps:
            yield "tile->trap = trap;"

    def read_again(self) -> Iterator[str]:
        """What was written back, after others may have changed it."""
        for accumulator in self.bound.body.accumulators:
            c_type, name = C_TYPES[accumulator.dtype], self.accumulator(accumulator.name)
            yield f"{name} = ({c_type}){self.word(accumulator)};"
        if self.bound.body.traps:
            yield "trap = tile->trap;"

    # -- invariants --------------------------------------------------------------------------------------------------

    def invariant_functions(self) -> Iterator[str]:
        """A function for everything that is computed before the loops."""
        for node, name, text in self._invariants:
            scalars = self._scalars_in(text)
            trap = ["int64_t *trap"] if mentions(text, "trap") else []
            parameters = ", ".join([*(f"{self.scalar_c_type(s)} {self.scalar(s)}" for s in scalars), *trap]) or "void"
            yield f"LW_INLINE {C_TYPES[node.dtype]} {self._function(name)}({parameters}) {{"
            yield from wrapped(f"    return {stripped(text)};")
            yield "}"
            yield ""

    def invariants(self, body: str) -> Iterator[str]:
        """Declarations of those that a body uses."""
        for node, name, text in self._invariants:
            if mentions(body, name):
                trap = []
                if name in self._conditional:
                    yield f"int64_t {self._own_trap(name)} = 0;"
                    trap = [f"&{self._own_trap(name)}"]
                elif mentions(text, "trap"):
                    trap = ["&trap"]
                arguments = ", ".join([*map(self.scalar, self._scalars_in(text)), *trap])
                yield f"const {C_TYPES[node.dtype]} {name} = {self._function(name)}({arguments});"

    def _function(self, invariant: str) -> str:
        return self.names.get(("function of", invariant), f"{self.nest.name}_{invariant}")

    def _scalars_in(self, text: str) -> list[str]:
        return [name for name in self.scalar_names() if mentions(text, self.scalar(name))]

    # -- the loop body -----------------------------------------------------------------------------------------------

    def point_function(self) -> Iterator[str]:
        """The loop body as a function of its own, so that every loop around it stays readable."""
        parameters = ", ".join(declared for declared, _ in self._point_parameters())
        yield from wrapped(f"LW_INLINE void {self.point_name()}({parameters}) {{")
        for line in indented([*self.statements(), *self.unused_locals()]):
            yield from wrapped(line)
        yield "}"

    def point_call(
        self, reductions: Mapping[str, str] | None = None, trap: str = "trap", places: Mapping[str, str] | None = None
    ) -> str:
        """A call of the loop body; ``reductions`` gives other C variables that some reductions are kept in, ``trap`` the one in
        which it is noted that the plain loop would raise, ``places`` what takes the place of other arguments."""
        replaced = {f"&{self.accumulator(name)}": f"&{kept}" for name, kept in (reductions or {}).items()}
        replaced |= {"&trap": f"&{trap}", **(places or {})}
        arguments = [replaced.get(argument, argument) for _, argument in self._point_parameters()]
        return f"{self.point_name()}({', '.join(arguments)});"

    def point_name(self) -> str:
        return self.names.get("point", f"{self.nest.name}_point")

    def _point_parameters(self) -> list[tuple[str, str]]:
        """What the loop body uses, as parameters of its function and as arguments of the call."""
        return self.parameters_of("\n".join([*self.statements(), *self.unused_locals()]))

    def parameters_of(self, body: str) -> list[tuple[str, str]]:
        """What a text of the loop body uses, as parameters of a function and as arguments of its call."""
        found: list[tuple[str, str]] = []
        if mentions(body, "tile"):
            found.append(("const lw_tile *tile", "tile"))
        for array in self.bound.arrays:
            name = self.array(array.name)
            const = "" if array.name in self.nest.written else "const "
            if mentions(body, name):
                found.append((f"{const}{C_TYPES[array.dtype]} *restrict {name}", name))
            strides = [self.stride(array.name, axis) for axis in range(len(array.shape) - 1)]
            extents = [self.extent(array.name, axis) for axis in range(len(array.shape))]
            found += [(f"int64_t {name}", name) for name in (*strides, *extents) if mentions(body, name)]
        found += [(declared, name) for declared, name in self.buffer_parameters() if mentions(body, name)]
        found += [(declared, given) for declared, given in self.local_parameters() if mentions(body, name_in(declared))]
        for parameter in self.scalar_names():
            name = self.scalar(parameter)
            if mentions(body, name):
                found.append((f"{self.scalar_c_type(parameter)} {name}", name))
        for node, name, _ in self._invariants:
            if mentions(body, name):
                found.append((f"{C_TYPES[node.dtype]} {name}", name))
            if mentions(body, self._own_trap(name)):
                found.append((f"int64_t {self._own_trap(name)}", self._own_trap(name)))
        for accumulator in self.bound.body.accumulators:
            parameters = self.accumulator_parameters(accumulator)
            found += [(declared, given) for declared, given in parameters if mentions(body, name_in(declared))]
        if mentions(body, "trap"):
            found.append(("int64_t *trap", "&trap"))
        for loop in self.nest.loop_names:
            if mentions(body, self.index(loop)):
                found.append((f"int64_t {self.index(loop)}", self.index(loop)))
        return found

    def accumulator_parameters(self, accumulator: t.Accumulator) -> list[tuple[str, str]]:
        """As parameters of the loop body's function and as arguments of its call."""
        if accumulator.exact_sum:
            return self.sum_parameters(accumulator)
        name = self.accumulator(accumulator.name)
        return [(f"{C_TYPES[accumulator.dtype]} *{name}", f"&{name}")]

    def sum_parameters(self, accumulator: t.Accumulator) -> list[tuple[str, str]]:
        """Of an exact sum, as parameters of the loop body's function and as arguments of its call."""
        name, (terms, count) = self.accumulator(accumulator.name), self.terms_names(accumulator)
        return [(f"int64_t *{name}", name), (f"double *{terms}", terms), (f"int64_t *{count}", f"&{count}")]

    def local_parameters(self) -> list[tuple[str, str]]:
        """Of locals that are set before, or read after, what is written: parameters of its function and arguments of the call."""
        return []

    def buffer_parameters(self) -> list[tuple[str, str]]:
        """Of what the loop body uses besides arrays: parameters of its function and arguments of the call."""
        return []

    def bounds(self, loop: ir.Loop) -> tuple[str, str]:
        """The loop's own bounds in normalised coordinates, half-open."""
        lowers, uppers = ([self.affine(bound * loop.step) for bound in bounds] for bounds in (loop.starts, loop.stops))
        return reduce("lw_max_i64({}, {})".format, lowers), reduce("lw_min_i64({}, {})".format, uppers)


def accumulator_offsets(accumulators: Sequence[t.Accumulator]) -> dict[str, int]:
    """The first word of each accumulator in the tile's accumulators."""
    offsets, next_word = {}, 0
    for accumulator in accumulators:
        offsets[accumulator.name] = next_word
        next_word += EXACT_WORDS if accumulator.exact_sum else 1
    return offsets


def accumulator_words(accumulators: Sequence[t.Accumulator]) -> int:
    return sum(EXACT_WORDS if a.exact_sum else 1 for a in accumulators)


def _extremum(function: str, bounds: Sequence[Affine]) -> str:
    """Bounds of a loop as Python writes them."""
    return str(bounds[0]) if len(bounds) == 1 else f"{function}({', '.join(map(str, bounds))})"


def name_in(declaration: str) -> str:
    return declaration.split()[-1].lstrip("*")


def _source_lines(body: Sequence[ir.Statement]) -> Iterator[str]:
    """Statements as the user wrote them."""
    for statement in body:
        yield statement.text
        for position, inner in enumerate(ir.inner_bodies(statement)):
            if position == 1 and inner:
                yield "else:"
            yield from indented(list(_source_lines(inner)))
