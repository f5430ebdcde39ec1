"""Checks random nests on the ranks of one MPI run: started by test_random_nests.py under mpiexec.

    mpiexec -n 3 python nest_worker.py DIRECTORY EXAMPLES SEED SECONDS

Rank 0 runs hypothesis and sends every example to the other ranks, which call the nest with it, so that a failing nest
shrinks over all ranks. After SECONDS every rank shows where it is and ends. DIRECTORY receives the sources, ``current.py``
being the one at hand, and ``report.json`` at the end.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from comparing import check_arrays, check_value, exact_sum
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from loading import load
from on_disk import OnDisk
from random_nests import Case, Choice, cases, check_refused_grid, choices
from searching import search

import lapwing as lw
from lapwing.planner.choose import make_plan
from lapwing.planner.plan import ENGINES
from lapwing.runtime.alone import run_alone
from lapwing.runtime.arrays import storage
from lapwing.runtime.arrays.layout import write_offsets
from lapwing.runtime.mpi import communicator
from lapwing.runtime.tuning import Tuning, allowed_cpus

RUNS = 3  # cuts tried on one compiled nest
CALLS = 4  # on arrays that stay distributed: with another cut first, and then alike
RAISES = object()  # what is expected of a nest whose plain loop raises


@dataclass(frozen=True)
class Manner:
    """How a run is carried out beyond how it is cut. ``without_segments``: ranks whose memory others cannot map; ``kept``:
    the nest is called several times, on arrays that stay distributed in between; ``everywhere``: every rank passes the arrays;
    ``created``: every rank makes its part of those that stay distributed; ``on_disk``: some arrays are there.
    """

    tuning: Tuning
    without_segments: tuple[int, ...]
    kept: bool
    everywhere: bool
    created: bool
    on_disk: OnDisk | None = None


@st.composite
def manners(draw: st.DrawFn, ranks: int) -> Manner:
    cpus = allowed_cpus()
    pinned = tuple(cpus[rank % len(cpus)] for rank in range(ranks))
    tuning = Tuning(
        helper_cpu=draw(st.sampled_from(["auto", "none", pinned])),
        split_bytes=draw(st.sampled_from([0, 16, 64, 1000])),
        slice_seconds=draw(st.sampled_from([1e-6, 75e-6, 1.0])),
    )
    without = draw(st.sampled_from([(), (), tuple(range(ranks)), (ranks - 1,)]))
    kept, everywhere = draw(st.sampled_from([False, False, True])), tuning.split_bytes in (0, 64)
    return Manner(tuning, without, kept, everywhere, kept and everywhere and draw(st.booleans()))


@dataclass(frozen=True)
class Order:
    """What rank 0 asks of the others: import this file and call its nest with these arguments. ``copies``: their arrays, where
    they pass their own; ``paths``: of those on disk.
    """

    path: str
    scalars: tuple[tuple[str, object], ...]
    arrays: tuple[str, ...]
    choices: tuple[Choice, ...]
    manner: Manner
    copies: dict[str, np.ndarray] | None
    paths: dict[str, str]


def carry_out(order: Order, module: ModuleType, rank: int, arrays: dict[str, Any]) -> Any:
    """Call the nest once for every choice; what the last call returns."""
    export = storage.export_segment
    if rank in order.manner.without_segments:
        storage.export_segment = lambda size: None
    try:
        result = None
        for choice in order.choices:
            on_disk = order.manner.on_disk
            nest = module.nest.using(
                engine=choice.engine,
                tile=choice.tile,
                grid=choice.grid,
                tuning=order.manner.tuning,
                **({} if on_disk is None else on_disk.wishes),
            )
            result = nest(**arrays, **dict(order.scalars))
        return result
    finally:
        storage.export_segment = export


def distributed(values: Any, manner: Manner) -> lw.DistributedArray:
    if manner.created:
        return lw.from_function(lambda *at: values[at], values.shape, values.dtype)
    return lw.DistributedArray(values)


def follow(comm: Any) -> None:
    """The other ranks: obey until told to stop. They sleep while they wait, for cores are few."""
    module, known = None, ""
    while True:
        while not comm.Iprobe(source=0):
            time.sleep(0.0005)
        order = comm.recv(source=0)
        if order is None:
            return
        if order.path != known:
            module, known = load(Path(order.path)), order.path
        assert module is not None
        arrays: dict[str, Any] = {**dict.fromkeys(order.arrays), **(order.copies or {})}
        if order.manner.kept:
            arrays = {name: distributed(values, order.manner) for name, values in arrays.items()}
        if order.manner.on_disk is None or not order.manner.on_disk.first_alone:
            arrays |= opened(order)
        with contextlib.suppress(lw.LapwingError):  # rank 0 sees the same error and judges it
            carry_out(order, module, comm.Get_rank(), arrays)
        if order.manner.kept:
            for array in arrays.values():
                array.numpy()
        elif order.copies is not None:
            comm.gather(as_bytes({name: arrays[name] for name in order.copies}), root=0)


def opened(order: Order) -> dict[str, Any]:
    return {name: lw.open(path) for name, path in order.paths.items()}


def as_bytes(arrays: dict[str, Any]) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in arrays.items()}


class Leader:
    """Rank 0: judges examples."""

    def __init__(self, comm: Any, directory: Path) -> None:
        self.comm, self.directory = comm, directory
        self.count: Counter[str] = Counter()
        self.numbers = itertools.count()
        self.first_failure = directory / "failing.py"

    def check(self, case: Case, cuts: list[tuple[Choice, Manner]]) -> None:
        """Raise AssertionError where the nest is not right."""
        try:
            self.check_one(case, cuts)
        except Exception as error:
            if not isinstance(error, UnsatisfiedAssumption) and not self.first_failure.exists():
                self.first_failure.write_text(f"{case}\n# {cuts}\n# {type(error).__name__}: {error}\n")
            raise

    def check_one(self, case: Case, cuts: list[tuple[Choice, Manner]]) -> None:
        path = self.directory / f"nest_{next(self.numbers)}.py"
        path.write_text(case.source)
        (self.directory / "current.py").write_text(str(case))
        self.count["drawn"] += 1
        try:
            module = load(path)
        except lw.RefusedError as error:
            self.refused(path, error)
        expected = self.expectation(case, module)
        if not self.alone(case, module, expected):
            for choice, manner in cuts:
                self.together(case, module, path, (choice,), manner, RAISES)
            assume(False)
        self.count["run"] += 1
        after = self.after_calls(case, module) if any(manner.kept for _, manner in cuts) else None
        for k, (choice, manner) in enumerate(cuts):
            (self.directory / "current.py").write_text(f"{case}\n# {cuts[: k + 1]}\n")
            if manner.kept and after is not None:
                calls = (cuts[k - 1][0], *[choice] * (CALLS - 1))
                self.together(case, module, path, calls, manner, (after, None))
            else:
                self.together(case, module, path, (choice,), replace(manner, kept=False, created=False), expected)

    def expectation(self, case: Case, module: ModuleType) -> tuple[dict[str, object], dict[str, object]] | None:
        """Arguments and reductions after the plain loop; None where it raises or casts what does not fit."""
        arguments = case.arguments()
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.filterwarnings("error", "invalid value encountered in cast")
                results = by_name(module.nest, module.nest.python(**arguments))
        except (ArithmeticError, ValueError, IndexError, TypeError, RuntimeWarning):
            return None
        if case.sums:
            names: dict[str, Any] = dict(vars(module))
            exec(case.reference_source, names)
            with np.errstate(all="ignore"):
                terms = by_name(module.nest, names["nest"](**case.arguments()))
            for name in case.sums:
                results[name] = summed(results[name], terms[name])  # type: ignore[arg-type]
        return arguments, results

    def alone(self, case: Case, module: ModuleType, expected: Any) -> bool:
        """One rank first, which compiles the nest. Whether it comes to an end, rather than meet an error of the plain loop."""
        arguments, before = case.arguments(), case.arguments()
        nest = module.nest
        try:
            bound = nest.bind(arguments)
            plan = make_plan(bound, nest.dependences, 1, nest.wishes())
        except lw.RefusedError as error:
            check_arrays(arguments, before)
            self.refused(Path(module.__file__ or ""), error)
        try:
            outcome = run_alone(
                bound, plan, {a.name: {**vars(module), **arguments}[a.name] for a in bound.arrays}, None
            )
        except lw.RunError as error:
            check_arrays(arguments, before)
            if expected is not None and "2**53" not in str(error) and "does not fit" not in str(error):
                raise AssertionError(f"the plain loop does not raise, but: {error}") from error
            self.count["raises"] += 1
            return False
        assert expected is not None or not case.points, "the plain loop raises or casts what does not fit"
        self.compare(arguments, outcome.results, expected)
        return True

    def after_calls(self, case: Case, module: ModuleType) -> dict[str, object] | None:
        """The arguments after all calls; None where one of them raises or casts what does not fit."""
        arguments = case.arguments()
        nest = module.nest
        try:
            for _ in range(CALLS):
                alone = {n: np.array(v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.filterwarnings("error", "invalid value encountered in cast")
                    nest.python(**arguments)
                bound = nest.bind(alone)
                plan = make_plan(bound, nest.dependences, 1, nest.wishes())
                run_alone(bound, plan, {a.name: {**vars(module), **alone}[a.name] for a in bound.arrays}, None)
        except (ArithmeticError, ValueError, IndexError, TypeError, RuntimeWarning, lw.LapwingError):
            return None
        return arguments

    def together(
        self, case: Case, module: ModuleType, path: Path, choices: tuple[Choice, ...], manner: Manner, expected: Any
    ) -> None:
        """Call the nest on all ranks, once for every choice; ``expected`` without reductions compares arrays alone."""
        size = self.comm.Get_size()
        arguments = case.arguments()
        names = tuple(a.name for a in case.arrays)
        on_disk = manner.on_disk
        paths = {} if on_disk is None else on_disk.store(path.with_suffix(f".{next(self.numbers)}"), arguments)
        in_memory = [name for name in names if name not in paths]
        copies = {name: np.ascontiguousarray(arguments[name]) for name in in_memory} if manner.everywhere else None
        order = Order(str(path), case.scalars, names, choices, manner, copies, paths)
        for rank in range(1, size):
            self.comm.send(order, dest=rank)
        arrays = {name: distributed(arguments[name], manner) if manner.kept else arguments[name] for name in names}
        arrays |= opened(order)
        refusal, value, raised = None, None, None
        moved = communicator.known(communicator.world()).moved
        before = moved.copy()
        try:
            value = carry_out(order, module, 0, arrays)
        except lw.RefusedError as error:
            refusal = error
        except lw.RunError as error:
            raised = error
        if manner.kept:
            self.check_distributed(module.nest, case, moved - before)
            arguments.update({name: array.numpy() for name, array in arrays.items()})
        elif manner.everywhere:
            mine = as_bytes({name: arguments[name] for name in in_memory})
            assert all(found == mine for found in self.comm.gather(mine, root=0)), "ranks' copies differ afterwards"
        arguments.update({name: array.numpy() for name, array in opened(order).items()})
        assert (raised is not None) == (expected is RAISES) or refusal is not None, f"raised: {raised}"
        if raised is not None:
            check_arrays(arguments, case.arguments())
            self.count["raises together"] += 1
            return
        if refusal is not None:
            if on_disk is not None:
                check_arrays(arguments, case.arguments())
                self.refused_on_disk(case, module, choices[0], on_disk, refusal)
                return
            self.count["grids refused"] += 1
            if manner.kept:  # by the first call or by the second
                assert "every rank needs at least one" in str(refusal), f"refused: {refusal}"
            else:
                check_arrays(arguments, case.arguments())
                check_refused_grid(case, size, choices[0], refusal)
            return
        self.count["collective runs"] += 1
        self.count["kept"] += manner.kept
        self.count["created"] += manner.created
        if on_disk is None:
            plan = module.nest.using(tile=choices[-1].tile, grid=choices[-1].grid).plan(**case.arguments(), ranks=size)
            self.count["along time"] += plan.mapping is None
            self.count["skewed"] += plan.skew is not None
        self.compare(arguments, {} if manner.kept else by_name(module.nest, value), expected)

    def check_distributed(self, nest: Any, case: Case, moved: Counter[str]) -> None:
        """Arrays are given to the ranks once, and never brought together."""
        bound = nest.bind(case.arguments())
        if bound.domain.is_box or all(write_offsets(bound, name) == 1 for name in bound.nest.written):
            assert moved["gathered"] == 0, f"brought together in {CALLS} calls: {moved}"
            assert moved["scattered"] <= len(case.arrays), f"distributed more than once: {moved}"

    def refused_on_disk(
        self, case: Case, module: ModuleType, choice: Choice, on_disk: OnDisk, error: lw.RefusedError
    ) -> None:
        """Raise AssertionError unless the reason that is given is true."""
        raise AssertionError(f"refused: {error}") from error

    def compare(self, arguments: dict[str, object], results: dict[str, object], expected: Any) -> None:
        right_arguments, right_results = expected
        check_arrays(arguments, right_arguments)
        for name, value in results.items():
            check_value(name, value, right_results[name])

    def refused(self, path: Path, error: lw.RefusedError) -> NoReturn:
        """A refusal names file and line, and no nest is refused for its dependences."""
        text = str(error)
        assert path.name in text, f"no file in: {text}"
        assert text.split(path.name + ":")[1].split(":")[0].isdigit(), f"no line in: {text}"
        for reason in ("no supported tiling", "no constant distance", "index outside", "several offsets"):
            assert reason not in text, f"a legal nest was refused: {text}"
        self.count["refused"] += 1
        assume(False)


def summed(found: object, terms: Sequence[Any]) -> object:
    """The sum of terms as a nest has it, of the type that Python's has."""
    own = type(found)
    if isinstance(found, complex | np.complexfloating):
        parts = ([x.real for x in terms], [x.imag for x in terms])
        return own(complex(*(exact_sum(part, type(found.real)) for part in parts)))
    return exact_sum(terms, own) if isinstance(found, float | np.floating) else found


