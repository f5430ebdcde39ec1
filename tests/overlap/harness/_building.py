"""Compiles programs, plain and with all checks, each once: what was built is found again by what it was built from.

An entry lies under a key of the sources' texts, those beside them, the options, the compilers and the strict MPI. Entries appear
in one step, so that processes share them, and the directory outlives the run: $XDG_CACHE_HOME/lapwing-tests.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from limits import scaled

HERE = Path(__file__).parent
STRICT = HERE / "strict_mpi.c"
CHECKS = {
    # Optimised less than the plain program: the sanitizers take most of the time to compile otherwise.
    "c": (
        "-O0",
        "-g1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-ftrivial-auto-var-init=pattern",
    ),
    # As much as the plain program: it is the optimiser that takes work across an MPI_Wait.
    "fortran": ("-g1", "-fsanitize=address", "-fcheck=bounds,do", "-finit-real=inf", "-finit-integer=-99999"),
}
FORTRAN_SUFFIXES = {".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08"}
TEXTS = {*FORTRAN_SUFFIXES, ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".inc", ".F", ".F90"}
BUILD_SECONDS = scaled(120)
KEPT = 4000  # entries of the cache


@dataclass(frozen=True)
class Toolchain:
    """``compile``: the compiler of programs; ``compile_c``: of C files beside them; ``launch``: mpiexec of the same MPI."""

    compile: tuple[str, ...]
    compile_c: tuple[str, ...]
    launch: str

    @functools.cached_property
    def identity(self) -> str:
        """What tells these compilers and this MPI from others."""
        asked = [[words[0], question] for words in (self.compile, self.compile_c) for question in ("-show", "-v")]
        said = [subprocess.run(question, capture_output=True, text=True, check=False) for question in asked]
        return "\n".join([str(self), *(done.stdout + done.stderr for done in said), _stamp(self.launch)])


class BuildFailed(Exception):
    """The compiler's words."""


# ---- the machine's tools ----------------------------------------------------------------------------------------------


def _stamp(path: str) -> str:
    """A file's size and time: another MPI in its place has others."""
    found = Path(path).stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _beside(command: str, *names: str) -> str | None:
    """The first of these programs in the directory of ``command``, links followed or not."""
    for directory in (Path(command).parent, Path(command).resolve().parent):
        for name in names:
            if (directory / name).exists():
                return str(directory / name)
    return None


@functools.cache
def toolchain(language: str) -> Toolchain | None:
    """The MPI of "c" or of "fortran" on this machine; None where there is none."""
    if language == "c":
        compiler, launch = shutil.which("mpicc"), shutil.which("mpiexec")
        if compiler is None or launch is None:
            return None
        checks = (
            "-Werror=implicit-function-declaration",
            "-Werror=incompatible-pointer-types",
            "-Werror=int-conversion",
        )
        return Toolchain((compiler, "-O2", *checks), (compiler, "-O2"), launch)
    compiler = shutil.which("mpif90")
    if compiler is None:
        return None
    beside = _beside(compiler, "mpiexec.mpich", "mpiexec"), _beside(compiler, "mpicc.mpich", "mpicc")
    if None in beside:
        return None
    return Toolchain((compiler, "-O2", "-w"), (str(beside[1]), "-O2"), str(beside[0]))


def known_toolchain(language: str) -> Toolchain:
    tools = toolchain(language)
    assert tools is not None
    return tools


@functools.cache
def quick_linker() -> tuple[str, ...]:
    """Linking with the sanitizers takes as long as compiling otherwise."""
    return ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()


@functools.cache
def checks(language: str) -> tuple[str, ...]:
    """The compiler's checks for strict runs; none where it does not know them."""
    tools = known_toolchain(language)
    with tempfile.TemporaryDirectory(prefix="lapwing-checks-") as scratch:
        trial = Path(scratch) / ("trial.c" if language == "c" else "trial.f90")
        trial.write_text("int main(void) { return 0; }\n" if language == "c" else "end\n")
        try:
            _compile([*tools.compile, *CHECKS[language], str(trial), "-o", str(trial.with_suffix(""))], trial.parent)
        except BuildFailed:
            return ()
    return CHECKS[language]


def language_of(source: str | Path) -> str:
    return "fortran" if Path(source).suffix.lower() in FORTRAN_SUFFIXES else "c"


# ---- the cache --------------------------------------------------------------------------------------------------------


