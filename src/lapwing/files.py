"""Files that a command writes: outcomes as JSON for scripts, and texts."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.errors import LapwingError, RefusedError

if TYPE_CHECKING:
    import click

# Named `-`, as other tools have it.
STANDARD_OUTPUT = Path("-")
# A file's name may hold bytes that are no text; JSON has the same escapes.
_NO_TEXT = "backslashreplace"


def may_be_standard_output(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """The callback of an option whose file may be `-`: what the command prints for people goes to standard error then."""
    if path == STANDARD_OUTPUT:
        ctx.with_resource(contextlib.redirect_stdout(sys.stderr))
    return path


def check_writable(path: Path, option: str = "--json") -> None:
    """Make the directories a file needs, say so, and try to write there, before anything is run.

    option: that the user named the path with. Raises RefusedError where that fails.
    """
    try:
        if path == STANDARD_OUTPUT or _is_special(path):
            return
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
            print(f"lapwing: {option} {path}: made the folder {path.parent}.", file=sys.stderr)
        descriptor, name = _new_file(path)
        os.close(descriptor)
        os.unlink(name)
    except OSError as error:
        raise RefusedError(f"{option} {path}: cannot write there: {error.strerror}. Name another file.") from None


def write_json(path: Path, document: Any) -> None:
    """Write a document as write_text does."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str, option: str = "--json") -> None:
    """Write a text in one step: whoever reads the path finds all of it, or what was there before.

    Raises LapwingError where it cannot be written.
    """
    if path == STANDARD_OUTPUT:
        # Not sys.stdout, which is standard error now (may_be_standard_output).
        with open(1, "w", encoding="utf-8", errors=_NO_TEXT, closefd=False) as stream:
            stream.write(text)
        return
    try:
        if _is_special(path):
            path.write_text(text, encoding="utf-8", errors=_NO_TEXT)
            return
        descriptor, name = _new_file(path)
        try:
            with open(descriptor, "w", encoding="utf-8", errors=_NO_TEXT) as stream:
                stream.write(text)
            os.chmod(name, 0o666 & ~_umask())  # temporary files are private, results need not be
            os.replace(name, os.path.realpath(path))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise LapwingError(f"{option} {path}: cannot be written: {error.strerror}.") from error


def _is_special(path: Path) -> bool:
    """Whether it is a device or a pipe, such as /dev/stdout, which must not be replaced."""
    return path.exists() and not path.is_file()


def _new_file(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(prefix=f".{path.name}.", dir=os.path.dirname(os.path.realpath(path)))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
