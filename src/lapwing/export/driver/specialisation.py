"""Specialises the driver of a program to the arguments of one problem: what follows from them is computed here and now, what does
not is left to the exported program.

A state is an instruction of the driver, what every name stands for there and which ranks have which elements. States are
followed from the beginning, each once, so that the graph of blocks that comes out has a loop wherever the driver comes back to a
state it has been in (polyvariant specialisation). Names that change places move nothing: a loop with ``u, v = v, u`` is followed
round twice.

Counters of loops are left to the program unless something asks for their values; then the loop is unrolled. Numbers that change
in every iteration of a loop of which nobody knows how often it goes round are left to it as well.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lapwing.api.nest import Nest
from lapwing.errors import RefusedError
from lapwing.export.driver.calls import NestCall, PhasesCall, arrays_of
from lapwing.export.driver.code import (
    Assign,
    Attempt,
    Begin,
    Branch,
    Forget,
    Give,
    Instruction,
    Jump,
    Next,
    Run,
    Store,
    driver_code,
)
from lapwing.export.driver.evaluation import Evaluation, NeedsValue, Path, Raises, assign, held, parameter_words
from lapwing.export.driver.operations import (
    CallNest,
    Choose,
    Count,
    End,
    Go,
    Operation,
    Printed,
    Result,
    SetTo,
    SpecialisedDriver,
    Stop,
    Word,
    Written,
)
from lapwing.export.driver.regions import RegionCalls
from lapwing.export.driver.residency import Boxes, Residency
from lapwing.export.driver.values import (
    Counting,
    Known,
    Register,
    Several,
    Unrolled,
    Value,
    View,
    bits_of,
    fits,
    memories_in,
    shares_memory,
)
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import ScalarType, scalar_type
from lapwing.loopnest.binding.scalars import set_again
from lapwing.loopnest.program.outlining import is_set_of, value_of

MOST_BLOCKS = 20_000
MOST_VALUES = 3  # of a number at the head of a loop, before it is left to the program
_WHOLE = ScalarType("int64", weak=True)


class _Again(Exception):
    """What has been found out about loops asks for following the driver anew."""


def specialise(nest: Nest, arguments: Mapping[str, Any], ranks: int, machine: str | None = None) -> SpecialisedDriver:
    """The program of a nest that is one, for these arguments (arrays are NumPy's) and so many ranks.

    machine: a file, or a cluster's name; None is this one. Raises RefusedError where its driver does what an exported program
    cannot, with the line and what to write instead.
    """
    program = nest.program
    assert program is not None
    file = program.program.source.file
    if program.procedures:
        name = next(iter(program.program.procedures))
        raise RefusedError(
            f"{nest.where}: {nest.name} calls {name}, a function with loops, and an exported program is one function. Write the "
            f"loops of {name} where it is called, or export it by itself."
        )
    code = driver_code(program.program)
    loops = _LoopsOf(code.instructions)
    calls = RegionCalls(nest, ranks, machine)
    while True:
        following = _Following(nest, code.instructions, code.live, loops, calls, arguments, ranks)
        try:
            return following.followed()
        except _Again:
            continue
        except NeedsValue as needed:
            if not loops.must_be_known(needed.register):
                raise RefusedError(
                    f"{file}:{following.line}: {needed}, and that is only known when the program runs. Pass it as an argument, "
                    "or compute it from arguments alone."
                ) from None


class _LoopsOf:
    """What has been found out about the loops of a driver. heads: by the number of the instruction where one begins anew, the
    last one in it."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.heads: dict[int, int] = {}
        for here, instruction in enumerate(instructions):
            if isinstance(instruction, Jump) and instruction.to <= here:
                self.heads[instruction.to] = max(here, self.heads.get(instruction.to, 0))
        self.unrolled: set[int] = set()
        self.left: set[tuple[int, str]] = set()  # names that at a head are numbers of the program's
        self.known: set[tuple[int, str]] = set()  # and those that must not be
        self.open: set[int] = set()  # heads of loops of which nobody knows how often they go round

    def around(self, at: int) -> list[int]:
        return [head for head, last in self.heads.items() if head <= at <= last]

    def must_be_known(self, register: Register) -> bool:
        """Let the value of a number be known; False where that cannot be."""
        before = len(self.unrolled) + len(self.known)
        for kind, head, name in register.origins:
            if kind == "name":
                self.known.add((head, name))
                self.left.discard((head, name))
            self.unrolled |= {head} if kind == "counter" else set(self.around(head))
        return len(self.unrolled) + len(self.known) > before


class _Following(Evaluation):
    def __init__(
        self,
        nest: Nest,
        instructions: Sequence[Instruction],
        live: Sequence[frozenset[str]],
        loops: _LoopsOf,
        calls: RegionCalls,
        arguments: Mapping[str, Any],
        ranks: int,
    ) -> None:
        program = nest.program
        assert program is not None
        super().__init__(program.program.source, ranks)
        self._nest, self._loops, self._calls, self._arguments = nest, loops, calls, arguments
        self._instructions, self._live = instructions, live
        self._blocks: list[Sequence[Operation]] = []
        self._states: dict[Any, int] = {}
        self._waiting: list[tuple[int, Path]] = []
        self._seen: dict[tuple[int, str], set[Known]] = {}
        self.line = program.program.source.first

    def followed(self) -> SpecialisedDriver:
        path = Path(0, {}, {})
        for name, value in self._arguments.items():
            is_array = isinstance(value, np.ndarray) and value.shape
            path.names[name] = self.given(name, value) if is_array else Known(value)
        inputs = tuple(self.memories)
        self._block(path)
        while self._waiting:
            number, path = self._waiting.pop()
            self._follow(number, path)
        self._keep_copies()
        return SpecialisedDriver(self._nest.name, self._nest.where, self.ranks, self._blocks, self.memories, inputs)

    def _keep_copies(self) -> None:
        """What is kept of a copy must be there in what it is a copy of."""
        while True:
            missing = [
                (kept, box)
                for copy, source in self.copies
                for kept, boxes in zip(self.memories[source].kept, self.memories[copy].kept, strict=True)
                for box in boxes
                if box not in kept
            ]
            if not missing:
                return
            for kept, box in missing:
                kept.append(box)

    # -- blocks --------------------------------------------------------------------------------------------------------------

    def _block(self, path: Path) -> int:
        """The block in which the program goes on in this state."""
        live = self._live[path.at]
        path.names = {name: value for name, value in path.names.items() if name in live}
        if path.at in self._loops.heads:
            self._leave_numbers(path)
        read = {memory for value in path.names.values() for memory in memories_in(value)}
        inputs = {name for name in self._arguments if name in self.memories}
        path.arrays = {
            memory: r for memory, r in path.arrays.items() if memory in read | inputs or self._is_outside(memory)
        }
        key = (path.at, frozenset(path.names.items()), frozenset(path.arrays.items()))
        if key not in self._states:
            self._states[key] = self._anonymous(path)
        return self._states[key]

    def _is_outside(self, memory: str) -> bool:
        return isinstance(self.outside.get(memory), np.ndarray)

    def _anonymous(self, path: Path | None = None) -> int:
        if len(self._blocks) == MOST_BLOCKS:
            raise RefusedError(
                f"{self._nest.where}: {self._nest.name} would be unrolled into more than {MOST_BLOCKS:,} steps. Let its loops "
                "depend less on their counters, or export it for fewer iterations."
            )
        self._blocks.append(())
        if path is not None:
            self._waiting.append((len(self._blocks) - 1, path.fork()))
        return len(self._blocks) - 1

    def _leave_numbers(self, path: Path) -> None:
        """At the head of a loop, leave numbers to the program that change with the iterations."""
        head = path.at
        for name, value in list(path.names.items()):
            place = (head, name)
            if place in self._loops.left and isinstance(value, Known) and value.is_number:
                path.done.append(SetTo(name, bits_of(value.value)))
                kind = scalar_type(value.value)
                assert kind is not None
                path.names[name] = Register(name, kind, frozenset({("name", head, name)}))
            elif head in self._loops.open and place not in self._loops.known and isinstance(value, Known):
                if not value.is_number or not fits(value.value):
                    continue
                seen = self._seen.setdefault(place, set())
                seen.add(value)
                if len(seen) > MOST_VALUES:
                    self._loops.left.add(place)
                    raise _Again

    def _open_loops(self, at: int) -> None:
        """Loops around a condition that is not known go round nobody knows how often."""
        found = set(self._loops.around(at)) - self._loops.open
        if found:
            self._loops.open |= found
            raise _Again

    def _follow(self, number: int, path: Path) -> None:
        begins = True
        while True:
            if not begins and path.at in self._loops.heads:
                target = self._block(path)
                path.done.append(Go(target))
                break
            begins = False
            instruction = self._instructions[path.at]
            self.line = instruction.line
            try:
                if self._step(instruction, path):
                    break
            except Raises as raised:
                path.done.append(Stop(str(raised)))
                break
        self._blocks[number] = path.done

    # -- instructions ----------------------------------------------------------------------------------------------------------

    def _step(self, instruction: Instruction, path: Path) -> bool:
        """Do one instruction; whether the block ends with it."""
        after = self._live[path.at + 1]
        match instruction:
            case Assign(targets=targets, value=value):
                set_here = instruction.sets()
                found = self.value(value, path, after - set_here)
                if isinstance(found, Register) and found.kinds:
                    return self._assign_of_some_type(path, targets, found)
                for target in targets:
                    self._assign(path, target, found)
                path.at += 1
            case Store(node=node):
                if not self.overwritten(node, path, after):
                    self.store(node, path, self.look(path))
                path.at += 1
            case Forget(names=names):
                for name in names:
                    path.names.pop(name, None)
                path.at += 1
            case Jump(to=to):
                path.at = to
            case Branch():
                return self._branch(instruction, path, after)
            case Begin():
                self._begin(instruction, path, after)
            case Next():
                return self._next(instruction, path)
            case Run():
                return self._run(instruction, path, after)
            case Attempt():
                return self._attempt(instruction, path, after)
            case Give():
                path.done.append(self._end(instruction, path))
                return True
        return False

    def _assign(self, path: Path, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            assign(path, target.id, value)
            return
        assert isinstance(target, ast.Tuple | ast.List)
        match value:
            case Several(items=items):
                pass
            case Known(value=tuple() | list() as known):
                items = tuple(map(Known, known))
            case _:
                self.refuse(target, f"{ast.unparse(target)} gets the elements of an array", "Name one after the other")
        if len(items) != len(target.elts):
            self.refuse(target, f"{len(items)} values for {ast.unparse(target)}", "Give as many as there are names")
        apart = [self._aside(path, item, k) for k, item in enumerate(items)]
        for one, item in zip(target.elts, apart, strict=True):
            self._assign(path, one, item)

    def _assign_of_some_type(self, path: Path, targets: Sequence[ast.expr], value: Register) -> bool:
        """Go on in another state for every type that a number may have."""
        here = path.at
        path.at += 1
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(names) < len(targets):
            self.refuse(targets[0], f"{ast.unparse(targets[0])} gets a number of several types", "Give it a name first")
        for name in names:
            assign(path, name, replace(value, kinds=()))
        forks = [
            (Choose(f"{value.name} kind", False, 0, 0, k), names, Register(value.name, kind))
            for k, kind in enumerate(value.kinds, 1)
        ]
        self._open_loops(here)
        self._fork(path, forks)
        return True

    def _aside(self, path: Path, item: Value, number: int) -> Value:
        """A number of the program's where nothing is assigned to meanwhile: names may change places."""
        if not isinstance(item, Register):
            return item
        aside = replace(item, name=f"aside {number}")
        path.done.append(SetTo(aside.name, item.name))
        return aside

    def _branch(self, branch: Branch, path: Path, after: frozenset[str]) -> bool:
        test = self.value(branch.test, path, after)
        match test:
            case Known(value=value):
                path.at = path.at + 1 if value else branch.otherwise
                return False
            case Register():
                self._open_loops(path.at)
                self._choose(path, test, path.at + 1, branch.otherwise)
                return True
        self.refuse(branch.test, f"{ast.unparse(branch.test)} is no number", "Compare numbers")

    def _choose(self, path: Path, test: Register, then: int, otherwise: int) -> None:
        blocks = []
        for at in (then, otherwise):
            side = path.fork()
            side.at = at
            blocks.append(self._entered(side))
        path.done.append(Choose(test.name, test.type.is_inexact, *blocks))

    def _entered(self, side: Path) -> int:
        """The block of a state to which a jump leads; where that is the head of a loop numbers may have to be left first."""
        target = self._block(side)
        if not side.done:
            return target
        number = self._anonymous()
        self._blocks[number] = [*side.done, Go(target)]
        return number

    def _begin(self, begin: Begin, path: Path, after: frozenset[str]) -> None:
        over = self.value(begin.over, path, after)
        head = path.at + 1
        step = self._instructions[head]
        assert isinstance(step, Next)
        match over:
            case Register():
                raise NeedsValue(over, f"what {ast.unparse(begin.over)} goes over")
            case View():
                self.refuse(begin.over, f"a loop over the elements of {ast.unparse(begin.over)}", "Loop over range(…)")
        if isinstance(over, Known):
            try:
                items: Any = over.value if isinstance(over.value, range) else tuple(over.value)
            except TypeError:
                self.refuse(begin.over, f"{ast.unparse(begin.over)} is nothing to go over", "Loop over range(…)")
            over = Known(items)
            counts = isinstance(items, range) and isinstance(step.target, ast.Name) and len(items) > 1
            if counts and head not in self._loops.unrolled:
                self._loops.open.add(head)
                path.names[begin.loop] = Counting(f"{begin.loop} position", items, True)
                path.at = head
                return
        if not isinstance(over, Known | Several):
            self.refuse(begin.over, f"{ast.unparse(begin.over)} is nothing to go over", "Loop over range(…)")
        items_held = held(path, begin.loop, over)
        assert isinstance(items_held, Known | Several)
        path.names[begin.loop] = Unrolled(items_held, 0)
        path.at = head

    def _next(self, step: Next, path: Path) -> bool:
        loop = path.names[step.loop]
        if isinstance(loop, Unrolled):
            items = loop.items.items if isinstance(loop.items, Several) else loop.items.value
            if loop.position == len(items):
                path.at = step.behind
                return False
            item = items[loop.position]
            path.names[step.loop] = replace(loop, position=loop.position + 1)
            self._assign(path, step.target, item if isinstance(loop.items, Several) else Known(item))
            path.at += 1
            return False
        assert isinstance(loop, Counting)
        assert isinstance(step.target, ast.Name)
        name = step.target.id
        counter = Register(name, _WHOLE, frozenset({("counter", path.at, name)}))
        if loop.begins:
            path.done += [SetTo(loop.position, 1), SetTo(name, loop.values.start)]
            path.names |= {step.loop: replace(loop, begins=False), name: counter}
            path.at += 1
            return False
        inside, behind = path.fork(), path.fork()
        inside.names[name] = counter
        inside.at, behind.at = path.at + 1, step.behind
        blocks = self._entered(inside), self._entered(behind)
        path.done.append(Count(loop.position, loop.values, name, *blocks))
        return True

    # -- regions ---------------------------------------------------------------------------------------------------------------

    def _run(self, run: Run, path: Path, after: frozenset[str]) -> bool:
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
            self.call_locally(run.node, call, given, results, path)
        path.at += 1
        return self._after_call(path, [(bound, given)], path.at - 1)

    def _input(self, path: Path, expression: ast.expr, after: frozenset[str]) -> Value:
        if isinstance(expression, ast.Name) and " " in expression.id:
            name = expression.id.split(" ")[0]
            if expression.id == value_of(name):
                return path.names.get(name, Known(0))
            assert expression.id == is_set_of(name)
            return Known(name in path.names)
        return self.value(expression, path, after | self._live[path.at])

    def _with_setups(
        self, path: Path, bound: BoundNest, given: Mapping[str, Value], after: frozenset[str]
    ) -> dict[str, Value]:
        """With what stands before the loops of a nest computed for numbers that are left to the program."""
        values: dict[str, Value] = {**given}
        outside = self.look(Path(0, {}, {}))

        def look(name: str) -> Value:
            if name in values:
                return values[name]
            if name in bound.parameters:
                return Known(bound.parameters[name])
            return outside(name)

        changing = [name for name, value in given.items() if isinstance(value, Register)]
        for setup in set_again(bound.nest, changing) if changing else ():
            value = self.value(setup.value, path, after, look)
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
        views = self.views(node, call.bounds, everything)
        ranks = range(call.plan.ranks)
        needs: dict[str, list[Boxes]] = {}
        rounds: dict[str, list[list[Boxes]]] = {}
        nobody: tuple[Boxes, ...] = ((),) * (self.ranks - len(ranks))
        for name in arrays_of(call):
            view = views[name]
            writes = [call.writes(name, rank) for rank in ranks]
            self.keep(view.memory, [*(tuple(map(view.in_memory, call.room(name, rank))) for rank in ranks), *nobody])
            boxes = needs.setdefault(view.memory, [()] * self.ranks)
            for rank in ranks:
                # What a rank brings back it must have had: a guard may leave it as it was.
                own = (*call.needs(name, rank), *(box for boxes_ in writes[rank] for box in boxes_))
                boxes[rank] = (*boxes[rank], *map(view.in_memory, own))
            for k in range(max(map(len, writes), default=0)):
                turn = [tuple(map(view.in_memory, own[k])) if k < len(own) else () for own in writes]
                rounds.setdefault(view.memory, []).append([*turn, *nobody])
        self.fetch(path, needs)
        words = [parameter_words(bound, values) for bound, values in zip(call.bounds, given, strict=True)]
        starts = [self._starts(bound, values) for bound, values in zip(call.bounds, given, strict=True)]
        path.done.append(CallNest(call, views, words, starts, results))
        for memory, turns in rounds.items():
            self.written(path, memory, turns)

    def _starts(self, bound: BoundNest, given: Mapping[str, Value]) -> list[Word]:
        """What the accumulators of a nest begin with."""
        found: list[Word] = []
        for a in bound.body.accumulators:
            value = given.get(a.name)
            kind = float if a.dtype.startswith("float") else int
            found.append(value.name if isinstance(value, Register) else bits_of(kind(a.initial)))
        return found

    def _after_call(self, path: Path, calls: Sequence[tuple[BoundNest, Mapping[str, Value]]], here: int) -> bool:
        """Give names what a call leaves; whether the block ends, since what it leaves depends on the run. here: the call."""
        run = self._instructions[here]
        may_be_unset = run.region.outlined.unset if isinstance(run, Run) else ()
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
        self._open_loops(here)
        self._fork(path, forks)
        return True

    def _fork(self, path: Path, forks: Sequence[tuple[Choose, Sequence[str], Value | None]]) -> None:
        """Go on in another state for every choice that holds."""
        (choose, names, value), *others = forks
        sides = []
        for holds in (True, False):
            side = path.fork()
            for name in names if holds else ():
                if value is None:
                    side.names.pop(name, None)
                else:  # a register of that name has the number
                    side.names[name] = replace(value, name=name) if isinstance(value, Register) else value
            if others:
                number = self._anonymous()
                self._fork(side, others)
                self._blocks[number] = side.done
                sides.append(number)
            else:
                sides.append(self._entered(side))
        path.done.append(replace(choose, then=sides[0], otherwise=sides[1]))

    def _attempt(self, attempt: Attempt, path: Path, after: frozenset[str]) -> bool:
        """Several regions through one pipeline, where they fit each other."""
        loop = self._calls.loop(attempt.number)
        here = path.at
        path.at += 1
        given = {name: self.value(value, path, after) for name, value in attempt.sweeps.inputs.items()}
        over = self.value(attempt.sweeps.over, path, after)
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
        exchanged = loop.sweeps.exchanged
        if exchanged and len(over.value) % 2:
            one, other = exchanged
            path.names |= {one: given[other], other: given[one]}
        for output, start in loop.sweeps.outputs.items():
            if not any(output in bound.nest.returns for bound, _ in ends):
                assign(path, output, given[start])
        path.at = attempt.behind
        return self._after_call(path, ends, here)

    def _own(self, bound: BoundNest, given: Mapping[str, Value]) -> dict[str, Value]:
        return {name: value for name, value in given.items() if name in bound.nest.parameters}

    # -- the end ---------------------------------------------------------------------------------------------------------------

    def _end(self, give: Give, path: Path) -> End:
        arrays: list[Written] = []
        numbers: list[Printed] = []
        if give.value is not None:
            value = self.value(give.value, path, frozenset(path.names))
            self._returned("returned", "returned", value, give.value, arrays, numbers, path)
        for name in self._arguments:
            as_it_was = Residency.new(("file", name), self.ranks)
            if name in self.memories and path.arrays.get(name, as_it_was) != as_it_was:
                memory = self.memories[name]
                arrays.append(self._output(name, View.of(name, memory.dtype, memory.shape), path))
        return End(tuple(arrays), tuple(numbers))

    def _returned(
        self,
        name: str,
        file: str,
        value: Value,
        node: ast.expr,
        arrays: list[Written],
        numbers: list[Printed],
        path: Path,
    ) -> None:
        match value:
            case Known(value=None):
                pass
            case Known(value=tuple() | list() as items):
                for k, one in enumerate(items):
                    self._returned(f"{name}[{k}]", f"{file}_{k}", Known(one), node, arrays, numbers, path)
            case Known(value=number):
                text = str(number.item() if isinstance(number, np.generic) else number)
                numbers.append(Printed(name, text))
            case Several(items=items):
                for k, item in enumerate(items):
                    self._returned(f"{name}[{k}]", f"{file}_{k}", item, node, arrays, numbers, path)
            case Register():
                numbers.append(Printed(name, "", value.name, value.type.dtype))
            case View():
                if not value.is_whole:
                    self.refuse(node, f"{ast.unparse(node)} returns a part of an array", "Return the array")
                arrays.append(self._output(file, value, path))

    def _output(self, name: str, view: View, path: Path) -> Written:
        residency = self.residency(path, view.memory)
        owned = residency.owned()
        self.keep(view.memory, owned)
        return Written(name, view, residency.origin, owned)


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
