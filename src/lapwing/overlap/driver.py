"""The driver: reads source files, runs the pipeline on each language's program, and returns one outcome."""

from __future__ import annotations

import contextlib
import gc
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lapwing.errors import RefusedError
from lapwing.overlap.ir.program import Program
from lapwing.overlap.languages.registry import by_language, language_of
from lapwing.overlap.languages.shared.support_requirements import PROGRESS_COMMENT, SLOTS_COMMENT
from lapwing.overlap.report.outcome import Options, Outcome
from lapwing.overlap.source.compile_commands import read_commands
from lapwing.overlap.source.spans import Problem, Source

# The line that support text begins with.
_SUPPORT = r"^[ \t]*{opening} (?:{slots}|{progress})"


@dataclass(frozen=True)
class Request:
    """The files, the compiler's options for reading them, and which transformations are allowed.

    ``defines``: pairs of a name and its value, as for a compiler's -D; ``undefines``: names, as for -U. ``compile_commands``:
    path of the compile_commands.json file.
    """

    files: tuple[Path, ...]
    includes: tuple[Path, ...]
    defines: tuple[tuple[str, str], ...]
    compile_commands: Path | None
    options: Options
    undefines: tuple[str, ...] = ()


def transform(request: Request, unread: Sequence[Problem]) -> Outcome:
    """Read the files and rewrite the programs in memory; ``unread`` are problems found before. Writes no file.

    Raises RefusedError where they are the sources of several programs.
    """
    from lapwing.overlap.pipeline import rewrite

    began = time.perf_counter()
    with _without_collection():
        programs = list(_read(request))
        for program in programs:
            _check_original(program)
            _check_one_main(program, request)
        outcomes = [rewrite(program, request.options) for program in programs]
    mixed: tuple[Problem, ...] = ()
    if sum(bool(outcome.communications) for outcome in outcomes) > 1:
        # Messages sent in one language may be received in the other, unseen by either analysis.
        nothing = replace(request.options, transformations=frozenset(), progress_calls=False)
        outcomes = [rewrite(program, nothing) for program in programs]
        mixed = (_mixed(outcomes[0]),)
    communications = (one for outcome in outcomes for one in outcome.communications)
    return Outcome(
        communications=tuple(sorted(communications, key=lambda one: (one.place.path, one.place.line))),
        changes=() if mixed else tuple(one for outcome in outcomes for one in outcome.changes),
        problems=(*unread, *mixed, *(one for outcome in outcomes for one in outcome.problems)),
        seconds=time.perf_counter() - began,
        progress_calls=0 if mixed else sum(outcome.progress_calls for outcome in outcomes),
        undefined=tuple(sorted({name for outcome in outcomes for name in outcome.undefined})),
        without_source=tuple(dict.fromkeys(name for outcome in outcomes for name in outcome.without_source)),
    )


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Disables cyclic garbage collection: nearly all objects live to the end, and searching for cycles takes a quarter of the
    time and finds none.

    They are frozen afterwards, too, since a collection would take as long as reading; a later run unfreezes them.
    """
    collecting = gc.isenabled()
    gc.unfreeze()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def _read(request: Request) -> Iterator[Program]:
    """One program for the files of each language."""
    for language, files in by_language(request.files):
        yield language.read(files, request.includes, dict(request.defines), request.undefines, request.compile_commands)


def _check_original(program: Program) -> None:
    """Refuses sources that were rewritten already: their support procedures would count as the program's own communications."""
    found = [source.path for source in program.sources if _support_in(source)]
    if not found:
        return
    more = "" if len(found) == 1 else f" (and {len(found) - 1} more)"
    raise RefusedError(
        f"{found[0]}{more} has been rewritten already: nothing was changed. Name the original sources, and them only."
    )


def _support_in(source: Source) -> bool:
    opening = re.escape(language_of(source).comment_opening)
    pattern = _SUPPORT.format(opening=opening, slots=SLOTS_COMMENT, progress=PROGRESS_COMMENT)
    return re.search(pattern.encode(), source.data, re.MULTILINE) is not None


def _check_one_main(program: Program, request: Request) -> None:
    """Refuses several main programs: proofs hold for one program, in which each call reaches the procedure of that name.

    Of alternative files one is compiled. A file that ``compile_commands.json`` does not list is no part of the program.
    """
    mains = {program.sources[span.source].path.resolve(): span for span in reversed(program.mains)}
    if len(mains) > 1 and request.compile_commands is not None:
        listed = read_commands(request.compile_commands)
        mains = {path: span for path, span in mains.items() if path in listed} or mains
    if len(mains) < 2:
        return
    sources = [program.sources[span.source] for span in mains.values()]
    places = sorted(f"{s.path}:{s.line_of(span.start)}" for s, span in zip(sources, mains.values(), strict=True))
    more = f" and {len(places) - 2} more" if len(places) > 2 else ""
    raise RefusedError(
        f"the sources hold several main programs, {places[0]} and {places[1]}{more}: nothing was changed. Name the sources of "
        "one program at a time."
    )


def _mixed(outcome: Outcome) -> Problem:
    place = outcome.communications[0].place
    return Problem(
        place.path,
        place.line,
        "Fortran and C both call MPI here, and messages between the two are not followed: nothing was changed. If "
        "these are separate programs, name the sources of one at a time.",
    )
