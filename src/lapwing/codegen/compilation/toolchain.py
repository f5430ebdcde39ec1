"""The compilers and the MPI of the user's own machine: where they are and what they are.

Nothing is built here. Every question to a compiler is asked once per process.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lapwing.errors import BuildError
from lapwing.machine.vectors import computes_in_halves, has_slow_line_splits
from lapwing.temporary import scratch_directory

_QUESTION_SECONDS = 60
_MPI_LIBRARY_NAMES = ("mpi", "mpich", "mpi_abi")
# What the launchers of MPICH, Open MPI and PRRTE call the program that starts ranks.
_LAUNCHERS = ("hydra_pmi_proxy", "hydra_persist", "mpiexec", "mpirun", "orted", "prte")
_CXX_NAMES = re.compile(r"\+\+|cxx|CC|icp")
_PROBE = "#include <mpi.h>\n#include <string>\nint main(int n, char **) { return MPI_Init(0, 0) + std::to_string(n).size(); }\n"
_CPU_FIELDS = {
    "model name", "flags",  # x86
    "Features", "CPU implementer", "CPU part", "CPU variant",  # Arm
    "cpu", "isa", "uarch",  # POWER, RISC-V
}  # fmt: skip


# What clang ends at, and what it calls it: it distributes no loops unless it is told to.
_OF_CLANG = {"-fno-tree-loop-distribution": (), "-fno-tree-loop-vectorize": ("-fno-vectorize",)}
# Versions of gcc whose code for AMD's processors up to Zen 4 is known to be faster with Skylake's table (Compiler.tuning).
_TUNED_FOR_ZEN = {12}
# Skylake has them, and Zen only pretends to.
_NO_GATHERS = "-mtune-ctrl=^use_gather_2parts,^use_gather_4parts,^use_gather"


@dataclass(frozen=True)
class Compiler:
    """A compiler that has answered.

    command: the words that start it; the first is an absolute path (symbolic links kept, as wrappers look at
        the name they are called by).
    identity: a text that changes when the compiler does: resolved path, version line and, for an MPI wrapper,
        the command it wraps and the MPI library it links.
    """

    command: tuple[str, ...]
    identity: str

    def spelled(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Flags of gcc as this compiler takes them."""
        if "clang" not in self.identity.lower():
            return tuple(flags)
        return tuple(own for flag in flags for own in _OF_CLANG.get(flag, (flag,)))

    def tuning(self) -> tuple[str, ...]:
        """Flags for the code of this machine's processor, on which no results depend.

        In gcc's tables of costs for AMD's Zen, loads of vectors are so cheap that what is used twice is loaded twice, with
        registers left. Loads, of which every other one crosses a cache line, are what loops over neighbouring elements wait
        for; with the table for Skylake each is done once, and where there is AVX-512, vectors have 32 bytes.
        """
        if "clang" in self.identity.lower() or int(self._version.partition(".")[0] or 0) not in _TUNED_FOR_ZEN:
            return ()
        if has_slow_line_splits():
            return ("-mtune=skylake", _NO_GATHERS)
        return ("-mtune=skylake-avx512", _NO_GATHERS) if computes_in_halves() else ()

    @property
    def _version(self) -> str:
        """Such as "12.2"; empty where it is not known."""
        lines = self.identity.splitlines()
        # What stands in parentheses is the packager's version.
        number = re.search(r"\d+\.\d+", re.sub(r"\([^)]*\)", "", lines[1])) if len(lines) > 1 else None
        return number.group() if number else ""

    @property
    def label(self) -> str:
        """A short name for progress lines, such as "gcc 12.2" or "mpicxx (g++ 12.2)"."""
        name = Path(self.command[0]).name
        lines = self.identity.splitlines()
        version = f" {self._version}" if self._version else ""
        if len(lines) > 2:
            return f"{name} ({Path(lines[2].split()[0]).name}{version})"
        return f"{name}{version}"


