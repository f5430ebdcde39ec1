"""Which send belongs to which receive, which ranks' calls are one collective, and who came last.

MPI keeps messages of one sender, communicator and tag in order: the k-th such send matches the k-th such receive, receives
counted in the order they were posted (a wildcard receive under the source and tag its status gave).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.trace.pmpi.recording import CALL, COLLECTIVE, RECEIVE, SEND

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Partners:
    """For every record: the operation (index of a record) whose start it had to wait for, or -1: none or not known.

    ``known`` tells the two apart: it is set where the partners of an operation were found.
    """

    operation: Array
    known: Array


def find_partners(records: Array, rank: Array, pattern: Array) -> Partners:
    """Match all ranks' operations.

    records: of all ranks, one rank after the other, ``start`` and ``finish`` being indices into this array. rank: the
    rank of each record. pattern: what its site's function waits for, as in Address.
    """
    partners = Partners(np.full(len(records), -1), np.zeros(len(records), bool))
    _match_messages(records, rank, partners)
    _match_probes(records, rank, partners)
    _match_collectives(records, rank, pattern, partners)
    return partners


def _match_messages(records: Array, rank: Array, partners: Partners) -> None:
    sends = np.flatnonzero(records["kind"] == SEND)
    receives = np.flatnonzero((records["kind"] == RECEIVE) & (records["peer"] >= 0))
    both = np.concatenate([sends, receives])
    own, peer = rank[both], records["peer"][both]
    is_send = np.arange(len(both)) < len(sends)
    channel = group_numbers(
        records["communicator"][both],
        np.where(is_send, own, peer),
        np.where(is_send, peer, own),
        records["tag"][both],
    )
    # The same number for the k-th send and the k-th receive of a channel.
    number = np.empty(len(both), np.int64)
    for side in (is_send, ~is_send):
        number[side] = channel[side] * (len(both) + 1) + count_before(channel[side])
    _, first, second = np.intersect1d(number[is_send], number[~is_send], assume_unique=True, return_indices=True)
    partners.operation[sends[first]], partners.operation[receives[second]] = receives[second], sends[first]
    partners.known[sends[first]] = partners.known[receives[second]] = True


def _match_probes(records: Array, rank: Array, partners: Partners) -> None:
    """A probe found the message that the next receive of its channel takes."""
    probes = np.flatnonzero((records["kind"] == CALL) & (records["peer"] >= 0))
    receives = np.flatnonzero((records["kind"] == RECEIVE) & (records["peer"] >= 0))
    if len(probes) == 0 or len(receives) == 0:
        return
    both = np.concatenate([probes, receives])
    channel = group_numbers(
        rank[both], *(records[name][both].astype(np.int64) for name in ("communicator", "peer", "tag"))
    )
    key = channel * len(records) + both
    order = np.argsort(key[len(probes) :])
    following = np.searchsorted(key[len(probes) :][order], key[: len(probes)])
    inside = following < len(receives)
    receive = order[np.where(inside, following, 0)]
    found = inside & (channel[len(probes) :][receive] == channel[: len(probes)])
    send = partners.operation[receives[receive[found]]]
    partners.operation[probes[found]], partners.known[probes[found]] = send, send >= 0


def _match_collectives(records: Array, rank: Array, pattern: Array, partners: Partners) -> None:
    at = np.flatnonzero(records["kind"] == COLLECTIVE)
    if len(at) == 0:
        return
    group = group_numbers(records["communicator"][at], records["sequence"][at])
    begin, root = records["begin"][at], records["peer"][at] == rank[at]
    last = _last_in_group(group, begin, np.ones(len(at), bool))
    of_root = _last_in_group(group, begin, root)
    alone = np.bincount(group)[group] == 1
    kind = pattern[at]
    waits_for = np.select(
        [kind == "all", (kind == "from_root") & ~root, (kind == "to_root") & root, kind == "prefix"],
        [last, of_root, last, _last_so_far(group, rank[at], begin)],
        default=-1,
    )
    waits_for[alone | (waits_for == np.arange(len(at)))] = -1
    partners.operation[at] = np.where(waits_for >= 0, at[waits_for], -1)
    partners.known[at] = True


def group_numbers(*columns: Array) -> Array:
    """Number rows by their values: equal rows, equal numbers."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        _, numbers = np.unique(numbers * (len(column) + 1) + code, return_inverse=True)
    return numbers


def count_before(group: Array) -> Array:
    """How many entries of its own group come before each entry."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(group) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(group)])
    count = np.empty(len(group), np.int64)
    count[order] = np.arange(len(group)) - np.repeat(starts, lengths)
    return count


def _last_in_group(group: Array, begin: Array, among: Array) -> Array:
    """For every entry the one of its group that began last of those ``among``, or -1."""
    last = np.full(group.max() + 1, -1)
    order = np.flatnonzero(among)[np.argsort(begin[among], kind="stable")]
    last[group[order]] = order
    return last[group]


def _last_so_far(group: Array, rank: Array, begin: Array) -> Array:
    """For every entry the one that began last of those in its group with its own or a lower rank."""
    order = np.lexsort((rank, group))
    position = np.empty(len(order), np.int64)
    position[np.argsort(begin[order], kind="stable")] = np.arange(len(order))
    # Later groups get larger keys, so that a running maximum starts anew in each.
    key = np.maximum.accumulate(position + group[order] * len(order))
    where = np.empty(len(order), np.int64)
    where[position] = order
    result = np.empty(len(order), np.int64)
    result[order] = where[key - group[order] * len(order)]
    return result
