"""A loop whose iterations wait for one another, distributed over three: what the cycle of dependences waits for, the cycle, and
what depends on it (vector code generation by π-blocks: Allen and Kennedy, TOPLAS 1987).

    for j:                                               for j in a strip: m[i, j] = score[j] + m[i - 1, j - 1]
        m[i, j] = score[j] + m[i - 1, j - 1]       →     for j in a strip: e[i, j] = max(m[i, j - 1] - open, e[i, j - 1] - extend)
        e[i, j] = max(m[i, j - 1] - open, e[i, j - 1] - extend)
        way[i, j] = m[i, j] < e[i, j]                    for j in a strip: way[i, j] = m[i, j] < e[i, j]

Statements are the vertices of a graph, dependences between their instances the edges: of those that the loop carries, one joins
the statement of the earlier iteration to that of the later one. The first and the last loop carry none, so that compilers make
vectors of them; locals that one loop sets for another are expanded into arrays of a strip.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lapwing.codegen.body.distribution import Part
from lapwing.codegen.outer_loops.independence import affine_pairs
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.chains import chain_cycles
from lapwing.tiling.invariants import is_invariant

_MOST_STATEMENTS = 40
_OPERATIONS_IN_A_CYCLE = 3  # of scalars, loads and stores among them
_LEAST_SHARE = 0.4  # of all operations, those that are not of the cycle: strips take their time, too

_Edges = set[tuple[int, int]]


def around_the_cycle(statements: Sequence[t.TypedStatement], index: str) -> tuple[Part, ...]:
    """The loops that one over an index, which counts up, is distributed over; none where it stays whole: where something is
    called or brought together, where iterations do not wait for one another, or where they wait longer than for all they do.
    """
    if len(statements) > _MOST_STATEMENTS or not all(isinstance(s, t.TypedStore | t.TypedLocal) for s in statements):
        return ()
    if any(_is_gone_along_and_looked_up(array, statements) for array in _written(statements)):
        return ()  # it may be any element
    edges, carried = _dependences(statements, index)
    reached = _closure(edges, len(statements))
    cycle = {k for k in range(len(statements)) if k in reached[k]}
    behind = {k for k in range(len(statements)) if any(k in reached[of] for of in cycle)} | cycle
    awaited = {k for k in range(len(statements)) if cycle & reached[k]} | cycle
    # What nothing in the cycle waits for is done behind it, from elements rather than from locals.
    groups = sorted(awaited - behind), sorted(awaited & behind), sorted({*range(len(statements))} - awaited)
    first, middle, last = groups
    if (
        not middle
        or len(middle) == len(statements)
        or any({p, q} <= set(group) for p, q in carried for group in (first, last))
    ):
        return ()
    if not _is_worth_it(statements, index, middle):
        return ()
    return tuple(_parts(statements, groups))


def _written(statements: Sequence[t.TypedStatement]) -> set[str]:
    return {s.target.array for s in statements if isinstance(s, t.TypedStore)}


def _is_gone_along_and_looked_up(array: str, statements: Sequence[t.TypedStatement]) -> bool:
    """Whether some elements of an array are looked up, and others lie at known places."""
    touched = (access for s in statements for access, _ in _accesses(s) if access.array == array)
    return len({any(isinstance(s, t.LookupSubscript) for s in access.subscripts) for access in touched}) > 1


def _dependences(statements: Sequence[t.TypedStatement], index: str) -> tuple[_Edges, _Edges]:
    """Between statements, by their places, all and those that the loop carries."""
    edges, carried = _Edges(), _Edges()
    touched = [list(_accesses(statement)) for statement in statements]
    used = list(map(_locals, statements))
    for q in range(len(statements)):
        for p, earlier in enumerate(statements[: q + 1]):
            if isinstance(earlier, t.TypedLocal) and p < q and earlier.local in used[q]:
                edges.add((p, q))
            for one, stores in touched[p]:
                for other, stores_too in touched[q]:
                    if one.array != other.array or not (stores or stores_too):
                        continue
                    for after in _after(one, other, index):
                        if after > 0:
                            carried.add((p, q))
                        elif after < 0:
                            carried.add((q, p))
                        elif p < q:
                            edges.add((p, q))
    # Of what raises, the first in the order of the loop counts.
    raising = [k for k, s in enumerate(statements) if t.own_values_may_raise(s)]
    carried |= {(p, q) for p in raising for q in raising}
    return edges | carried, carried


def _accesses(statement: t.TypedStatement) -> Iterator[tuple[t.Load, bool]]:
    """The elements that a statement looks at, or stores to."""
    assert isinstance(statement, t.TypedStore | t.TypedLocal)
    yield from ((node, False) for node in t.walk(statement.value) if isinstance(node, t.Load))
    if isinstance(statement, t.TypedStore):
        yield statement.target, True


def _locals(statement: t.TypedStatement) -> set[t.Local]:
    return {n for value in t.own_values(statement) for n in t.walk(value) if isinstance(n, t.Local)}


def _after(one: t.Load, other: t.Load, index: str) -> Collection[int]:
    """How many iterations after an access the other one may be to the same element, by its sign alone where that is not known, as
    of elements that are looked up."""
    distance: int | None = None
    for first, second in affine_pairs(one, other):
        factor, difference = first.coefficient(index), first - second
        if difference.terms:
            continue
        if difference.constant % factor if factor else difference.constant:
            return ()
        if factor:
            found = difference.constant // factor
            if distance is not None and found != distance:
                return ()
            distance = found
    return (-1, 0, 1) if distance is None else (distance,)


def _closure(edges: _Edges, count: int) -> list[set[int]]:
    """What can be reached from every vertex by one edge or more."""
    reached = [{q for p, q in edges if p == k} for k in range(count)]
    for via in range(count):
        for k in range(count):
            if via in reached[k]:
                reached[k] |= reached[via]
    return reached


def _is_worth_it(statements: Sequence[t.TypedStatement], index: str, middle: Collection[int]) -> bool:
    """Whether iterations wait for less than a core takes for all that they do, much of which is not of the cycle."""
    taken = [_operations(statement) for statement in statements]
    apart = sum(operations for k, operations in enumerate(taken) if k not in middle)
    # Elements that are looked up may be those of the iteration before, which then waits in memory.
    cycles = max(1, chain_cycles(t.TypedBody(tuple(statements[k] for k in middle), (), ()), index, 1))
    return _OPERATIONS_IN_A_CYCLE * cycles < sum(taken) and apart >= _LEAST_SHARE * sum(taken)


def _operations(statement: t.TypedStatement) -> int:
    nodes = {node for value in t.own_values(statement) for node in t.walk(value) if not is_invariant(node)}
    return sum(isinstance(node, t.Operation | t.Select | t.Load) for node in nodes) + isinstance(
        statement, t.TypedStore
    )


def _parts(statements: Sequence[t.TypedStatement], groups: Sequence[Sequence[int]]) -> Iterator[Part]:
    set_in = {s.local: k for k, s in enumerate(statements) if isinstance(s, t.TypedLocal)}
    used_in: dict[t.Local, set[int]] = {}
    for k, statement in enumerate(statements):
        for local in _locals(statement):
            used_in.setdefault(local, set()).add(k)
    for number, group in enumerate(groups):
        own = set(group)
        incoming = [v for v in set_in if used_in.get(v, set()) & own and set_in[v] not in own]
        outgoing = [v for v in set_in if set_in[v] in own and used_in.get(v, set()) - own]
        if group:
            part = tuple(statements[k] for k in group)
            yield Part(part, (), tuple(incoming), tuple(outgoing), is_last=number > 0)
