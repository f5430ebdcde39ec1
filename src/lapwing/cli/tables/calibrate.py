"""What `lapwing calibrate` found, as a person reads it: units and 95 % intervals."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from lapwing.machine.machine import Copies, Curve, Disk, Kernel, Link, Machine, Quantity
from lapwing.units import duration, durations, rate, size

_PIPED_WIDTH = 120  # characters, where there is no terminal to ask
_SHOWN_BYTES = (8, 4096, 65536, 1 << 20)


def show(machine: Machine) -> None:
    """Print tables of links, copies, tiles and the disk."""
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    noise = f", the same work varied by ±{machine.noise:.1%}" if machine.noise else ""
    console.print(f"{machine.name}: {machine.fingerprint.cpu}; {machine.fingerprint.mpi}{noise}", highlight=False)
    for place, engines in sorted(machine.links.items()):
        console.print(_links_table(place, engines))
    console.print(_kernels_table(machine.kernels.values()))
    console.print(_copies_table(machine.copies, machine.seconds_per_operation))
    if machine.disk is not None:
        console.print(_disk_table(machine.disk))


def _links_table(place: str, links: Mapping[str, Link]) -> Table:
    table = _table(f"messages {'on a node' if place == 'node' else 'over the network'}", "engine", "bytes")
    for name in ("sender's CPU", "receiver's CPU", "on the link", "latency", "synchronous sends add"):
        table.add_column(name, justify="right")
    for engine, link in sorted(links.items()):
        _add_link(table, engine, link)
    return table


def _add_link(table: Table, engine: str, link: Link) -> None:
    most = max(sample for sample, _ in link.wire.samples)
    for row, bytes in enumerate(b for b in _SHOWN_BYTES if b <= most):
        once = (_quantity(link.latency), _quantity(link.synchronisation)) if row == 0 else ("", "")
        table.add_row(
            engine if row == 0 else "", size(bytes), _at(link.send_cpu, bytes), _at(link.receive_cpu, bytes),
            _at(link.wire, bytes), *once,
        )  # fmt: skip


def _kernels_table(kernels: Iterable[Kernel]) -> Table:
    table = _table("tiles", "nest", "points a step", "in a row", "block")
    table.add_column("a point", justify="right")
    for kernel in sorted(kernels, key=lambda k: k.name):
        for row in _kernel_rows(kernel):
            table.add_row(*row)
    return table


def _kernel_rows(kernel: Kernel) -> Iterator[tuple[str, ...]]:
    for number, sample in enumerate(kernel.samples):
        seconds = _quantity(Quantity(sample.seconds_per_point, sample.low, sample.high))
        name = kernel.name if number == 0 else ""
        yield name, f"{sample.points_a_step:,}", f"{sample.innermost_run:,}", size(sample.working_set_bytes), seconds


def _copies_table(copies: Copies, operations: Mapping[str, Quantity]) -> Table:
    table = _table("copies and single operations", "what")
    table.add_column("takes", justify="right")
    table.add_row("a byte of a whole run of memory", _quantity(copies.contiguous_seconds_per_byte))
    table.add_row("an element by itself", _quantity(copies.strided_seconds_per_element))
    table.add_row("a part of a message", _quantity(copies.seconds_per_part))
    if copies.shared_write_seconds_per_line is not None:
        table.add_row(
            "writing a cache line that another core has read", _quantity(copies.shared_write_seconds_per_line)
        )
    if copies.shared_read_seconds_per_line is not None:
        table.add_row(
            "reading a cache line that another core has written", _quantity(copies.shared_read_seconds_per_line)
        )
    for kind, quantity in sorted(operations.items()):
        table.add_row(kind, _quantity(quantity))
    return table


def _disk_table(disk: Disk) -> Table:
    table = _table(f"disk: {disk.source}", "request")
    for name in ("read", "write", "both", "read alone", "write alone"):
        table.add_column(name, justify="right")
    for bytes, _ in disk.read.samples:
        rates = [rate(bytes / curve(bytes)) for curve in (disk.read, disk.write, disk.both)]
        table.add_row(size(bytes), *rates, _at(disk.read_alone, bytes), _at(disk.write_alone, bytes))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table


def _at(curve: Curve, bytes: float) -> str:
    """The curve's value at a size, with the interval of the sample there if there is one."""
    sizes = [sample for sample, _ in curve.samples]
    if bytes in sizes and curve.low and curve.high:
        number = sizes.index(bytes)
        return _quantity(Quantity(curve(bytes), curve.low[number], curve.high[number]))
    return _quantity(Quantity(curve(bytes)))


def _quantity(quantity: Quantity) -> str:
    """ "1.23 µs (1.2–1.31)": the interval is in the same unit."""
    if quantity.low is None or quantity.high is None:
        return duration(quantity.value)
    unit, (value, low, high) = durations([quantity.value, quantity.low, quantity.high])
    return f"{value} {unit}" if low == high else f"{value} {unit} ({low}–{high})"
