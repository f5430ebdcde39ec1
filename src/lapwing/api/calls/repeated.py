"""Calls of a nest on ranks, with arrays that stay distributed: a call alike an earlier one goes straight to its run.

Calls are alike as in one process (``dispatch``), and where arrays are distributed in the same way. Whether all ranks find the
call alike the same earlier one they tell each other together with what they call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lapwing.api.calls.free_scalars import FreeScalars
from lapwing.api.calls.planned import PlannedNest
from lapwing.api.calls.run import Found, Met, agreed_choices, run
from lapwing.loopnest.binding.promotion import scalar_type
from lapwing.memo import Memo
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.meeting import Call, described, digest_of, is_same, tell
from lapwing.runtime.mpi import communicator
from lapwing.runtime.repeated import RepeatedRun

Values = Sequence[Any]


class _Known:
    """A call that may be repeated. number: the same on all ranks, and another for every such call, and for whether its arrays
    are to be distributed first."""

    def __init__(self, found: Found, run: RepeatedRun, scalars: FreeScalars, number: int, distribute: bool) -> None:
        self.calls, self.run, self.scalars, self.distribute = found.calls, run, scalars, distribute
        self.number = 2 * number + distribute
        self._plan = None if self.calls is None else self.calls.plan

    @property
    def holds(self) -> bool:
        """Whether this rank has no better plan in mind."""
        return self.calls is None or (self.calls.plan is self._plan and not self.calls.deserve_second_thoughts)


class RepeatedCalls:
    """The calls of one nest on ranks.

    positions: of names among the values of a call; kinds: what binding may look at, of each of them (``dispatch``); free: the
    names of scalars that binding does not look at.
    """

    def __init__(
        self,
        nest: PlannedNest,
        positions: Mapping[str, int],
        kinds: Sequence[Callable[[Any], Any]],
        free: Sequence[str],
    ) -> None:
        self._positions, self._kinds, self._free = dict(positions), tuple(kinds), tuple(free)
        loops = nest.loops
        parameters = list(loops.parameters)
        self._outside = sorted(name for name in positions if name not in parameters)
        self._told_of = [positions[name] for name in (*parameters, *self._outside)]
        self._arrays = [positions[name] for name in loops.arrays]
        self._names = list(loops.arrays)
        self._heads: Memo[str] = Memo()
        self._remembered: Memo[_Known] = Memo()

    def __call__(self, nest: PlannedNest, values: Values, arguments: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The reductions by name. values: all that a call depends on. arguments: those of the nest. Raises as a call does."""
        comm = self._comm(nest, values)
        texts = None if comm is None else self._texts(values)
        if texts is None:
            return run(nest, arguments()).results
        wishes, key = self._key(nest, values, comm)
        known = None if key is None else self._remembered.get(key)
        scalars = None if known is None else known.scalars.of(values)
        number = known.number if known is not None and scalars is not None and known.holds else 0
        told = tell(digest_of(self._head(nest, wishes), texts), True, number, nest.name, comm)
        if known is not None and number and is_same(told):
            names = {name: values[position] for name, position in zip(self._names, self._arrays, strict=True)}
            results = known.run.run(names, scalars[0] if scalars else (), known.distribute)
            if known.calls is not None:
                known.calls.note_run(known.run.seconds)
            return results
        met = Met(told)
        outcome = run(nest, arguments(), met=met)
        if met.found is not None:
            self._remember(nest, values, met.found, comm, key)
        return outcome.results

    def _comm(self, nest: PlannedNest, values: Values) -> Any | None:
        """The ranks, where all arrays are distributed over them; None for other calls."""
        comm = None
        for position in self._arrays:
            value = values[position]
            if type(value) is not DistributedArray or (comm is not None and value.comm is not comm):
                return None
            comm = value.comm
        if comm is None or nest.comm is None:
            return comm
        chosen = communicator.ranks_for(nest.comm, nest.name)
        return comm if chosen is comm else None

    def _texts(self, values: Values) -> list[str] | None:
        """The values in words, as Call has them; None where one is neither a number nor a distributed array."""
        texts = []
        for position in self._told_of:
            value = values[position]
            kind = type(value)
            if kind is DistributedArray:
                texts.append(value.identity)
            elif kind is int or kind is float:
                texts.append(repr(value))
            elif scalar_type(value) is None:
                return None
            else:
                texts.append(described(value) or "")
        return texts

    def _head(self, nest: PlannedNest, wishes: Any) -> str:
        try:
            head = self._heads.get(wishes)
        except TypeError:  # a choice that planning refuses
            return self._new_head(nest)
        if head is None:
            head = self._new_head(nest)
            self._heads.keep(wishes, head)
        return head

    def _new_head(self, nest: PlannedNest) -> str:
        names = [*nest.loops.parameters, *self._outside]
        where = nest.loops.where(nest.loops.line)
        return Call(nest.loops.name, where, agreed_choices(nest), tuple((name, None) for name in names)).head

    def _key(self, nest: PlannedNest, values: Values, comm: Any) -> tuple[Any, Any]:
        """The choices made by hand, and what is equal for calls that are alike; None for a call that is like no other."""
        wishes = (nest.engine, nest.tile, _hashable(nest.grid), nest.tuning, nest.memory, nest.pass_sweeps, nest.ring)
        kinds = [
            value.form if type(value) is DistributedArray else kind(value)
            for kind, value in zip(self._kinds, values, strict=True)
        ]
        if None in kinds:
            return wishes, None
        key = (id(comm), wishes, self._same(values), *kinds)  # what is kept under it keeps the communicator
        try:
            hash(key)
        except TypeError:
            return wishes, None
        return wishes, key

    def _same(self, values: Values) -> tuple[int, ...]:
        """Which arrays are the same ones; () where none are."""
        arrays = [values[position] for position in self._arrays]
        if len(set(map(id, arrays))) == len(arrays):
            return ()
        return tuple(next(k for k, other in enumerate(arrays) if other is array) for array in arrays)

    def _remember(self, nest: PlannedNest, values: Values, found: Found, comm: Any, before: Any) -> None:
        """Keep what was found, for calls on arrays as they are now, and as they were. before: the key of the call."""
        arrays = {name: values[position] for name, position in zip(self._names, self._arrays, strict=True)}
        number = communicator.known(comm).calls
        _, key = self._key(nest, values, comm)
        if key is None or not RepeatedRun.fits(found.bound, found.plan, arrays):
            return
        scalars = FreeScalars(found.bound, self._positions, self._free, values)
        repeated = RepeatedRun(found.bound, found.plan, comm, found.place, nest.tuning)
        if before is not None:
            self._remembered.keep(before, _Known(found, repeated, scalars, number, distribute=True))
        self._remembered.keep(key, _Known(found, repeated, scalars, number, distribute=False))


def _hashable(grid: Any) -> Any:
    return tuple(grid) if isinstance(grid, list) else grid
