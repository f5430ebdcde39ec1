"""The ranks of a collective call agree that they make the same one, with the same arguments, before anything happens."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import xxhash

from lapwing.errors import DifferentCalls, RanksDiffer
from lapwing.loopnest.binding.promotion import scalar_type
from lapwing.runtime.arrays.transfer import as_bytes, pieces, slices
from lapwing.runtime.mpi.arrival import ranks_text, wait_for_all
from lapwing.runtime.mpi.communicator import known, meeting_roll
from lapwing.runtime.mpi.place import calling_place
from lapwing.scratch_arrays import is_scratch

DIGEST_BYTES = 16
_ROW = struct.Struct(f"={DIGEST_BYTES}sqq")  # digest, whether the call is complete, a number


@dataclass(frozen=True)
class Call:
    """A collective call as one rank makes it.

    name, where: what is called, and where it is defined. choices: what was chosen by hand, by name. values: the arguments, by
    name, in words that tell different ones apart but for arrays' elements; None where this rank leaves them to rank 0.
    copies: the names of those that are NumPy arrays. place: file and line that make the call.
    """

    name: str
    where: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str | None], ...] = ()
    copies: frozenset[str] = frozenset()
    place: str = ""

    @property
    def digest(self) -> bytes:
        return digest_of(self.head, [text for _, text in self.values])

    @property
    def head(self) -> str:
        """All but the values' texts."""
        return repr((self.title, self.choices, [name for name, _ in self.values]))

    @property
    def title(self) -> str:
        return f"{self.where}: {self.name}" if self.where else self.name

    @property
    def is_complete(self) -> bool:
        return all(text is not None for _, text in self.values)


def is_plain(value: Any) -> bool:
    """Whether an argument is an array of which every rank has a copy of its own."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        return False
    return value.ndim > 0 and not value.dtype.hasobject


def share_memory(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Whether two arrays have elements in common; arrays too intricate to tell count as sharing."""
    try:
        return bool(np.shares_memory(a, b, max_work=10_000))  # type: ignore[arg-type]  # any limit is accepted
    except np.exceptions.TooHardError:
        return True


def described(value: Any) -> str | None:
    """An argument for Call.values; None for None."""
    if value is None:
        return None
    if scalar_type(value) is not None:
        return repr(value)
    kind = "array" if is_plain(value) else type(value).__name__
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        writable = "" if getattr(getattr(value, "flags", None), "writeable", True) else "read-only "
        kind = f"scratch {kind}" if is_scratch(value) else kind
        return f"a {writable}{value.dtype} {kind} of shape {tuple(value.shape)}"
    return f"a {kind}"


def digest_of(head: str, texts: Sequence[str | None]) -> bytes:
    """What tells calls apart. head: of Call; texts: of its values."""
    return xxhash.xxh3_128_digest("\0".join([head, *("None" if text is None else text for text in texts)]).encode())


def tell(digest: bytes, complete: bool, number: int, what: str, comm: Any) -> npt.NDArray[np.int64]:
    """Wait for all ranks, and tell each other of the call at hand: a row a rank, the last of its columns ``number``. Collective.

    number: what else ranks have to know. what: the call, for messages. Ends the run where ranks do not arrive.
    """
    own = np.frombuffer(_ROW.pack(digest, complete, number), np.int64)
    told = np.empty((comm.Get_size(), len(own)), np.int64)
    wait_for_all(comm.Iallgather(own, told), meeting_roll(comm), what)
    known(comm).calls += 1
    return told


def is_same(told: npt.NDArray[np.int64]) -> bool:
    """Whether all ranks have told the same."""
    rows = told.tobytes()
    return rows == rows[: told.itemsize * told.shape[1]] * len(told)


def agree_on(
    call: Call, ways_out: str, comm: Any, told: npt.NDArray[np.int64] | None = None
) -> dict[str, frozenset[int]]:
    """Wait for all ranks of comm (mpi4py, Lapwing's own) to make this call; give the ranks with a copy, by array.

    Collective. Arguments that ranks other than the first leave out are the first's. Raises RanksDiffer, on every rank the
    same, where the calls differ; ends the run where ranks do not arrive. ways_out: what to do about differing arguments.
    told: what ``tell`` has given, where they have told each other of this call.
    """
    if told is None:
        told = tell(call.digest, call.is_complete, 0, call.name, comm)
    if call.is_complete and (told[:, :-1] == told[0, :-1]).all():
        everyone = frozenset(range(len(told)))
        return dict.fromkeys(call.copies, everyone)
    met = comm.allgather((replace(call, place=calling_place()), known(comm).arrays))
    known(comm).arrays = max(arrays for _, arrays in met)  # ranks that were apart go on from the same number
    calls: list[Call] = [call for call, _ in met]
    _check_same_call(calls)
    _check_same_arguments(calls, ways_out)
    names = {name for one in calls for name in one.copies}
    return {name: frozenset(r for r, one in enumerate(calls) if name in one.copies) for name in names}


def _check_same_call(calls: Sequence[Call]) -> None:
    if len({call.title for call in calls}) == 1:
        return
    made: dict[tuple[str, str], list[int]] = {}
    for rank, call in enumerate(calls):
        made.setdefault((call.title, call.place), []).append(rank)
    texts = [
        f"{ranks_text(ranks)} call{'s' if len(ranks) == 1 else ''} {title}{f' at {place}' if place else ''}"
        for (title, place), ranks in made.items()
    ]
    raise DifferentCalls(
        f"the ranks make different calls: {'; '.join(texts)}. "
        "Every rank of a communicator makes the same calls in the same order; comm= says which ranks a call is for."
    )


