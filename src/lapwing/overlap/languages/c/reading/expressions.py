"""Expressions: from libclang's nodes to the program model's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Cast,
    Constant,
    Deref,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Operation,
    Symbol,
    Type,
    Unread,
)
from lapwing.overlap.ir.expressions import Text as Literal
from lapwing.overlap.languages.c.parsing.text import Text
from lapwing.overlap.languages.c.reading.constants import MPI_CONSTANT, MpiConstants
from lapwing.overlap.languages.c.reading.libclang import (
    BINARY_OPERATORS,
    POSTFIX_OPERATORS,
    UNARY_OPERATORS,
    Cursor,
    Kind,
    Node,
    TypeKind,
    Unit,
    Uses,
)
from lapwing.overlap.languages.c.reading.symbols import Declarations, base_of_kind, is_reference, mark_target
from lapwing.overlap.libraries import summaries
from lapwing.overlap.source.spans import Span

_ADDRESS_BYTES = 8
_SMALLEST_RANGE = 2**31  # of the types in which C computes

_MPI_FUNCTION_MACRO = re.compile(r"P?MPI_[A-Za-z]\w*\Z")

# MPI keeps the addresses passed to these, or returns them again; all other calls forget them on completion.
_MPI_KEEPS = re.compile(r"MPI_(Buffer_attach|Win_\w+|\w*[Aa]ttr\w*|Get_address|Address|Op_create|\w+_init|\w*keyval)\Z")

_LITERAL_INTEGER = re.compile(rb"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*\Z")
_LITERAL_REAL = re.compile(rb"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFlL]?\Z")
_CASTS = frozenset((Kind.C_CAST_EXPR, Kind.STATIC_CAST, Kind.REINTERPRET_CAST, Kind.CONST_CAST, Kind.FUNCTIONAL_CAST))
_FUNCTIONS = frozenset((Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONVERSION_FUNCTION, Kind.FUNCTION_TEMPLATE))


class Expressions:
    """Reads the expressions of one function."""

    def __init__(
        self,
        unit: Unit,
        declarations: Declarations,
        text: Text,
        source: int,
        uses: Uses,
        constants: MpiConstants,
    ) -> None:
        self._unit = unit
        self._clang = unit._clang
        self._declarations = declarations
        self._objects = declarations.objects
        self._text = text
        self._source = source
        self._uses = uses
        self._inner_uses = uses.inner
        self._constants = constants
        self.this: Symbol | None = None
        self.guesses = 0  # expressions that libclang has no kind for

    def writes_pragma(self, use: int) -> bool:
        """Whether a macro's use (by its number) writes a pragma, for which libclang has no node."""
        return self._constants.writes_pragma(self._uses.names[use])

    # ---- places ----

    def span(self, node: Node) -> Span | None:
        return Span(self._source, node.start, node.end) if node.exact and not node.foreign else None

    def spelling(self, node: Node) -> str:
        return self._text.data[node.start : node.end].decode("latin-1")

    # ---- reading ---

    def read(self, node: Node) -> Expression:
        constant = self._mpi_constant(node) if node.macro >= 0 else None
        if constant is not None:
            return replace(constant, span=self.span(node))
        reader = _READERS.get(node.kind)
        found = reader(self, node) if reader else self._unread(node)
        span = self.span(node)
        if found.span == span:
            return found
        if node.kind in (Kind.PAREN_EXPR, Kind.UNEXPOSED_EXPR) and span is None:
            return found
        return replace(found, span=span)

    def _mpi_constant(self, node: Node) -> Expression | None:
        """What a macro's use stands for, if that is a constant of MPI's or a function that mpi.h has as a macro."""
        whole = (node.start, node.end) == (self._uses.starts[node.macro], self._uses.ends[node.macro])
        if whole and node.exact:
            use = self._uses.names[node.macro]
            name = self._constants.of_use(use, self._uses.cursors[node.macro])
            if name is not None:
                return Constant(name)
            if _MPI_FUNCTION_MACRO.match(use) and node.kind != Kind.CALL_EXPR:
                # MPI_Comm_c2f and the like: a cast of the argument.
                return Invocation(use, tuple(self.read(child) for child in _expressions_in(node)))
        elif node.start in self._inner_uses and self._inner_uses[node.start][0] == node.end:
            # an argument of another macro
            _, use, cursor = self._inner_uses[node.start]
            name = self._constants.of_use(use, cursor)
            if name is not None:
                return Constant(name)
        if node.kind == Kind.C_CAST_EXPR:
            return self._mpi_handle(node)
        return None

    def _mpi_handle(self, node: Node) -> Expression | None:
        """A handle, or MPI_IN_PLACE and its like, written by a macro that writes more than that."""
        text = self._cast_type(node).text
        if not text.startswith("MPI_") and text != "void *":
            return None
        parts = _expressions_in(node)
        # A pointer's value is that of the number it is made of.
        value = self._unit.evaluate(parts[0].cursor if text.endswith("*") and len(parts) == 1 else node.cursor)
        if isinstance(value, int):
            name = self._constants.of_number(text, value)
        elif text == "void *":
            name = None
        else:
            words = [inner for inner in node.walk() if inner.kind == Kind.DECL_REF_EXPR]
            name = self._constants.of_variable(self._unit.name(words[0].cursor)) if len(words) == 1 else None
        return Constant(name) if name is not None else None

    def _unread(self, node: Node) -> Expression:
        mentions = tuple(self.read(child) for child in node.children if 100 <= child.kind < Kind.UNEXPOSED_STMT)
        inner: list[Expression] = []
        for child in node.children:
            if child.kind >= Kind.UNEXPOSED_STMT or child.kind < Kind.FIRST_REFERENCE:
                inner += [self.read(part) for part in _outermost_expressions(child)]
        return Unread(self.spelling(node), (*mentions, *inner))

    # ---- leaves ----

    def _integer(self, node: Node) -> Expression:
        found = _LITERAL_INTEGER.match(self._text.data[node.start : node.end]) if node.exact else None
        if found:
            digits = found.group(1)
            octal = len(digits) > 1 and digits[:1] == b"0" and digits[1:2].isdigit()
            return Number(int(digits, 8 if octal else 0))
        return self._evaluated(node)

    def _real(self, node: Node) -> Expression:
        found = _LITERAL_REAL.match(self._text.data[node.start : node.end]) if node.exact else None
        return Number(float(found.group(1))) if found else self._evaluated(node)

    def _evaluated(self, node: Node) -> Expression:
        value = self._unit.evaluate(node.cursor)
        return self._unread(node) if value is None else Number(value)

    def _string(self, node: Node) -> Expression:
        return Literal(self.spelling(node) if node.exact else self._unit.name(node.cursor))

    def _null(self, node: Node) -> Expression:
        return Number(0)

    def _reference(self, node: Node) -> Expression:
        cursor = self._clang.clang_getCursorReferenced(node.cursor)
        if cursor.kind == Kind.ENUM_CONSTANT_DECL:
            name = self._unit.name(cursor)
            if MPI_CONSTANT.match(name):
                return Constant(name)
            return Number(self._clang.clang_getEnumConstantDeclValue(cursor))
        if cursor.kind in _FUNCTIONS:
            return Constant(self._declarations.call_name(cursor))
        symbol = self._declarations.variable(cursor)
        if symbol is None or self._objects.made_late(cursor):
            return self._unread(node)
        if MPI_CONSTANT.match(symbol.name) and symbol.where is None:
            return Constant(symbol.name)
        if isinstance(symbol.value, Number):
            return Number(symbol.value.value)
        name_ = Name(symbol, span=self.span(node))
        # A reference that is no argument is a pointer the language dereferences by itself.
        if symbol.pointer and not symbol.by_value and is_reference(self._clang.clang_getCursorType(cursor)):
            is_argument = symbol.storage.value == "argument"
            return name_ if is_argument else Deref(name_)
        return name_

    def _this(self, node: Node) -> Expression:
        return Name(self.this) if self.this is not None else self._unread(node)

    # ---- access ----

    def _paren(self, node: Node) -> Expression:
        return self.read(node.children[0]) if len(node.children) == 1 else self._unread(node)

    def _unexposed(self, node: Node) -> Expression:
        parts = _expressions_in(node)
        if len(parts) != 1:
            value = self._unit.evaluate(node.cursor)
            self.guesses += value is None
            return self._unread(node) if value is None else Number(value)
        found = self.read(parts[0])
        if not self._is_same_text(node, parts[0]):  # not a conversion: va_arg and other rare things
            value = self._unit.evaluate(node.cursor)
            return Unread(self.spelling(node), (found,)) if value is None else Number(value)
        if isinstance(found, Name | Element | Member) and self._type_kind(parts[0]) in TypeKind.ARRAYS:
            base = base_symbol(found)  # an array that turns into a pointer
            if base is not None and not base.pointer:
                mark_target(base)
        if self._is_whole(node) and self._is_whole(parts[0]) and not self._keeps(node, parts[0], found):
            return Cast(self._cast_type(node), found)
        return found

    def _is_whole(self, node: Node) -> bool:
        kind = self._type_kind(node)
        return kind in TypeKind.INTEGERS or kind in TypeKind.CHARACTERS or kind in (TypeKind.BOOL, TypeKind.ENUM)

    def _keeps(self, to: Node, origin: Node, value: Expression) -> bool:
        """Whether an integer keeps its value in the conversion."""
        new, old = self._cast_type(to), self._cast_type(origin)
        if isinstance(value, Number) and new.base != "logical":
            return new.bytes is not None and 0 <= value.value < 2 ** (8 * new.bytes - 1)
        if new.bytes is None or old.bytes is None or new.bytes < old.bytes:
            return False
        if new.base == "logical" and old.base != "logical":
            return False
        if not old.unsigned:
            return True
        # Unsigned arithmetic may have wrapped below zero to a large number. A stored large number becomes a negative one;
        # numbers as wide as addresses are taken as negative from the start.
        stored = isinstance(value, Name | Element | Member | Deref | Invocation)
        return stored if new.bytes > old.bytes else new.unsigned or old.bytes >= _ADDRESS_BYTES

    def _is_same_text(self, node: Node, child: Node) -> bool:
        if (node.start, node.end) == (child.start, child.end):
            return True
        outer, inner = self._clang.clang_getCursorExtent(node.cursor), self._clang.clang_getCursorExtent(child.cursor)
        return (outer.begin, outer.end) == (inner.begin, inner.end)

    def _subscript(self, node: Node) -> Expression:
        if len(node.children) != 2:
            return self._unread(node)
        base, index = node.children
        if self._type_kind(base) in TypeKind.INTEGERS:  # 3[a]
            base, index = index, base
        return self._element(base, self.read(index))

    def _element(self, base: Node, index: Expression) -> Expression:
        """``base[index]``; a row of a row is one access with two indices, what a stored pointer leads to is not."""
        stripped = _stripped(base)
        found = self._place(stripped)
        if isinstance(found, AddressOf) and isinstance(index, Number) and index.value == 0:
            return found.object
        if isinstance(found, Element) and self._type_kind(stripped) in TypeKind.ARRAYS:
            return Element(found.base, (*found.indices, index))
        return Element(found, (index,))

    def _place(self, node: Node) -> Expression:
        """An array or pointer that is indexed, which does not take its address."""
        return self.read(node)

    def _member(self, node: Node) -> Expression:
        cursor = self._clang.clang_getCursorReferenced(node.cursor)
        name = self._unit.name(node.cursor)
        if cursor.kind in _FUNCTIONS:
            return Constant(self._declarations.call_name(cursor))
        static = self._declarations.variable(cursor)
        if static is not None:  # a class's static variable
            return self._unread(node) if self._objects.made_late(cursor) else Name(static)
        parts = _expressions_in(node)
        if not parts:
            return Member(Deref(Name(self.this)), name) if self.this is not None else self._unread(node)
        if is_reference(self._clang.clang_getCursorType(cursor)):
            return Deref(Member(self.read(parts[0]), name))
        given = self._clang.clang_getCursorType(node.cursor)
        kind = None if self._declarations.is_volatile(given) else self._declarations.type(given)
        if self._type_kind(parts[0]) == TypeKind.POINTER:
            return Member(_dereferenced(self.read(parts[0])), name, type=kind)
        if not name:  # an anonymous struct or union inside: its fields are the outer's
            return self.read(parts[0])
        return Member(self.read(parts[0]), name, type=kind)

    def assigned_in(self, node: Node) -> list[Node]:
        """What the node itself assigns."""
        if node.kind == Kind.COMPOUND_ASSIGNMENT:
            return node.children[:1]
        if node.kind == Kind.BINARY_OPERATOR:
            is_assignment = self._binary_operator(node) == "="
            return node.children[:1] if is_assignment else []
        if node.kind == Kind.UNARY_OPERATOR:
            operator = self._unary_operator(node)
            return node.children[:1] if operator in ("++", "--") else []
        return []

    def is_behind_pointer(self, node: Node) -> bool:
        """Whether an object is reached through a pointer: ``*p``, ``p[i]``, ``p->x``, not ``a[i]`` of an array."""
        place = node = _stripped(node)
        while node.kind in (Kind.ARRAY_SUBSCRIPT_EXPR, Kind.MEMBER_REF_EXPR):
            if not node.children:
                return True  # a member of *this
            node = _stripped(node.children[0])
            if self._type_kind(node) == TypeKind.POINTER:
                return True
        if node.kind == Kind.UNARY_OPERATOR:
            return self._unary_operator(node) == "*"
        if node is not place and node.kind == Kind.DECL_REF_EXPR:  # libclang takes an array's parameter for an array
            symbol = self._declarations.variable(self._clang.clang_getCursorReferenced(node.cursor))
            return symbol is None or symbol.pointer
        return node.kind == Kind.CALL_EXPR

    def base_of(self, node: Node) -> str:
        """The kind of type an expression has (:class:`Type`'s ``base``)."""
        return base_of_kind(self._type_kind(node))

    def _type_kind(self, node: Node) -> int:
        found: int = self._clang.clang_getCanonicalType(self._clang.clang_getCursorType(node.cursor)).kind
        return found

    # ---- operators -

    def _unary(self, node: Node) -> Expression:
        code = self._clang.clang_getCursorUnaryOperatorKind(node.cursor)
        operator = UNARY_OPERATORS.get(code)
        if operator is None or len(node.children) != 1:
            return self._unread(node)
        child = node.children[0]
        if operator == "&":
            return self._address(child)
        if operator == "*":
            return self._dereference(child)
        value = self.read(child)
        if operator in ("++", "--"):
            return Assignment(value, operator[0], Number(1), gives_old=code in POSTFIX_OPERATORS)
        if operator in ("+", "__extension__"):
            return value
        if operator.startswith("__"):
            return self._unread(node)
        return self._folded(node, Operation("neg" if operator == "-" else operator, (value,), wraps=self._wraps(node)))

    def _address(self, child: Node) -> Expression:
        value = self.read(child)
        if isinstance(value, Deref):
            return value.pointer
        if isinstance(value, Constant):
            return value
        if isinstance(value, Operation):  # a compound literal's
            return Unread(self.spelling(child), (value,))
        mark_targets(value)
        return AddressOf(value)

    def _dereference(self, child: Node) -> Expression:
        stripped = _stripped(child)
        kind = self._type_kind(stripped)
        if kind in TypeKind.ARRAYS:
            return self._element(stripped, Number(0))
        pointee = self._clang.clang_getPointeeType(self._clang.clang_getCursorType(stripped.cursor))
        if kind in (TypeKind.FUNCTION_PROTOTYPE, TypeKind.FUNCTION_NO_PROTOTYPE) or pointee.kind in (
            TypeKind.FUNCTION_PROTOTYPE,
            TypeKind.FUNCTION_NO_PROTOTYPE,
        ):
            return self.read(child)
        if stripped.kind == Kind.BINARY_OPERATOR and self._binary_operator(stripped) == "+":
            base, index = stripped.children
            if self._type_kind(base) in TypeKind.INTEGERS:
                base, index = index, base
            return self._element(base, self.read(index))
        return _dereferenced(self.read(child))

    def _binary(self, node: Node) -> Expression:
        operator = self._binary_operator(node)
        if operator is None or len(node.children) != 2:
            return self._unread(node)
        left, right = self.read(node.children[0]), self.read(node.children[1])
        if operator == "=":
            return Assignment(left, None, right)
        compares = operator in ("<", "<=", ">", ">=", "==", "!=")
        wraps = max(map(self._wraps, node.children if compares else [node]))
        return self._folded(node, Operation(operator, (left, right), wraps=wraps))

    def _wraps(self, node: Node) -> int:
        """The bytes of an unsigned integer, 0 for all other types."""
        found = self._clang.clang_getCanonicalType(self._clang.clang_getCursorType(node.cursor))
        return max(0, self._clang.clang_Type_getSizeOf(found)) if found.kind in TypeKind.UNSIGNED else 0

    def _compound_assignment(self, node: Node) -> Expression:
        operator = self._binary_operator(node)
        if operator is None or len(node.children) != 2:
            return self._unread(node)
        left, right = node.children
        target, value, operator = self.read(left), self.read(right), operator.removesuffix("=")
        if isinstance(target, Name) and self._converts(left, right, operator, value):
            # The right side has the type of the computation, except for shifts.
            reckoned = Operation(operator, (target, value), wraps=self._wraps(right))
            return Assignment(target, None, Cast(self._cast_type(left), reckoned))
        return Assignment(target, operator, value)

    def _converts(self, left: Node, right: Node, operator: str, value: Expression) -> bool:
        """Whether a compound assignment computes in another type than its variable's, which may matter."""
        if not (self._is_whole(left) and self._is_whole(right)) or operator in ("<<", ">>"):
            return False
        to, origin = self._cast_type(left), self._cast_type(right)
        alike = (to.bytes, to.unsigned) == (origin.bytes, origin.unsigned)
        small = isinstance(value, Number) and 0 <= value.value < _SMALLEST_RANGE and operator in ("+", "-", "*")
        return not (alike or small)

    def _conditional(self, node: Node) -> Expression:
        if len(node.children) != 3:
            return self._unread(node)
        return self._folded(node, Operation("?:", tuple(map(self.read, node.children)), wraps=self._wraps(node)))

    def _folded(self, node: Node, operation: Operation) -> Expression:
        """An integer constant expression becomes its value, as the compiler computes it."""
        if not all(isinstance(part, Number) for part in operation.arguments):
            return operation
        value = self._unit.evaluate(node.cursor)
        return Number(value) if isinstance(value, int) else operation

    def _sizeof(self, node: Node) -> Expression:
        value = self._unit.evaluate(node.cursor)
        if value is not None:
            return Number(value)
        return self._size_of_variable_array(node)

    def _size_of_variable_array(self, node: Node) -> Expression:
        parts = _expressions_in(node)
        array = self.read(_stripped(parts[0])) if len(parts) == 1 else None
        if not isinstance(array, Name) or not array.symbol.dimensions or array.symbol.type.bytes is None:
            return self._size_of_type(node)
        size: Expression = Number(array.symbol.type.bytes)
        for bound in array.symbol.dimensions:
            if bound.upper is None:
                return self._unread(node)
            size = Operation("*", (size, Operation("+", (bound.upper, Number(1)))))
        return size

    def _size_of_type(self, node: Node) -> Expression:
        """An unknown size, of a type that depends on these values."""
        lengths = tuple(self.read(part) for part in _expressions_in(node))
        if any(isinstance(e, Assignment | Invocation | Unread) for length in lengths for e in length.walk()):
            return self._unread(node)
        return Operation("sizeof", lengths)

    def _cast(self, node: Node) -> Expression:
        parts = _expressions_in(node)
        if len(parts) != 1:
            return self._unread(node)
        value = self.read(parts[0])
        if isinstance(value, Number):
            folded = self._unit.evaluate(node.cursor)
            if isinstance(folded, int):
                return Number(folded)
        whole = self._is_whole(node) and self._is_whole(parts[0])
        return Cast(self._cast_type(node), value, keeps=whole and self._keeps(node, parts[0], value))

    def _cast_type(self, node: Node) -> Type:
        return self._declarations.type(self._clang.clang_getCursorType(node.cursor))

    def _list(self, node: Node) -> Expression:
        if self._objects.has_destructor(self._clang.clang_getCursorType(node.cursor)):
            return self._unread(node)
        return Operation("{}", tuple(self._list_part(part) for part in _expressions_in(node)))

    def _list_part(self, node: Node) -> Expression:
        """A value of an initialiser; of ``.x = value`` and ``[3] = value`` the value."""
        parts = _expressions_in(node)
        designated = self._text.data[node.start : node.start + 1] in (b".", b"[")
        return self.read(parts[-1] if designated and node.kind == Kind.UNEXPOSED_EXPR and parts else node)

    def _compound_literal(self, node: Node) -> Expression:
        parts = _expressions_in(node)
        return self.read(parts[0]) if len(parts) == 1 else self._unread(node)

    # ---- calls -----

    def _call(self, node: Node) -> Expression:
        target = self._clang.clang_getCursorReferenced(node.cursor)
        if self._destroys(node, target):
            return self._unread(node)
        if target.kind == Kind.CONSTRUCTOR:
            arguments = tuple(self.read(child) for child in node.children if child.kind >= Kind.UNEXPOSED_EXPR)
            return Invocation(self._declarations.call_name(target), arguments)
        if not node.children:
            return self._unread(node)
        callee, *rest = node.children
        stripped = _stripped(callee)
        while stripped.kind == Kind.UNARY_OPERATOR and len(stripped.children) == 1:  # (*f)(x)
            stripped = _stripped(stripped.children[0])
        name = self._unit.name(target) if target.kind in _FUNCTIONS else ""
        if name.startswith("operator") and not name[8:9].isalnum() and stripped.kind != Kind.MEMBER_REF_EXPR:
            return self._operator_call(node, target)
        if target.kind not in _FUNCTIONS:
            through = self.read(callee)
            arguments = tuple(self.read(child) for child in rest)
            # What the pointer is read from has effects of its own only in odd cases, which stay unread.
            if any(isinstance(part, Assignment | Invocation | Unread) for part in through.walk()):
                return Unread(self.spelling(node), (through, *arguments))
            return Invocation(None, arguments)
        key = self._declarations.call_name(target)
        if self._calls_back(key, target):
            return self._unread(node)
        self._declarations.note_library(key, target)
        arguments = self._arguments(key, rest, target)
        if target.kind == Kind.CXX_METHOD and not self._clang.clang_CXXMethod_isStatic(target):
            arguments = (self._object(stripped), *arguments)
        return self._result(self._method_name(target, key), arguments, target)

    def _destroys(self, node: Node, target: Cursor) -> bool:
        """Whether a call destroys objects, or creates some that are destroyed at the statement's end."""
        if target.kind in _FUNCTIONS:
            return self._objects.call_destroys(target)
        made = self._objects.has_destructor(self._clang.clang_getCursorType(node.cursor))
        return made or target.kind == Kind.DESTRUCTOR

    def _calls_back(self, key: str, target: Cursor) -> bool:
        """Whether a known template of the C++ library calls code of the program: to compare, or to swap."""
        if key not in ("std::max", "std::min", "std::swap"):
            return False
        types = self._objects.argument_types(target)
        values = [self._clang.clang_getPointeeType(found) for found in types if is_reference(found)]
        if key == "std::swap":
            return not all(map(self._objects.is_plain, values))
        value = values[0] if values else self._clang.clang_getCursorResultType(target)  # max({a, b}) gives none
        told_how = len(types) > (2 if values else 1)
        return told_how or base_of_kind(self._clang.clang_getCanonicalType(value).kind) == "struct"

    def _method_name(self, target: Cursor, key: str) -> str | None:
        """None where the call alone does not tell the function: virtual methods and lambdas."""
        if target.kind == Kind.CXX_METHOD and (
            self._clang.clang_CXXMethod_isVirtual(target) or self._unit.name(target) == "operator()"
        ):
            return None
        return key

    def _result(self, name: str | None, arguments: tuple[Expression, ...], target: Cursor) -> Expression:
        """A call's value. A reference that is returned is a pointer the language dereferences by itself."""
        call = Invocation(name, arguments)
        if name is not None and summaries.lookup(name, "c") is not None:
            return call
        return Deref(call) if is_reference(self._clang.clang_getCursorResultType(target)) else call

    def _arguments(self, key: str, nodes: list[Node], target: Cursor) -> tuple[Expression, ...]:
        found = []
        forgets = _forgets(key) and not self._is_programs(target)
        references = self._reference_parameters(target)
        for node in nodes:
            stripped = _stripped(node)
            symbol = self._symbol_of(stripped) if forgets else None
            before = symbol.target if symbol is not None else False
            found.append(self.read(node))
            # An address that is used during the call only leads nowhere else.
            if symbol is not None and not before:
                object.__setattr__(symbol, "target", False)
            if len(found) - 1 in references:
                found[-1] = self._referred(found[-1], key, forgets)
        return tuple(found)

    def _is_programs(self, function: Cursor) -> bool:
        """Whether the program has a function of its own by a library's name."""
        defined = self._clang.clang_getCursorDefinition(function).kind in _FUNCTIONS
        return defined and not self._unit.place(function)[2]

    @staticmethod
    def _referred(value: Expression, key: str, forgets: bool) -> Expression:
        """What stands for an argument that is passed by reference: its address, if a library writes there."""
        function = summaries.lookup(key, "c") if forgets else None
        if function is None:
            mark_targets(value)
        elif function.writes and not isinstance(value, Unread):
            return value.pointer if isinstance(value, Deref) else AddressOf(value)
        return value

    def _reference_parameters(self, function: Cursor) -> frozenset[int]:
        """C++: the parameters that are references to their arguments."""
        types = self._objects.argument_types(function)
        return frozenset(number for number, found in enumerate(types) if is_reference(found))

    def _symbol_of(self, node: Node) -> Symbol | None:
        """The variable an argument is an address in: ``&x``, ``&x[i]``, ``x`` and ``x[i]`` for arrays, ``(char *)x + 3``."""
        while True:
            node = _stripped(node)
            if (node.kind == Kind.UNARY_OPERATOR and self._unary_operator(node) == "&") or (
                node.kind in (Kind.ARRAY_SUBSCRIPT_EXPR, Kind.MEMBER_REF_EXPR) and node.children
            ):
                node = node.children[0]
            elif node.kind == Kind.C_CAST_EXPR and _expressions_in(node):
                node = _expressions_in(node)[0]
            elif node.kind == Kind.BINARY_OPERATOR and self._type_kind(node) == TypeKind.POINTER:
                left, right = node.children
                node = right if self._type_kind(left) in TypeKind.INTEGERS else left
            else:
                break
        if node.kind != Kind.DECL_REF_EXPR:
            return None
        return self._declarations.variable(self._clang.clang_getCursorReferenced(node.cursor))

    def _unary_operator(self, node: Node) -> str | None:
        return UNARY_OPERATORS.get(self._clang.clang_getCursorUnaryOperatorKind(node.cursor))

    def _binary_operator(self, node: Node) -> str | None:
        return BINARY_OPERATORS.get(self._clang.clang_getCursorBinaryOperatorKind(node.cursor))

    def _operator_call(self, node: Node, target: Cursor) -> Expression:
        """C++: an operator that a class defines. Its operands surround the operator's name."""
        name = self._unit.name(target)
        operands = [
            child
            for child in node.children
            if _stripped(child).kind != Kind.DECL_REF_EXPR or self._unit.name(_stripped(child).cursor) != name
        ]
        if name == "operator=" and len(operands) == 2 and self._is_plain(operands[0], target):
            return Assignment(self.read(operands[0]), None, self.read(operands[1]))
        key = self._declarations.call_name(target)
        if target.kind == Kind.CXX_METHOD and operands:
            arguments = (self._address(operands[0]), *self._arguments(key, operands[1:], target))
        else:
            arguments = self._arguments(key, operands, target)
        return self._result(self._method_name(target, key), arguments, target)

    def _is_plain(self, node: Node, operator: Cursor) -> bool:
        """Whether an object is one that C has, too, and assigned to as C does."""
        by_itself = bool(self._clang.clang_CXXMethod_isDefaulted(operator))
        return by_itself and self._objects.is_plain(self._clang.clang_getCursorType(node.cursor))

    def _object(self, callee: Node) -> Expression:
        """The object a method is called on, as its address."""
        parts = [child for child in callee.children if child.kind >= Kind.UNEXPOSED_EXPR]
        if not parts:
            return Name(self.this) if self.this is not None else Unread(self.spelling(callee))
        if self._type_kind(parts[0]) == TypeKind.POINTER:
            return self.read(parts[0])
        return self._address(parts[0])


