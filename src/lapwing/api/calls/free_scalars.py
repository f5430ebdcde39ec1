"""Numbers that may differ between calls that are alike."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest, set_up, values_outside_loops
from lapwing.loopnest.binding.promotion import CARRIED_LIMIT
from lapwing.loopnest.binding.scalars import names_in, scalar_places, set_again

Values = Sequence[Any]
# By position among the native scalars, and the floats that reductions begin with, by name.
Numbers = tuple[list[tuple[int, float]], list[tuple[str, Any]]]


class FreeScalars:
    """The native scalars that may differ between calls that are alike, and what reductions begin with: free ones, and what
    set-ups make of them."""

    def __init__(self, bound: BoundNest, positions: Mapping[str, int], free: Sequence[str], values: Values) -> None:
        self._nest = bound.nest
        kinds = (float, complex, np.inexact, *((int, np.integer) if bound.nest.is_generic else ()))
        floats = [
            n for n in free if isinstance(values[positions[n]], kinds) and not isinstance(values[positions[n]], bool)
        ]
        native = scalar_places(bound.parameters)
        self._floats = [positions[name] for name in floats]
        self._last: tuple[list[Any], Numbers] = ([None] * len(floats), ([], []))
        given = [(native[name], positions[name]) for name in floats if name in native]
        self._complex = [place for place in given if _is_complex(values[place[1]])]
        self._given = [place for place in given if place not in self._complex]
        of_floats = [a for a in bound.body.accumulators if a.dtype.startswith("float")]
        begun = [a.name for a in of_floats if a.operator in ("max", "min", "+")]
        self._starts = [(name, positions[name]) for name in begun if name in floats]
        self._setups = set_again(bound.nest, floats)
        mentioned = names_in(setup.value for setup in self._setups)
        self._outside = [(name, positions[name]) for name in mentioned if name in positions]
        known = (
            values_outside_loops(bound.nest, {name: values[k] for name, k in positions.items()}, {})
            if mentioned
            else {}
        )
        # Arrays are not kept: a call that is alike brings its own.
        self._constants = {n: known[n] for n in mentioned if n not in positions and not getattr(known[n], "shape", ())}
        made = dict.fromkeys(target for setup in self._setups for target in setup.targets)
        self._made = [(native[name], name, bound.parameters[name]) for name in made if name in native]
        self._made_starts = [name for name in begun if name in made]
        # Of other reductions, as complex sums, more than a start hangs on it.
        others = set(bound.nest.accumulators) - set(begun)
        self._fixed = [(name, bound.parameters[name]) for name in made if name in others]
        self._fixed_given = [(positions[name], bound.parameters[name]) for name in floats if name in others]

    def of(self, values: Values) -> Numbers | None:
        """Of a call; None where a set-up now gives what the nest cannot be bound to alike."""
        for position, before in self._fixed_given:
            if not _is_same(values[position], before):
                return None
        if not self._setups:
            return self._of_call(values)
        floats = [values[position] for position in self._floats]
        before, found = self._last
        if all(map(operator.is_, floats, before)):  # numbers do not change
            return found
        anew = self._anew(values)
        if anew is not None:
            self._last = floats, anew
        return anew

    def _of_call(self, values: Values) -> Numbers:
        found = [(k, values[position]) for k, position in self._given]
        for k, position in self._complex:
            found += _parts(k, values[position])
        return found, [(name, values[position]) for name, position in self._starts]

    def _anew(self, values: Values) -> Numbers | None:
        found, starts = self._of_call(values)
        names = {**self._constants, **{name: values[position] for name, position in self._outside}}
        try:
            for setup in self._setups:
                set_up(self._nest, setup, names)
        except RefusedError:  # so will binding, in full
            return None
        for k, name, before in self._made:
            value = names[name]
            if type(value) is not type(before):
                return None
            if isinstance(value, float | complex | np.inexact):
                found += _parts(k, value)
            elif self._nest.is_generic and isinstance(value, int | np.integer) and not isinstance(value, bool):
                if abs(int(value)) > CARRIED_LIMIT:
                    return None
                found.append((k, int(value)))
            elif value != before:
                return None
        if any(not _is_same(names[name], before) for name, before in self._fixed):
            return None
        return found, [*starts, *((name, names[name]) for name in self._made_starts)]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two numbers have one type and the same bits."""
    return type(one) is type(other) and np.asarray(one).tobytes() == np.asarray(other).tobytes()


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex | np.complexfloating)


def _parts(place: int, value: Any) -> list[tuple[int, float]]:
    """A float, or the two parts of a complex number, with their places among the native scalars."""
    return [(place, value.real), (place + 1, value.imag)] if _is_complex(value) else [(place, value)]
