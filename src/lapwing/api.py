"""What users touch: the decorator, the nest object, options of a run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lapwing.errors import RefusedError
from lapwing.loopnest import ir

if TYPE_CHECKING:
    from lapwing.dispatch import Dispatcher
    from lapwing.loopnest.binding import BoundNest
    from lapwing.planner.plan import Plan
    from lapwing.runtime.tuning import Tuning
    from lapwing.schedule.pipeline import Engine
    from lapwing.tiling.partition import Partition

_REMEMBERED = 16  # calls of different signatures a nest keeps bound


@dataclass(frozen=True)
class ArrayShape:
    """Stands for an array of which only dtype and shape are known here."""

    dtype: str
    shape: tuple[int, ...]


class Nest:
    """A loop nest made from a plain Python function by ``@lw.nest``.

    ``nest.python`` is that function, the definition of what is right. Calling the nest runs it: in this process, or on
    all ranks of an MPI run. ``nest.dependences`` are its dependences, ``nest.plan(...)`` says how it would run.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        from lapwing.loopnest.frontend import parse

        self.python = function
        self.loops: ir.LoopNest = parse(function)
        self.engine: Engine | None = None
        self.tile: int | None = None
        self.grid: tuple[int, ...] | None = None
        self.tuning: Tuning | None = None
        self._bound: dict[Any, BoundNest] = {}
        self._plans: dict[Any, Plan] = {}
        self._problem: Callable[..., dict[str, Any]] | None = None
        self._origin = self  # what `using` made others of: they share what calls have left to remember
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<nest {self.loops.name} ({self.loops.where(self.loops.line)})>"

    @functools.cached_property
    def dependences(self) -> tuple[Any, ...]:
        """Flow, anti and output dependences (``lapwing.Dependence``), each with its distance vector and its accesses.

        Raises RefusedError where a distance inside a sweep is not constant.
        """
        from lapwing.loopnest.dependences import find_dependences

        return find_dependences(self.loops)

    @functools.cached_property
    def _dispatcher(self) -> Dispatcher:
        from lapwing.dispatch import Dispatcher

        return Dispatcher(self)

    def problem(self, function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Decorator: the function returns the arguments of one run; ``lapwing run FILE -p KEY=VALUE`` sets its parameters."""
        self._problem = function
        return function

    @property
    def has_problem(self) -> bool:
        """Whether ``@nest.problem`` registered a function."""
        return self._problem is not None

    @property
    def problem_function(self) -> Callable[..., dict[str, Any]]:
        """The function registered by ``@nest.problem``. Raises RefusedError if there is none."""
        if self._problem is None:
            name = self.loops.name
            raise RefusedError(
                f"{self.loops.where(self.loops.line)}: nest {name} has no problem to run. Add @{name}.problem above a "
                f"function that returns the arguments of {name} as a dict."
            )
        return self._problem

    def using(
        self,
        *,
        engine: Engine | None = None,
        tile: int | None = None,
        grid: tuple[int, ...] | None = None,
        tuning: Tuning | None = None,
    ) -> Nest:
        """The same nest with choices made by hand.

        engine: ``blocking``, ``overlap``, ``onesided`` or ``helper``; tile: its height, in iterations of the pipelined loop;
        grid: parts along each space loop but the pipelined one, or along all of them, which asks for time to be pipelined
        where that is legal; tuning: lapwing.runtime.tuning.Tuning.
        """
        other = Nest.__new__(Nest)
        other.__dict__.update(self.__dict__)
        other.engine = engine if engine is not None else self.engine
        other.tile = tile if tile is not None else self.tile
        other.grid = grid if grid is not None else self.grid
        other.tuning = tuning if tuning is not None else self.tuning
        return other

    def arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Arguments by name, defaults included. Raises RefusedError where they do not fit the signature."""
        try:
            bound = inspect.signature(self.python).bind(*args, **kwargs)
        except TypeError as error:
            raise RefusedError(
                f"{self.loops.where(self.loops.line)}: {self.loops.name}: {error}. "
                f"Expected {self.loops.name}({', '.join(self.loops.parameters)})."
            ) from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def bind(self, arguments: Mapping[str, Any], surroundings: Mapping[str, Any] | None = None) -> BoundNest:
        """The nest with the types and sizes of these arguments; calls alike share one."""
        from lapwing.loopnest.binding import bind, global_values, signature

        surroundings = global_values(self.python) if surroundings is None else surroundings
        key = signature(arguments, surroundings)
        try:
            known = self._bound.get(key)
        except TypeError:  # an argument that cannot be hashed is no number and no array: bind says so
            return bind(self.loops, arguments, surroundings)
        if known is None:
            known = bind(self.loops, arguments, surroundings)
            self._bound[key] = known
            if len(self._bound) > _REMEMBERED:
                self._bound.pop(next(iter(self._bound)))
        return known

    def plan(self, *args: Any, ranks: int = 1, **kwargs: Any) -> Any:
        """The Plan for these arguments on a number of ranks; nothing is run. Printing it explains it.

        Raises RefusedError for anything that would be refused by a run.
        """
        from lapwing.planner.choose import make_plan

        bound = self.bind(self.arguments(*args, **kwargs))
        return make_plan(bound, self.dependences, ranks, self.wishes())

    def planned(
        self,
        bound: BoundNest,
        ranks: int,
        ranks_a_node: int,
        ranks_on_cores: int,
        arguments: Mapping[str, Any],
        partition: Partition | None = None,
    ) -> Plan:
        """The plan of a call on this machine; calls alike share one. partition: blocks that are given.

        Raises RefusedError as ``plan`` does.
        """
        from lapwing.decide import Decider

        key = (bound, ranks, ranks_a_node, ranks_on_cores, self.wishes(), partition)
        if key not in self._plans:
            decide = Decider.here(
                bound, self.dependences, ranks, ranks_a_node, ranks_on_cores, arguments, lambda _: None
            )
            self._plans[key] = decide.for_call(self.wishes(), partition)
            if len(self._plans) > _REMEMBERED:
                self._plans.pop(next(iter(self._plans)))
        return self._plans[key]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the nest; arrays are updated in place, reductions returned as the function returns them.

        In an MPI run every rank calls it. NumPy arrays are taken from rank 0 and updated there; what other ranks pass for
        them does not matter (None is fine). A DistributedArray stays distributed. Scalars are rank 0's.
        Raises RefusedError before anything runs, BuildError, or RunError.
        """
        results = self._origin._dispatcher(self, args, kwargs)
        if not self.loops.returns:
            return None
        values = tuple(results[name] for name in self.loops.returns)
        return values if self.loops.returns_tuple else values[0]

    def wishes(self) -> Any:
        from lapwing.planner.choose import Wishes

        # Plans are kept by what was wished for, so that it must not be a list.
        return Wishes(self.engine, self.tile, tuple(self.grid) if isinstance(self.grid, list) else self.grid)


def nest(function: Callable[..., Any]) -> Nest:
    """Make a loop nest of a plain Python function.

    The function is parsed, never executed. Raises RefusedError, naming file and line, where it is not a supported nest.
    """
    return Nest(function)
