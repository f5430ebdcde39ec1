"""Writing C: blocks' indentation, comments, declarations, and names not yet taken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from lapwing.overlap.ir.statements import Block
from lapwing.overlap.source.indentation import indentation, indentation_step
from lapwing.overlap.source.spans import Source

_POINTER_TO_ROW = re.compile(r"(.*)\(\*\)(.*)", re.DOTALL)
_ARRAY = re.compile(r"([^\[]*?)\s*((?:\[[^\]]*\])+)\s*")
_FUNCTION_POINTER = re.compile(r"([^(]*\(\*)(\).*)", re.DOTALL)

# Words that cannot name a variable, in C or C++.
_KEYWORDS = frozenset(
    """alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default delete do double
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not nullptr
    operator or private protected public register restrict return short signed sizeof static struct switch template this throw
    true try typedef typename union unsigned using virtual void volatile while xor""".split()
)


def block_indentation(source: Source, block: Block) -> str:
    """The indentation of a block's statements: that of most of those that begin a line; of an empty block, one step more than
    the line it opens on."""
    found: Counter[str] = Counter()
    for statement in block.statements:
        start = statement.span.start
        if starts_line(source, start):
            found[indentation(source, start)] += 1
    if found:
        return found.most_common(1)[0][0]
    return indentation(source, max(block.span.start - 1, 0)) + indentation_step(source)


def indented(text: str, step: str) -> str:
    """Text that is indented by 4 blanks a level, by ``step`` instead; lines that go on within parentheses keep their columns."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        goes_on = number > 0 and lines[number - 1].endswith(",")
        blanks = len(line) - len(line.lstrip(" "))
        if not goes_on:
            lines[number] = step * (blanks // 4) + " " * (blanks % 4) + line[blanks:]
    return "\n".join(lines)


def starts_line(source: Source, offset: int) -> bool:
    """Whether nothing but blanks stands before the byte at ``offset`` on its line."""
    return not source.data[source.data.rfind(b"\n", 0, offset) + 1 : offset].strip()


def comment_line(text: str, indent: str = "") -> str:
    """A comment that every C compiler reads. What would end it is spelled apart."""
    return f"{indent}/* {text.replace('*/', '* /')} */\n"


def declaration(type_text: str, name: str, dimensions: Sequence[str] = ()) -> str:
    """The text of one variable's declaration, semicolon included: ``double b[5][n];``.

    ``type_text`` as libclang spells types; ``double (*)[5]``, ``int[3]`` and ``void (*)(int)`` are turned inside out.
    ``dimensions``: the sizes of an array of such things, outermost first.
    """
    inner = name + "".join(f"[{size}]" for size in dimensions)
    function = _FUNCTION_POINTER.fullmatch(type_text)
    row = _POINTER_TO_ROW.fullmatch(type_text)
    array = _ARRAY.fullmatch(type_text)
    if row:
        return f"{row.group(1).rstrip()} (*{inner}){row.group(2)};"
    if function:
        return f"{function.group(1)}{inner}{function.group(2)};"
    if array:
        return f"{array.group(1)} {inner}{array.group(2)};"
    gap = "" if type_text.endswith("*") else " "
    return f"{type_text}{gap}{inner};"


def fresh_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or with a number behind it if it is taken or a word of the language."""
    base = re.sub(r"\W", "_", wanted) or "_"
    base = f"_{base}" if base[0].isdigit() else base
    name, number = base, 1
    while name in taken or name in _KEYWORDS:
        number += 1
        name = f"{base}_{number}"
    return name
