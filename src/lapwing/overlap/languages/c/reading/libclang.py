"""libclang, as far as the C front end needs it: a translation unit, its diagnostics, and the trees of its functions.

The library comes with the ``libclang`` package; its Python module wraps every cursor in several layers and has no operator
kinds, so the C functions are called directly here: a function's whole tree takes one call.
"""

from __future__ import annotations

import bisect
import ctypes
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lapwing.errors import LapwingError


class Location(ctypes.Structure):
    _fields_ = (("pointers", ctypes.c_void_p * 2), ("encoded", ctypes.c_uint))


class Range(ctypes.Structure):
    _fields_ = (("pointers", ctypes.c_void_p * 2), ("begin", ctypes.c_uint), ("end", ctypes.c_uint))


class Cursor(ctypes.Structure):
    """``first`` is a declaration's identity, ``second`` a statement's or expression's."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("extra", ctypes.c_int),
        ("first", ctypes.c_void_p),
        ("second", ctypes.c_void_p),
        ("third", ctypes.c_void_p),
    )
    kind: int
    first: int | None
    second: int | None


class ClangType(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("data", ctypes.c_void_p * 2))
    kind: int


class String(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("flags", ctypes.c_uint))


class UnsavedFile(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("contents", ctypes.c_char_p), ("length", ctypes.c_ulong))


class RangeList(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint), ("ranges", ctypes.POINTER(Range)))


class Kind:
    """Cursor kinds (CXCursorKind in clang-c/Index.h)."""

    UNEXPOSED_DECL = 1
    FIELD_DECL = 6
    ENUM_CONSTANT_DECL = 7
    FUNCTION_DECL = 8
    VAR_DECL = 9
    PARM_DECL = 10
    CXX_METHOD = 21
    NAMESPACE = 22
    LINKAGE_SPEC = 23
    CONSTRUCTOR = 24
    DESTRUCTOR = 25
    CONVERSION_FUNCTION = 26
    FUNCTION_TEMPLATE = 30
    FIRST_REFERENCE, LAST_REFERENCE = 40, 50
    BASE_SPECIFIER = 44
    UNEXPOSED_EXPR = 100
    DECL_REF_EXPR = 101
    MEMBER_REF_EXPR = 102
    CALL_EXPR = 103
    INTEGER_LITERAL = 106
    FLOATING_LITERAL = 107
    IMAGINARY_LITERAL = 108
    STRING_LITERAL = 109
    CHARACTER_LITERAL = 110
    PAREN_EXPR = 111
    UNARY_OPERATOR = 112
    ARRAY_SUBSCRIPT_EXPR = 113
    BINARY_OPERATOR = 114
    COMPOUND_ASSIGNMENT = 115
    CONDITIONAL_OPERATOR = 116
    C_CAST_EXPR = 117
    COMPOUND_LITERAL = 118
    INIT_LIST_EXPR = 119
    ADDRESS_OF_LABEL = 120
    STATEMENT_EXPR = 121
    GNU_NULL_EXPR = 123
    STATIC_CAST, DYNAMIC_CAST, REINTERPRET_CAST, CONST_CAST, FUNCTIONAL_CAST = 124, 125, 126, 127, 128
    BOOL_LITERAL = 130
    NULLPTR_LITERAL = 131
    THIS_EXPR = 132
    THROW_EXPR = 133
    NEW_EXPR = 134
    DELETE_EXPR = 135
    SIZEOF_EXPR = 136
    LAMBDA_EXPR = 144
    UNEXPOSED_STMT = 200
    LABEL_STMT = 201
    COMPOUND_STMT = 202
    CASE_STMT = 203
    DEFAULT_STMT = 204
    IF_STMT = 205
    SWITCH_STMT = 206
    WHILE_STMT = 207
    DO_STMT = 208
    FOR_STMT = 209
    GOTO_STMT = 210
    INDIRECT_GOTO_STMT = 211
    CONTINUE_STMT = 212
    BREAK_STMT = 213
    RETURN_STMT = 214
    ASM_STMT = 215
    CATCH_STMT = 223
    TRY_STMT = 224
    FOR_RANGE_STMT = 225
    MS_ASM_STMT = 229
    NULL_STMT = 230
    DECL_STMT = 231
    UNEXPOSED_ATTRIBUTE = 400
    ASM_LABEL = 407
    MACRO_DEFINITION = 501
    MACRO_INSTANTIATION = 502
    INCLUSION_DIRECTIVE = 503


class TypeKind:
    """Type kinds (CXTypeKind)."""

    INVALID = 0
    VOID = 2
    BOOL = 3
    CHARACTERS = frozenset((4, 13))  # plain char, unsigned or signed
    UNSIGNED = frozenset((3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
    INTEGERS = frozenset((5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20))
    REALS = frozenset((21, 22, 23, 30, 31, 32))
    COMPLEX = 100
    POINTER = 101
    LVALUE_REFERENCE, RVALUE_REFERENCE = 103, 104
    RECORD = 105
    ENUM = 106
    FUNCTION_NO_PROTOTYPE, FUNCTION_PROTOTYPE = 110, 111
    CONSTANT_ARRAY, INCOMPLETE_ARRAY, VARIABLE_ARRAY, DEPENDENT_ARRAY = 112, 114, 115, 116
    ARRAYS = frozenset((112, 114, 115, 116))
    MEMBER_POINTER = 117
    ATOMIC = 177


class Linkage:
    NONE = 1
    INTERNAL = 2
    EXTERNAL = 4


BINARY_OPERATORS = dict(
    enumerate(
        "* / % + - << >> <=> < > <= >= == != & ^ | && || = *= /= %= += -= <<= >>= &= ^= |= ,".split(),
        start=3,
    )
)
UNARY_OPERATORS = dict(enumerate("++ -- ++ -- & * + - ~ ! __real __imag __extension__".split(), start=1))
POSTFIX_OPERATORS = frozenset((1, 2))

_VISITOR = ctypes.CFUNCTYPE(ctypes.c_int, Cursor, Cursor, ctypes.c_void_p)
_FIELD_VISITOR = ctypes.CFUNCTYPE(ctypes.c_int, Cursor, ctypes.c_void_p)
_INCLUSION_VISITOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Location), ctypes.c_uint, ctypes.c_void_p)
_CONTINUE, _RECURSE = 1, 2
_ERROR, _FATAL = 3, 4
_DETAILED_PREPROCESSING, _KEEP_GOING = 0x01, 0x200
_IN_MACRO = 1 << 31  # bit of a place that lies in a macro's use

_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "clang_createIndex": (ctypes.c_void_p, (ctypes.c_int, ctypes.c_int)),
    "clang_disposeIndex": (None, (ctypes.c_void_p,)),
    "clang_parseTranslationUnit2": (
        ctypes.c_int,
        (
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.c_int,
            ctypes.POINTER(UnsavedFile),
            ctypes.c_uint,
            ctypes.c_uint,
            ctypes.POINTER(ctypes.c_void_p),
        ),
    ),
    "clang_disposeTranslationUnit": (None, (ctypes.c_void_p,)),
    "clang_getTranslationUnitCursor": (Cursor, (ctypes.c_void_p,)),
    "clang_getNumDiagnostics": (ctypes.c_uint, (ctypes.c_void_p,)),
    "clang_getDiagnostic": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_uint)),
    "clang_getDiagnosticSeverity": (ctypes.c_int, (ctypes.c_void_p,)),
    "clang_getDiagnosticSpelling": (String, (ctypes.c_void_p,)),
    "clang_getDiagnosticLocation": (Location, (ctypes.c_void_p,)),
    "clang_disposeDiagnostic": (None, (ctypes.c_void_p,)),
    "clang_getFile": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)),
    "clang_getFileName": (String, (ctypes.c_void_p,)),
    "clang_getFileContents": (
        ctypes.c_void_p,
        (ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)),
    ),
    "clang_getInclusions": (None, (ctypes.c_void_p, _INCLUSION_VISITOR, ctypes.c_void_p)),
    "clang_getSkippedRanges": (ctypes.POINTER(RangeList), (ctypes.c_void_p, ctypes.c_void_p)),
    "clang_disposeSourceRangeList": (None, (ctypes.POINTER(RangeList),)),
    "clang_getCString": (ctypes.c_char_p, (String,)),
    "clang_disposeString": (None, (String,)),
    "clang_visitChildren": (ctypes.c_uint, (Cursor, _VISITOR, ctypes.c_void_p)),
    "clang_getCursorExtent": (Range, (Cursor,)),
    "clang_getCursorLocation": (Location, (Cursor,)),
    "clang_getCursorSpelling": (String, (Cursor,)),
    "clang_getCursorDisplayName": (String, (Cursor,)),
    "clang_getCursorUSR": (String, (Cursor,)),
    "clang_getCursorReferenced": (Cursor, (Cursor,)),
    "clang_getCanonicalCursor": (Cursor, (Cursor,)),
    "clang_getCursorDefinition": (Cursor, (Cursor,)),
    "clang_getCursorSemanticParent": (Cursor, (Cursor,)),
    "clang_getCursorLinkage": (ctypes.c_int, (Cursor,)),
    "clang_Cursor_getStorageClass": (ctypes.c_int, (Cursor,)),
    "clang_isCursorDefinition": (ctypes.c_uint, (Cursor,)),
    "clang_getCursorType": (ClangType, (Cursor,)),
    "clang_getCursorResultType": (ClangType, (Cursor,)),
    "clang_Cursor_getVarDeclInitializer": (Cursor, (Cursor,)),
    "clang_Cursor_isMacroFunctionLike": (ctypes.c_uint, (Cursor,)),
    "clang_Cursor_isFunctionInlined": (ctypes.c_uint, (Cursor,)),
    "clang_Cursor_isVariadic": (ctypes.c_uint, (Cursor,)),
    "clang_Cursor_Evaluate": (ctypes.c_void_p, (Cursor,)),
    "clang_EvalResult_getKind": (ctypes.c_int, (ctypes.c_void_p,)),
    "clang_EvalResult_isUnsignedInt": (ctypes.c_uint, (ctypes.c_void_p,)),
    "clang_EvalResult_getAsUnsigned": (ctypes.c_ulonglong, (ctypes.c_void_p,)),
    "clang_EvalResult_getAsLongLong": (ctypes.c_longlong, (ctypes.c_void_p,)),
    "clang_EvalResult_getAsDouble": (ctypes.c_double, (ctypes.c_void_p,)),
    "clang_EvalResult_dispose": (None, (ctypes.c_void_p,)),
    "clang_getEnumConstantDeclValue": (ctypes.c_longlong, (Cursor,)),
    "clang_getCursorBinaryOperatorKind": (ctypes.c_int, (Cursor,)),
    "clang_getCursorUnaryOperatorKind": (ctypes.c_int, (Cursor,)),
    "clang_getFileLocation": (None, (Location, *(ctypes.POINTER(t) for t in (ctypes.c_void_p, *[ctypes.c_uint] * 3)))),
    "clang_getExpansionLocation": (
        None,
        (Location, *(ctypes.POINTER(t) for t in (ctypes.c_void_p, *[ctypes.c_uint] * 3))),
    ),
    "clang_Location_isInSystemHeader": (ctypes.c_int, (Location,)),
    "clang_getCanonicalType": (ClangType, (ClangType,)),
    "clang_getTypeSpelling": (String, (ClangType,)),
    "clang_Type_getSizeOf": (ctypes.c_longlong, (ClangType,)),
    "clang_getPointeeType": (ClangType, (ClangType,)),
    "clang_getArrayElementType": (ClangType, (ClangType,)),
    "clang_getArraySize": (ctypes.c_longlong, (ClangType,)),
    "clang_isPODType": (ctypes.c_uint, (ClangType,)),
    "clang_isConstQualifiedType": (ctypes.c_uint, (ClangType,)),
    "clang_isVolatileQualifiedType": (ctypes.c_uint, (ClangType,)),
    "clang_isRestrictQualifiedType": (ctypes.c_uint, (ClangType,)),
    "clang_getTypeDeclaration": (Cursor, (ClangType,)),
    "clang_getNumArgTypes": (ctypes.c_int, (ClangType,)),
    "clang_getArgType": (ClangType, (ClangType, ctypes.c_uint)),
    "clang_CXXMethod_isVirtual": (ctypes.c_uint, (Cursor,)),
    "clang_CXXMethod_isStatic": (ctypes.c_uint, (Cursor,)),
    "clang_CXXMethod_isDefaulted": (ctypes.c_uint, (Cursor,)),
    "clang_getCursorTLSKind": (ctypes.c_int, (Cursor,)),
    "clang_getSpecializedCursorTemplate": (Cursor, (Cursor,)),
    "clang_Type_visitFields": (ctypes.c_uint, (ClangType, _FIELD_VISITOR, ctypes.c_void_p)),
    "clang_getCursorPrettyPrinted": (String, (Cursor, ctypes.c_void_p)),
}


@cache
def library() -> Any:
    """The shared library with every prototype above declared."""
    try:
        package: Any = importlib.import_module("clang.cindex")  # it has no types
    except ImportError as error:
        raise LapwingError("reading C needs libclang, which is not installed; `pip install libclang`") from error
    # A handle of our own: the package declares other prototypes on its own one.
    loaded = ctypes.CDLL(package.conf.get_filename())
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def string(value: String) -> str:
    text: bytes | None = library().clang_getCString(value)
    library().clang_disposeString(value)
    return (text or b"").decode("utf-8", "replace")


@dataclass(frozen=True)
class Diagnostic:
    """An error. ``path``: None where libclang gives none; a place inside a macro's use counts as that use's."""

    fatal: bool
    system: bool  # in a header of the system
    path: Path | None
    offset: int
    line: int
    message: str


# Everybody who works on the program model walks through it by recursion, of which Python allows some 1000 levels.
TALLEST = 200


class Node:
    """A cursor in a function's tree. ``start``, ``end``: bytes of the function's file, for what a macro expands to those of the
    macro's use; ``exact``: the text there is what was read, no more and no less. ``macro``: the number of the macro's use
    it lies in entirely, -1 if none. ``foreign``: it stands in another file (an include inside a body). ``height``: of the tree
    below it."""

    __slots__ = ("children", "cursor", "end", "exact", "foreign", "height", "kind", "macro", "start")

    def __init__(self, cursor: Cursor, start: int, end: int, foreign: bool) -> None:
        self.cursor = cursor
        self.kind = cursor.kind
        self.start = start
        self.end = end
        self.foreign = foreign
        self.exact = True
        self.macro = -1
        self.height = 1
        self.children: list[Node] = []

    def walk(self) -> Iterator[Node]:
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.children))


class Uses:
    """The uses of macros in one file: the outermost in order, and by where they start those inside others' arguments."""

    def __init__(self, uses: Sequence[tuple[int, int, str, Cursor]]) -> None:
        outermost: list[tuple[int, int, str, Cursor]] = []
        self.inner: dict[int, tuple[int, str, Cursor]] = {}
        for use in sorted(uses, key=lambda use: (use[0], -use[1])):
            if not outermost or use[0] >= outermost[-1][1]:
                outermost.append(use)
            else:
                self.inner[use[0]] = use[1:]
        self.starts = [use[0] for use in outermost]
        self.ends = [use[1] for use in outermost]
        self.names = [use[2] for use in outermost]
        self.cursors = [use[3] for use in outermost]

    def at(self, offset: int) -> int:
        """The number of the use that holds the byte at ``offset``, -1 if there is none."""
        found = bisect.bisect_right(self.starts, offset) - 1
        return found if found >= 0 and offset < self.ends[found] else -1

    def within(self, start: int, end: int) -> frozenset[str]:
        """The macros that are used from ``start`` to ``end``."""
        outer = zip(self.starts, self.names, strict=True)
        inner = ((at, name) for at, (_, name, _) in self.inner.items())
        return frozenset(name for at, name in (*outer, *inner) if start <= at < end)


