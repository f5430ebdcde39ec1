"""Whether two neighbouring statements may be interchanged; if not, which dependence prevents it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lapwing.affine.affine import Condition
from lapwing.affine.intersection import may_intersect
from lapwing.affine.sections import Chosen
from lapwing.overlap import mpi
from lapwing.overlap.analysis.effects.effects import Effects, MessageOperation
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.source.spans import Span


@dataclass(frozen=True)
class Conflict:
    """``kind``: "data", "messages", "order" (of output or hidden state), "control" or "unknown"; for a loop or a procedure that
    is not split also "iterations" (a loop-carried dependence), "rounding" (of a reduction), "bounds", "interior" (there is
    none) or "parts" (of a procedure). ``what``: the reason in words. ``name``: the variable.
    """

    kind: str
    what: str
    where: Span | None
    name: str | None = None


def conflict(
    first: Effects,
    second: Effects,
    aliases: Aliases,
    *,
    private: frozenset[str] = frozenset(),
    context: Condition = (),
    chosen: Chosen | None = (),
) -> Conflict | None:
    """Why ``second`` may not run before ``first``, which precedes it; None if it may.

    ``private``: keys of variables that carry no value between the two or past them (see liveness.py). ``context``: conditions
    on the terms of both; ``chosen``: the values of some of them, or None to ask only for conflicts that no choice of array
    elements could avoid.
    """
    for effects, other in ((first, second), (second, first)):
        if effects.barrier is not None:
            return Conflict("unknown", effects.barrier, effects.where)
        if effects.leaves is not None and (_shows(other)):
            return Conflict("control", f"a {effects.leaves} may end the procedure here", effects.where)
    if first.io and second.io:
        return Conflict("order", "both read or write files", second.where)
    shared = first.states & second.states
    if shared:
        return Conflict("order", f"both use the same hidden state ({', '.join(sorted(shared))})", second.where)
    if ("synchronisation" in first.states and second.operations) or (
        "synchronisation" in second.states and first.operations
    ):
        return Conflict("messages", "a barrier, or work on files that other ranks see, stands between", second.where)
    return message_conflict(first, second) or data_conflict(first, second, aliases, private, context, chosen)


def barrier_advice(barrier: str) -> str:
    """Advice where ``barrier`` (as in ``Effects``) keeps everything from passing."""
    if barrier.endswith(" calls itself"):
        return "nothing: what a procedure that calls itself does is not followed"
    if " begins or ends MPI" in barrier:
        return "nothing: messages stay between the begin and the end of MPI"
    if re.search(r"\bstd::\S+ is not in the sources$", barrier):
        return "C++'s library is not followed: compute with plain arrays and pointers there"
    return "give the source of what is called there"


def _shows(effects: Effects) -> bool:
    return bool(effects.accesses or effects.operations or effects.io or effects.leaves)


def data_conflict(
    first: Effects,
    second: Effects,
    aliases: Aliases,
    private: frozenset[str] = frozenset(),
    context: Condition = (),
    chosen: Chosen | None = (),
) -> Conflict | None:
    """The memory dependence that prevents interchanging the two; None if there is none."""
    for one, two in _overlapping(first, second, aliases, context, chosen):
        name = two.symbol or one.symbol
        if (
            one.symbol is not None
            and one.symbol.key in private
            and one.symbol == two.symbol
            and not (one.through or two.through)
        ):
            continue
        word = {
            (True, True): "written here and again there",
            (True, False): "written here and read there",
            (False, True): "read here and written there",
        }[(one.writes, two.writes)]
        label = name.name if name is not None else "memory"
        return Conflict("data", f"{label} is {word}", one.where, label)
    return None


def _overlapping(
    first: Effects, second: Effects, aliases: Aliases, context: Condition, chosen: Chosen | None
) -> Iterable[tuple[Access, Access]]:
    for one in first.accesses:
        for two in second.near(one):
            if (one.writes or two.writes) and may_overlap(one, two, aliases, context, chosen):
                yield one, two


def may_overlap(
    one: Access, two: Access, aliases: Aliases, context: Condition = (), chosen: Chosen | None = ()
) -> bool:
    """Whether two accesses may overlap in memory."""
    if one.symbol is not None and two.symbol is not None:
        if one.symbol == two.symbol and one.through == two.through:
            if one.section is None or two.section is None or one.anchor != two.anchor:
                return True
            return chosen is not None and may_intersect(one.section, two.section, context, chosen)
        if one.own_key is not None and two.own_key is not None and one.own_key != two.own_key:
            return False
        if one.through and two.through and aliases.never_alias(one.symbol, two.symbol, later=one.stale or two.stale):
            return False
    return any(aliases.may_alias(a, b) for a in one.memory for b in two.memory)


# ---- messages ---------------------------------------------------------------------------------------------------------


def message_conflict(first: Effects, second: Effects) -> Conflict | None:
    """Why the order of messages prevents interchanging the two; None if it does not."""
    for one in first.operations:
        for two in second.operations:
            reason = _in_order(one, two)
            if reason is not None:
                where = two.statement.span if two.statement is not None else None
                return Conflict("messages", reason, where)
    return None


def _differ(a: str | None, b: str | None) -> bool:
    """Whether two canonical texts certainly denote different values: two different numbers, or two of MPI's constants."""
    if a is None or b is None or a == b:
        return False
    return _is_number(a) and _is_number(b)


