"""The report of `lapwing trace` as a person reads it."""

from __future__ import annotations

import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lapwing.trace.pmpi.exposure import RankMetrics, SiteMetrics, Summary, Wait

_PIPED_WIDTH = 132  # characters, where there is no terminal to ask
_MOST_RANKS = 16


def show(summary: Summary, top: int) -> None:
    """Print totals, ranks, call sites and the longest waits."""
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    console.print(Text(_totals(summary)))
    console.print(_rank_table(summary.ranks))
    console.print(_site_table(summary.sites, top))
    if len(summary.sites) > top:
        console.print(Text(f"{len(summary.sites) - top} more call sites (--top)."))
    if summary.waits:
        console.print(_wait_table(summary.waits))
    console.print(
        Text(
            "Seconds summed over ranks. overlapped and could overlap are upper limits; `lapwing trace --help` "
            "explains the columns."
        )
    )


def _totals(summary: Summary) -> str:
    ranks = summary.ranks
    time = sum(rank.seconds for rank in ranks)
    exposed, could = (sum(getattr(rank, name) for rank in ranks) for name in ("exposed", "could_overlap"))
    share = exposed / time if time > 0 else 0.0
    return (
        f"\n{len(ranks)} rank{'s' * (len(ranks) != 1)}, {_seconds(summary.seconds)} s from MPI_Init to MPI_Finalize. "
        f"Exposed {_seconds(exposed)} s ({share:.0%} of the ranks' time), of which {_seconds(could)} s could overlap.\n"
        f"Hidden behind computation at most {summary.hidden:.0%} of communication (overlapped / (overlapped + exposed)).\n"
        f"Parallel efficiency {summary.parallel_efficiency:.0%} = load balance {summary.load_balance:.0%} × "
        f"communication efficiency {summary.communication_efficiency:.0%} (POP)."
    )


def _rank_table(ranks: tuple[RankMetrics, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("rank", "seconds", "computation", "in MPI", "exposed", "overlapped", "could overlap"):
        table.add_column(name, justify="right")
    # Of many ranks the ones that compute most and least tell the story.
    shown = sorted(ranks, key=lambda rank: -rank.computation)
    half = _MOST_RANKS // 2
    shown = sorted(shown if len(shown) <= _MOST_RANKS else shown[:half] + shown[-half:], key=lambda rank: rank.rank)
    for rank in shown:
        values = (rank.seconds, rank.computation, rank.mpi, rank.exposed, rank.overlapped, rank.could_overlap)
        table.add_row(str(rank.rank), *map(_seconds, values))
    return table


def _site_table(sites: tuple[SiteMetrics, ...], top: int) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("call site", overflow="fold")
    for name in ("calls", "bytes", "exposed", "late partner", "transfer", "awaited", "overlapped", "could overlap"):
        table.add_column(name, justify="right")
    for m in sites[:top]:
        values = (m.exposed, m.late_partner, m.transfer, m.awaited, m.overlapped, m.could_overlap)
        table.add_row(Text(str(m.site)), f"{m.calls:,}", _bytes(m.bytes), *map(_seconds, values))
    return table


def _wait_table(waits: tuple[Wait, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("longest waits", overflow="fold")
    for name in ("rank", "at", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("why", overflow="fold")
    for wait in waits:
        seconds = map(_seconds, (wait.begin, wait.seconds))
        table.add_row(Text(str(wait.site)), str(wait.rank), *seconds, Text(_why(wait)))
    return table


def _why(wait: Wait) -> str:
    partner = f"rank {wait.partner}" if wait.partner is not None else "another rank"
    there = f" at {wait.partner_site}" if wait.partner_site is not None else ""
    text = {
        "late sender": f"late sender: {partner} sent {_seconds(wait.late)} s later{there}",
        "late receiver": f"late receiver: {partner} was ready {_seconds(wait.late)} s later{there}",
        "last to enter": f"{partner} came {_seconds(wait.late)} s later{there}",
        "transfer": f"transfer of {_bytes(wait.bytes)}"
        + (f" with {partner}{there}" if wait.partner is not None else ""),
    }.get(wait.why, "unknown")
    return text if wait.ended else f"had not returned when the program ended; {text}"


def _seconds(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1e-6 else "0"


def _bytes(value: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if value >= 10 * size:
            return f"{value / size:,.4g} {unit}"
    return f"{value:,} B"
