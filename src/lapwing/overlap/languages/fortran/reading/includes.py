"""Include files: found beside the file that names them or in the include directories, parsed as the inside of a subroutine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tree_sitter import Node

from lapwing.overlap.languages.fortran.parsing.file import File, child_of
from lapwing.overlap.languages.fortran.parsing.preprocessor import included_name
from lapwing.overlap.languages.fortran.reading.units import SPECIFICATIONS, Specification, Unit

# What they declare is known: constants and functions.
KNOWN_INCLUDES = {"mpif.h": "mpif.h", "omp_lib.h": None}
MAX_DEPTH = 20


class Includes:
    """``load``: reads a path into a File, None if there is no such file. ``problem``: is told what is missing and where."""

    def __init__(
        self,
        directories: Sequence[Path],
        load: Callable[[Path, str], File | None],
        problem: Callable[[File, int, str], None],
    ) -> None:
        self.directories = directories
        self.load = load
        self.problem = problem
        self.depth = 0
        self.interfaces: dict[Unit, str] = {}

    def declarations(self, file: File, node: Node, unit: Unit) -> list[Specification]:
        """The declarations an INCLUDE line brings."""
        return self.bring(file, file.start(node), self.name_of(file, node), unit)

    def name_of(self, file: File, node: Node) -> str:
        path = child_of(node, "filename")
        return file.text(path).strip("'\"") if path is not None else ""

    def places(self, file: File, name: str) -> list[Path]:
        return [directory / name for directory in (file.path.parent, *self.directories)]

    def bring(self, file: File, offset: int, name: str, unit: Unit) -> list[Specification]:
        if Path(name).name in KNOWN_INCLUDES:
            interface = KNOWN_INCLUDES[Path(name).name]
            if interface is not None:
                self.interfaces[unit] = interface
            return []
        included = self.find(file, name)
        if included is None or self.depth > MAX_DEPTH:
            unit.missing.append(name)
            self.problem(file, offset, f"the include file {name} was not found: what it declares is not known")
            return []
        file.macros.update(self.macros(included))
        self.depth += 1
        found = self.specifications(included, unit)
        self.depth -= 1
        return found

    def specifications(self, included: File, unit: Unit) -> list[Specification]:
        found: list[Specification] = []
        for hole in included.parsed.holes:
            unit.missing.append(included.path.name)
            self.problem(included, hole.start, f"{hole.text}: what it declares is not known")
        for piece in included.parsed.preprocessor:
            name = included_name(piece.text)
            if name is not None:
                found += self.bring(included, piece.start, name, unit)
        wrapped = next(iter(included.parsed.root.children), None)
        for child in wrapped.children if wrapped is not None else ():
            if child.type == "include_statement":
                found += self.declarations(included, child, unit)
            elif child.type in SPECIFICATIONS:
                found.append(Specification(included, child))
            elif child.type not in ("subroutine_statement", "end_subroutine_statement", "statement_label", "comment"):
                unit.missing.append(included.path.name)
                self.problem(included, included.start(child), f"a {child.type.replace('_', ' ')} in an include file")
        return found

    def macros(self, included: File, around: tuple[File, ...] = ()) -> dict[str, str]:
        """What an include file defines, with what those define that it includes itself."""
        if included in around:
            return {}
        for name in filter(None, (included_name(piece.text) for piece in included.parsed.preprocessor)):
            inner = self.find(included, name)
            if inner is not None:
                included.macros.update(self.macros(inner, (*around, included)))
        return included.macros

    def find(self, file: File, name: str) -> File | None:
        for path in self.places(file, name):
            found = self.load(path, file.parsed.view.form)
            if found is not None:
                return found
        return None
