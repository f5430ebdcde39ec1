"""Removes declarations of local variables that a procedure's new text no longer names.

before:  int up = left, down = right; post(up);         after:  int up = left; post(up);
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Assignment, Expression, Invocation, Name, Storage, Symbol, Unread
from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.split_phase import Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Block, Declare, Loop, Opaque
from lapwing.overlap.languages.c.parsing.spelling import spellings
from lapwing.overlap.languages.c.parsing.text import named_words
from lapwing.overlap.source.spans import Source
from lapwing.overlap.source.spelling import macros, separated


def named_by_macros(program: Program) -> Collection[str] | None:
    """The words that macros may expand to; None where they may expand to any."""
    texts = [*spellings(program)]
    if any(b"##" in text for text in texts):
        return None
    # A macro defined from outside is a plain value.
    found = (b" ".join(macro) for text in texts for macro in (macros(text) if b"\n" in text else [(text,)]))
    return {word.decode("latin-1") for line in found for word in _WORD.findall(line)}


def without_unused(
    text: str, source: Source, body: Block, hidden: Collection[str] | None, once_used: Counter[str] | None = None
) -> str:
    """``text``, rendered from ``body``, without unused declarations. ``hidden``: from ``named_by_macros``. ``once_used``: word
    counts of the original text; only variables named more than once there are removed."""
    if hidden is None or any(isinstance(statement, Opaque) for statement in body.walk()):
        return text
    declarations = [s for s in body.walk() if isinstance(s, Declare) and not s.names and s.label is None]
    texts = [source.text(declaration.span) for declaration in declarations]
    gone: set[str] = set()
    while True:
        words, named = named_words(text.encode("latin-1", "replace")), _names(body, gone)
        for number, (declaration, old) in enumerate(zip(declarations, texts, strict=True)):
            kept = [(symbol, value) for symbol, value in declaration.variables if symbol.key not in gone]
            unused = {
                symbol.key: symbol.name
                for symbol, value in kept
                if words[symbol.name] == 1
                and symbol.key not in named
                and symbol.name not in hidden
                and (once_used is None or once_used[symbol.name] > 1)
                and _may_go(symbol, value)
            }
            new = _declaration(old, [symbol.name for symbol, _ in kept], set(unused.values()))
            if new != old and text.count(old) == 1:
                text = _replaced(text, old, new)
                texts[number] = new
                gone.update(unused)
                break
        else:
            return text


def _names(body: Block, gone: Collection[str]) -> set[str]:
    """The keys of the variables that the statements name, including through macros, but not in text that is replaced, nor in
    the initial values of removed variables."""
    found: set[str] = set()
    for statement in body.walk():
        if isinstance(statement, Declare):
            present = ((one, value) for one, value in statement.variables if one.key not in gone)
            expressions: Iterator[Expression] = (e for one, value in present for e in _makes(one, value))
        elif isinstance(statement, SplitPhaseOperation):
            expressions = _written(statement)
        else:
            expressions = iter(statement.every_expression())
        found.update(e.symbol.key for e in expressions if isinstance(e, Name))
        if isinstance(statement, Loop):
            found.add(statement.variable.key)
    return found


def _makes(symbol: Symbol, value: Expression | None) -> Iterator[Expression]:
    """The expressions that a declaration evaluates."""
    bounds = (end for d in symbol.dimensions or () for end in (d.lower, d.upper))
    return (inner for e in (value, *bounds) if e is not None for inner in e.walk())


def _written(operation: SplitPhaseOperation) -> Iterator[Expression]:
    """The expressions in a split-phase operation's text: its request is a slot's, and an end operation names only the receive
    buffer."""
    message = mpi.lookup(operation.call.name or "")
    assert message is not None
    for argument, parameter in zip(operation.call.arguments, message.parameters, strict=False):
        arrives = operation.part is Part.ARRIVE and parameter.role is mpi.Role.RECV_BUFFER
        arrives = arrives and (operation.copies or operation.plain_if_short)
        starts = operation.part not in (Part.ARRIVE, Part.END) and parameter.role not in (
            mpi.Role.REQUEST,
            mpi.Role.STATUS,
        )
        if arrives or starts:
            yield from argument.walk()
    for more in (operation.status, operation.call.result):
        if more is not None:
            yield from more.walk()


def _may_go(symbol: Symbol, value: Expression | None) -> bool:
    """Whether neither the variable's initialisation nor its destruction has effects."""
    if symbol.storage is not Storage.LOCAL or symbol.volatile:
        return False
    plain = symbol.type.holds_values or symbol.type.base == "pointer" or symbol.type.text.startswith("MPI_")
    return plain and not any(isinstance(e, Invocation | Assignment | Unread) for e in _makes(symbol, value))


def _declaration(text: str, names: Sequence[str], unused: set[str]) -> str:
    """The declaration without unused variables; unchanged where it has an unsupported form."""
    if unused.issuperset(names):
        return ""
    found = re.fullmatch(r"((?:\w+[ \t]+)+)(\**[ \t]*\w[^\n\\]*);", text)
    if not unused or found is None or re.search(r"/[/*]|[\"']", text):
        return text
    declarators = [part.strip() for part in separated(found[2])]
    plain = [re.fullmatch(r"\**\s*(\w+)\s*(?:\[[^\[\]]*\])*\s*(?:=.*)?", declarator) for declarator in declarators]
    if [one[1] if one else None for one in plain] != list(names):
        return text
    kept = (declarator for declarator, name in zip(declarators, names, strict=True) if name not in unused)
    return f"{found[1]}{', '.join(kept)};"


def _replaced(text: str, old: str, new: str) -> str:
    """The text with ``old``, which occurs once, replaced by ``new``; a line left with only a comment is removed."""
    start = text.index(old)
    end = start + len(old)
    if new:
        return text[:start] + new + text[end:]
    line = text.rfind("\n", 0, start) + 1
    rest = re.compile(r"[ \t]*(?://[^\n\\]*|/\*[^\n*]*\*/[ \t]*)?(?:\n|\Z)").match(text, end)
    if rest is not None and not text[line:start].strip():
        return text[:line] + text[rest.end() :]
    return text[:start] + text[end:].lstrip(" \t")


_WORD = re.compile(rb"[A-Za-z_]\w*")
