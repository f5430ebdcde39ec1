"""The C text of the prologue: a procedure for the early work, its double buffers, and the flags between the procedure and its
loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from lapwing.overlap import mpi
from lapwing.overlap.emission.renderer import Renderer
from lapwing.overlap.ir.expressions import Number, Storage, Symbol
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import argument_of, message_of
from lapwing.overlap.ir.split_phase import NOWHERE, SplitPhaseOperation, Written
from lapwing.overlap.ir.statements import Call, Declare, Loop, Statement
from lapwing.overlap.languages.registry import language_of
from lapwing.overlap.languages.shared.emitter import Emitter
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements
from lapwing.overlap.source.indentation import indentation_step
from lapwing.overlap.source.replacements import Edit
from lapwing.overlap.source.spans import Source
from lapwing.overlap.transforms.software_pipelining.double_buffers import Allocation, DoubleBuffer, Taken
from lapwing.overlap.transforms.software_pipelining.lookahead import Lookahead
from lapwing.overlap.transforms.software_pipelining.lookahead_text import LookaheadText
from lapwing.overlap.transforms.software_pipelining.prologue import Prologue, unused


@dataclass(frozen=True)
class Insertion:
    """Text to insert into a file (its number) at an offset. ``progresses``: it has progress calls."""

    source: int
    offset: int
    text: str
    progresses: bool = False

    @property
    def copies(self) -> bool:
        """Whether it calls memcpy."""
        return "memcpy(" in self.text


@dataclass(frozen=True)
class _Counters:
    """Copies of counters before and after the loop that counts with them."""

    before: str
    after: str


class PrologueText:
    """Names and texts for one procedure's early work."""

    def __init__(
        self,
        program: Program,
        work: Prologue,
        double_buffers: tuple[DoubleBuffer, ...],
        transfer: Call,
        lookahead: Lookahead | None,
        meanwhile: Sequence[Statement],
        stem_of: Callable[[int], str],
        *,
        shared: bool,
        taken: set[str],
    ) -> None:
        """``lookahead``: how the transfer starts an iteration ahead. ``meanwhile``: the early statements as they are to be
        written. ``stem_of``: the files' stems in names of support code. ``shared``: the loop is in another file. ``taken``:
        names in use; those made here are added."""
        self._program = program
        self._procedure = work.procedure
        self._work = work
        self._double_buffers = double_buffers
        self._transfer = transfer
        self._meanwhile = meanwhile
        self._stem_of = stem_of
        self._shared = shared
        self._source = program.sources[self._procedure.source]
        self._language = language_of(self._source)
        self._step = indentation_step(self._source)
        name = self._procedure.name

        def fresh(wanted: str) -> str:
            found = self._language.new_name(wanted, taken)
            taken.add(found)
            return found

        self.early_name = fresh(f"{name}_early")
        self.next_name = fresh(f"{name}_next")
        self._done_name = fresh(f"{name}_done")
        self._take_name = fresh(f"{name}_take")
        self._names = {s.symbol.key: fresh(f"{s.symbol.name}_early") for s in double_buffers}
        self._sent = next((s for s in double_buffers if s.sent), None)
        if self._sent is not None:
            self._keep_name = fresh(f"{name}_keep")
            self._kept_flag = fresh(f"{name}_kept")
            self._inside_name = fresh(f"{name}_inside")
            self._outgoing_name = fresh(f"{name}_outgoing")
            self._other_name = fresh(f"{self._sent.symbol.name}_sent")
        self._bytes = {s.symbol.key: fresh(f"{s.symbol.name}_bytes") for s in double_buffers if _is_copied_memory(s)}
        self._lookahead = (
            LookaheadText(lookahead, name, self._names, fresh, self._language) if lookahead is not None else None
        )
        self._counters = {
            s.symbol.key: _Counters(fresh(f"{s.ranges.counters.name}_from"), fresh(f"{s.ranges.counters.name}_to"))
            for s in double_buffers
            if s.ranges is not None
        }

    # ---- lines in existing procedures ---------------------------------------------------------------------------------

    def taking_over(self, unused: Sequence[str]) -> tuple[str, ...]:
        """``unused``: variables that only the early work uses."""
        arguments = ", ".join(p.name for p in self._procedure.parameters)
        return (
            f"/* lapwing: this turn's {self.early_name} was done in the turn before, or is done now */",
            f"if (!{self._done_name}) {self.early_name}({arguments});",
            f"{self._done_name} = 0;",
            *((f"{self._take_name}();",) if self._double_buffers else ()),
            *_without_warning(unused),
        )

    def doing_early(self, differences: tuple[int, ...]) -> tuple[str, ...]:
        """``differences``: how much larger the arguments are in the next iteration."""
        arguments = ", ".join(
            p.name if d == 0 else f"{p.name} {'+' if d > 0 else '-'} {abs(d)}"
            for p, d in zip(self._procedure.parameters, differences, strict=True)
        )
        return (
            *self._keeping_lines(),
            f"/* lapwing: the next turn's work while {self._transfer.name} travels */",
            f"if ({self.next_name}) {{",
            f"{self._step}{self.early_name}({arguments});",
            f"{self._step}{self._done_name} = 1;",
            f"{self._step}{self.next_name} = 0;",
            "}",
        )

    def _keeping_lines(self) -> tuple[str, ...]:
        if self._sent is None:
            return ()
        comment = f"/* lapwing: {self._sent.symbol.name} takes over what is on its way */"
        return (comment, f"{self._keep_name}();")

    def allocating(self, symbol: Symbol, allocation: Allocation) -> tuple[str, ...]:
        """A pointer's allocation repeated for its other buffers."""
        span, target = allocation.statement.span, allocation.target
        data = self._source.data
        lines = ["/* lapwing: the next turn's early work needs room of its own */"]
        for name in self._homes(symbol):
            text = (data[span.start : target.start] + name.encode() + data[target.end : span.end]).decode("latin-1")
            lines += [f"free({name});", *(line.strip() for line in text.splitlines())]
        bytes_name = self._size_name(symbol)
        if bytes_name is not None:
            sizes = " * ".join(f"({self._source.text(size)})" for size in allocation.sizes)
            lines.append(f"{bytes_name} = (size_t){sizes};")
        if self._lookahead is not None and symbol == self._lookahead.received:
            lines += self._lookahead.allocated()
        return tuple(lines)

    def _homes(self, symbol: Symbol) -> list[str]:
        """The names of the variable's other buffers."""
        names = [self._names[symbol.key]] if symbol.key in self._names else []
        if self._sent is not None and self._sent.symbol == symbol:
            names.append(self._other_name)
        if self._lookahead is not None:
            names += [self._lookahead.sent_rows[symbol.key]] if symbol.key in self._lookahead.sent_rows else []
            names += [self._lookahead.other] if symbol == self._lookahead.received else []
        return names

    def _size_name(self, symbol: Symbol) -> str | None:
        """The variable that holds the size of the pointer's memory, in bytes."""
        if self._lookahead is not None and symbol == self._lookahead.received:
            return self._lookahead.bytes
        return self._bytes.get(symbol.key)

    def start(self, start: SplitPhaseOperation) -> SplitPhaseOperation:
        """The transfer's start: it sends the second buffer, and may have started an iteration ahead."""
        message = message_of(start.call)
        assert message is not None
        if self._sent is None:
            return start
        roles = (mpi.Role.COUNTS, mpi.Role.DISPLACEMENTS, mpi.Role.TYPE, mpi.Role.COMM)
        arguments = (argument_of(self._transfer, role) for role in roles)
        texts = (self._source.text(a.span) for a in arguments if a is not None and a.span is not None)
        place = mpi.index_of(message, mpi.Role.SEND_BUFFER)
        assert place is not None
        return replace(
            start,
            instead=((place, f"{self._outgoing_name}({', '.join(texts)})"),),
            unless=self._lookahead.started if self._lookahead is not None else None,
        )

    def starting_ahead(self, start: SplitPhaseOperation) -> tuple[str, ...]:
        """Lines after the transfer's end; none if the next one does not start there."""
        if self._lookahead is None or self._sent is None:
            return ()
        requirements = SupportRequirements(self._stem_of(self._procedure.source))
        emitter = self._language.emitter(self._source, requirements, self._stem_of)
        sent = self._names[self._sent.symbol.key]
        return self._lookahead.starting(start, self._done_name, sent, emitter, self._step)

    def declaration_for(self, caller: Procedure) -> Insertion:
        """Another file's declaration of the flag."""
        return Insertion(caller.source, self._above(caller), f"extern int {self.next_name};\n")

    # ---- new text -----------------------------------------------------------------------------------------------------

    def insertions(self) -> list[Insertion]:
        procedure = self._procedure
        number = procedure.source
        users = [procedure, *(s.allocation.procedure for s in self._double_buffers if s.allocation is not None)]
        first = min((p for p in users if p.source == number), key=lambda p: p.span.start)
        double_buffers = "".join(self._declarations())
        requirements = SupportRequirements(self._stem_of(number))
        early = self._early(requirements)
        return [
            Insertion(number, self._above(first), double_buffers + "\n"),
            Insertion(number, procedure.span.start, early, requirements.progresses),
        ]

    def _declarations(self) -> list[str]:
        static = "" if self._shared else "static "
        lines = [
            "/* lapwing: the next turn's work is done early, on copies of what others still need */\n",
            f"{static}int {self.next_name};\nstatic int {self._done_name};\n",
        ]
        for double_buffer in self._double_buffers:
            symbol, name = double_buffer.symbol, self._names[double_buffer.symbol.key]
            if double_buffer.sent:
                lines += self._two_buffers(double_buffer)
            elif symbol.pointer:
                lines.append(f"static {self._language.variable(symbol.type.text, name)}\n")
            else:
                lines.append(f"static {self._language.variable(symbol.type.text, name, _sizes(symbol))}\n")
            if symbol.key in self._bytes:
                lines.append(f"static size_t {self._bytes[symbol.key]};\n")
        if self._sent is not None:
            lines.append(f"static int {self._kept_flag};\n")
        return lines if self._lookahead is None else [*lines, *self._lookahead.declarations(_sizes)]

    def _two_buffers(self, double_buffer: DoubleBuffer) -> list[str]:
        symbol, names = double_buffer.symbol, (self._names[double_buffer.symbol.key], self._other_name)
        if symbol.pointer:
            return [f"static {self._language.variable(symbol.type.text, name)}\n" for name in names]
        rooms = f"{names[0]}_rooms"
        return [
            f"static {self._language.variable(symbol.type.text, rooms, ('2', *_sizes(symbol)))}\n",
            *(f"static {symbol.type.text} *{name} = {rooms}[{number}];\n" for number, name in enumerate(names)),
        ]

    def _early(self, requirements: SupportRequirements) -> str:
        """The procedure that runs the early work, and the one that takes over its results."""
        source, procedure = self._source, self._procedure
        head = source.data[procedure.span.start : procedure.body.span.start].decode("latin-1")
        opening = head.index("(", re.search(rf"\b{re.escape(procedure.name)}\b", head).end())  # type: ignore[union-attr]
        kept = "".join(
            f"static {self._language.variable(*self._kept_type(s, side))}\n"
            for s in self._double_buffers
            for side in (0, 1)
            if s.ranges
        )
        statements: list[Statement] = []
        declared = False
        ranged = {id(s.ranges.statement): s for s in self._double_buffers if s.ranges is not None}
        for statement, written in zip(self._work.early, self._meanwhile, strict=True):
            if not declared and not isinstance(statement, Declare):
                declared = True
                if first := (*_without_warning(unused(self._work.early)), *self._copies()):
                    statements.append(Written(first, span=NOWHERE))
            double_buffer = ranged.get(id(statement))
            if double_buffer is not None:
                statements.append(Written((self._keeping(double_buffer, 0),), span=NOWHERE))
            statements.append(written)
            if double_buffer is not None:
                statements.append(Written((self._keeping(double_buffer, 1),), span=NOWHERE))
        emitter = self._language.emitter(source, requirements, self._stem_of)
        renderer = _Renaming(source, procedure, emitter, self._renames())
        body = procedure.body
        block = type(body)(tuple(statements), body.span, body.form)
        take = self._take() if self._double_buffers else ""
        take = self._keep() + self._inside() + self._outgoing() + take if self._sent is not None else take
        if self._lookahead is not None:
            take += self._lookahead.functions(self._inside_name, self._copy, self._function)
        text = renderer.block(block).rstrip()
        kept += "\n" if kept else ""
        return f"{kept}static void {self.early_name}{head[opening:]}{text}\n}}\n\n{take}"

    def _renames(self) -> list[Edit]:
        edits = [
            Edit(spot.start, spot.end, self._names[s.symbol.key]) for s in self._double_buffers for spot in s.spots
        ]
        return sorted(edits, key=lambda e: e.start)

    def _copies(self) -> tuple[str, ...]:
        return tuple(
            self._copy(self._names[s.symbol.key], s.symbol.name, s.symbol)
            for s in self._double_buffers
            if s.taken is Taken.COPY
        )

    def _copy(self, to: str, origin: str, symbol: Symbol) -> str:
        size = self._bytes.get(symbol.key)
        return _copy(to, origin, symbol) if size is None else f"memcpy({to}, {origin}, {size});"

    def _kept_type(self, double_buffer: DoubleBuffer, side: int) -> tuple[str, str, tuple[str, ...]]:
        assert double_buffer.ranges is not None
        counters = double_buffer.ranges.counters
        sizes = _sizes(counters) if counters.storage is Storage.GLOBAL else _numbers(counters)
        return counters.type.text, self._kept_name(double_buffer, side), sizes

    def _kept_name(self, double_buffer: DoubleBuffer, side: int) -> str:
        names = self._counters[double_buffer.symbol.key]
        return names.after if side else names.before

    def _keeping(self, double_buffer: DoubleBuffer, side: int) -> str:
        assert double_buffer.ranges is not None
        counters = double_buffer.ranges.counters
        name = self._names.get(counters.key, counters.name)
        return _copy(self._kept_name(double_buffer, side), name, counters)

    def _take(self) -> str:
        """The procedure that takes over the results of the early work, except those that are sent first."""
        lines: list[str] = []
        variables: list[str] = []
        for double_buffer in self._double_buffers:
            symbol, name = double_buffer.symbol, self._names[double_buffer.symbol.key]
            if double_buffer.sent:
                lines.append(f"{self._kept_flag} = 0;")
            elif double_buffer.ranges is None:
                lines.append(self._copy(symbol.name, name, symbol))
            else:
                if double_buffer.ranges.counters.dimensions is not None:
                    variables = ["size_t lw_i, lw_n, lw_count;"]
                lines += self._taking_ranges(double_buffer)
        return self._function(f"static void {self._take_name}(void)", variables, lines)

    def _taking_ranges(self, double_buffer: DoubleBuffer) -> list[str]:
        step, symbol, name = self._step, double_buffer.symbol, self._names[double_buffer.symbol.key]
        before, after = self._kept_name(double_buffer, 0), self._kept_name(double_buffer, 1)
        assert double_buffer.ranges is not None
        if double_buffer.ranges.counters.dimensions is None:
            return [
                f"if ({after} > {before})",
                f"{step}memcpy({symbol.name} + {before}, {name} + {before}, "
                f"({after} - {before}) * sizeof *{symbol.name});",
            ]
        return [
            f"lw_count = sizeof {before} / sizeof *{before};",
            "for (lw_i = 0; lw_i < lw_count; lw_i = lw_n) {",
            f"{step}for (lw_n = lw_i + 1; lw_n < lw_count && {before}[lw_n] == {after}[lw_n - 1]; lw_n++)",
            f"{step}{step};",
            f"{step}if ({after}[lw_n - 1] > {before}[lw_i])",
            f"{step}{step}memcpy({symbol.name} + {before}[lw_i], {name} + {before}[lw_i],",
            f"{step}{step}       ({after}[lw_n - 1] - {before}[lw_i]) * sizeof *{symbol.name});",
            "}",
        ]

    def _keep(self) -> str:
        """The procedure by which the variable takes over what is sent from its second buffer; the next early work uses the
        other one."""
        assert self._sent is not None
        symbol, name = self._sent.symbol, self._names[self._sent.symbol.key]
        kind = symbol.type.text if symbol.pointer else f"{symbol.type.text} *"
        lines = [
            f"if ({self._kept_flag}) return;",
            f"{self._kept_flag} = 1;",
            *self._taking_ranges(self._sent),
            f"lw_other = {name};",
            f"{name} = {self._other_name};",
            f"{self._other_name} = lw_other;",
        ]
        variables = ["size_t lw_i, lw_n, lw_count;", self._language.variable(kind, "lw_other")]
        return self._function(f"static void {self._keep_name}(void)", variables, lines)

    def _inside(self) -> str:
        """The function that returns whether the early work wrote all that is sent into the second buffer."""
        assert self._sent is not None
        step, symbol = self._step, self._sent.symbol
        before, after = self._kept_name(self._sent, 0), self._kept_name(self._sent, 1)
        lines = [
            f"lw_count = sizeof {before} / sizeof *{before};",
            f"for (lw_i = 1; lw_i < lw_count && {before}[lw_i] == {after}[lw_i - 1]; lw_i++)",
            f"{step};",
            "MPI_Comm_test_inter(lw_comm, &lw_inter);",
            "MPI_Comm_size(lw_comm, &lw_ranks);",
            "MPI_Type_size(lw_type, &lw_size);",
            f"lw_inside = lw_i == lw_count && !lw_inter && lw_size == (int)sizeof *{symbol.name};",
            f"lw_first = (long){before}[0];",
            f"lw_end = (long){after}[lw_count - 1];",
            "for (lw_r = 0; lw_inside && lw_r < lw_ranks; lw_r++)",
            f"{step}lw_inside = lw_counts[lw_r] == 0",
            f"{step}        || (lw_displs[lw_r] >= lw_first && (long)lw_displs[lw_r] + lw_counts[lw_r] <= lw_end);",
            "return lw_inside;",
        ]
        variables = [
            "size_t lw_i, lw_count;",
            "long lw_first, lw_end;",
            "int lw_inter, lw_ranks, lw_size, lw_inside, lw_r;",
        ]
        return self._function(f"static int {self._inside_name}({_SENT})", variables, lines)

    def _outgoing(self) -> str:
        """The function that returns where the data to send is: in the second buffer, or in the variable."""
        assert self._sent is not None
        symbol, name = self._sent.symbol, self._names[self._sent.symbol.key]
        lines = [
            f"if ({self._inside_name}(lw_counts, lw_displs, lw_type, lw_comm)) return {name};",
            f"{self._keep_name}();",
            f"return {symbol.name};",
        ]
        return self._function(f"static const void *{self._outgoing_name}({_SENT})", [], lines)

    def _function(self, head: str, variables: list[str], lines: list[str]) -> str:
        declared = "".join(f"{self._step}{line}\n" for line in variables) + ("\n" if variables else "")
        return f"{head}\n{{\n{declared}" + "".join(f"{self._step}{line}\n" for line in lines) + "}\n\n"

    def _above(self, procedure: Procedure) -> int:
        """The offset for text that is to precede a procedure: above the comments directly above it."""
        data = self._program.sources[procedure.source].data
        start = procedure.span.start
        found = _COMMENTS_AT_END.search(data, max(0, start - _LONGEST_COMMENT), start)
        return found.start() if found else start


