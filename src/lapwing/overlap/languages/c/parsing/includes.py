"""Where a C file can take declarations of Lapwing's: after what it includes, where MPI is declared."""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.overlap.languages.c.parsing.text import Directive, Region, Text

_CLOSING = {b"{": b"}", b"(": b")", b"[": b"]"}


@dataclass(frozen=True)
class _Bracket:
    """One that stands in no other, from its opening to past its closing. ``links``: whether it is that of ``extern "C" {``."""

    start: int
    end: int
    links: bool


def after_includes(data: bytes, before: int, cpp: bool) -> int:
    """Past the last #include before the offset ``before`` that stands between declarations; the file's start if none does.

    Conditional compilation and ``extern "C"`` that are over by then are passed as a whole: what they include may be MPI's. If
    conditional compilation is not over, the place lies in the same branch as ``before``.
    """
    text = Text(data)
    regions = text.regions
    if not cpp:  # what only C++ sees opens and closes no bracket
        regions = [region for region in regions if "__cplusplus" not in region.head]
    brackets = _brackets(text, [] if cpp else [region for region in text.regions if "__cplusplus" in region.head])
    place = 0
    for include in text.directives:
        if include.start >= before:
            break
        if include.name != "include":
            continue
        end = include.end
        around = next((bracket for bracket in brackets if bracket.start < include.start < bracket.end), None)
        if around is not None:
            if not around.links or around.end > before:
                continue
            end = around.end
        place = max(place, _past(data, _outside(include, end, regions, before)))
    return place


def included(data: bytes, before: int) -> frozenset[str]:
    """The headers that are included before the offset ``before``, under no condition."""
    text = Text(data)
    heads = (one for one in text.directives if one.name == "include" and one.start < before)
    plain = (one for one in heads if not any(region.start < one.start < region.end for region in text.regions))
    return frozenset(one.rest.split(">")[0].lstrip("<") for one in plain if one.rest.startswith("<"))


def _brackets(text: Text, hidden: list[Region]) -> list[_Bracket]:
    found: list[_Bracket] = []
    open_: list[bytes] = []
    start, links = 0, False
    for number, at in enumerate(text.starts):
        token = text.token(number)
        if token not in b"{}()[]" or any(region.start <= at < region.end for region in hidden):
            continue
        if token in _CLOSING:
            if not open_:
                start = at
                links = number >= 2 and (text.token(number - 2), text.token(number - 1)) == (b"extern", b'"C"')
            open_.append(_CLOSING[token])
        elif open_ and token == open_[-1]:
            open_.pop()
            if not open_:
                found.append(_Bracket(start, text.ends[number], links))
    if open_:
        found.append(_Bracket(start, len(text.data), links))
    return found


def _outside(include: Directive, end: int, regions: list[Region], before: int) -> int:
    """``end``, or that of the outermost conditional compilation around the include that is over at ``before``.

    0 where another branch than that of ``before`` holds the include.
    """
    for region in regions:
        if not region.start < include.start < region.end:
            continue
        if region.end <= before:
            return max(end, region.end)
        if _branch(region, include.start) != _branch(region, before):
            return 0
    return end


def _branch(region: Region, offset: int) -> int:
    return next((number for number, (start, end) in enumerate(region.branches) if start <= offset < end), -1)


def _past(data: bytes, offset: int) -> int:
    """The beginning of the next line; the file's start stays."""
    if offset == 0:
        return 0
    end = data.find(b"\n", offset)
    return len(data) if end < 0 else end + 1
