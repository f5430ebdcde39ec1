"""The blocks of an exported program, one for every state that its driver is in, and what is found out about the loops of the
driver on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lapwing.api.nest import Nest
from lapwing.errors import RefusedError
from lapwing.export.driver.code import Instruction, Jump
from lapwing.export.driver.operations import Choose, Go, Operation, SetTo
from lapwing.export.driver.partial_evaluation.names import Names
from lapwing.export.driver.partial_evaluation.state import Path
from lapwing.export.driver.values import Known, Register, Value, bits_of, fits, memories_in
from lapwing.loopnest.binding.promotion import scalar_type

MOST_BLOCKS = 20_000
MOST_VALUES = 3  # of a number at the head of a loop, before it is left to the program


class Again(Exception):
    """What has been found out about loops asks for following the driver anew."""


class LoopsOf:
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


class Blocks:
    """Of one program. inputs: the arrays passed. done: by number, what blocks do."""

    def __init__(
        self, nest: Nest, live: Sequence[frozenset[str]], loops: LoopsOf, names: Names, inputs: Sequence[str]
    ) -> None:
        self._nest, self._live, self._loops, self._names = nest, live, loops, names
        self._inputs = frozenset(inputs)
        self.done: list[Sequence[Operation]] = []
        self._states: dict[Any, int] = {}
        self._waiting: list[tuple[int, Path]] = []
        self._seen: dict[tuple[int, str], set[Known]] = {}

    def waiting(self) -> Iterator[tuple[int, Path]]:
        """Blocks that have nothing in them yet, by number, and the states in which they begin."""
        while self._waiting:
            yield self._waiting.pop()

    def of(self, path: Path) -> int:
        """The block in which the program goes on in this state."""
        live = self._live[path.at]
        path.names = {name: value for name, value in path.names.items() if name in live}
        if path.at in self._loops.heads:
            self._leave_numbers(path)
        read = {memory for value in path.names.values() for memory in memories_in(value)}
        path.arrays = {
            memory: residency
            for memory, residency in path.arrays.items()
            if memory in read | self._inputs or self._names.is_array_outside(memory)
        }
        key = (path.at, frozenset(path.names.items()), frozenset(path.arrays.items()))
        if key not in self._states:
            self._states[key] = self._new(path)
        return self._states[key]

    def _new(self, path: Path | None = None) -> int:
        if len(self.done) == MOST_BLOCKS:
            raise RefusedError(
                f"{self._nest.where}: {self._nest.name} would be unrolled into more than {MOST_BLOCKS:,} steps. Let its loops "
                "depend less on their counters, or export it for fewer iterations."
            )
        self.done.append(())
        if path is not None:
            self._waiting.append((len(self.done) - 1, path.fork()))
        return len(self.done) - 1

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
                    raise Again

    def open_loops(self, at: int) -> None:
        """Loops around a condition that is not known go round nobody knows how often."""
        found = set(self._loops.around(at)) - self._loops.open
        if found:
            self._loops.open |= found
            raise Again

    def choose(self, path: Path, test: Register, then: int, otherwise: int) -> None:
        """Go on at one of two instructions, by a number that is left to the program."""
        blocks = []
        for at in (then, otherwise):
            side = path.fork()
            side.at = at
            blocks.append(self.entered(side))
        path.done.append(Choose(test.name, test.type.is_inexact, *blocks))

    def entered(self, side: Path) -> int:
        """The block of a state to which a jump leads; where that is the head of a loop numbers may have to be left first."""
        target = self.of(side)
        if not side.done:
            return target
        number = self._new()
        self.done[number] = [*side.done, Go(target)]
        return number

    def fork(self, path: Path, forks: Sequence[tuple[Choose, Sequence[str], Value | None]]) -> None:
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
                number = self._new()
                self.fork(side, others)
                self.done[number] = side.done
                sides.append(number)
            else:
                sides.append(self.entered(side))
        path.done.append(replace(choose, then=sides[0], otherwise=sides[1]))