@dataclass(frozen=True)
class _Stretch:
    """The places of one reading of a file, whose numbers count its bytes. ``system``: all of it is a system's header."""

    begin: int
    end: int
    file: int
    path: Path
    system: bool


class Unit:
    """A translation unit. Close it (``with``) when its trees are no longer used.

    Raises:
        LapwingError: libclang could not read the file at all.
    """

    def __init__(self, path: Path, arguments: Sequence[str], unsaved: Sequence[tuple[Path, bytes]] = ()) -> None:
        clang = library()
        self._clang = clang
        self._ask_place = _place_of(clang.clang_getFileLocation)
        self._paths: dict[int, Path] = {}
        self._stretches: list[_Stretch] = []
        self._begins: list[int] = []  # of the stretches, in order
        encoded = [os.fsencode(argument) for argument in arguments]
        files = (UnsavedFile * len(unsaved))(*(UnsavedFile(os.fsencode(n), data, len(data)) for n, data in unsaved))
        self._index = clang.clang_createIndex(0, 0)
        handle = ctypes.c_void_p()
        status = clang.clang_parseTranslationUnit2(
            self._index,
            os.fsencode(path),
            (ctypes.c_char_p * len(encoded))(*encoded),
            len(encoded),
            files,
            len(unsaved),
            _DETAILED_PREPROCESSING | _KEEP_GOING,
            ctypes.byref(handle),
        )
        if status != 0 or not handle:
            clang.clang_disposeIndex(self._index)
            raise LapwingError(f"{path}: libclang could not read the file (status {status})")
        self._handle = handle

    def __enter__(self) -> Unit:
        return self

    def __exit__(self, *_: object) -> None:
        self._clang.clang_disposeTranslationUnit(self._handle)
        self._clang.clang_disposeIndex(self._index)

    # ---- the unit ----

    def diagnostics(self) -> list[Diagnostic]:
        """Errors only: warnings are the compiler's business."""
        found = []
        for number in range(self._clang.clang_getNumDiagnostics(self._handle)):
            handle = self._clang.clang_getDiagnostic(self._handle, number)
            severity = self._clang.clang_getDiagnosticSeverity(handle)
            if severity >= _ERROR:
                location = self._clang.clang_getDiagnosticLocation(handle)
                file, offset, line = _full_place(self._clang.clang_getExpansionLocation, location)
                found.append(
                    Diagnostic(
                        severity == _FATAL,
                        bool(self._clang.clang_Location_isInSystemHeader(location)),
                        self.path_of(file) if file else None,
                        offset,
                        line,
                        string(self._clang.clang_getDiagnosticSpelling(handle)),
                    )
                )
            self._clang.clang_disposeDiagnostic(handle)
        return found

    def top(self) -> list[Cursor]:
        """What the unit consists of: declarations, and what the preprocessor met."""
        return self.children(self._clang.clang_getTranslationUnitCursor(self._handle))

    def initial(self, variable: Cursor) -> Cursor | None:
        """The expression a variable's declaration gives it, None if it gives none."""
        found: Cursor = self._clang.clang_Cursor_getVarDeclInitializer(variable)
        return found if 100 <= found.kind < 350 else None

    def children(self, cursor: Cursor) -> list[Cursor]:
        found: list[Cursor] = []

        def visit(child: Cursor, _parent: Cursor, _data: object) -> int:
            found.append(child)
            return _CONTINUE

        self._clang.clang_visitChildren(cursor, _VISITOR(visit), None)
        return found

    def fields(self, clang_type: ClangType) -> list[Cursor]:
        """The fields of a structure or class, of an instance of a template as well."""
        found: list[Cursor] = []

        def visit(field: Cursor, _data: object) -> int:
            found.append(field)
            return _CONTINUE

        self._clang.clang_Type_visitFields(clang_type, _FIELD_VISITOR(visit), None)
        return found

    def identity(self, cursor: Cursor) -> str:
        """What declarations of the same thing have in common, in other units, too."""
        return string(self._clang.clang_getCursorUSR(cursor))

    def declaration(self, cursor: Cursor) -> str:
        """A declaration as libclang writes it: without macros, its attributes included."""
        return string(self._clang.clang_getCursorPrettyPrinted(cursor, None))

    def included(self) -> list[tuple[Path, tuple[Path, ...]]]:
        """Every file that was read, the unit's own included, with those that include it, the nearest first."""
        found: list[tuple[Path, tuple[Path, ...]]] = []

        def visit(file: int, stack: Sequence[Location], depth: int, _data: object) -> None:
            around = (self._ask_place(stack[number])[0] for number in range(depth))
            found.append((self.path_of(file), tuple(self.path_of(one) for one in around if one)))

        self._clang.clang_getInclusions(self._handle, _INCLUSION_VISITOR(visit), None)
        return found

    def skipped(self, path: Path) -> list[tuple[int, int]]:
        """The bytes of a file that its #if and #else leave out."""
        file = self._clang.clang_getFile(self._handle, os.fsencode(path))
        if not file:
            return []
        ranges = self._clang.clang_getSkippedRanges(self._handle, file)
        found = [self._span(ranges.contents.ranges[number])[1:] for number in range(ranges.contents.count)]
        self._clang.clang_disposeSourceRangeList(ranges)
        return sorted(found)

    # ---- places ------

    def path_of(self, file: int) -> Path:
        """The path of a file handle, resolved."""
        if file not in self._paths:
            self._paths[file] = Path(string(self._clang.clang_getFileName(file))).resolve()
        return self._paths[file]

    def place(self, cursor: Cursor) -> tuple[Path | None, int, bool]:
        """File and byte of a declaration, and whether that is a system's header."""
        location = self._clang.clang_getCursorLocation(cursor)
        stretch = self._stretch(location, location.encoded)
        if stretch is not None and stretch.system:
            return stretch.path, location.encoded - stretch.begin, True
        file, offset = self._place(location, location.encoded)
        return (
            (self.path_of(file) if file else None),
            offset,
            bool(self._clang.clang_Location_isInSystemHeader(location)),
        )

    def file(self, cursor: Cursor) -> Path | None:
        """The file in which it begins."""
        extent = self._clang.clang_getCursorExtent(cursor)
        stretch = self._stretch(extent, extent.begin)
        if stretch is not None:
            return stretch.path
        file, _ = self._place(extent, extent.begin)
        return self.path_of(file) if file else None

    def extent(self, cursor: Cursor) -> tuple[Path | None, int, int]:
        file, start, end = self._span(self._clang.clang_getCursorExtent(cursor))
        return (self.path_of(file) if file else None), start, end

    def _span(self, extent: Range) -> tuple[int | None, int, int]:
        file, start = self._place(extent, extent.begin)
        end = start if file is None else self._place(extent, extent.end)[1]
        return file, start, end

    def _place(self, around: Location | Range, encoded: int) -> tuple[int | None, int]:
        stretch = self._stretch(around, encoded)
        if stretch is None:
            return self._ask_place(Location(around.pointers, encoded))
        return stretch.file, encoded - stretch.begin

    def _stretch(self, around: Location | Range, encoded: int) -> _Stretch | None:
        """What holds a place, which is one of ``around``; None for one in a macro's use, or in no file. There are thousands of
        places in headers: libclang is not asked about each."""
        number = bisect.bisect_right(self._begins, encoded) - 1
        if number >= 0 and encoded <= self._stretches[number].end:
            return self._stretches[number]
        if encoded >= _IN_MACRO:
            return None
        pointers = around.pointers
        file, offset = self._ask_place(Location(pointers, encoded))
        if file is None:
            return None
        size = ctypes.c_size_t()
        self._clang.clang_getFileContents(self._handle, file, ctypes.byref(size))
        begin, end = encoded - offset, encoded - offset + size.value
        edges = Location(pointers, begin), Location(pointers, end)
        if [self._ask_place(edge) for edge in edges] != [(file, 0), (file, size.value)]:
            return None
        system = all(self._clang.clang_Location_isInSystemHeader(edge) for edge in edges)
        stretch = _Stretch(begin, end, file, self.path_of(file), system)
        at = bisect.bisect_left(self._begins, begin)
        self._begins.insert(at, begin)
        self._stretches.insert(at, stretch)
        return stretch

    # ---- trees -------

    def tree(self, cursor: Cursor, path: Path, uses: Uses, data: bytes) -> Node:
        """The tree below a declaration that stands in the file ``path``."""
        extent_of = self._clang.clang_getCursorExtent
        place = self._place
        home: dict[int | None, bool] = {}
        nodes: list[tuple[Node, int]] = []

        def node_of(child: Cursor) -> Node:
            extent = extent_of(child)
            file, start = place(extent, extent.begin)
            _, end = place(extent, extent.end)
            if file not in home:
                home[file] = file is not None and self.path_of(file) == path
            node = Node(child, start, end, not home[file])
            nodes.append((node, extent.end - extent.begin))
            return node

        root = node_of(cursor)
        branch: list[tuple[Node, int | None]] = [(root, _identity(cursor))]

        def visit(child: Cursor, parent: Cursor, _data: object) -> int:
            identity = _identity(parent)
            while len(branch) > 1 and branch[-1][1] != identity:
                branch.pop()
            node = node_of(child)
            branch[-1][0].children.append(node)
            branch.append((node, _identity(child)))
            return _RECURSE

        self._clang.clang_visitChildren(cursor, _VISITOR(visit), None)
        for node, _ in reversed(nodes):  # children come after their parents
            node.height = 1 + max((inner.height for inner in node.children), default=0)
        _mark_macros(root, dict((id(node), length) for node, length in nodes), uses, data)
        return root

    # ---- what a cursor says

    def name(self, cursor: Cursor) -> str:
        return string(self._clang.clang_getCursorSpelling(cursor))

    def referenced(self, cursor: Cursor) -> Cursor:
        found: Cursor = self._clang.clang_getCursorReferenced(cursor)
        return found

    def evaluate(self, cursor: Cursor) -> int | float | None:
        """The value of a constant expression or of a variable's initialiser."""
        clang = self._clang
        result = clang.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        kind = clang.clang_EvalResult_getKind(result)
        value: int | float | None = None
        if kind == 1 and clang.clang_EvalResult_isUnsignedInt(result):
            value = clang.clang_EvalResult_getAsUnsigned(result)
        elif kind == 1:
            value = clang.clang_EvalResult_getAsLongLong(result)
        elif kind == 2:
            value = clang.clang_EvalResult_getAsDouble(result)
        clang.clang_EvalResult_dispose(result)
        return value


