"""The driver of a program as instructions: what it does between the calls of its regions, with jumps in the place of loops.

while residual > tol:               0  unless residual > tol: go to 3
    residual = region 1(u, v)       1  residual = region 1(u, v)
    u, v = v, u                     2  u, v = v, u; go to 0
                                    3  …
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapwing.errors import RefusedError
from lapwing.loopnest.frontend.statements import does_nothing
from lapwing.loopnest.program.program import Program
from lapwing.loopnest.program.regions import Region
from lapwing.loopnest.program.sweeps import Sweeps
from lapwing.loopnest.program.variables.names import bound_names


@dataclass(eq=False)
class Instruction:
    """line: of the user's file. node: what stands there."""

    node: ast.AST
    line: int

    def reads(self) -> set[str]:
        """The names that it reads."""
        return _read_names(self.node)

    def sets(self) -> set[str]:
        """The names to which it surely gives a value."""
        return set()

    def next(self, here: int) -> tuple[int, ...]:
        """The instructions that may follow it."""
        return (here + 1,)


@dataclass(eq=False)
class Assign(Instruction):
    """``u, v = v, u``: to names alone."""

    targets: Sequence[ast.expr]
    value: ast.expr

    def reads(self) -> set[str]:
        return _read_names(self.value)

    def sets(self) -> set[str]:
        return {name.id for target in self.targets for name in ast.walk(target) if isinstance(name, ast.Name)}


@dataclass(eq=False)
class Store(Instruction):
    """``u[0] = u[1]``: a statement that writes elements."""

    node: ast.stmt


@dataclass(eq=False)
class Forget(Instruction):
    """``del u``"""

    names: tuple[str, ...]

    def reads(self) -> set[str]:
        return set()

    def sets(self) -> set[str]:
        return set(self.names)


@dataclass(eq=False)
class Jump(Instruction):
    to: int = -1

    def reads(self) -> set[str]:
        return set()

    def next(self, here: int) -> tuple[int, ...]:
        return (self.to,)


@dataclass(eq=False)
class Branch(Instruction):
    """Goes on where a condition holds, and elsewhere where it does not. is_head: whether a while loop comes back to it."""

    test: ast.expr
    otherwise: int = -1
    is_head: bool = False

    def reads(self) -> set[str]:
        return _read_names(self.test)

    def next(self, here: int) -> tuple[int, ...]:
        return (here + 1, self.otherwise)


@dataclass(eq=False)
class Begin(Instruction):
    """A for loop begins: ``loop`` is the name, nobody else's, of how far it has come."""

    loop: str
    over: ast.expr

    def reads(self) -> set[str]:
        return _read_names(self.over)

    def sets(self) -> set[str]:
        return {self.loop}


@dataclass(eq=False)
class Next(Instruction):
    """The next iteration of a for loop, or what stands behind it."""

    loop: str
    target: ast.expr
    behind: int = -1

    def reads(self) -> set[str]:
        return {self.loop}

    def next(self, here: int) -> tuple[int, ...]:
        return (here + 1, self.behind)


@dataclass(eq=False)
class Run(Instruction):
    """The call of a region, by its number."""

    region: Region
    number: int

    def reads(self) -> set[str]:
        names = set().union(*map(_read_names, self.region.outlined.inputs)) if self.region.outlined.inputs else set()
        return {name.removesuffix(" before").removesuffix(" is set") for name in names}


@dataclass(eq=False)
class Attempt(Instruction):
    """The call of several regions through one pipeline, where they fit each other; then goes on behind them."""

    sweeps: Sweeps
    number: int
    behind: int = -1

    def reads(self) -> set[str]:
        return {name for value in (*self.sweeps.inputs.values(), self.sweeps.over) for name in _read_names(value)}

    def next(self, here: int) -> tuple[int, ...]:
        return (here + 1, self.behind)


@dataclass(eq=False)
class Give(Instruction):
    """``return u``"""

    value: ast.expr | None

    def next(self, here: int) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class DriverCode:
    """live: by instruction, the names that may be read from it on."""

    instructions: tuple[Instruction, ...]
    live: tuple[frozenset[str], ...]


def driver_code(program: Program) -> DriverCode:
    """Raises RefusedError for statements that an exported driver cannot have."""
    writer = _Writer(program)
    writer.block(program.source.tree.body)
    writer.add(Give(program.source.tree, program.source.tree.lineno, None))
    return DriverCode(tuple(writer.instructions), _liveness(writer.instructions))


