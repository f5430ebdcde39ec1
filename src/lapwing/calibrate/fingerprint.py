"""What this machine is, so that a description measured on another, or with another MPI, is noticed."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

from lapwing.codegen.compilation.toolchain import cpu_identity
from lapwing.machine.machine import Fingerprint
from lapwing.runtime.binding import native


def here(with_mpi: bool) -> Fingerprint:
    """This machine's CPU and, if asked for, MPI; asking may build the runtime.

    Raises BuildError where there is no MPI.
    """
    return Fingerprint(_cpu(), _mpi() if with_mpi else "")


@cache
def _cpu() -> str:
    """The model, the number of CPUs, and a digest of the instruction sets: "AMD EPYC, 2 CPUs, 3f2a77"."""
    digest = hashlib.sha256(cpu_identity().encode()).hexdigest()[:6]
    return f"{_model()}, {os.cpu_count()} CPUs, {digest}"


def _model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            field, _, value = line.partition(":")
            if field.strip() in ("model name", "Model", "cpu model"):
                return value.strip()
    except OSError:
        pass
    return os.uname().machine


def _mpi() -> str:
    """The library's own first line, with what follows its colon: "MPICH Version: 5.0.2"."""
    text = native.library_version(native.mpi_runtime(None))
    return " ".join(text.split("\n")[0].split("\0")[0].split())
