"""Executable statements: from tree-sitter's nodes to the program model's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from lapwing.overlap.ir.expressions import Assignment, Constant, Element, Expression, Name, Number, Operation, Slice
from lapwing.overlap.ir.statements import (
    Allocate,
    Assign,
    Block,
    Call,
    Compound,
    Evaluate,
    If,
    Jump,
    Nothing,
    Opaque,
    Select,
    Statement,
    While,
)
from lapwing.overlap.languages.fortran.parsing.file import File, Unreadable, child_of, children_of, height
from lapwing.overlap.languages.fortran.parsing.preprocessor import included_name, outside
from lapwing.overlap.languages.fortran.parsing.view import Piece
from lapwing.overlap.languages.fortran.reading.directives import with_directives
from lapwing.overlap.languages.fortran.reading.expressions import ExpressionReader
from lapwing.overlap.languages.fortran.reading.input_output import read_input_output
from lapwing.overlap.languages.fortran.reading.loops import LoopReader
from lapwing.overlap.languages.fortran.reading.overloads import ASSIGNMENT
from lapwing.overlap.source.spans import Span

_NOT_STATEMENTS = {";", "comment", "block_label_start_expression", "block_label"}
_INPUT_OUTPUT = {
    "write_statement",
    "read_statement",
    "print_statement",
    "open_statement",
    "close_statement",
    "inquire_statement",
    "file_position_statement",
}
_PLAIN = _INPUT_OUTPUT | {"assignment_statement", "subroutine_call"}
# Everybody who works on the program model walks through it by recursion, of which Python allows some 1000 levels.
_DEEPEST = 60  # of statements in statements
_TALLEST = 200  # levels of one statement's tree
Read = Callable[[Node, Span, "str | None"], Statement]


class StatementReader:
    """``problem``: is told of every statement that becomes an Opaque, with its first byte and the reason."""

    def __init__(self, expressions: ExpressionReader, problem: Callable[[int, str], None]) -> None:
        self.expressions = expressions
        self.scope = expressions.scope
        self.file: File = expressions.file
        self.problem = problem
        self.view = self.file.parsed.view
        self.loops = LoopReader(self)
        self.depth = 0  # of the statement that is being read, in others
        self.readers: dict[str, Read] = {
            "assignment_statement": self.assignment,
            "subroutine_call": self.call,
            "if_statement": self.branch,
            "do_loop": self.loops.read,
            "keyword_statement": self.keyword,
            "stop_statement": self.stop,
            "arithmetic_if_statement": self.arithmetic_if,
            "select_case_statement": self.select,
            "where_statement": self.where,
            "forall_statement": self.forall,
            "allocate_statement": self.allocate,
            "deallocate_statement": self.deallocate,
            "pointer_association_statement": self.unread,
            "nullify_statement": self.unread,
            "block_construct": self.block_construct,
            "format_statement": self.nothing,
            "data_statement": self.nothing,
        }
        self.readers |= dict.fromkeys(_INPUT_OUTPUT, self.input_output)

    # ---- lists of statements --------------------------------------------------------------------------------------------

    def block(self, nodes: Sequence[Node], start: int, end: int, form: str = "lines") -> Block:
        """``start`` and ``end`` are those of lines, or nothing may be put between: ``do i = 1, n; a(i) = 0; end do``."""
        whole_lines = self.file.starts_line(start) and self.file.starts_line(end)
        statements = tuple(self.statements(nodes, start, end))
        return Block(statements, Span(self.file.number, start, end), form if whole_lines else "chain")

    def statements(self, nodes: Sequence[Node], start: int, end: int) -> list[Statement]:
        result: list[Statement] = []
        directives: list[Piece] = []
        label: Node | None = None
        position = start
        for node in nodes:
            if node.type in _NOT_STATEMENTS:
                continue
            if node.type == "statement_label":
                label = node
                continue
            span = self.span(node)
            if result and span.start < position:  # nodes of one statement, which the grammar could not read
                last = result[-1]
                position = max(position, span.end)
                whole = Span(self.file.number, last.span.start, position)
                result[-1] = self.opaque(whole, "not a statement of Fortran", last.label)
                continue
            directives += self.between(result, position, span.start)
            result.append(self.statement(node, span, None if label is None else label_text(self.file.text(label))))
            position = span.end
            label = None
        directives += self.between(result, position, end)
        if directives:
            result = with_directives(self.file.number, result, directives, self.opaque)
        if label is not None:
            # On the END IF or END DO that ends the block: a place to jump to, with nothing to do there.
            result.append(Nothing(span=Span(self.file.number, end, end), label=label_text(self.file.text(label))))
        return result

    def between(self, result: list[Statement], start: int, end: int) -> list[Piece]:
        """Adds what was cut out of the parsed text between two statements; returns the directives there."""
        parsed = self.file.parsed
        if not (parsed.holes or parsed.preprocessor or parsed.directives):
            return []
        holes = [*parsed.holes_between(start, end), *self.includes_between(start, end)]
        for hole in sorted(holes, key=lambda piece: piece.start):
            result.append(self.opaque(Span(self.file.number, hole.start, hole.end), hole.text))
        directives = [piece for piece in parsed.directives if start <= piece.start < end]
        return outside(directives, holes)

    def includes_between(self, start: int, end: int) -> list[Piece]:
        pieces = [piece for piece in self.file.parsed.preprocessor if start <= piece.start < end]
        found = [piece for piece in pieces if included_name(piece.text) is not None]
        holes = self.file.parsed.holes
        outside = [piece for piece in found if not any(hole.start <= piece.start < hole.end for hole in holes)]
        return [Piece(piece.start, piece.end, "an include file among statements") for piece in outside]

    def span(self, node: Node) -> Span:
        """From the statement's label to the end of the last line of its last part."""
        start, end = self.view.statement_at(self.file.start(node))
        last = self.file.end(node)
        return Span(self.file.number, start, end if last <= end else self.view.statement_at(last - 1)[1])

    def statement(self, node: Node, span: Span, label: str | None = None) -> Statement:
        reader = self.readers.get(node.type)
        if reader is None:
            return self.opaque(span, node.type.replace("_statement", "").replace("_", " "), label)
        if self.depth >= _DEEPEST or (node.type in _PLAIN and height(node, _TALLEST) >= _TALLEST):
            return self.opaque(span, "nested too deeply", label)
        self.depth += 1
        try:
            return reader(node, span, label)
        except Unreadable as reason:
            return self.opaque(span, str(reason), label)
        except RecursionError:
            return self.opaque(span, "nested too deeply", label)
        finally:
            self.depth -= 1

    def opaque(self, span: Span, reason: str, label: str | None = None) -> Opaque:
        self.problem(span.start, reason)
        return Opaque(reason, span=span, label=label)

    def start_after(self, node: Node) -> int:
        """Where the block begins whose header is the statement at ``node``'s first byte."""
        end = self.view.statement_at(self.file.start(node))[1]
        return end if self.file.source.data[end - 1 : end] == b";" else self.file.line_after(end)

    def end_before(self, node: Node) -> int:
        """Where the block ends whose footer is the statement at ``node``'s first byte."""
        start = self.view.statement_at(self.file.start(node))[0]
        return self.file.line_start(start) if self.file.starts_line(start) else start

    def single(self, node: Node) -> Block:
        """The statement after ``if (…)`` on one line."""
        span = self.file.span(node)
        return Block((self.statement(node, span),), span, "single")

    # ---- simple statements ----------------------------------------------------------------------------------------------

    def assignment(self, node: Node, span: Span, label: str | None) -> Statement:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            raise Unreadable("an assignment")
        target = self.expressions.target(left)
        value = self.expressions.read(right)
        if self.expressions.may_call(ASSIGNMENT, (target, value)) or self.expressions.may_end(target):
            raise Unreadable("an assignment that may call a procedure")
        if isinstance(target, Constant | Number):
            raise Unreadable(f"an assignment to {self.file.text(left)}")
        return Assign(target, value, span=span, label=label)

    def call(self, node: Node, span: Span, label: str | None) -> Statement:
        callee = node.child_by_field_name("subroutine")
        if callee is None or child_of(node, "cuda_kernel_argument_list") is not None:
            raise Unreadable("a call")
        argument_list = child_of(node, "argument_list")
        if callee.type != "identifier":
            positional, keywords = self.expressions.arguments(argument_list, None)
            through = self.expressions.read(callee.children[0])
            return Call(None, (through, *positional), keywords=tuple(keywords), span=span, label=label)
        text = self.file.text(callee)
        if text in self.file.macros:
            raise Unreadable(f"the macro {text}")
        name = self.scope.called(text.lower())
        positional, keywords = self.expressions.arguments(argument_list, text.lower())
        values = (*positional, *(value for _, value in keywords))
        if name == "move_alloc" and any(map(self.expressions.may_end, values)):
            raise Unreadable("MOVE_ALLOC, which may call a FINAL procedure")
        return Call(name, tuple(positional), keywords=tuple(keywords), span=span, label=label)

    def keyword(self, node: Node, span: Span, label: str | None) -> Statement:
        word = self.file.name(node.children[0])
        target = child_of(node, "statement_label_reference")
        if word == "continue":
            return Nothing(span=span, label=label)
        if word == "return":
            if node.named_child_count:
                raise Unreadable("an alternate return")
            return Jump("return", span=span, label=label)
        if word in ("exit", "cycle"):
            name = child_of(node, "identifier")
            to = None if name is None else self.loops.name_to(self.file.name(name))
            return Jump("break" if word == "exit" else "continue", to=to, span=span, label=label)
        if word.startswith("go") and target is not None and child_of(node, "(") is None:
            return Jump("goto", to=label_text(self.file.text(target)), span=span, label=label)
        raise Unreadable("a computed or assigned GO TO" if word.startswith("go") else word.upper())

    def stop(self, node: Node, span: Span, label: str | None) -> Statement:
        return Jump("stop", span=span, label=label)

    def nothing(self, node: Node, span: Span, label: str | None) -> Statement:
        return Nothing(span=span, label=label)

    def input_output(self, node: Node, span: Span, label: str | None) -> Statement:
        return read_input_output(self.expressions, node, span, label)

    def unread(self, node: Node, span: Span, label: str | None) -> Statement:
        value = self.expressions.unread(node)
        return Evaluate(value, span=span, label=label)

    def allocate(self, node: Node, span: Span, label: str | None) -> Statement:
        objects: list[Expression] = []
        for child in node.children_by_field_name("allocation"):
            objects.append(self.allocation(child))
        reads, writes = self.allocation_options(node)
        return Allocate(tuple(objects), reads=reads, writes=writes, span=span, label=label)

    def allocation(self, node: Node) -> Expression:
        size = child_of(node, "size")
        if size is None or node.type == "identifier":
            return self.expressions.read(node)
        bounds = [self.bound(child) for child in size.children if child.is_named]
        return Element(self.expressions.read(node.children[0]), tuple(bounds), span=self.file.span(node))

    def bound(self, node: Node) -> Slice:
        value = self.expressions.read(node)
        return value if isinstance(value, Slice) else Slice(Number(1), value, None, span=value.span)

    def allocation_options(self, node: Node) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
        """What SOURCE= and MOLD= read, and what STAT= and ERRMSG= write."""
        reads: list[Expression] = []
        writes: list[Expression] = []
        for argument in children_of(node, "keyword_argument"):
            name, value = argument.child_by_field_name("name"), argument.child_by_field_name("value")
            if name is not None and value is not None:
                kept = writes if self.file.name(name) in ("stat", "errmsg") else reads
                kept.append(self.expressions.read(value))
        return tuple(reads), tuple(writes)

    def deallocate(self, node: Node, span: Span, label: str | None) -> Statement:
        names = [child for child in node.children if child.type in ("identifier", "derived_type_member_expression")]
        reads, writes = self.allocation_options(node)
        objects = tuple(self.expressions.read(name) for name in names)
        if any(map(self.expressions.may_end, objects)):
            raise Unreadable("DEALLOCATE, which may call a FINAL procedure")
        return Allocate(objects, frees=True, reads=reads, writes=writes, span=span, label=label)

    # ---- branches -------------------------------------------------------------------------------------------------------

    def branch(self, node: Node, span: Span, label: str | None) -> Statement:
        children = node.children
        if child_of(node, "then") is None:
            return self.one_line(node, span, label)
        footer = children[-1]
        clauses = [index for index, child in enumerate(children) if child.type in ("elseif_clause", "else_clause")]
        return self.clause(node, children, clauses, footer, span, label)

    def one_line(self, node: Node, span: Span, label: str | None) -> Statement:
        named = [child for child in node.children if child.is_named and child.type != "block_label_start_expression"]
        if len(named) != 2:
            raise Unreadable("an IF statement")
        return If(self.expressions.read(named[0]), self.single(named[1]), span=span, label=label)

    def clause(
        self, node: Node, parts: list[Node], clauses: list[int], footer: Node, span: Span, label: str | None
    ) -> Statement:
        """An IF or ELSE IF and what follows it: ``parts`` of the IF statement from the next of its ``clauses`` on."""
        condition = child_of(node, "parenthesized_expression")
        if condition is None:
            raise Unreadable("an IF statement")
        value = self.expressions.read(condition)
        rest = parts[clauses[0]] if clauses else footer
        inside = node.children
        if node.type == "if_statement":
            inside = inside[: clauses[0]] if clauses else inside[:-1]
        then = self.block(_after(inside, "then"), self.start_after(node), self.end_before(rest))
        otherwise = self.otherwise(parts, clauses, footer) if clauses else None
        return If(value, then, otherwise, span=span, label=label)

    def otherwise(self, parts: list[Node], clauses: list[int], footer: Node) -> Block:
        clause = parts[clauses[0]]
        end = self.end_before(footer)
        if clause.type == "else_clause":
            return self.block(clause.children[1:], self.start_after(clause), end)
        start = self.view.statement_at(self.file.start(clause))[0]
        # Up to the END IF: the comments before it are inside the last of its blocks.
        span = Span(self.file.number, start, end)
        return Block((self.clause(clause, parts, clauses[1:], footer, span, None),), span, "chain")

    def arithmetic_if(self, node: Node, span: Span, label: str | None) -> Statement:
        """``if (e) 10, 20, 30`` is two IFs that jump, and a jump."""
        condition = child_of(node, "parenthesized_expression")
        targets = [label_text(self.file.text(child)) for child in children_of(node, "statement_label_reference")]
        if condition is None or len(targets) != 3:
            raise Unreadable("an arithmetic IF")
        value = self.expressions.read(condition)
        below, zero, above = (Block((Jump("goto", to=to, span=span),), span, "single") for to in targets)
        inner = If(Operation("==", (value, Number(0))), zero, above, span=span)
        return If(Operation("<", (value, Number(0))), below, Block((inner,), span, "chain"), span=span, label=label)

    def select(self, node: Node, span: Span, label: str | None) -> Statement:
        selector = child_of(node, "selector")
        cases = children_of(node, "case_statement")
        inner = next((child for child in selector.children if child.is_named), None) if selector is not None else None
        if inner is None or not cases:
            raise Unreadable("a SELECT CASE")
        value = self.expressions.read(inner)
        ends = [*cases[1:], node.children[-1]]
        blocks = []
        for case, after in zip(cases, ends, strict=True):
            start = self.file.start(case)
            header_end = self.view.statement_at(start)[1]
            body = [child for child in case.children if self.file.start(child) >= header_end]
            blocks.append(self.block(body, self.start_after(case), self.end_before(after)))
        return Select(value, tuple(blocks), span=span, label=label)

    def where(self, node: Node, span: Span, label: str | None) -> Statement:
        """WHERE is an IF whose branches are taken element by element; nothing may be put into them."""
        condition = child_of(node, "parenthesized_expression")
        if condition is None:
            raise Unreadable("a WHERE statement")
        value = self.expressions.read(condition)
        body = [child for child in node.children if child.is_named and child != condition]
        if node.children[-1].type != "end_where_statement":
            return If(value, self.single(body[-1]), span=span, label=label)
        footer = node.children[-1]
        masked = [child for child in body if child.type not in ("elsewhere_clause", "end_where_statement")]
        clauses = children_of(node, "elsewhere_clause")
        then = self.block(masked, self.start_after(node), self.end_before(clauses[0] if clauses else footer), "chain")
        otherwise = self.elsewhere(clauses, footer) if clauses else None
        return If(value, then, otherwise, span=span, label=label)

    def elsewhere(self, clauses: list[Node], footer: Node) -> Block:
        if len(clauses) > 1 or child_of(clauses[0], "parenthesized_expression") is not None:
            raise Unreadable("a WHERE with several masks")
        return self.block(clauses[0].children[1:], self.start_after(clauses[0]), self.end_before(footer), "chain")

    def forall(self, node: Node, span: Span, label: str | None) -> Statement:
        """A loop of which no more is known than what it reads and writes. Its indices are variables of its own; that it changes
        the others of that name says that theirs are not its values."""
        parts = [part for child in children_of(node, "triplet_spec") for part in self.triplet(child)]
        mask = [child for child in node.children if child.type in self.expressions.readers]
        parts += [self.expressions.read(child) for child in mask]
        last = node.children[-1]
        if last.type != "end_forall_statement":
            return While(tuple(parts), self.single(last), span=span, label=label)
        headed = ("block_label_start_expression", "triplet_spec", "end_forall_statement")
        inner = [child for child in node.children if child.is_named and child.type not in headed and child not in mask]
        body = self.block(inner, self.start_after(node), self.end_before(last), "chain")
        return While(tuple(parts), body, span=span, label=label)

    def triplet(self, node: Node) -> Iterator[Expression]:
        index, *bounds = [child for child in node.children if child.is_named]
        variable, values = self.expressions.variable(index), [self.expressions.read(bound) for bound in bounds]
        yield from values
        yield Assignment(Name(variable), None, values[0])

    def block_construct(self, node: Node, span: Span, label: str | None) -> Statement:
        inner = [child for child in node.children if child.type not in ("block", "end_block_construct_statement")]
        if any(child.type.endswith(("declaration", "modification")) for child in inner):
            raise Unreadable("a BLOCK with declarations")
        body = self.block(inner, self.start_after(node), self.end_before(node.children[-1]))
        return Compound(body, span=span, label=label)


def label_text(text: str) -> str:
    """A label as it is compared: without leading zeros."""
    return text.strip().lstrip("0")


def _after(nodes: list[Node], word: str) -> list[Node]:
    index = next((index for index, node in enumerate(nodes) if node.type == word), -1)
    return nodes[index + 1 :]
