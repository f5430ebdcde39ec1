"""What users touch: the decorator, the nest object, options of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lapwing.api.planned import PlannedNest
from lapwing.errors import RefusedError
from lapwing.html import table
from lapwing.runtime.mpi.ending import end_all_on_error
from lapwing.units import parsed_size

if TYPE_CHECKING:
    from lapwing.api.dispatch import Dispatcher
    from lapwing.runtime.execute import Outcome
    from lapwing.runtime.tuning import Tuning
    from lapwing.schedule.pipeline import Engine

_MOST_EVENTS = 20_000  # that a rank keeps of a run whose outcome is asked for: about 2 MB


class Nest(PlannedNest):
    """A loop nest made from a plain Python function by ``@lw.nest``.

    ``nest.python`` is that function, the definition of what is right. Calling the nest runs it: in this process, or on
    all ranks of an MPI run. ``nest.dependences`` are its dependences, ``nest.plan(...)`` says how it would run.

    A function that is no supported nest is refused when it is used as one, not before: making the nest raises nothing, and
    ``nest.python`` can be called.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._problem: Callable[..., dict[str, Any]] | None = None
        self._origin: Nest = self

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

    @functools.cached_property
    def _dispatcher(self) -> Dispatcher:
        from lapwing.api.dispatch import Dispatcher

        return Dispatcher(self)

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_dispatcher", None)

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

    def run(self, *args: Any, **kwargs: Any) -> Outcome:
        """Run the nest as a call does, and return the Outcome: results, seconds, the plan, and what every rank did when.

        ``outcome.timeline()`` shows that. Of every rank the first twenty thousand events are kept; on several ranks the same
        messages are then sent once more with nothing else going on, to tell how much of them was hidden. Under MPI the first
        rank has the events of all. Raises as a call does.
        """
        from lapwing.api.run import run
        from lapwing.runtime.execute import Measure

        return run(self, self.arguments(*args, **kwargs), measure=Measure(transfer=True, events=_MOST_EVENTS))


def nest(function: Callable[..., Any]) -> Nest:
    """Make a loop nest of a plain Python function.

    The function is parsed, never executed, and not before it is used as a nest: what is not supported is refused then, by
    file and line. Raises RefusedError for what is not a plain function at all, such as a class.
    """
    end_all_on_error()
    return Nest(function)
