"""What a function's loops stand in: its own variables, what is live after each statement, and how code made from it is run."""

from __future__ import annotations
import __future__

import ast
import copy
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lapwing.loopnest.program.variables.assignment import Assigned, Assignments
from lapwing.loopnest.program.variables.liveness import Liveness, Names
from lapwing.loopnest.program.variables.names import bound_names, captured_names, local_names, parameter_names
from lapwing.loopnest.source import FunctionSource
from lapwing.syntax_places import with_ends

_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


@dataclass(frozen=True)
class Around:
    """The function that loops stand in."""

    source: FunctionSource

    @cached_property
    def locals(self) -> Names:
        """Its own variables."""
        return local_names(self.source.tree)

    @cached_property
    def _captured(self) -> Names:
        return captured_names(self.source.tree)

    @cached_property
    def _liveness(self) -> Liveness:
        return Liveness.of(self.source.tree.body)

    def set_outside(self, statement: ast.stmt) -> Names:
        """The variables that something else than a statement gives a value to."""
        tree = self.source.tree
        return frozenset({*parameter_names(tree.args)} | bound_names(tree.body, without=statement))

    @cached_property
    def _assignments(self) -> Assignments:
        return Assignments.of(self.source.tree)

    def assigned_before(self, statement: ast.stmt) -> Assigned:
        """The variables that have a value before a statement."""
        return self._assignments.before(statement)

    def live_after(self, statement: ast.stmt) -> Names:
        """The variables that may be read after a statement."""
        return self._liveness.after(statement) | self._captured


@dataclass(frozen=True)
class Control:
    """Where in the driver a statement stands. changing: variables that loops around it assign; indices: what they go over;
    counters: those of the indices that are whole numbers."""

    changing: Names = frozenset()
    indices: Names = frozenset()
    counters: Names = frozenset()


@dataclass(frozen=True)
class Code:
    """A function's code among the names that another function sees, with some more that are given when it is made.

    It shares that function's globals, its closure variables, defaults and the file and lines of its statements.
    """

    code: types.CodeType
    like: Callable[..., Any]
    given: tuple[str, ...] = ()
    cells: Mapping[str, types.CellType] = field(default_factory=dict)

    @staticmethod
    def of(tree: ast.FunctionDef, like: Callable[..., Any], given: Sequence[str] = ()) -> Code:
        """given: names of variables around the function beside those of ``like``."""
        bare = with_ends(copy.deepcopy(_without_what_runs_when_defined(tree)))
        bare.name = "function itself"  # not a name that Python allows: its own may be that of a global
        names = (*like.__code__.co_freevars, *given)
        around = ast.parse("def around(): pass").body[0]
        assert isinstance(around, ast.FunctionDef)
        around.args.args = [ast.arg(name) for name in names]
        around.body = [bare]
        module = ast.fix_missing_locations(ast.Module([around], []))
        flags = like.__code__.co_flags & _FUTURE
        compiled = compile(module, like.__code__.co_filename, "exec", flags, dont_inherit=True)
        outer = _code_in(compiled, "around")
        cells = dict(zip(like.__code__.co_freevars, like.__closure__ or (), strict=True))
        code = _code_in(outer, bare.name).replace(co_name=tree.name, co_qualname=like.__qualname__)
        return Code(code, like, tuple(given), cells)

    def function(self, *values: Any, defaults: bool = True) -> Callable[..., Any]:
        """The function. values: of the given names. defaults: whether it has those of ``like``."""
        cells = {**self.cells, **{name: types.CellType(v) for name, v in zip(self.given, values, strict=True)}}
        closure = tuple(cells[name] for name in self.code.co_freevars)
        like = self.like
        made = types.FunctionType(
            self.code, like.__globals__, self.code.co_name, like.__defaults__ if defaults else None, closure
        )
        if defaults:
            made.__kwdefaults__ = like.__kwdefaults__
        made.__module__ = like.__module__
        return made


def _without_what_runs_when_defined(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A function without decorators, annotations and the values of defaults; that it has some stays."""
    arguments = ast.arguments(
        posonlyargs=[_bare(a) for a in tree.args.posonlyargs],
        args=[_bare(a) for a in tree.args.args],
        vararg=None if tree.args.vararg is None else _bare(tree.args.vararg),
        kwonlyargs=[_bare(a) for a in tree.args.kwonlyargs],
        kw_defaults=[None for _ in tree.args.kwonlyargs],
        kwarg=None if tree.args.kwarg is None else _bare(tree.args.kwarg),
        defaults=[],
    )
    return ast.copy_location(ast.FunctionDef(tree.name, arguments, tree.body, [], None), tree)


def _bare(argument: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(argument.arg), argument)


def _code_in(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
