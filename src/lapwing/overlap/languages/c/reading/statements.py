"""Statements: a function's body, from libclang's tree to the program model's.

libclang leaves out what it cannot make sense of, and sees one configuration of what conditional compilation offers. So every
token between statements is looked at, too: what no statement covers is Opaque.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lapwing.overlap import mpi
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
    Storage,
    Symbol,
    Unread,
)
from lapwing.overlap.ir.expressions import Text as Literal
from lapwing.overlap.ir.program import LeftOut
from lapwing.overlap.ir.statements import (
    Assign,
    Block,
    Call,
    Compound,
    Declare,
    Evaluate,
    If,
    Jump,
    Nothing,
    Opaque,
    Select,
    Statement,
    While,
)
from lapwing.overlap.languages.c.parsing.text import EFFECTIVE, INCLUDES, Directive, Region, Text
from lapwing.overlap.languages.c.reading.expressions import Expressions, mark_targets
from lapwing.overlap.languages.c.reading.libclang import TALLEST, Diagnostic, Kind, Node, TypeKind, Unit, Uses
from lapwing.overlap.languages.c.reading.loops import PointedKinds, counted
from lapwing.overlap.languages.c.reading.symbols import Declarations, give_bounds, is_reference
from lapwing.overlap.source.predefined_macros import is_predefined
from lapwing.overlap.source.spans import Span

_STRUCTURED = frozenset(
    (
        Kind.COMPOUND_STMT,
        Kind.IF_STMT,
        Kind.FOR_STMT,
        Kind.WHILE_STMT,
        Kind.DO_STMT,
        Kind.SWITCH_STMT,
        Kind.LABEL_STMT,
        Kind.CASE_STMT,
        Kind.DEFAULT_STMT,
    )
)
_ENDS_WITH_STATEMENT = (_STRUCTURED | {Kind.UNEXPOSED_STMT, Kind.FOR_RANGE_STMT}) - {Kind.COMPOUND_STMT, Kind.DO_STMT}
_RETURNS_TWICE = frozenset(("setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork"))
_LEAVES = frozenset(("longjmp", "_longjmp", "siglongjmp"))
# Declarations that do nothing: struct, union, class, enum, function, typedef, using and their like, static_assert.
_NAMING = frozenset((2, 3, 4, 5, 8, 20, 33, 34, 35, 36))  # types, functions, what C++ uses of namespaces
_HARMLESS = _NAMING | {602}  # static_assert
_NAMES_TYPE = frozenset((20, 36))  # typedef, using
_STANDS_ALONE = frozenset(
    ("barrier", "taskwait", "taskyield", "flush", "cancel", "cancellation", "threadprivate", "declare", "end", "depobj")
)
_REASONS = {
    Kind.ASM_STMT: "assembler",
    Kind.MS_ASM_STMT: "assembler",
    Kind.INDIRECT_GOTO_STMT: "a computed goto",
    Kind.TRY_STMT: "C++ exceptions",
    Kind.CATCH_STMT: "C++ exceptions",
    Kind.FOR_RANGE_STMT: "a range-based for",
}


@dataclass(frozen=True)
class Given:
    """What is known of macros. ``macros``: those that are said to be defined, or not to be. ``all``: every one is certain, for
    the compiler's own command is known. ``installed``: those that the compiler or a header of the system's defines; another one
    may define others, of which the usual names are known. All else is defined in the program's own text or not at all: see
    ``assumed``. ``because``: of what that text defines, the macros by which it does."""

    macros: frozenset[str]
    all: bool = False
    installed: frozenset[str] = frozenset()
    because: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def decide(self, region: Region) -> bool:
        """Whether it is known what is compiled of the region."""
        return self.all or not any(name in self.installed or is_predefined(name) for name in self._open(region))

    def assumed(self, region: Region) -> frozenset[str]:
        """The macros of a region that are taken as undefined but for what the program's own text says of them."""
        return frozenset() if self.all else self._open(region)

    def _open(self, region: Region) -> frozenset[str]:
        found: set[str] = set()
        waiting = set(region.macros())
        while waiting:
            name = waiting.pop()
            found.add(name)
            waiting |= self.because.get(name, frozenset()) - found
        return frozenset(found - self.macros)


class Tangled(Exception):
    """The statement around cannot be read; the message is the reason."""


@dataclass(frozen=True)
class _Barrier:
    """Bytes of a block that are Opaque whatever libclang read there."""

    start: int
    end: int
    reason: str
    joins_before: bool = False
    joins_after: bool = False


@dataclass
class _Item:
    """A statement of a block, before it is read: a node, or nothing but a reason why it is not."""

    start: int
    end: int
    node: Node | None
    reason: str | None = None
    pragma: int | None = None  # where a pragma that belongs to the statement starts


def _holds(items: Sequence[_Item], piece: _Barrier | Region | Directive) -> bool:
    """Whether a piece of the text is inside a statement, which then sees to it."""
    return any(item.start <= piece.start and piece.end <= item.end for item in items)