def _check_same_arguments(calls: Sequence[Call], ways_out: str) -> None:
    first = calls[0]
    chosen = dict(first.choices)
    for rank, call in enumerate(calls):
        for name, text in call.choices:
            if text != chosen.get(name):
                _differ(first.title, name, chosen.get(name, "nothing"), text, [rank], "Choose the same on every rank.")
    for name, expected in first.values:
        others: dict[str | None, list[int]] = {}
        for rank, call in enumerate(calls):
            others.setdefault(dict(call.values).get(name), []).append(rank)
        for found, ranks in others.items():
            left_to_first = found is None and "DistributedArray" not in (expected or "")
            if found != expected and not left_to_first:
                _differ(first.title, name, expected or "None", found or "None", ranks, ways_out)


def _differ(call: str, name: str, expected: str, found: str, ranks: Sequence[int], ways_out: str) -> NoReturn:
    raise RanksDiffer(
        f"{call}: {name} differs between ranks: {expected} on rank 0, {found} on {ranks_text(ranks)}. {ways_out}"
    )


# -- elements --------------------------------------------------------------------------------------------------------


def check_same_elements(
    call: Call, arrays: Mapping[str, Any], holders: Mapping[str, frozenset[int]], ways_out: str, comm: Any
) -> None:
    """Compare ranks' copies of arrays, bit by bit, with the first rank's. Collective.

    arrays: this rank's copies. holders: the ranks with a copy, by name, the same on all ranks. Raises RanksDiffer, on every
    rank the same, with the first element that differs.
    """
    rank = comm.Get_rank()
    names = sorted(name for name, ranks in holders.items() if len(ranks) > 1)
    if not names:
        return
    own = b"".join(_digest(arrays[n]) if rank in holders[n] else bytes(DIGEST_BYTES) for n in names)
    table = np.empty((comm.Get_size(), len(names), DIGEST_BYTES), np.uint8)
    comm.Allgather(np.frombuffer(own, np.uint8), table)
    for k, name in enumerate(names):
        others = [r for r in sorted(holders[name]) if (table[r, k] != table[0, k]).any()]
        if others:
            index, expected, found = _first_difference(arrays.get(name), others[0], comm)
            same = [r for r in others if (table[r, k] == table[others[0], k]).all()]
            element = f"{name}[{', '.join(map(str, index))}]"
            _differ(call.title, element, expected, found, same, ways_out)


def _digest(values: npt.NDArray[Any]) -> bytes:
    """Of the elements in row-major order, whatever their layout."""
    digest = xxhash.xxh3_128()
    for _, dense in _dense_pieces(values):
        digest.update(as_bytes(dense).data)
    return digest.digest()


def _digests(values: npt.NDArray[Any] | None) -> Iterator[bytes]:
    """Of its parts."""
    for _, dense in _dense_pieces(values):
        yield xxhash.xxh3_128_digest(as_bytes(dense).data)


def _dense_pieces(values: npt.NDArray[Any] | None) -> Iterator[tuple[tuple[int, ...], npt.NDArray[Any]]]:
    """Parts of an array in row-major order, each with the index of its first element."""
    assert values is not None
    for piece in pieces(tuple((0, n) for n in values.shape), values.itemsize):
        yield tuple(low for low, _ in piece), np.ascontiguousarray(values[slices(piece)])


def _first_difference(values: npt.NDArray[Any] | None, other: int, comm: Any) -> tuple[tuple[int, ...], str, str]:
    """Index of the first element in which a rank's copy differs from the first rank's, and both. Collective."""
    rank = comm.Get_rank()
    digests = comm.bcast(list(_digests(values)) if rank == 0 else None, root=0)
    number = None
    if rank == other:
        number = next(k for k, (own, first) in enumerate(zip(_digests(values), digests, strict=True)) if own != first)
    number = comm.bcast(number, root=other)
    found = None
    if rank in (0, other):
        start, dense = next(piece for k, piece in enumerate(_dense_pieces(values)) if k == number)
        if rank == 0:
            comm.Send(as_bytes(dense), dest=other)
        else:
            expected = np.empty_like(dense)
            comm.Recv(as_bytes(expected), source=0)
            found = _difference(start, expected, dense)
    result: tuple[tuple[int, ...], str, str] = comm.bcast(found, root=other)
    return result


def _difference(
    start: tuple[int, ...], expected: npt.NDArray[Any], found: npt.NDArray[Any]
) -> tuple[tuple[int, ...], str, str]:
    unequal = (as_bytes(expected) != as_bytes(found)).reshape(-1, expected.itemsize).any(axis=1)
    at = np.unravel_index(int(np.argmax(unequal)), expected.shape)
    texts = [repr(values[at].item()) for values in (expected, found)]
    if texts[0] == texts[1]:  # NaNs
        texts = [
            f"{t} (bits {values[at].tobytes()[::-1].hex()})" for t, values in zip(texts, (expected, found), strict=True)
        ]
    return tuple(int(a) + s for a, s in zip(at, start, strict=True)), texts[0], texts[1]