_SENT = "const int *lw_counts, const int *lw_displs, MPI_Datatype lw_type, MPI_Comm lw_comm"
_LONGEST_COMMENT = 4000  # bytes
_COMMENTS_AT_END = re.compile(rb"^(?:[ \t]*(?:/\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*\n)+\Z", re.DOTALL | re.MULTILINE)


class _Renaming(Renderer):
    """A renderer that renames variables."""

    def __init__(self, source: Source, procedure: Procedure, emitter: Emitter, renames: list[Edit]) -> None:
        self._renames = renames
        super().__init__(source, procedure, emitter)

    def text(self, start: int, end: int) -> str:
        pieces, at = [], start
        for edit in self._renames:
            if start <= edit.start and edit.end <= end:
                pieces += [super().text(at, edit.start), edit.text]
                at = edit.end
        return "".join([*pieces, super().text(at, end)])


def next_iteration_lines(program: Program, loop: Loop, flag: str) -> tuple[str, ...] | None:
    """The line by which the loop tells whether another iteration follows: its condition, for the next iteration. None if the
    header does not show it."""
    source = program.sources[loop.span.source]
    assert isinstance(loop.step, Number)
    following = f"{loop.variable.name} {'+' if loop.step.value > 0 else '-'} {abs(loop.step.value)}"
    header = _NOT_CODE.sub(" ", source.data[loop.span.start : loop.body.span.start].decode("latin-1"))
    parts = header.split(";")
    if len(parts) != 3:
        return None
    condition, count = re.subn(rf"\b{re.escape(loop.variable.name)}\b", following, " ".join(parts[1].split()))
    return (f"{flag} = {condition};",) if count == 1 else None


