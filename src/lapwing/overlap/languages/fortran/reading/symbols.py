"""From what declarations say of a name to its symbol: type, bounds, value, storage, and with whom it shares storage."""

from __future__ import annotations

import re

from tree_sitter import Node

from lapwing.overlap.ir.expressions import (
    Constant,
    Dimension,
    Expression,
    Name,
    Number,
    Slice,
    Storage,
    Symbol,
    Type,
    Unread,
)
from lapwing.overlap.languages.fortran.parsing.file import File, Unreadable, child_of
from lapwing.overlap.languages.fortran.reading.constants import KINDS, folded, integer
from lapwing.overlap.languages.fortran.reading.expressions import ExpressionReader
from lapwing.overlap.languages.fortran.reading.scope import Entity, Scope, World, storage_of

_DEFAULT_BYTES = {"integer": 4, "real": 4, "logical": 4, "complex": 8, "character": 1}
_WORDS = re.compile(r"\s+")
_OPEN_LENGTH = re.compile(r"[*(\s]*(len\s*=\s*)?[*:][)\s]*")  # the caller's, or the allocation's
_DIGITS = {"integer": {1: 2, 2: 4, 4: 9, 8: 18}, "real": {4: 6, 8: 15, 16: 33}}
_OTHER = Type("other", None, "")
_INTEGER = Type("integer", 4, "integer")
_REAL = Type("real", 4, "real")


