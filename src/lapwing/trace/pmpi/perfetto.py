"""The MPI calls of a traced program as a timeline for https://ui.perfetto.dev (Chrome's trace event format).

One process per rank; on one track its calls, on another what was under way in the background: operations that were
started in one call and finished in a later one. Times are microseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lapwing.trace.pmpi.gathering import Run
from lapwing.trace.pmpi.recording import CALL

_BACKGROUND = 1000  # threads of MPI programs are numbered from 0
_KINDS = {2: "send", 3: "receive", 4: "collective", 5: "one-sided", 6: "cancelled receive"}


def chrome_trace(run: Run) -> dict[str, Any]:
    """The document that Perfetto opens."""
    events: list[dict[str, Any]] = []
    for recording in run.recordings:
        own = {"pid": recording.rank, "ph": "M"}
        events.append({**own, "name": "process_name", "args": {"name": f"rank {recording.rank} ({recording.host})"}})
        events.append({**own, "name": "process_sort_index", "args": {"sort_index": recording.rank}})
    for index in np.flatnonzero(run.records["kind"] == CALL):
        events.append(_call(run, int(index)))
    for index in np.flatnonzero((run.records["kind"] != CALL) & (run.records["start"] != run.records["finish"])):
        events.extend(_operation(run, int(index)))
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _call(run: Run, index: int) -> dict[str, Any]:
    record, site = run.records[index], run.sites[run.site[index]]
    return {
        "ph": "X",
        "pid": int(run.rank[index]),
        "tid": int(record["thread"]),
        "name": site.function,
        "cat": site.role,
        "ts": _microseconds(record["begin"] - run.origin),
        "dur": _microseconds(record["end"] - record["begin"]),
        "args": {"call site": site.place, "calls": int(record["start"])},
    }


def _operation(run: Run, index: int) -> list[dict[str, Any]]:
    record, site = run.records[index], run.sites[run.site[index]]
    finish = int(record["finish"])
    end = run.records["end"][finish] if finish >= 0 else record["end"] or run.ends[run.rank[index]]
    common = {
        "pid": int(run.rank[index]),
        "tid": _BACKGROUND,
        "cat": "under way",
        "id": index,
        "name": f"{_KINDS[int(record['kind'])]} {site.place}",
    }
    told = {
        "started by": str(site),
        "peer": int(record["peer"]),
        "tag": int(record["tag"]),
        "bytes": int(record["bytes"]),
    }
    return [
        {**common, "ph": "b", "ts": _microseconds(record["begin"] - run.origin), "args": told},
        {**common, "ph": "e", "ts": _microseconds(end - run.origin)},
    ]


def _microseconds(seconds: Any) -> float:
    return round(float(seconds) * 1e6, 3)