_READERS: dict[int, Callable[[Expressions, Node], Expression]] = {
    Kind.UNEXPOSED_EXPR: Expressions._unexposed,
    Kind.DECL_REF_EXPR: Expressions._reference,
    Kind.MEMBER_REF_EXPR: Expressions._member,
    Kind.CALL_EXPR: Expressions._call,
    Kind.INTEGER_LITERAL: Expressions._integer,
    Kind.FLOATING_LITERAL: Expressions._real,
    Kind.IMAGINARY_LITERAL: Expressions._string,
    Kind.STRING_LITERAL: Expressions._string,
    Kind.CHARACTER_LITERAL: Expressions._evaluated,
    Kind.PAREN_EXPR: Expressions._paren,
    Kind.UNARY_OPERATOR: Expressions._unary,
    Kind.ARRAY_SUBSCRIPT_EXPR: Expressions._subscript,
    Kind.BINARY_OPERATOR: Expressions._binary,
    Kind.COMPOUND_ASSIGNMENT: Expressions._compound_assignment,
    Kind.CONDITIONAL_OPERATOR: Expressions._conditional,
    Kind.COMPOUND_LITERAL: Expressions._compound_literal,
    Kind.INIT_LIST_EXPR: Expressions._list,
    Kind.GNU_NULL_EXPR: Expressions._null,
    Kind.NULLPTR_LITERAL: Expressions._null,
    Kind.BOOL_LITERAL: Expressions._evaluated,
    Kind.THIS_EXPR: Expressions._this,
    Kind.SIZEOF_EXPR: Expressions._sizeof,
    **dict.fromkeys(_CASTS, Expressions._cast),
}


