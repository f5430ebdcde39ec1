"""The C text by which a transfer starts a turn ahead, and by which its two receive buffers change places.

The buffers are the same but for their first elements, as many as transfers have brought so far (``high``). When one has come into
the second buffer, what it did not bring of those is copied from the first, mostly a few elements; then the pointers swap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lapwing.overlap import mpi
from lapwing.overlap.c.write import declaration
from lapwing.overlap.emit import Emitter, expression_text
from lapwing.overlap.motions.ahead import Ahead
from lapwing.overlap.phases import Phase
from lapwing.overlap.program import Name, Symbol
from lapwing.overlap.tree import message_of


class AheadText:
    """Names and texts of one procedure's transfer, an MPI_Alltoallv."""

    def __init__(self, ahead: Ahead, procedure: str, shadows: Mapping[str, str], fresh: Callable[[str], str]) -> None:
        """``procedure``: its name. ``shadows``: their names by the keys of their variables. ``fresh``: makes a name new."""
        self.received = ahead.received
        self._rows = ahead.rows
        self._shadows = shadows
        self.started = fresh(f"{procedure}_started")
        self.other = fresh(f"{ahead.received.name}_other")
        self.bytes = fresh(f"{ahead.received.name}_bytes")
        self._same = fresh(f"{procedure}_same")
        self._high = fresh(f"{procedure}_high")
        self._brought = fresh(f"{procedure}_brought")
        self._may_start = fresh(f"{procedure}_may_start")
        self._arrive = fresh(f"{procedure}_arrive")
        self.sent_rows = {row.symbol.key: fresh(f"{row.symbol.name}_sent") for row in ahead.rows}
        """What the transfer reads while the next early work writes the rows' shadows."""

    def starting(self, start: Phase, done: str, sent: str, emitter: Emitter, step: str) -> tuple[str, ...]:
        """Lines after the end of the transfer whose beginning is ``start``: the next one starts if its early work is ``done``.
        ``sent``: the shadow it sends. ``step``: of indentation."""
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
        (call,) = emitter.phase(replace(start, instead=tuple(instead.items()), unless=None))
        buffers = (mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER)
        asked = [
            instead.get(place) or expression_text(emitter.source, argument)
            for place, (argument, parameter) in enumerate(zip(start.call.arguments, message.parameters, strict=True))
            if parameter.role not in buffers
        ]
        return (
            f"{self._arrive}();",
            f"/* lapwing: the next turn's {message.name} starts before the rest of this turn */",
            f"if ({done} && {self._may_start}({', '.join(asked)})) {{",
            f"{step}{call}",
            f"{step}{self.started} = 1;",
            "}",
        )

    def declarations(self, sizes: Callable[[Symbol], Sequence[str]]) -> list[str]:
        """``sizes``: an array's."""
        lines = [
            f"static {declaration(self.received.type.text, self.other)}\n",
            f"static int {self.started}, {self._same};\n",
            f"static size_t {self.bytes}, {self._high}, {self._brought};\n",
        ]
        for row in self._rows:
            name = self.sent_rows[row.symbol.key]
            lines.append(f"static {declaration(row.symbol.type.text, name, sizes(row.symbol))}\n")
        return lines

    def functions(
        self, inside: str, copy: Callable[[str, str, Symbol], str], write: Callable[[str, list[str], list[str]], str]
    ) -> str:
        """``inside``: the function that says whether all that is sent is in the shadow. ``copy``: the line that copies all of a
        variable. ``write``: makes a function of its head, variables and lines."""
        return self._asking(inside, copy, write) + self._arriving(write)

    def _asking(
        self, inside: str, copy: Callable[[str, str, Symbol], str], write: Callable[[str, list[str], list[str]], str]
    ) -> str:
        name = self.received.name
        rows = [copy(self.sent_rows[row.symbol.key], self._shadows[row.symbol.key], row.symbol) for row in self._rows]
        lines = [
            *rows,
            f"if ({self.other} == NULL || !{inside}(counts, displs, type, comm)) return 0;",
            "MPI_Comm_size(comm, &ranks);",
            "MPI_Type_size(kind, &size);",
            f"if (size != (int)sizeof *{name}) return 0;",
            "for (r = 0; r < ranks; r++) {",
            "    if (brought[r] > 0 && (size_t)places[r] != end) return 0;",
            "    end += (size_t)brought[r];",
            "}",
            f"if (!{self._same}) {{",
            f"    memcpy({self.other}, {name}, {self.bytes});",
            f"    {self._high} = 0;",
            "}",
            f"{self._same} = 1;",
            f"{self._brought} = end;",
            "return 1;",
        ]
        sent, brought = (
            "const int *counts, const int *displs, MPI_Datatype type",
            "const int *brought, const int *places",
        )
        head = f"static int {self._may_start}({sent},\n    {brought}, MPI_Datatype kind, MPI_Comm comm)"
        return write(head, ["size_t end = 0;", "int ranks, size, r;"], lines)

    def _arriving(self, write: Callable[[str, list[str], list[str]], str]) -> str:
        name = self.received.name
        lines = [
            f"if (!{self.started}) {{",
            f"    {self._same} = 0;",
            "    return;",
            "}",
            f"{self.started} = 0;",
            f"{name} = {self.other};",
            f"{self.other} = other;",
            f"if ({self._brought} < {self._high})",
            f"    memcpy({name} + {self._brought}, other + {self._brought},",
            f"           ({self._high} - {self._brought}) * sizeof *other);",
            "else",
            f"    {self._high} = {self._brought};",
        ]
        variables = [declaration(self.received.type.text, "other").replace(";", f" = {name};")]
        return write(f"static void {self._arrive}(void)", variables, lines)
