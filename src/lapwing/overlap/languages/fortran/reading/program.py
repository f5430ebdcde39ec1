"""Reads Fortran sources into the program model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tree_sitter import Node

from lapwing.overlap.ir.expressions import Storage, Symbol
from lapwing.overlap.ir.program import LeftOut, Procedure, Program, taken_as_undefined
from lapwing.overlap.ir.statements import Block, Opaque, Statement
from lapwing.overlap.languages.fortran.parsing.file import File, children_of
from lapwing.overlap.languages.fortran.parsing.parse import parse_file
from lapwing.overlap.languages.fortran.parsing.preprocessor import Known, conditional_regions, included_name, macros_of
from lapwing.overlap.languages.fortran.parsing.skeleton import Kind, kind_of
from lapwing.overlap.languages.fortran.parsing.view import LAST_COLUMN, form_of
from lapwing.overlap.languages.fortran.reading.allocations import give_bounds
from lapwing.overlap.languages.fortran.reading.declarations import declare
from lapwing.overlap.languages.fortran.reading.includes import KNOWN_INCLUDES, Includes
from lapwing.overlap.languages.fortran.reading.input_output import opens_standard_units
from lapwing.overlap.languages.fortran.reading.scope import KNOWN_MODULES, Entity, Scope, StatementFunction, Use, World
from lapwing.overlap.languages.fortran.reading.statements import StatementReader
from lapwing.overlap.languages.fortran.reading.symbols import Symbols
from lapwing.overlap.languages.fortran.reading.units import UNITS, Unit, units_of
from lapwing.overlap.source.spans import Problem, Source, Span

FREE_LINE_LENGTH = 132


def read_fortran(
    paths: Sequence[Path],
    include_dirs: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    undefines: Collection[str] = (),
) -> Program:
    """Reads source files, and the include files they name, which are looked for beside them and in ``include_dirs``.

    ``defines``: macros of the preprocessor with their values, as ``-D`` gives them; ``undefines``: those that are certainly not
    defined. Never raises for what the files hold: what
    cannot be read is an Opaque statement and a Problem.
    """
    reader = ProgramReader(include_dirs, defines or {}, undefines=undefines)
    for path in paths:
        reader.add(path)
    return reader.program()


def read_text(
    text: str | bytes,
    name: str = "text.f90",
    others: Mapping[str, str] | None = None,
    defines: Mapping[str, str] | None = None,
) -> Program:
    """Reads a source from memory, and ``others`` that it includes; the name's suffix says in which form they are."""
    encode = {Path(key): value.encode("latin-1") for key, value in (others or {}).items()}
    encode[Path(name)] = text if isinstance(text, bytes) else text.encode("latin-1")
    reader = ProgramReader((), defines or {}, encode)
    reader.add(Path(name))
    return reader.program()