def _forgets(name: str) -> bool:
    """Whether a function keeps none of the addresses passed to it, and returns none of them."""
    name = name.removeprefix("P")
    if name.startswith("MPI_"):
        return not _MPI_KEEPS.match(name)
    function = summaries.lookup(name, "c")
    return function is not None and not function.stores and function.returns is None and not function.calls


def _stripped(node: Node) -> Node:
    """Without parentheses and implicit conversions."""
    while node.kind in (Kind.UNEXPOSED_EXPR, Kind.PAREN_EXPR):
        parts = _expressions_in(node)
        if len(parts) != 1:
            break
        node = parts[0]
    return node


def _expressions_in(node: Node) -> list[Node]:
    return [child for child in node.children if Kind.UNEXPOSED_EXPR <= child.kind < Kind.UNEXPOSED_STMT]


def _dereferenced(pointer: Expression) -> Expression:
    if isinstance(pointer, AddressOf):
        return pointer.object
    return Deref(pointer)


def _outermost_expressions(node: Node) -> list[Node]:
    """The outermost expressions below a statement or declaration."""
    found: list[Node] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if Kind.UNEXPOSED_EXPR <= current.kind < Kind.UNEXPOSED_STMT:
            found.append(current)
        else:
            pending.extend(reversed(current.children))
    return found


def mark_targets(place: Expression) -> None:
    """Say that the address of an object is taken, which may be one of several variables."""
    base = base_symbol(place)
    if base is not None:
        mark_target(base)
    for other in _choices(place):
        mark_targets(other)


def _choices(place: Expression) -> tuple[Expression, ...]:
    """The objects of which an expression may be one."""
    match place:
        case Operation("?:", arguments):
            return arguments[1:]
        case Operation(",", arguments):
            return arguments[-1:]
        case Assignment(target):
            return (target,)
        case Cast(_, value):
            return (value,)
        case Member(base):
            return (base,)
        case Invocation(str(name), arguments):
            function = summaries.lookup(name, "c")
            return tuple(arguments[n] for n in function.chooses if n < len(arguments)) if function is not None else ()
    return ()


def base_symbol(place: Expression) -> Symbol | None:
    """The variable whose storage an object is in, None if a pointer leads there."""
    while True:
        if isinstance(place, Name):
            return place.symbol
        if isinstance(place, Member):
            place = place.base
        elif isinstance(place, Element):
            if isinstance(place.base, Name) and place.base.symbol.pointer:
                return None
            place = place.base
        else:
            return None
