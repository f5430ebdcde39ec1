"""Programs of C and C++: translation units read one after the other into one :class:`Program`."""

from __future__ import annotations

import contextlib
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lapwing.errors import LapwingError, RefusedError
from lapwing.overlap.ir.expressions import Storage, Symbol, Type, Unread
from lapwing.overlap.ir.program import Declaration, LeftOut, Procedure, Program, taken_as_undefined
from lapwing.overlap.ir.statements import Block, Loop, Opaque
from lapwing.overlap.languages.c.parsing import toolchain
from lapwing.overlap.languages.c.parsing.text import Region, Text, conditional_definitions, guards_header
from lapwing.overlap.languages.c.reading import stub
from lapwing.overlap.languages.c.reading.constants import Macro, MpiConstants, macros_of
from lapwing.overlap.languages.c.reading.expressions import Expressions
from lapwing.overlap.languages.c.reading.fallback import Found, functions_in
from lapwing.overlap.languages.c.reading.libclang import TALLEST, Cursor, Diagnostic, Kind, Linkage, Node, Unit, Uses
from lapwing.overlap.languages.c.reading.statements import Given, Statements
from lapwing.overlap.languages.c.reading.symbols import Declarations, Table, give_bounds
from lapwing.overlap.languages.c.reading.trial import Trial, survives
from lapwing.overlap.source.compile_commands import read_commands
from lapwing.overlap.source.spans import Problem, Source, Span

_DEFINITIONS = frozenset(
    (Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR, Kind.CONVERSION_FUNCTION)
)
_HOLDERS = frozenset((Kind.NAMESPACE, Kind.LINKAGE_SPEC, 2, 4))  # what functions may be defined inside
_WORD = re.compile(r"[A-Za-z_]\w*")
_MEMBERS = frozenset((Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR, Kind.CONVERSION_FUNCTION))


def read_c(
    paths: Sequence[Path],
    include_dirs: Sequence[Path] = (),
    defines: Mapping[str, str | None] | None = None,
    compile_commands: Path | None = None,
    undefines: Collection[str] = (),
) -> Program:
    """Read C and C++ files as one program.

    ``defines``: macros, with None for ``-DNAME``; ``undefines``: those that are certainly not defined from outside. What could
    not be read is in the program as Opaque statements, and among its problems.

    Raises:
        RefusedError: a file is not there, or ``compile_commands`` is no compilation database.
    """
    commands = read_commands(compile_commands)
    reader = _Reader(include_dirs, defines or {}, commands, frozenset(undefines))
    for path in paths:
        reader.read(path, _bytes(path))
    return reader.program()


def read_c_text(
    text: str,
    name: str = "program.c",
    include_dirs: Sequence[Path] = (),
    defines: Mapping[str, str | None] | None = None,
    undefines: Collection[str] = (),
) -> Program:
    """Read a program that is given as text, as if it were a file called ``name`` in the current folder."""
    reader = _Reader(include_dirs, defines or {}, {}, frozenset(undefines))
    reader.read(Path(name), text.encode("latin-1", "replace") if text.isascii() else text.encode(), in_memory=True)
    return reader.program()


def try_to_read(trial: Trial) -> None:
    """Ask libclang all that reading this file asks."""
    path = Path(trial.path)
    commands = {} if trial.command is None else {path: trial.command}
    folders = [Path(folder) for folder in trial.include_dirs]
    reader = _Reader(folders, trial.defines, commands, frozenset(trial.undefines), tries=True)
    data = path.read_bytes() if trial.text is None else trial.text.encode("latin-1")
    # An error of ours comes again, and is told, where the file is read in earnest.
    with contextlib.suppress(Exception):
        reader.read(path, data, in_memory=trial.text is not None)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}; expected a C or C++ source") from error


@dataclass
class _File:
    """One file of the program, as read so far."""

    number: int
    source: Source
    text: Text
    functions: list[Span] = field(default_factory=list)  # those that were read
    left_out: list[tuple[int, int]] = field(default_factory=list)  # by conditional compilation
    again: list[tuple[Span, Path]] = field(default_factory=list)  # functions that another file has, too, which was read


