"""A state of the driver while it is specialised: the instruction, what every name stands for, which ranks have which elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lapwing.export.driver.operations import Operation, SetTo
from lapwing.export.driver.residency import Residency
from lapwing.export.driver.values import Register, Several, Value, memories_in

Look = Callable[[str], Value]  # what a name stands for; KeyError where it stands for nothing


@dataclass
class Path:
    """One way through the driver: where it is, what names stand for, which ranks have what, and what has been done since the
    block began."""

    at: int
    names: dict[str, Value]
    arrays: dict[str, Residency]
    done: list[Operation] = field(default_factory=list)

    def fork(self) -> Path:
        return Path(self.at, dict(self.names), dict(self.arrays))

    def names_of(self, memory: str) -> frozenset[str]:
        """The names that stand for an array, or a part of it."""
        return frozenset(name for name, value in self.names.items() if memory in memories_in(value))


def assign(path: Path, name: str, value: Value) -> None:
    """Give a name of the driver a value: numbers of the program's move to the register of that name."""
    path.names[name] = held(path, name, value)


def held(path: Path, name: str, value: Value) -> Value:
    """A value with numbers of the program's in the registers of a name."""
    match value:
        case Register():
            if value.name != name:
                path.done.append(SetTo(name, value.name))
            return replace(value, name=name)
        case Several(items=items):
            return Several(tuple(held(path, f"{name} {k}", item) for k, item in enumerate(items)))
    return value
