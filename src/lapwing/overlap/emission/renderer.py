"""Renders a changed syntax tree as text: unchanged statements keep their bytes, moved ones take their comments along.

A statement's *chunk* is its lines with the comments and blank lines above it; the chunks of a block follow one another
without gaps. Rendering puts the chunks of a block in their new order.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Operation
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import counts_plainly
from lapwing.overlap.ir.split_phase import (
    NOWHERE,
    Drain,
    Level,
    OutlinedCall,
    Part,
    PartialLoop,
    Progress,
    SplitPhaseOperation,
    StripMinedLoop,
    Written,
    home,
)
from lapwing.overlap.ir.statements import Assign, Block, Compound, If, Loop, Statement
from lapwing.overlap.languages.registry import language_of
from lapwing.overlap.languages.shared.emitter import Emitter
from lapwing.overlap.languages.shared.strip_mining import closing
from lapwing.overlap.source.indentation import indentation, indentation_step
from lapwing.overlap.source.spans import Source, Span


class Renderer:
    """Texts of one procedure's statements."""

    def __init__(
        self, source: Source, procedure: Procedure, emitter: Emitter, remarks: Mapping[Span, str] | None = None
    ) -> None:
        """``procedure``: as it was read. ``remarks``: comments to put above its statements."""
        self.source = source
        self._emitter = emitter
        self._layout = language_of(source).layout(source)
        self._remarks = remarks or {}
        self._data = source.data
        self._starts = source.line_starts
        self._blocks: dict[tuple[int, int], Block] = {}
        self._chunks: dict[tuple[int, int], tuple[int, int]] = {}
        self._originals: dict[tuple[int, int], Statement] = {}
        self._shown: set[int] = set()  # starts of the chunks whose leading lines are written
        self._silent: set[int] = (
            set()
        )  # ids of Fortran's split-phase operations whose error code the next ones set, too
        self._learn(procedure.body)

    def _learn(self, block: Block) -> None:
        self._blocks.setdefault((block.span.start, block.span.end), block)
        at = self._opening(block)
        for statement in block.statements:
            end = statement.span.end if block.form != "lines" else self._line_end(statement.span.end, block.span.end)
            self._chunks.setdefault((statement.span.start, statement.span.end), (at, end))
            self._originals.setdefault((statement.span.start, statement.span.end), statement)
            at = end
            for inner in statement.blocks():
                self._learn(inner)

    def _line_end(self, offset: int, limit: int) -> int:
        """The offset past the end of the line if only blanks and a comment follow on it."""
        line = bisect.bisect_right(self._starts, offset)
        end = self._starts[line] if line < len(self._starts) else len(self._data)
        rest = self._data[offset:end].strip()
        if end <= limit and (not rest or rest.startswith((b"!", b"//")) or _one_comment(rest)):
            return end
        return offset

    def _opening(self, block: Block) -> int:
        """The offset past the rest of the line that opens the block, if nothing is on it."""
        end = self._data.find(b"\n", block.span.start, block.span.end)
        empty = end >= 0 and not self._data[block.span.start : end].strip()
        return end + 1 if empty and block.form == "lines" and self._layout.has_braces else block.span.start

    def text(self, start: int, end: int) -> str:
        return self._data[start:end].decode("latin-1")

    # ---- blocks and statements ----------------------------------------------------------------------------------------

    def block(self, block: Block) -> str:
        """The text of ``block.span`` with the block's current statements."""
        old = self._blocks.get((block.span.start, block.span.end))
        if old is block:
            return self.text(block.span.start, block.span.end)
        if old is None:
            raise ValueError("a block that is in no source")
        if block.form == "chain":
            return "".join(self.statement(s, 0) for s in block.statements)
        if block.form == "single":
            return self._opened(block, old)
        indent = self._indent_of_block(old)
        opening = self._opening(old)
        pieces = [self.text(block.span.start, opening)]
        ends_in_newline = True
        outer, self._shown = self._shown, set()
        self._note_silent(block.statements)
        for statement in block.statements:
            text = self._directives_above(statement) + self._remarked(statement, self.statement(statement, indent))
            if len(pieces) == 1 and _is_made(statement) and self._is_indented(opening):
                text = text.lstrip(" ")
            if not ends_in_newline and text and not text.startswith("\n"):
                pieces.append("\n" if self._moved(statement, old) else "")
            pieces.append(text)
            ends_in_newline = text.endswith("\n") if text else ends_in_newline
        self._shown = outer
        last = max((self._chunk(s)[1] for s in old.statements), default=opening)
        tail = self.text(last, block.span.end)
        if not ends_in_newline and not tail.startswith(("\n", " ", "\t", ";", "}")):
            pieces.append("\n")
        return "".join([*pieces, tail])

    def _note_silent(self, statements: Sequence[Statement]) -> None:
        """Of successive split-phase operations that set the same error code, and do not read it, only the last sets it."""
        if not self._emitter.sets_error_codes or _DIRECTIVE.search(self._data):
            return
        reset, names = "", set[str]()  # by the following operations, without other statements between
        written = [self._emitter.operation(s) if isinstance(s, SplitPhaseOperation) else () for s in statements]
        for statement, text in zip(reversed(statements), reversed(written), strict=True):
            if not text:
                reset = ""
                continue
            *lines, last = text
            sets = last.endswith(" = 0")
            if sets and last == reset and not names & _words(last):
                self._silent.add(id(statement))
            if sets and last != reset:
                reset, names = last, set()
            names |= _words(" ".join(lines if sets else [*lines, last]))

    def _remarked(self, statement: Statement, text: str) -> str:
        """The statement's text with its remark on a line above it."""
        start, line = statement.span.start, self._line_start(statement.span.start)
        remark = self._remarks.get(statement.span)
        chunk = self._chunks.get((start, statement.span.end))
        if remark is None or chunk is None or self.text(line, start).strip():
            return text
        above = max(line - self._start_of(chunk, statement), 0)
        return text[:above] + self.comment(remark, self._column(start)) + text[above:]

    def _is_indented(self, offset: int) -> bool:
        """Whether the indentation of a line is written already."""
        start = self._line_start(offset)
        return start < offset and not self.text(start, offset).strip()

    def _directives_above(self, statement: Statement) -> str:
        """Preprocessor lines above the statement that this one is made from, with the text between them; once."""
        place = home(statement)
        chunk = self._chunks.get((place.start, place.end))
        if chunk is None:
            return ""
        start, line = chunk[0], self._line_start(place.start)
        if start in self._shown or not _DIRECTIVE.search(self._data, start, max(start, line)):
            return ""
        self._shown.add(start)
        return self.text(start, line)

    def _start_of(self, chunk: tuple[int, int], statement: Statement) -> int:
        """Where the unwritten text of a chunk starts."""
        return self._line_start(statement.span.start) if chunk[0] in self._shown else chunk[0]

    def _moved(self, statement: Statement, block: Block) -> bool:
        return all(statement is not s for s in block.statements)

    def _opened(self, block: Block, old: Block) -> str:
        """The text of a block that was a single statement without braces, or on the line of its IF."""
        if len(block.statements) == 1 and not _is_made(block.statements[0]):
            return self.statement(block.statements[0], 0)
        outer = self._column(old.span.start)
        indent = outer + self._layout.step
        alone = not self.text(self._line_start(old.span.start), old.span.start).strip()
        if alone and "\n" in self.text(old.span.start, old.span.end):
            indent = outer  # continuation lines keep their indentation: compilers warn of misleading ones
        inner = []
        for statement in block.statements:
            text = self.statement(statement, indent).strip("\n")
            if not _is_made(statement):
                text = self.lines([text.strip()], indent).rstrip("\n")
            inner.append(text + "\n")
        return self._layout.enclosed("".join(inner), outer)

    def statement(self, statement: Statement, indent: int) -> str:
        if isinstance(statement, PartialLoop):
            return self._partial(statement, indent)
        if isinstance(statement, StripMinedLoop):
            return self._strips(statement)
        if _is_made(statement):
            return self._above(statement.span) + self._beside(statement.span, indent) + self._made(statement, indent)
        key = (statement.span.start, statement.span.end)
        start, end = self._start_of(self._chunks[key], statement), self._chunks[key][1]
        if self._originals[key] is statement:
            return self.text(start, end)
        pieces, at = [], start
        for block in statement.blocks():
            head, inner = self.text(at, block.span.start), self.block(block)
            if not (self._is_emptied(block) and not inner.strip() and _ELSE.fullmatch(head.strip())):
                pieces += [head, inner]
            at = block.span.end
        return "".join([*pieces, self.text(at, end)])

    def _is_emptied(self, block: Block) -> bool:
        """Whether the block has lost all its statements."""
        return not block.statements and bool(self._blocks[(block.span.start, block.span.end)].statements)

    def _partial(self, loop: PartialLoop, indent: int) -> str:
        """The whole nest's text with other bounds, or with a line in its innermost body that skips the interior."""
        assert loop.whole is not None
        before = "turns that others need" if loop.sent else "turns that need nothing from other ranks"
        what = before if loop.inside is not loop.sent else "the other turns"
        pieces = [self._above(loop.span) if loop.span != NOWHERE else "", self.comment(f"lapwing: {what}", indent)]
        start, end = self._chunks[(loop.whole.span.start, loop.whole.span.end)]
        at = max(start, self._line_start(loop.whole.span.start))
        for number, level in enumerate(loop.box):
            body = level.loop.body.span
            if loop.inside and level.splits:
                pieces.append(self._new_header(at, level))
            else:
                pieces.append(self.text(at, body.start))
            if number == 0 and _lets_progress(loop) and loop.whole.body.form == "single":
                pieces[-1] = self._with_brace(pieces[-1], level.loop)
            at = body.start
        innermost = loop.box[-1].loop
        if self._is_two_loops(loop):
            return "".join([*pieces[:-1], *self._two_loops(loop), self.text(innermost.span.end, end)])
        if loop.inside:
            return "".join([*pieces, *self._interior(loop, loop.whole, at, end)])
        tests = self._emitter.guard(loop.box)
        if innermost.body.form == "single":
            head, before = self._with_brace(pieces[-1], innermost).rsplit("\n", 1)
            guard = "".join(f"{before}{line}\n" for line in tests)
            inside = self.text(innermost.body.span.start, innermost.body.span.end)
            closed = f"{inside}\n{self._lead(innermost.span.start)}}}{self.text(innermost.body.span.end, end)}"
            return "".join([*pieces[:-1], head, "\n", guard, before, closed])
        guard = self.lines(tests, self._indent_of_block(innermost.body))
        opened = pieces[-1].endswith("\n")
        rest = self.text(at, end)
        return "".join([*pieces, "" if opened else "\n", guard, rest if opened else rest.removeprefix("\n")])

    def _interior(self, loop: PartialLoop, whole: Loop, at: int, end: int) -> Iterable[str]:
        """The interior's text from its innermost body on, with a progress call at the end of the nest's body."""
        if not _lets_progress(loop):
            yield self.text(at, end)
            return
        progress = next(n for n, s in enumerate(loop.body.statements) if isinstance(s, Progress))
        body, single = whole.body, whole.body.form == "single"
        place = body.span.end if single else self._chunk(body.statements[progress - 1])[1]
        before = self.text(at, place)
        yield before if before.endswith("\n") else before + "\n"
        yield self._made(loop.body.statements[progress], self._indent_of_block(body))
        if single:
            yield self._lead(whole.span.start) + "}"
        yield self.text(place, end)

    def _with_brace(self, head: str, loop: Loop) -> str:
        """The text before the body of a C loop without braces, with an opening brace in the file's style."""
        outer, start = self._lead(loop.span.start), loop.body.span.start
        alone = not self.text(self._line_start(start), start).strip()
        inner = self._lead(start) if alone else outer + indentation_step(self.source)
        commented = "//" in head[closing(head) :]
        brace = f"\n{outer}{{" if commented or self._braces_stand_alone else " {"
        return f"{head.rstrip()}{brace}\n{inner}"

    @cached_property
    def _braces_stand_alone(self) -> bool:
        """Whether most loops and conditionals of the file have their opening brace on a line of its own."""
        alone, behind = (
            len(re.findall(_HEAD_AND_BRACE % between, self._data)) for between in (rb"\s*\n\s*", rb"[ \t]*")
        )
        return alone > behind

    def _strips(self, loop: StripMinedLoop) -> str:
        """The loop's text with another head, in a loop over its strips."""
        start, end = self._start_of(self._chunk(loop), loop), self._chunk(loop)[1]
        line, column = self._line_start(loop.span.start), self._column(loop.span.start)
        body = loop.body.span
        changed = self._emitter.strips(loop, self.text(loop.span.start, body.start))
        assert changed is not None  # checked by progress/calls.py
        text = self.comment("lapwing: in strips, so that MPI can go on with what is under way", column)
        text += self.lines([*changed.outer, changed.inner], column)
        if changed.rest is not None:
            text = text.rstrip("\n") + changed.rest + self.block(loop.body)
        else:
            text += self.block(loop.body).removeprefix("\n")
        text += self.text(body.end, loop.span.end) + "\n"
        text += self.lines([*self._emitter.progress(), changed.end], column)
        if start <= line and not self.text(line, loop.span.start).strip():
            return self.text(start, line) + text.rstrip("\n") + self.text(loop.span.end, end)
        return self.text(start, loop.span.start) + text.strip() + self.text(loop.span.end, end)

    def _is_two_loops(self, loop: PartialLoop) -> bool:
        """Whether the boundary is rendered as one loop before the interior and one after it, because the body is too cheap for
        a test in each iteration."""
        last = loop.box[-1]
        innermost = not any(isinstance(s, Loop) for s in last.loop.body.walk())
        limited = last.low is not None or last.high is not None
        fits = limited or (innermost and counts_plainly(last.loop))
        return not loop.inside and fits and language_of(self.source).splits_shell

    def _two_loops(self, loop: PartialLoop) -> Iterable[str]:
        level = loop.box[-1]
        span, body = level.loop.span, level.loop.body.span
        line = self._line_start(span.start)
        if len(loop.box) > 1:
            yield self.text(loop.box[-2].loop.body.span.start, line)
        elif loop.whole is not None:
            yield self.text(max(self._chunks[(loop.whole.span.start, loop.whole.span.end)][0], line), line)
        for number, head in enumerate(self._emitter.outside(loop.box)):
            yield "\n" * number + self.lines([head], span.start - line) + self.text(body.start, span.end)

    def _new_header(self, at: int, level: Level) -> str:
        """The text from ``at`` to the loop's body, with the loop's current bounds."""
        head = self._emitter.header(level)
        span, body = level.loop.span, level.loop.body.span
        if not self._layout.has_braces:
            line = max(at, self._line_start(span.start))
            return self.text(at, line) + self.lines([head], span.start - self._line_start(span.start))
        old = self.text(span.start, body.start)
        return self.text(at, span.start) + head + old[closing(old) + 1 :]

    def _above(self, span: Span) -> str:
        """Comments above the statement that a generated one replaces."""
        if span == NOWHERE:
            return ""
        start, _ = self._chunks[(span.start, span.end)]
        line = self._line_start(span.start)
        return self.text(start, line) if start < line and start not in self._shown else ""

    def _beside(self, span: Span, indent: int) -> str:
        """The statement's trailing comment, on a line of its own, as the replacement may need several lines."""
        if span == NOWHERE:
            return ""
        comment = self.text(span.end, self._chunks[(span.start, span.end)][1]).strip()
        if comment.startswith("!$"):  # on a line of its own it would become code, or a directive
            comment = f"! {comment[1:]}"
        in_column_6 = self.source.form == "fixed" and indent == 5
        return f"{'' if in_column_6 else ' ' * indent}{comment}\n" if comment else ""

    def _made(self, statement: Statement, indent: int) -> str:
        match statement:
            case SplitPhaseOperation():
                lines = self._emitter.operation(statement)
                if id(statement) in self._silent:
                    lines = lines[:-1]
                return self.comment(comment_of(statement), indent) + self.lines(lines, indent)
            case OutlinedCall():
                return self.comment(comment_of(statement), indent) + self.lines(self._emitter.call(statement), indent)
            case Progress(lender=lender):
                return self.lines(self._emitter.progress(lender), indent)
            case Written(lines=lines):
                return self.lines(lines, indent)
            case Drain():
                comment = "lapwing: messages that still travel must arrive before MPI ends"
                return self.comment(comment, indent) + self.lines(self._emitter.drain(statement), indent)
            case If(condition=Operation(operator="!=", arguments=(left, right)), then=then):
                head, end = self._emitter.unless_equal(left, right)
                inner = "".join(self.statement(s, indent + 3) for s in then.statements)
                return self.lines([head], indent) + inner + self.lines([end], indent)
            case Assign(target=target, value=value):
                return self.lines([self._emitter.assignment(target, value)], indent)
            case Compound(body=body):
                return "".join(self.statement(s, indent) for s in body.statements)
        raise TypeError(f"{type(statement).__name__} cannot be written")

    def lines(self, lines: Sequence[str], indent: int) -> str:
        return self._layout.lines(lines, indent)

    def comment(self, text: str, indent: int) -> str:
        return self._layout.comment(text, indent)

    # ---- places -------------------------------------------------------------------------------------------------------

    def _chunk(self, statement: Statement) -> tuple[int, int]:
        return self._chunks[(statement.span.start, statement.span.end)]

    def _line_start(self, offset: int) -> int:
        return self._starts[bisect.bisect_right(self._starts, offset) - 1]

    def _lead(self, offset: int) -> str:
        """The line's indentation."""
        return indentation(self.source, offset)

    def _column(self, offset: int) -> int:
        return self._layout.column(self.text(self._line_start(offset), offset))

    def _indent_of_block(self, block: Block) -> int:
        for statement in block.statements:
            line = self.text(self._line_start(statement.span.start), statement.span.start)
            if statement.label is None and not line.strip():
                return len(line.expandtabs(_TAB))
        return self._column(block.span.start) + self._layout.step


