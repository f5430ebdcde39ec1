"""From FILE[:NEST] and -p KEY=VALUE to a nest and the arguments of one run."""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.api.nest import Nest
from lapwing.errors import LapwingError, RefusedError
from lapwing.launch.search_path import add_folder, hidden_neighbour, is_foundation
from lapwing.launch.supervision import user_code

_LONG_SECONDS = 10.0  # for code of the user's that is not the nest
_TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class ProgramError(LapwingError):
    """The user's file raised something of its own; the text says where."""


def load_nest(target: str) -> Nest:
    """The nest that FILE[:NEST] means. The file is imported as a module, with its folder on the module search path.

    Raises RefusedError where there is no such file or nest or more than one to choose from, ProgramError where the file
    raises while it is imported.
    """
    path, name = split_target(target)
    found = _nests(_import(path))
    shown = _display(path)
    if name is not None:
        named = found.get(name) or next((n for n in found.values() if n.name == name), None)
        if named is None:
            raise RefusedError(f"{shown} has no nest {name}; it has {_listed(found) or 'none at all'}.")
        return named
    if not found:
        raise RefusedError(f"{shown} has no nest. Put @lw.nest above a function (import lapwing as lw).")
    with_problem = {key: nest for key, nest in found.items() if nest.has_problem}
    if len(with_problem) > 1:
        first = next(iter(with_problem))
        raise RefusedError(f"{shown} has several nests: {_listed(with_problem)}. Name one: {path.name}:{first}.")
    # Without a problem, asking for it says what to add.
    return next(iter((with_problem or found).values()))


def split_target(target: str) -> tuple[Path, str | None]:
    """FILE and NEST. Raises RefusedError where FILE is not a file."""
    file, colon, name = target.rpartition(":")
    if not colon or os.path.exists(target) or not name.isidentifier():
        file, name = target, ""
    path = Path(file)
    if not path.is_file():
        found = "is a directory" if path.is_dir() else "does not exist"
        raise RefusedError(f"{file} {found}; expected a Python file with a nest: FILE or FILE:NEST.")
    return path, name or None


