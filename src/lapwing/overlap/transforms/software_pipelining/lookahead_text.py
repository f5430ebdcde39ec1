"""The C text for lookahead: starts a transfer an iteration ahead, and swaps its two receive buffers.

The buffers differ only in their first elements, as many as transfers have delivered so far (``high``). When one has arrived in
the second buffer, those of them that it did not deliver, mostly few, are copied from the first; then the pointers are swapped.
If other statements write the buffer, too, all of it is copied once before a loop's first such transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Name, Symbol
from lapwing.overlap.ir.rewriter import message_of
from lapwing.overlap.ir.split_phase import SplitPhaseOperation
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.shared.emitter import Emitter
from lapwing.overlap.transforms.software_pipelining.lookahead import Lookahead

Write = Callable[[str, list[str], list[str]], str]
"""Formats a function from its head, variables and lines."""


class LookaheadText:
    """Names and texts for one procedure's transfer, an MPI_Alltoallv."""

    def __init__(
        self,
        lookahead: Lookahead,
        procedure: str,
        double_buffers: Mapping[str, str],
        fresh: Callable[[str], str],
        language: Language,
    ) -> None:
        """``procedure``: its name. ``double_buffers``: the second buffers' names by the keys of their variables. ``fresh``:
        makes a name unique."""
        self.received = lookahead.received
        self._language = language
        self._rows = lookahead.rows
        self._only = lookahead.only
        self._double_buffers = double_buffers
        self.started = fresh(f"{procedure}_started")
        self.other = fresh(f"{lookahead.received.name}_other")
        self.bytes = fresh(f"{lookahead.received.name}_bytes")
        self._same = fresh(f"{procedure}_same")
        self._high = fresh(f"{procedure}_high")
        self._brought = fresh(f"{procedure}_brought")
        self._extent = fresh(f"{procedure}_extent")
        self._may_start = fresh(f"{procedure}_may_start")
        self._arrive = fresh(f"{procedure}_arrive")
        self.sent_rows = {row.symbol.key: fresh(f"{row.symbol.name}_sent") for row in lookahead.rows}
        """The rows that the transfer reads while the next early work writes their second buffers."""

    def starting(
        self, start: SplitPhaseOperation, done: str, sent: str, emitter: Emitter, step: str
    ) -> tuple[str, ...]:
        """Lines after the end of the transfer that ``start`` begins: the next one starts if its early work is ``done``.
        ``sent``: the second buffer it sends. ``step``: of indentation."""
        message = message_of(start.call)
        assert message is not None
        instead: dict[int, str] = {}
        for place, (argument, parameter) in enumerate(zip(start.call.arguments, message.parameters, strict=True)):
            if parameter.role is mpi.Role.SEND_BUFFER:
                instead[place] = sent
            elif parameter.role is mpi.Role.RECV_BUFFER:
                instead[place] = self.other
            elif isinstance(argument, Name) and argument.symbol.key in self.sent_rows:
                instead[place] = self.sent_rows[argument.symbol.key]
        (call,) = emitter.operation(replace(start, instead=tuple(instead.items()), unless=None))
        sent_next = self._asked(start, instead, emitter)
        brought_now = self._asked(start, {}, emitter)[_SENT_WITH:] if self._only else []
        return (
            f"{self._arrive}({', '.join(brought_now)});",
            f"/* lapwing: the next turn's {message.name} starts before the rest of this turn */",
            f"if ({done} && {self._may_start}({', '.join(sent_next)})) {{",
            f"{step}{call}",
            f"{step}{self.started} = 1;",
            "}",
        )

    def _asked(self, start: SplitPhaseOperation, instead: Mapping[int, str], emitter: Emitter) -> list[str]:
        """The texts of the transfer's arguments but for its buffers."""
        message = message_of(start.call)
        assert message is not None
        buffers = (mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER)
        return [
            instead.get(place) or emitter.text(argument)
            for place, (argument, parameter) in enumerate(zip(start.call.arguments, message.parameters, strict=True))
            if parameter.role not in buffers
        ]

    def allocated(self) -> tuple[str, ...]:
        """Lines after both buffers' allocation: both are still empty."""
        return (f"{self._same} = 1;", f"{self._high} = 0;") if self._only else ()

    def declarations(self, sizes: Callable[[Symbol], Sequence[str]]) -> list[str]:
        """``sizes``: an array's."""
        lines = [
            f"static {self._language.variable(self.received.type.text, self.other)}\n",
            f"static int {self.started}, {self._same};\n",
            f"static size_t {self.bytes};\n",
            f"static long {self._high}, {self._brought};\n",
        ]
        for row in self._rows:
            name = self.sent_rows[row.symbol.key]
            lines.append(f"static {self._language.variable(row.symbol.type.text, name, sizes(row.symbol))}\n")
        return lines

    def functions(self, inside: str, copy: Callable[[str, str, Symbol], str], write: Write) -> str:
        """``inside``: the function that tells whether all that is sent is in the second buffer. ``copy``: the line that copies
        all of a variable."""
        return self._measuring(write) + self._asking(inside, copy, write) + self._arriving(write)

    def _measuring(self, write: Write) -> str:
        """The function that returns how many of the buffer's first elements a transfer delivers; -1 if it delivers others."""
        lines = [
            "MPI_Comm_test_inter(lw_comm, &lw_inter);",
            "MPI_Comm_size(lw_comm, &lw_ranks);",
            "MPI_Type_size(lw_kind, &lw_size);",
            f"if (lw_inter || lw_size != (int)sizeof *{self.received.name}) return -1;",
            "for (lw_r = 0; lw_r < lw_ranks; lw_r++) {",
            "    if (lw_brought[lw_r] > 0 && lw_places[lw_r] != lw_end) return -1;",
            "    lw_end += lw_brought[lw_r];",
            "}",
            "return lw_end;",
        ]
        return write(
            f"static long {self._extent}({_ABOUT_BROUGHT})",
            ["long lw_end = 0;", "int lw_inter, lw_ranks, lw_size, lw_r;"],
            lines,
        )

    def _asking(self, inside: str, copy: Callable[[str, str, Symbol], str], write: Write) -> str:
        """The function that returns whether the next transfer may start, and prepares what it needs."""
        name = self.received.name
        lines = [
            *(
                copy(self.sent_rows[row.symbol.key], self._double_buffers[row.symbol.key], row.symbol)
                for row in self._rows
            ),
            f"{self._brought} = {self._extent}(lw_brought, lw_places, lw_kind, lw_comm);",
            f"if ({self.other} == NULL || {self._brought} < 0 || !{inside}(lw_counts, lw_displs, lw_type, lw_comm)) return 0;",
            f"if (!{self._same}) {{",
            f"    memcpy({self.other}, {name}, {self.bytes});",
            f"    {self._high} = 0;",
            "}",
            f"{self._same} = 1;",
            "return 1;",
        ]
        about_sent = "const int *lw_counts, const int *lw_displs, MPI_Datatype lw_type"
        head = f"static int {self._may_start}({about_sent},\n    {_ABOUT_BROUGHT})"
        return write(head, [], lines)

    def _arriving(self, write: Write) -> str:
        """The procedure called after a transfer's end: makes what was delivered available where the program reads it."""
        name = self.received.name
        here = [f"{self._same} = 0;"]
        if self._only:
            here = [
                f"lw_end = {self._extent}(lw_brought, lw_places, lw_kind, lw_comm);",
                f"if (lw_end < 0) {self._same} = 0;",
                f"if (lw_end > {self._high}) {self._high} = lw_end;",
            ]
        lines = [
            f"if (!{self.started}) {{",
            *(f"    {line}" for line in here),
            "    return;",
            "}",
            f"{self.started} = 0;",
            f"{name} = {self.other};",
            f"{self.other} = lw_other;",
            f"if ({self._brought} < {self._high})",
            f"    memcpy({name} + {self._brought}, lw_other + {self._brought},",
            f"           (size_t)({self._high} - {self._brought}) * sizeof *lw_other);",
            "else",
            f"    {self._high} = {self._brought};",
        ]
        other = self._language.variable(self.received.type.text, "lw_other").replace(";", f" = {name};")
        given = _ABOUT_BROUGHT if self._only else "void"
        return write(f"static void {self._arrive}({given})", [other, *(["long lw_end;"] if self._only else [])], lines)


_SENT_WITH = 3  # arguments of MPI_Alltoallv that describe what is sent; the others describe what is received
_ABOUT_BROUGHT = "const int *lw_brought, const int *lw_places, MPI_Datatype lw_kind, MPI_Comm lw_comm"