class Statements:
    """Reads the body of one function."""

    def __init__(
        self,
        unit: Unit,
        declarations: Declarations,
        expressions: Expressions,
        text: Text,
        source: int,
        uses: Uses,
        errors: Sequence[Diagnostic],
        skipped: Sequence[tuple[int, int]],
        given: Given,
    ) -> None:
        self._unit = unit
        self._clang = unit._clang
        self._declarations = declarations
        self._objects = declarations.objects
        self._is_cpp = declarations.is_cpp
        self._expressions = expressions
        self._text = text
        self._source = source
        self._uses = uses
        self._errors = sorted(errors, key=lambda error: error.offset)
        self._error_offsets = [error.offset for error in self._errors]
        self._skipped = skipped
        self._given = given
        self.left_out: dict[int, LeftOut] = {}  # by where it starts
        self._empty: frozenset[int] = frozenset()
        self._written: dict[Node, frozenset[str]] = {}

    # ---- the body ----

    def body(self, node: Node) -> Block:
        """The block of a function's body, braces excluded."""
        everything = list(node.walk())
        self._empty = frozenset(inner.start for inner in everything if inner.kind == Kind.NULL_STMT)
        inside = self._inside_braces(node)
        if inside is None:
            span = Span(self._source, node.start, node.end)
            return Block((Opaque("a macro writes the braces of this body", span=span),), span, "chain")
        span = Span(self._source, *inside)
        reason = self._upsetting(everything) or self._broken_braces(*inside)
        if reason is not None:
            return Block(self._all_opaque(*inside, reason), span)
        try:
            return self._block(node, *inside)
        except Tangled as error:
            return Block(self._all_opaque(*inside, str(error)), span)

    def _upsetting(self, nodes: Sequence[Node]) -> str | None:
        """Why the order of a function's statements says little of what it does."""
        for node in nodes:
            if node.kind in (Kind.INDIRECT_GOTO_STMT, Kind.ADDRESS_OF_LABEL):
                return "a computed goto"
            if node.kind == Kind.CALL_EXPR and self._unit.name(node.cursor) in _RETURNS_TWICE:
                return f"{self._unit.name(node.cursor)}, which returns more than once"
        return None

    def _broken_braces(self, start: int, end: int) -> str | None:
        """Why the end that libclang found for the body cannot be right."""
        if any(region.end > end for region in self._text.regions_in(start, end, whole=False)):
            return "conditional compilation that begins in this function ends outside"
        depth = 0
        for number in self._text.tokens(start, end):
            token = self._text.data[self._text.starts[number]]
            if token in b"{}" and not self._is_skipped(self._text.starts[number]):
                depth += 1 if token == ord("{") else -1
                if depth < 0:
                    break
        return None if depth == 0 else "braces that do not match"

    def _all_opaque(self, start: int, end: int, reason: str) -> tuple[Statement, ...]:
        tokens = self._text.tokens(start, end)
        first = [self._text.starts[tokens[0]]] if tokens else []
        last = [self._text.ends[tokens[-1]]] if tokens else []
        directives = self._text.directives_in(start, end)
        first += [directive.start for directive in directives]
        last += [directive.end for directive in directives]
        if not first:
            return ()
        return (Opaque(reason, span=Span(self._source, min(first), max(last))),)

    def _inside_braces(self, node: Node) -> tuple[int, int] | None:
        """The bytes between a compound statement's braces, None where a macro writes one of them."""
        data = self._text.data
        if data[node.start : node.start + 1] != b"{" or data[node.end - 1 : node.end] != b"}":
            return None
        if node.macro >= 0 or self._uses.at(node.start) >= 0 or self._uses.at(node.end - 1) >= 0:
            return None
        return node.start + 1, node.end - 1

    # ---- blocks ------

    def _block(self, node: Node, start: int, end: int) -> Block:
        """A compound statement's block; ``start`` and ``end``: what lies between its braces."""
        children = [child for child in node.children if not child.foreign]
        statements = self._statements(children, start, end)
        return Block(statements, Span(self._source, start, end))

    def _statements(self, children: Sequence[Node], start: int, end: int) -> tuple[Statement, ...]:
        items = self._items(children)
        if items and (items[0].start < start or max(item.end for item in items) > end):
            raise Tangled("braces that do not match")
        items = self._with_barriers(items, self._barriers(items, start, end))
        items = self._with_gaps(items, start, end)
        items = self._with_stray_errors(items, start, end)
        found: list[Statement] = []
        for item in items:
            found += self._read_item(item)
        return tuple(found)

    def _items(self, children: Sequence[Node]) -> list[_Item]:
        """One item for a child; what shares a macro's use or overlaps becomes one that is not looked into."""
        items: list[_Item] = []
        for child in children:
            item = _Item(self._start(child), self._end(child), child)
            if items and item.start < items[-1].end:
                before = items[-1]
                before.end = max(before.end, item.end)
                before.node, before.reason = None, "a macro expands to more than one statement"
            else:
                items.append(item)
        return items

    def _start(self, node: Node) -> int:
        """Where a statement starts; one that a macro writes, where the macro's use does."""
        return node.start if node.macro < 0 else self._uses.starts[node.macro]

    def _end(self, node: Node) -> int:
        """Where a statement ends, its semicolon included."""
        last = node.end if node.macro < 0 else self._uses.ends[node.macro]
        if node.kind in _ENDS_WITH_STATEMENT:
            parts = [child for child in node.children if not child.foreign]
            return max(last, self._end(parts[-1])) if parts else last
        if node.kind in (Kind.COMPOUND_STMT, Kind.NULL_STMT, Kind.TRY_STMT):
            return last
        number = self._text.next_token(last)
        if number is None or self._text.token(number) != b";":
            return last
        offset = self._text.starts[number]
        if offset in self._empty or (self._text.data[last - 1 : last] == b";" and node.macro < 0):
            return last
        return self._text.ends[number]

    def _barriers(self, items: Sequence[_Item], start: int, end: int) -> list[_Barrier]:
        regions = [region for region in self._regions(start, end) if not _holds(items, region)]
        found = [self._conditional(region) for region in regions if not self._is_decided(region, items)]
        result = [barrier for barrier in found if barrier is not None]
        for directive in self._directives(start, end):
            if _holds(items, directive):
                continue
            if directive.name in INCLUDES:
                result.append(_Barrier(directive.start, directive.end, f"an included file: {directive.rest}"))
            elif directive.name == "pragma" and directive.rest.split()[:1] in (["omp"], ["acc"]):
                words = directive.rest.split()
                alone = len(words) > 1 and words[1].split("(")[0] in _STANDS_ALONE
                result.append(_Barrier(directive.start, directive.end, _pragma_name(directive), joins_after=not alone))
        return sorted(result, key=lambda barrier: (barrier.start, -barrier.end))

    def _regions(self, start: int, end: int, whole: bool = True) -> list[Region]:
        """The conditional regions in those bytes; not those inside a branch that is left out."""
        found = self._text.regions_in(start, end, whole)
        return [region for region in found if not self._is_skipped(region.start)]

    def _directives(self, start: int, end: int) -> list[Directive]:
        found = self._text.directives_in(start, end)
        return [directive for directive in found if not self._is_skipped(directive.start)]

    def _is_skipped(self, offset: int) -> bool:
        number = bisect.bisect_right(self._skipped, (offset, 1 << 62)) - 1
        return number >= 0 and offset < self._skipped[number][1] and offset > self._skipped[number][0]

    def _is_decided(self, region: Region, items: Sequence[_Item]) -> bool:
        """Whether the branches that are left out are so for certain, by what was given, and the one that is not holds whole
        statements."""
        if not self._given.decide(region):
            return False
        touched = [item for item in items if item.start < region.end and region.start < item.end]
        if not all(any(low <= item.start and item.end <= high for low, high in region.branches) for item in touched):
            return False
        self._note_left_out(region)
        return True

    def _note_left_out(self, region: Region) -> None:
        hidden = [(low, high) for low, high in region.branches if self._hides(low, high)]
        compiled = any(not self._is_skipped(self._text.starts[n]) for n in self._text.tokens(region.start, region.end))
        effective = any(d.name in EFFECTIVE for d in self._directives(region.start, region.end))
        if not (hidden or compiled or effective):
            return
        self.left_out[region.start] = LeftOut(
            Span(self._source, region.start, region.end),
            tuple(Span(self._source, low, high) for low, high in hidden),
            not (compiled or effective),
            self._given.assumed(region),
        )

    def _hides(self, low: int, high: int) -> bool:
        """Whether a branch is left out, and holds something."""
        if not self._is_skipped(low):
            return False
        return bool(self._text.tokens(low, high)) or any(
            directive.name in EFFECTIVE and self._is_skipped(directive.start)
            for directive in self._text.directives_in(low, high)
        )

    def _conditional(self, region: Region) -> _Barrier | None:
        """The barrier a conditional region is, if any branch that is left out holds something."""
        before = after = hidden = False
        for low, high in region.branches:
            if not self._hides(low, high):
                continue
            hidden = True
            tokens = self._text.tokens(low, high)
            if tokens:
                if self._depth(tokens) != (0, 0):
                    raise Tangled(f"conditional compilation around braces: {region.head}")
                before = before or self._text.token(tokens[0]) in (b"else", b"catch", b"while")
                after = after or self._text.token(tokens[-1]) not in (b";", b"}")
        if not hidden:
            return None
        return _Barrier(region.start, region.end, f"conditional compilation: {region.head}", before, after)

    def _depth(self, tokens: range) -> tuple[int, int]:
        """How many brackets stay open, and how far below its start the depth goes."""
        depth = lowest = 0
        for number in tokens:
            token = self._text.token(number)
            if token in (b"{", b"(", b"["):
                depth += 1
            elif token in (b"}", b")", b"]"):
                depth -= 1
                lowest = min(lowest, depth)
        return depth, lowest

    def _with_barriers(self, items: list[_Item], barriers: Sequence[_Barrier]) -> list[_Item]:
        for barrier in barriers:
            if _holds(items, barrier):
                continue
            touched = [item for item in items if item.start < barrier.end and barrier.start < item.end]
            start, end = barrier.start, barrier.end
            before = [item for item in items if item.end <= start]
            after = [item for item in items if item.start >= end]
            if barrier.joins_before and before:
                touched.append(before[-1])
            if barrier.joins_after and after:
                touched.append(after[0])
            start = min([start, *(item.start for item in touched)])
            end = max([end, *(item.end for item in touched)])
            items = [item for item in items if item not in touched]
            bisect.insort(items, _Item(start, end, None, barrier.reason), key=lambda item: item.start)
        return items

    def _with_gaps(self, items: list[_Item], start: int, end: int) -> list[_Item]:
        """Tokens that belong to no statement become Opaque ones; a pragma of a compiler's goes with the statement after it."""
        found: list[_Item] = []
        position = start
        for item in [*items, _Item(end, end, None)]:
            pragma = self._first_pragma(position, item.start)
            if pragma is not None and item.end > item.start:
                item.start, item.node, item.reason = pragma, None, "a pragma"
            tokens = [number for number in self._text.tokens(position, item.start) if not self._is_free(number)]
            if tokens:
                first, last = self._text.starts[tokens[0]], self._text.ends[tokens[-1]]
                found.append(_Item(first, last, None, self._reason_near(first, last)))
                position = last
            directives = [d.start for d in self._directives(position, item.start) if d.name == "pragma"]
            item.pragma = min(directives, default=None)
            found.append(item)
            position = item.end
        return found[:-1]

    def _first_pragma(self, start: int, end: int) -> int | None:
        """Where in those bytes a pragma is written as an operator, or by a macro."""
        for number in self._text.tokens(start, end):
            use = self._uses.at(self._text.starts[number])
            written = use >= 0 and self._expressions.writes_pragma(use)
            if written and not self._is_skipped(self._text.starts[number]):
                return self._text.starts[number]
        return None

    def _is_free(self, number: int) -> bool:
        """Tokens that mean nothing between statements: those left out by #if, and macros' uses that expand to nothing."""
        offset = self._text.starts[number]
        if self._is_skipped(offset):
            return True
        use = self._uses.at(offset)
        if use < 0 or self._expressions.writes_pragma(use):
            return False
        # What it expands to may be there, and not understood.
        return self._error_in(self._uses.starts[use], self._uses.ends[use]) is None

    def _reason_near(self, start: int, end: int) -> str:
        message = self._error_in(start, end)
        return f"not understood: {message}" if message else "not understood"

    def _error_in(self, start: int, end: int) -> str | None:
        number = bisect.bisect_left(self._error_offsets, start)
        if number < len(self._errors) and self._error_offsets[number] <= end:
            return self._errors[number].message
        return None

    def _with_stray_errors(self, items: list[_Item], start: int, end: int) -> list[_Item]:
        """An error that lies in no statement belongs to the one before it, or to the one after."""
        low, high = bisect.bisect_left(self._error_offsets, start), bisect.bisect_right(self._error_offsets, end)
        for number in range(low, high):
            offset = self._error_offsets[number]
            if any(item.start <= offset <= item.end for item in items):
                continue
            before = [item for item in items if item.end < offset]
            after = [item for item in items if item.start > offset]
            for item in [*before[-1:], *after[:1]]:
                item.node, item.reason = None, f"not understood: {self._errors[number].message}"
        return items

    # ---- one statement

    def _read_item(self, item: _Item) -> list[Statement]:
        span = Span(self._source, item.start, item.end)
        if item.node is None:
            return [Opaque(item.reason or "not understood", span=span)]
        if item.node.height > TALLEST:
            return [Opaque("nested too deeply", span=span)]
        statements = self._read(item.node)
        if item.pragma is not None and statements:
            first = statements[0]
            statements[0] = replace(first, span=replace(first.span, start=item.pragma))
        return statements

    def _read(self, node: Node) -> list[Statement]:
        """A statement; more than one only where a label has a label, or names nothing."""
        span = Span(self._source, self._start(node), self._end(node))
        if node.kind == Kind.UNEXPOSED_STMT:
            inner = [child for child in node.children if child.kind >= Kind.UNEXPOSED_STMT and child.kind < 350]
            if len(inner) == 1 and not node.macro >= 0:  # a statement with attributes, a compiler's pragma among them
                first, *rest = self._read(inner[0])
                return [replace(first, span=replace(first.span, start=min(node.start, first.span.start))), *rest]
        if node.kind in _STRUCTURED:
            reason = self._obstacle(node, span)
            if reason is None and node.kind != Kind.COMPOUND_STMT and any(child.foreign for child in node.children):
                reason = "an included file"
            if reason is not None:
                return [Opaque(reason, span=span)]
            try:
                return self._structured(node, span)
            except Tangled as error:
                return [Opaque(str(error), span=span)]
        reason = self._error_in(span.start, span.end)
        if reason is not None:
            return [Opaque(f"not understood: {reason}", span=span)]
        reason = self._conditional_in(span.start, span.end)
        if reason is not None:
            return [Opaque(reason, span=span)]
        try:
            return [self._plain(node, span)]
        except Tangled as error:
            return [Opaque(str(error), span=span)]

    def _value(self, node: Node) -> Expression:
        """An expression; where libclang itself only guesses at it, the whole statement counts as not understood."""
        self._expressions.guesses = 0
        value = self._expressions.read(node)
        if self._expressions.guesses:
            raise Tangled("not understood: an expression of an unknown kind")
        return value

    def _conditional_in(self, start: int, end: int) -> str | None:
        for region in self._regions(start, end, whole=False):
            try:
                barrier = self._conditional(region)
            except Tangled as error:
                return str(error)
            if barrier is not None:
                return barrier.reason
            if self._given.decide(region):
                self._note_left_out(region)
        return None

    def _obstacle(self, node: Node, span: Span) -> str | None:
        """Why a structured statement cannot be read: errors or conditional compilation outside its blocks."""
        if node.kind == Kind.COMPOUND_STMT:
            return None
        position = span.start
        inner = [
            (child.start, self._end(child))
            for child in node.children
            if child.kind >= Kind.UNEXPOSED_STMT and child.kind != Kind.DECL_STMT
        ]
        for start, end in [*inner, (span.end, span.end)]:
            if start > position:
                # An error at the very start of an inner statement is the inner statement's.
                message = self._error_in(position, start - 1)
                if message is not None:
                    return f"not understood: {message}"
                reason = self._conditional_in(position, start) or self._directive_in(position, start)
                if reason is not None:
                    return reason
            position = max(position, end)
        return None

    def _directive_in(self, start: int, end: int) -> str | None:
        """A pragma or an include between a statement's parts, where there are no braces around the part."""
        for directive in self._directives(start, end):
            if directive.name == "pragma":
                return _pragma_name(directive)
            if directive.name in INCLUDES:
                return f"an included file: {directive.rest}"
        return "a pragma" if self._first_pragma(start, end) is not None else None

    def _structured(self, node: Node, span: Span) -> list[Statement]:
        if node.kind == Kind.LABEL_STMT:
            return self._labelled(node, span)
        if node.kind == Kind.COMPOUND_STMT:
            return [Compound(self._sub_block(node), span=span)]
        if node.kind == Kind.IF_STMT:
            return [self._if(node, span)]
        if node.kind == Kind.FOR_STMT:
            return [self._for(node, span)]
        if node.kind in (Kind.WHILE_STMT, Kind.DO_STMT):
            return [self._while(node, span)]
        if node.kind == Kind.SWITCH_STMT:
            return [self._switch(node, span)]
        return [Opaque("a case label that is not directly in its switch", span=span)]

    def _labelled(self, node: Node, span: Span) -> list[Statement]:
        label = self._unit.name(node.cursor)
        inner = [child for child in node.children if child.kind >= Kind.UNEXPOSED_EXPR]
        if len(inner) != 1:
            return [Nothing(span=span, label=label)]
        statements = self._read(inner[0])
        if statements and statements[0].label is None:
            return [
                replace(statements[0], label=label, span=replace(statements[0].span, start=node.start)),
                *statements[1:],
            ]
        return [Nothing(span=Span(self._source, node.start, inner[0].start), label=label), *statements]

    def _sub_block(self, node: Node) -> Block:
        """The block that a statement inside another makes."""
        if node.kind == Kind.COMPOUND_STMT:
            inside = self._inside_braces(node)
            if inside is not None:
                return self._block(node, *inside)
            return self._macro_block(node)
        span = Span(self._source, node.start, self._end(node))
        statements = self._read(node)
        if len(statements) > 1:
            return Block((Opaque("several labels", span=span),), span, "single")
        span = statements[0].span if statements else span
        if node.macro >= 0 and not (node.exact and self._is_whole_use(node)):
            return _unchangeable(Block(tuple(statements), span, "chain"))
        return Block(tuple(statements), span, "single")

    def _is_whole_use(self, node: Node) -> bool:
        return (node.start, node.end) == (self._uses.starts[node.macro], self._uses.ends[node.macro])

    def _macro_block(self, node: Node) -> Block:
        """A block whose braces a macro writes: it is read, but nothing may be inserted."""
        span = Span(self._source, node.start, node.end)
        statements: list[Statement] = []
        for child in node.children:
            if child.foreign:
                statements.append(Opaque("an included file", span=span))
            else:
                statements += self._read(child)
        if any(isinstance(statement, Opaque) for statement in statements):
            return Block(
                (Opaque("a macro writes this block, which could not be read in full", span=span),), span, "chain"
            )
        # A semicolon after the macro's use ends what the macro wrote last.
        end = max([span.end, *(statement.span.end for statement in statements)])
        return _unchangeable(Block(tuple(statements), replace(span, end=end), "chain"))

    # ---- branches and loops

    def _if(self, node: Node, span: Span) -> Statement:
        parts = node.children
        first = self._text.next_token(node.start)
        word = self._text.token(first + 1) if first is not None and first + 1 < len(self._text.starts) else b""
        if len(parts) not in (2, 3) or not _is_expression(parts[0]) or word in (b"constexpr", b"consteval"):
            return Opaque("an if with a declaration in its condition", span=span)
        condition = self._value(parts[0])
        then = self._sub_block(parts[1])
        if len(parts) == 2:
            return If(condition, then, span=span)
        otherwise = self._sub_block(parts[2])
        if parts[2].kind == Kind.IF_STMT:
            otherwise = replace(otherwise, form="chain")
        return If(condition, then, otherwise, span=span)

    def _while(self, node: Node, span: Span) -> Statement:
        parts = node.children
        if len(parts) != 2:
            return Opaque("a loop with a declaration in its condition", span=span)
        body, condition = parts if node.kind == Kind.DO_STMT else (parts[1], parts[0])
        return While((self._value(condition),), self._sub_block(body), span=span)

    def _for(self, node: Node, span: Span) -> Statement:
        *header, body = node.children
        parts: list[Expression] = []
        for part in header:
            if part.kind == Kind.DECL_STMT:
                declared = self._declaration(part, span)
                if not isinstance(declared, Declare):
                    return Opaque("a for with a declaration that is not understood", span=span)
                parts += [
                    Assignment(Name(symbol), None, value) if value is not None else Name(symbol)
                    for symbol, value in declared.variables
                ]
            elif _is_expression(part):
                parts.append(self._value(part))
            elif part.kind != Kind.NULL_STMT:
                return Opaque("a for with a statement in its header", span=span)
        block = self._sub_block(body)
        if len(header) == 3 and len(parts) == 3:
            declares = header[0].kind == Kind.DECL_STMT
            kinds = self._compared_kinds(header[1])
            unsigned = bool(kinds & TypeKind.UNSIGNED)
            loop = counted(parts, block, declares, unsigned, self._pointed(header[1], body), span)
            if kinds & TypeKind.REALS:
                loop = None  # its last iteration is not the one before the bound
            if loop is not None:
                return loop
        return While(tuple(parts), block, span=span)

    def _pointed(self, condition: Node, body: Node) -> PointedKinds:
        places = (inner for inner in condition.walk() if _is_expression(inner))
        read = {self._expressions.base_of(place) for place in places if self._expressions.is_behind_pointer(place)}
        # The structures and rows on the way to a number are not read themselves.
        return PointedKinds(frozenset(read - {"struct", "other"}), self._written_kinds(body))

    def _written_kinds(self, node: Node) -> frozenset[str]:
        """The kinds of what is assigned through pointers in a statement."""
        if node not in self._written:
            found = frozenset(
                self._expressions.base_of(target)
                for target in self._expressions.assigned_in(node)
                if self._expressions.is_behind_pointer(target)
            )
            self._written[node] = found.union(*(self._written_kinds(child) for child in node.children))
        return self._written[node]

    def _compared_kinds(self, condition: Node) -> frozenset[int]:
        """The kinds of the types that a comparison compares."""
        while condition.kind == Kind.PAREN_EXPR:
            (condition,) = condition.children
        types = (self._clang.clang_getCursorType(child.cursor) for child in condition.children)
        return frozenset(self._clang.clang_getCanonicalType(found).kind for found in types)

    def _switch(self, node: Node, span: Span) -> Statement:
        if len(node.children) != 2 or not _is_expression(node.children[0]):
            return Opaque("a switch with a declaration in its condition", span=span)
        selector, body = node.children
        inside = self._inside_braces(body) if body.kind == Kind.COMPOUND_STMT else None
        if inside is None:
            return Opaque("a switch whose body is not in braces", span=span)
        groups = self._cases(body)
        if isinstance(groups, str):
            return Opaque(groups, span=span)
        cases = []
        for number, (start, nodes) in enumerate(groups):
            end = groups[number + 1][0] if number + 1 < len(groups) else inside[1]
            block = self._case(nodes, start, end, last=number + 1 == len(groups))
            if isinstance(block, str):
                return Opaque(block, span=span)
            cases.append(block)
        return Select(self._value(selector), tuple(cases), span=span)

    def _cases(self, body: Node) -> list[tuple[int, list[Node]]] | str:
        """The statements of each case with where its labels start; a sentence where they are not plain."""
        groups: list[tuple[int, list[Node]]] = []
        labels = 0
        for child in body.children:
            if child.foreign:
                return "a switch with an included file"
            if child.kind in (Kind.CASE_STMT, Kind.DEFAULT_STMT):
                start = child.start
                while child.kind in (Kind.CASE_STMT, Kind.DEFAULT_STMT):
                    labels += 1
                    inner = [part for part in child.children if part.kind >= Kind.UNEXPOSED_EXPR]
                    if len(inner) != (2 if child.kind == Kind.CASE_STMT else 1):
                        return "a switch with a range of cases or a case without a statement"
                    child = inner[-1]
                groups.append((start, [child]))
            elif not groups:
                return "a switch with a statement before its first case"
            else:
                groups[-1][1].append(child)
        everywhere = sum(inner.kind in (Kind.CASE_STMT, Kind.DEFAULT_STMT) for inner in _own(body, Kind.SWITCH_STMT))
        return "a switch with a case inside another statement" if everywhere != labels else groups

    def _case(self, nodes: list[Node], start: int, end: int, last: bool) -> Block | str:
        """One case's block: up to its break."""
        *rest, final = nodes
        ended = final.kind == Kind.BREAK_STMT
        kept = rest if ended else nodes
        inside = self._inside_braces(final) if len(nodes) == 1 and final.kind == Kind.COMPOUND_STMT else None
        if inside is not None and final.children and final.children[-1].kind == Kind.BREAK_STMT:
            # case 1: { …; break; } is the usual way to declare variables in a case
            return self._case(final.children, inside[0], inside[1], last)
        if not ended and not last and not _leaves(final):
            return "a switch with a case that runs into the next"
        if any(inner.kind == Kind.BREAK_STMT for node in kept for inner in _own_breaks(node)):
            return "a switch with a break inside a case"
        begin = nodes[0].start
        stop = final.start if ended else end
        if not kept:
            return Block((), Span(self._source, begin, stop))
        statements = self._statements(kept, begin, stop)
        return Block(statements, Span(self._source, begin, stop))

    # ---- plain statements

    def _plain(self, node: Node, span: Span) -> Statement:
        if _is_expression(node):
            return self._expression(node, span)
        if node.kind == Kind.DECL_STMT:
            return self._declaration(node, span)
        if node.kind == Kind.RETURN_STMT:
            value = self._value(node.children[0]) if node.children else None
            return Jump("return", value=value, span=span)
        if node.kind == Kind.GOTO_STMT:
            return Jump("goto", to=self._label(node), span=span)
        if node.kind == Kind.BREAK_STMT:
            return Jump("break", span=span)
        if node.kind == Kind.CONTINUE_STMT:
            return Jump("continue", span=span)
        if node.kind == Kind.NULL_STMT:
            return Nothing(span=span)
        return Opaque(_REASONS.get(node.kind, "a statement that is not supported"), span=span)

    def _label(self, node: Node) -> str:
        for child in node.children:
            return self._unit.name(child.cursor)
        return ""

    def _expression(self, node: Node, span: Span) -> Statement:
        if node.macro >= 0 and self._uses.names[node.macro] == "assert" and self._is_whole_use(node):
            condition = _asserted(node)
            if condition is not None:
                return Call("assert", (self._value(condition),), span=span)
        odd = _odd_cpp(node)
        if odd is not None:
            return Opaque(odd, span=span)
        value = self._value(node)
        for part in value.walk():
            if isinstance(part, Invocation) and part.name in _LEAVES:
                return Opaque(f"{part.name}, which goes on elsewhere", span=span)
        return _statement_of(value, span)

    def _declaration(self, node: Node, span: Span) -> Statement:
        odd = _odd_cpp(node)
        if odd is not None:
            return Opaque(odd, span=span)
        variables: list[tuple[Symbol, Expression | None]] = []
        names = False
        for child in node.children:
            names = names or child.kind in _NAMING
            if child.kind in _HARMLESS or Kind.FIRST_REFERENCE <= child.kind <= Kind.LAST_REFERENCE:
                if child.kind in _NAMES_TYPE and (self.has_effects(child) or _asks_variables(child)):
                    return Opaque("a type whose size is computed", span=span)
                continue
            if child.kind != Kind.VAR_DECL:
                return Opaque("a declaration that is not supported", span=span)
            if not self._objects.is_plain(self._clang.clang_getCursorType(child.cursor)):
                return Opaque("a C++ object with a constructor or destructor", span=span)
            if self._objects.has_cleanup(child.cursor):
                return Opaque("a variable with a cleanup function", span=span)
            symbol = self._declarations.variable(child.cursor)
            if symbol is None or symbol.storage is Storage.GLOBAL:
                names = True
                continue
            value = self._initial(child, symbol)
            if self._keeps_temporary(child, value):
                return Opaque("a reference to an object that is unmade with it", span=span)
            if any(map(self.has_effects, self._sizes(child))):
                return Opaque("an array whose size is computed with effects", span=span)
            if symbol.storage is Storage.LOCAL or symbol.storage is Storage.CONSTANT:
                variables.append((symbol, value))
            elif symbol.storage is Storage.SAVED:
                # It is initialised once, before the program starts.
                if value is not None and not self._is_constant(child, value):
                    return Opaque("a variable that gets its value when control first passes", span=span)
                if value is not None:
                    self._declarations.note_initial(symbol, value)
                variables.append((symbol, None))
        return Declare(tuple(variables), names=names, span=span) if variables or names else Nothing(span=span)

    def _initial(self, node: Node, symbol: Symbol) -> Expression | None:
        """The value a declaration gives; on the way, the bounds of a variable-length array."""
        cursor = self._clang.clang_Cursor_getVarDeclInitializer(node.cursor)
        parts = [child for child in node.children if _is_expression(child)]
        given = [part for part in parts if part.cursor.second == cursor.second and cursor.second is not None]
        # libclang visits the innermost size first
        give_bounds(symbol, [self._value(size) for size in reversed(self._sizes(node))])
        if not given:
            return None
        if symbol.type.base == "struct" and given[0].kind == Kind.CALL_EXPR and not given[0].children:
            return None  # the constructor of a plain struct, which C++ calls and which does nothing
        value = self._value(given[0])
        if is_reference(self._clang.clang_getCursorType(node.cursor)):
            mark_targets(value)
            return value.pointer if isinstance(value, Deref) else AddressOf(value)
        return value

    def _sizes(self, node: Node) -> list[Node]:
        """The sizes of arrays that a variable's declaration gives."""
        value = self._clang.clang_Cursor_getVarDeclInitializer(node.cursor).second
        return [
            child for child in node.children if _is_expression(child) and (not value or child.cursor.second != value)
        ]

    def has_effects(self, node: Node) -> bool:
        """Whether evaluating the expression may have side effects."""
        return any(inner.kind == Kind.CALL_EXPR or self._expressions.assigned_in(inner) for inner in node.walk())

    def _keeps_temporary(self, node: Node, value: Expression | None) -> bool:
        """Whether a reference may extend an object's lifetime to the end of its block: one that a call creates and then
        destroys."""
        if value is None or not is_reference(self._clang.clang_getCursorType(node.cursor)):
            return False
        return any(isinstance(part, Unread) for part in value.walk())

    def _is_constant(self, node: Node, value: Expression) -> bool:
        """Whether a static variable has its value when the program starts, as all of C's have."""
        if not self._is_cpp or self._unit.evaluate(node.cursor) is not None:
            return True
        return _is_constant(value)


