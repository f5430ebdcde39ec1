"""What users touch: the decorator, the nest object, options of a run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lapwing.errors import Refusal, RefusedError
from lapwing.html import table
from lapwing.loopnest import ir
from lapwing.loopnest.source import FunctionSource
from lapwing.memo import Memo
from lapwing.runtime.ending import end_all_on_error
from lapwing.units import parsed_size

if TYPE_CHECKING:
    from lapwing.decide import PlannedCalls
    from lapwing.dispatch import Dispatcher
    from lapwing.loopnest.binding import BoundNest
    from lapwing.loopnest.outside import Meanings
    from lapwing.runtime.tuning import Tuning
    from lapwing.schedule.pipeline import Engine
    from lapwing.tiling.partition import Partition


@dataclass(frozen=True)
class ArrayShape:
    """Stands for an array of which only dtype and shape are known here."""

    dtype: str
    shape: tuple[int, ...]


class Nest:
    """A loop nest made from a plain Python function by ``@lw.nest``.

    ``nest.python`` is that function, the definition of what is right. Calling the nest runs it: in this process, or on
    all ranks of an MPI run. ``nest.dependences`` are its dependences, ``nest.plan(...)`` says how it would run.

    A function that is no supported nest is refused when it is used as one, not before: making the nest raises nothing, and
    ``nest.python`` can be called.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.source = FunctionSource.of(function)
        self.python = function
        self.engine: Engine | None = None
        self.tile: int | None = None
        self.grid: tuple[int, ...] | None = None
        self.tuning: Tuning | None = None
        self.comm: Any = None
        self.memory: int | None = None
        self.pass_sweeps: int | None = None
        self.ring = 3
        self.resume = False
        self._parsed: tuple[ir.LoopNest, Meanings] | None = None
        self._bound: Memo[BoundNest] = Memo()
        self._planned: Memo[PlannedCalls] = Memo()
        self._problem: Callable[..., dict[str, Any]] | None = None
        self._origin = self  # what `using` made others of: it holds what they share
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<nest {self.name} ({self.where}){', refused' if self.refusals else ''}>"

    def __reduce__(self) -> str:
        """Copied and pickled as functions are: by name."""
        return self.python.__qualname__

    def _repr_html_(self) -> str:
        """For notebooks: where it stands, its loops and dependences, or why it is refused."""
        rows = [("where", self.where)]
        if self.refusals:
            return table(f"nest {self.name}, refused", [*rows, *(("refused", str(r)) for r in self.refusals)])
        rows.append(("loops", " › ".join(loop.name for loop in self.loops.loops)))
        rows.append(("writes", ", ".join(self.loops.written) or "nothing"))
        if self.loops.returns:
            rows.append(("returns", ", ".join(self.loops.returns)))
        try:
            rows += [("dependence", str(dependence)) for dependence in self.dependences]
        except RefusedError as error:
            rows += [("refused", str(refusal)) for refusal in error.refusals]
        return table(f"nest {self.name}", rows)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.python.__name__)

    @property
    def where(self) -> str:
        """``file:line`` of the function."""
        return f"{self.source.file}:{self.source.line}"

    @property
    def loops(self) -> ir.LoopNest:
        """The function as a loop nest, parsed on first use, and again when functions or modules' constants that it names have
        become others.

        Raises RefusedError, with every part of it that is not supported, by file and line; asked again, it looks again, since
        the function's globals may have changed.
        """
        known = self._origin._parsed
        return known[0] if known is not None and known[1].hold else self._origin._parse()

    def _parse(self) -> ir.LoopNest:
        from lapwing.loopnest.frontend import parse
        from lapwing.loopnest.outside import Meanings

        for made in (self._bound, self._planned):
            made.clear()
        for name in ("_dependences", "_dispatcher"):
            self.__dict__.pop(name, None)
        self._parsed = None
        loops = parse(self.source)
        self._parsed = loops, Meanings(self.source)
        return loops

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why the function is no supported nest; () where it is one. Arguments may be refused all the same."""
        try:
            _ = self.loops
        except RefusedError as error:
            return error.refusals
        return ()

    @property
    def dependences(self) -> tuple[Any, ...]:
        """Flow, anti and output dependences (``lapwing.Dependence``), each with its distance vector and its accesses.

        Raises RefusedError where a distance inside a sweep is not constant.
        """
        _ = self.loops  # as the function is now
        return self._origin._dependences

    @functools.cached_property
    def _dependences(self) -> tuple[Any, ...]:
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
        """The function registered by ``@nest.problem``. Raises RefusedError if there is none, with whatever else is wrong."""
        if self._problem is None:
            name = self.name
            raise RefusedError(
                *self.refusals,
                f"{self.where}: nest {name} has no problem to run. Add @{name}.problem above a "
                f"function that returns the arguments of {name} as a dict.",
            )
        return self._problem

    def using(
        self,
        *,
        engine: Engine | None = None,
        tile: int | None = None,
        grid: tuple[int, ...] | None = None,
        tuning: Tuning | None = None,
        comm: Any = None,
        memory: int | str | None = None,
        pass_sweeps: int | None = None,
        ring: int | None = None,
        resume: bool | None = None,
    ) -> Nest:
        """The same nest with choices made by hand.

        engine: ``blocking``, ``overlap``, ``onesided`` or ``helper``; tile: its height, in iterations of the pipelined loop;
        grid: parts along each space loop but the pipelined one, or along all of them, which asks for time to be pipelined
        where that is legal; tuning: lapwing.runtime.tuning.Tuning; comm: the ranks that call the nest, an mpi4py communicator
        (disjoint ones may be at work at the same time), or ``lw.SELF`` for each rank by itself.

        For arrays on disk: memory, bytes that all ranks of a node take together, a number or a text such as ``"4GB"``;
        pass_sweeps, how many sweeps are done each time the data is read and written; ring, how many slabs are on their way
        beside those computed on and one: 3 where reading, computing and writing go on at the same time, 1 where nothing does;
        resume, whether to go on from the last finished pass of an earlier run that did not come to its end.
        Raises RefusedError for a memory that is no size.
        """
        other = Nest.__new__(Nest)
        other.__dict__.update(self.__dict__)
        other.engine = engine if engine is not None else self.engine
        other.tile = tile if tile is not None else self.tile
        other.grid = grid if grid is not None else self.grid
        other.tuning = tuning if tuning is not None else self.tuning
        other.comm = comm if comm is not None else self.comm
        other.memory = parsed_size(memory) if isinstance(memory, str) else self.memory if memory is None else memory
        other.pass_sweeps = pass_sweeps if pass_sweeps is not None else self.pass_sweeps
        other.ring = ring if ring is not None else self.ring
        other.resume = resume if resume is not None else self.resume
        return other

    def arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Arguments by name, defaults included. Raises RefusedError where they do not fit the signature."""
        loops = self.loops
        try:
            bound = inspect.signature(self.python).bind(*args, **kwargs)
        except TypeError as error:
            raise RefusedError(
                f"{self.where}: {self.name}: {error}. Expected {self.name}({', '.join(loops.parameters)})."
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
            self._bound.keep(key, known)
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
    ) -> PlannedCalls:
        """The plan of a call on this machine, which calls alike share. partition: blocks that are given.

        Raises RefusedError as ``plan`` does.
        """
        from lapwing.decide import Decider, PlannedCalls

        key: Any = (bound, ranks, ranks_a_node, ranks_on_cores, self.wishes(), partition)
        try:
            known = self._planned.get(key)
        except TypeError:  # a choice that cannot be hashed: planning says what is wrong with it
            key = known = None
        if known is not None and not known.deserve_second_thoughts:
            return known
        decide = Decider.here(bound, self.dependences, ranks, ranks_a_node, ranks_on_cores, arguments)
        if known is not None:
            known.plan_anew(decide.for_call(self.wishes(), partition, known.worked))
            return known
        known = PlannedCalls(decide.for_call(self.wishes(), partition))
        if key is not None:
            self._planned.keep(key, known)
        return known

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the nest; arrays are updated in place, reductions returned as the function returns them.

        In an MPI run every rank of ``using(comm=…)`` calls it, of all ranks where nothing was said, with the same arguments:
        a NumPy array that ranks pass is the same on all of them, before the call and after it. None on other ranks than the
        first leaves an argument to that one. A DistributedArray stays distributed.
        Raises, on every rank the same, RefusedError before anything runs, also where ranks pass different arguments;
        BuildError; or RunError. Arrays are as they were then.
        """
        loops = self.loops
        results = self._origin._dispatcher(self, args, kwargs)
        if not loops.returns:
            return None
        values = tuple(results[name] for name in loops.returns)
        return values if loops.returns_tuple else values[0]

    def wishes(self) -> Any:
        from lapwing.planner.choose import Wishes

        # Plans are kept by what was wished for, so that it must not be a list.
        return Wishes(self.engine, self.tile, tuple(self.grid) if isinstance(self.grid, list) else self.grid)


def nest(function: Callable[..., Any]) -> Nest:
    """Make a loop nest of a plain Python function.

    The function is parsed, never executed, and not before it is used as a nest: what is not supported is refused then, by
    file and line. Raises RefusedError for what is not a plain function at all, such as a class.
    """
    end_all_on_error()
    return Nest(function)
