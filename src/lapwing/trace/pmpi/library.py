"""The recording library: built with the user's MPI compiler, preloaded into whatever a command starts.

It is loaded through the environment of the whole command, so that it reaches the ranks however they are started
(mpiexec, srun, a script with several programs). In processes that never call MPI_Init it does nothing, and it is linked
with no MPI, so that launchers and shells do not load one either.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_mpi

# The C++ library is linked in: the program may bring an older one of its own. What is exported are MPI's functions only.
_FLAGS = (
    "-std=c++20", "-O1", "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX", "-fvisibility=hidden",
    "-ftls-model=initial-exec", "-static-libstdc++", "-static-libgcc", "-Wl,--as-needed", "-ldl",
)  # fmt: skip
_SOURCES = Path(__file__).parent / "cpp"
DIRECTORY_VARIABLE = "LAPWING_TRACE_DIRECTORY"
_OPEN_MPI_VARIABLE = "OMPI_MCA_mca_base_env_list"


def build_library(announce: Callable[[str], None] | None) -> Path:
    """Return the path of the recording library, compiled on first use.

    Raises BuildError when there is no MPI compiler or it rejects the source.
    """
    sources = {path.name: path.read_text(encoding="utf-8") for path in _SOURCES.iterdir() if path.is_file()}
    return build_shared_library(
        name="pmpi",
        sources=sources,
        main=sorted(name for name in sources if name.endswith(".cpp")),
        compiler=find_mpi().mpicxx,
        flags=_FLAGS,
        announce=announce,
    )


def recording_environment(library: Path, directory: Path) -> dict[str, str]:
    """The variables with which a command's ranks record into ``directory``."""
    preload = " ".join(filter(None, [str(library), os.environ.get("LD_PRELOAD", "")]))
    variables = {"LD_PRELOAD": preload, DIRECTORY_VARIABLE: str(directory)}
    # Open MPI takes only its own variables to other hosts; MPICH and Slurm take all.
    forwarded = ";".join(filter(None, [os.environ.get(_OPEN_MPI_VARIABLE, ""), *variables]))
    return {**variables, _OPEN_MPI_VARIABLE: forwarded}
