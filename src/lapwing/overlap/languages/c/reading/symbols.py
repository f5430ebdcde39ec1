"""Variables, types and functions of a C program under the names the model knows them by.

One table serves all translation units of a program, so that a variable several of them use is one symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Dimension, Expression, Number, Operation, Storage, Symbol, Type
from lapwing.overlap.languages.c.parsing import toolchain
from lapwing.overlap.languages.c.reading.libclang import (
    ClangType,
    Cursor,
    Kind,
    Linkage,
    TypeKind,
    Unit,
    library,
    string,
)
from lapwing.overlap.languages.c.reading.objects import Objects
from lapwing.overlap.source.spans import Span

_STATIC = 3
_POINTER_BYTES = 8
_VARIABLES = frozenset((Kind.VAR_DECL, Kind.PARM_DECL))


def mark_target(symbol: Symbol) -> None:
    """Say that the variable's address is taken.

    That is only known when all of a program is read, and expressions hold symbols: so the front end, which makes the
    symbols, completes them in place before it hands them out. What symbols are compared by does not change.
    """
    object.__setattr__(symbol, "target", True)


@dataclass
class Table:
    """What a whole program's translation units share. ``owners``: who holds a key, so that no two things get the same.
    ``initial``: values of variables that outlive calls, by key. ``libraries``: as in program.Program."""

    symbols: dict[str, Symbol] = field(default_factory=dict)
    initial: dict[str, Expression] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, bool] = field(default_factory=dict)

    def claim(self, wanted: str, owner: str, other: str) -> str:
        """``wanted`` if it is free or ``owner``'s own already, else ``other``, numbered if that is taken too."""
        key, number = wanted, 1
        while self.owners.setdefault(key, owner) != owner:
            key = other if number == 1 else f"{other}#{number}"
            number += 1
        return key


