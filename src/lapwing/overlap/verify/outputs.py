"""Compares the output of a transformed program with the original's.

Every line must be there, in the original's order, with the original's numbers to the last digit. Excused are only differences
that the original's own runs show, too (numbers that vary, and the order of lines from ranks that print at the same time), and
numbers that a unit or a label marks as a time or a rate, since those are meant to change. Output that launchers tag by rank
(`mpiexec -prepend-rank` and its like) is compared rank by rank.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?")
_BEFORE, _AFTER = 60, 20  # characters in which a label or unit is looked for
# As Hydra, Open MPI and Slurm put ranks before lines.
_TAGS = (re.compile(rb"\[(\d+)\] "), re.compile(rb"\[\d+,(\d+)\]<std(?:out|err)>:"), re.compile(rb"(\d+): "))
_UNIT = re.compile(
    r"\s*(?:[numµ]?s|[mu]?secs?|seconds?|minutes|[kmgt]?(?:flops?|ops?)(?:/s(?:ec)?)?|[kmgt]?i?b/s(?:ec)?|%? of time)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:time in seconds|time \(s\w*\)|elapsed(?: time)?|wall[- ]?(?:clock)?[- ]?time|(?:cpu|run|total|user|sys)[- ]?time"
    r"|[kmg]?flops?(?:/s)?|mops?(?:/s)?(?:[ /]\w+)?|seconds)\s*[=:]?\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Difference:
    """A line of the original's output that the transformed program prints otherwise, or not (``found`` None), or a line that only
    the transformed one prints (``expected`` None). Line numbers count from 1, each in its own output."""

    expected_line: int | None
    expected: str | None
    found_line: int | None
    found: str | None


@dataclass(frozen=True)
class Comparison:
    """``differences`` in the order of the output. ``excused``: lines of the transformed output with numbers that differ and are
    excused. ``moved``: lines whose order is not the original's, as with the original's own runs."""

    lines: int
    differences: tuple[Difference, ...]
    excused: tuple[str, ...]
    moved: int

    @property
    def same(self) -> bool:
        return not self.differences


@dataclass(frozen=True)
class _Line:
    number: int
    text: str
    skeleton: str  # without numbers, blanks made one
    numbers: tuple[str, ...]
    times: frozenset[int]  # which of the numbers are times or rates


def compare(originals: Sequence[bytes], transformed: bytes) -> Comparison:
    """Compare a transformed program's output with those of several runs of its original."""
    found = _read(transformed)
    if transformed in originals:
        return Comparison(len(found), (), (), 0)
    runs = [_read(original) for original in originals]
    loose = _loose(runs)
    differences, moved = _compare_order(runs, found, loose)
    excused: list[str] = []
    groups = [_by_skeleton(run) for run in runs]
    for skeleton, lines in _by_skeleton(found).items():
        expected = [group.get(skeleton, []) for group in groups]
        if {len(lines)} == {len(one) for one in expected}:
            worse, forgiven = _compare_numbers(expected, lines)
            differences += worse
            excused += forgiven
    differences.sort(key=lambda one: (one.expected_line or one.found_line or 0, one.found_line or 0))
    return Comparison(len(found), tuple(differences), tuple(excused), moved)


def by_rank(tagged: bytes, plain: bytes) -> bytes | None:
    """An output whose lines begin with the rank that printed them, put in the order of the ranks; what has no rank comes first.

    plain: an output of the same program without ranks. None where the launcher has put no ranks before the lines.
    """
    lines = tagged.splitlines(keepends=True)
    before = plain.splitlines()
    for tag in _TAGS:
        matches = [tag.match(line) for line in lines]
        # What the program itself prints is no tag.
        if any(matches) and not any(map(tag.match, before)):
            ranks = [-1 if match is None else int(match[1]) for match in matches]
            return b"".join(lines[k] for k in sorted(range(len(lines)), key=ranks.__getitem__))
    return None


def _read(data: bytes) -> list[_Line]:
    texts = data.decode("utf-8", "surrogateescape").split("\n")
    if texts[-1] == "":
        texts.pop()
    return [_line(number, text) for number, text in enumerate(texts, 1)]


def _line(number: int, text: str) -> _Line:
    matches = list(_NUMBER.finditer(text))
    times = (k for k, match in enumerate(matches) if _is_time(text, match))
    skeleton = " ".join(_NUMBER.sub("#", text).split())
    return _Line(number, text, skeleton, tuple(match.group() for match in matches), frozenset(times))


def _is_time(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - _BEFORE) : match.start()], text[match.end() : match.end() + _AFTER]
    return _UNIT.match(after) is not None or _LABEL.search(before) is not None


def _by_skeleton(lines: Sequence[_Line]) -> dict[str, list[_Line]]:
    groups = defaultdict(list)
    for line in lines:
        groups[line.skeleton].append(line)
    return groups


# ---- which lines, in which order -------------------------------------------------------------------------------------------