@dataclass(frozen=True)
class MpiInstallation:
    """One MPI: its compiler wrapper, its launcher and the shared library the wrapper links.

    library: the file the loader opens at run time (`libmpi.so.12`, `libmpi.so.40`), for `MPI4PY_LIBMPI`; None
        when the wrapper does not tell or links statically.
    """

    mpicxx: Compiler
    mpiexec: Path
    library: Path | None


def find_c_compiler() -> Compiler:
    """Return `$LAPWING_CC`, else the first of cc, gcc and clang on PATH.

    Raises BuildError when there is none or it does not answer `--version`.
    """
    return _find_compiler("C compiler", "LAPWING_CC", ("cc", "gcc", "clang"), "gcc")


def find_cxx_compiler() -> Compiler:
    """Return `$LAPWING_CXX`, else the first of c++, g++ and clang++ on PATH.

    Raises BuildError when there is none or it does not answer `--version`.
    """
    return _find_compiler("C++ compiler", "LAPWING_CXX", ("c++", "g++", "clang++"), "g++")


def find_mpi() -> MpiInstallation:
    """Return the first MPI of these: that of `$LAPWING_MPICXX`; that whose launcher started this process; mpicxx on PATH;
    mpicxx beside this Python.

    The last is what `pip install "lapwing[mpich]"` brings, found also when the environment is not activated. Then, in an
    interpreter that was called by its path, it comes before the system's own directories, which are on everybody's PATH:
    an MPI in any other directory is there because somebody wanted it.
    The launcher is `$LAPWING_MPIEXEC`, else the one that belongs to the wrapper.
    Raises BuildError when there is none, when the wrapper does not work, or when it has no launcher.
    """
    command = _mpicxx_command()
    wrapper = _ask_version(command)
    shown = _wrapped_command(command)
    _check_wraps_mpi(command, shown)
    library = _linked_mpi_library(command, shown)
    identity = "\n".join([wrapper.identity, *filter(None, [shown, _file_identity(library)])])
    return MpiInstallation(
        mpicxx=replace(wrapper, identity=identity),
        mpiexec=_find_mpiexec(Path(command[0])),
        library=library,
    )


def compiler_environment() -> dict[str, str]:
    """What compilers see: messages in no language, and a PATH also where this process was started without one."""
    return {**os.environ, "PATH": os.environ.get("PATH") or os.defpath, "LC_ALL": "C"}


@functools.cache
def cpu_identity() -> str:
    """Return the processor's model and instruction sets, which decide what `-march=native` means."""
    try:
        first_processor = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        first_processor = ""
    lines = []
    for line in first_processor.splitlines():
        field, _, value = line.partition(":")
        if field.strip() in _CPU_FIELDS:
            lines.append(f"{field.strip()}: {' '.join(sorted(value.split()))}")
    return "\n".join([platform.machine(), *(lines or [platform.processor()])])


def _find_compiler(kind: str, variable: str, names: Sequence[str], package: str) -> Compiler:
    command = _command_from_environment(variable, kind) or _first_on_path(names)
    if command is None:
        raise BuildError(
            f"no {kind} found: looked for {', '.join(names)} on PATH and ${variable} is not set. "
            f"Install one (`apt install {package}`) or set {variable} to yours."
        )
    return _ask_version(command)


def _mpicxx_command() -> tuple[str, ...]:
    command = _command_from_environment("LAPWING_MPICXX", "MPI C++ compiler")
    if command is not None:
        return command
    own = Path(sys.prefix) / "bin"
    path = (os.environ.get("PATH") or os.defpath).split(os.pathsep)
    if not any(_is_same(entry, own) for entry in path):
        at = next((k for k, entry in enumerate(path) if _is_of_system(entry)), len(path))
        path.insert(at, str(own))
    command = _first_on_path(["mpicxx"], path=os.pathsep.join([*_launcher_directory(), *path]))
    if command is None:
        raise BuildError(
            f"no MPI found: looked for mpicxx on PATH and in {own}, and $LAPWING_MPICXX is not set. "
            'Install one: `pip install "lapwing[mpich]"`, or your system\'s '
            "(`apt install mpich libmpich-dev`, `module load …` on a cluster)."
        )
    return command


