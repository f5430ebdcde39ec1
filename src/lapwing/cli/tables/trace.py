"""The report of `lapwing trace` as a person reads it."""

from __future__ import annotations

import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lapwing.trace.pmpi.exposure import RankMetrics, SiteMetrics, Summary, Wait
from lapwing.units import in_seconds, share, traffic

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
    threads = sum(rank.threads for rank in ranks)
    several = f" ({threads} threads)" if threads > len(ranks) else ""
    part = share(exposed / time if time > 0 else 0.0)
    return (
        f"\n{len(ranks)} rank{'s' * (len(ranks) != 1)}{several}, {in_seconds(summary.seconds)} s from MPI_Init to "
        f"MPI_Finalize. Exposed {in_seconds(exposed)} s ({part} of the {'threads' if several else 'ranks'}' time), of which "
        f"{in_seconds(could)} s could overlap.\n"
        f"Hidden behind computation at most {share(summary.hidden)} of communication (overlapped / (overlapped + exposed)).\n"
        f"Parallel efficiency {share(summary.parallel_efficiency)} = load balance {share(summary.load_balance)} × "
        f"communication efficiency {share(summary.communication_efficiency)} (POP)."
    )


def _rank_table(ranks: tuple[RankMetrics, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    several = any(rank.threads > 1 for rank in ranks)
    names = ("rank", *(["threads"] if several else []), "seconds", "computation", "in MPI", "exposed", "overlapped")
    for name in (*names, "could overlap"):
        table.add_column(name, justify="right")
    # Of many ranks the ones that compute most and least tell the story.
    shown = sorted(ranks, key=lambda rank: -rank.computation)
    half = _MOST_RANKS // 2
    shown = sorted(shown if len(shown) <= _MOST_RANKS else shown[:half] + shown[-half:], key=lambda rank: rank.rank)
    for rank in shown:
        values = (rank.seconds, rank.computation, rank.mpi, rank.exposed, rank.overlapped, rank.could_overlap)
        table.add_row(str(rank.rank), *([str(rank.threads)] if several else []), *map(in_seconds, values))
    return table


def _site_table(sites: tuple[SiteMetrics, ...], top: int) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("call site", overflow="fold")
    for name in ("calls", "bytes", "exposed", "late partner", "transfer", "awaited", "overlapped", "could overlap"):
        table.add_column(name, justify="right")
    for m in sites[:top]:
        values = (m.exposed, m.late_partner, m.transfer, m.awaited, m.overlapped, m.could_overlap)
        table.add_row(Text(str(m.site)), f"{m.calls:,}", traffic(m.bytes), *map(in_seconds, values))
    return table


def _wait_table(waits: tuple[Wait, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("longest waits", overflow="fold")
    for name in ("rank", "at", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("why", overflow="fold")
    for wait in waits:
        seconds = map(in_seconds, (wait.begin, wait.seconds))
        table.add_row(Text(str(wait.site)), str(wait.rank), *seconds, Text(_why(wait)))
    return table


def _why(wait: Wait) -> str:
    partner = f"rank {wait.partner}" if wait.partner is not None else "another rank"
    there = f" at {wait.partner_site}" if wait.partner_site is not None else ""
    text = {
        "late sender": f"late sender: {partner} sent {in_seconds(wait.late)} s later{there}",
        "late receiver": f"late receiver: {partner} was ready {in_seconds(wait.late)} s later{there}",
        "last to enter": f"{partner} came {in_seconds(wait.late)} s later{there}",
        "transfer": f"transfer of {traffic(wait.bytes)}"
        + (f" with {partner}{there}" if wait.partner is not None else ""),
    }.get(wait.why, "unknown")
    return text if wait.ended else f"had not returned when the program ended; {text}"
