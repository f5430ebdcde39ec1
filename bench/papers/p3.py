"""P3's figures 11 to 14 again: a wavefront over a matrix on disk, by the paper's model, and its three blocks on this disk.

    python bench/papers/p3.py [--quick] [--json PATH] [--pictures DIR] [--disk DIR] [--runs DIR]

The model is eq. 8 to 21 with eq. 17 corrected (lapwing/schedule/out_of_core.py), for P3's cluster of four nodes, each
with a disk of its own, and for one disk that all share. The paper did not find disk parameters that fit its runs; here
they are what its table 1 and the kind of disk say. Two things cost time there that its model leaves out or has too
cheap: the top frontier, read element by element, and virtual memory, to which the in-core program leaves the disk. The
first is modelled here, the second needs runs.

--disk DIR works through a matrix on the disk of DIR in the two ways of P3's figures 3 and 4. It writes half a gigabyte.

--runs DIR runs the mean filter itself on that disk (examples/mean_filter.py, and in_core.cpp with virtual memory), over
2.1 GB in 512 MiB: figures 11 to 14 on this machine. It takes half an hour, and 14 GB of the disk until it ends.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from _disk_blocks import WAYS, matrix, seconds
from _figures import Claim, Found, Picture, Row, Series, best, main, show_rows, yes
from _mean_filter_runs import FULL, QUICK, Measured, measure
from _mean_filter_runs import rows as measured_rows
from rich.console import Console

from lapwing.machine.stored import find
from lapwing.theory.out_of_core import OutOfCoreMachine, best_block, mean_filter, printed_best_block

PROCESSORS = 4
DOUBLE_BYTES = 8
SIZES = {11: 32 * 1024, 13: 50 * 1024}  # N by figure
BLOCKS = (256, 512, 1024, 2048, 4096, 8192)
LARGER_BLOCKS = (400, 800, 1600, 3200, 6400)
FILTER_OPERATIONS = {"load": 5, "add": 4, "mul": 1, "store": 1}  # of a point
SWEEPS = 3  # figure 12

MATRIX_BYTES, BLOCK_BYTES, ROUNDS = 512 << 20, (2 << 20, 8 << 20, 32 << 20), 5
QUICK_MATRIX_BYTES, QUICK_BLOCK_BYTES, QUICK_ROUNDS = 8 << 20, (1 << 20,), 1


def p3_machine() -> OutOfCoreMachine:
    """P3's cluster in the model's terms, an element being a double."""
    described = find("p3-fastethernet")
    disk, link = described.disk, described.link("network", "overlap")
    assert disk is not None
    point = sum(count * described.seconds_per_operation[kind].value for kind, count in FILTER_OPERATIONS.items())
    megabyte = 1e6
    return OutOfCoreMachine(
        processors=PROCESSORS,
        speed=5 / point,  # the paper counts 5 operations a point
        receive_latency=link.receive_cpu(0),
        send_latency=link.send_cpu(0) + link.latency.value,
        network_per_element=link.wire(megabyte) / megabyte * DOUBLE_BYTES,
        io_latency=disk.read_alone(0),
        io_per_element=disk.both(megabyte) / megabyte * DOUBLE_BYTES,
    )


def frontier_seconds(columns: int, machine: OutOfCoreMachine) -> float:
    """Reading the top frontier element by element, as P3's program does (section 3.1.1).

    Columns lie one after the other, so its elements are a column's N / P apart: the head moves on, or waits until they have
    passed under it, whichever is less.
    """
    passing = columns / machine.processors * machine.io_per_element
    return columns * min(machine.io_latency, passing)


def modelled(columns: int, blocks: Sequence[int], machine: OutOfCoreMachine, sweeps: int = 1) -> list[Row]:
    """Per block width NB: T_total with the top frontier read at once, and element by element; reading and writing alone."""
    shared = replace(machine, disk_sharing=machine.processors)
    rows = []
    for block in blocks:
        wave, slow = mean_filter(columns, machine), frontier_seconds(columns, machine)
        top = wave.read_top()
        rows.append(
            {
                "NB": block,
                "memory_MB": round(3 * columns / PROCESSORS * block * DOUBLE_BYTES / 2**20),
                "own": wave.total(block, sweeps),
                "element_wise": wave.total(block, sweeps) + sweeps * (slow - top),
                "read_write": sweeps * 2 * columns / block * wave.read_block(block),
                "shared": mean_filter(columns, shared).total(block, sweeps),
                "synchro_load": wave.synchronisation(block) + wave.load(block) + slow - top,
                "synchro_load_at_once": wave.synchronisation(block) + wave.load(block),
                "synchro_load_read_write": 4 * wave.read_block(block),
            }
        )
    return rows


COLUMNS = {
    "NB": "NB",
    "memory_MB": "three blocks, MiB",
    "element_wise": "T_total, as the program",
    "own": "frontier at once",
    "read_write": "read and write only",
    "shared": "one shared disk",
    "synchro_load": "synchro and load",
    "synchro_load_at_once": "frontier at once",
    "synchro_load_read_write": "of read and write only",
}


def on_this_disk(directory: Path, quick: bool) -> list[Row]:
    """Seconds of each way through the matrix, taking turns, and how much longer than reading and writing."""
    total = QUICK_MATRIX_BYTES if quick else MATRIX_BYTES
    rows = []
    for size in QUICK_BLOCK_BYTES if quick else BLOCK_BYTES:
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        with matrix(directory, size, total // size) as held:
            for _ in range(QUICK_ROUNDS if quick else ROUNDS):
                for way in WAYS:
                    times[way].append(seconds(way, held))
        row: Row = {"block_MB": size >> 20, "seconds": times}
        for way in WAYS:
            row[way] = statistics.median(times[way])
        for way in WAYS[1:]:
            pairs = zip(times[way], times[WAYS[0]], strict=True)
            row[f"{way} / read and write"] = statistics.median(a / b for a, b in pairs)
        rows.append(row)
    return rows


def work(out: Console, quick: bool, options: argparse.Namespace) -> Found:
    machine = p3_machine()
    once = modelled(SIZES[11], BLOCKS, machine)
    thrice = modelled(SIZES[11], BLOCKS, machine, SWEEPS)
    larger = modelled(SIZES[13], LARGER_BLOCKS, machine)
    show_rows(out, f"N = {SIZES[11]}, one sweep (P3 figure 11): seconds by the model", once, COLUMNS)
    show_rows(out, f"N = {SIZES[11]}, {SWEEPS} sweeps (P3 figure 12)", thrice, COLUMNS)
    show_rows(out, f"N = {SIZES[13]}, one sweep (P3 figures 13 and 14)", larger, COLUMNS)
    measured = None if options.runs is None else measure(options.runs, QUICK if quick else FULL)
    runs = [] if measured is None else list(measured_rows(measured))
    found = Found(
        {}, claims(machine, once, thrice, larger) + claims_of_runs(measured, runs), pictures(once, thrice, larger)
    )
    here: list[Row] = []
    if options.disk is not None:
        here = on_this_disk(options.disk, quick)
        ratios = {f"{way} / read and write": f"{way} / read and write" for way in WAYS[1:]}
        columns = {"block_MB": "block, MiB", **{way: way for way in WAYS}, **ratios}
        show_rows(
            out, f"This disk, {MATRIX_BYTES >> 20 if not quick else 8} MiB (P3 figures 3, 4): seconds", here, columns
        )
    if measured is not None:
        show_runs(out, measured, runs)
        found = replace(found, pictures=[*found.pictures, *pictures_of_runs(measured, runs)])
    figures = {"figure_11": once, "figure_12": thrice, "figures_13_14": larger, "this_disk": here}
    cases = [] if measured is None else [case.document() for case in measured.cases]
    return replace(found, figures={**figures, "parameters": machine.__dict__, "runs": runs, "cases": cases})


def claims(machine: OutOfCoreMachine, once: list[Row], thrice: list[Row], larger: list[Row]) -> list[Claim]:
    columns = SIZES[11]
    key = "element_wise"
    opt, printed = best_block(columns, machine), printed_best_block(machine)
    spread = max(row[key] for row in once if row["NB"] >= 512) / best(once, key)[key] - 1
    ratios = [b[key] / a[key] for a, b in zip(once, thrice, strict=True)]
    share = frontier_seconds(columns, machine) / best(once, key)[key]
    overhead = [row[key] / row["read_write"] for row in larger]
    in_phases = [
        (row["synchro_load"] - row["synchro_load_read_write"]) / (row[key] - row["read_write"]) for row in larger
    ]
    return [
        Claim(
            "P3 11",
            "best block NB = 1024 (eq. 17 was not compared: no disk parameters)",
            f"corrected eq. 17: {opt:.0f}, {best(once, key)['NB']} of the widths here; as printed: {printed:.0f}",
            yes(best(once, key)["NB"] == 1024),
        ),
        Claim("P3 11", "wider blocks cost less than 15 %", f"up to {spread:.1%} (NB 512 to 8192)", yes(spread < 0.15)),
        Claim(
            "P3 12",
            "three sweeps take exactly three times one; the top frontier is 27 % of the total",
            f"{min(ratios):.2f} to {max(ratios):.2f} times; {share:.0%}",
            yes(abs(ratios[2] - 3) < 0.05 and abs(share - 0.27) < 0.1),
        ),
        Claim(
            "P3 12",
            "best block for three sweeps: 2048, twice that for one",
            f"eq. 20: {best_block(columns, machine, SWEEPS):.0f}, {best_block(columns, machine, SWEEPS) / opt:.2f} times; "
            f"{best(thrice, key)['NB']} of the widths here",
            yes(best(thrice, key)["NB"] == 2048),
        ),
        Claim(
            "P3 13",
            "well above reading and writing alone",
            f"{min(overhead):.2f} to {max(overhead):.2f} times; frontier at once: "
            f"{min(row['own'] / row['read_write'] for row in larger):.2f}",
            yes(min(overhead) > 1.1),
        ),
        Claim(
            "P3 14",
            "most of that is in the first two phases",
            f"{min(in_phases):.0%} to {max(in_phases):.0%} of it",
            yes(min(in_phases) > 0.5),
        ),
    ]


RUN_COLUMNS = {
    "sweeps": "K",
    "ranks": "ranks",
    "rows": "rows a slab",
    "slab_MB": "MB",
    "in_core": "in core, virtual memory",
    "out_of_core": "out of core",
    "one_block": "one block",
    "all_sweeps": "K sweeps, passes as planned",
    "passes": "passes",
    "read_write": "read and write only",
    "in_core / out_of_core": "in / out of core",
    "one_block / out_of_core": "one / three blocks",
    "out_of_core / read_write": "out of core / read, write",
    "loaded": "synchro and load",
    "read_write_loaded": "of read and write only",
}


def show_runs(out: Console, measured: Measured, runs: list[Row]) -> None:
    """Tables of the runs: figures 11 and 12, and 13 and 14."""
    sizes = measured.sizes
    what = f"N = {sizes.n} ({sizes.bytes / 1e6:.0f} MB), {sizes.memory >> 20} MiB for it, medians of {sizes.rounds}"
    keys = list(RUN_COLUMNS)
    of_totals = [
        key for key in keys if key not in ("read_write", "out_of_core / read_write", "loaded", "read_write_loaded")
    ]
    of_copies = ["sweeps", "ranks", "rows", "slab_MB", "out_of_core", *(key for key in keys if key not in of_totals)]
    for title, chosen in (("figures 11, 12", of_totals), ("figures 13, 14", of_copies)):
        show_rows(out, f"{what}: seconds (P3 {title})", runs, {key: RUN_COLUMNS[key] for key in chosen})
    if measured.no_in_core is not None:
        out.print(f"In core by virtual memory cannot be shown here: {measured.no_in_core}.")


def claims_of_runs(measured: Measured | None, runs: list[Row]) -> list[Claim]:
    """What the paper says of programs, judged by those that ran here."""
    figures, said = "P3 11, 12", "in core by virtual memory 2.3 to 7.11 (K = 1) and 6 times (K = 3) slower"
    if measured is None:
        return [Claim(figures, said, "--runs DIR measures it", "not shown")]
    once, more = ([row for row in runs if (row["sweeps"] > 1) == many] for many in (False, True))
    found = []
    if measured.no_in_core is not None:
        found.append(Claim(figures, said, measured.no_in_core, "not shown"))
    else:
        spans = [span([row["in_core / out_of_core"] for row in part]) for part in (once, more)]
        slower = min(row["in_core / out_of_core"] for row in runs) > 1
        found.append(
            Claim(figures, said, f"{spans[0]} (K = 1), {spans[1]} times (K = {SWEEPS}), measured", yes(slower))
        )
    pairs = [
        (row["out_of_core"], next(o for o in once if (o["ranks"], o["rows"]) == (row["ranks"], row["rows"])))
        for row in more
    ]
    thrice = [seconds / other["out_of_core"] for seconds, other in pairs]
    fewer = [row["all_sweeps"] / row["out_of_core"] for row in more]
    share = [
        (row["loaded"] - row["read_write_loaded"]) / (row["out_of_core"] - row["read_write"])
        for row in once
        if row["loaded"] is not None and row["out_of_core"] > row["read_write"]
    ]
    widest, least = (f(once, key=lambda row: row["out_of_core"]) for f in (max, min))
    spread = widest["out_of_core"] / least["out_of_core"] - 1
    overhead = [row["out_of_core / read_write"] for row in once]
    return [
        *found,
        Claim(
            "P3 11",
            "the block's size matters little (less than 15 %), out of core",
            f"{spread:.0%} between slabs of {least['rows']} rows on {least['ranks']} ranks, best, and {widest['rows']} on "
            f"{widest['ranks']}, measured",
            yes(spread < 0.15),
        ),
        Claim(
            "P3 3, 4",
            "three blocks in turn hide computing behind the disk",
            f"one block takes {span([row['one_block / out_of_core'] for row in once])} times as long, measured",
            yes(min(row["one_block / out_of_core"] for row in once) > 1),
        ),
        Claim(
            "P3 12",
            "three sweeps out of core take three times one",
            f"{span(thrice)} times with a sweep a pass; passes as planned take {span(fewer)} of that, measured",
            yes(max(abs(ratio - SWEEPS) for ratio in thrice) < 0.3),
        ),
        Claim(
            "P3 13",
            "well above reading and writing alone",
            f"{span(overhead)} times, measured",
            yes(min(overhead) > 1.1),
        ),
        Claim(
            "P3 14",
            "most of that is in the first two phases",
            f"{min(share):.0%} to {max(share):.0%} of it, measured" if share else "nothing beyond reading and writing",
            yes(bool(share) and min(share) > 0.5),
        ),
    ]


def span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def pictures_of_runs(measured: Measured, runs: list[Row]) -> list[Picture]:
    """Seconds over slab height: a panel for each number of ranks and of sweeps; and the first two phases."""
    styles = {
        "in_core": "in core, virtual memory",
        "out_of_core": "out of core, three blocks",
        "one_block": "out of core, one block",
        "all_sweeps": "out of core, passes as planned",
        "read_write": "read and write only",
    }
    phases = {"loaded": "out of core, three blocks", "read_write_loaded": "read and write only"}

    def panel(part: list[Row], names: dict[str, str]) -> list[Series]:
        drawn = {key: [row for row in part if row[key] is not None] for key in names}
        return [
            Series(name, [row["rows"] for row in drawn[key]], [row[key] for row in drawn[key]], "read_write" in key)
            for key, name in names.items()
        ]

    def chosen(sweeps: int, ranks: int) -> list[Row]:
        return [row for row in runs if (row["sweeps"], row["ranks"]) == (sweeps, ranks)]

    sizes = measured.sizes
    keys = [(1, ranks) for ranks in sizes.ranks] + [(sizes.sweeps, sizes.sweeps_on)]
    titles = [f"{ranks} rank{'s' * (ranks > 1)}, {sweeps} sweep{'s' * (sweeps > 1)}" for sweeps, ranks in keys]
    totals = [(title, panel(chosen(*key), styles)) for title, key in zip(titles, keys, strict=True)]
    loads = [(title, panel(chosen(*key), phases)) for title, key in zip(titles[:-1], keys[:-1], strict=True)]
    return [
        Picture("p3-runs-11-12", "rows a slab", f"seconds, N = {sizes.n}", totals),
        Picture("p3-runs-14", "rows a slab", "seconds of synchronisation and load", loads),
    ]


def pictures(once: list[Row], thrice: list[Row], larger: list[Row]) -> list[Picture]:
    def lines(rows: list[Row], *keys: str) -> list[Series]:
        names = {**COLUMNS, "element_wise": "as the program", "own": "frontier at once"}
        blocks = [row["NB"] for row in rows]
        return [Series(names[key], blocks, [row[key] for row in rows], dashed=key == "read_write") for key in keys]

    totals = ("element_wise", "own", "read_write")
    phases = [
        Series(name, [row["NB"] for row in larger], [row[key] for row in larger], dashed=key.endswith("write"))
        for key, name in (
            ("synchro_load", "as the program"),
            ("synchro_load_at_once", "frontier at once"),
            ("synchro_load_read_write", "read and write only"),
        )
    ]
    return [
        Picture(
            "p3-figures-11-12",
            "block width NB",
            "seconds, by the model",
            [
                ("N = 32768, one sweep", lines(once, *totals)),
                ("N = 32768, three sweeps", lines(thrice, *totals)),
            ],
        ),
        Picture(
            "p3-figures-13-14",
            "block width NB",
            "seconds, by the model",
            [("N = 51200, in all", lines(larger, *totals)), ("N = 51200, synchronisation and load", phases)],
        ),
    ]


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            work,
            disk="also work through a matrix on the disk of this directory",
            runs="also run the mean filter in core and out of core on the disk of this directory: an hour or two",
        )
    )