def _unchangeable(block: Block) -> Block:
    """A block that a macro writes, which has no text of its own: what communicates in it must stay as it is, as a whole."""
    messages = {inner.name for inner in block.walk() if isinstance(inner, Call) and mpi.is_mpi_name(inner.name or "")}
    if not messages:
        return block
    reason = f"a macro writes this block, with {', '.join(sorted(name for name in messages if name))}"
    return replace(block, statements=(Opaque(reason, span=block.span),))


def _pragma_name(directive: Directive) -> str:
    return {"omp": "OpenMP", "acc": "OpenACC"}.get(directive.rest.split(" ")[0], "a pragma")


def _asks_variables(node: Node) -> bool:
    """Whether a type's size depends on variables: it is computed where the type is declared."""
    return any(inner.kind in (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR) for inner in node.walk())


def _is_constant(value: Expression) -> bool:
    """Whether a C++ compiler knows an initial value for certain: made of numbers, texts, and places of static variables."""
    if isinstance(value, AddressOf):
        return _is_static_place(value.object)
    if isinstance(value, Name):
        return value.symbol.dimensions is not None and _is_static_place(value)
    if isinstance(value, Cast | Operation):
        return all(_is_constant(operand) for operand in value.operands())
    return isinstance(value, Number | Literal | Constant)


