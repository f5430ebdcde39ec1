"""The calls of a program's regions while its driver is specialised: what they are given, what goes between ranks before them, and
what they leave."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from lapwing.errors import RefusedError
from lapwing.export.driver.calls import NestCall, PhasesCall, arrays_of
from lapwing.export.driver.code import Attempt, DriverCode, Run
from lapwing.export.driver.operations import CallNest, Choose, Result, Word
from lapwing.export.driver.partial_evaluation.blocks import Blocks
from lapwing.export.driver.partial_evaluation.evaluation import Evaluation
from lapwing.export.driver.partial_evaluation.local_calls import parameter_words
from lapwing.export.driver.partial_evaluation.state import Path, assign
from lapwing.export.driver.regions import RegionCalls
from lapwing.export.driver.residency import Boxes
from lapwing.export.driver.values import Known, Register, Several, Value, View, bits_of, shares_memory
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import ScalarType, scalar_type
from lapwing.loopnest.binding.scalars import set_again
from lapwing.loopnest.program.outlining import is_set_of, value_of


class Runs:
    """Of one driver: its instructions that call regions."""

    def __init__(self, code: DriverCode, calls: RegionCalls, evaluation: Evaluation, blocks: Blocks) -> None:
        self._code, self._calls, self._evaluation, self._blocks = code, calls, evaluation, blocks
        self._memories = evaluation.memories

    def run(self, run: Run, path: Path, after: frozenset[str]) -> bool:
        """A region by itself. after: the names that are read behind it. Returns whether the block ends with it."""
        outlined = run.region.outlined
        values = [self._input(path, expression, after) for expression in outlined.inputs]
        given = dict(zip(self._calls.parameters(run.number), values, strict=True))
        found = self._calls.region(run.number, given)
        bound, call = found.bound, found.call
        given = self._with_setups(path, bound, given, after)
        if call is None:
            self._nothing_done(path, bound, given)
            path.at += 1
            return False
        results = self._results([bound])
        if isinstance(call, NestCall):
            self._call_nest(run.node, call, [given], results, path)
        else:
            self._evaluation.local_calls.call(run.node, call, given, results, path)
        path.at += 1
        return self._after_call(path, [(bound, given)], path.at - 1, outlined.unset)

    def attempt(self, attempt: Attempt, path: Path, after: frozenset[str]) -> bool:
        """Several regions through one pipeline, where they fit each other. after, and what is returned, as of ``run``."""
        loop = self._calls.loop(attempt.number)
        here = path.at
        path.at += 1
        given = {name: self._evaluation.value(value, path, after) for name, value in attempt.sweeps.inputs.items()}
        over = self._evaluation.value(attempt.sweeps.over, path, after)
        arrays = {name: value for name, value in given.items() if isinstance(value, View)}
        if not isinstance(over, Known) or not isinstance(over.value, range) or _meet(arrays):
            return False
        calls = self._calls.sweeps(attempt.number, given, over.value)
        if calls is None:
            return False
        ends = []
        for call in calls:
            values = [self._with_setups(path, bound, self._own(bound, given), after) for bound in call.bounds]
            self._call_nest(attempt.node, call, values, self._results(call.bounds), path)
            ends += list(zip(call.bounds, values, strict=True))
        path.names |= {name: given[array] for name, array in loop.sweeps.exchanged_after(len(over.value)).items()}
        for output, start in loop.sweeps.outputs.items():
            if not any(output in bound.nest.returns for bound, _ in ends):
                assign(path, output, given[start])
        path.at = attempt.behind
        return self._after_call(path, ends, here)

    def _input(self, path: Path, expression: ast.expr, after: frozenset[str]) -> Value:
        if isinstance(expression, ast.Name) and " " in expression.id:
            name = expression.id.split(" ")[0]
            if expression.id == value_of(name):
                return path.names.get(name, Known(0))
            assert expression.id == is_set_of(name)
            return Known(name in path.names)
        return self._evaluation.value(expression, path, after | self._code.live[path.at])

    def _with_setups(
        self, path: Path, bound: BoundNest, given: Mapping[str, Value], after: frozenset[str]
    ) -> dict[str, Value]:
        """With what stands before the loops of a nest computed for numbers that are left to the program."""
        values: dict[str, Value] = {**given}
        outside = self._evaluation.names.look(Path(0, {}, {}))

        def look(name: str) -> Value:
            if name in values:
                return values[name]
            if name in bound.parameters:
                return Known(bound.parameters[name])
            return outside(name)

        changing = [name for name, value in given.items() if isinstance(value, Register)]
        for setup in set_again(bound.nest, changing) if changing else ():
            value = self._evaluation.value(setup.value, path, after, look)
            if len(setup.targets) == 1:
                values[setup.targets[0]] = value
            elif isinstance(value, Several):
                values |= dict(zip(setup.targets, value.items, strict=True))
            elif isinstance(value, Known):
                values |= {target: Known(one) for target, one in zip(setup.targets, value.value, strict=True)}
        return values

    def _nothing_done(self, path: Path, bound: BoundNest, given: Mapping[str, Value]) -> None:
        """A nest without iterations leaves what its reductions begin with."""
        for accumulator in bound.body.accumulators:
            if accumulator.operator != "at" and accumulator.of is None:
                assign(path, accumulator.result, self._start(bound, accumulator.result, given))

    def _start(self, bound: BoundNest, name: str, given: Mapping[str, Value]) -> Value:
        value = given.get(name)
        return value if isinstance(value, Register) else Known(bound.parameters[name])

    def _results(self, bounds: Sequence[BoundNest]) -> list[Result]:
        found = []
        for phase, bound in enumerate(bounds):
            for a in bound.body.accumulators:
                if a.operator in ("at", "noted"):
                    continue
                if a.part is not None:
                    raise RefusedError(
                        f"{bound.nest.where(bound.nest.line)}: {a.result} is a complex number, and an exported program has real "
                        "ones between its loops. Keep its parts apart."
                    )
                found.append(Result(phase, a.name, a.name, f"{a.name} kept" if _may_be_kept(bound, a) else None))
        return found

    def _call_nest(
        self,
        node: ast.AST,
        call: NestCall | PhasesCall,
        given: Sequence[Mapping[str, Value]],
        results: Sequence[Result],
        path: Path,
    ) -> None:
        everything = {name: value for values in given for name, value in values.items()}
        views = self._evaluation.names.views(node, call.bounds, everything)
        ranks = range(call.plan.ranks)
        needs: dict[str, list[Boxes]] = {}
        rounds: dict[str, list[list[Boxes]]] = {}
        nobody: tuple[Boxes, ...] = ((),) * (self._memories.ranks - len(ranks))
        for name in arrays_of(call):
            view = views[name]
            writes = [call.writes(name, rank) for rank in ranks]
            self._memories.keep(
                view.memory, [*(tuple(map(view.in_memory, call.room(name, rank))) for rank in ranks), *nobody]
            )
            boxes = needs.setdefault(view.memory, [()] * self._memories.ranks)
            for rank in ranks:
                # What a rank brings back it must have had: a guard may leave it as it was.
                own = (*call.needs(name, rank), *(box for boxes_ in writes[rank] for box in boxes_))
                boxes[rank] = (*boxes[rank], *map(view.in_memory, own))
            for k in range(max(map(len, writes), default=0)):
                turn = [tuple(map(view.in_memory, own[k])) if k < len(own) else () for own in writes]
                rounds.setdefault(view.memory, []).append([*turn, *nobody])
        self._memories.fetch(path, needs)
        words = [parameter_words(bound, values) for bound, values in zip(call.bounds, given, strict=True)]
        starts = [self._starts(bound, values) for bound, values in zip(call.bounds, given, strict=True)]
        path.done.append(CallNest(call, views, words, starts, results))
        for memory, turns in rounds.items():
            self._memories.written(path, memory, turns)

    def _starts(self, bound: BoundNest, given: Mapping[str, Value]) -> list[Word]:
        """What the accumulators of a nest begin with."""
        found: list[Word] = []
        for a in bound.body.accumulators:
            value = given.get(a.name)
            kind = float if a.dtype.startswith("float") else int
            found.append(value.name if isinstance(value, Register) else bits_of(kind(a.initial)))
        return found

    def _after_call(
        self,
        path: Path,
        calls: Sequence[tuple[BoundNest, Mapping[str, Value]]],
        here: int,
        may_be_unset: Collection[str] = (),
    ) -> bool:
        """Give names what a call leaves; whether the block ends, since what it leaves depends on the run. here: the call."""
        forks: list[tuple[Choose, Sequence[str], Value | None]] = []
        for bound, given in calls:
            told = {(a.of, a.operator): a for a in bound.body.accumulators if a.of is not None}
            for a in bound.body.accumulators:
                if a.operator == "at" or a.of is not None:
                    continue
                path.names[a.name] = Register(a.name, a.term or ScalarType(a.dtype, a.weak))
                if (kind := told.get((a.name, "kind"))) is not None:
                    forks += [
                        (Choose(kind.name, False, 0, 0, k), [a.name], Register(a.name, one))
                        for k, one in enumerate(kind.kinds, 1)
                    ]
                if (is_set := told.get((a.name, "is set"))) is not None and a.name in may_be_unset:
                    forks.append((Choose(is_set.name, False, 0, 0, 0), [a.name], None))
                if _may_be_kept(bound, a):
                    start = self._start(bound, a.name, given)
                    if not _is_of(start, a.term or ScalarType(a.dtype, a.weak)):
                        forks.append((Choose(f"{a.name} kept", False, 0, 0), [a.name], start))
        if not forks:
            return False
        self._blocks.open_loops(here)
        self._blocks.fork(path, forks)
        return True

    def _own(self, bound: BoundNest, given: Mapping[str, Value]) -> dict[str, Value]:
        return {name: value for name, value in given.items() if name in bound.nest.parameters}


def _may_be_kept(bound: BoundNest, a: t.Accumulator) -> bool:
    """Whether a reduction may be left with the very number that it began with, and that is found out."""
    if a.of is not None or a.operator == "at":
        return False
    if a.leader is not None or a.exact_sum or a.operator in ("max", "min", "set"):
        return True
    return any(other.of == a.name and other.operator == "noted" for other in bound.body.accumulators)


def _is_of(start: Value, kind: ScalarType) -> bool:
    if isinstance(start, Register):
        return start.type == kind
    return isinstance(start, Known) and scalar_type(start.value) == kind


def _meet(arrays: Mapping[str, View]) -> bool:
    views = list(arrays.values())
    return any(shares_memory(one, other) for k, one in enumerate(views) for other in views[:k])