def _identity(cursor: Cursor) -> int | None:
    return cursor.second if 100 <= cursor.kind < 350 else cursor.first


def _place_of(function: Any) -> Callable[[Location], tuple[int | None, int]]:
    file, offset = ctypes.c_void_p(), ctypes.c_uint()
    file_pointer, offset_pointer = ctypes.byref(file), ctypes.byref(offset)

    def place(location: Location) -> tuple[int | None, int]:
        function(location, file_pointer, None, None, offset_pointer)
        return file.value, offset.value

    return place


def _full_place(function: Any, location: Location) -> tuple[int | None, int, int]:
    file, line, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
    function(location, ctypes.byref(file), ctypes.byref(line), None, ctypes.byref(offset))
    return file.value, offset.value, line.value


def _mark_macros(root: Node, lengths: dict[int, int], uses: Uses, data: bytes) -> None:
    """Set ``macro`` and ``exact``. A macro's use stands for an expression only if that is all the macro expands to there."""
    if not uses.starts:
        return
    edges: dict[int, tuple[int, int]] = {}
    pieces: dict[int, int] = {}
    pending: list[tuple[Node, int]] = [(root, -1)]
    touched: list[Node] = []
    while pending:
        node, outer = pending.pop()
        first, last = uses.at(node.start), uses.at(max(node.end - 1, node.start))
        if first >= 0 or last >= 0:
            touched.append(node)
            edges[id(node)] = first, last
            # A use that only begins or ends the node is not around it.
            if first == last and uses.starts[first] <= node.start and node.end <= uses.ends[first]:
                node.macro = first
                if outer != first and not Kind.FIRST_REFERENCE <= node.kind <= Kind.LAST_REFERENCE:
                    pieces[first] = pieces.get(first, 0) + 1
        pending.extend((child, node.macro) for child in node.children)
    whole: set[int] = set()
    for node in touched:  # parents come before their children
        use = node.macro
        if use < 0:
            node.exact = all(edge < 0 or _holds_all(node, edge, pieces) for edge in edges[id(node)])
            continue
        # Inside a macro's argument the text is exact if all of it came from that one argument, in one piece.
        inside = uses.starts[use] < node.start and node.end < uses.ends[use]
        one_piece = lengths[id(node)] == node.end - node.start and not _has_comma(data[node.start : node.end])
        if not (inside and one_piece):
            node.exact = pieces.get(use, 0) <= 1 and use not in whole
            if node.exact:
                node.start, node.end = uses.starts[use], uses.ends[use]
        whole.add(use)


def _holds_all(node: Node, use: int, pieces: dict[int, int]) -> bool:
    """Whether everything a macro's use expands to lies in the node."""
    if pieces.get(use, 0) <= 1:
        return True
    found, pending = 0, [node]
    while pending:
        inner = pending.pop()
        if inner.macro == use:
            found += not Kind.FIRST_REFERENCE <= inner.kind <= Kind.LAST_REFERENCE
        else:
            pending.extend(inner.children)
    return found == pieces[use]


def _has_comma(text: bytes) -> bool:
    depth = 0
    for byte in text:
        if byte in b"([{":
            depth += 1
        elif byte in b")]}":
            depth -= 1
        elif byte == ord(",") and depth <= 0:
            return True
    return depth != 0