class Declarations:
    """The variables and functions of one translation unit."""

    def __init__(self, unit: Unit, table: Table, main: Path, source_of: Callable[[Path], int | None]) -> None:
        self._unit = unit
        self._clang = unit._clang
        self._table = table
        self._main = main
        self._source_of = source_of
        self.is_cpp = toolchain.is_cpp(main)
        self.objects = Objects(unit)
        self._variables: dict[int | None, Symbol | None] = {}
        self._functions: dict[int | None, str] = {}
        self.procedure = ""
        self.locals: dict[str, Symbol] = {}

    # ---- functions ----

    def enter(self, key: str) -> None:
        """From now on local variables are those of the function ``key``."""
        self.procedure = key
        self.locals = {}

    def function(self, cursor: Cursor) -> str:
        """The key of a function, under which calls name it, too."""
        canonical = self._clang.clang_getCanonicalCursor(cursor)
        if canonical.first not in self._functions:
            self._functions[canonical.first] = self._function_key(canonical)
        return self._functions[canonical.first]

    def note_library(self, name: str, function: Cursor) -> None:
        """Note a function that a header of the system's declares."""
        if name in self._table.libraries or not self._unit.place(function)[2] or mpi.is_mpi_name(name):
            return
        self._table.libraries[name] = any(map(self._leads_to_function, self.objects.argument_types(function)))

    def _leads_to_function(self, found: ClangType, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a value of the type is a function's address, or leads to one."""
        clang = self._clang
        found = clang.clang_getCanonicalType(found)
        if found.kind in (TypeKind.FUNCTION_PROTOTYPE, TypeKind.FUNCTION_NO_PROTOTYPE, TypeKind.MEMBER_POINTER):
            return True
        if found.kind in (TypeKind.POINTER, TypeKind.LVALUE_REFERENCE, TypeKind.RVALUE_REFERENCE):
            return self._leads_to_function(clang.clang_getPointeeType(found), seen)
        if found.kind in TypeKind.ARRAYS:
            return self._leads_to_function(clang.clang_getArrayElementType(found), seen)
        if found.kind != TypeKind.RECORD:
            return False
        name = string(clang.clang_getTypeSpelling(found))
        if name in seen:
            return False
        fields = (clang.clang_getCursorType(one) for one in self._unit.fields(found))
        return any(self._leads_to_function(one, seen | {name}) for one in fields)

    def call_name(self, cursor: Cursor) -> str:
        """How a call names the function: its key, without the file for one of the caller's own file."""
        return self.function(cursor).removeprefix(f"{self._main.name}::")

    def _function_key(self, cursor: Cursor) -> str:
        qualified = self.qualified(cursor)
        identity = string(self._clang.clang_getCursorUSR(cursor))
        if self._clang.clang_getCursorLinkage(cursor) == Linkage.INTERNAL:
            definition = self._clang.clang_getCursorDefinition(cursor)
            path, _, _ = self._unit.place(definition if definition.kind == cursor.kind else cursor)
            home = path or self._main
            other = f"{home.parent.name}/{home.name}::{qualified}"
            return self._table.claim(f"{home.name}::{qualified}", f"{identity} in {home}", other)
        signature = string(self._clang.clang_getCursorDisplayName(cursor))
        prefix = qualified[: len(qualified) - len(self._unit.name(cursor))]
        return self._table.claim(qualified, identity, prefix + signature)

    def qualified(self, cursor: Cursor) -> str:
        """The name with its classes and namespaces."""
        parts = [self._unit.name(cursor)]
        parent = self._clang.clang_getCursorSemanticParent(cursor)
        while parent.kind in (2, 3, 4, Kind.NAMESPACE, 31, 32):  # struct, union, class, templates of them
            parts.append(self._unit.name(parent))
            parent = self._clang.clang_getCursorSemanticParent(parent)
        return "::".join(part for part in reversed(parts) if part)

    # ---- variables ----

    def variable(self, cursor: Cursor) -> Symbol | None:
        """The symbol of a variable's declaration; None if the cursor declares no variable."""
        if cursor.kind not in _VARIABLES:
            return None
        found = self._variables.get(cursor.first)
        if found is None:
            canonical = self._clang.clang_getCanonicalCursor(cursor)
            found = self._variables.get(canonical.first)
            if found is None:
                found = self._made(canonical)
                self._variables[canonical.first] = found
            self._variables[cursor.first] = found
            outlasts = found is not None and found.storage is Storage.GLOBAL and found.where is not None
            if found is not None and outlasts and self.objects.has_second_name(cursor):
                _overlay(found)
        return found

    def note_initial(self, symbol: Symbol, value: Expression) -> None:
        """The value a static variable of a function has before the program starts."""
        self._table.initial.setdefault(symbol.key, value)

    def _made(self, cursor: Cursor) -> Symbol:
        clang = self._clang
        name = self._unit.name(cursor)
        linkage = clang.clang_getCursorLinkage(cursor)
        local = linkage == Linkage.NONE
        clang_type = clang.clang_getCursorType(cursor)
        storage = self._storage(cursor, local)
        key = self._local_key(cursor, name) if local else self._outer_key(cursor, name, linkage)
        if key in self._table.symbols:
            symbol = self._table.symbols[key]
            _complete(symbol, self.dimensions(clang_type))
        else:
            symbol = self._symbol(cursor, key, name, storage, clang_type)
            self._table.symbols[key] = symbol
        if local:
            self.locals[key.rsplit("::", 1)[1] if name else key] = symbol
        return symbol

    def _storage(self, cursor: Cursor, local: bool) -> Storage:
        if cursor.kind == Kind.PARM_DECL:
            return Storage.ARGUMENT
        if not local:
            return Storage.GLOBAL
        static = self._clang.clang_Cursor_getStorageClass(cursor) == _STATIC
        return Storage.SAVED if static or self._clang.clang_getCursorTLSKind(cursor) else Storage.LOCAL

    def _local_key(self, cursor: Cursor, name: str) -> str:
        # Two variables of one name in different blocks of a function are two variables.
        path, offset, _ = self._unit.place(cursor)
        wanted = f"procedure {self.procedure}::{name}"
        return self._table.claim(wanted, f"{self._main}:{path}:{offset}", f"{wanted}@{offset}")

    def _outer_key(self, cursor: Cursor, name: str, linkage: int) -> str:
        qualified = self.qualified(cursor)
        if linkage != Linkage.INTERNAL:
            return self._table.claim(qualified, f"variable {qualified}", f"variable {qualified}")
        # A static variable in a header is another one in each unit.
        other = f"{self._main.parent.name}/{self._main.name}::{qualified}"
        return self._table.claim(f"{self._main.name}::{qualified}", f"{self._main}: {qualified}", other)

    def _symbol(self, cursor: Cursor, key: str, name: str, storage: Storage, clang_type: ClangType) -> Symbol:
        clang = self._clang
        reference = is_reference(clang_type)
        value = self.constant(cursor)
        argument = storage is Storage.ARGUMENT
        shown = clang.clang_getPointeeType(clang_type) if reference and argument else clang_type
        dimensions = self.dimensions(shown)
        element = self._element(shown)
        type_ = self.type(element)
        kind = clang.clang_getCanonicalType(element).kind
        pointer = kind in (TypeKind.POINTER, TypeKind.LVALUE_REFERENCE, TypeKind.RVALUE_REFERENCE)
        rows = () if dimensions is not None else self._rows(shown)
        if argument and dimensions is not None and not reference:
            # void f(double a[n][5]): what comes is a pointer to the first row.
            row = clang.clang_getArrayElementType(clang.clang_getCanonicalType(shown))
            type_ = Type("pointer", _POINTER_BYTES, f"{self.type(row).text} *", self.type(row))
            pointer, rows, dimensions = True, dimensions[1:], None
        path, start, end = self._unit.extent(cursor)
        source = self._source_of(path) if path is not None else None
        return Symbol(
            key=key,
            name=name,
            storage=Storage.CONSTANT if value is not None else storage,
            type=type_,
            dimensions=dimensions,
            value=None if value is None else Number(value),
            pointer=pointer,
            by_value=argument and not reference,
            volatile=self.is_volatile(clang_type) or self.is_volatile(element),
            where=None if source is None else Span(source, start, end),
            rows=rows,
            restricted=bool(clang.clang_isRestrictQualifiedType(clang.clang_getCanonicalType(shown))),
        )

    def _rows(self, clang_type: ClangType) -> tuple[Dimension, ...]:
        """The dimensions of the arrays that a pointer leads to."""
        canonical = self._clang.clang_getCanonicalType(clang_type)
        if canonical.kind != TypeKind.POINTER:
            return ()
        return self.dimensions(self._clang.clang_getPointeeType(canonical)) or ()

    def is_volatile(self, clang_type: ClangType) -> bool:
        canonical = self._clang.clang_getCanonicalType(clang_type)
        return bool(self._clang.clang_isVolatileQualifiedType(canonical)) or canonical.kind == TypeKind.ATOMIC

    def constant(self, cursor: Cursor) -> int | None:
        """The value of a const integer that is known when compiling."""
        canonical = self._clang.clang_getCanonicalType(self._clang.clang_getCursorType(cursor))
        if canonical.kind not in TypeKind.INTEGERS or not self._clang.clang_isConstQualifiedType(canonical):
            return None
        if cursor.kind != Kind.VAR_DECL or self._clang.clang_isVolatileQualifiedType(canonical):
            return None
        value = self._unit.evaluate(cursor)
        return value if isinstance(value, int) else None

    # ---- types --------

    def _element(self, clang_type: ClangType) -> ClangType:
        """The type of an array's elements; the type itself if it is no array."""
        clang = self._clang
        if clang.clang_getCanonicalType(clang_type).kind not in TypeKind.ARRAYS:
            return clang_type
        inner = clang.clang_getArrayElementType(clang_type)
        if inner.kind == TypeKind.INVALID:  # an array by way of a typedef
            inner = clang.clang_getArrayElementType(clang.clang_getCanonicalType(clang_type))
        return self._element(inner)

    def dimensions(self, clang_type: ClangType) -> tuple[Dimension, ...] | None:
        found: list[Dimension] = []
        canonical = self._clang.clang_getCanonicalType(clang_type)
        while canonical.kind in TypeKind.ARRAYS:
            size = self._clang.clang_getArraySize(canonical)
            found.append(Dimension(Number(0), Number(size - 1) if size >= 0 else None))
            canonical = self._clang.clang_getCanonicalType(self._clang.clang_getArrayElementType(canonical))
        return tuple(found) or None

    def type(self, clang_type: ClangType, depth: int = 0) -> Type:
        clang = self._clang
        canonical = clang.clang_getCanonicalType(clang_type)
        kind = canonical.kind
        size = clang.clang_Type_getSizeOf(canonical)
        size = size if size >= 0 and kind != TypeKind.VOID else None
        text = string(clang.clang_getTypeSpelling(clang_type))
        target = None
        if kind in (TypeKind.POINTER, TypeKind.LVALUE_REFERENCE, TypeKind.RVALUE_REFERENCE) and depth < 4:
            target = self.type(clang.clang_getPointeeType(canonical), depth + 1)
        elif kind in TypeKind.ARRAYS:
            # A row that a pointer to an array points to; its elements are one step further.
            target = self.type(self._element(canonical), depth + 1)
        return Type(base_of_kind(kind), size, text, target, unsigned=kind in TypeKind.UNSIGNED)


def is_reference(clang_type: ClangType) -> bool:
    kind: int = library().clang_getCanonicalType(clang_type).kind
    return kind in (TypeKind.LVALUE_REFERENCE, TypeKind.RVALUE_REFERENCE)


def base_of_kind(kind: int) -> str:
    if kind == TypeKind.BOOL:
        return "logical"
    if kind in TypeKind.CHARACTERS:
        return "character"
    if kind in TypeKind.INTEGERS or kind == TypeKind.ENUM:
        return "integer"
    if kind in TypeKind.REALS:
        return "real"
    if kind == TypeKind.COMPLEX:
        return "complex"
    if kind in (TypeKind.POINTER, TypeKind.LVALUE_REFERENCE, TypeKind.RVALUE_REFERENCE):
        return "pointer"
    return "struct" if kind == TypeKind.RECORD else "other"


def _complete(symbol: Symbol, dimensions: tuple[Dimension, ...] | None) -> None:
    """Take a later declaration's bounds where the first left them open (``extern int a[];``)."""
    if dimensions and symbol.dimensions and symbol.dimensions[0].upper is None:
        object.__setattr__(symbol, "dimensions", dimensions)


def _overlay(symbol: Symbol) -> None:
    """Say that the variable may be another one's memory, which any of its declarations may say."""
    object.__setattr__(symbol, "overlay", symbol.key)


def give_bounds(symbol: Symbol, sizes: Sequence[Expression]) -> None:
    """Fill in the bounds of a variable-length array, or of such rows, from the sizes that its declaration gives, outermost
    first."""
    if symbol.dimensions is not None and len(sizes) == len(symbol.dimensions):
        object.__setattr__(symbol, "dimensions", _filled(symbol.dimensions, sizes))
    elif symbol.rows and len(sizes) >= len(symbol.rows):
        object.__setattr__(symbol, "rows", _filled(symbol.rows, sizes[-len(symbol.rows) :]))


def _filled(dimensions: Sequence[Dimension], sizes: Sequence[Expression]) -> tuple[Dimension, ...]:
    return tuple(
        Dimension(bound.lower, _last(size)) if bound.upper is None else bound
        for bound, size in zip(dimensions, sizes, strict=True)
    )


def _last(size: Expression) -> Expression:
    return Number(size.value - 1) if isinstance(size, Number) else Operation("-", (size, Number(1)))