def _is_static_place(place: Expression) -> bool:
    if isinstance(place, Member):
        return _is_static_place(place.base)
    if isinstance(place, Element):
        return _is_static_place(place.base) and all(isinstance(index, Number) for index in place.indices)
    if not isinstance(place, Name) or place.symbol.pointer:
        return False
    return place.symbol.storage in (Storage.GLOBAL, Storage.SAVED)


def _is_expression(node: Node) -> bool:
    return Kind.UNEXPOSED_EXPR <= node.kind < Kind.UNEXPOSED_STMT


def _own(node: Node, stop: int) -> list[Node]:
    """The nodes below, without what lies inside a nested statement of the kind ``stop``."""
    found: list[Node] = []
    pending = list(node.children)
    while pending:
        current = pending.pop()
        found.append(current)
        if current.kind != stop:
            pending.extend(current.children)
    return found


def _own_breaks(node: Node) -> list[Node]:
    """The nodes from ``node`` down whose breaks belong to the statement around ``node``."""
    loops = (Kind.FOR_STMT, Kind.WHILE_STMT, Kind.DO_STMT, Kind.SWITCH_STMT, Kind.FOR_RANGE_STMT)
    found: list[Node] = []
    pending = [node]
    while pending:
        current = pending.pop()
        found.append(current)
        if current.kind not in loops:
            pending.extend(current.children)
    return found


