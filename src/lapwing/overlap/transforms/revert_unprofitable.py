"""Reverts unprofitable splits: communications whose operations are still where the calls were become calls again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lapwing.overlap import mpi
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import message_of, rewrite, with_blocks
from lapwing.overlap.ir.split_phase import Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Block, Call, Statement
from lapwing.overlap.source.spans import Span


def reverted(body: Block, original: Procedure) -> Block:
    """The transformed ``body``, or the original's own if nothing is left of the transformations."""
    calls = {s.span: s for s in original.body.walk() if isinstance(s, Call)}
    return _restored(_reverted(body, calls), original.body)


def _reverted(block: Block, calls: dict[Span, Call]) -> Block:
    """Joins communications whose start and end are adjacent, if they were one of the ``calls``."""
    statements: list[Statement] = []
    for statement in block.statements:
        call = calls.get(statement.call.span) if isinstance(statement, SplitPhaseOperation) else None
        parts = 0 if call is None else _parts_before(statement, statements, call)
        if call is not None and parts:
            statements[-parts:] = [call]
            continue
        statements.append(statement)
    inner = [_with_reverted_blocks(s, calls) for s in statements]
    if len(inner) == len(block.statements) and all(a is b for a, b in zip(inner, block.statements, strict=True)):
        return block
    return replace(block, statements=tuple(inner))


def _parts_before(end: Statement, before: Sequence[Statement], call: Call) -> int:
    """How many of the last statements make up, with this end, one blocking call; 0 if they do not."""
    if not isinstance(end, SplitPhaseOperation) or end.wait is not None or end.part not in (Part.ARRIVE, Part.END):
        return 0
    message = message_of(call)
    sends = message is not None and message.kind is mpi.Kind.SENDRECV
    parts = 2 if sends else 1
    near = [s for s in before[-parts:] if isinstance(s, SplitPhaseOperation) and s.call.span == end.call.span]
    if len(near) < parts or near[0].slot != end.slot:
        return 0
    return parts if not sends or near[1].part is Part.SEND else 0


def _with_reverted_blocks(statement: Statement, calls: dict[Span, Call]) -> Statement:
    blocks = [_reverted(b, calls) for b in statement.blocks()]
    return with_blocks(statement, blocks) if blocks else statement


def _restored(body: Block, original: Block) -> Block:
    """Pairs of calls, or what one MPI_Waitall completes, become calls again where everything between their operations is
    unchanged."""
    waits: Mapping[int, int] = Counter(
        id(s.wait) for s in body.walk() if isinstance(s, SplitPhaseOperation) and s.wait is not None
    )
    if not waits:
        return original if body == original else body
    plain = _as_calls(body, waits, sends=True)
    if plain == original:
        return _as_calls(body, waits)
    runs = {id(s): block.statements[place:] for block in _blocks(original) for place, s in enumerate(block.statements)}
    while waits:
        still = {w: n for w, n in waits.items() if any(_undisturbed(b, w, waits, runs) for b in _blocks(body))}
        if still == waits:
            return _as_calls(body, waits)
        waits = still
    return body


def _undisturbed(block: Block, wait: int, waits: Mapping[int, int], runs: Mapping[int, Sequence[Statement]]) -> bool:
    """Whether the block contains all operations that this call completes, and equals the original from the first to the last,
    once ``waits`` (with the numbers of their operations) are calls again."""
    places = [n for n, s in enumerate(block.statements) if isinstance(s, SplitPhaseOperation) and id(s.wait) == wait]
    if len(places) != waits[wait]:
        return False
    start = block.statements[places[0]]
    assert isinstance(start, SplitPhaseOperation)
    between = replace(block, statements=block.statements[places[0] : places[-1] + 1])
    now = _as_calls(between, waits, sends=True).statements
    return now == tuple(runs.get(id(start.call), ()))[: len(now)]


def _as_calls(body: Block, waits: Mapping[int, int], *, sends: bool = False) -> Block:
    """The body with the operations that these calls complete, or all sends, as calls."""
    done: set[int] = set()

    def back(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, SplitPhaseOperation) and id(statement.wait) in waits and statement.wait is not None:
            if statement.part not in (Part.ARRIVE, Part.END):
                return (statement.call,)
            first = id(statement.wait) not in done  # it completes the others, too
            done.add(id(statement.wait))
            return (statement.wait,) if first else ()
        if sends and isinstance(statement, SplitPhaseOperation) and statement.part is Part.SEND:
            return (statement.call,)
        return (statement,)

    return rewrite(body, back)


def _blocks(block: Block) -> Iterable[Block]:
    yield block
    for statement in block.statements:
        for inner in statement.blocks():
            yield from _blocks(inner)
