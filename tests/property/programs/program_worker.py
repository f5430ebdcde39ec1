"""What mpiexec starts on every rank: random programs on all ranks, each with the next engine, beside plain Python on every rank.

``program_worker.py DIRECTORY FIRST COUNT``; the first rank leaves the programs and a report in the directory.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from comparing_programs import compare, compare_distributed, load
from random_programs import random_program

from lapwing.planner.plan import ENGINES
from lapwing.runtime.mpi import communicator

_DISTRIBUTED = 2  # every second program runs with distributed arrays as well


def main() -> None:
    directory, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    comm = communicator.world().Dup()  # what is said here never meets the programs' own messages
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        case, path = random_program(seed), directory / f"program{seed}.py"
        if comm.Get_rank() == 0:
            path.write_text(case.source)
        comm.Barrier()
        engine = ENGINES[seed % len(ENGINES)]
        try:
            program = load(path).program.using(engine=engine)
            found[compare(case, program)] += 1
            if seed % _DISTRIBUTED == 0:
                found[compare_distributed(case, program)] += 1
        except Exception as error:
            error.add_note(f"seed {seed}, engine {engine}, rank {comm.Get_rank()}:\n{case.source}")
            raise
        told = comm.allgather(dict(found))
        assert all(one == told[0] for one in told), f"seed {seed}: ranks differ in {told}\n{case.source}"
    if comm.Get_rank() == 0:
        (directory / "report.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