class _Reader:
    """Collects the program over its translation units."""

    def __init__(
        self,
        include_dirs: Sequence[Path],
        defines: Mapping[str, str | None],
        commands: Mapping[Path, Sequence[str]],
        undefines: frozenset[str],
        tries: bool = False,
    ) -> None:
        """``tries``: nothing is lost if libclang ends this process."""
        self._undefines = undefines
        self._tries = tries
        self._omitted: list[LeftOut] = []
        self._assumed: list[tuple[int, frozenset[str]]] = []  # files, and macros that are taken as undefined there
        self._texts: dict[Path, Text] = {}
        self._definitions: dict[Path, Mapping[str, frozenset[str]]] = {}
        self._include_dirs = [folder.resolve() for folder in include_dirs]
        self._defines = defines
        self._commands = commands
        self._table = Table()
        self._files: dict[Path, _File] = {}
        self._sources: list[Source] = []
        self._procedures: dict[str, Procedure] = {}
        self._problems: list[Problem] = []
        self._contents: dict[Path, bytes] = {}
        self._mains: list[Span] = []
        self._included: dict[Path, None] = {}
        self._declarations: dict[str, list[Declaration]] = {}  # of functions, by what libclang calls them
        self._keys: dict[str, str] = {}  # of those that are defined

    def program(self) -> Program:
        variables = {
            key: symbol
            for key, symbol in self._table.symbols.items()
            if symbol.storage is Storage.GLOBAL
            or (symbol.storage is Storage.CONSTANT and not key.startswith("procedure "))
        }
        problems = tuple(dict.fromkeys(self._problems))
        return Program(
            tuple(self._sources),
            self._procedures,
            variables,
            problems,
            self._table.initial,
            tuple(self._mains),
            (*(self._read_bytes(path) for path in self._included if path not in self._files), *self._given_macros()),
            {key: tuple(self._declarations.get(identity, ())) for identity, key in self._keys.items()},
            tuple(self._omitted),
            taken_as_undefined((*self._assumed, *((one.span.source, one.macros) for one in self._omitted))),
            self._table.libraries,
        )

    def _given_macros(self) -> Iterable[bytes]:
        values = (value for value in self._defines.values() if value is not None)
        return (word.encode() for words in (values, *self._commands.values()) for word in words)

    # ---- files ----

    def _file(self, path: Path, shown: Path | None = None) -> _File:
        if path not in self._files:
            data = self._read_bytes(path)
            source = Source(shown or path, data, "c++" if toolchain.is_cpp(shown or path) else "c")
            self._files[path] = _File(len(self._sources), source, Text(data))
            self._sources.append(source)
        return self._files[path]

    def _read_bytes(self, path: Path) -> bytes:
        if path not in self._contents:
            try:
                self._contents[path] = path.read_bytes()
            except OSError:
                self._contents[path] = b""
        return self._contents[path]

    # ---- one translation unit

    def read(self, path: Path, data: bytes, in_memory: bool = False) -> None:
        main = path.resolve()
        self._contents[main] = data
        file = self._file(main, path)
        arguments = toolchain.arguments(path, self._include_dirs, self._defines, self._commands, self._undefines)
        unsaved = [(main, data)] if in_memory else []
        if not toolchain.mpi_includes():
            arguments += ["-isystem", str(stub.folder())]  # the last one: any other mpi.h comes first
        try:
            unit = Unit(main, arguments, unsaved)
        except LapwingError as error:
            self._problem(path, 1, str(error))
            self._fall_back(main, file, str(error))
            return
        with unit:
            if not self._tries and unit.diagnostics() and not self._survives(path, main, data, in_memory):
                reason = "libclang does not survive its errors"
                self._problem(path, 1, f"{reason}: it was not read")
                self._fall_back(main, file, reason)
                return
            included = unit.included()
            # MPI's headers are the system's wherever they lie: in a folder that is given with -I, too.
            of_mpi = frozenset(p for p, around in included if any(one.name == "mpi.h" for one in (p, *around)))
            self._included |= dict.fromkeys(p for p, _ in included if p not in of_mpi and not toolchain.is_of_system(p))
            _UnitReader(self, unit, main, path, of_mpi).read()
        self._fall_back(main, file, "a template, or code that libclang does not understand")

    def _survives(self, path: Path, main: Path, data: bytes, in_memory: bool) -> bool:
        return survives(
            Trial(
                str(main),
                tuple(map(str, self._include_dirs)),
                self._defines,
                tuple(sorted(self._undefines)),
                self._commands.get(path.resolve()),
                data.decode("latin-1") if in_memory else None,
            )
        )

    def given(self, path: Path, installed: frozenset[str], because: Mapping[str, frozenset[str]]) -> Given:
        """What is certain of a file's macros."""
        return Given(self._undefines.union(self._defines), path in self._commands, installed, because)

    def definitions(self, path: Path) -> Mapping[str, frozenset[str]]:
        """The macros that a file defines under conditions, with those that decide."""
        if path not in self._definitions:
            self._definitions[path] = conditional_definitions(self.text(path))
        return self._definitions[path]

    def text(self, path: Path) -> Text:
        """The tokens and directives of a file that is read, a header's, too."""
        if path not in self._texts:
            file = self._files.get(path)
            self._texts[path] = Text(self._read_bytes(path)) if file is None else file.text
        return self._texts[path]

    def _problem(self, path: Path, line: int, message: str) -> None:
        self._problems.append(Problem(path, line, message))

    def _fall_back(self, main: Path, file: _File, reason: str) -> None:
        """Add what libclang has not seen of a file: functions with nothing but an Opaque statement in them."""
        for found in functions_in(file.source.data, toolchain.is_cpp(main)):
            if any(span.start <= found.body_start < span.end for span in file.functions):
                continue
            if any(start <= found.start and found.end <= end for start, end in file.left_out):
                self._left_out(found, file)
            else:
                twin = next((path for span, path in file.again if span.start <= found.body_start < span.end), None)
                why = reason if twin is None else f"another {found.name}, in {twin}, was read before"
                self._add_unread(found, file, why)

    def _left_out(self, found: Found, file: _File) -> None:
        if found.mpi_calls:
            line = file.source.line_of(found.start)
            self._problem(file.source.path, line, f"{found.name} is left out by conditional compilation: not read")

    def _add_unread(self, found: Found, file: _File, reason: str) -> None:
        span = Span(file.number, found.start, found.end)
        inside = Span(file.number, found.body_start + 1, found.body_end - 1)
        line = file.source.line_of(found.start)
        key = found.name if found.name not in self._procedures else f"{file.source.path.name}::{found.name}"
        if key in self._procedures:
            key = f"{key}#{found.start}"
        calls = ", ".join(f"{name} (line {file.source.line_of(at)})" for name, at in found.mpi_calls)
        detail = f"; its MPI calls are not looked at: {calls}" if calls else ""
        self._problem(file.source.path, line, f"{found.name} could not be read: {reason}{detail}")
        if found.name == "main" and not toolchain.is_cpp(file.source.path):
            self._mains.append(span)
        self._procedures[key] = Procedure(
            name=found.name,
            key=key,
            kind="function",
            source=file.number,
            span=span,
            parameters=(),
            symbols={},
            body=Block((Opaque(reason, span=inside),), inside),
            header_end=inside.start,
            uses_end=inside.start,
            declarations_end=inside.start,
            mpi_interface="mpi.h",
        )
        file.functions.append(span)