_TAB = 8  # columns
_ELSE = re.compile(r"else|\}\s*else\s*\{", re.IGNORECASE)
_DIRECTIVE = re.compile(rb"^[ \t]*#", re.MULTILINE)
_HEAD_AND_BRACE = rb"\b(?:for|if|while)\b[^\n{]*\)%s\{"


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]\w*", text)}


def _lets_progress(loop: PartialLoop) -> bool:
    return any(isinstance(s, Progress) for s in loop.body.statements)


def _is_made(statement: Statement) -> bool:
    return statement.span == NOWHERE or isinstance(statement, SplitPhaseOperation | OutlinedCall)


def comment_of(statement: SplitPhaseOperation | OutlinedCall) -> str:
    """The comment line above a changed place."""
    if isinstance(statement, OutlinedCall):
        assert statement.original is not None
        if statement.original.span == NOWHERE:
            return f"lapwing: {statement.original.name} is in two parts"
        first, last = _OF_WORK if statement.work else _OF_COMMUNICATION
        return f"lapwing: {statement.original.name}: {first if statement.span == NOWHERE else last}"
    call, number = statement.call.name, statement.slot
    return {
        Part.POST: f"lapwing: {call} starts here ({number})",
        Part.ARRIVE: f"lapwing: what {call} brings must be here now ({number})",
        Part.SEND: f"lapwing: {call} does not wait{'' if statement.plain_if_short else ': a copy travels'} ({number})",
        Part.START: f"lapwing: {call} starts here ({number})",
        Part.END: f"lapwing: what {call} {'sends has left' if _sends(statement) else 'brings must be here now'} ({number})",
    }[statement.part]


_OF_COMMUNICATION = ("its communication starts here", "what it brings is needed from here on")
_OF_WORK = ("what needs nothing from other ranks", "the rest")


def _sends(operation: SplitPhaseOperation) -> bool:
    message = mpi.lookup(operation.call.name or "")
    return message is not None and message.kind is mpi.Kind.SEND


def _one_comment(rest: bytes) -> bool:
    return rest.startswith(b"/*") and rest.find(b"*/") == len(rest) - 2
