"""The languages C and C++ (see languages/language.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Expression, Type
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import is_spelled_signed
from lapwing.overlap.ir.statements import Block, Loop
from lapwing.overlap.languages.c.parsing import functions, toolchain, words
from lapwing.overlap.languages.c.parsing.includes import after_includes
from lapwing.overlap.languages.c.parsing.own_names import OwnNames
from lapwing.overlap.languages.c.parsing.redeclarations import redeclared
from lapwing.overlap.languages.c.parsing.text import named_words
from lapwing.overlap.languages.c.writing import printer, strip_mining, unused_declarations
from lapwing.overlap.languages.c.writing.emitter import CEmitter
from lapwing.overlap.languages.c.writing.layout import CLayout
from lapwing.overlap.languages.c.writing.loops import may_wrap
from lapwing.overlap.languages.c.writing.source_text import ends
from lapwing.overlap.languages.shared.emitter import Emitter
from lapwing.overlap.languages.shared.extremes import Extreme
from lapwing.overlap.languages.shared.strip_mining import head_of
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements
from lapwing.overlap.languages.shared.words import Word
from lapwing.overlap.libraries import summaries
from lapwing.overlap.source.replacements import Edit
from lapwing.overlap.source.spans import Source
from lapwing.overlap.source.spelling import macros, spliced

_FLOAT = Type("real", 4, "float")
_DOUBLE = Type("real", 8, "double")
_EXTREMES = {
    "fmax": Extreme("largest", 8),
    "fmaxf": Extreme("largest", 4),
    "fmin": Extreme("least", 8),
    "fminf": Extreme("least", 4),
}
_OF_FLOATS = frozenset({"fabsf", "sqrtf"})
_OF_DOUBLES = frozenset({"fabs", "sqrt"})
_WILDCARD = "MPI_ANY"  # a macro may append the rest


class C:
    """C. ``Cpp`` has what differs in C++."""

    name = "c"
    linkage = "c"
    comment_opening = "/*"

    # ---- semantics ----------------------------------------------------------------------------------------------------

    by_reference = False
    has_addresses = True
    has_references = False
    has_hidden_calls = False
    index_base = 0
    column_major = False
    case_sensitive = True
    has_assumed_shape = False
    declares_on_entry = False
    rechecks_bounds = True
    models_initial_values = True
    copies_arguments = False
    inline_may_be_undefined = True
    pipelines_loops = True
    splits_shell = False
    declares_parts = True
    has_second_names = True
    support_after_includes = True

    def library(self, name: str) -> summaries.LibrarySummary | None:
        return summaries.lookup(name, "c")

    def parameters(self, message: mpi.MpiCall) -> tuple[mpi.Parameter, ...]:
        return message.parameters

    def is_library_name(self, name: str, program: Program, procedure: Procedure) -> bool:
        return program.resolve(name, procedure) is None

    def extreme(self, name: str) -> Extreme | None:
        return _EXTREMES.get(name)

    def type_of_result(self, name: str, argument: Type | None) -> Type | None:
        return _FLOAT if name in _OF_FLOATS else _DOUBLE if name in _OF_DOUBLES else None

    def clears_sign(self, name: str, is_real: bool) -> bool:
        return name in ("fabs", "fabsf")

    def is_signed(self, kind: Type) -> bool:
        return is_spelled_signed(kind)

    # ---- reading ------------------------------------------------------------------------------------------------------

    def read(
        self,
        files: Sequence[Path],
        includes: Sequence[Path],
        defines: Mapping[str, str],
        undefines: Collection[str],
        compile_commands: Path | None,
    ) -> Program:
        from lapwing.overlap.languages.c.reading import read_c

        return read_c(files, includes, defines, compile_commands, undefines)

    # ---- queries on text ----------------------------------------------------------------------------------------------

    def joined(self, source: Source) -> tuple[bytes, ...]:
        return (spliced(source.data),)

    def words(self, text: str) -> list[Word]:
        return words.words(text)

    def macro_definitions(self, text: str) -> Iterable[tuple[str, str]]:
        return words.definitions(text)

    def blanked(self, text: str, form: str | None) -> str:
        return words.blanked(text)

    def names_of_wildcards(self, text: bytes) -> int:
        return sum(count for word, count in named_words(text).items() if word.startswith(_WILDCARD))

    def is_preprocessed(self, source: Source) -> bool:
        return True

    def is_header(self, path: Path) -> bool:
        return toolchain.is_header(path)

    def is_named_elsewhere(self, source: Source, name: str, calls: int) -> bool:
        return named_words(source.data)[name] != calls + 1

    def names_itself(self, program: Program) -> Callable[[Procedure], bool]:
        return OwnNames(program).in_text_of

    def is_pure(self, procedure: Procedure, source: Source) -> bool:
        return functions.is_pure(_head(procedure, source))

    def is_shared(self, head: str) -> bool:
        return functions.is_defined_alike(head)

    def called_without_name(self, source: Source) -> list[str]:
        return [body.decode("latin-1") for _, body in macros(spliced(source.data))]

    def is_declared_elsewhere(self, procedure: Procedure, source: Source) -> bool:
        return False

    def can_take_other_name(self, procedure: Procedure, head: str) -> bool:
        return functions.can_take_other_name(procedure, head)

    def sees_parts(
        self, program: Program, caller: Procedure, callee: Procedure, original: Procedure, place: int
    ) -> bool:
        return redeclared(program, original, caller.source, place) is not None

    def unseen_parts(self, name: str) -> tuple[str, str]:
        return (
            f"{name} is not declared before all functions here, or by words that mean something else by now",
            "declare it at the top of the file, or in a header",
        )

    # ---- buffers ------------------------------------------------------------------------------------------------------

    def can_declare(self, buffer: Expression) -> bool:
        return True

    def is_contiguous(self, buffer: Expression) -> bool:
        return True

    def is_array(self, buffer: Expression) -> bool:
        return True

    def may_be_copied(self, buffer: Expression) -> bool:
        return False

    # ---- loops --------------------------------------------------------------------------------------------------------

    def can_bound(self, program: Program, procedure: Procedure) -> bool:
        return True

    def has_countable_ends(self, source: Source, loop: Loop, procedure: Procedure, planes: int) -> bool:
        return not may_wrap(loop, planes) and ends(source, loop) is not None

    def spelled_ends(self, source: Source, loop: Loop) -> tuple[str, str] | None:
        return ends(source, loop)

    def can_strip(self, program: Program, procedure: Procedure, loop: Loop) -> bool:
        source = program.sources[procedure.source]
        return strip_mining.heads(source, loop, head_of(source, loop)) is not None

    # ---- writing ------------------------------------------------------------------------------------------------------

    def emitter(self, source: Source, requirements: SupportRequirements, stem_of: Callable[[int], str]) -> Emitter:
        return CEmitter(source, requirements, stem_of, cpp=False)

    def layout(self, source: Source) -> CLayout:
        return CLayout(source)

    def variable(self, type_text: str, name: str, sizes: Sequence[str] = ()) -> str:
        return printer.declaration(type_text, name, sizes)

    def new_name(self, wanted: str, taken: Collection[str]) -> str:
        return printer.fresh_name(wanted, taken)

    def declaration(self, program: Program, procedure: Procedure, number: int, place: int) -> str | None:
        return redeclared(program, procedure, number, place)

    def words_of_macros(self, program: Program) -> Collection[str] | None:
        return unused_declarations.named_by_macros(program)

    def without_unused(
        self,
        text: str,
        source: Source,
        body: Block,
        hidden: Collection[str] | None,
        once_used: Counter[str] | None = None,
    ) -> str:
        return unused_declarations.without_unused(text, source, body, hidden, once_used)

    def count_words(self, data: bytes) -> Counter[str]:
        return named_words(data)

    def part_without_unused(self, text: str, source: Source) -> str:
        return text

    def renamed_head(self, head: str, source: Source) -> str:
        return head

    def place_of_support(self, source: Source, first: int) -> int:
        return after_includes(source.data, first, cpp=False)

    def declarations_of_calls(self, source: Source, texts: Sequence[str]) -> Iterable[Edit]:
        return ()


class Cpp(C):
    """C++."""

    name = "c++"
    has_references = True
    has_hidden_calls = True
    inline_may_be_undefined = False

    def type_of_result(self, name: str, argument: Type | None) -> Type | None:
        """C's functions of doubles are overloaded in C++."""
        found = super().type_of_result(name, argument)
        if found != _DOUBLE:
            return found
        narrow = argument is not None and argument.base == "real" and (argument.bytes or 9) <= 8
        return found if narrow else None

    def is_declared_elsewhere(self, procedure: Procedure, source: Source) -> bool:
        return functions.is_member(procedure, source)

    def emitter(self, source: Source, requirements: SupportRequirements, stem_of: Callable[[int], str]) -> Emitter:
        return CEmitter(source, requirements, stem_of, cpp=True)

    def place_of_support(self, source: Source, first: int) -> int:
        return after_includes(source.data, first, cpp=True)


def _head(procedure: Procedure, source: Source) -> str:
    return source.data[procedure.span.start : procedure.body.span.start].decode("latin-1")