class _UnitReader:
    """Reads one translation unit into the program."""

    def __init__(self, program: _Reader, unit: Unit, main: Path, shown: Path, of_mpi: frozenset[Path]) -> None:
        self._program = program
        self._of_mpi = of_mpi
        self._unit = unit
        self._clang = unit._clang
        self._main = main
        self._shown = shown
        self._declarations = Declarations(unit, program._table, main, self._source_of)
        self._errors: dict[Path, list[Diagnostic]] = {}
        self._uses: dict[Path, Uses] = {}
        self._ranges: dict[Path, list[tuple[int, int]]] = {}
        self._globals: dict[str, Symbol] = {}
        self._ours: dict[Path, bool] = {}

    def read(self) -> None:
        self._note_errors()
        cursors = self._unit.top()
        self._note_uses(cursors)
        macros = macros_of(self._unit, cursors, self._program._read_bytes)
        self._constants = MpiConstants(self._unit, macros, self._program._read_bytes)
        if self._constants.defines(stub.GUARD):
            message = "no mpi.h here (mpicc is not on PATH): read with Lapwing's own declarations of MPI"
            self._program._problem(self._shown, 1, message)
        self._program._file(self._main).left_out = self._skipped(self._main)
        self._installed = frozenset(self._names_of_system(macros))
        self._because = self._conditional_definitions()
        self._definitions(cursors)
        self._note_conditions()

    def _is_ours(self, path: Path | None) -> bool:
        """A file of the program: the source itself, or a header beside it or in a folder that was given."""
        if path is None:
            return False
        if path not in self._ours:
            folders = [self._main.parent, *self._program._include_dirs]
            near = any(path.is_relative_to(folder) for folder in folders)
            self._ours[path] = path == self._main or (near and path not in self._of_mpi)
        return self._ours[path]

    def _source_of(self, path: Path) -> int | None:
        file = self._program._files.get(path)
        return file.number if file else None

    def _note_errors(self) -> None:
        for error in self._unit.diagnostics():
            path = error.path or self._main
            self._errors.setdefault(path, []).append(error)
            if error.system and not error.fatal:
                continue  # the compiler whose header this is reads more than libclang
            shown = self._shown if path == self._main else path
            self._program._problem(shown, error.line, error.message)

    def _note_uses(self, cursors: Sequence[Cursor]) -> None:
        found: dict[Path, list[tuple[int, int, str, Cursor]]] = {}
        for cursor in cursors:
            if cursor.kind != Kind.MACRO_INSTANTIATION:
                continue
            if not self._is_ours(self._unit.file(cursor)):
                continue
            path, start, end = self._unit.extent(cursor)
            if path is not None:
                found.setdefault(path, []).append((start, end, self._unit.name(cursor), cursor))
        self._uses = {path: Uses(uses) for path, uses in found.items()}

    def _conditional_definitions(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for path, _ in self._unit.included():
            if path not in self._of_mpi and not toolchain.is_of_system(path):
                for name, macros in self._program.definitions(path).items():
                    found[name] = found.get(name, frozenset()) | macros
        return found

    def _note_conditions(self) -> None:
        """Note the macros that decide what is compiled outside of functions."""
        given = self._program.given(self._main, self._installed, self._because)
        number = self._program._file(self._main).number
        for path, _ in self._unit.included():
            if path not in self._of_mpi and not toolchain.is_of_system(path):
                for region in self._regions_outside(path):
                    macros = given.assumed(region)
                    if macros and given.decide(region):
                        self._program._assumed.append((number, macros))

    def _regions_outside(self, path: Path) -> Iterator[Region]:
        """A file's conditional regions that are read, hold something and stand in no function that was read."""
        text = self._program.text(path)
        file = self._program._files.get(path)
        functions = file.functions if file is not None else []
        for region in text.regions:
            out = any(start < region.start < end for start, end in self._skipped(path))
            inside = any(function.start < region.start < function.end for function in functions)
            if not (out or inside or guards_header(region, text)) and text.holds_anything(region):
                yield region

    def _names_of_system(self, macros: Sequence[Macro]) -> Iterator[str]:
        """The macros that the compiler itself, or a header of the system's, defines."""
        systems: dict[Path, bool] = {}
        for macro in macros:
            path = macro.path
            if path is not None and path not in systems:
                systems[path] = path in self._of_mpi or toolchain.is_of_system(path)
            if path is None or systems[path] or self._unit.place(macro.cursor)[2]:
                yield macro.name

    def _skipped(self, path: Path) -> list[tuple[int, int]]:
        if path not in self._ranges:
            self._ranges[path] = self._unit.skipped(path)
        return self._ranges[path]

    def _definitions(self, cursors: Sequence[Cursor], linkage: str = "") -> None:
        """Read what is defined. ``linkage``: what C++ says before it, or around it, of its linkage."""
        for cursor in cursors:
            if cursor.kind in _HOLDERS:
                path, _, system = self._unit.place(cursor)
                if not system and self._is_ours(path):
                    inside = 'extern "C" ' if cursor.kind == Kind.LINKAGE_SPEC else linkage
                    self._definitions(self._unit.children(cursor), inside)
            elif cursor.kind == Kind.VAR_DECL:
                path, _, system = self._unit.place(cursor)
                if path is not None and not system and self._is_ours(path):
                    self._program._file(path)
                    symbol = self._declarations.variable(cursor)
                    if symbol is not None:
                        self._globals[symbol.name] = symbol
                        self._initial(cursor, symbol, path)
            elif cursor.kind in _DEFINITIONS:
                path, _, system = self._unit.place(cursor)
                if path is None or system:
                    continue
                if not self._clang.clang_isCursorDefinition(cursor):
                    if cursor.kind == Kind.FUNCTION_DECL:
                        self._declaration(cursor, linkage)
                elif self._is_ours(path):
                    self._function(cursor, path)
                    self._declaration(cursor, linkage)

    def _initial(self, cursor: Cursor, symbol: Symbol, path: Path) -> None:
        """Note a variable's initial value, where it can be more than a table of numbers."""
        numbers = symbol.type.base in ("integer", "real", "logical", "character", "complex")
        if symbol.key in self._program._table.initial or (numbers and symbol.dimensions is not None):
            return
        given = self._unit.initial(cursor)
        if given is not None:
            file = self._program._file(path)
            uses = self._uses.get(path, Uses(()))
            tree = self._unit.tree(given, path, uses, file.source.data)
            read = self._expressions(file, uses).read
            self._program._table.initial[symbol.key] = (
                read(tree) if tree.height <= TALLEST else Unread("nested too deeply")
            )

    def _expressions(self, file: _File, uses: Uses) -> Expressions:
        return Expressions(self._unit, self._declarations, file.text, file.number, uses, self._constants)

    # ---- one function

    def _declaration(self, cursor: Cursor, linkage: str) -> None:
        """Note how the unit's own file may declare the function once more."""
        path, start, end = self._unit.extent(cursor)
        if path is None:
            return
        if self._clang.clang_isCursorDefinition(cursor):
            body = next((c for c in self._unit.children(cursor) if c.kind == Kind.COMPOUND_STMT), None)
            if body is None or path != self._main:
                return
            _, end, _ = self._unit.extent(body)
        file = self._program._file(self._main)
        text = self._program._read_bytes(path)[start:end].decode("latin-1").strip()
        if self._unit.name(cursor) in _WORD.findall(text):
            at = start if path == self._main else _inclusion(file.text, path)
            found = self._program._declarations.setdefault(self._unit.identity(cursor), [])
            uses = self._uses.get(path)
            macros = frozenset[str]() if uses is None else uses.within(start, end)
            found.append(Declaration(file.number, at, linkage + text, macros))

    def _function(self, cursor: Cursor, path: Path) -> None:
        file = self._program._file(path)
        key = self._declarations.function(cursor)
        _, start, end = self._unit.extent(cursor)
        known = self._program._procedures.get(key)
        if key == "main":
            self._program._mains.append(Span(file.number, start, end))
        if known is not None:
            if (known.source, known.span.start) != (file.number, start):
                file.again.append((Span(file.number, start, end), self._program._sources[known.source].path))
                self._program._problem(
                    file.source.path,
                    file.source.line_of(start),
                    f"{key} is defined here and at {self._program._sources[known.source].path}; the first is taken",
                )
            return
        uses = self._uses.get(path, Uses(()))
        tree = self._unit.tree(cursor, path, uses, file.source.data)
        bodies = [child for child in tree.children if child.kind == Kind.COMPOUND_STMT and not child.foreign]
        if not bodies:
            return
        file.functions.append(Span(file.number, start, end))
        self._declarations.enter(key)
        parameters = self._parameters(tree)
        expressions = self._expressions(file, uses)
        self._give_rows(tree, expressions)
        if cursor.kind in _MEMBERS and not self._clang.clang_CXXMethod_isStatic(cursor):
            this = self._this(cursor, key)
            expressions.this = this
            parameters = (this, *parameters)
        statements = Statements(
            self._unit,
            self._declarations,
            expressions,
            file.text,
            file.number,
            uses,
            self._errors.get(path, ()),
            self._skipped(path),
            self._program.given(path, self._installed, self._because),
        )
        body = statements.body(bodies[-1])
        if cursor.kind in (Kind.CONSTRUCTOR, Kind.DESTRUCTOR):
            # More runs than the body says: what makes and unmakes the members.
            body = replace(body, statements=(Opaque("a constructor or destructor", span=body.span),))
        elif any(map(statements.has_effects, self._sizes(tree))):
            body = replace(
                body, statements=(Opaque("arguments whose sizes are computed with effects", span=body.span),)
            )
        elif any(isinstance(statement, Loop) and statement.variable.target for statement in body.walk()):
            # The address of a loop's variable is taken further down; now that this is known, read it again.
            body = statements.body(bodies[-1])
        self._program._omitted += statements.left_out.values()
        static = self._clang.clang_getCursorLinkage(cursor) == Linkage.INTERNAL
        self._program._keys[self._unit.identity(cursor)] = key
        self._program._procedures[key] = Procedure(
            name=self._unit.name(cursor),
            key=key,
            kind="function",
            source=file.number,
            span=Span(file.number, start, end),
            parameters=parameters,
            symbols=ChainMap(self._declarations.locals, self._globals),
            body=body,
            header_end=body.span.start,
            uses_end=body.span.start,
            declarations_end=body.span.start,
            mpi_interface="mpi.h",
            variadic=bool(self._clang.clang_Cursor_isVariadic(cursor)),
            inline=bool(self._clang.clang_Cursor_isFunctionInlined(cursor)) and not static,
        )

    def _this(self, method: Cursor, key: str) -> Symbol:
        owner = self._clang.clang_getCursorType(self._clang.clang_getCursorSemanticParent(method))
        target = self._declarations.type(owner)
        return Symbol(
            key=f"procedure {key}::this",
            name="this",
            storage=Storage.ARGUMENT,
            type=Type("pointer", 8, f"{target.text} *", target),
            pointer=True,
            by_value=True,
        )

    def _give_rows(self, tree: Node, expressions: Expressions) -> None:
        """The lengths of rows that arguments lead to, which are made of other arguments."""
        for child in tree.children:
            symbol = self._declarations.variable(child.cursor) if child.kind == Kind.PARM_DECL else None
            if symbol is not None and any(bound.upper is None for bound in symbol.rows):
                give_bounds(symbol, [expressions.read(size) for size in reversed(_expressions_in(child))])

    def _sizes(self, tree: Node) -> list[Node]:
        """The sizes of arrays in a function's head; in C++ what stands there are values for arguments that are left out."""
        heads = [] if self._declarations.is_cpp else [c for c in tree.children if c.kind == Kind.PARM_DECL]
        return [size for head in heads for size in _expressions_in(head)]

    def _parameters(self, tree: Node) -> tuple[Symbol, ...]:
        found = (self._declarations.variable(child.cursor) for child in tree.children if child.kind == Kind.PARM_DECL)
        return tuple(symbol for symbol in found if symbol is not None)


def _inclusion(text: Text, header: Path) -> int:
    """Where a file names the header that it includes; its beginning if another header includes that one."""
    includes = (
        d for d in text.directives if d.name == "include" and re.search(rf"[\"</]{re.escape(header.name)}\W", d.rest)
    )
    return next((include.start for include in includes), 0)


def _expressions_in(node: Node) -> list[Node]:
    return [child for child in node.children if Kind.UNEXPOSED_EXPR <= child.kind < Kind.UNEXPOSED_STMT]
