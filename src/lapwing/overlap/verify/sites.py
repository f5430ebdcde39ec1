"""Exposed communication of a program before and after it was transformed, call site by call site."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lapwing.trace.pmpi.callsites import CallSite
from lapwing.trace.pmpi.exposure import SiteMetrics, Summary
from lapwing.units import in_seconds

_MOST_ROWS = 20


@dataclass(frozen=True)
class SiteChange:
    """A call site of the original and what became of it; seconds summed over the ranks, None where it is in one program only.

    ``call``, ``file`` and ``line`` are the original's, or the transformed program's where the original has none. Of a call that
    only starts a transfer, exposed is the time that ranks were blocked elsewhere until it was done. ``sites`` that could
    not be told apart are one entry, with the first one's line.
    """

    call: str
    procedure: str
    file: str
    line: int
    sites: int
    calls_before: int | None
    calls_after: int | None
    exposed_before: float | None
    exposed_after: float | None
    overlapped_before: float | None
    overlapped_after: float | None


# What a transformed program calls MPI through: one site there stands for many.
_HELPER = "lapwing_"

_Key = tuple[str, ...]
_Groups = dict[_Key, list[SiteMetrics]]


def match_sites(before: Summary, after: Summary, before_root: Path, after_root: Path) -> tuple[SiteChange, ...]:
    """Pair the call sites of two traced programs, those with the most exposed time first.

    Sites belong together if they are in the same procedure of the same file and call the same function, nonblocking or not;
    what then is left over, and what may be called through helpers now, if they are in the same file.
    """
    olds, news = _starting(before), _starting(after)
    through_helpers = {
        (short_file(one.site, after_root), _blocking_name(one.site)) for one in news if _is_helper(one.site)
    }
    changes: list[SiteChange] = []
    for coarse in (False, True):
        old_groups = _grouped(olds, before_root, coarse)
        new_groups = _grouped(news, after_root, coarse)
        _split_exchanges(old_groups, new_groups, coarse)
        for key in [key for key in old_groups if key in new_groups]:
            as_many = len(old_groups[key]) == len(new_groups[key])
            if not coarse and not as_many and (key[0], key[-1]) in through_helpers:
                continue
            changes += _changes(old_groups.pop(key), new_groups.pop(key), before_root)
        olds = [metrics for group in old_groups.values() for metrics in group]
        news = [metrics for group in new_groups.values() for metrics in group]
    changes += [_change([metrics], [], before_root) for metrics in olds]
    changes += [_change([], [metrics], after_root) for metrics in news]
    telling = [one for one in changes if (one.exposed_before or 0.0) + (one.exposed_after or 0.0) > 0]
    return tuple(sorted(telling, key=lambda one: -max(one.exposed_before or 0.0, one.exposed_after or 0.0)))


def show(before: Summary, after: Summary, changes: Sequence[SiteChange], console: Console) -> None:
    """Print the totals and a table of the call sites."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("call site", overflow="fold")
    for name in ("calls", "exposed before", "exposed after", "overlapped before", "overlapped after"):
        table.add_column(name, justify="right")
    table.add_row(
        "all", "", *map(in_seconds, (_exposed(before), _exposed(after), _overlapped(before), _overlapped(after)))
    )
    for one in changes[:_MOST_ROWS]:
        more = f" and {one.sites - 1} more" if one.sites > 1 else ""
        place = f"{one.file}:{one.line}{more}" if one.file else one.procedure
        calls = one.calls_after if one.calls_before is None else one.calls_before
        values = (one.exposed_before, one.exposed_after, one.overlapped_before, one.overlapped_after)
        table.add_row(Text(f"{one.call} {place}"), f"{calls:,}", *map(in_seconds, values))
    console.print(table)
    if len(changes) > _MOST_ROWS:
        console.print(f"{len(changes) - _MOST_ROWS} more call sites (--json).", highlight=False)
    console.print(
        f"Seconds summed over ranks. From MPI_Init to MPI_Finalize: {in_seconds(before.seconds)} s before, "
        f"{in_seconds(after.seconds)} s after.",
        highlight=False,
    )
    dropped = max(before.dropped, after.dropped)
    if dropped:
        console.print(
            f"{dropped:,} calls came after a rank's first ones, which alone are recorded one by one: what waits for them is "
            "in the first line alone. LAPWING_TRACE_RECORDS=N records N calls of a rank.",
            highlight=False,
        )


