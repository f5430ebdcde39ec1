"""The arguments that a build gives to compilers, from its ``compile_commands.json``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lapwing.errors import RefusedError


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