class Symbols:
    """Makes symbols; each entity's is made once. COMMON members laid out alike everywhere share theirs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.shared: dict[str, Symbol] = {}
        self.readers: dict[tuple[Scope, File], ExpressionReader] = {}

    def of(self, entity: Entity) -> Symbol:
        if entity.symbol is not None:
            return entity.symbol
        if entity.busy:
            # Its own bounds or value name it: an incorrect program.
            return Symbol(self.key(entity, True), entity.name, storage_of(entity), _OTHER)
        entity.busy = True
        key = self.key(entity, entity.common is None or self.laid_out_alike(entity.common))
        symbol = self.shared.get(key)
        if symbol is None:
            symbol = self._make(entity, key)
        if entity.common is not None or entity.unknown is not None:
            self.shared[key] = symbol
        entity.symbol = symbol
        entity.busy = False
        return symbol

    def reader(self, scope: Scope, file: File) -> ExpressionReader:
        found = self.readers.get((scope, file))
        if found is None:
            found = self.readers[scope, file] = ExpressionReader(scope, file, self.of)
        return found

    def _make(self, entity: Entity, key: str) -> Symbol:
        storage = storage_of(entity)
        return Symbol(
            key,
            entity.name,
            storage,
            self.type(entity),
            dimensions=self.dimensions(entity),
            length=self.length(entity),
            value=self.value(entity) if storage is Storage.CONSTANT else None,
            pointer=entity.pointer,
            allocatable=entity.allocatable,
            target=entity.target,
            by_value=entity.by_value,
            intent=entity.intent,
            optional=entity.optional,
            volatile=entity.volatile,
            overlay=self.overlay(entity),
            where=entity.where,
        )

    # ---- keys and storage -----------------------------------------------------------------------------------------------

    def key(self, entity: Entity, alike: bool) -> str:
        if entity.unknown is not None:
            return f"unknown {entity.unknown}::{entity.name}"
        if entity.common is None:
            return f"{entity.scope.unit.prefix}::{entity.name}"
        return f"common {entity.common}::{entity.name}" + ("" if alike else f" in {entity.scope.unit.key}")

    def overlay(self, entity: Entity) -> str | None:
        if entity.unknown is not None:
            return f"unknown {entity.unknown}"
        if entity.common is None:
            return entity.overlay
        free = self.laid_out_alike(entity.common) and entity.common not in self.world.overlaid
        return None if free else f"common {entity.common}"

    def laid_out_alike(self, block: str) -> bool:
        """Whether every procedure gives a COMMON block the same members: names, types and bounds."""
        if block not in self.world.layouts:
            layouts = [self._layout(scope, block) for scope in self.world.scopes.values() if block in scope.commons]
            self.world.layouts[block] = all(layout == layouts[0] for layout in layouts[1:])
        return self.world.layouts[block]

    def _layout(self, scope: Scope, block: str) -> list[tuple[str, str, int | None, object]]:
        members = [scope.entities[name] for name in scope.commons[block]]
        types = [self.type(member) for member in members]
        shapes = [self.dimensions(member) for member in members]
        return [
            (member.name, type.base, type.bytes, shape)
            for member, type, shape in zip(members, types, shapes, strict=True)
        ]

    # ---- bounds and values ----------------------------------------------------------------------------------------------

    def dimensions(self, entity: Entity) -> tuple[Dimension, ...] | None:
        if entity.bounds is not None:
            return entity.bounds
        if entity.shape is None:
            return None
        reader = self.reader(entity.scope, entity.shape_file or entity.file)
        parts = [part for part in entity.shape.children if part.is_named and part.type != "comment"]
        if entity.contradictory:
            return tuple(Dimension(None, None) for _ in parts)
        return tuple(self.dimension(reader, part) for part in parts)

    def dimension(self, reader: ExpressionReader, node: Node) -> Dimension:
        """Bounds that cannot be read are open."""
        if node.type == "assumed_size":
            return Dimension(Number(1), None)
        if node.type in ("assumed_shape", "assumed_rank"):
            return Dimension(None, None)
        try:
            value = reader.read(node)
        except Unreadable:
            return Dimension(None, None)
        if not isinstance(value, Slice):
            return Dimension(Number(1), folded(value))
        upper = folded(value.upper) if value.upper is not None else None
        lower = folded(value.lower) if value.lower is not None else None
        # ``a(:)`` of an allocatable or pointer has whatever lower bound it is given.
        assumed = upper is None and lower in (None, Number(1))
        return Dimension(None if assumed else lower or Number(1), upper)

    def length(self, entity: Entity) -> Expression | None:
        """Of a character, where it is given and no known number: what it is made of."""
        node = entity.length or (child_of(entity.type, "kind") if entity.type is not None else None)
        file = entity.type_file or entity.file
        if node is None or self.type(entity).base != "character" or self.type(entity).bytes is not None:
            return None
        text = file.text(node)
        if _OPEN_LENGTH.fullmatch(text.lower()):
            return None
        value = _length_value(node, file)
        try:
            return Unread(text) if value is None else self.reader(entity.scope, file).read(value)
        except Unreadable:
            return Unread(text)

    def value(self, entity: Entity) -> Expression | None:
        if entity.value is None or entity.contradictory:
            return None
        try:
            return folded(self.reader(entity.scope, entity.value_file or entity.file).read(entity.value))
        except Unreadable:
            return None

    # ---- types ----------------------------------------------------------------------------------------------------------

    def type(self, entity: Entity) -> Type:
        if entity.contradictory:
            return _OTHER
        if entity.type is None:
            return self._implicit(entity)
        file = entity.type_file or entity.file
        return self.declared(entity.type, file, entity.scope, entity.length)

    def _implicit(self, entity: Entity) -> Type:
        if entity.scope.implicit is None or entity.external:
            return _OTHER
        return _INTEGER if "i" <= entity.name[0] <= "n" else _REAL

    def declared(self, node: Node, file: File, scope: Scope, length: Node | None = None) -> Type:
        """The type a declaration spells; ``length``: a character's own, after its name. The text of a basic type names nothing
        that is declared here, so that other scopes can declare the same; it is empty where that is not known."""
        text = _WORDS.sub(" ", file.text(node)).strip()
        word = text.lower()
        if node.type != "intrinsic_type":
            return Type("struct" if word.startswith(("type", "class")) else "other", _handle_bytes(word), text)
        if word.startswith("double"):
            return Type("complex", 16, text) if "complex" in word else Type("real", 8, text)
        base = re.match(r"[a-z]+", word)
        name = base.group() if base else "other"
        if name == "byte":
            return Type("integer", 1, text)
        kind = child_of(node, "kind")
        if name == "character":
            return Type(name, self._length(length or kind, file, scope), text if _is_plain(kind, file) else name)
        if kind is None:
            return Type(name, _DEFAULT_BYTES.get(name), text)
        bytes_ = self._kind(kind, file, scope)
        starred = file.text(kind).lstrip().startswith("*")
        if not _is_plain(kind, file):
            text = _portable(name, bytes_)
        return Type(name, 2 * bytes_ if name == "complex" and bytes_ is not None and not starred else bytes_, text)

    def _kind(self, node: Node, file: File, scope: Scope) -> int | None:
        """Bytes of ``*8``, ``(8)``, ``(kind=dp)``."""
        value = _inner_value(node)
        if value is None:
            return None
        try:
            expression = folded(self.reader(scope, file).read(value))
        except Unreadable:
            return None
        return kind_bytes(expression)

    def _length(self, node: Node | None, file: File, scope: Scope) -> int | None:
        if node is None:
            return 1
        value = _length_value(node, file)
        if value is None:
            text = file.text(node).strip("* ()")
            if text.lower().startswith("kind"):
                return 1
            return int(text) if text.isdigit() else None
        try:
            return integer(folded(self.reader(scope, file).read(value)))
        except Unreadable:
            return None


def _inner_value(node: Node) -> Node | None:
    """What stands in the parentheses or after the star: of ``kind=`` or ``len=`` the value, of several the first."""
    for child in node.children:
        if child.type == "keyword_argument":
            return child.child_by_field_name("value")
        if child.is_named:
            return child
    return None


def _length_value(node: Node, file: File) -> Node | None:
    """The same for a length, which KIND= is not."""
    for child in node.children:
        name = child.child_by_field_name("name") if child.type == "keyword_argument" else None
        if name is not None and file.name(name) == "len":
            return child.child_by_field_name("value")
        if child.is_named and name is None:
            return child
    return None


def _portable(name: str, bytes_: int | None) -> str:
    """A type of that many bytes (of a complex number's parts) without names; empty if there is none."""
    digits = _DIGITS["integer" if name == "integer" else "real"].get(bytes_ or 0)
    if name == "logical" and bytes_ is not None:
        return f"logical({bytes_})"
    if digits is None or name not in ("integer", "real", "complex"):
        return ""
    return f"{name}(selected_{'int' if name == 'integer' else 'real'}_kind({digits}))"


def _is_plain(kind: Node | None, file: File) -> bool:
    """Whether a kind or a length is a number, or not given at all."""
    return kind is None or re.fullmatch(r"[*( ]*((kind|len) *= *)?\d+[) ]*", file.text(kind).lower()) is not None


def kind_bytes(value: Expression) -> int | None:
    """Bytes of a kind: the number itself with every compiler met; ``kind(1.0d0)`` and the standard modules' names."""
    number = integer(value)
    if number is not None:
        return number
    if isinstance(value, Name) and value.symbol.storage is Storage.CONSTANT and value.symbol.value is not None:
        return kind_bytes(value.symbol.value)
    return KINDS.get(value.name.lower()) if isinstance(value, Constant) else None


def _handle_bytes(word: str) -> int | None:
    """MPI's handles in Fortran 2008 hold one default integer."""
    handle = re.fullmatch(r"type\s*\(\s*mpi_(?!status)\w+\s*\)", word)
    return 4 if handle else None