def problem_settings(nest: Nest, settings: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The values of -p KEY=VALUE, each of the type its parameter has in the problem's signature.

    The annotation decides, else the default's type; where there is neither, a Python literal is taken as such and
    anything else as text. Raises RefusedError for unknown keys, values that do not fit, and parameters left without a
    value.
    """
    function = nest.problem_function
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = [name for name, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    types_of = _annotations(function)
    values = {}
    for key, text in settings:
        if key not in known and not takes_any:
            expected = ", ".join(known) or "it has none"
            raise RefusedError(
                f"-p {key}={text}: the problem of {nest.name} has no parameter {key}; known: {expected}."
            )
        default = parameters[key].default if key in known else inspect.Parameter.empty
        try:
            values[key] = _converted(text, _expected_type(types_of.get(key), default))
        except (ValueError, SyntaxError, OverflowError) as error:
            raise RefusedError(f"-p {key}={text}: {error}.") from None
    missing = [name for name in known if parameters[name].default is inspect.Parameter.empty and name not in values]
    if missing:
        hint = " ".join(f"-p {name}=…" for name in missing)
        raise RefusedError(f"the problem of {nest.name} has no default for {', '.join(missing)}. Add {hint}.")
    return values


def problem_arguments(nest: Nest, settings: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Arguments of one run by name, made by the nest's problem.

    Raises RefusedError where they do not fit the nest, ProgramError where the problem raises.
    """
    values = problem_settings(nest, settings)
    function = nest.problem_function
    code = inspect.unwrap(function).__code__
    made = _guarded(lambda: function(**values), Path(code.co_filename), f"in the problem of {nest.name}")
    if not isinstance(made, Mapping) or not all(isinstance(key, str) for key in made):
        raise RefusedError(
            f"{_display(Path(code.co_filename))}:{code.co_firstlineno}: the problem of {nest.name} returned "
            f"{type(made).__name__}, expected the arguments of {nest.name} by name: dict(u=…, …)."
        )
    return nest.arguments(**made)


# -- the file --------------------------------------------------------------------------------------------------------


def _import(path: Path) -> types.ModuleType:
    full = path.resolve()
    # A file may be called like a module that is loaded already, or has yet to be; that one must stay.
    taken = full.stem in sys.modules or is_foundation(full.stem)
    name = f"lapwing_file_{full.stem}" if taken else full.stem
    loader = SourceFileLoader(name, str(full))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    add_folder(full.parent)
    _guarded(lambda: loader.exec_module(module), full, "while it was imported")
    return module


def _nests(module: types.ModuleType) -> dict[str, Nest]:
    """The nests of a module by variable name, each once."""
    found: dict[int, tuple[str, Nest]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Nest):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _listed(nests: Mapping[str, Nest]) -> str:
    return ", ".join(nests)


def _guarded(action: Callable[[], Any], file: Path, when: str) -> Any:
    """Run code of the user's; what it raises becomes a ProgramError with the line in the user's file."""
    shown = _display(file)
    try:
        said = f"lapwing: {shown}: still busy {when}, after {_LONG_SECONDS:.0f} s."
        with user_code(shown, when), _said_if_long(said), _in_its_own_directory():
            return action()
    except (LapwingError, KeyboardInterrupt):
        raise
    except BaseException as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        text = f"{type(error).__name__}: {said}" if said else type(error).__name__
        if isinstance(error, SystemExit):
            text = f"called sys.exit({error.code!r}); what should not run here belongs under if __name__ == '__main__'"
        hidden = hidden_neighbour(error, file.parent)
        if hidden is not None:
            text += f"; {hidden} beside it is not found, since Lapwing needs the module of that name: rename it"
        raise ProgramError(f"{shown}:{_line(error, file)}: {text} ({when}).") from error


_directory: str | None = None  # where code of the user's went


@contextlib.contextmanager
def _in_its_own_directory() -> Iterator[None]:
    """A current directory that code of the user's changes is changed for it alone: paths of the command line stay what
    they were, and so does where ranks start."""
    global _directory
    here = os.getcwd()
    before = _directory or here
    os.chdir(before)
    try:
        yield
    finally:
        after = os.getcwd()
        _directory = after if after != before else _directory
        os.chdir(here)


@contextlib.contextmanager
def _said_if_long(text: str) -> Iterator[None]:
    """Say something where the block takes long, for nobody else would: it may never end."""
    clock = threading.Timer(_LONG_SECONDS, print, [text], {"file": sys.stderr, "flush": True})
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()


def _line(error: BaseException, file: Path) -> int:
    """The deepest line of the file that the error passed through."""
    if isinstance(error, SyntaxError) and error.filename and _same(error.filename, file):
        return error.lineno or 1
    line = 1
    trace = error.__traceback__
    while trace is not None:
        if _same(trace.tb_frame.f_code.co_filename, file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _same(name: str, file: Path) -> bool:
    return os.path.realpath(name) == os.path.realpath(file)


def _display(path: Path) -> str:
    """The path as a person would type it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


# -- parameters ------------------------------------------------------------------------------------------------------


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # an annotation that cannot be evaluated says nothing
        return {}


def _expected_type(annotation: Any, default: Any) -> type | None:
    """The type to parse a value as; None where nothing is known."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        options = [a for a in typing.get_args(annotation) if a is not type(None)]
        annotation = options[0] if len(options) == 1 else None
    annotation = typing.get_origin(annotation) or annotation
    if isinstance(annotation, type) and annotation is not object:
        return annotation
    return None if default is None or default is inspect.Parameter.empty else type(default)


def _converted(text: str, kind: type | None) -> Any:
    if kind is None:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
    if kind is bool or kind is np.bool:
        if text.lower() not in _TRUTHS:
            raise ValueError("expected true or false")
        return kind(_TRUTHS[text.lower()])
    if kind is str:
        return text
    if issubclass(kind, Path):
        return kind(text)
    if issubclass(kind, int | float | np.number):
        return _number(text, kind)
    value = ast.literal_eval(text)
    if kind in (tuple, list) and isinstance(value, tuple | list):
        return kind(value)
    if not isinstance(value, kind):
        raise ValueError(f"expected a {kind.__name__}")
    return value


def _number(text: str, kind: Any) -> Any:
    whole = issubclass(kind, int | np.integer)
    try:
        return kind(int(text) if whole else float(text))
    except ValueError:
        raise ValueError(f"expected {'a whole number' if whole else 'a number'}") from None
