"""The source of a function as it stands in its file, read once."""

from __future__ import annotations
import __future__

import ast
import copy
import dis
import inspect
import os
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from lapwing.errors import Refusal, RefusedError
from lapwing.loopnest.inlining.inliner import Inlined, inlined, meaning
from lapwing.loopnest.normalisation.aggregates import with_scalars
from lapwing.loopnest.normalisation.comprehensions import expanded
from lapwing.loopnest.normalisation.counted_loops import Counted, counted
from lapwing.loopnest.normalisation.depth import is_deep
from lapwing.loopnest.normalisation.global_sequences import with_local_sequences
from lapwing.loopnest.normalisation.loop_else import without_else
from lapwing.loopnest.normalisation.made_arrays import with_made_arrays
from lapwing.loopnest.normalisation.nests.boundary_loops import with_boundary_loops
from lapwing.loopnest.normalisation.nests.forward_substitution import with_substituted
from lapwing.loopnest.normalisation.nests.perfect_nests import perfect_nest
from lapwing.loopnest.normalisation.nests.unswitching import with_unswitched
from lapwing.loopnest.normalisation.range_variables import with_ranges
from lapwing.loopnest.normalisation.single_exits import with_single_exits
from lapwing.loopnest.normalisation.tuple_loops import rows_around, selected, unrolled, with_displays
from lapwing.loopnest.normalisation.windows import with_windows


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A plain Python function and the lines it was written in; ``first`` is the number of the first in ``file``.

    ``lines`` is None where the source cannot be read. ``outlined`` is the syntax tree of a function that nobody wrote, but whose
    statements stand in these lines: ``function`` was made from it. ``sequential``: whether its loops are done in their own order
    on one rank; ``generic``: whether its integers may be any then, but for those in ``kept``, rather than those of one call.
    ``most_loops``: how many loops
    may be cut into tiles, None for any number. ``lists``: the parameters that were lists of Python's numbers and are passed as
    arrays, with what their elements are (``program.lists``). ``dead``: arrays of which nobody reads elements after the loops.
    ``of_one_type``: whether loops in their own order are refused where a scalar may have several types, but for those in
    ``of_any_type``. ``sums``: of loops of such, by line and column, the scalars that they add terms to, exactly where they are
    floats.
    ``independent``: those of which no dependence joins two iterations, which counts where they are innermost.
    ``single_exits``: whether what its loops return stands behind them in the syntax tree. ``as_written``: whether names for
    indices and rows, and what stands between its loops, are left where they are.
    """

    function: Callable[..., Any]
    file: str
    first: int
    lines: tuple[str, ...] | None
    outlined: ast.FunctionDef | None = None
    sequential: bool = False
    generic: bool = False
    kept: frozenset[str] = frozenset()
    most_loops: int | None = None
    lists: tuple[tuple[str, str], ...] = ()
    dead: tuple[str, ...] = ()
    of_one_type: bool = False
    of_any_type: frozenset[str] = frozenset()
    sums: Mapping[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    independent: frozenset[tuple[int, int]] = frozenset()
    single_exits: bool = False
    as_written: bool = False

    @staticmethod
    def of(function: Callable[..., Any]) -> FunctionSource:
        """Read the source now: files and notebook cells change. Raises RefusedError for what is no function."""
        if not inspect.isfunction(function):
            name = getattr(function, "__name__", repr(function))
            raise RefusedError(
                f"@lw.nest on {name}: found {type(function).__name__}, expected a plain Python function. "
                "Put @lw.nest directly above def."
            )
        file = _display_path(function)
        if hasattr(function, "__wrapped__"):
            return FunctionSource(function, file, function.__code__.co_firstlineno, None)
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            return FunctionSource(function, file, function.__code__.co_firstlineno, None)
        text = textwrap.dedent("".join(lines))
        return FunctionSource(function, file, first, tuple(text.splitlines()))

    @property
    def tree(self) -> ast.FunctionDef:
        """The syntax tree, with line numbers of the file, and without calls of helpers in its loops.

        Raises RefusedError where there is none of a plain function.
        """
        return self._with_single_exits if self.single_exits else self.inlined.tree

    @cached_property
    def _with_single_exits(self) -> ast.FunctionDef:
        return with_unswitched(with_single_exits(self.inlined.tree), self._meaning)

    @cached_property
    def counted(self) -> Counted:
        """What is compiled: the syntax tree with counted loops in the place of others. Raises RefusedError as ``tree`` does."""
        if is_deep(self.tree):
            return Counted(self.tree)
        return counted(without_else(with_windows(self.tree, self._meaning)), self._meaning)

    @cached_property
    def perfect(self) -> ast.FunctionDef | None:
        """What is compiled with names for indices and rows put for what they are, and its loops as a perfect nest of more of them
        than there are in the text; None where that is what is there."""
        if self.as_written or self.sequential or is_deep(self.tree):
            return None
        tree = self.counted.tree
        found = perfect_nest(with_substituted(tree, self._meaning), self._meaning)
        return found if found is not tree else None

    @cached_property
    def inlined(self) -> Inlined:
        """The syntax tree with helpers inlined as they are when first asked for. Raises RefusedError as ``tree`` does."""
        if self.outlined is not None:
            return Inlined(self.outlined)
        found = inlined(self.written, self.function, partial(_tree_of, caller=self.parsed))
        return replace(found, tree=selected(found.tree)) if found.helpers else found

    def read_again(self) -> FunctionSource:
        """The same, with helpers inlined as they are by now."""
        return replace(self)

    @cached_property
    def written(self) -> ast.FunctionDef:
        """The syntax tree with calls of helpers. Raises RefusedError as ``tree`` does."""
        if is_deep(self.parsed):
            return self.parsed
        made = with_made_arrays(self.parsed, self._meaning)
        unrolling = unrolled(expanded(made, self._meaning), self._meaning)
        with_variables = with_local_sequences(with_scalars(unrolling, self._meaning), self._meaning)
        return with_boundary_loops(with_ranges(with_variables))

    @property
    def rows_around(self) -> frozenset[str]:
        """The names around the function whose rows of numbers are in its syntax tree."""
        if self.outlined is not None or is_deep(self.parsed):
            return frozenset()
        return rows_around(self.parsed, self._meaning)

    def _meaning(self, name: str) -> object:
        return meaning(self.function, name)

    @cached_property
    def parsed(self) -> ast.FunctionDef:
        """The syntax tree of the text as it is. Raises RefusedError as ``tree`` does."""
        name = self.function.__name__
        if hasattr(self.function, "__wrapped__"):
            raise RefusedError(
                f"{self.file}: @lw.nest on {name}: found a function wrapped by another decorator, expected a plain one, "
                "whose loops are all it does. Put @lw.nest directly above def."
            )
        if self.lines is None:
            raise RefusedError(
                f"{self.file}: the source of {name} cannot be read, and Lapwing works from the source. "
                "Define the function in a file or a notebook cell."
            )
        try:
            node = ast.parse("\n".join(self.lines)).body[0]
        except SyntaxError:  # a lambda in the middle of a statement
            node = ast.Pass()
        if not isinstance(node, ast.FunctionDef):
            text = f"{self.file}:{self.first}: {name} is not a plain function. Write def {name}(…): with loops."
            raise RefusedError(Refusal(text, self.file, self.first))
        ast.increment_lineno(node, self.first - 1)
        return node

    @property
    def line(self) -> int:
        """The line of ``def``, where that is known."""
        try:
            return (self.outlined or self.written).lineno
        except RefusedError:
            return self.first

    def text(self, node: ast.AST) -> str:
        """A node as the user wrote it, where it stands on one line."""
        line = getattr(node, "lineno", None)
        if line is not None and line == getattr(node, "end_lineno", None) and self.lines is not None:
            k = line - self.first
            if 0 <= k < len(self.lines):
                encoded = self.lines[k].encode()
                begin, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", len(encoded))
                return bytes(encoded[begin:end]).decode()
        text = ast.unparse(node)
        return text if "\n" not in text else text.splitlines()[0] + " …"


def _tree_of(function: Callable[..., Any], caller: ast.FunctionDef) -> ast.FunctionDef:
    """The syntax tree of a helper, to be inlined into a function. Raises ValueError where there is none, with the reason as a
    clause."""
    try:
        source = FunctionSource.of(function)
        tree = with_displays(source.written, source._meaning, caller)
    except RefusedError:
        raise ValueError("its source cannot be read, or another decorator is above it") from None
    if not _is_compiled_to(source.parsed, function):
        raise ValueError("its source has changed since it was made")
    return tree


def _is_compiled_to(tree: ast.FunctionDef, function: Callable[..., Any]) -> bool:
    """Whether a function's code is that of a definition."""
    code, around = function.__code__, ast.parse("def around(): pass").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.args.args = [ast.arg(name) for name in code.co_freevars]
    bare = copy.deepcopy(tree)
    bare.name, bare.decorator_list = (
        "function itself",
        [],
    )  # not a name that Python allows: its own may be that of a global
    around.body = [bare]
    module = ast.fix_missing_locations(ast.Module([around], []))
    compiled: Any = compile(module, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    for name in ("around", bare.name):
        inner = [c for c in compiled.co_consts if isinstance(c, types.CodeType) and c.co_name == name]
        compiled = inner[-1] if inner else compiled
    return _instructions(compiled) == _instructions(code)


_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def _instructions(code: types.CodeType) -> list[tuple[str, str]]:
    """What code does, but for where it jumps to, and for whether what it calls is known to be a module's."""
    found = []
    for instruction in dis.get_instructions(code):
        name = instruction.opname.replace("LOAD_METHOD", "LOAD_ATTR")
        is_jump = instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs
        is_definition = isinstance(instruction.argval, types.CodeType)
        shown = (
            instruction.opname.startswith(("LOAD", "STORE", "COMPARE", "BINARY", "UNARY", "KW")) and not is_definition
        )
        if name != "PUSH_NULL":
            found.append((name, repr(instruction.argval) if shown and not is_jump else ""))
    return found


@lru_cache(maxsize=512)
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, which takes some time to find out."""
    return inspect.signature(function)


@lru_cache(maxsize=512)
def takes_all_by_position(function: Callable[..., Any]) -> bool:
    """Whether every parameter of a function may be given by position."""
    kinds = {p.kind for p in signature_of(function).parameters.values()}
    return kinds <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


def call_by_name(function: Callable[..., Any], arguments: Mapping[str, Any], like: Callable[..., Any]) -> Any:
    """Call a function with the signature of another; arguments: of all parameters, by name."""
    if takes_all_by_position(like):
        return function(*map(arguments.__getitem__, signature_of(like).parameters))
    bound = signature_of(like).bind_partial()
    bound.arguments = dict(arguments)
    return function(*bound.args, **bound.kwargs)


def _display_path(function: Callable[..., Any]) -> str:
    path = inspect.getsourcefile(function) or "<unknown>"
    if not os.path.exists(path):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def unset_names(function: Callable[..., Any]) -> list[str]:
    """The variables of enclosing functions that have no value."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cell.cell_contents  # noqa: B018
        except ValueError:
            found.append(name)
    return found