def _leaves(node: Node) -> bool:
    """Whether control never runs on after the statement."""
    if node.kind in (Kind.BREAK_STMT, Kind.RETURN_STMT, Kind.CONTINUE_STMT, Kind.GOTO_STMT):
        return True
    if node.kind == Kind.COMPOUND_STMT:
        return bool(node.children) and _leaves(node.children[-1])
    if node.kind == Kind.IF_STMT:
        return len(node.children) == 3 and all(_leaves(child) for child in node.children[1:])
    return False


def _odd_cpp(node: Node) -> str | None:
    for inner in node.walk():
        if inner.kind == Kind.LAMBDA_EXPR:
            return "a lambda"
        if inner.kind == Kind.THROW_EXPR:
            return "C++ exceptions"
        if inner.kind in (Kind.NEW_EXPR, Kind.DELETE_EXPR):
            return "new or delete"
    return None


def _asserted(node: Node) -> Node | None:
    """The condition of the C library's assert."""
    for inner in node.walk():
        if inner.kind == Kind.IF_STMT or (inner.kind == Kind.CONDITIONAL_OPERATOR and len(inner.children) == 3):
            return inner.children[0]
    return None


def _statement_of(value: Expression, span: Span) -> Statement:
    """What an expression is as a statement."""
    if isinstance(value, Cast) and value.type.text == "void":
        value = value.value
    if isinstance(value, Deref) and isinstance(value.pointer, Invocation):
        value = value.pointer  # a function that returns a reference
    if isinstance(value, Assignment):
        if isinstance(value.value, Invocation) and value.operator is None:
            return Call(value.value.name, value.value.arguments, result=value.target, span=span)
        return Assign(value.target, value.value, value.operator, span=span)
    if isinstance(value, Invocation):
        return Call(value.name, value.arguments, span=span)
    if isinstance(value, Number):
        return Nothing(span=span)
    return Evaluate(value, span=span)
