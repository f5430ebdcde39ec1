"""The choice of a tile's inner form: by what was measured, or else by how long the innermost loop's chain is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lapwing.loopnest import powers
from lapwing.loopnest import typed as t
from lapwing.loopnest.binding import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.tiling.inner import InnerForm, legal_forms, usual_lanes

# Cycles from an operand to the result, about alike on all cores of the last ten years.
_FLOAT_CYCLES = {"+": 4, "-": 4, "*": 4, "/": 14, "sqrt": 18, "min": 4, "max": 4, "abs": 1, "//": 40, "%": 40}
_INTEGER_CYCLES = {"*": 3, "min": 2, "max": 2, "abs": 2, "/": 18, "//": 20, "%": 20}
_CALL_CYCLES = 40  # of the math library, powers too
_CONVERSION_CYCLES, _SELECT_CYCLES = 5, 2
# With lanes a point takes one load and one store more, each from a row of its own: so many cycles, when all overlap.
LANES_CYCLES = 8
_NOT_CHAINED = -(10**6)


@dataclass(frozen=True)
class InnerChoice:
    """A form, and why: seconds per point of all forms that were measured, the fastest first, or a rule.

    ``rivals``: how many other forms there are.
    """

    form: InnerForm
    rule: str
    rivals: int = 0
    measured: tuple[tuple[InnerForm, float], ...] = ()

    @property
    def is_guess(self) -> bool:
        """Whether other forms might be faster for all one knows."""
        return self.rivals > 0 and not self.measured

    def describe(self, loops: Sequence[str]) -> str:
        """In words; ``loops`` are the names of the space loops."""
        name = self.form.describe(loops)
        if not self.measured:
            return f"{name}: {self.rule}"
        (_, best), *others = self.measured
        slower = "".join(f"; {form.describe(loops)} {1e9 * seconds:.3g}" for form, seconds in others)
        return f"{name}, measured {1e9 * best:.3g} ns a point{slower}"

    def to_json(self, loops: Sequence[str]) -> dict[str, object]:
        return {
            "form": self.form.describe(loops),
            "rule": None if self.measured else self.rule,
            "seconds_per_point": {form.describe(loops): seconds for form, seconds in self.measured},
        }


def choice_by_rule(bound: BoundNest, dependences: Sequence[Dependence]) -> InnerChoice:
    """The form to take where nothing was measured.

    bound, dependences: in the coordinates that are cut into tiles.
    """
    forms = legal_forms(bound, dependences)
    rivals = len(forms) - 1
    innermost = forms[-1].order[
        -1
    ]  # forms in another order come last, and are there because arrays are contiguous in it
    name = bound.nest.space_loops[innermost].name
    of_order = [form for form in forms if form.order[-1] == innermost]
    plain = of_order[0]
    if plain.independent:
        return InnerChoice(plain, f"no dependence joins the iterations of {name}", rivals)
    cycles, lanes = chain_cycles(bound, name), usual_lanes(bound)
    wanted = lanes if cycles > LANES_CYCLES else 1
    form = next((form for form in of_order if form.lanes == wanted), plain)
    rule = f"along {name} each point waits about {cycles} cycles for the one before it"
    if lanes == 1 and cycles > LANES_CYCLES and len(of_order) > 1:
        rule += ", but rows of so many arrays side by side are more than the prefetchers can follow"
    return InnerChoice(form, rule, rivals)


def choice_by_measurement(by_rule: InnerChoice, seconds: Mapping[InnerForm, float]) -> InnerChoice:
    """The fastest form; seconds per point of every form measured."""
    ranked = tuple(sorted(seconds.items(), key=lambda item: item[1]))
    return InnerChoice(ranked[0][0], by_rule.rule, by_rule.rivals, ranked) if ranked else by_rule


def chain_cycles(bound: BoundNest, innermost: str) -> int:
    """About how many cycles a point waits for the one before it along a loop: the longest chain of operations from an
    element that one wrote to the element that the next will read."""
    step = bound.nest.loops[bound.nest.loop_names.index(innermost)].step
    stores = [s.target for s in bound.body.statements if isinstance(s, t.TypedStore)]
    known: dict[t.Typed, int] = {}  # cycles since the point before, of temporaries and elements set here

    def depth(node: t.Typed) -> int:
        if node in known:
            return known[node]
        if isinstance(node, t.Load):
            return 0 if any(_distance(node, target, innermost) * step > 0 for target in stores) else _NOT_CHAINED
        deepest = max(map(depth, t.children(node)), default=_NOT_CHAINED)
        return deepest + _cycles(node) if deepest >= 0 else _NOT_CHAINED

    longest = 0
    for statement in bound.body.statements:
        cycles = depth(statement.value)
        match statement:
            case t.TypedStore(target=target):
                known[target] = cycles
                longest = max(longest, cycles)
            case t.TypedLocal(local=local):
                known[local] = cycles
    return longest


def _distance(load: t.Load, target: t.Load, innermost: str) -> int:
    """How far along a loop an element lies behind the one that is written; 0 where it differs in other ways."""
    if load.array != target.array:
        return 0
    found = 0
    for read, written in zip(load.subscripts, target.subscripts, strict=True):
        if not (isinstance(read, t.AffineSubscript) and isinstance(written, t.AffineSubscript)):
            return 0
        apart = written.affine - read.affine
        if apart.terms or (apart.constant and innermost not in written.affine.names):
            return 0
        found += apart.constant
    return found


def _cycles(node: t.Typed) -> int:
    match node:
        case t.Convert(operand=operand):
            mixed = operand.dtype.startswith("float") != node.dtype.startswith("float")
            return _CONVERSION_CYCLES if mixed else 0
        case t.Select():
            return _SELECT_CYCLES
        case t.Operation(operator=operator, operands=operands):
            if powers.is_power(node) and powers.exponent(node) in powers.QUICK:
                return 3 * _FLOAT_CYCLES["*"]
            if operator.startswith("math.") or operator == "**":
                return _CALL_CYCLES
            if operands[0].dtype.startswith("float"):
                return _FLOAT_CYCLES.get(operator, _SELECT_CYCLES)
            return _INTEGER_CYCLES.get(operator, 1)
    return 0
