"""The protocol of source languages: their semantics, queries on their text, and how code is written in them.

``c/language.py`` and ``fortran/language.py`` implement it; ``registry.py`` selects one by the source file. No other module
distinguishes languages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Expression, Type
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Block, Loop
from lapwing.overlap.languages.shared.emitter import Emitter
from lapwing.overlap.languages.shared.extremes import Extreme
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements
from lapwing.overlap.languages.shared.words import Word
from lapwing.overlap.libraries.summaries import LibrarySummary
from lapwing.overlap.source.replacements import Edit
from lapwing.overlap.source.spans import Source


class Layout(Protocol):
    """Lines of one file."""

    has_braces: bool
    """Whether blocks are in braces, which may share a line with their head; else heads and ends are lines of their own."""

    @property
    def step(self) -> int:
        """The columns of one level."""

    def column(self, line: str) -> int:
        """The column in which a statement begins, given the beginning of its line."""

    def lines(self, lines: Sequence[str], indent: int) -> str:
        """Statements, each on its own line; leading blanks are added to ``indent``."""

    def comment(self, text: str, indent: int) -> str: ...

    def enclosed(self, inner: str, indent: int) -> str:
        """The text after the head of a conditional with the statements ``inner``."""


class Language(Protocol):
    """One language."""

    name: str
    """As ``Source.language`` has it."""
    linkage: str
    """Languages with the same can name each other's procedures."""
    comment_opening: str

    # ---- semantics ----------------------------------------------------------------------------------------------------

    by_reference: bool
    """Arguments are passed by reference, unless the dummy argument is by value; else by value, unless the dummy argument is a
    reference."""
    has_addresses: bool
    """A pointer's name denotes the address it holds, and an array's name that of its first element; else both denote the memory
    itself."""
    has_references: bool
    """Dummy arguments and results may be references."""
    has_hidden_calls: bool
    """Procedures are also called implicitly or by dynamic dispatch: constructors, operators, conversions and virtual members."""
    index_base: int
    """The default lower bound of arrays."""
    column_major: bool
    """The first index varies fastest in memory; else the last one."""
    case_sensitive: bool
    has_assumed_shape: bool
    """Dummy arrays may have assumed shape, and procedures may inquire about arguments' shape and status."""
    declares_on_entry: bool
    """Declarations are evaluated on entry to the procedure; else where they are."""
    rechecks_bounds: bool
    """A loop's bound is evaluated in every iteration; else once."""
    models_initial_values: bool
    """``Program.initial`` holds the initial values of static variables; integers without one start at 0."""
    copies_arguments: bool
    """Compilers may pass a copy of an argument, and copy it back."""
    inline_may_be_undefined: bool
    """An inline procedure may have no definition to call."""
    pipelines_loops: bool
    """Whether transforms/software_pipelining can write a loop's prologue."""
    splits_shell: bool
    """A loop's boundary is written as two loops; else as one that skips the interior."""
    declares_parts: bool
    """A file has to declare a procedure defined elsewhere before it calls it."""

    has_second_names: bool
    """``Symbol.overlay`` of a variable outside procedures means that the linker may know it under another name."""
    support_after_includes: bool
    """Support code is placed after the file's #includes; else at its end."""

    def library(self, name: str) -> LibrarySummary | None:
        """The summary of a procedure without source; None: it may do anything."""

    def parameters(self, message: mpi.MpiCall) -> tuple[mpi.Parameter, ...]:
        """The parameters of an MPI call in this language."""

    def is_library_name(self, name: str, program: Program, procedure: Procedure) -> bool:
        """Whether the name of a library or intrinsic function denotes that in the procedure."""

    def extreme(self, name: str) -> Extreme | None:
        """The maximum or minimum that a library function computes, if it does."""

    def type_of_result(self, name: str, argument: Type | None) -> Type | None:
        """The type of the absolute value or the square root of a real ``argument``, or a wider one; None if unknown."""

    def clears_sign(self, name: str, is_real: bool) -> bool:
        """Whether the function computes an absolute value; ``is_real``: its argument is certainly not an integer."""

    def is_signed(self, kind: Type) -> bool:
        """Whether an integer type is certainly signed."""

    # ---- reading ------------------------------------------------------------------------------------------------------

    def read(
        self,
        files: Sequence[Path],
        includes: Sequence[Path],
        defines: Mapping[str, str],
        undefines: Collection[str],
        compile_commands: Path | None,
    ) -> Program:
        """Reads the files as one program. Raises RefusedError if one does not exist, or ``compile_commands`` is no compilation
        database."""

    # ---- queries on text ----------------------------------------------------------------------------------------------

    def joined(self, source: Source) -> tuple[bytes, ...]:
        """The source's text with continuation lines joined, in all ways that a compiler may read it."""

    def words(self, text: str) -> list[Word]:
        """The names in a piece of a procedure that could not be read."""

    def macro_definitions(self, text: str) -> Iterable[tuple[str, str]]:
        """The macros that a source defines and that its statements, as read, may still name; each with its replacement."""

    def blanked(self, text: str, form: str | None) -> str:
        """The text with comments and string literals blanked out."""

    def names_of_wildcards(self, text: bytes) -> int:
        """How often a text with joined lines names one of MPI's wildcards."""

    def is_preprocessed(self, source: Source) -> bool: ...

    def is_header(self, path: Path) -> bool:
        """Whether the file is a header."""

    def is_named_elsewhere(self, source: Source, name: str, calls: int) -> bool:
        """Whether the source may name a procedure other than in its definition and this number of calls."""

    def names_itself(self, program: Program) -> Callable[[Procedure], bool]:
        """A test whether a procedure's text, or that of a macro in it, uses the procedure's own name (such as ``__func__``)."""

    def is_pure(self, procedure: Procedure, source: Source) -> bool:
        """Whether the language forbids the procedure to call anything with side effects."""

    def is_shared(self, head: str) -> bool:
        """Whether, by its head, other languages may call a procedure, or its definitions in several files must be identical."""

    def called_without_name(self, source: Source) -> list[str]:
        """Pieces of the source that make procedures callable under another name, or without one."""

    def is_declared_elsewhere(self, procedure: Procedure, source: Source) -> bool:
        """Whether a declaration made from the procedure's head would declare another procedure, or be ill-formed."""

    def can_take_other_name(self, procedure: Procedure, head: str) -> bool:
        """Whether a procedure with this head can be renamed, as far as the head shows."""

    def sees_parts(
        self, program: Program, caller: Procedure, callee: Procedure, original: Procedure, place: int
    ) -> bool:
        """Whether outlined parts of the callee, placed beside it, can be named in the caller. ``original``: the procedure that
        the callee is part of. ``place``: the beginning of the procedure that the caller is part of."""

    def unseen_parts(self, name: str) -> tuple[str, str]:
        """What was found if ``sees_parts`` is false, and advice."""

    # ---- buffers ------------------------------------------------------------------------------------------------------

    def can_declare(self, buffer: Expression) -> bool:
        """Whether a procedure elsewhere can declare the buffer's type."""

    def is_contiguous(self, buffer: Expression) -> bool:
        """Whether an argument that is no MPI constant is certainly contiguous memory from its first element on, no temporary,
        and of a type for which ``can_declare`` is true."""

    def is_array(self, buffer: Expression) -> bool:
        """Whether support procedures can take a contiguous argument as an array."""

    def may_be_copied(self, buffer: Expression) -> bool:
        """Whether a message can be copied from or to an argument that is not contiguous."""

    # ---- loops --------------------------------------------------------------------------------------------------------

    def can_bound(self, program: Program, procedure: Procedure) -> bool:
        """Whether the procedure can name the functions used in changed loop bounds."""

    def has_countable_ends(self, source: Source, loop: Loop, procedure: Procedure, planes: int) -> bool:
        """Whether the loop can be rewritten with bounds this number of planes further in."""

    def spelled_ends(self, source: Source, loop: Loop) -> tuple[str, str] | None:
        """The first and the last value of the loop's variable as spelled in the source, if bounds are written in terms of
        these."""

    def can_strip(self, program: Program, procedure: Procedure, loop: Loop) -> bool:
        """Whether the loop can be strip-mined."""

    # ---- writing ------------------------------------------------------------------------------------------------------

    def emitter(self, source: Source, requirements: SupportRequirements, stem_of: Callable[[int], str]) -> Emitter:
        """The emitter for one file. ``stem_of``: the stems of the program's files, by number."""

    def layout(self, source: Source) -> Layout: ...

    def variable(self, type_text: str, name: str, sizes: Sequence[str] = ()) -> str:
        """The declaration of a variable. ``sizes``: an array's."""

    def new_name(self, wanted: str, taken: Collection[str]) -> str:
        """``wanted``, with a number appended if it is taken or a keyword."""

    def declaration(self, program: Program, procedure: Procedure, number: int, place: int) -> str | None:
        """The declaration of the procedure that the source of this number contains before an offset, if it has the same meaning
        there."""

    def words_of_macros(self, program: Program) -> Collection[str] | None:
        """The words that macros may expand to; None where they may expand to any."""

    def without_unused(
        self,
        text: str,
        source: Source,
        body: Block,
        hidden: Collection[str] | None,
        once_used: Counter[str] | None = None,
    ) -> str:
        """The text of a body without unused local variables. ``hidden``: from ``words_of_macros``. ``once_used``: word counts
        of the original text; only variables named more than once there are removed."""

    def count_words(self, data: bytes) -> Counter[str]:
        """Word counts of a text, for ``without_unused``."""

    def part_without_unused(self, text: str, source: Source) -> str:
        """The text of a whole procedure without unused variables that ``without_unused`` leaves."""

    def renamed_head(self, head: str, source: Source) -> str:
        """The head of a procedure with a longer name, wrapped to the permitted line length."""

    def place_of_support(self, source: Source, first: int) -> int:
        """Where support code is inserted; ``first``: the offset of the first change."""

    def declarations_of_calls(self, source: Source, texts: Sequence[str]) -> Iterable[Edit]:
        """Declarations of the support procedures that the texts call, where the file requires them."""
