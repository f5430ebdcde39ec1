"""What the generated C of a nest has in common: names, declarations, statements, loops of copies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from lapwing.affine.affine import Affine
from lapwing.codegen.expression import C_TYPES, SUFFIXES, Printer, stripped
from lapwing.codegen.names import Names
from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import scalar_type
from lapwing.loopnest.binding.typed import children, loads, walk

EXACT_WORDS = 72  # LW_EXACT_WORDS of support.h

_WIDTH = 120
_BREAKS = re.compile(r"(?<=,) | (?=(?:[-+*/%?:&|^<>]|&&|\|\||[<>=!]=) )")


class ModuleWriter:
    """Writes the parts of a C module for one bound nest. Text depends on types and structure, never on sizes."""

    def __init__(self, bound: BoundNest) -> None:
        self.bound = bound
        self.nest = bound.nest
        self.names = Names()
        self.loops = {loop.name: loop for loop in self.nest.loops}
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
        return self.names.get(("accumulator", name), name)

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
            affine.constant, tuple((self.index(n) if n in self.loops else self.scalar(n), c) for n, c in affine.terms)
        )
        return str(renamed)

    def element(self, array: str, subscripts: list[str]) -> str:
        return element(self.array(array), [self.stride(array, axis) for axis in range(len(subscripts) - 1)], subscripts)

    def _extent(self, array: str, axis: int) -> str:
        position = [a.name for a in self.bound.arrays].index(array)
        return f"tile->arrays[{position}].shape[{axis}]"

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
        bare += [statement.value for statement in self.bound.body.statements]
        for node in bare:
            if isinstance(node, t.Scalar):
                used.setdefault(node.name, set()).add(node.dtype)
        return frozenset(name for name, dtypes in used.items() if dtypes == {"int32"})

    def _nodes(self) -> Iterator[t.Typed]:
        for statement in self.bound.body.statements:
            yield from walk(statement.value)
            if isinstance(statement, t.TypedStore):
                yield from walk(statement.target)

    def accumulator_offsets(self) -> dict[str, int]:
        return accumulator_offsets(self.bound.body.accumulators)

    # -- text --------------------------------------------------------------------------------------------------------

    def heading(self, what: str) -> Iterator[str]:
        yield f"/* {what} Generated by Lapwing from {self.nest.name}:"
        yield " *"
        indent = ""
        for loop in self.nest.loops:
            step = "" if loop.step == 1 else ", -1"
            start = "" if loop.start == Affine(0) and not step else f"{loop.start}, "
            yield f" *   {indent}for {loop.name} in range({start}{loop.stop}{step}):"
            indent += "    "
        for statement in self.nest.body:
            yield f" *   {indent}{statement.text.replace('*/', '* /')}"
        yield " */"
        yield '#include "lapwing.h"'
        yield '#include "support.h"'

    def declarations(self, body: str) -> Iterator[str]:
        """Local names for what the body uses of the tile: arrays, strides, scalars, accumulators."""
        yield from self.array_declarations(body)
        yield from self.scalar_declarations(body)
        offsets = self.accumulator_offsets()
        for accumulator in self.bound.body.accumulators:
            name, offset = self.accumulator(accumulator.name), offsets[accumulator.name]
            if accumulator.exact_sum:
                yield f"int64_t *const {name} = &tile->accumulators[{offset}].i;"
            else:
                c_type, field = C_TYPES[accumulator.dtype], _field(accumulator)
                yield f"{c_type} {name} = ({c_type})tile->accumulators[{offset}].{field};"
        if self.bound.body.traps:
            yield "int64_t trap = tile->trap;"

    def array_declarations(self, body: str) -> Iterator[str]:
        for position, array in enumerate(self.bound.arrays):
            if not mentions(body, self.array(array.name)):
                continue
            const = "" if array.name in self.nest.written else "const "
            c_type = C_TYPES[array.dtype]
            yield f"{const}{c_type} *restrict const {self.array(array.name)} = tile->arrays[{position}].base;"
            for axis in range(len(array.shape) - 1):
                if mentions(body, self.stride(array.name, axis)):
                    yield f"const int64_t {self.stride(array.name, axis)} = tile->arrays[{position}].stride[{axis}];"

    def scalar_declarations(self, body: str) -> Iterator[str]:
        for position, name in enumerate(self.scalar_names()):
            if mentions(body, self.scalar(name)):
                c_type = self.scalar_c_type(name)
                field = "f" if c_type in ("double", "float") else "i"
                cast = "" if c_type in ("double", "int64_t") else f"({c_type})"
                yield f"const {c_type} {self.scalar(name)} = {cast}tile->scalars[{position}].{field};"

    def write_back(self) -> Iterator[str]:
        offsets = self.accumulator_offsets()
        for accumulator in self.bound.body.accumulators:
            if not accumulator.exact_sum:
                offset, name = offsets[accumulator.name], self.accumulator(accumulator.name)
                yield f"tile->accumulators[{offset}].{_field(accumulator)} = {name};"
        if self.bound.body.traps:
            yield "tile->trap = trap;"

    def statements(self) -> Iterator[str]:
        """The loop body; reductions are updated through pointers of their names, traps noted through ``trap``."""
        kinds = {a.name: a for a in self.bound.body.accumulators}
        statements = self.bound.body.statements
        self.printer.kept = {}
        for position, statement in enumerate(statements):
            value = self.printer.print(statement.value)
            match statement:
                case t.TypedStore(target=target):
                    kept = {load: name for load, name in self.printer.kept.items() if load.array != target.array}
                    if any(target in loads(later) for later in statements[position + 1 :]):
                        # C cannot know that nothing else was written in between, and would load it again.
                        name = self.names.get(("kept", position), f"{target.array}_new")
                        yield f"const {C_TYPES[target.dtype]} {name} = {stripped(value)};"
                        kept[target] = value = name
                    yield f"{self.printer.load(target)} = {stripped(value)};"
                    self.printer.kept = kept
                case t.TypedLocal(local=local):
                    yield f"const {C_TYPES[local.dtype]} {self._name(local)} = {stripped(value)};"
                case t.TypedAccumulate(name=name):
                    pointer = self.accumulator(name)
                    yield self.accumulate(kinds[name], pointer if kinds[name].exact_sum else f"*{pointer}", value)
        self.printer.kept = {}

    def accumulate(self, accumulator: t.Accumulator, target: str, value: str) -> str:
        """One update of the reduction kept in ``target``."""
        if accumulator.exact_sum:
            return f"lw_exact_add({target}, {stripped(value)});"
        if accumulator.operator == "+":
            cast = "" if accumulator.dtype in ("int64", "int32") else f"({C_TYPES[accumulator.dtype]})"
            return f"{target} = {cast}({target} + {value});"
        return f"{target} = lw_{accumulator.operator}_{SUFFIXES[accumulator.dtype]}({target}, {stripped(value)});"

    def point_function(self) -> Iterator[str]:
        """The loop body as a function of its own, so that every loop around it stays readable."""
        parameters = ", ".join(declared for declared, _ in self._point_parameters())
        yield from wrapped(f"LW_INLINE void {self._point()}({parameters}) {{")
        for line in indented([*self.statements(), *self.unused_locals()]):
            yield from wrapped(line)
        yield "}"

    def point_call(self, reductions: Mapping[str, str] | None = None) -> str:
        """A call of the loop body; ``reductions`` gives other C variables that some reductions are kept in."""
        replaced = {f"&{self.accumulator(name)}": f"&{kept}" for name, kept in (reductions or {}).items()}
        arguments = [replaced.get(argument, argument) for _, argument in self._point_parameters()]
        return f"{self._point()}({', '.join(arguments)});"

    def _point(self) -> str:
        return self.names.get("point", f"{self.nest.name}_point")

    def _point_parameters(self) -> list[tuple[str, str]]:
        """What the loop body uses, as parameters of its function and as arguments of the call."""
        body = "\n".join([*self.statements(), *self.unused_locals()])
        found: list[tuple[str, str]] = []
        if mentions(body, "tile"):
            found.append(("const lw_tile *tile", "tile"))
        for array in self.bound.arrays:
            name = self.array(array.name)
            const = "" if array.name in self.nest.written else "const "
            if mentions(body, name):
                found.append((f"{const}{C_TYPES[array.dtype]} *restrict {name}", name))
            strides = [self.stride(array.name, axis) for axis in range(len(array.shape) - 1)]
            found += [(f"int64_t {stride}", stride) for stride in strides if mentions(body, stride)]
        for parameter in self.scalar_names():
            name = self.scalar(parameter)
            if mentions(body, name):
                found.append((f"{self.scalar_c_type(parameter)} {name}", name))
        for accumulator in self.bound.body.accumulators:
            name = self.accumulator(accumulator.name)
            c_type = "int64_t" if accumulator.exact_sum else C_TYPES[accumulator.dtype]
            found.append((f"{c_type} *{name}", name if accumulator.exact_sum else f"&{name}"))
        if self.bound.body.traps:
            found.append(("int64_t *trap", "&trap"))
        for loop in self.nest.loop_names:
            if mentions(body, self.index(loop)):
                found.append((f"int64_t {self.index(loop)}", self.index(loop)))
        return found

    def unused_locals(self) -> Iterator[str]:
        """Silence warnings about temporaries the user set and never read."""
        body = list(self.statements())
        for statement in self.bound.body.statements:
            if isinstance(statement, t.TypedLocal):
                name = self._name(statement.local)
                if sum(mentions(line, name) for line in body) == 1:
                    yield f"(void){name};"

    def bounds(self, loop: ir.Loop) -> tuple[str, str]:
        """The loop's own bounds in normalised coordinates, half-open."""
        if loop.step == 1:
            return self.affine(loop.start), self.affine(loop.stop)
        return self.affine(-loop.start), self.affine(-loop.stop)


