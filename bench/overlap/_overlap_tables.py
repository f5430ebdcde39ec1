"""The tables of bench/overlap/overlap.py."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import _paths  # noqa: F401
from _overlap_settings import Found, Setting
from _overlap_start import Race
from _pipelines import COMPUTE, LIMITS, PEER, WIRE
from _report import spread, summary, table
from rich.console import Console
from rich.table import Table

from lapwing.runtime.tuning import allowed_cpus, siblings


def show_search(out: Console, setting: Setting, found: Sequence[Found]) -> None:
    out.print(f"\n{setting.title}: widths where compute ≈ transfer, best first. Milliseconds a step:", style="bold")
    columns = ("tile", "width", "compute", "transfer", "compute / transfer", "overlap / blocking")
    rows = table(*columns, numbers=columns)
    for f in found:
        quotient = f"{f.compute / f.transfer:.2f}" + ("" if f.is_balanced else " (nearest)")
        ratio = f"{f.ratio:.2f}" if f.ratio else "–"
        rows.add_row(str(f.tile), str(f.width), f"{1e3 * f.compute:.2f}", f"{1e3 * f.transfer:.2f}", quotient, ratio)
    out.print(rows)
    out.print(f"Again without searching: --setting {setting.name}={found[0].width}x{found[0].tile}", markup=False)


def show_lab(out: Console, title: str, race: Race, rate: float | None) -> None:
    """rate: bytes a second of the links, if known."""
    show_title(out, title, race)
    columns = ("seconds", "/ blocking", "/ peer", "hidden, %", "exposed, ms", "fill + drain, ms")
    rows = table("", *columns, numbers=columns)
    for contender in race.job.contenders:
        name = contender.name
        if contender in LIMITS:
            continue
        # What the peer waits for cannot be told from its own times: all of its waiting counts.
        at_least, at_most = ("≥ ", "≤ ") if contender.kind == "peer" else ("", "")
        rows.add_row(
            name,
            seconds(race, name),
            spread(race.ratios(name, "blocking")),
            spread(race.ratios(name, PEER.name)),
            at_least + share(race, name),
            f"{at_most}{1e3 * race.most(name, 'exposed')['median']:.1f}",
            f"{1e3 * race.most(name, 'fill', 'drain')['median']:.1f}",
        )
    for limit in LIMITS:
        rows.add_row(f"{limit.name} alone", seconds(race, limit.name), spread(race.ratios(limit.name, "blocking")))
    larger = max(race.median(COMPUTE.name), race.median(WIRE.name))
    rows.add_row("larger of the two", f"{larger:.3f}", f"{larger / race.median('blocking'):.2f}")
    if rate is not None:
        rows.add_row(f"wire, {rate * 8 / 1e6:g} Mbit/s", f"{race.steps * race.plan['message_bytes'] / rate:.3f}")
    out.print(rows)


def explain_lab(out: Console) -> None:
    out.print(
        "hidden: 1 − exposed / wire alone. exposed: what the way from the first tile to the last lost to messages"
    )
    out.print(
        "that take time; of the peer, all its waiting. fill + drain: before the first tile and after the last, of"
    )
    out.print(
        "the rank with most of it. compute alone: both ranks, no messages. wire alone: the same messages, nothing"
    )
    out.print("computed. wire, so many Mbit/s: its bytes at that rate.")


def show_node(out: Console, races: Sequence[Race]) -> None:
    out.print("\nTiny steps of sqrt3d, both ranks on this machine", style="bold")
    names = ("overlap", "onesided", PEER.name)
    beyond = tuple(f"{name}, µs" for name in names)
    columns = ("side", "tile", *names, "onesided / overlap", *beyond, "compute, µs", "wire, µs")
    rows = table(*columns, numbers=columns)
    for race in races:
        rows.add_row(
            str(race.job.case.shape[0] - 1),
            str(race.job.case.tile),
            *(f"{race.steps / race.median(name) / 1e3:.0f}" for name in names),
            spread(race.ratios("overlap", "onesided")),
            *(f"{beyond_compute(race, name):.2f}" for name in names),
            *(f"{1e6 * race.median(limit.name) / race.steps:.2f}" for limit in (COMPUTE, WIRE)),
        )
    out.print(rows)
    out.print(
        "overlap, onesided, peer: steps a millisecond; so many times as many by onesided as by overlap. With µs: of"
    )
    out.print("a step beyond computing, waiting included, of the rank that takes longer. A step of both ranks together")
    out.print("is side × side × tile points. compute, wire: alone, µs a step.")


def beyond_compute(race: Race, name: str) -> float:
    """Microseconds a step that the rank that takes longer did not compute; the median over the rounds."""
    slower = [max(run["ranks"], key=lambda times: times["total"]) for run in race.runs[name]]
    return 1e6 * float(statistics.median(times["total"] - times["compute"] for times in slower)) / race.steps


def show_helper(out: Console, races: Sequence[Race]) -> None:
    out.print("\nA helper thread against polling", style="bold")
    columns = ("overlap, s", "helper / overlap", "not pinned / overlap", "hidden, %", "by the helper, %", "compute, s")
    rows = table("", *columns, numbers=columns)
    for race in races:
        rows.add_row(
            f"{race.job.case.nest}, {race.place}, {race.plan['message_bytes'] / 1024:.0f} KiB",
            seconds(race, "overlap"),
            *(spread(race.ratios(name, "overlap")) for name in ("helper, auto", "helper, none")),
            *(share(race, name) for name in ("overlap", "helper, auto")),
            f"{race.median(COMPUTE.name):.3f}",
        )
    out.print(rows)
    out.print("hidden: by overlap, and by the helper thread. compute: alone, both ranks.")
    if any(len(siblings(cpu)) > 1 for cpu in allowed_cpus()):
        out.print("This machine has SMT: pinned threads ran on the siblings of the CPUs that computed.")
        return
    out.print(
        "This machine has no SMT: what a helper thread gains on a sibling cannot be measured here. Where there is,"
    )
    out.print("this measures it: python bench/overlap/overlap.py --part helper")
    out.print("and of any nest: lapwing run FILE -n 2 --engine overlap,helper --helper-cpu auto --repeat 5")


def show_polls(out: Console, title: str, race: Race) -> None:
    show_title(out, f"Polling: {title}", race)
    columns = ("seconds", "compute, s", "polls, ms", "both / compute alone", "hidden, %")
    rows = table("slices", *columns, numbers=columns)
    alone = [max(times["compute"] for times in run["ranks"]) for run in race.runs[COMPUTE.name]]
    for contender in race.job.contenders:
        name = contender.name
        if contender in LIMITS:
            continue
        busy = [max(times["compute"] + times["poll"] for times in run["ranks"]) for run in race.runs[name]]
        rows.add_row(
            name,
            seconds(race, name),
            spread(race.most(name, "compute"), 3),
            f"{1e3 * race.most(name, 'poll')['median']:.2f}",
            spread(summary([b / a for b, a in zip(busy, alone, strict=True)]), 3),
            share(race, name),
        )
    add_limits(rows, race)
    out.print(rows)


def show_splits(out: Console, title: str, race: Race) -> None:
    show_title(out, f"Messages sent in parts: {title}", race)
    columns = ("seconds", "/ whole", "hidden, %", "exposed, ms")
    rows = table("", *columns, numbers=columns)
    for contender in race.job.contenders:
        if contender in LIMITS:
            continue
        whole = next(c.name for c in race.job.contenders if c.kind == contender.kind and c.split_bytes == 0)
        rows.add_row(
            contender.name,
            seconds(race, contender.name),
            spread(race.ratios(contender.name, whole)),
            ("≥ " if contender.kind == "peer" else "") + share(race, contender.name),
            f"{1e3 * race.most(contender.name, 'exposed')['median']:.1f}",
        )
    add_limits(rows, race)
    out.print(rows)


def show_traces(out: Console, races: Sequence[Race]) -> None:
    out.print("\nThe trace: events kept against not kept, both ranks on this machine", style="bold")
    columns = ("steps", "seconds", "events kept / not", "the runtime's own, µs a step")
    rows = table("", "engine", *columns, numbers=columns)
    for race in races:
        case = race.job.case
        for name in ("overlap", "onesided"):
            rows.add_row(
                "×".join(map(str, case.shape)) + f", tile {case.tile}",
                name,
                str(race.steps),
                seconds(race, name, 4),
                spread(race.ratios(f"{name}, events kept", name), 3),
                f"{beyond_compute(race, COMPUTE.name):.3f}",
            )
    out.print(rows)
    out.print(
        "Times are always taken. The runtime's own: what a step takes beyond computing where there are no messages,"
    )
    out.print("which is the pipeline's loop and its looks at the clock.")


def show_title(out: Console, title: str, race: Race) -> None:
    case, plan = race.job.case, race.plan
    shape = "×".join(map(str, case.shape))
    sweeps = f", {case.sweeps} sweeps" if case.sweeps > 1 else ""
    out.print(f"\n{title}", style="bold")
    out.print(
        f"{case.nest} {shape}{sweeps}; {plan['mapping']} pipelined in tiles of {case.tile}, {race.steps} steps, "
        f"messages of {plan['message_bytes'] / 1024:.4g} KiB; {race.place}"
    )


def add_limits(rows: Table, race: Race) -> None:
    rows.add_row("compute alone", seconds(race, COMPUTE.name))
    rows.add_row("wire alone", seconds(race, WIRE.name))


def seconds(race: Race, name: str, digits: int = 3) -> str:
    return spread(summary(race.seconds(name)), digits)


def share(race: Race, name: str) -> str:
    """What was hidden, in percent."""
    found = race.hidden(name)
    return spread({key: 100 * value for key, value in found.items()}, 1) if found else "–"
