"""What users touch: the decorator, the nest object, options of a run."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lapwing.api.calls.called_integers import integers_of
from lapwing.api.calls.known_arrays import KnownArrays
from lapwing.api.calls.planned import PlannedNest
from lapwing.errors import BeyondError, RanksDiffer, RefusedError
from lapwing.html import table
from lapwing.loopnest.pieces import places_around
from lapwing.loopnest.setup import needs_driver
from lapwing.loopnest.source import FunctionSource
from lapwing.notices import say
from lapwing.runtime.mpi.ending import end_all_on_error
from lapwing.units import parsed_size

if TYPE_CHECKING:
    from lapwing.api.calls.dispatch import Dispatcher
    from lapwing.api.program import ProgramOfNests
    from lapwing.loopnest.analysis import NestAnalysis
    from lapwing.loopnest.binding.bound_nest import BoundNest
    from lapwing.loopnest.outside import Meanings
    from lapwing.loopnest.program.regions import Region
    from lapwing.loopnest.program.wholes import Whole
    from lapwing.planner.plan import Plan
    from lapwing.runtime.tuning import Tuning
    from lapwing.schedule.pipeline import Engine

# Of a sweep that is long enough to be a step of the pipeline, which takes as long as hundreds of points; and of sweeps.
_LONG_SWEEP, _FEW_SWEEPS = 4096, 8
_MOST_EVENTS = 20_000  # that a rank keeps of a run whose outcome is asked for: about 2 MB


class Nest(PlannedNest):
    """A loop nest made from a plain Python function by ``@lw.nest``.

    ``nest.python`` is that function, the definition of what is right. Calling the nest runs it: in this process, or on
    all ranks of an MPI run. ``nest.dependences`` are its dependences, ``nest.plan(...)`` says how it would run.

    A function of several nests, or with other statements around them, is a *program*: Python runs those, and ``nest.regions`` are
    the nests. It is called and planned in the same way.

    A function that is neither is refused when it is used as one, not before: making the nest raises nothing, and
    ``nest.python`` can be called.
    """

    def __init__(self, function: Callable[..., Any], source: FunctionSource | None = None) -> None:
        super().__init__(function, source)
        self._program: tuple[ProgramOfNests, Meanings] | None = None
        self._problem: Callable[..., dict[str, Any]] | None = None
        self._origin: Nest = self
        self._partly_generic: dict[int, Nest] = {}  # by what ``called_integers`` are found by
        self._of_lists: dict[Any, Nest] = {}  # by what the elements of lists are that regions are called with
        self._told = False
        self._known: KnownArrays | None = None  # of a region that Python may run where that takes less time
        self.is_whole = False  # whether there are regions to be called instead where it cannot be done
        self.may_be_interpreted = False  # whether Python runs it where arguments keep it from being compiled
        self.views_may_meet = False  # whether arrays that a region is passed may be one part of an array that it writes
        self.looking_up: frozenset[str] = frozenset()  # parameters that differ in every call: see Region
        self.why_in_order: tuple[str, ...] = ()  # what keeps the loops of a sequential region from being cut into tiles

    def __repr__(self) -> str:
        kind = "nest" if self.refusals or self.program is None else "program"
        return f"<{kind} {self.name} ({self.where}){', refused' if self.refusals else ''}>"

    def __reduce__(self) -> str:
        """Copied and pickled as functions are: by name."""
        return self.python.__qualname__

    def _repr_html_(self) -> str:
        """For notebooks: where it stands, its loops and dependences, or why it is refused."""
        rows = [("where", self.where)]
        if self.refusals:
            return table(f"nest {self.name}, refused", [*rows, *(("refused", str(r)) for r in self.refusals)])
        if self.program is not None:
            for region in self.regions:
                loops = " › ".join(loop.name for loop in region.loops.loops)
                rows.append((region.name, f"{region.where}: loops {loops}"))
            return table(f"program {self.name}", rows)
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
        from lapwing.api.calls.dispatch import Dispatcher

        return Dispatcher(self)

    def _forget(self) -> None:
        super()._forget()
        self._program = None
        self._of_lists.clear()
        self.__dict__.pop("_dispatcher", None)
        self.__dict__.pop("_as_written", None)
        self.__dict__.pop("_with_fewer_loops", None)
        self.__dict__.pop("_sequential_region", None)
        self.__dict__.pop("_region_of_free_iterations", None)
        self.__dict__.pop("_generic_region", None)
        self._partly_generic.clear()

    @property
    def program(self) -> ProgramOfNests | None:
        """The function's regions and driver, where it is more than one nest; None where it is one.

        Raises RefusedError as ``loops`` does.
        """
        origin = self._origin
        if (parsed := origin._parsed) is not None and parsed[1].hold:
            return None
        if (known := origin._program) is not None and known[1].hold:
            return known[0]
        with origin._reading:
            return origin._read()

    def _read(self) -> ProgramOfNests | None:
        """Parse the function, as one nest where that is possible, unless another thread has done so meanwhile."""
        if self._parsed is not None and self._parsed[1].hold:
            return None
        if self._program is not None and self._program[1].hold:
            return self._program[0]
        parsed = None
        try:
            parsed = self._read_nest()
            if not needs_driver(parsed[0].nest):
                self._take(parsed)
                return None
            alone = RefusedError(f"{self.where}: {self.name} does more before its loops than a nest can")
        except RefusedError as error:
            alone = error
        from lapwing.api.lookahead import LookaheadCall
        from lapwing.api.program import ProgramOfNests
        from lapwing.api.sweeps import SweepsCall
        from lapwing.loopnest.outside import Meanings
        from lapwing.loopnest.program.program import make_program

        try:
            program = make_program(self.source, alone)
        except RefusedError:
            self._take(parsed)
            if parsed is not None:
                return None  # binding says what is wrong
            raise
        sweeps, fusions = (
            tuple(SweepsCall(one, tuple(Nest(phase.function, phase) for phase in one.phases)) for one in loops)
            for loops in (program.sweeps, program.fusions)
        )
        found = ProgramOfNests(
            program,
            tuple(_region(region) for region in program.regions),
            tuple(f if isinstance(f, Nest) else Nest(f) for f in program.procedures.values()),
            sweeps,
            tuple(map(_whole, program.wholes)),
            fusions,
            tuple(map(LookaheadCall, program.lookaheads)),
        )
        self._take(None)
        self._program = found, Meanings(self.source)
        return found

    def check(self) -> None:
        _ = self.program

    @property
    def _analysis(self) -> NestAnalysis:
        """Of the function as a loop nest. Raises RefusedError for a program of several, too."""
        if (program := self.program) is None:
            parsed = self._origin._parsed
            assert parsed is not None
            return parsed[0]
        raise RefusedError(
            f"{self.where}: {self.name} is {program.program}, and this takes a nest alone. Put the loops of one nest into a "
            "function of their own, with nothing around them."
        )

    @property
    def regions(self) -> tuple[Nest, ...]:
        """The nests that are compiled, in the order of the text, each a nest of its own; of a nest alone itself.

        A region's arguments are what its loops read, in the order of ``region.loops.parameters``.
        """
        program = self.program
        return (self,) if program is None else tuple(region.like(self) for region in program.nests)

    @property
    def dependences(self) -> tuple[Any, ...]:
        """As of NestFunction; of a program those of its regions, one after the other. ``nest.regions`` has them apart."""
        if self.program is None:
            return super().dependences
        return tuple(dependence for region in self.regions for dependence in region.dependences)

    def plan(self, *args: Any, ranks: int = 1, **kwargs: Any) -> Any:
        """The Plan for these arguments on a number of ranks; nothing is run. Printing it explains it.

        Of a program it is a ProgramPlan: its lines and regions, with the plan of each whose arguments follow from these.
        Raises RefusedError for anything that would be refused by a run.
        """
        program = self.program
        if program is None and (as_arrays := self.with_arrays(args, kwargs)) is not None:
            found, arguments = as_arrays
            return found.plan(**arguments, ranks=ranks)
        if program is None:
            try:
                plan = super().plan(*args, ranks=ranks, **kwargs)
            except RefusedError as refused:
                return self.in_order_instead(refused).plan(*args, ranks=ranks, **kwargs)
            return replace(plan, reasons=(*self.why_in_order, *plan.reasons)) if self.why_in_order else plan
        return program.plan(self, self.arguments(*args, **kwargs), ranks)

    def for_arguments(self, arguments: Mapping[str, Any]) -> Nest:
        """The nest as these arguments let it run: this one, or with fewer loops cut into tiles, or in its own order on one rank.

        Raises RefusedError where neither is possible.
        """
        try:
            self.bind(arguments)
            _ = self.skew  # refuses what cannot be tiled
        except RefusedError as refused:
            found = self.in_order_instead(refused)
            if found.program is not None:
                raise
            return found.for_arguments(arguments)
        return self

    def knows(self, *arrays: Any) -> bool:
        """Whether a call in this process on arrays like these, which share no memory, has come to its end: it is refused for
        nothing then."""
        known = self._origin._known
        return known is not None and known.hold(arrays)

    def likeness(self, args: Sequence[Any]) -> Any:
        """Equal for calls with arguments by position for which ``checked`` gives the same; None where that is not known."""
        return self._origin._dispatcher.likeness(args)

    def checked(self, args: Sequence[Any]) -> Nest:
        """As ``for_arguments``, by position; arrays are seen to be plain or distributed, and apart."""
        from lapwing.api.calls.run import bound_alone

        arguments = dict(zip(self.loops.parameters, args, strict=True))
        found = self.for_arguments(arguments)
        bound_alone(found, arguments)
        return found

    def in_order_instead(self, refused: RefusedError) -> Nest:
        """The loops as a sequential region, where these arguments keep them from being cut into tiles and from nothing else; or,
        where that may be because of loops with steps and the like, without the innermost of them cut.

        Where the text was changed to have more loops cut, that is as it was written, whatever keeps these from it.

        Raises the error itself where that is not so.
        """
        if isinstance(refused, RanksDiffer):
            raise refused
        if (written := self._origin._as_written) is not None and not written.refusals:
            if written.program is None:
                written = written.like(self)
                written.why_in_order = tuple(map(str, refused.refusals))
            return written
        if self.source.sequential or not all(refusal.tiled_only for refusal in refused.refusals):
            raise refused
        region = self._origin._with_fewer_loops
        if region is None or region.refusals or region.program is not None:
            region = self._origin._sequential_region
        if region.refusals:
            raise refused
        found = region.like(self)
        found.why_in_order = tuple(map(str, refused.refusals))
        return found

    def with_arrays(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Nest, dict[str, Any]] | None:
        """A region that takes arrays for the lists among its arguments, and what to call it with; None where there is none."""
        if self.source.outlined is None or not any(type(v) in (list, tuple) for v in (*args, *kwargs.values())):
            return None
        from lapwing.loopnest.program.lists import listed

        arguments = self.arguments(*args, **kwargs)
        if (found := listed(self.loops, arguments)) is None:
            return None
        origin = self._origin
        region = origin._of_lists.get(found.kinds)
        if region is None:
            region = Nest(self.python, replace(self.source, lists=found.kinds))
            region.why_in_order, region.is_whole = origin.why_in_order, origin.is_whole
            origin._of_lists[found.kinds] = region
        return region.like(self), {**arguments, **found.arrays}

    def is_left_to_python(self, refused: RefusedError) -> bool:
        """Whether Python runs the loops where they are refused for this."""
        if isinstance(refused, RanksDiffer):
            return False
        written = self._as_written
        if written is not None:  # which may do without Python
            return self.source.outlined is not None and bool(written.refusals)
        return self.may_be_interpreted or (
            self.views_may_meet and all(refusal.memory_is_shared for refusal in refused.refusals)
        )

    def interpreted(self, refused: RefusedError) -> Callable[..., Any]:
        """The loops as Python runs them, which is said once."""
        origin = self._origin
        if not origin._told:
            origin._told = True
            say(
                f"{self.where}: {self.name} is run by Python, one iteration after the other, since it cannot be compiled:"
            )
            for refusal in refused.refusals:
                say(f"  {refusal}")
        return self.python

    @functools.cached_property
    def _may_be_for_any_integers(self) -> bool:
        """Whether it is a sequential region that is made for the integers of its calls."""
        source = self.source
        return source.sequential and not source.generic and source.outlined is not None

    def _for_other_integers(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Nest | None:
        """Where it has been called with so many others: a region that is made for any of the integers that have changed so far,
        or else for any at all."""
        called = self.called_integers
        if not self.looking_up and not called.are_many_somewhere:
            return None
        from lapwing.api.calls.run import own_ranks

        comm = own_ranks(self, (*args, *kwargs.values()))
        if not self.looking_up and not called.are_many(comm):
            return None
        known = self._origin._partly_generic
        if (region := known.get(id(comm))) is None:
            calls = called.on(comm)
            if not calls:  # whatever these calls are, some of their integers will change
                calls = (integers_of(self.arguments(*args, **kwargs)),)
            integers = {name for name, _ in frozenset.intersection(*calls)}
            kept = (integers - self.looking_up) & {*self.loops.parameters}
            known[id(comm)] = region = Nest(self.python, replace(self.source, generic=True, kept=frozenset(kept)))
        if region.called_integers.are_many(comm):
            return self.for_any_integers()
        return region.like(self)

    def for_any_integers(self) -> Nest:
        """A sequential region as one that is made for any integers, not for those of one call."""
        return self if self.source.generic else self._origin._generic_region.like(self)

    @functools.cached_property
    def _generic_region(self) -> Nest:
        """A sequential region that is called with ever other integers, as one that is made for any."""
        return Nest(self.python, replace(self.source, generic=True))

    @functools.cached_property
    def _as_written(self) -> Nest | None:
        """The nest, or program, that the text is without names put for what they are, and with what stands between its loops left
        there; None where it is this one."""
        if self.source.perfect is None:
            return None
        found = Nest(self.python, replace(self.source, as_written=True))
        found.why_in_order, found.may_be_interpreted = self.why_in_order, self.may_be_interpreted
        found.views_may_meet, found.is_whole = self.views_may_meet, self.is_whole
        return found

    @functools.cached_property
    def _with_fewer_loops(self) -> Nest | None:
        loops = self.loops.loops
        if len(loops) == 1 or (all(loop.is_plain for loop in loops) and not places_around(self.loops, ())):
            return None
        return Nest(self.python, replace(self.source, most_loops=len(loops) - 1))

    def in_its_order(self, bound: BoundNest, plan: Plan) -> Nest | None:
        nest, form, box = bound.nest, plan.inner.form, bound.domain.box
        if nest.is_sequential or nest.accumulators or form.lanes > 1 or not form.independent:
            return None
        points = math.prod(high - low for low, high in box[nest.sweep_depth :])
        if points >= _LONG_SWEEP or math.prod(high - low for low, high in box[: nest.sweep_depth]) < _FEW_SWEEPS:
            return None
        region = self._origin._region_of_free_iterations
        return None if region.refusals or region.program is not None else region.like(self)

    @functools.cached_property
    def _region_of_free_iterations(self) -> Nest:
        """The same as a region, of which no dependence joins iterations of the innermost loop."""
        line = self.loops.loops[-1].line
        loops = [loop for loop in ast.walk(self.source.tree) if isinstance(loop, ast.For) and loop.lineno == line]
        places = frozenset((loop.lineno, loop.col_offset) for loop in loops)
        return Nest(
            self.python, replace(self.source, sequential=True, independent=places if len(loops) == 1 else frozenset())
        )

    @functools.cached_property
    def _sequential_region(self) -> Nest:
        return Nest(self.python, replace(self.source, sequential=True))

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

    def like(self, other: Nest) -> Nest:
        """The same nest with another's choices."""
        return self if self.is_chosen_as(other) else self.using(**other.choices)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the nest; arrays are updated in place, reductions returned as the function returns them.

        In an MPI run every rank of ``using(comm=…)`` calls it, of all ranks where nothing was said, with the same arguments:
        a NumPy array that ranks pass is the same on all of them, before the call and after it. None on other ranks than the
        first leaves an argument to that one. A DistributedArray stays distributed.
        Raises, on every rank the same, RefusedError before anything runs, also where ranks pass different arguments;
        BuildError; or RunError. Arrays are as they were then.

        A program returns what its function returns, and raises what that raises, too; arrays are then as they were before the
        region that failed, or, where that was left to Python because a call takes longer, as Python leaves them.
        """
        origin = self._origin
        try:
            if (parsed := origin._parsed) is not None and parsed[1].hold:
                try:
                    found = origin._dispatcher.again(self, args, kwargs)
                except RefusedError:  # arrays have come to share memory
                    found = None
                if found is not None:
                    return parsed[0].nest.returned(found)
            returned = self._called(args, kwargs)
        except BeyondError as error:
            if origin.is_whole or not self._may_go_on_in_python((*args, *kwargs.values())):
                raise
            return self.interpreted(RefusedError(str(error)))(*args, **kwargs)
        if (known := origin._known) is not None:
            known.note(args)
        return returned

    def _may_go_on_in_python(self, values: Sequence[Any]) -> bool:
        """Whether a call with these arguments is in this process, on arrays in memory."""
        from lapwing.runtime.arrays.distributed import DistributedArray
        from lapwing.runtime.mpi import communicator
        from lapwing.store.array import StoredArray

        return communicator.is_alone(self.comm) and not any(
            isinstance(v, DistributedArray | StoredArray) for v in values
        )

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        origin = self._origin
        parsed = origin._parsed
        if parsed is None or not parsed[1].hold:
            if (program := self.program) is not None:
                return program(self, args, kwargs)
            parsed = origin._parsed
            assert parsed is not None
        for_any = self._for_other_integers(args, kwargs) if self._may_be_for_any_integers else None
        if for_any is None and (as_arrays := self.with_arrays(args, kwargs)) is not None:
            found, arguments = as_arrays
            try:
                return found(**arguments)
            except RefusedError as refused:
                if self._origin.is_left_to_python(refused):
                    return self.interpreted(refused)(*args, **kwargs)
                raise
        try:
            if for_any is not None:
                return for_any(*args, **kwargs)
            return parsed[0].nest.returned(origin._dispatcher(self, args, kwargs))
        except RefusedError as refused:
            if self._origin.is_left_to_python(refused):
                return self.interpreted(refused)(*args, **kwargs)
            return self.in_order_instead(refused)(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the nest as a call does, and return the Outcome: results, seconds, the plan, and what every rank did when.

        ``outcome.timeline()`` shows that. Of every rank the first twenty thousand events are kept; on several ranks the same
        messages are then sent once more with nothing else going on, to tell how much of them was hidden. Under MPI the first
        rank has the events of all. Raises as a call does.

        Of a program it is a ProgramOutcome: what the function returned, seconds, what each region took, and one timeline through
        all of them.
        """
        if (program := self.program) is not None:
            return program.run(self, self.arguments(*args, **kwargs), _MOST_EVENTS)
        if (as_arrays := self.with_arrays(args, kwargs)) is not None:
            found, arguments = as_arrays
            return found.run(**arguments)
        from lapwing.api.calls.run import run
        from lapwing.runtime.execute import Measure

        measure = Measure(transfer=True, events=_MOST_EVENTS)
        try:
            return run(self, self.arguments(*args, **kwargs), measure=measure)
        except RefusedError as refused:
            return self.in_order_instead(refused).run(*args, **kwargs)


def nest(function: Callable[..., Any]) -> Nest:
    """Make a loop nest, or a program of several, of a plain Python function.

    The function is parsed, never executed, and not before it is used as a nest: what is not supported is refused then, by
    file and line. Raises RefusedError for what is not a plain function at all, such as a class.
    """
    end_all_on_error()
    return Nest(function)


def _whole(whole: Whole) -> Nest:
    found = Nest(whole.outlined.source.function, whole.outlined.source)
    found.is_whole = True
    return found


def _region(region: Region) -> Nest:
    source = region.outlined.source
    found = Nest(source.function, source)
    found.why_in_order = tuple(map(str, region.why))
    found.may_be_interpreted, found.views_may_meet = region.is_small, region.outlined.may_meet
    found.looking_up = region.looking_up
    if region.short is not None:
        found._known = KnownArrays(region.loops.parameters, region.loops.arrays, region.loops.written)
    return found