_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def _without_warning(unused: Sequence[str]) -> tuple[str, ...]:
    """Lines that avoid the compiler's warning about unused variables."""
    return tuple(f"(void){name};" for name in unused)


def _is_copied_memory(double_buffer: DoubleBuffer) -> bool:
    return double_buffer.symbol.pointer and double_buffer.taken is Taken.COPY


def _copy(to: str, origin: str, symbol: Symbol) -> str:
    if symbol.dimensions is None:
        return f"{to} = {origin};"
    return f"memcpy({to}, {origin}, sizeof {to});"


def _sizes(symbol: Symbol) -> tuple[str, ...]:
    """A global array's sizes, in terms of the array itself."""
    texts, part = [], symbol.name
    for _ in symbol.dimensions or ():
        texts.append(f"sizeof {part} / sizeof {part}[0]")
        part += "[0]"
    return tuple(texts)


def _numbers(symbol: Symbol) -> tuple[str, ...]:
    """An array's sizes as numbers, for where it cannot be named."""
    sizes = []
    for dimension in symbol.dimensions or ():
        assert isinstance(dimension.upper, Number), symbol.name
        sizes.append(str(int(dimension.upper.value) + 1))
    return tuple(sizes)


def words(sources: Collection[Source]) -> set[str]:
    """All names in files."""
    return {w.decode("latin-1") for s in sources for w in re.findall(rb"[A-Za-z_]\w*", s.data)}
