"""A loop inside of a body as several that leave compilers more freedom: over parts of its range in which conditions on its index
are decided, each with some of its stores, as strips that go through loops inside of it, or in two versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.codegen.body.if_conversion import calls_somewhere
from lapwing.codegen.body.wrapping import wrapping
from lapwing.codegen.inner_loops.elements import Certain, NewLocal, elements_in, may_be_reordered
from lapwing.codegen.inner_loops.interchange import interchanged
from lapwing.codegen.inner_loops.splitting import split_at_conditions
from lapwing.codegen.inner_loops.stores import distributed_stores
from lapwing.codegen.inner_loops.versioning import independent_where
from lapwing.codegen.outer_loops.independence import Meeting, accesses_in, meeting, stores_in
from lapwing.loopnest.binding import typed as t

_FEW_ITERATIONS = 8  # that compilers unroll, after which nothing is left of conditions on the index


def several_loops(loop: t.TypedFor, certain: Certain, new: NewLocal) -> Sequence[t.TypedStatement]:
    """Statements in the place of an inner loop: the loop alone, with what is known of it, where nothing is gained."""
    if any(isinstance(s, t.TypedFor | t.TypedWhile | t.TypedJump) for s in t.all_statements(loop.body)):
        return interchanged(loop, certain, new) or [loop]
    loop = replace(loop, exist=elements_in(loop.body, certain))
    if not (isinstance(loop.step, t.Literal) and loop.step.value == 1 and may_be_reordered(loop.body)):
        return [loop]
    if not loop.independent:
        is_worth_it = _is_worth_it(loop)
        if not _are_independent(loop):
            if _is_short(loop):
                return [loop]
            return (is_worth_it and distributed_stores(loop, new)) or _versions(loop, certain, new)
        if not is_worth_it:
            return [loop]
        loop = replace(loop, independent=True)
    return [loop] if _is_short(loop) else split_at_conditions(loop, certain, new)


def _versions(loop: t.TypedFor, certain: Certain, new: NewLocal) -> list[t.TypedStatement]:
    """The loop, and where rows that are not the same say that iterations are independent, that as well."""
    test = independent_where(loop)
    if test is None:
        return [loop]
    split = split_at_conditions(replace(loop, independent=True), certain, new)
    return [t.TypedIf(loop.line, loop.text, test, tuple(split), (loop,))]


def _is_worth_it(loop: t.TypedFor) -> bool:
    """Whether there is more to do than compilers do by themselves: conditions, indices that come back, calls, and several stores
    to one array."""
    if any(isinstance(s, t.TypedIf) for s in loop.body) or wrapping(loop.body, loop.index.name):
        return True
    arrays = [target.array for target in stores_in(loop.body)]
    if calls_somewhere(loop.body) or len(arrays) > len(set(arrays)):
        return True
    values = (value for s in loop.body for value in t.own_values(s))
    return any(isinstance(node, t.Select) for value in values for node in t.walk(value))


def _are_independent(loop: t.TypedFor) -> bool:
    """Whether nothing that an iteration stores is touched by others."""
    accesses = list(accesses_in(loop.body))
    name = loop.index.name
    return all(
        meeting(store, access, name, ()) is not Meeting.ANY for store in stores_in(loop.body) for access in accesses
    )


def _is_short(loop: t.TypedFor) -> bool:
    match loop:
        case t.TypedFor(start=t.Literal(value=int() as start), stop=t.Literal(value=int() as stop)):
            return stop - start <= _FEW_ITERATIONS
    return False
