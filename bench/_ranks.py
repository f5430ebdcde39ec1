"""Starting a benchmark's worker on its ranks, on this machine or in the lab, and taking what it brings back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import LapwingError
from lapwing.launch.lab import Lab
from lapwing.launch.launch import placed


def run_worker(what: str, worker: Path, job: dict[str, Any], ranks: int, lab: Lab | None, limit_seconds: int) -> Any:
    """What rank 0 of ``python WORKER JOB RESULT`` writes to RESULT, as JSON. One rank is started without mpiexec.

    what: names the benchmark and the case. Exits with a message where a rank fails; it has said why on standard error.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, str(worker), json.dumps(job), str(result)]
        environment = {**os.environ, **(lab.settings() if lab else {})}
        try:
            if ranks > 1:
                mpiexec = find_mpi().mpiexec
                command = [str(mpiexec), *placed(mpiexec, ranks, lab, command)]
            status = subprocess.run(command, env=environment, timeout=limit_seconds, check=False).returncode
        except LapwingError as error:
            raise SystemExit(f"{what.partition(':')[0]}: {error}") from None
        except subprocess.TimeoutExpired:
            raise SystemExit(f"{what}: not done after {limit_seconds} s") from None
        if status or not result.exists():
            raise SystemExit(f"{what}: failed with exit status {status}")
        return json.loads(result.read_text())