def by_name(nest: Any, value: Any) -> dict[str, object]:
    names = nest.loops.returns
    return dict(zip(names, value if nest.loops.returns_tuple else (value,), strict=True)) if names else {}


def check_any(leader: Leader, data: st.DataObject) -> None:
    ranks = leader.comm.Get_size()
    case = data.draw(cases(), label="nest")
    cut = st.tuples(choices(case, ranks, ENGINES), manners(ranks))
    leader.check(case, data.draw(st.lists(cut, min_size=RUNS, max_size=RUNS), label="cuts"))


Check = Callable[[Any, st.DataObject], None]


def lead(leader: Leader, check_one: Check, examples: int, start: int, node: int) -> None:
    comm, directory = leader.comm, leader.directory

    def check(data: st.DataObject) -> None:
        check_one(leader, data)

    begin = time.perf_counter()
    complete = False
    try:
        complete = search(check, examples, start)
    finally:
        report = {
            "complete": complete,
            **leader.count,
            "ranks of this node": node,
            "seconds": round(time.perf_counter() - begin, 1),
        }
        (directory / "report.json").write_text(json.dumps(report))
        for rank in range(1, comm.Get_size()):
            comm.send(None, dest=rank)


def ranks_of_this_node(comm: Any) -> int:
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    size: int = node.Get_size()
    node.Free()
    return size


def main(leader: type[Leader] = Leader, check: Check = check_any) -> int:
    directory, examples, start, seconds = Path(sys.argv[1]), *map(int, sys.argv[2:])
    # Ranks are in sessions of their own, so that nobody else could end all of them.
    faulthandler.dump_traceback_later(seconds, exit=True)
    warnings.simplefilter("ignore", RuntimeWarning)
    comm = communicator.world().Dup()  # orders never meet the nests' own messages
    node = ranks_of_this_node(comm)
    if comm.Get_rank() > 0:
        follow(comm)
        return 0
    try:
        lead(leader(comm, directory), check, examples, start, node)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