class _Writer:
    def __init__(self, program: Program) -> None:
        self._file = program.source.file
        self._regions: Mapping[int, tuple[Region, int]] = {
            id(region.statement): (region, number) for number, region in enumerate(program.regions)
        }
        self._sweeps = {id(s.statements[0]): (s, number) for number, s in enumerate(program.sweeps)}
        self._loops: list[tuple[int, list[Jump]]] = []  # where each goes on, and the jumps behind it
        self.instructions: list[Instruction] = []

    @property
    def _here(self) -> int:
        return len(self.instructions)

    def add(self, instruction: Any) -> Any:
        self.instructions.append(instruction)
        return instruction

    def block(self, statements: Sequence[ast.stmt]) -> None:
        left = list(statements)
        while left:
            statement = left.pop(0)
            found = self._sweeps.get(id(statement))
            if found is not None:
                taken = {id(s) for s in found[0].statements}
                inside = [statement]
                while any(id(s) in taken for s in left):
                    inside.append(left.pop(0))
                self.block(found[0].first)
                attempt = self.add(Attempt(statement, statement.lineno, *found))
                for one in inside:
                    self._statement(one)
                attempt.behind = self._here
            else:
                self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        line = node.lineno
        if (found := self._regions.get(id(node))) is not None:
            self.add(Run(node, line, *found))
            return
        match node:
            case ast.Assign(targets=targets, value=value) if all(map(_is_names, targets)):
                self.add(Assign(node, line, targets, value))
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                self.add(Assign(node, line, [target], value))
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
                self.add(Assign(node, line, [target], ast.copy_location(ast.BinOp(read, op, value), value)))
            case ast.Assign() | ast.AugAssign():
                self.add(Store(node, line))
            case ast.Delete(targets=targets) if all(isinstance(t, ast.Name) for t in targets):
                self.add(Forget(node, line, tuple(sorted(bound_names([node])))))
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(test, body, orelse)
            case ast.While():
                self._while(node)
            case ast.For():
                self._for(node)
            case ast.Break() | ast.Continue() if self._loops:
                again, behind = self._loops[-1]
                jump = self.add(Jump(node, line))
                if isinstance(node, ast.Continue):
                    jump.to = again
                else:
                    behind.append(jump)
            case ast.Return(value=returned):
                self.add(Give(node, line, returned))
            case _ if does_nothing(node):
                pass
            case _:
                raise RefusedError(
                    f"{self._file}:{line}: {ast.unparse(node).splitlines()[0]}: an exported program has assignments, if, for "
                    "and while around its loops. Do anything else before the call, or after it."
                )

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        failed = self._unless(test)
        self.block(body)
        if orelse:
            end = self.add(Jump(body[-1], body[-1].lineno))
            self._to_here(failed)
            self.block(orelse)
            end.to = self._here
        else:
            self._to_here(failed)

    def _while(self, node: ast.While) -> None:
        again = self._here
        failed = self._unless(node.test)
        first = self.instructions[again]
        if isinstance(first, Branch):
            first.is_head = True
        self._body(node, again, failed)

    def _for(self, node: ast.For) -> None:
        loop = f"loop {self._here}"  # not a name that Python allows
        self.add(Begin(node, node.lineno, loop, node.iter))
        again = self._here
        ahead = self.add(Next(node, node.lineno, loop, node.target))
        self._body(node, again, [ahead])

    def _body(self, node: ast.For | ast.While, again: int, failed: Sequence[Branch | Next]) -> None:
        behind: list[Jump] = []
        self._loops.append((again, behind))
        self.block(node.body)
        self.add(Jump(node, node.lineno, again))
        self._loops.pop()
        self._to_here(failed)
        self.block(node.orelse)
        for jump in behind:
            jump.to = self._here

    def _unless(self, test: ast.expr) -> list[Branch]:
        """What is left where a condition does not hold: those of its parts that may fail."""
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                return [branch for value in values for branch in self._unless(value)]
            case ast.BoolOp(op=ast.Or(), values=[*first, last]):
                holds = []
                for value in first:
                    failed = self._unless(value)
                    holds.append(self.add(Jump(value, value.lineno)))
                    self._to_here(failed)
                found = self._unless(last)
                for jump in holds:
                    jump.to = self._here
                return found
        return [self.add(Branch(test, test.lineno, test))]

    def _to_here(self, failed: Sequence[Branch | Next]) -> None:
        for instruction in failed:
            if isinstance(instruction, Branch):
                instruction.otherwise = self._here
            else:
                instruction.behind = self._here


def _is_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_names, target.elts))
    return isinstance(target, ast.Name)


def _read_names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _liveness(instructions: Sequence[Instruction]) -> tuple[frozenset[str], ...]:
    live: list[frozenset[str]] = [frozenset() for _ in (*instructions, None)]
    changed = True
    while changed:
        changed = False
        for here in reversed(range(len(instructions))):
            instruction = instructions[here]
            after = frozenset[str]().union(*(live[k] for k in instruction.next(here)))
            before = (after - instruction.sets()) | instruction.reads()
            if before != live[here]:
                live[here], changed = frozenset(before), True
    return tuple(live)