def _is_number(text: str) -> bool:
    """Negative numbers are excluded: they may be wildcards."""
    return text.strip("[]()").isdigit()


def _in_order(one: MessageOperation, two: MessageOperation) -> str | None:
    """MPI 3.1, 3.5 (messages do not overtake) and 5.12 (collectives in the same order everywhere)."""
    a, b = one.call, two.call
    if a.kind is mpi.Kind.BARRIER or b.kind is mpi.Kind.BARRIER:
        return "a barrier stands between"
    if mpi.Kind.PROBE in (a.kind, b.kind) or mpi.Kind.PERSISTENT in (a.kind, b.kind):
        return "a probe or a persistent request stands between"
    if mpi.Kind.SENDRECV in (a.kind, b.kind) and a.kind in _POINT and b.kind in _POINT:
        # Of an MPI_Sendrecv the operation describes only the send.
        apart = _differ_constants(one.communicator, two.communicator)
        return None if apart else f"{a.name} and {b.name} may match the same messages"
    if two.ordered and (a.blocking or a.kind is mpi.Kind.COMPLETION or one.ordered):
        return "some call takes messages from anyone, or asks what has come: what is sent sooner might be taken for another"
    if a.collective and b.collective:
        if _differ_constants(one.communicator, two.communicator):
            return None
        return "collective calls keep their order"
    if a.kind is b.kind and a.kind in (mpi.Kind.SEND, mpi.Kind.RECV):
        return None if _never_match(one, two) else "messages between the same ranks with the same tag keep their order"
    # An operation that may wait for other ranks must not precede one that they wait for.
    if b.blocking and b.kind in _WAITING and a.kind is not mpi.Kind.COMPLETION:
        return f"{b.name} may wait for what {a.name} sends"
    return None


def _never_match(one: MessageOperation, two: MessageOperation) -> bool:
    """Whether the two certainly differ in communicator, tag or (numeric) peer."""
    return (
        _differ(one.tag, two.tag)
        or _differ(one.peer, two.peer)
        or _differ_constants(one.communicator, two.communicator)
    )


def _differ_constants(a: str | None, b: str | None) -> bool:
    """Whether both are different constants, such as MPI_COMM_WORLD and MPI_COMM_SELF; two variables may hold the same
    communicator."""
    return a is not None and b is not None and a != b and a.startswith("'") and b.startswith("'")


_WAITING = frozenset({mpi.Kind.SEND, mpi.Kind.RECV, mpi.Kind.COLLECTIVE, mpi.Kind.SETUP})
_POINT = frozenset({mpi.Kind.SEND, mpi.Kind.RECV, mpi.Kind.SENDRECV})
