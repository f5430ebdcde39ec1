"""DO loops of all kinds: with END DO or a label, counted, DO WHILE, endless, DO CONCURRENT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tree_sitter import Node

from lapwing.overlap.ir.statements import Block, Loop, Nothing, Statement, While
from lapwing.overlap.languages.fortran.parsing.file import File, Unreadable, child_of
from lapwing.overlap.languages.fortran.parsing.view import View
from lapwing.overlap.languages.fortran.reading.expressions import ExpressionReader
from lapwing.overlap.source.spans import Span


class Statements(Protocol):
    """The reader of the statements around and in loops (statements.py)."""

    expressions: ExpressionReader
    file: File
    view: View

    def statement(self, node: Node, span: Span, label: str | None) -> Statement: ...
    def statements(self, nodes: Sequence[Node], start: int, end: int) -> list[Statement]: ...
    def block(self, nodes: Sequence[Node], start: int, end: int, form: str = "lines") -> Block: ...
    def start_after(self, node: Node) -> int: ...
    def end_before(self, node: Node) -> int: ...


class LoopReader:
    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self.names: list[str | None] = []  # of the loops around, the innermost last
        self.terminals: list[Node] = []  # what ends the labelled loops around

    def name_to(self, name: str) -> str | None:
        """What EXIT or CYCLE of a named construct goes to: None if it is the innermost loop."""
        return None if self.names and self.names[-1] == name else name

    def read(self, node: Node, span: Span, label: str | None) -> Statement:
        statement = child_of(node, "do_statement")
        if statement is None:
            raise Unreadable("a DO loop")
        heading = child_of(node, "block_label_start_expression")
        name = None if heading is None else self.statements.file.name(heading).rstrip(": ")
        self.names.append(name)
        try:
            if node.children[-1].type == "end_do_label_loop_statement":
                body, span = self.labelled(node, statement, span)
            else:
                inner = [child for child in node.children[:-1] if child.type != "do_statement"]
                end = self.statements.end_before(node.children[-1])
                body = self.statements.block(inner, self.statements.start_after(node), end)
        finally:
            self.names.pop()
        return self.loop(statement, body, span, label or name)

    def labelled(self, node: Node, statement: Node, span: Span) -> tuple[Block, Span]:
        """``do 10 …`` up to the statement with label 10, which may end other loops, too."""
        ends_here = not _shares_end(node)
        if ends_here:
            self.terminals.append(node.children[-1])
        if not self.terminals:
            raise Unreadable("a DO loop whose last statement ends other loops, too")
        try:
            return self.to_label(node, statement, span)
        finally:
            if ends_here:
                self.terminals.pop()

    def to_label(self, node: Node, statement: Node, span: Span) -> tuple[Block, Span]:
        reader = self.statements
        last = self.terminals[-1].named_children[-1]
        first_byte, last_byte = reader.view.statement_at(reader.file.start(last))
        span = Span(span.source, span.start, last_byte)
        inner = [child for child in node.children[:-1] if child.type != "do_statement"]
        start = reader.start_after(node)
        if inner and inner[-1].type == "do_loop" and _shares_end(inner[-1]):
            # The inner loop's end is this one's: there is no place after it.
            return reader.block(inner, start, last_byte, "chain"), span
        label = reader.file.text(statement.child_by_field_name("do_label") or last).strip().lstrip("0")
        end = reader.end_before(last)
        content = reader.statements(inner, start, end)
        if last.type == "keyword_statement" and reader.file.name(last) == "continue":
            content.append(Nothing(span=Span(span.source, end, end), label=label))
            return Block(tuple(content), Span(span.source, start, end)), span
        content.append(reader.statement(last, Span(span.source, first_byte, last_byte), label))
        return Block(tuple(content), Span(span.source, start, last_byte), "chain"), span

    def loop(self, statement: Node, body: Block, span: Span, label: str | None) -> Statement:
        expressions = self.statements.expressions
        control = child_of(statement, "loop_control_expression")
        if control is not None:
            variable, lower, upper, step = expressions.control(control)
            if variable.type.base != "integer":
                raise Unreadable(f"a DO loop over {variable.name}, which is not an integer")
            return Loop(variable, lower, upper, step, body, span=span, label=label)
        condition = child_of(statement, "while_statement")
        if condition is not None:
            parts = [expressions.read(child) for child in condition.children if child.is_named]
            return While(tuple(parts), body, span=span, label=label)
        if child_of(statement, "concurrent_statement") is not None:
            raise Unreadable("DO CONCURRENT, whose index is a variable of its own")
        return While((), body, span=span, label=label)


def _shares_end(node: Node) -> bool:
    """Whether the loop's last statement stands in the tree as that of a loop around it."""
    end = node.children[-1]
    label = end.child_by_field_name("do_label")
    return end.type == "end_do_label_loop_statement" and label is not None and label.type == "do_label_virtual"