def element(array: str, strides: Sequence[str], subscripts: Sequence[str]) -> str:
    """The C text of an array element, from the C names of the array and of its strides but the last, which is 1."""
    parts = [f"{_factor(text)} * {stride}" for text, stride in zip(subscripts, strides, strict=False)]
    return f"{array}[{' + '.join([*parts, subscripts[-1]])}]"


def accumulator_offsets(accumulators: Sequence[t.Accumulator]) -> dict[str, int]:
    """The first word of each accumulator in the tile's accumulators."""
    offsets, next_word = {}, 0
    for accumulator in accumulators:
        offsets[accumulator.name] = next_word
        next_word += EXACT_WORDS if accumulator.exact_sum else 1
    return offsets


def accumulator_words(accumulators: Sequence[t.Accumulator]) -> int:
    return sum(EXACT_WORDS if a.exact_sum else 1 for a in accumulators)


def indented(lines: Iterator[str] | Sequence[str], depth: int = 1) -> Iterator[str]:
    for line in lines:
        yield "    " * depth + line if line else line


def _field(accumulator: t.Accumulator) -> str:
    return "f" if accumulator.dtype.startswith("float") else "i"


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def mentions(text: str, name: str) -> bool:
    position = text.find(name)
    while position >= 0:
        before = text[position - 1] if position else " "
        after = text[position + len(name)] if position + len(name) < len(text) else " "
        if not (before.isalnum() or before in "_.>") and not (after.isalnum() or after == "_"):
            return True
        position = text.find(name, position + 1)
    return False


def wrapped(line: str) -> Iterator[str]:
    """A line of C broken where it is too long to read: after commas and before operators."""
    indent = line[: len(line) - len(line.lstrip())]
    current, *pieces = _BREAKS.split(line)
    for piece in pieces:
        if len(current) + 1 + len(piece) > _WIDTH:
            yield current
            current = f"{indent}        {piece}"
        else:
            current = f"{current} {piece}"
    yield current
