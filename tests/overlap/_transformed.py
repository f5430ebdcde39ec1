"""A program's text rewritten by the package itself, and compared with what it was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from _building import language_of, write
from _running import Reference, required

from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.languages.fortran.reading import read_fortran
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Communication, Options, Outcome


@dataclass(frozen=True)
class Transformed:
    outcome: Outcome
    before: Path
    after: Path

    @property
    def text(self) -> str:
        return self.after.read_text(encoding="latin-1")

    def at(self, piece: str) -> Communication:
        """The communication on the first line that holds this piece of the original's text."""
        lines = self.before.read_text(encoding="latin-1").splitlines()
        number = next(n for n, line in enumerate(lines, 1) if piece in line)
        return next(c for c in self.outcome.communications if c.place.line == number)

    def made(self, piece: str) -> list[str]:
        return [action.transformation for action in self.at(piece).actions]

    def refused(self, piece: str, transformation: str = "nonblocking") -> list[str]:
        return [f"{r.obligation}: {r.found}" for r in self.at(piece).refusals if r.transformation == transformation]

    def assert_behaves_as_before(self, thorough: bool, ranks: int = 2) -> None:
        required(language_of(self.before))
        Reference([self.before]).assert_unchanged_by([self.after], thorough, ranks)


def transformed(text: str, name: str, folder: Path, options: Options | None = None) -> Transformed:
    """``name``'s suffix says the language."""
    (before,) = write({name: text}, folder / "before")
    program = read_fortran([before]) if language_of(before) == "fortran" else read_c([before])
    outcome = rewrite(program, options or Options())
    (after,) = write({name: text}, folder / "after")
    for change in outcome.changes:
        after.write_bytes(change.after)
    return Transformed(outcome, before, after)
