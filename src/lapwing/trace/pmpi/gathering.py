"""All ranks' recordings put together: one array of records, call sites resolved, partners found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.trace.pmpi.callsites import CallSite, resolve
from lapwing.trace.pmpi.matching import Partners, find_partners
from lapwing.trace.pmpi.recording import CALL, Recording

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Run:
    """All ranks' records in one array, indices made global; what the report and the timeline are drawn from.

    site numbers ``sites``; computed_before and computed_after are the seconds a rank's thread had spent outside MPI when
    it entered and left a call.
    """

    recordings: tuple[Recording, ...]
    sites: tuple[CallSite, ...]
    records: Array
    rank: Array
    site: Array
    open: Array
    computed_before: Array
    computed_after: Array
    partners: Partners
    origin: float
    ends: Array


def gather(recordings: list[Recording], ended: float) -> Run:
    """Put the ranks' recordings together. ended: when the program ended, on the clock of the recordings."""
    resolved = resolve(address for recording in recordings for address in recording.sites)
    sites = tuple(dict.fromkeys(resolved.values()))
    number = {site: k for k, site in enumerate(sites)}
    starts = np.cumsum([0, *(len(recording.records) for recording in recordings)])
    records = np.concatenate([recording.records for recording in recordings])
    rank = np.repeat([recording.rank for recording in recordings], np.diff(starts))
    site = np.zeros(len(records), np.int64)
    ends = np.zeros(max(recording.rank for recording in recordings) + 1)
    was_open = (records["kind"] == CALL) & (records["end"] == 0)
    for recording, low, high in zip(recordings, starts[:-1], starts[1:], strict=True):
        own = records[low:high]
        # What is not finished has -1 for its call.
        for name in ("start", "finish"):
            inside = (own["kind"] != CALL) & (own[name] >= 0)
            own[name][inside] += low
        if len(own):
            local = np.array([number[resolved[address]] for address in recording.sites])
            site[low:high] = local[own["site"]]
        known = max(recording.begin, own["begin"].max(initial=0.0), own["end"].max(initial=0.0))
        ends[recording.rank] = recording.end or max(known, ended)
        unended = was_open[low:high]
        own["end"][unended] = ends[recording.rank]
        own["seconds"][unended] = ends[recording.rank] - own["begin"][unended]
    pattern = np.array([one.pattern for one in sites] or [""])[site]
    before, after = _computation(records, rank, {recording.rank: recording.begin for recording in recordings})
    return Run(
        recordings=tuple(recordings),
        sites=sites,
        records=records,
        rank=rank,
        site=site,
        open=was_open,
        computed_before=before,
        computed_after=after,
        partners=find_partners(records, rank, pattern),
        origin=min(recording.begin for recording in recordings),
        ends=ends,
    )


def _computation(records: Array, rank: Array, begins: dict[int, float]) -> tuple[Array, Array]:
    """Seconds outside MPI on each call's rank and thread, up to its entry and up to its exit."""
    before, after = np.zeros(len(records)), np.zeros(len(records))
    thread = records["thread"].astype(np.int64)
    is_call = records["kind"] == CALL
    for own_rank, own_thread in {(int(r), int(t)) for r, t in np.unique(np.c_[rank, thread][is_call], axis=0)}:
        calls = np.flatnonzero(is_call & (rank == own_rank) & (thread == own_thread))
        begin, end = records["begin"][calls], records["end"][calls]
        first = begins[own_rank] if own_thread == 0 else begin[0]
        gaps = np.maximum(begin - np.r_[first, end[:-1]], 0.0)
        # Between the polls of one record.
        inner = np.maximum(end - begin - records["seconds"][calls], 0.0)
        after[calls] = np.cumsum(gaps + inner)
        before[calls] = after[calls] - inner
    return before, after
