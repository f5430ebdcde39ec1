"""The report as text: a paragraph for every communication, and counts at the end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from lapwing.overlap.report.outcome import Communication, Outcome, Place, Refusal, shown
from lapwing.overlap.source.spans import Problem

_WIDTH = 110
_INDENT = 4
_LABEL = 10
_MOST_IN_SUMMARY = 5
_MOST_NAMED = 12


def report_text(outcome: Outcome, base: Path) -> str:
    """Everything about every communication; paths are relative to ``base``."""
    parts = ["\n".join([*_first_lines(outcome), headline(outcome)])]
    parts += [communication_text(communication, base) for communication in outcome.communications]
    counts = _counts(outcome)
    if counts:
        parts.append("\n".join(counts))
    if outcome.problems:
        parts.append("\n".join(["Problems in the sources:", *problem_lines(outcome.problems, base)]))
    return "\n\n".join(parts) + "\n"


def headline(outcome: Outcome) -> str:
    """The outcome in one line."""
    total = len(outcome.communications)
    if total == 0:
        where = " in what could be read" if outcome.problems else ""
        return f"no MPI communication found{where}; nothing to change."
    left = total - outcome.rewritten
    return (
        f"{_number(total, 'communication')} in {_number(outcome.files, 'file')}: {outcome.rewritten} rewritten, "
        f"{left} left as {'it is' if left == 1 else 'they are'}."
    )


def summary_lines(outcome: Outcome) -> tuple[str, ...]:
    """What the result depends on, the headline, how often each transformation was made, and why the rest was left."""
    return (*_first_lines(outcome, _MOST_NAMED), headline(outcome), *_counts(outcome, _MOST_IN_SUMMARY))


def communication_text(communication: Communication, base: Path) -> str:
    """Everything about one communication."""
    place = communication.place
    lines = [
        f"{_where(place, base)}  {communication.call} in {communication.procedure}",
        *_entry("", clean(place.text).strip()),
        *_entry("region", clean(communication.region)),
        *_entry("producer", _place(communication.producer, base)),
        *_entry("consumer", _place(communication.consumer, base)),
    ]
    if communication.matches:
        lines += _entry("matches", ", ".join(_where(match, base) for match in communication.matches))
    for action in communication.actions:
        at = "" if action.place == place else f" ({_where(action.place, base)})"
        lines += _entry("done", f"{action.transformation}: {clean(action.description)}{at}")
    for refusal in communication.refusals:
        lines += _entry("left", _refusal(refusal, base))
        if refusal.advice:
            lines += _entry("advice", clean(refusal.advice))
    if communication.note:
        lines += _entry("note", clean(communication.note))
    return "\n".join(lines)


def problem_lines(problems: Sequence[Problem], base: Path) -> Iterator[str]:
    for problem in problems:
        line = f":{problem.line}" if problem.line > 0 else ""
        yield f"{shown(problem.path, base)}{line}: {clean(problem.message)}"


def clean(text: str) -> str:
    """The text without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)


def _refusal(refusal: Refusal, base: Path) -> str:
    at = f" ({_place(refusal.place, base)})" if refusal.place is not None else ""
    return f"{refusal.transformation}: not proved: {clean(refusal.obligation)}. Found: {clean(refusal.found)}{at}"


def _first_lines(outcome: Outcome, most: int | None = None) -> list[str]:
    """What the result depends on: procedures without source, and macros."""
    lines = []
    if outcome.without_source:
        lines.append(f"Called without source, and so taken to do anything: {_names(outcome.without_source, most)}.")
    if outcome.undefined:
        lines.append(f"Taken as undefined (-D NAME, or -U NAME if that is right): {_names(outcome.undefined, most)}.")
    return lines


def _names(names: Sequence[str], most: int | None) -> str:
    shown_names = names if most is None else names[:most]
    more = len(names) - len(shown_names)
    return ", ".join(map(clean, shown_names)) + (f" and {more} more (--report)" if more else "")


def _counts(outcome: Outcome, most: int | None = None) -> list[str]:
    made, failed = outcome.made(), outcome.failed()
    lines = []
    if made:
        lines.append("Done: " + ", ".join(f"{name} {count}" for name, count in made.items()) + ".")
    if outcome.progress_calls:
        runs = "runs" if outcome.progress_calls == 1 else "run"
        lines.append(f"Progress calls: in {_number(outcome.progress_calls, 'loop')} that {runs} meanwhile.")
    for obligation, count in list(failed.items())[:most]:
        lines.append(f"Left, {count} ×: not proved: {clean(obligation)}.")
    if most is not None and len(failed) > most:
        lines.append(f"Left, for {len(failed) - most} other reasons: see the report.")
    return lines


def _entry(label: str, text: str) -> list[str]:
    first = " " * _INDENT + label.ljust(_LABEL)
    later = " " * (_INDENT + _LABEL)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]


def _place(place: Place | None, base: Path) -> str:
    return "not found" if place is None else f"{_where(place, base)}  {clean(place.text)}".rstrip()


def _where(place: Place, base: Path) -> str:
    return f"{shown(place.path, base)}:{place.line}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
