"""The language Fortran (see languages/language.py)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Expression, Type
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import is_intrinsic, is_seen_by_its_name
from lapwing.overlap.ir.statements import Block, Loop
from lapwing.overlap.languages.fortran.parsing import procedures, words
from lapwing.overlap.languages.fortran.parsing.joined import joined
from lapwing.overlap.languages.fortran.writing import buffers, printer, strip_mining, unused_declarations
from lapwing.overlap.languages.fortran.writing.collectives import declared_type
from lapwing.overlap.languages.fortran.writing.emitter import FortranEmitter
from lapwing.overlap.languages.fortran.writing.external import external_statements, wants_external
from lapwing.overlap.languages.fortran.writing.layout import FortranLayout
from lapwing.overlap.languages.shared.emitter import Emitter
from lapwing.overlap.languages.shared.extremes import Extreme
from lapwing.overlap.languages.shared.strip_mining import head_of
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements
from lapwing.overlap.languages.shared.words import Word
from lapwing.overlap.libraries import summaries
from lapwing.overlap.source.replacements import Edit
from lapwing.overlap.source.spans import Source

_EXTREMES = {"max": Extreme("largest"), "min": Extreme("least")}
_ABSOLUTE = frozenset({"abs", "dabs"})
_LIKE_ARGUMENT = _ABSOLUTE | {"sqrt", "dsqrt"}
_IN_BOUNDS = ("min", "max", "merge")
_DIRECTIVE = re.compile(rb"^[ \t]*#", re.MULTILINE)
_WILDCARD = re.compile(rb"MPI_ANY", re.IGNORECASE)
_RENAMED = re.compile(rb"=>[ \t]*MPI_ANY", re.IGNORECASE)
_USE = re.compile(rb"[ \t]*use\b", re.IGNORECASE)
# Comments, unless a quote precedes; compilers read what follows OpenMP's sentinels.
_COMMENT = re.compile(rb"^([^'\"!]*)!(?!\$).*")


class Fortran:
    """Fortran, in both source forms."""

    name = "fortran"
    linkage = "fortran"
    comment_opening = "!"

    # ---- semantics ----------------------------------------------------------------------------------------------------

    by_reference = True
    has_addresses = False
    has_references = False
    has_hidden_calls = False
    index_base = 1
    column_major = True
    case_sensitive = False
    has_assumed_shape = True
    declares_on_entry = True
    rechecks_bounds = False
    models_initial_values = False
    copies_arguments = True
    inline_may_be_undefined = False
    pipelines_loops = False
    splits_shell = True
    declares_parts = False
    has_second_names = False
    support_after_includes = False

    def library(self, name: str) -> summaries.LibrarySummary | None:
        return summaries.lookup(name, "fortran")

    def parameters(self, message: mpi.MpiCall) -> tuple[mpi.Parameter, ...]:
        return mpi.fortran_parameters(message)

    def is_library_name(self, name: str, program: Program, procedure: Procedure) -> bool:
        return is_intrinsic(name.lower(), program, procedure)

    def extreme(self, name: str) -> Extreme | None:
        return _EXTREMES.get(name)

    def type_of_result(self, name: str, argument: Type | None) -> Type | None:
        return argument if name in _LIKE_ARGUMENT else None

    def clears_sign(self, name: str, is_real: bool) -> bool:
        return name in _ABSOLUTE and is_real

    def is_signed(self, kind: Type) -> bool:
        return True

    # ---- reading ------------------------------------------------------------------------------------------------------

    def read(
        self,
        files: Sequence[Path],
        includes: Sequence[Path],
        defines: Mapping[str, str],
        undefines: Collection[str],
        compile_commands: Path | None,
    ) -> Program:
        from lapwing.overlap.languages.fortran.reading.program import read_fortran

        return read_fortran(files, includes, defines, undefines)

    # ---- queries on text ----------------------------------------------------------------------------------------------

    def joined(self, source: Source) -> tuple[bytes, ...]:
        return joined(source)

    def words(self, text: str) -> list[Word]:
        return words.words(text)

    def macro_definitions(self, text: str) -> Iterable[tuple[str, str]]:
        """Empty: macros are expanded before statements are read."""
        return ()

    def blanked(self, text: str, form: str | None) -> str:
        return words.blanked(text, form)

    def names_of_wildcards(self, text: bytes) -> int:
        lines = [_COMMENT.sub(rb"\1", line) for line in text.splitlines()]
        # A name in a USE statement's list keeps its meaning unless it is renamed there.
        return sum(len((_RENAMED if _USE.match(line) else _WILDCARD).findall(line)) for line in lines)

    def is_preprocessed(self, source: Source) -> bool:
        return _DIRECTIVE.search(source.data) is not None

    def is_header(self, path: Path) -> bool:
        return False

    def is_named_elsewhere(self, source: Source, name: str, calls: int) -> bool:
        return True

    def names_itself(self, program: Program) -> Callable[[Procedure], bool]:
        return lambda procedure: False

    def is_pure(self, procedure: Procedure, source: Source) -> bool:
        return procedures.is_pure(procedure, source)

    def is_shared(self, head: str) -> bool:
        return procedures.is_bound(head)

    def called_without_name(self, source: Source) -> list[str]:
        return procedures.called_without_name(joined(source)[0].decode("latin-1"))

    def is_declared_elsewhere(self, procedure: Procedure, source: Source) -> bool:
        return False

    def can_take_other_name(self, procedure: Procedure, head: str) -> bool:
        return procedures.can_take_other_name(procedure, head)

    def sees_parts(
        self, program: Program, caller: Procedure, callee: Procedure, original: Procedure, place: int
    ) -> bool:
        if callee.host is None:
            return not wants_external(program.sources[caller.source])
        return callee.host in caller.open_hosts

    def unseen_parts(self, name: str) -> tuple[str, str]:
        return (
            f"not all that stands beside {name} can be named here",
            "use its module without ONLY, and do not make all of it private",
        )

    # ---- buffers ------------------------------------------------------------------------------------------------------

    def can_declare(self, buffer: Expression) -> bool:
        return declared_type(buffer) is not None

    def is_contiguous(self, buffer: Expression) -> bool:
        return buffers.is_contiguous(buffer)

    def is_array(self, buffer: Expression) -> bool:
        return buffers.is_array(buffer)

    def may_be_copied(self, buffer: Expression) -> bool:
        return buffers.may_be_copied(buffer)

    # ---- loops --------------------------------------------------------------------------------------------------------

    def can_bound(self, program: Program, procedure: Procedure) -> bool:
        return all(is_intrinsic(name, program, procedure) for name in _IN_BOUNDS)

    def has_countable_ends(self, source: Source, loop: Loop, procedure: Procedure, planes: int) -> bool:
        return is_seen_by_its_name(loop.variable, procedure)

    def spelled_ends(self, source: Source, loop: Loop) -> tuple[str, str] | None:
        return None

    def can_strip(self, program: Program, procedure: Procedure, loop: Loop) -> bool:
        source = program.sources[procedure.source]
        return (
            strip_mining.can_name_bounds(program, procedure, loop)
            and strip_mining.heads(source, loop, head_of(source, loop)) is not None
        )

    # ---- writing ------------------------------------------------------------------------------------------------------

    def emitter(self, source: Source, requirements: SupportRequirements, stem_of: Callable[[int], str]) -> Emitter:
        return FortranEmitter(source, requirements, stem_of)

    def layout(self, source: Source) -> FortranLayout:
        return FortranLayout(source)

    def variable(self, type_text: str, name: str, sizes: Sequence[str] = ()) -> str:
        return printer.declaration(type_text, name, sizes)

    def new_name(self, wanted: str, taken: Collection[str]) -> str:
        return printer.fresh_name(wanted, taken)

    def declaration(self, program: Program, procedure: Procedure, number: int, place: int) -> str | None:
        return None

    def words_of_macros(self, program: Program) -> Collection[str] | None:
        return None

    def without_unused(
        self,
        text: str,
        source: Source,
        body: Block,
        hidden: Collection[str] | None,
        once_used: Counter[str] | None = None,
    ) -> str:
        """The text itself: declarations precede the body."""
        return text

    def count_words(self, data: bytes) -> Counter[str]:
        return Counter()

    def part_without_unused(self, text: str, source: Source) -> str:
        return unused_declarations.without_unused(text, source)

    def renamed_head(self, head: str, source: Source) -> str:
        """The head, continued after the parenthesis if the name has made its line too long."""
        limit = printer.FIXED_WIDTH if source.form == "fixed" else printer.FREE_WIDTH
        lines = head.split("\n")
        for number, line in enumerate(lines):
            name, parenthesis, rest = line.partition("(")
            if len(line) > limit and parenthesis and not line.lstrip().startswith(("!", "*")):
                lines[number] = f"{name}(\n     &{rest}" if source.form == "fixed" else f"{name}( &\n      {rest}"
                break
        return "\n".join(lines)

    def place_of_support(self, source: Source, first: int) -> int:
        return len(source.data)

    def declarations_of_calls(self, source: Source, texts: Sequence[str]) -> Iterable[Edit]:
        return external_statements(source, texts)
