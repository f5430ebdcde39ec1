"""Timelines as one self-contained HTML page, made from timeline.html, timeline.css and timeline.js beside this file."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.trace.events import ACTIVITIES, RankTrace, RunTrace
from lapwing.trace.messages import sent_by
from lapwing.trace.metrics import MEANINGS, SHARES, DiskFigures, Metrics, metrics
from lapwing.trace.tracks import tracks_of
from lapwing.units import NOT_KNOWN, duration, share, size

MAX_EVENTS = 1_000_000  # in one page: about 10 MB, which browsers open at once


def timeline_page(runs: Sequence[RunTrace], figures: Sequence[Metrics] | None = None) -> str:
    """The page of one or several runs of a nest, on one time scale, each with its metrics.

    figures: those of metrics() for every run, where they are known already.

    Beyond MAX_EVENTS the latest events of each run are left out, and the page says so.
    """
    runs = _with_labels(runs)
    figures = figures if figures is not None else [metrics(run) for run in runs]
    room = _room(runs)
    shown = [_run_data(run, k, limit) for k, (run, limit) in enumerate(zip(runs, room, strict=True))]
    parts = {
        "title": html.escape(_title(runs)),
        "heading": _heading(runs),
        "notes": _notes(runs, shown),
        "figures": _figures_table(runs, figures),
        "switches": _switches(runs) + _predicted_switch(runs),
        "tables": "".join(_table(run, figure) for run, figure in zip(runs, figures, strict=True)),
        "data": _script_json({"activities": ACTIVITIES, "runs": shown}),
        "style": _template("timeline.css"),
        "script": _template("timeline.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _template("timeline.html"))


def _with_labels(runs: Sequence[RunTrace]) -> list[RunTrace]:
    """The runs with names in place of engines: where an engine ran on several grids or with several tiles, with those."""
    names = [run.engine for run in runs]
    if len(set(names)) == len(names):
        return list(runs)
    return [replace(run, engine=f"{run.engine} {'×'.join(map(str, run.grid))}, tile {run.tile}") for run in runs]


def _template(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _script_json(data: Any) -> str:
    """JSON that may stand inside a script element whatever its texts hold."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


# -- events ----------------------------------------------------------------------------------------------------------


