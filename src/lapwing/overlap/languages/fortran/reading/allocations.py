"""Bounds of allocatable arrays: those of the only ALLOCATE statement a variable has in the whole program."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from lapwing.overlap.ir.expressions import Dimension, Expression, Name, Number, Slice, Storage
from lapwing.overlap.languages.fortran.parsing.file import File, Unreadable, child_of, identifiers_of
from lapwing.overlap.languages.fortran.reading.constants import folded
from lapwing.overlap.languages.fortran.reading.expressions import ExpressionReader
from lapwing.overlap.languages.fortran.reading.scope import Entity, Scope, World
from lapwing.overlap.languages.fortran.reading.symbols import Symbols
from lapwing.overlap.languages.fortran.reading.units import UNITS

_ALLOCATE = re.compile(rb"\ballocate\s*\(", re.IGNORECASE)
_COMPONENT = re.compile(rb"%[\s&]*(\w+)[\s&]*\(")
_LITERALS = {"number_literal", "boolean_literal", "string_literal"}


def give_bounds(world: World, symbols: Symbols, files: Sequence[File]) -> None:
    """Sets the bounds of entities that have exactly one ALLOCATE, and never change their shape."""
    found: dict[Entity, list[tuple[Scope, Node]]] = {}
    hidden: set[str] = set()
    scopes = _scopes_by_node(world)
    for file in files:
        for match in _ALLOCATE.finditer(file.parsed.view.text):
            if any(hole.start <= match.start() < hole.end for hole in file.parsed.holes):
                hidden |= _words(file, match.start())
                continue
            statement = _around(file, match.start(), {"allocate_statement"})
            scope = scopes.get(_place(file, _around(file, match.start(), UNITS)))
            if statement is None or scope is None:
                continue
            for allocation in statement.children_by_field_name("allocation"):
                _note(found, scope, allocation)
    names = _names_of(world, found)
    changed = _reshaped(world, files, scopes, set().union(*names.values()))
    for entity, sites in found.items():
        if len(sites) == 1 and not names[entity] & hidden and entity not in changed and not entity.pointer:
            entity.bounds = _bounds(symbols, *sites[0])


def _names_of(world: World, entities: Collection[Entity]) -> dict[Entity, set[str]]:
    """What each is called in any scope: USE may give it another name."""
    names = {entity: {entity.name} for entity in entities}
    for scope in world.scopes.values():
        for name, entity in scope.visible().items():
            if entity in names:
                names[entity].add(name)
    return names


def _note(found: dict[Entity, list[tuple[Scope, Node]]], scope: Scope, allocation: Node) -> None:
    name = allocation if allocation.type == "identifier" else allocation.children[0]
    entity = scope.find(scope.unit.file.name(name)) if name.type == "identifier" else None
    if entity is not None and not entity.argument:  # which may come allocated
        found.setdefault(entity, []).append((scope, allocation))


def _bounds(symbols: Symbols, scope: Scope, allocation: Node) -> tuple[Dimension, ...] | None:
    size = child_of(allocation, "size")
    if size is None:
        return None
    reader = symbols.reader(scope, scope.unit.file)
    parts = [part for part in size.children if part.is_named]
    return tuple(_dimension(reader, part) for part in parts)


def _dimension(reader: ExpressionReader, node: Node) -> Dimension:
    try:
        value = reader.read(node)
    except Unreadable:
        return Dimension(None, None)
    lower, upper = (value.lower, value.upper) if isinstance(value, Slice) else (Number(1), value)
    lower = folded(lower) if lower is not None else Number(1)
    upper = folded(upper) if upper is not None else None
    return Dimension(lower if _is_global(lower) else None, upper if upper is not None and _is_global(upper) else None)


def _is_global(expression: Expression) -> bool:
    """Whether it names module and COMMON variables and constants only, so that it means the same everywhere."""
    return all(
        not isinstance(part, Name) or part.symbol.storage in (Storage.GLOBAL, Storage.CONSTANT)
        for part in expression.walk()
    )


# ---- what changes an allocatable's shape -------------------------------------------------------------------------------


def _reshaped(
    world: World, files: Sequence[File], scopes: dict[tuple[int, int, int], Scope], names: set[str]
) -> set[Entity]:
    """Allocatables assigned as a whole from something that may be an array, or passed to a procedure that may allocate them."""
    if not names:
        return set()
    callees = {"move_alloc", *_called_as(world, set(_allocating_procedures(world)))}
    words = b"|".join(re.escape(name.encode("latin-1")) for name in sorted(names))
    assigned = re.compile(rb"(?:^|[;)\d])[ \t]*(" + words + rb")[ \t]*=(?![=>])", re.IGNORECASE | re.MULTILINE)
    procedures = b"|".join(re.escape(name.encode("latin-1")) for name in sorted(callees))
    called = re.compile(rb"\b(" + procedures + rb")\s*\(", re.IGNORECASE)
    found: set[Entity] = set()
    for file in files:
        text = file.parsed.view.text
        for match in assigned.finditer(text):
            node = _around(file, match.start(1), {"assignment_statement"})
            right = node.child_by_field_name("right") if node is not None else None
            if right is None or not _is_scalar(right):
                found |= set(_entities(file, match.start(1), scopes, [match.group(1).decode("latin-1").lower()]))
        for match in (*called.finditer(text), *(_bound_calls(world, text) if len(callees) > 1 else ())):
            node = _around(file, match.start(), {"subroutine_call", "call_expression"})
            mentioned = [file.name(name) for name in identifiers_of(node)] if node is not None else []
            found |= set(_entities(file, match.start(), scopes, mentioned))
    return found


def _bound_calls(world: World, text: bytes) -> Iterator[re.Match[bytes]]:
    """Where a component with arguments is a type-bound procedure, a pointer, or unknown."""
    for match in _COMPONENT.finditer(text):
        if world.fields.get(match.group(1).decode("latin-1").lower()) not in ("array", "scalar"):
            yield match


def _is_scalar(value: Node) -> bool:
    """Whether it is certainly no array: a literal, perhaps with a sign."""
    if value.type == "unary_expression":
        return all(_is_scalar(part) for part in value.children if part.is_named)
    return value.type in _LITERALS


def _called_as(world: World, procedures: set[str]) -> set[str]:
    """What procedures are called where USE or a generic interface gives them another name, or a dummy procedure or a pointer
    may be one."""
    if not procedures:
        return procedures
    scopes = list(world.scopes.values())
    found = procedures | {name for scope in scopes for name in _indirect(scope)}
    renamed = [pair for s in scopes for use in s.uses for pair in (*(use.only or {}).items(), *use.renamed.items())]
    generic = [(name, specific) for s in scopes for name, several in s.generics.items() for specific in several]
    while more := {name for name, original in (*renamed, *generic) if original in found} - found:
        found |= more
    return found


def _indirect(scope: Scope) -> Iterator[str]:
    """Its dummy procedures and procedure pointers."""
    for name, entity in scope.entities.items():
        if (entity.external or name in scope.interfaces) and (entity.argument or entity.pointer):
            yield name


def _allocating_procedures(world: World) -> Iterator[str]:
    for unit, scope in world.scopes.items():
        dummies = (scope.entities[name] for name in scope.parameters)
        if any(dummy.allocatable and dummy.intent != "in" for dummy in dummies):
            yield unit.name


def _entities(
    file: File, offset: int, scopes: dict[tuple[int, int, int], Scope], names: Sequence[str]
) -> Iterator[Entity]:
    scope = scopes.get(_place(file, _around(file, offset, UNITS)))
    for name in names:
        entity = scope.find(name) if scope is not None else None
        if entity is not None:
            yield entity


# ---- nodes by place ----------------------------------------------------------------------------------------------------


def _around(file: File, offset: int, kinds: set[str]) -> Node | None:
    """The innermost node of one of ``kinds`` around a byte."""
    at = offset + file.parsed.shift
    node: Node | None = file.parsed.root.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type not in kinds:
        node = node.parent
    return node


def _place(file: File, node: Node | None) -> tuple[int, int, int]:
    return (file.number, node.start_byte, node.end_byte) if node is not None else (file.number, -1, -1)


def _scopes_by_node(world: World) -> dict[tuple[int, int, int], Scope]:
    return {_place(unit.file, unit.node): scope for unit, scope in world.scopes.items()}


def _words(file: File, offset: int) -> set[str]:
    start, end = file.parsed.view.statement_at(offset)
    return set(re.findall(r"[a-z]\w*", file.source.data[start:end].decode("latin-1").lower()))
