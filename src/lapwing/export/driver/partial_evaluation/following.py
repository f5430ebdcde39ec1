"""Follows a driver instruction by instruction, in every state that it may come to."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lapwing.api.nest import Nest
from lapwing.export.driver.code import (
    Assign,
    Attempt,
    Begin,
    Branch,
    DriverCode,
    Forget,
    Give,
    Instruction,
    Jump,
    Next,
    Run,
    Store,
)
from lapwing.export.driver.operations import Choose, Count, Go, SetTo, SpecialisedDriver, Stop
from lapwing.export.driver.partial_evaluation.blocks import Blocks, LoopsOf
from lapwing.export.driver.partial_evaluation.evaluation import Evaluation
from lapwing.export.driver.partial_evaluation.refusals import Raises, refuse
from lapwing.export.driver.partial_evaluation.results import Results
from lapwing.export.driver.partial_evaluation.runs import Runs
from lapwing.export.driver.partial_evaluation.state import Path, assign, held
from lapwing.export.driver.regions import RegionCalls
from lapwing.export.driver.values import Counting, Known, NeedsValue, Register, Several, Unrolled, Value, View
from lapwing.loopnest.binding.promotion import ScalarType

_WHOLE = ScalarType("int64", weak=True)


class Following:
    """Of one program for its arguments, with what has been found out about its loops so far. line: of the instruction where it
    is."""

    def __init__(
        self,
        nest: Nest,
        code: DriverCode,
        loops: LoopsOf,
        calls: RegionCalls,
        arguments: Mapping[str, Any],
        ranks: int,
    ) -> None:
        program = nest.program
        assert program is not None
        self._nest, self._code, self._loops = nest, code, loops
        self._source = program.program.source
        self._evaluation = Evaluation(self._source, ranks)
        self._entry = Path(0, {}, {})
        memories = self._evaluation.memories
        for name, value in arguments.items():
            is_array = isinstance(value, np.ndarray) and value.shape
            self._entry.names[name] = memories.given(name, value) if is_array else Known(value)
        self._inputs = tuple(memories.by_name)
        self._blocks = Blocks(nest, code.live, loops, self._evaluation.names, self._inputs)
        self._runs = Runs(code, calls, self._evaluation, self._blocks)
        self._results = Results(self._evaluation, self._inputs)
        self.line = self._source.first

    def followed(self) -> SpecialisedDriver:
        self._blocks.of(self._entry)
        for number, path in self._blocks.waiting():
            self._follow(number, path)
        memories = self._evaluation.memories
        memories.keep_copies()
        return SpecialisedDriver(
            self._nest.name, self._nest.where, memories.ranks, self._blocks.done, memories.by_name, self._inputs
        )

    def _follow(self, number: int, path: Path) -> None:
        begins = True
        while True:
            if not begins and path.at in self._loops.heads:
                target = self._blocks.of(path)
                path.done.append(Go(target))
                break
            begins = False
            instruction = self._code.instructions[path.at]
            self.line = instruction.line
            try:
                if self._step(instruction, path):
                    break
            except Raises as raised:
                path.done.append(Stop(str(raised)))
                break
        self._blocks.done[number] = path.done

    def _step(self, instruction: Instruction, path: Path) -> bool:
        """Do one instruction; whether the block ends with it."""
        after = self._code.live[path.at + 1]
        match instruction:
            case Assign(targets=targets, value=value):
                set_here = instruction.sets()
                found = self._evaluation.value(value, path, after - set_here)
                if isinstance(found, Register) and found.kinds:
                    return self._assign_of_some_type(path, targets, found)
                for target in targets:
                    self._assign(path, target, found)
                path.at += 1
            case Store(node=node):
                self._evaluation.store(node, path, after)
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
                return self._runs.run(instruction, path, after)
            case Attempt():
                return self._runs.attempt(instruction, path, after)
            case Give():
                path.done.append(self._results.end(instruction, path))
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
                refuse(
                    self._source,
                    target,
                    f"{ast.unparse(target)} gets the elements of an array",
                    "Name one after the other",
                )
        if len(items) != len(target.elts):
            refuse(
                self._source,
                target,
                f"{len(items)} values for {ast.unparse(target)}",
                "Give as many as there are names",
            )
        apart = [self._aside(path, item, k) for k, item in enumerate(items)]
        for one, item in zip(target.elts, apart, strict=True):
            self._assign(path, one, item)

    def _assign_of_some_type(self, path: Path, targets: Sequence[ast.expr], value: Register) -> bool:
        """Go on in another state for every type that a number may have."""
        here = path.at
        path.at += 1
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(names) < len(targets):
            refuse(
                self._source,
                targets[0],
                f"{ast.unparse(targets[0])} gets a number of several types",
                "Give it a name first",
            )
        for name in names:
            assign(path, name, replace(value, kinds=()))
        forks = [
            (Choose(f"{value.name} kind", False, 0, 0, k), names, Register(value.name, kind))
            for k, kind in enumerate(value.kinds, 1)
        ]
        self._blocks.open_loops(here)
        self._blocks.fork(path, forks)
        return True

    def _aside(self, path: Path, item: Value, number: int) -> Value:
        """A number of the program's where nothing is assigned to meanwhile: names may change places."""
        if not isinstance(item, Register):
            return item
        aside = replace(item, name=f"aside {number}")
        path.done.append(SetTo(aside.name, item.name))
        return aside

    def _branch(self, branch: Branch, path: Path, after: frozenset[str]) -> bool:
        test = self._evaluation.value(branch.test, path, after)
        match test:
            case Known(value=value):
                path.at = path.at + 1 if value else branch.otherwise
                return False
            case Register():
                self._blocks.open_loops(path.at)
                self._blocks.choose(path, test, path.at + 1, branch.otherwise)
                return True
        refuse(self._source, branch.test, f"{ast.unparse(branch.test)} is no number", "Compare numbers")

    def _begin(self, begin: Begin, path: Path, after: frozenset[str]) -> None:
        over = self._evaluation.value(begin.over, path, after)
        head = path.at + 1
        step = self._code.instructions[head]
        assert isinstance(step, Next)
        match over:
            case Register():
                raise NeedsValue(over, f"what {ast.unparse(begin.over)} goes over")
            case View():
                refuse(
                    self._source,
                    begin.over,
                    f"a loop over the elements of {ast.unparse(begin.over)}",
                    "Loop over range(…)",
                )
        if isinstance(over, Known):
            try:
                items: Any = over.value if isinstance(over.value, range) else tuple(over.value)
            except TypeError:
                refuse(
                    self._source, begin.over, f"{ast.unparse(begin.over)} is nothing to go over", "Loop over range(…)"
                )
            over = Known(items)
            counts = isinstance(items, range) and isinstance(step.target, ast.Name) and len(items) > 1
            if counts and head not in self._loops.unrolled:
                self._loops.open.add(head)
                path.names[begin.loop] = Counting(f"{begin.loop} position", items, True)
                path.at = head
                return
        if not isinstance(over, Known | Several):
            refuse(self._source, begin.over, f"{ast.unparse(begin.over)} is nothing to go over", "Loop over range(…)")
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
        blocks = self._blocks.entered(inside), self._blocks.entered(behind)
        path.done.append(Count(loop.position, loop.values, name, *blocks))
        return True
