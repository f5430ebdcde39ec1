"""Typed expressions printed as C vectors whose lanes are iterations of a loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from lapwing.affine.affine import Affine
from lapwing.codegen.body.expression import C_TYPES, SUFFIXES, Printer, strip_function, stripped
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.transposed import ITEMSIZES

_ARITHMETIC = frozenset({"+", "-", "*"})
_BITWISE = frozenset({"&", "|", "^"})
_COMPARED = frozenset({"<", "<=", ">", ">=", "==", "!="})
# Done lane by lane, of which compilers make vectors where there are such instructions.
_ONE_BY_ONE = frozenset(
    """
    sqrt abs // % << >> wrap numpy.sqrt numpy.fabs numpy.absolute numpy.square numpy.clip numpy.sign numpy.floor numpy.ceil
    numpy.trunc numpy.rint numpy.copysign numpy.maximum numpy.minimum numpy.fmax numpy.fmin math.fabs math.sqrt math.floor
    math.ceil math.trunc
    """.split()
)


class Lanes:
    """What differs from lane to lane in a loop over an index, and how it is computed.

    varying: the locals that do; stride: the C name of an array's stride; named: the C text of the vector of a local; own: a C
    name for what only vectors need. Expressions are printed where the C variable of the index is that of a vector's first lane.
    """

    def __init__(
        self,
        index: str,
        varying: Collection[t.Local],
        printer: Printer,
        stride: Callable[[str, int], str],
        named: Callable[[t.Local], str],
        own: Callable[[str], str],
    ) -> None:
        self.index, self.varying = index, varying
        self._printer, self._stride, self._named, self._own = printer, stride, named, own
        self.placed: dict[t.Load, str] = {}  # elements of all lanes that are in vectors already, by their C texts
        self._parts: list[str] = []  # statements that come before the expression that is printed
        self._count = 0

    def of(self, varying: Collection[t.Local]) -> Lanes:
        """The same with other locals that vary."""
        return Lanes(self.index, varying, self._printer, self._stride, self._named, self._own)

    def along(self, index: str) -> Lanes:
        """The same along another loop, of which no locals are known to vary."""
        return Lanes(index, frozenset(), self._printer, self._stride, self._named, self._own)

    # -- what is known of expressions ------------------------------------------------------------------------------------

    def varies(self, node: t.Typed) -> bool:
        """Whether lanes have different values."""
        if node in self._printer.named:
            return False
        match node:
            case t.Index(name=name):
                return name == self.index
            case t.Local():
                return node in self.varying
            case t.AffineValue(affine=affine):
                return self.index in affine.names
            case t.Load(subscripts=subscripts):
                return any(
                    self.index in s.affine.names if isinstance(s, t.AffineSubscript) else self.varies(s.index)
                    for s in subscripts
                )
        return any(map(self.varies, t.children(node)))

    def stride_of(self, load: t.Load) -> tuple[int, ...]:
        """By how many places an element moves from lane to lane, along every axis; indices that are looked up stay."""
        return tuple(
            s.affine.coefficient(self.index) if isinstance(s, t.AffineSubscript) else 0 for s in load.subscripts
        )

    def is_in_row(self, load: t.Load) -> bool:
        """Whether the elements of lanes lie side by side."""
        *outer, last = self.stride_of(load)
        return last == 1 and not any(outer)

    def along_rows(self, load: t.Load, index: str) -> int:
        """1 where each lane goes through a row of its own, element by element, along the loop over another index, -1 where it
        goes backwards; 0 where it does not."""
        *outer, _ = self.stride_of(load)
        if not any(outer) or load.dtype == "bool":
            return 0
        *others, own = (
            s.affine.coefficient(index) if isinstance(s, t.AffineSubscript) else None for s in load.subscripts
        )
        return own if own in (1, -1) and not any(others) else 0

    def square(self, what: str, load: t.Load, vectors: str) -> str:
        """The statement that loads as many elements of every lane's row as there are lanes into vectors, side by side, from this
        one on, or stores them from there."""
        first, distance = self._printer.in_array(load), self._distance(load)
        return f"lw_{what}_square_{SUFFIXES[load.dtype]}({vectors}, &{first}, {distance});"

    def fits(self, node: t.Typed) -> bool:
        """Whether an expression can be computed in lanes."""
        return all(not t.may_raise(part) and self._fits(part) for part in t.walk(node))

    def _fits(self, node: t.Typed) -> bool:
        if not self.varies(node):
            return True
        if node.dtype not in ITEMSIZES or node.dtype.startswith("complex"):
            return False
        match node:
            case t.Load(subscripts=subscripts):
                return not any(isinstance(s, t.LookupSubscript) and self.varies(s.index) for s in subscripts)
            case t.Convert(dtype=dtype, operand=operand):
                if operand.dtype.startswith("complex"):
                    return False
                return dtype != "bool" and not (operand.dtype.startswith("float") and not dtype.startswith("float"))
            case t.Select(speculable=speculable):
                return speculable
            case t.Operation(operator=operator, operands=operands):
                if strip_function(node) or any(o.dtype.startswith("complex") for o in operands):
                    return False
                of_bools = any(o.dtype == "bool" for o in operands)
                if operator in ("not", "&", "|", "^", "numpy.where"):
                    return True
                if of_bools:
                    return False
                if operator == "/":
                    return True
                known = _ARITHMETIC | _COMPARED | {"min", "max", "truth", "unary -", "unary ~", "isnan"}
                return operator in known or (operator in _ONE_BY_ONE and node.dtype != "bool")
        return True

    def sizes(self, node: t.Typed) -> Iterator[int]:
        """Bytes of what lanes compute with."""
        for part in t.walk(node):
            if self.varies(part) and part.dtype in ITEMSIZES:
                yield ITEMSIZES[part.dtype]

    # -- text ------------------------------------------------------------------------------------------------------------

    def print(self, node: t.Typed) -> tuple[list[str], str]:
        """The C text of a vector, and statements that come before it."""
        self._parts = []
        text = self._print(node)
        return self._parts, stripped(text)

    def _print(self, node: t.Typed) -> str:
        suffix = SUFFIXES[node.dtype]
        if not self.varies(node):
            return f"lw_all_{suffix}({stripped(self._printer.print(node))})"
        match node:
            case t.Index():
                return f"lw_index_from({self._printer.print(node)})"
            case t.AffineValue(affine=affine):
                factor, rest = affine.coefficient(self.index), affine.substitute({self.index: Affine(0)})
                index = f"lw_index_from({self._printer.name(t.Index('int64', self.index))})"
                return f"({_times(index, factor)} + ({self._printer.affine(rest)}))"
            case t.Local():
                return self._named(node)
            case t.Load():
                return self.load(node)
            case t.Convert(operand=operand):
                if operand.dtype == node.dtype:
                    return self._print(operand)
                if operand.dtype == "bool":
                    return f"lw_truth_{suffix}({stripped(self._print(operand))})"
                return f"__builtin_convertvector({stripped(self._print(operand))}, lw_lanes_{suffix})"
            case t.Select(test=test, then=then, otherwise=otherwise):
                return self._either(suffix, test, then, otherwise)
            case t.Operation():
                return self._operation(node, suffix)
        raise AssertionError(node)

    def _either(self, suffix: str, test: t.Typed, then: t.Typed, otherwise: t.Typed) -> str:
        texts = (stripped(self._print(part)) for part in (test, then, otherwise))
        return f"lw_either_{suffix}({', '.join(texts)})"

    def _operation(self, node: t.Operation, suffix: str) -> str:
        operator, of = node.operator, node.operands[0].dtype
        if operator == "numpy.where":
            return self._either(suffix, *node.operands)
        if operator in _ONE_BY_ONE:
            return self._one_by_one(node)
        operands = [self._print(o) for o in node.operands]
        if operator in _ARITHMETIC | _BITWISE:
            return f"({operands[0]} {operator} {operands[1]})"
        if operator in _COMPARED:
            return f"lw_mask_{SUFFIXES[of]}({operands[0]} {operator} {operands[1]})"
        match operator:
            case "/" if of.startswith("float"):
                return f"({operands[0]} / {operands[1]})"
            case "/":  # NumPy divides integers as doubles
                a, b = (f"__builtin_convertvector({stripped(o)}, lw_lanes_f64)" for o in operands)
                return f"({a} / {b})"
            case "unary -" | "unary ~":
                return f"({operator[-1]}{operands[0]})"
            case "not":
                return f"(~{operands[0]})"
            case "truth":
                return f"lw_mask_{SUFFIXES[of]}({operands[0]} != 0)"
            case "isnan":
                local = self._part(of, [f"{{}} = {stripped(operands[0])};"])
                return f"lw_mask_{SUFFIXES[of]}({local} != {local})"
            case "min" | "max":
                name = "lesser" if operator == "min" else "greater"
                return f"lw_{name}_{suffix}({', '.join(map(stripped, operands))})"
        raise AssertionError(operator)

    def _part(self, dtype: str, statements: Sequence[str]) -> str:
        """A vector that statements make, into which its name is inserted."""
        self._count += 1
        name = self._own(f"part_{self._count}")
        self._parts.append(f"lw_lanes_{SUFFIXES[dtype]} {name};")
        self._parts += [statement.format(name) for statement in statements]
        return name

    def _one_by_one(self, node: t.Operation) -> str:
        standing: dict[t.Typed, str] = {}
        operands, lane = list[t.Typed](), self._own("lane")
        for operand in node.operands:
            if not self.varies(operand):
                operands.append(operand)
                continue
            vector = self._part(operand.dtype, [f"{{}} = {stripped(self._print(operand))};"])
            local = t.Local(operand.dtype, f" {vector}", 1)
            # Elements of a vector in memory: compilers make vectors again of a loop over these.
            standing[local] = f"((const {C_TYPES[operand.dtype]} *)&{vector})[{lane}]"
            operands.append(local)
        with self._standing(standing):
            scalar = stripped(self._printer.print(t.Operation(node.dtype, node.operator, tuple(operands), None)))
        loop = f"for (int {lane} = 0; {lane} < LW_LANES; ++{lane}) (({C_TYPES[node.dtype]} *)&{{}})[{lane}] = {scalar};"
        return self._part(node.dtype, ["#pragma omp simd", loop])

    @contextmanager
    def _standing(self, named: dict[t.Typed, str]) -> Iterator[None]:
        """What is printed has these texts for some expressions."""
        before = self._printer.named
        self._printer.named = {**before, **named}
        try:
            yield
        finally:
            self._printer.named = before

    def load(self, load: t.Load) -> str:
        """The elements of all lanes, which are not all the same."""
        if load in self.placed:
            return self.placed[load]
        first, suffix = self._printer.in_array(load), SUFFIXES[load.dtype]
        if self.is_in_row(load):
            return f"lw_load_{suffix}(&{first})"
        return f"lw_gather_{suffix}(&{first}, {self._distance(load)})"

    def store(self, target: t.Load, value: str) -> str:
        """The statement that stores a vector to the elements of all lanes."""
        first, suffix = self._printer.in_array(target), SUFFIXES[target.dtype]
        if self.is_in_row(target):
            return f"lw_store_{suffix}(&{first}, {value});"
        return f"lw_scatter_{suffix}(&{first}, {self._distance(target)}, {value});"

    def _distance(self, load: t.Load) -> str:
        *outer, last = self.stride_of(load)
        terms = [_times(self._stride(load.array, axis), factor) for axis, factor in enumerate(outer) if factor]
        return " + ".join([*terms, *([str(last)] if last else [])])


def _times(text: str, factor: int) -> str:
    return text if factor == 1 else f"{factor} * {text}"