@functools.cache
def cache() -> Path:
    """The directory of what was built, with no more in it than is kept."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    directory = (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "lapwing-tests"
    directory.mkdir(parents=True, exist_ok=True)
    # The newest are never among those that go: another process may be about to use them.
    for path in sorted(directory.iterdir(), key=_last_used, reverse=True)[KEPT:]:
        path.unlink(missing_ok=True)
    return directory


def _last_used(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def cached(key: str) -> Path | None:
    """The entry of this key, and note that it was used; None if there is none."""
    entry = cache() / key
    try:
        os.utime(entry)
    except FileNotFoundError:
        return None
    return entry


def keep(key: str, data: bytes) -> Path:
    """Make this the entry of the key, in one step."""
    entry = cache() / key
    copy = cache() / f".{key}.{os.getpid()}"
    copy.write_bytes(data)
    copy.chmod(0o700)
    os.replace(copy, entry)
    return entry


def key_of(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


# ---- building ---------------------------------------------------------------------------------------------------------


def write(files: Mapping[str, str], directory: Path) -> list[Path]:
    """The files in a new directory; returns those to compile."""
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="latin-1")
    return [directory / name for name in files if Path(name).suffix not in (".inc", ".h")]


def _compile(command: Sequence[str], directory: Path) -> None:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, errors="replace", timeout=BUILD_SECONDS, check=False
    )
    if done.returncode != 0:
        raise BuildFailed(f"{shlex.join(command)}\n{done.stderr[:2000]}")


@functools.cache
def strict_object(language: str) -> Path:
    """The strict MPI, compiled for this language's MPI."""
    tools = known_toolchain(language)
    key = f"{key_of(STRICT.read_bytes(), tools.identity)}.o"
    if (entry := cached(key)) is not None:
        return entry
    with tempfile.TemporaryDirectory(prefix="lapwing-strict-") as scratch:
        made = Path(scratch) / key
        _compile([*tools.compile_c, "-c", str(STRICT), "-o", str(made)], made.parent)
        return keep(key, made.read_bytes())


class Build:
    """A program, plain and with the strict MPI and the compiler's checks, each built when it is asked for, and once. What only
    has to be right is compiled without the optimiser (``quick``)."""

    def __init__(self, sources: Sequence[Path], options: Sequence[str] = ()) -> None:
        self.sources = tuple(sources)
        self.options = tuple(options)
        self.language = language_of(sources[0])
        self.executable = functools.cache(self._executable)

    def key(self, strict: bool, quick: bool = False) -> str:
        """Of all that the program is built from."""
        folders = {
            *(source.parent for source in self.sources),
            *(Path(o[2:]) for o in self.options if o.startswith("-I")),
        }
        texts = [(p.name, p.read_bytes()) for d in folders for p in d.iterdir() if p.suffix in TEXTS]
        # A header is found beside the file that includes it: which files are compiled does not say where they lie.
        names = [source.name for source in self.sources]
        options = [option for option in self.options if not option.startswith("-I")]
        more = (CHECKS[self.language], STRICT.read_bytes()) if strict else (quick,)
        return key_of(sorted(texts), names, options, known_toolchain(self.language).identity, quick_linker(), more)

    def _executable(self, strict: bool, quick: bool = False) -> Path:
        key = self.key(strict, quick)
        if (entry := cached(key)) is not None:
            return entry
        tools = known_toolchain(self.language)
        flags = [*(["-O0"] if quick else ()), *self.options, *(checks(self.language) if strict else ())]
        more = [str(strict_object(self.language))] if strict else []
        with tempfile.TemporaryDirectory(prefix="lapwing-build-") as scratch:
            place = Path(scratch)
            made = place / "program"
            parts = self._parts(place, flags)
            _compile([*tools.compile, *quick_linker(), *parts, *more, "-lm", *flags, "-o", str(made)], place)
            return keep(key, made.read_bytes())

    def _parts(self, place: Path, flags: Sequence[str]) -> list[str]:
        """What is linked: the sources themselves where one call compiles and links them all."""
        folders = {str(source.parent) for source in self.sources}
        if len(folders) == 1:
            return ["-I", *folders, *map(str, self.sources)]
        tools = known_toolchain(self.language)
        objects = []
        for source in self.sources:
            objects.append(str(place / (source.stem + ".o")))
            _compile([*tools.compile, "-I", str(source.parent), *flags, "-c", str(source), "-o", objects[-1]], place)
        return objects
