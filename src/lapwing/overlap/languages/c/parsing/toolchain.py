"""What libclang must be told to read a program as its own compiler would: include folders, macros, the language."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lapwing.errors import RefusedError

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


def read_commands(path: Path | None) -> dict[Path, list[str]]:
    """The arguments that matter to reading, for each file of a ``compile_commands.json``.

    Raises:
        RefusedError: the file is not there or not a compilation database.
    """
    if path is None:
        return {}
    try:
        entries = json.loads(path.read_bytes())
    except OSError as error:
        raise RefusedError(f"{path}: cannot be read: {error.strerror}; expected a compile_commands.json") from error
    except ValueError as error:
        raise RefusedError(f"{path}: no JSON ({error}); expected a compile_commands.json") from error
    if not isinstance(entries, list):
        raise RefusedError(f"{path}: {_kind(entries)}; expected a list with an object for each file")
    if not entries:
        raise RefusedError(f"{path}: it lists no file. Have the build make it anew, or leave -p out and name -I and -D")
    commands: dict[Path, list[str]] = {}
    for number, entry in enumerate(entries, 1):
        wrong = _wrong(entry)
        if wrong is not None:
            raise RefusedError(f"{path}: entry {number}: {wrong}")
        commands[_file_of(entry)] = _kept(entry)
    return commands


def _wrong(entry: object) -> str | None:
    """What is found where an entry is not as it has to be, and what was expected."""
    if not isinstance(entry, dict):
        return f"{_kind(entry)}; expected an object with directory, file and command"
    for name in ("directory", "file"):
        if not isinstance(entry.get(name), str):
            return f'"{name}" is {_kind(entry[name]) if name in entry else "missing"}; expected a text'
    arguments, command = entry.get("arguments"), entry.get("command")
    if arguments is not None and not (isinstance(arguments, list) and all(isinstance(word, str) for word in arguments)):
        return '"arguments" is no list of texts; expected the words of the command'
    if arguments:
        return None
    if not isinstance(command, str):
        return f'"command" is {_kind(command) if "command" in entry else "missing"}; expected a text, or a list "arguments"'
    try:
        shlex.split(command)
    except ValueError:
        return f'"command" has a quote that does not end: {command}'
    return None


def _kind(value: object) -> str:
    """What a value of JSON is."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _file_of(entry: Mapping[str, Any]) -> Path:
    return Path(entry["directory"], entry["file"]).resolve()


def _kept(entry: Mapping[str, Any]) -> list[str]:
    words = entry.get("arguments") or shlex.split(entry["command"])
    folder = Path(entry["directory"])
    kept: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in ("-I", "-isystem", "-iquote", "-include", "-D", "-U"):
            value = next(rest, "")
            kept += [word, value if word in ("-D", "-U") else str(folder / value)]
        elif word.startswith("-I"):
            kept.append(f"-I{folder / word[2:]}")
        elif word.startswith(("-D", "-U", "-std=")):
            kept.append(word)
    return kept