def _room(runs: Sequence[RunTrace]) -> list[int]:
    """How many events of each run are shown."""
    counts = [sum(len(rank.events) for rank in _all_ranks(run)) for run in runs]
    total = sum(counts)
    return counts if total <= MAX_EVENTS else [count * MAX_EVENTS // total for count in counts]


def _all_ranks(run: RunTrace) -> tuple[RankTrace, ...]:
    return run.ranks + (run.predicted or ())


def _run_data(run: RunTrace, number: int, limit: int) -> dict[str, Any]:
    columns = _Columns(run, limit)
    return {
        "number": number,
        "engine": run.engine,
        "seconds": run.seconds,
        "span": columns.span,
        "unit": columns.unit,
        "ranks": columns.ranks,
        "leftOut": columns.left_out,
        "phases": max((rank.phase_names for rank in run.ranks), default=()),
        "columns": columns.encoded(),
    }


class _Columns:
    """All events of a run as columns of numbers, track after track.

    Times are whole multiples of ``unit`` seconds since the run began: nanoseconds up to four seconds.
    """

    def __init__(self, run: RunTrace, limit: int) -> None:
        self.left_out = 0
        self.ranks: list[dict[str, Any]] = []
        self._pieces: dict[str, list[npt.NDArray[Any]]] = {}
        self._count = 0
        measured = _with_origin(run.ranks)
        predicted = _with_origin(run.predicted or ())
        self.span = max([run.seconds, *(_last(ranks, origin) for ranks, origin in (measured, predicted))])
        self.unit = max(1e-9, self.span / (2**32 - 2))
        cut = _cut([*_begins(*measured), *_begins(*predicted)], limit)
        self._add(*measured, cut, is_predicted=False)
        self._add(*predicted, cut, is_predicted=True)

    def encoded(self) -> dict[str, str]:
        return {name: _packed(np.concatenate(pieces)) for name, pieces in self._pieces.items()}

    def _add(self, ranks: Sequence[RankTrace], origin: float, cut: float, is_predicted: bool) -> None:
        senders = sent_by(ranks)
        positions = {rank.rank: k for k, rank in enumerate(ranks)}
        # Where each event of each rank ends up, for links between them.
        places = [np.full(len(rank.events) + 1, -1, dtype=np.int64) for rank in ranks]
        chosen: list[tuple[int, npt.NDArray[np.int64]]] = []
        for k, rank in enumerate(ranks):
            tracks = []
            for track in tracks_of(rank):
                kept = track.events[rank.events["begin"][track.events] - origin <= cut]
                self.left_out += len(track.events) - len(kept)
                tracks.append(
                    {"kind": track.kind, "lane": track.lane, "first": self._count, "count": len(kept)},
                )
                places[k][kept] = np.arange(self._count, self._count + len(kept))
                self._count += len(kept)
                chosen.append((k, kept))
            self.ranks.append(
                {
                    "rank": rank.rank,
                    "host": rank.host,
                    "predicted": is_predicted,
                    "total": rank.times["total"],
                    "tracks": tracks,
                }
            )
        for k, kept in chosen:
            events = ranks[k].events[kept]
            links = np.full(len(kept), -1, dtype=np.int64)
            for peer in np.unique(events["peer"]):
                if peer in positions:
                    own = events["peer"] == peer
                    links[own] = places[positions[peer]][senders[k][kept[own]]]
            self._append(events, ranks[k].steps_of_phases(events), origin, links)

    def _append(
        self, events: npt.NDArray[Any], steps: npt.NDArray[np.int64], origin: float, links: npt.NDArray[np.int64]
    ) -> None:
        begin = self._ticks(events["begin"] - origin)
        length = self._ticks(events["end"] - origin) - begin
        columns = {
            "begin": begin.astype(np.uint32),
            "length": length.astype(np.uint32),
            # What is nearly always zero costs nothing when compressed.
            "idle": np.clip(length - self._ticks(events["seconds"]), 0, None).astype(np.uint32),
            "exposed": np.minimum(self._ticks(events["exposed"]), length).astype(np.uint32),
            "sweep": events["sweep"].astype(np.int32),
            "phase": events["phase"].astype(np.uint16),
            "step": steps.astype(np.int32),
            "bytes": np.clip(events["bytes"], 0, 2**32 - 1).astype(np.uint32),
            "peer": events["peer"].astype(np.int32),
            "activity": events["activity"].astype(np.uint8),
            "link": links.astype(np.int32),
        }
        for name, column in columns.items():
            self._pieces.setdefault(name, []).append(column)

    def _ticks(self, seconds: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.clip(np.rint(seconds / self.unit), 0, 2**32 - 1).astype(np.int64)


def _with_origin(ranks: Sequence[RankTrace]) -> tuple[Sequence[RankTrace], float]:
    return ranks, min((rank.begin for rank in ranks), default=0.0)


def _last(ranks: Sequence[RankTrace], origin: float) -> float:
    ends = [rank.begin + rank.times["total"] - origin for rank in ranks]
    ends += [float(rank.events["end"].max()) - origin for rank in ranks if len(rank.events)]
    return max(ends, default=0.0)


def _begins(ranks: Sequence[RankTrace], origin: float) -> list[npt.NDArray[np.float64]]:
    return [rank.events["begin"] - origin for rank in ranks]


def _cut(begins: Sequence[npt.NDArray[np.float64]], limit: int) -> float:
    """The time up to which the first ``limit`` events begin."""
    every = np.concatenate([*begins, np.empty(0)])
    if len(every) <= limit:
        return float("inf")
    return float(np.partition(every, limit - 1)[limit - 1]) if limit > 0 else -1.0


def _packed(column: npt.NDArray[Any]) -> str:
    """Differences of successive numbers, little-endian, compressed, in base64."""
    differences = np.diff(column, prepend=column.dtype.type(0))
    return base64.b64encode(zlib.compress(differences.astype(column.dtype.newbyteorder("<")).tobytes(), 6)).decode()


# -- text ------------------------------------------------------------------------------------------------------------


def _title(runs: Sequence[RunTrace]) -> str:
    nests = ", ".join(dict.fromkeys(run.nest for run in runs))
    return f"{nests}: {', '.join(run.engine for run in runs)} – Lapwing timeline"


def _heading(runs: Sequence[RunTrace]) -> str:
    nests = ", ".join(dict.fromkeys(run.nest for run in runs))
    return f"<h1>{html.escape(nests)}</h1><p>{html.escape(_subtitle(runs))}</p>"


def _subtitle(runs: Sequence[RunTrace]) -> str:
    hosts = dict.fromkeys(rank.host for run in runs for rank in run.ranks)
    ranks = "; ".join(dict.fromkeys(_counted(len(run.ranks), "rank") for run in runs))
    where = next(iter(hosts)) if len(hosts) == 1 else _counted(len(hosts), "host")
    cuts = "; ".join(dict.fromkeys(f"grid {'×'.join(map(str, run.grid))}, tile {run.tile}" for run in runs if run.grid))
    return " · ".join(filter(None, [f"{ranks} on {where}", cuts]))


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _notes(runs: Sequence[RunTrace], data: Sequence[Mapping[str, Any]]) -> str:
    notes = []
    for run, shown in zip(runs, data, strict=True):
        dropped = sum(rank.dropped for rank in run.ranks)
        if dropped:
            notes.append(
                f"{run.engine}: {_counted(dropped, 'event')} did not fit into the trace and are missing below. "
                "The times count them."
            )
        if shown["leftOut"]:
            notes.append(
                f"{run.engine}: the last {_counted(shown['leftOut'], 'event')} are left out, to keep this page small. "
                "The times count them."
            )
        if not any(len(rank.events) for rank in run.ranks):
            notes.append(f"{run.engine}: no events were recorded.")
    return "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes)


def _figures_table(runs: Sequence[RunTrace], figures: Sequence[Metrics]) -> str:
    """A row a run: how long it took, what was hidden, where the time went."""
    efficiencies = list(figures[0].efficiencies.by_name()) if figures else []
    terms = ("hidden", "exposed", "disk hidden", "fill", "drain", "CPU lost")
    heads = {name: _term(name) for name in (*terms, *efficiencies)}
    columns = "".join(
        [
            '<th scope="col">engine</th><th scope="col">time</th><th scope="col">predicted</th>',
            *(heads[name] for name in ("hidden", "exposed", *_disk_heads(figures))),
            '<th scope="col" class="shares">ranks’ time</th>',
            *(heads[name] for name in ("fill", "drain", "CPU lost", *efficiencies)),
        ]
    )
    rows = "".join(
        _figures_row(run, runs[0], one, bool(_disk_heads(figures))) for run, one in zip(runs, figures, strict=True)
    )
    return f'<table id="figures"><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>'


def _term(name: str) -> str:
    """The head of a column that explains itself when it is pointed at."""
    return f'<th scope="col" tabindex="0" data-meaning="{html.escape(MEANINGS[name])}"><span>{name}</span></th>'


def _disk_heads(figures: Sequence[Metrics]) -> tuple[str, ...]:
    return ("disk hidden",) if any(one.disk is not None for one in figures) else ()


def _figures_row(run: RunTrace, first: RunTrace, figures: Metrics, on_disk: bool) -> str:
    against = ""
    if run is not first and first.seconds > 0:
        against = f"<small>{run.seconds / first.seconds:.2f} × {html.escape(first.engine)}</small>"
    cells = [
        f"<strong>{duration(run.seconds)}</strong>{against}",
        duration(max(rank.times["total"] for rank in run.predicted)) if run.predicted else NOT_KNOWN,
        _hidden_cell(figures),
        _exposed_cell(figures),
        *([_disk_cell(figures.disk)] if on_disk else []),
        _shares_cell(figures),
        duration(figures.fill_seconds),
        duration(figures.drain_seconds),
        share(figures.cpu_lost_share),
        *(share(value) for value in figures.efficiencies.by_name().values()),
    ]
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{html.escape(run.engine)}</th>{body}</tr>'


def _hidden_cell(figures: Metrics) -> str:
    if figures.hidden is None:
        why = "" if figures.transfer_seconds is None else "<small>too little to tell</small>"
        return f"{NOT_KNOWN}{why}"
    return (
        f"<strong>{share(figures.hidden)}</strong>"
        f'<div class="bar"><i style="flex:{figures.hidden:.4f}" class="transfer"></i>'
        f'<i style="flex:{1 - figures.hidden:.4f}" class="exposed"></i></div>'
    )


def _exposed_cell(figures: Metrics) -> str:
    if figures.exposed_seconds is None:
        return f"{NOT_KNOWN}<small>nothing to communicate</small>"
    of = "" if figures.transfer_seconds is None else f"<small>of {duration(figures.transfer_seconds)}</small>"
    return f"{duration(figures.exposed_seconds)}{of}"


def _disk_cell(figures: DiskFigures | None) -> str:
    if figures is None:
        return f"{NOT_KNOWN}<small>all in memory</small>"
    moved = f"<small>{size(figures.read_bytes)} read<br>{size(figures.written_bytes)} written</small>"
    if figures.hidden is None:
        return f"{NOT_KNOWN}{moved}"
    exposed = f"<small>{duration(figures.exposed_seconds)} of {duration(figures.busy_seconds)} exposed</small>"
    return f"<strong>{share(figures.hidden)}</strong>{exposed}{moved}"


def _shares_cell(figures: Metrics) -> str:
    """Where the ranks' time went."""
    if not any(figures.shares.values()):
        return NOT_KNOWN
    parts = dict(figures.shares)
    waited = parts.pop("wait")
    parts["exposed"] = min(waited, figures.exposed_share)
    parts["late"] = waited - parts["exposed"]
    parts["rest"] = max(0.0, 1 - sum(parts.values()))
    pieces = "".join(f'<i style="flex:{part:.4f}" class="{name}"></i>' for name, part in parts.items() if part > 0)
    return f'<div class="bar">{pieces}</div><small>{figures.shares_text()}</small>'


def _switches(runs: Sequence[RunTrace]) -> str:
    if len(runs) < 2:
        return ""
    names = ["all", *(run.engine for run in runs)]
    buttons = (
        f'<button type="button" data-run="{k - 1}" aria-pressed="{str(k == 0).lower()}">{html.escape(name)}</button>'
        for k, name in enumerate(names)
    )
    return f'<div class="group" id="switches" role="group" aria-label="runs shown">{"".join(buttons)}</div>'


def _predicted_switch(runs: Sequence[RunTrace]) -> str:
    if not any(run.predicted for run in runs):
        return ""
    return '<div class="group"><button type="button" id="predicted" aria-pressed="true">predicted</button></div>'


def _table(run: RunTrace, figures: Metrics) -> str:
    """Seconds of every rank, for those who read rather than look."""
    names = ("total", *SHARES, "exposed", "fill", "drain", "CPU lost")
    head = "".join(f'<th scope="col">{name}</th>' for name in (*names, "messages", "bytes"))
    exposed = figures.exposed_by_rank or (0.0,) * len(run.ranks)
    rows = "".join(_table_row(rank, names, of_rank) for rank, of_rank in zip(run.ranks, exposed, strict=True))
    return (
        f"<table><caption>{html.escape(run.engine)}: seconds of every rank</caption>"
        f'<thead><tr><th scope="col">rank</th><th scope="col">host</th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _table_row(rank: RankTrace, names: Sequence[str], exposed: float) -> str:
    seconds = {**rank.times, "exposed": exposed, "CPU lost": rank.times["cpu_lost"]}
    cells = "".join(f"<td>{seconds[name]:.6f}</td>" for name in names)
    counts = "".join(f"<td>{int(rank.times[name]):,}</td>" for name in ("messages", "bytes"))
    return f'<tr><th scope="row">{rank.rank}</th><td>{html.escape(rank.host)}</td>{cells}{counts}</tr>'