class ProgramReader:
    """Adds files, then makes the program of all of them: declarations first, since modules may come in any order."""

    def __init__(
        self,
        include_dirs: Sequence[Path],
        defines: Mapping[str, str],
        memory: Mapping[Path, bytes] | None = None,
        undefines: Collection[str] = (),
    ) -> None:
        self.defines = defines
        self.undefines = undefines
        self.memory = memory or {}
        self.sources: list[Source] = []
        self.files: list[File] = []
        self.added: set[Path] = set()
        self.included: dict[tuple[Path, str], File | None] = {}
        self.problems: list[Problem] = []
        self.told: set[tuple[File, int]] = set()  # where problems are
        self.units: list[Unit] = []
        self.world = World()
        self.symbols = Symbols(self.world)
        self.includes = Includes(include_dirs, self.include, self.problem)

    # ---- files ----------------------------------------------------------------------------------------------------------

    def add(self, path: Path, form: str | None = None) -> None:
        """Adds a file and those it includes outside of procedures; ``form``: that of the file that includes it."""
        self.added.add(path)
        data = self.bytes_of(path)
        if data is None:
            self.problems.append(Problem(path, 0, "the file cannot be read"))
            return
        file = self.parsed(path, data, form or form_of(path, data))
        self.files.append(file)
        self.bring_preprocessor_macros(file)
        self.units += units_of(file, self.includes.declarations)
        self.note_left_out(file)
        for node in children_of(file.parsed.root, "include_statement"):
            self.add_included(file, node)

    def add_included(self, file: File, node: Node) -> None:
        """An include file that holds whole procedures."""
        name = self.includes.name_of(file, node)
        found = next((path for path in self.includes.places(file, name) if self.bytes_of(path) is not None), None)
        if found is None:
            self.problem(file, file.start(node), f"the include file {name} was not found: its procedures are not known")
        elif found not in self.added:
            self.add(found, file.source.form)

    def bytes_of(self, path: Path) -> bytes | None:
        if path in self.memory:
            return self.memory[path]
        try:
            return path.read_bytes()
        except OSError:
            return None

    def parsed(self, path: Path, data: bytes, form: str, wrap: bool = False) -> File:
        source = Source(path, data, "fortran", form)
        self.sources.append(source)
        given = {**dict.fromkeys(self.undefines), **self.defines}
        parsed = parse_file(data, form, Known(given, lambda name: self.defined_in(path, name, ())), wrap)
        macros = macros_of((piece.text for piece in parsed.preprocessor), self.defines)
        return File(source, len(self.sources) - 1, parsed, macros)

    def defined_in(self, path: Path, name: str, around: tuple[Path, ...]) -> Collection[str] | None:
        """The macros that a file may define which ``path`` includes; None where one is not found."""
        if Path(name).name in KNOWN_INCLUDES:
            return ()
        places = (folder / name for folder in (path.parent, *self.includes.directories))
        found = next(((place, data) for place in places if (data := self.bytes_of(place)) is not None), None)
        if found is None or found[0] in around:
            return None if found is None else ()
        lines = found[1].decode("latin-1").splitlines()
        names = set(macros_of(lines, {}))
        for inner in filter(None, map(included_name, lines)):
            more = self.defined_in(found[0], inner, (*around, found[0]))
            if more is None:
                return None
            names |= set(more)
        return names

    def include(self, path: Path, form: str) -> File | None:
        """An include file, parsed once for each form it is included in."""
        key = (path, form)
        if key not in self.included:
            data = self.bytes_of(path)
            self.included[key] = None if data is None else self.parsed(path, data, form, wrap=True)
        return self.included[key]

    def bring_preprocessor_macros(self, file: File) -> None:
        """Constants that ``#include`` files define."""
        for piece in file.parsed.preprocessor:
            name = included_name(piece.text)
            included = self.includes.find(file, name) if name is not None else None
            if included is not None:
                file.macros.update(self.includes.macros(included))

    def problem(self, file: File, offset: int, message: str) -> None:
        self.told.add((file, offset))
        self.problems.append(Problem(file.path, file.source.line_of(offset), message))

    def note_left_out(self, file: File) -> None:
        """Statements outside of any procedure are not met again later."""
        stray = [node for unit in self.units if unit.file is file for node in unit.stray]
        known = UNITS | {"include_statement"}
        outside = [node for node in file.parsed.root.children if node.type not in known and node.is_named]
        for node in (*stray, *outside):
            self.problem(file, file.start(node), f"a {node.type.replace('_', ' ')} outside of any procedure: left out")

    # ---- the program ----------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        self.world.opens_standard_units = any(map(opens_standard_units, self.sources))
        for unit in self.units:
            self.enter(unit, None)
        for unit, scope in self.world.scopes.items():
            self.bring_preprocessor_includes(unit)
            declare(scope)
        done: set[Scope] = set()
        for scope in self.world.modules.values():
            self.cut_circles(scope, [], done)
        for unit, scope in self.world.scopes.items():
            scope.mpi_interface = self.includes.interfaces.get(unit)
            scope.missing = list(dict.fromkeys(unit.missing))
            self.note_missing_modules(scope)
            self.note_unread_declarations(scope)
        for scope in self.world.scopes.values():
            self.find_statement_functions(scope)
        give_bounds(self.world, self.symbols, self.files)
        procedures: dict[str, Procedure] = {}
        for unit, scope in self.world.scopes.items():
            if unit.kind in ("module", "block data"):
                continue
            procedure = self.procedure(unit, scope)
            previous = procedures.get(procedure.key)
            procedures[procedure.key] = procedure if previous is None else self.twice(previous, procedure)
        self.note_forgotten_holes()
        globals_ = self.globals()
        mains = tuple(self.mains())
        given = tuple(value.encode() for value in self.defines.values())
        left_out = tuple(self.left_out())
        return Program(
            tuple(self.sources),
            procedures,
            globals_,
            tuple(self.problems),
            mains=mains,
            included=given,
            left_out=left_out,
            undefined=taken_as_undefined((one.span.source, one.macros) for one in left_out),
        )

    def left_out(self) -> Iterator[LeftOut]:
        """What conditional compilation leaves out of the files."""
        for file in (*self.files, *(file for file in self.included.values() if file is not None)):
            for left in file.parsed.left:
                pieces = tuple(Span(file.number, piece.start, piece.end) for piece in left.pieces)
                yield LeftOut(Span(file.number, left.start, left.end), pieces, left.whole, left.macros)

    def mains(self) -> Iterator[Span]:
        """Main programs. What lies in an ``#if`` may be left out, and statements without an END may be there to be included."""
        for unit in self.units:
            if unit.kind == "program" and (unit.header is not None or unit.footer is not None):
                start, end = self.extent(unit)
                regions = conditional_regions(unit.file.parsed.view)
                if not any(first <= start and end <= last for first, last in regions):
                    yield Span(unit.file.number, start, end)

    def cut_circles(self, scope: Scope, users: list[Scope], done: set[Scope]) -> None:
        """Drops the USE of a module that uses this one."""
        if scope in done:
            return
        done.add(scope)
        for use in list(scope.uses):
            module = self.world.modules.get(use.module)
            if module is scope or module in users:
                scope.uses.remove(use)
                self.problem(
                    scope.unit.file, use.start, f"the modules {scope.unit.name} and {use.module} use each other"
                )
            elif module is not None:
                self.cut_circles(module, [*users, scope], done)

    def note_forgotten_holes(self) -> None:
        """Text that was cut out and belongs to nothing that was read."""
        for file in self.files:
            for hole in file.parsed.holes:
                if (file, hole.start) not in self.told:
                    self.problem(file, hole.start, f"{hole.text}: left out")

    def note_unread_declarations(self, scope: Scope) -> None:
        """Declarations that were cut out, or that the model has no word for: anything may be declared there."""
        unit, file = scope.unit, scope.unit.file
        for kind in scope.unread:
            self.problem(file, file.start(unit.node), f"a declaration that is not understood: {kind}")
        first_statement = file.start(unit.statements[0]) if unit.statements else file.end(unit.node)
        for hole in file.parsed.holes_between(file.start(unit.node), first_statement):
            in_inner = any(file.start(inner.node) <= hole.start < file.end(inner.node) for inner in unit.inner)
            text = file.parsed.view.text[hole.start : hole.end].decode("latin-1")
            declares = hole.start < unit.declared or kind_of(text) in (Kind.SPECIFICATION, Kind.GROUP)
            if not in_inner and (declares or unit.kind in ("module", "block data")):
                scope.unread.append(hole.text)
                self.problem(file, hole.start, f"{hole.text}: what it declares is not known")

    def note_missing_modules(self, scope: Scope) -> None:
        for use in scope.uses:
            if use.module not in self.world.modules and use.module not in KNOWN_MODULES:
                place = self.unread_modules.get(use.module)
                why = "is not among the files given" if place is None else f"cannot be read, in {place}"
                message = f"the module {use.module} {why}: what it declares is not known"
                self.problem(scope.unit.file, use.start, message)

    @cached_property
    def unread_modules(self) -> dict[str, str]:
        """Where modules begin that stand in what was not read, or is left out."""
        found: dict[str, str] = {}
        for file in self.files:
            lines = file.source.data.decode("latin-1").splitlines()
            for number, line in enumerate(lines, 1):
                module = _MODULE.fullmatch(line)
                if module:
                    found.setdefault(module[1].lower(), f"{file.path}:{number}")
        return found

    def enter(self, unit: Unit, host: Scope | None) -> None:
        scope = Scope(unit, host, self.world)
        self.world.scopes[unit] = scope
        if unit.kind == "module":
            if self.world.modules.setdefault(unit.name, scope) is not scope:
                message = f"the module {unit.name} is defined twice: the first definition is taken"
                self.problem(unit.file, unit.file.start(unit.node), message)
            if unit.node.type == "submodule":
                ancestor = unit.header.child_by_field_name("ancestor") if unit.header is not None else None
                if ancestor is not None:
                    scope.uses.append(Use(unit.file.name(ancestor).split(":")[0].strip(), None, {}))
        elif host is not None:
            host.procedures[unit.name] = unit
        elif unit.kind != "block data":
            self.world.externals.setdefault(unit.name, unit)
        for inner in unit.inner:
            self.enter(inner, scope)

    def bring_preprocessor_includes(self, unit: Unit) -> None:
        """Declarations that ``#include`` brings into a unit."""
        file = unit.file
        first, last = file.start(unit.node), file.end(unit.node)
        for piece in file.parsed.preprocessor:
            name = included_name(piece.text)
            inside = first <= piece.start < last
            in_inner = any(file.start(inner.node) <= piece.start < file.end(inner.node) for inner in unit.inner)
            executable = bool(unit.statements) and piece.start > file.start(unit.statements[0])
            if name is not None and inside and not in_inner and not executable:
                unit.specifications += self.includes.bring(file, piece.start, name, unit)
                unit.declared = max(unit.declared, piece.end)

    def find_statement_functions(self, scope: Scope) -> None:
        """``f(x) = …`` before all other statements, where f is no array."""
        unit = scope.unit
        while unit.statements and _looks_like_statement_function(unit.statements[0]):
            left, right = (
                unit.statements[0].child_by_field_name("left"),
                unit.statements[0].child_by_field_name("right"),
            )
            if left is None or right is None:
                return
            name = unit.file.name(left.children[0])
            entity = scope.find(name)
            untyped = entity is None and (scope.implicit is None or bool(scope.unknown_sources()))
            if untyped or (entity is not None and entity.shape is not None):
                return
            scope.statement_functions[name] = StatementFunction(scope, left, right)
            if entity is not None:
                entity.external = True
            unit.functions_end = unit.file.statement_span(unit.statements.pop(0)).end

    # ---- procedures -----------------------------------------------------------------------------------------------------

    def procedure(self, unit: Unit, scope: Scope) -> Procedure:
        file = unit.file
        expressions = self.symbols.reader(scope, file)
        reader = StatementReader(expressions, lambda offset, reason: self.problem(file, offset, f"not read: {reason}"))
        declarations_end, body_start = self.body_start(unit)
        end = reader.end_before(unit.footer) if unit.footer is not None else file.end(unit.node)
        nodes = [node for node in unit.statements if file.start(node) >= body_start]
        body = reader.block(nodes, body_start, max(end, body_start))
        body = self.with_unknown_declarations(scope, self.with_final_procedures(scope, body))
        header = file.statement_span(unit.header).end if unit.header is not None else None
        return Procedure(
            name=unit.name,
            key=unit.key,
            kind=unit.kind,
            source=file.number,
            span=Span(file.number, *self.extent(unit)),
            parameters=tuple(self.symbols.of(scope.entities[name]) for name in scope.parameters),
            symbols=self.symbols_of(scope),
            body=body,
            result=self.symbols.of(scope.entities[scope.result]) if scope.result in scope.entities else None,
            header_end=file.line_after(header) if header is not None else file.start(unit.node),
            uses_end=file.line_after(unit.used) if unit.header is not None else declarations_end,
            declarations_end=declarations_end,
            mpi_interface=scope.mpi(),
            host=unit.host.prefix if unit.host is not None else None,
            line_length=LAST_COLUMN if file.source.form == "fixed" else FREE_LINE_LENGTH,
            open_hosts=frozenset(scope.open_hosts()),
        )

    def extent(self, unit: Unit) -> tuple[int, int]:
        """From the first to the last statement, labels and continuation lines included."""
        view = unit.file.parsed.view
        start = view.statement_at(unit.file.start(unit.node))[0]
        start = unit.file.line_start(start) if unit.header is None else start
        last = unit.node.children[-1]
        return start, max(unit.file.end(last), view.statement_at(unit.file.start(last))[1])

    def body_start(self, unit: Unit) -> tuple[int, int]:
        """Where declarations may be put, and where the executable part begins: behind statement functions."""
        file = unit.file
        declared = unit.declared
        for start, end in conditional_regions(file.parsed.view):
            inside = file.start(unit.node) <= start and end <= file.end(unit.node)
            declared = end if inside and start < declared < end else declared
        starts = [file.statement_span(node).start for node in unit.statements[:2] if file.start(node) >= declared]
        nothing_declared = unit.header is None and declared == file.start(unit.node)
        after = file.line_start(declared) if nothing_declared else file.line_after(declared)
        first = min([after, *starts])
        if unit.functions_end == 0:
            return first, first
        return first, min([file.line_after(unit.functions_end), *starts])

    def with_unknown_declarations(self, scope: Scope, body: Block) -> Block:
        """An Opaque before all else where a declaration could not be read."""
        reason = next(iter(scope.unknown_declarations()), None)
        if reason is None:
            return body
        barrier: Statement = Opaque(reason, span=Span(body.span.source, body.span.start, body.span.start))
        return Block((barrier, *body.statements), body.span, body.form)

    def with_final_procedures(self, scope: Scope, body: Block) -> Block:
        """An Opaque after all else where variables of the procedure may end with a call."""
        overloads = self.world.overloads
        if not overloads.final or scope.unit.kind == "program":
            return body
        symbols = [self.symbols.of(entity) for entity in scope.entities.values() if not entity.external]
        fresh = [s for s in symbols if (s.storage is Storage.LOCAL and not s.pointer) or s.intent == "out"]
        if not any(overloads.may_end(symbol.type.text) for symbol in fresh):
            return body
        end = Span(body.span.source, body.span.end, body.span.end)
        return Block((*body.statements, Opaque("a FINAL procedure may be called", span=end)), body.span, body.form)

    def twice(self, first: Procedure, second: Procedure) -> Procedure:
        """Two procedures of one name: which one is called is not known, so neither is looked into."""
        other = self.sources[first.source].path
        line = self.sources[second.source].line_of(second.span.start)
        message = f"{second.name} is defined in {other.name}, too: neither is changed, and calls of it may do anything"
        self.problems.append(Problem(self.sources[second.source].path, line, message))
        text = self.sources[first.source].text(first.body.span)
        start, end = first.body.span.start + len(text) - len(text.lstrip()), first.body.span.start + len(text.rstrip())
        opaque = Opaque(f"{first.name} is defined twice", span=Span(first.source, min(start, end), end))
        return Procedure(**{**first.__dict__, "body": Block((opaque,), first.body.span)})

    def symbols_of(self, scope: Scope) -> dict[str, Symbol]:
        return {
            name: self.symbols.of(entity)
            for name, entity in scope.visible().items()
            if not entity.external or entity.argument
        }

    def globals(self) -> dict[str, Symbol]:
        entities: list[Entity] = [
            entity for scope in self.world.scopes.values() for entity in scope.entities.values() if not entity.external
        ]
        found = (self.symbols.of(entity) for entity in entities)
        return {symbol.key: symbol for symbol in found if _is_global(symbol)}


_MODULE = re.compile(r"\s*module\s+(?!procedure\b)(\w+)\s*(?:!.*)?", re.IGNORECASE)


def _is_global(symbol: Symbol) -> bool:
    return symbol.storage is Storage.GLOBAL or symbol.key.startswith("module ")


def _looks_like_statement_function(node: Node) -> bool:
    left = node.child_by_field_name("left") if node.type == "assignment_statement" else None
    if left is None or left.type != "call_expression" or left.children[0].type != "identifier":
        return False
    arguments = [child for child in left.children[1].children if child.type not in ("(", ")", ",")]
    return len(left.children) == 2 and all(argument.type == "identifier" for argument in arguments)