def _loose(runs: Sequence[list[_Line]]) -> set[str]:
    """Skeletons of lines that come at different places in the original's own runs."""
    loose: set[str] = set()
    first = [line.skeleton for line in runs[0]]
    for run in runs[1:]:
        other = [line.skeleton for line in run]
        for tag, i, i_end, j, j_end in _opcodes(first, other):
            if tag != "equal":
                loose.update(first[i:i_end], other[j:j_end])
    return loose


def _compare_order(
    runs: Sequence[list[_Line]], found: Sequence[_Line], loose: set[str]
) -> tuple[list[Difference], int]:
    expected = [line for line in runs[0] if line.skeleton not in loose]
    fixed = [line for line in found if line.skeleton not in loose]
    differences = []
    for tag, i, i_end, j, j_end in _opcodes([line.skeleton for line in expected], [line.skeleton for line in fixed]):
        if tag != "equal":
            differences += _pairs(expected[i:i_end], fixed[j:j_end])
    counts = [Counter(line.skeleton for line in run if line.skeleton in loose) for run in runs]
    found_counts = Counter(line.skeleton for line in found if line.skeleton in loose)
    for skeleton in sorted(loose):
        # How often such a line comes is held to only if the original holds to it.
        if len({count[skeleton] for count in counts}) == 1 and found_counts[skeleton] != counts[0][skeleton]:
            before = [line for line in runs[0] if line.skeleton == skeleton]
            now = [line for line in found if line.skeleton == skeleton]
            shared = min(len(before), len(now))
            differences += _pairs(before[shared:], now[shared:])
    return differences, sum(found_counts.values())


def _pairs(expected: Sequence[_Line], found: Sequence[_Line]) -> list[Difference]:
    both = min(len(expected), len(found))
    return [
        *(_difference(one, other) for one, other in zip(expected, found, strict=False)),
        *(_difference(one, None) for one in expected[both:]),
        *(_difference(None, other) for other in found[both:]),
    ]


def _difference(expected: _Line | None, found: _Line | None) -> Difference:
    return Difference(
        expected.number if expected else None,
        expected.text if expected else None,
        found.number if found else None,
        found.text if found else None,
    )


def _opcodes(first: list[str], second: list[str]) -> list[tuple[str, int, int, int, int]]:
    if first == second:
        return []
    return list(SequenceMatcher(None, first, second).get_opcodes())


# ---- which numbers ---------------------------------------------------------------------------------------------------------


def _compare_numbers(runs: Sequence[list[_Line]], found: list[_Line]) -> tuple[list[Difference], list[str]]:
    """Lines that are the same but for their numbers, as many in all runs: what differs, and what is excused."""
    texts = [line.text for line in found]
    if any([line.text for line in run] == texts for run in runs):
        return [], []
    moving = _moving_columns(runs)
    if moving is not None:
        return _compare_moving(runs, found, moving)
    differences, excused = [], []
    for k, line in enumerate(found):
        same = [run[k] for run in runs]
        slots = _held(same)
        if any(line.numbers[slot] != same[0].numbers[slot] for slot in slots):
            differences.append(_difference(same[0], line))
        elif line.numbers != same[0].numbers:
            excused.append(line.text)
        elif line.text not in {one.text for one in same}:
            # The same numbers, but other blanks between them.
            differences.append(_difference(same[0], line))
    return differences, excused


def _held(same: Sequence[_Line]) -> list[int]:
    """Which numbers of a line the original's runs agree on."""
    first = same[0]
    return [
        slot
        for slot, number in enumerate(first.numbers)
        if slot not in first.times and all(line.numbers[slot] == number for line in same)
    ]


def _moving_columns(runs: Sequence[list[_Line]]) -> list[int] | None:
    """Where the original's runs have the same such lines in another order: the columns that hold the same numbers in all
    of them. None where the order is always the same."""
    columns = []
    moves = False
    for slot in range(len(runs[0][0].numbers)):
        values = [[line.numbers[slot] for line in run] for run in runs]
        if slot not in runs[0][0].times and len({tuple(sorted(one)) for one in values}) == 1:
            columns.append(slot)
            moves = moves or any(one != values[0] for one in values)
    return columns if moves else None


def _compare_moving(
    runs: Sequence[list[_Line]], found: list[_Line], columns: list[int]
) -> tuple[list[Difference], list[str]]:
    def held(line: _Line) -> tuple[str, ...]:
        return tuple(line.numbers[slot] for slot in columns)

    counts = [Counter(map(held, run)) for run in runs]
    now = Counter(map(held, found))
    if any(count == now for count in counts) or any(count != counts[0] for count in counts):
        return [], [line.text for line in found] if len(columns) < len(found[0].numbers) else []
    missing, surplus = counts[0] - now, now - counts[0]
    return _pairs(_take(runs[0], held, missing), _take(found, held, surplus)), []


def _take(
    lines: Sequence[_Line], held: Callable[[_Line], tuple[str, ...]], counts: Counter[tuple[str, ...]]
) -> list[_Line]:
    taken = []
    for line in lines:
        if counts[held(line)] > 0:
            counts[held(line)] -= 1
            taken.append(line)
    return taken
