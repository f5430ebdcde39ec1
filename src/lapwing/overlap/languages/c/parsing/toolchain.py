"""What libclang must be told to read a program as its own compiler would: include folders, macros, the language."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

CPP_SUFFIXES = frozenset((".cc", ".cpp", ".cxx", ".c++", ".C", ".hpp", ".hh", ".hxx"))
_COMPILED = frozenset((".c", ".cc", ".cpp", ".cxx", ".c++", ".C"))
_MPI_COMPILERS = ("mpicc", "mpicc.mpich", "mpicc.openmpi", "smpicc")

# Old C is still C: what newer compilers made errors of is no reason not to read a program.
_LENIENT = (
    "-ferror-limit=0",
    "-w",
    "-Wno-implicit-function-declaration",
    "-Wno-implicit-int",
    "-Wno-int-conversion",
    "-Wno-incompatible-function-pointer-types",
    "-Wno-return-type",
)


def is_header(path: Path) -> bool:
    """Whether a file is there to be included, by its name."""
    return path.suffix not in _COMPILED


def is_cpp(path: Path) -> bool:
    return path.suffix in CPP_SUFFIXES


def arguments(
    path: Path,
    include_dirs: Sequence[Path],
    defines: Mapping[str, str | None],
    commands: Mapping[Path, Sequence[str]],
    undefines: Collection[str] = (),
) -> list[str]:
    """libclang's arguments for one file. What ``compile_commands.json`` says of it comes first."""
    found = [*_LENIENT, *commands.get(path.resolve(), ())]
    found += [f"-I{folder}" for folder in include_dirs]
    found += [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in defines.items()]
    found += [f"-U{name}" for name in sorted(undefines)]
    for folder in (*mpi_includes(), *compiler_includes("c++" if is_cpp(path) else "c")):
        found += ["-isystem", str(folder)]
    return found


@cache
def is_of_system(path: Path) -> bool:
    """Whether a header is the compiler's, the C library's or MPI's."""
    return path.name == "mpi.h" or any(path.is_relative_to(folder) for folder in _system_folders())


@cache
def _system_folders() -> tuple[Path, ...]:
    return tuple(folder.resolve() for folder in (*mpi_includes(), *compiler_includes("c"), *compiler_includes("c++")))


@cache
def compiler_includes(language: str) -> tuple[Path, ...]:
    """The folders the compiler at hand searches: libclang comes without the headers of a compiler (stddef.h, …)."""
    for compiler in ("gcc", "cc", "clang"):
        if shutil.which(compiler) is None:
            continue
        said = _output([compiler, "-E", "-v", "-x", language, "/dev/null"])
        if "#include <...>" in said:
            lines = said.split("#include <...>", 1)[1].split("End of search list")[0].splitlines()[1:]
            return tuple(Path(line.strip()) for line in lines if line.strip())
    return ()


@cache
def mpi_includes() -> tuple[Path, ...]:
    """The folders where mpi.h lies, as the MPI compiler on PATH tells; none if there is no MPI here."""
    for compiler in _MPI_COMPILERS:
        if shutil.which(compiler) is None:
            continue
        for question in ("-show", "--showme:compile", "-compile-info"):
            said = _output([compiler, question])
            folders = [Path(word[2:]) for word in said.split() if word.startswith("-I")]
            folders = [folder for folder in folders if folder.is_dir()]
            if any((folder / "mpi.h").is_file() for folder in folders):
                return tuple(folders)
    return ()


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(done.stdout + done.stderr)  # it names folders
