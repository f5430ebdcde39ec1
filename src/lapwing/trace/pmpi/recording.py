"""What the ranks of a traced MPI program recorded (cpp/record.hpp), read back."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RunError

HEADER = np.dtype(
    [
        ("magic", "S8"), ("version", "i4"), ("rank", "i4"), ("size", "i4"), ("threads", "i4"), ("state", "i4"),
        ("process", "i4"), ("records", "i8"), ("dropped", "i8"), ("begin", "f8"), ("end", "f8"),
        ("clock_at", "f8", 2), ("clock_lead", "f8", 2), ("host", "S256"), ("library", "S512"), ("program", "S1024"),
    ]
)  # fmt: skip
RECORD = np.dtype(
    [
        ("begin", "f8"), ("end", "f8"), ("seconds", "f8"), ("bytes", "i8"), ("kind", "u1"), ("thread", "u1"),
        ("reserved", "u2"), ("site", "i4"), ("peer", "i4"), ("tag", "i4"), ("communicator", "u4"),
        ("sequence", "u4"), ("start", "i4"), ("finish", "i4"),
    ]
)  # fmt: skip
TOTALS = np.dtype([("calls", "i8"), ("bytes", "i8"), ("seconds", "f8"), ("reserved", "i8")])
CALL, SEND, RECEIVE, COLLECTIVE, ONE_SIDED, CANCELLED = 1, 2, 3, 4, 5, 6
STATES = {1: "ended without MPI_Finalize", 2: "finalized", 3: "called MPI_Abort"}

_MAGIC, _VERSION = b"LWPMPI", 1
_HEADER_BYTES, _MOST_SITES = 4096, 8192
_RECORDS_AT = _HEADER_BYTES + _MOST_SITES * TOTALS.itemsize


@dataclass(frozen=True)
class Address:
    """Where an MPI function is called from, as the running program knew it.

    role is block, wait, start or poll; pattern says whom a collective waits for: all, from_root, to_root, prefix or
    none. offset is into the file ``module``; symbol is the exported function there, or "".
    """

    function: str
    role: str
    pattern: str
    offset: int
    symbol: str
    module: str


@dataclass(frozen=True)
class Recording:
    """One rank. Times are seconds of rank 0's clock; ``end`` is 0 for a rank that did not reach MPI_Finalize.

    records has dtype RECORD, totals dtype TOTALS with a row for each of ``sites``; dropped counts the calls that
    came after the cap (totals count them).
    """

    rank: int
    size: int
    state: str
    host: str
    process: int
    library: str
    program: str
    begin: float
    end: float
    dropped: int
    sites: tuple[Address, ...]
    totals: npt.NDArray[Any] = field(repr=False)
    records: npt.NDArray[Any] = field(repr=False)

    @property
    def finalized(self) -> bool:
        return self.state == STATES[2]


def read_recordings(directory: Path) -> list[Recording]:
    """Read every rank's recording in ``directory``, by rank; empty where there is none.

    Raises RunError for a file that is not one.
    """
    paths = [path for path in directory.glob("rank-*") if path.suffix != ".sites"]
    recordings = [_read(path) for path in paths if path.stat().st_size >= _RECORDS_AT]
    return sorted(recordings, key=lambda recording: recording.rank)


def read_programs(directory: Path) -> list[Path]:
    """Every executable that came through MPI_Init, recorded or not."""
    try:
        names = (directory / "programs").read_bytes().split(b"\0")
    except FileNotFoundError:
        return []
    return sorted({Path(os.fsdecode(name.removesuffix(b" (deleted)"))) for name in names if name})


def _read(path: Path) -> Recording:
    data = path.read_bytes()
    header = np.frombuffer(data, HEADER, 1)[0]
    if header["magic"] != _MAGIC or header["version"] != _VERSION:
        raise RunError(f"{path}: not a recording of this version of lapwing.")
    sites = _read_sites(path.with_name(path.name + ".sites"))
    there = (len(data) - _RECORDS_AT) // RECORD.itemsize
    records = np.frombuffer(data, RECORD, min(int(header["records"]), there), _RECORDS_AT).copy()
    for name in ("begin", "end"):
        known = records[name] != 0
        records[name][known] = _on_first_clock(records[name][known], header)
    begin, end = (float(header[name]) and float(_on_first_clock(header[name], header)) for name in ("begin", "end"))
    return Recording(
        rank=int(header["rank"]),
        size=int(header["size"]),
        state=STATES.get(int(header["state"]), STATES[1]),
        host=header["host"].decode(errors="replace"),
        process=int(header["process"]),
        library=header["library"].decode(errors="replace"),
        program=header["program"].decode(errors="replace"),
        begin=begin,
        end=end,
        dropped=int(header["dropped"]),
        sites=sites,
        totals=np.frombuffer(data, TOTALS, len(sites), _HEADER_BYTES).copy(),
        records=records,
    )


def _on_first_clock(times: Any, header: Any) -> Any:
    """Times of a rank's clock as rank 0's clock would have shown them: the lead is taken to change evenly."""
    (at, later), (lead, last) = header["clock_at"], header["clock_lead"]
    drift = (last - lead) / (later - at) if later > at > 0 else 0.0
    return times - lead - drift * (times - at)


def _read_sites(path: Path) -> tuple[Address, ...]:
    sites: dict[int, Address] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        number, function, role, pattern, offset, symbol, module = line.split("\t", 6)
        sites.setdefault(int(number), Address(function, role, pattern, int(offset, 16), symbol, module))
    return tuple(sites[number] for number in sorted(sites))