def _is_same(one: str | Path, other: str | Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_of_system(directory: str) -> bool:
    return any(_is_same(directory, entry) for entry in os.defpath.split(os.pathsep) if entry)


def _launcher_directory() -> list[str]:
    """Where the launcher of this process lies, if its parent is one; it belongs to the MPI that this process is to use."""
    try:
        parent = os.readlink(f"/proc/{os.getppid()}/exe")
    except OSError:
        return []
    return [os.path.dirname(parent)] if os.path.basename(parent).startswith(_LAUNCHERS) else []


def _check_wraps_mpi(command: tuple[str, ...], shown: str) -> None:
    """Raise BuildError where LAPWING_MPICXX is a compiler that knows of no MPI, or not of C++."""
    wrapped = Path(shown.split()[0]).name if shown else ""
    if not os.environ.get("LAPWING_MPICXX") or ("mpi" in shown.lower() and _CXX_NAMES.search(wrapped)):
        return
    complaint = _mpi_complaint(command)
    if complaint is not None:
        raise BuildError(
            f"LAPWING_MPICXX is {os.environ['LAPWING_MPICXX']!r}, which is not the C++ compiler of an MPI: it does "
            f"not build a C++ program that calls MPI_Init ({complaint}). Set "
            "LAPWING_MPICXX to your MPI's mpicxx, or unset it to have the mpicxx on PATH."
        )


@functools.cache
def _mpi_complaint(command: tuple[str, ...]) -> str | None:
    """What a compiler says against a small MPI program; None where it builds it."""
    with scratch_directory("lapwing-probe-") as folder:
        (folder / "probe.cpp").write_text(_PROBE, encoding="ascii")
        answer = _ask((*command, "-o", str(folder / "probe")), str(folder / "probe.cpp"))
    if answer.returncode == 0:
        return None
    said = [line.replace(f"{folder}/", "") for line in answer.stderr.splitlines()]
    return next((line for line in said if "error" in line or "undefined" in line), f"status {answer.returncode}")


def _command_from_environment(variable: str, kind: str) -> tuple[str, ...] | None:
    value = os.environ.get(variable, "")
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise BuildError(f"{variable} is {value!r}, which is not a command: {error}.") from error
    if not words:
        return None
    program = shutil.which(words[0])
    if program is None:
        raise BuildError(
            f"{variable} is {value!r}, but {words[0]!r} is not a program on PATH. "
            f"Set {variable} to a {kind} or unset it."
        )
    return (os.path.abspath(program), *words[1:])


def _first_on_path(names: Sequence[str], path: str | None = None) -> tuple[str, ...] | None:
    for name in names:
        program = shutil.which(name, path=path)
        if program is not None:
            return (os.path.abspath(program),)
    return None


@functools.cache
def _ask_version(command: tuple[str, ...]) -> Compiler:
    answer = _ask(command, "--version")
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        raise BuildError(
            f"`{shlex.join(command)} --version` failed with status {answer.returncode}: "
            f"{said[-1] if said else 'it said nothing'}. The compiler does not work; if it is a wrapper, the "
            "compiler that it wraps may be missing (`apt install g++`)."
        )
    version = next((line for line in answer.stdout.splitlines() if line.strip()), "")
    return Compiler(command, f"{os.path.realpath(command[0])}\n{version}")


@functools.cache
def _wrapped_command(command: tuple[str, ...]) -> str:
    """Return the command line behind an MPI wrapper, or "" when it does not tell."""
    for option in ("-show", "--showme"):
        answer = _ask(command, option)
        if answer.returncode == 0 and answer.stdout.strip():
            return answer.stdout.strip().splitlines()[0]
    return ""


def _ask(command: tuple[str, ...], question: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [*command, question],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding=sys.getfilesystemencoding(),
            errors="surrogateescape",  # the answers name files
            timeout=_QUESTION_SECONDS,
            # A translated answer would be another identity.
            env=compiler_environment(),
            check=False,
        )
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be started: {error.strerror}.") from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"`{shlex.join(command)} {question}` did not answer in {_QUESTION_SECONDS} s.") from error


def _find_mpiexec(mpicxx: Path) -> Path:
    chosen = _command_from_environment("LAPWING_MPIEXEC", "launcher (mpiexec, srun)")
    if chosen is not None and len(chosen) > 1:
        raise BuildError(
            f"LAPWING_MPIEXEC is {os.environ['LAPWING_MPIEXEC']!r}; expected one program without options. "
            "Put it with its options in a script and name that."
        )
    if chosen is not None:
        return Path(chosen[0])
    names = _link_chain(mpicxx)
    directories = list(dict.fromkeys(path.parent for path in names))
    # Debian's mpicxx leads to mpic++.openmpi or mpicxx.mpich, while its mpiexec may lead to another MPI.
    flavours = [path.suffix for path in names if path.suffix in (".openmpi", ".mpich")]
    for name in [*(f"mpiexec{flavour}" for flavour in flavours), "mpiexec", "mpiexec.hydra", "mpirun"]:
        for directory in directories:
            program = shutil.which(name, path=str(directory))
            if program is not None:
                return Path(program)
    raise BuildError(
        f"no MPI launcher found: {mpicxx} has no mpiexec, mpiexec.hydra or mpirun beside it (looked in "
        f"{', '.join(map(str, directories))}). Install the rest of this MPI (`apt install openmpi-bin` or "
        "`mpich`), or set LAPWING_MPIEXEC to the launcher that belongs to it (mpiexec, srun)."
    )


def _link_chain(path: Path) -> list[Path]:
    """Return the path and every path its symbolic links lead through, the real file last."""
    chain = [path]
    while chain[-1].is_symlink():
        chain.append(Path(os.path.normpath(chain[-1].parent / chain[-1].readlink())))
    return list(dict.fromkeys([*chain, path.resolve()]))


def _linked_mpi_library(command: tuple[str, ...], shown: str) -> Path | None:
    directories, names = _library_flags(shown.split())
    for name in names:
        for directory in directories:
            found = _runtime_library(directory / f"lib{name}.so")
            if found is not None:
                return found
        # The wrapper names no directory when the library is where the linker looks anyway.
        answer = _ask(command, f"-print-file-name=lib{name}.so").stdout.strip()
        found = _runtime_library(Path(answer)) if os.path.isabs(answer) else None
        if found is not None:
            return found
    return None


def _library_flags(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the -L directories and those -l names that are the MPI library itself."""
    directories, names = [], []
    following = ""
    for word in words:
        if following == "-L" or (word.startswith("-L") and len(word) > 2):
            directories.append(Path(word.removeprefix("-L")))
        elif word.startswith("-l") and word[2:] in _MPI_LIBRARY_NAMES:
            names.append(word[2:])
        following = word
    return directories, names


def _runtime_library(development_file: Path) -> Path | None:
    """Return what the loader opens for a program linked with `libX.so`: the `libX.so.N` it leads to."""
    if not development_file.is_file():
        return None
    with development_file.open("rb") as stream:
        start = stream.read(4096)
    if not start.startswith(b"\x7fELF"):
        # The wheel's libmpi.so is a linker script, as wheels cannot hold symbolic links: INPUT(libmpi.so.12)
        script = re.search(rb"(?:INPUT|GROUP)\s*\(\s*([^\s()]+)", start)
        if script is None:
            return None
        target = development_file.parent / os.fsdecode(script.group(1))
        return target if target.is_file() else None
    real = development_file.resolve()
    for directory in (development_file.parent, real.parent):
        for candidate in sorted(directory.glob(f"{development_file.name}.*")):
            if re.fullmatch(r"\.so\.\d+", "".join(candidate.suffixes[-2:])) and candidate.resolve() == real:
                return candidate
    return real


def _file_identity(library: Path | None) -> str:
    """Return a text that changes when another MPI is installed in the same place."""
    if library is None:
        return ""
    real = library.resolve()
    return f"{real} {real.stat().st_size} bytes"
