"""What the rest of the compiler asks a language: what its programs mean, what their text says, and how they are written.

``c/language.py`` and ``fortran/language.py`` answer; which of them, ``registry.py`` tells by the source file. Nobody else asks
which language a file is in.
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
    """Whether braces hold blocks, and what stands before one may share its line; else heads and ends are lines of their own."""

    @property
    def step(self) -> int:
        """The columns of one level."""

    def column(self, line: str) -> int:
        """The column in which a statement begins, by the beginning of its line."""

    def lines(self, lines: Sequence[str], indent: int) -> str:
        """Statements, each on its own line; blanks before one come on top of ``indent``."""

    def comment(self, text: str, indent: int) -> str: ...

    def enclosed(self, inner: str, indent: int) -> str:
        """What follows the head of a conditional, whose statements are ``inner``."""


class Language(Protocol):
    """One language."""

    name: str
    """As ``Source.language`` has it."""
    linkage: str
    """Languages with the same can name each other's procedures."""
    comment_opening: str

    # ---- what programs mean -------------------------------------------------------------------------------------------

    by_reference: bool
    """An argument is handed over by reference, unless the dummy argument takes it by value; else by value, unless the dummy
    argument is a reference."""
    has_addresses: bool
    """A pointer's name means the address that it holds, and an array's name that of its first element; else both names mean the
    memory itself."""
    has_references: bool
    """Dummy arguments and results may be references."""
    has_hidden_calls: bool
    """Procedures are called where no name shows which: constructors, operators and conversions, and members of classes that
    others override."""
    index_base: int
    """The first index of an array whose declaration does not say it."""
    column_major: bool
    """Elements that lie side by side differ in their first index; else in their last."""
    case_sensitive: bool
    has_assumed_shape: bool
    """A dummy array may take its shape from what it is given, and procedures may ask for shapes and statuses of arguments."""
    declares_on_entry: bool
    """Declarations are worked out where the procedure is entered; else where they stand."""
    rechecks_bounds: bool
    """A loop's bound is evaluated at every turn; else once."""
    models_initial_values: bool
    """``Program.initial`` holds what variables that live as long as the program begin with; integers that it has nothing of
    begin with 0."""
    copies_arguments: bool
    """A compiler may hand over a copy of an argument, and copy it back."""
    inline_may_be_undefined: bool
    """Of an inline procedure there may be no definition to call."""
    pipelines_loops: bool
    """Whether transforms/software_pipelining knows how to write a loop's prologue."""
    splits_shell: bool
    """What an interior leaves of a loop is two loops; else one that passes over it."""
    declares_parts: bool
    """A file has to declare a procedure that stands elsewhere before it calls it."""

    has_second_names: bool
    """``Symbol.overlay`` of a variable outside of procedures says that the linker may know another name of it."""
    support_after_includes: bool
    """Support text stands behind what the file includes; else at its end."""

    def library(self, name: str) -> LibrarySummary | None:
        """What is known of a procedure that is in no source; None: it may do anything."""

    def parameters(self, message: mpi.MpiCall) -> tuple[mpi.Parameter, ...]:
        """The parameters of MPI's procedure."""

    def is_library_name(self, name: str, program: Program, procedure: Procedure) -> bool:
        """Whether a library's or an intrinsic function's name means that in the procedure."""

    def extreme(self, name: str) -> Extreme | None:
        """Of a library's function."""

    def type_of_result(self, name: str, argument: Type | None) -> Type | None:
        """The type of the absolute value or the root of a real ``argument``, or a wider one; None if it is not known."""

    def clears_sign(self, name: str, is_real: bool) -> bool:
        """Whether the function gives an absolute value; ``is_real``: its argument is certainly no integer."""

    def is_signed(self, kind: Type) -> bool:
        """Whether an integer's type certainly has a sign."""

    # ---- reading ------------------------------------------------------------------------------------------------------

    def read(
        self,
        files: Sequence[Path],
        includes: Sequence[Path],
        defines: Mapping[str, str],
        undefines: Collection[str],
        compile_commands: Path | None,
    ) -> Program:
        """The files as one program. Raises RefusedError where one is not there, or ``compile_commands`` is none."""

    # ---- what texts say -----------------------------------------------------------------------------------------------

    def joined(self, source: Source) -> tuple[bytes, ...]:
        """The source's text with its lines joined, in all ways that a compiler may read it."""

    def words(self, text: str) -> list[Word]:
        """The names in a piece of a procedure that could not be read."""

    def macro_definitions(self, text: str) -> Iterable[tuple[str, str]]:
        """The macros that a source defines and that its statements, as they were read, may name; each with what it stands for."""

    def blanked(self, text: str, form: str | None) -> str:
        """The text with blanks in the place of comments and texts."""

    def names_of_wildcards(self, text: bytes) -> int:
        """How often a text with its lines joined names one of MPI's wildcards."""

    def is_preprocessed(self, source: Source) -> bool: ...

    def is_header(self, path: Path) -> bool:
        """Whether the file is there to be included."""

    def is_named_elsewhere(self, source: Source, name: str, calls: int) -> bool:
        """Whether the source may name a procedure besides its definition and so many calls."""

    def names_itself(self, program: Program) -> Callable[[Procedure], bool]:
        """Tells whether a procedure's text, or that of a macro in it, says the procedure's own name."""

    def is_pure(self, procedure: Procedure, source: Source) -> bool:
        """Whether the language lets the procedure call nothing that changes anything else."""

    def is_shared(self, head: str) -> bool:
        """Whether, by its head, other languages may run a procedure, or all files that define it must define the same."""

    def called_without_name(self, source: Source) -> list[str]:
        """Pieces of the source that give procedures another name, or none, by which they may be called."""

    def is_declared_elsewhere(self, procedure: Procedure, source: Source) -> bool:
        """Whether a declaration made from the procedure's head would be another one's, or not allowed."""

    def can_take_other_name(self, procedure: Procedure, head: str) -> bool:
        """Whether a procedure with this head can have any name, as far as the head says."""

    def sees_parts(
        self, program: Program, caller: Procedure, callee: Procedure, original: Procedure, place: int
    ) -> bool:
        """Whether parts of the callee, which stand where it does, can be named in the caller. ``original``: what the callee is a
        part of. ``place``: where the procedure begins that the caller is a part of."""

    def unseen_parts(self, name: str) -> tuple[str, str]:
        """What was found where ``sees_parts`` says no, and what to do."""

    # ---- buffers ------------------------------------------------------------------------------------------------------

    def can_declare(self, buffer: Expression) -> bool:
        """Whether a procedure elsewhere can declare the type of what is in the buffer."""

    def is_contiguous(self, buffer: Expression) -> bool:
        """Whether an argument, no constant of MPI's, is certainly the memory itself, from its first element on, and no temporary,
        of a type that ``can_declare`` knows."""

    def is_array(self, buffer: Expression) -> bool:
        """Whether support procedures can take a contiguous argument for an array."""

    def may_be_copied(self, buffer: Expression) -> bool:
        """Whether what a message holds can be copied from or to an argument that is not contiguous."""

    # ---- loops --------------------------------------------------------------------------------------------------------

    def can_bound(self, program: Program, procedure: Procedure) -> bool:
        """Whether the procedure can name what other bounds of loops are made with."""

    def has_countable_ends(self, source: Source, loop: Loop, procedure: Procedure, planes: int) -> bool:
        """Whether the loop can be written again with bounds that are so many planes further in."""

    def spelled_ends(self, source: Source, loop: Loop) -> tuple[str, str] | None:
        """The first and the last value of the loop's variable in the source's words, where bounds are made of these."""

    def can_strip(self, program: Program, procedure: Procedure, loop: Loop) -> bool:
        """Whether the loop's turns can run in strips."""

    # ---- writing ------------------------------------------------------------------------------------------------------

    def emitter(self, source: Source, requirements: SupportRequirements, stem_of: Callable[[int], str]) -> Emitter:
        """Prints statements for one file. ``stem_of``: of the program's files, by their numbers."""

    def layout(self, source: Source) -> Layout: ...

    def variable(self, type_text: str, name: str, sizes: Sequence[str] = ()) -> str:
        """The declaration of a variable. ``sizes``: an array's."""

    def new_name(self, wanted: str, taken: Collection[str]) -> str:
        """``wanted``, or with a number behind it if it is taken or a word of the language."""

    def declaration(self, program: Program, procedure: Procedure, number: int, place: int) -> str | None:
        """How the source of this number declares the procedure before an offset, if that means there what it means where it
        stands."""

    def words_of_macros(self, program: Program) -> Collection[str] | None:
        """The words that macros may put into a text that does not show them; None where they may make any."""

    def without_unused(
        self,
        text: str,
        source: Source,
        body: Block,
        hidden: Collection[str] | None,
        once_used: Counter[str] | None = None,
    ) -> str:
        """The text of a body without local variables that it declares and does not name. ``hidden``: of ``words_of_macros``.
        ``once_used``: only what was named more than once in a text with these words."""

    def count_words(self, data: bytes) -> Counter[str]:
        """How often a text names what, for ``without_unused``."""

    def part_without_unused(self, text: str, source: Source) -> str:
        """The text of a whole procedure without such variables, as far as ``without_unused`` has left some."""

    def renamed_head(self, head: str, source: Source) -> str:
        """The head of a procedure that has been given a longer name, on lines that are short enough."""

    def place_of_support(self, source: Source, first: int) -> int:
        """Where support text is inserted; ``first``: what changes first."""

    def declarations_of_calls(self, source: Source, texts: Sequence[str]) -> Iterable[Edit]:
        """Declarations of the support procedures that the texts call, where the file must have some."""