def totals(summary: Summary) -> dict[str, float]:
    """A run's figures for --json. dropped: calls that were counted but not recorded one by one."""
    return {
        "seconds": summary.seconds,
        "exposed": _exposed(summary),
        "overlapped": _overlapped(summary),
        "dropped": summary.dropped,
    }


def short_file(site: CallSite, root: Path) -> str:
    """A call site's file, relative to the program's folder where it lies below."""
    path = Path(site.file)
    return str(path.relative_to(root)) if path.is_relative_to(root) else site.file


def _starting(summary: Summary) -> list[SiteMetrics]:
    """The sites at which communication starts. What waits and tests are exposed for is said of these."""
    return [metrics for metrics in summary.sites if metrics.site.role in ("start", "block")]


def _grouped(sites: Sequence[SiteMetrics], root: Path, coarse: bool) -> _Groups:
    groups: _Groups = defaultdict(list)
    for metrics in sites:
        site = metrics.site
        procedure = () if coarse and site.file else (_procedure(site),)
        groups[short_file(site, root), *procedure, _blocking_name(site)].append(metrics)
    return groups


def _is_helper(site: CallSite) -> bool:
    return _procedure(site).startswith(_HELPER)


def _split_exchanges(olds: _Groups, news: _Groups, coarse: bool) -> None:
    """An MPI_Sendrecv that became a send and a receive: these are filed under its name. Where sends and receives of before cannot
    be told from them, those are, too."""
    for exchange in ("MPI_Sendrecv", "MPI_Sendrecv_replace"):
        for key in [key for key in olds if key[-1] == exchange and key not in news]:
            parts = [(*key[:-1], name) for name in ("MPI_Send", "MPI_Recv")]
            pieces = [metrics for part in parts if coarse or part not in olds for metrics in news.pop(part, [])]
            if pieces:
                news[key] = pieces
                olds[key] += [metrics for part in parts if coarse for metrics in olds.pop(part, [])]


def _changes(olds: list[SiteMetrics], news: list[SiteMetrics], root: Path) -> list[SiteChange]:
    names = {_blocking_name(metrics.site) for metrics in (*olds, *news)}
    if len(olds) != len(news) or len(names) > 1:
        return [_change(olds, news, root)]
    pairs = zip(sorted(olds, key=_line), sorted(news, key=_line), strict=True)
    return [_change([old], [new], root) for old, new in pairs]


def _change(olds: list[SiteMetrics], news: list[SiteMetrics], root: Path) -> SiteChange:
    group = olds or news
    first = min(group, key=_line).site
    return SiteChange(
        call=first.function,
        procedure=_procedure(first),
        file=short_file(first, root),
        line=first.line,
        sites=len(group),
        calls_before=_calls(olds),
        calls_after=_calls(news),
        exposed_before=_sum(olds, _exposed_for),
        exposed_after=_sum(news, _exposed_for),
        overlapped_before=_most_overlapped(olds),
        overlapped_after=_most_overlapped(news),
    )


def _calls(group: Sequence[SiteMetrics]) -> int | None:
    return sum(metrics.calls for metrics in group) if group else None


def _sum(group: Sequence[SiteMetrics], seconds: Callable[[SiteMetrics], float]) -> float | None:
    return sum(map(seconds, group)) if group else None


def _most_overlapped(group: Sequence[SiteMetrics]) -> float | None:
    # The send and the receive of an exchange overlap with the same computation.
    return max((metrics.overlapped for metrics in group), default=None)


def _line(metrics: SiteMetrics) -> int:
    return metrics.site.line


def _exposed_for(metrics: SiteMetrics) -> float:
    return metrics.awaited if metrics.site.role == "start" else metrics.exposed


def _blocking_name(site: CallSite) -> str:
    """MPI_Isend as MPI_Send, MPI_Ialltoallv as MPI_Alltoallv."""
    if site.role == "start" and re.match(r"MPI_I[a-z]", site.function):
        return f"MPI_{site.function[5].upper()}{site.function[6:]}"
    return site.function


def _procedure(site: CallSite) -> str:
    # Where there is no debug information the place in the program follows; it is another in another program.
    return re.sub(r" \(.*|\+0x.*", "", site.inside)


def _exposed(summary: Summary) -> float:
    return sum(rank.exposed for rank in summary.ranks)


def _overlapped(summary: Summary) -> float:
    return sum(rank.overlapped for rank in summary.ranks)
