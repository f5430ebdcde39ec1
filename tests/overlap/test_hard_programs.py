"""Whole programs that were meant to break the tool: rewritten, they behave as they did, or are left alone.

Each is in ``hard/``, and runs as it is, with the plain MPI, and as ``lapwing overlap`` makes it, with the strict one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from _running import Reference, overlap, required

pytestmark = pytest.mark.mpi
HARD = Path(__file__).parent / "hard"

# What it guards against, and whether something in it is worth changing.
PROGRAMS = {
    "macro_blocks.c": ("calls in a macro's block written out beside the macro, or outside its branch", True),
    "macro_arguments.c": ("arguments of a macro written without their casts, or not at all", True),
    "threads.c": ("requests and copies that threads share", False),
    "prototypes.c": ("a prototype before its types", True),
    "shared_file.f90": ("a message started before the file is closed that it tells of", True),
    "shared_file.c": ("a message started before the file is closed that it tells of", True),
    "unions.c": ("a received union read by another member before it is there", True),
    "freed_buffers.c": ("a buffer freed or moved by realloc while its message travels", True),
    "swapped_pointers.c": ("a halo known by a pointer that the loop swaps", True),
    "counts_from_messages.c": ("a receive whose count, tag or buffer another message brings", True),
    "persistent_requests.c": ("messages that overtake those of persistent requests with the same tag", True),
    "hidden_names.c": ("statements moved to where their names mean other variables", True),
    "scopes.cpp": ("declarations before those of MPI, drains that the linker does not find", True),
    "default_arguments.cpp": ("halves whose declarations give default arguments again", True),
    "branches.c": ("statements moved out of their branches, or past code that is left out", True),
    "labels.c": ("calls moved out of reach of jumps, or past macros of theirs", True),
    "labels.f90": ("labels that are lost with their calls", True),
    "kinds.f90": ("declarations with the program's own kinds where they are not known", True),
    "macro_types.F90": ("copies of elements whose type is not known", False),
    "legacy.f": ("COMMON with other layouts, EQUIVALENCE, statement functions, loops by GOTO", True),
    "entry_points.f90": ("a procedure with a second entry, and saved variables between the two", True),
    "one_line.f90": ("several statements and program units on a line", True),
    "tabs.f": ("tabs, line ends of DOS and continuation by a digit", True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_behaves_as_before(name: str, tmp_path: Path, thorough: bool) -> None:
    _, changes = PROGRAMS[name]
    source = tmp_path / "sources" / name
    source.parent.mkdir()
    shutil.copy(HARD / name, source)
    language = "c" if source.suffix in (".c", ".cpp") else "fortran"
    required(language)
    options = ["-ffree-line-length-none"] if source.suffix == ".f90" else ["-pthread"] if language == "c" else []
    original = Reference([source], options)
    rewritten = overlap([source], tmp_path / "rewritten")
    assert rewritten.status == 0, rewritten.messages
    assert rewritten.changed == changes
    if changes:
        original.assert_unchanged_by(rewritten.sources, thorough, 2)
