"""The order of the house: a folder imports only from folders above it in the list, none is too full to find one's way in, and
tests are where what they test is."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lapwing.overlap.languages.registry import FAMILIES, NAMES

TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent
SOURCES = REPOSITORY / "src"
MOST_MODULES = 15

# Folders, and files of the package itself, each below all that it imports from: at the top of a file, inside a function, or for
# type checkers only.
ORDER = """
lapwing.affine
lapwing.errors
lapwing.html
lapwing.launcher
lapwing.memo
lapwing.memory
lapwing.notices
lapwing.orphans
lapwing.overlap.mpi
lapwing.scratch_arrays
lapwing.temporary
lapwing.syntax_places
lapwing.files
lapwing.loopnest.inlining
lapwing.loopnest.normalisation
lapwing.loopnest.normalisation.nests
lapwing.display
lapwing.loopnest
lapwing.overlap.source
lapwing.schedule
lapwing.store.files
lapwing.units
lapwing.loopnest.frontend
lapwing.loopnest.program.variables
lapwing.loopnest.program.whole_arrays
lapwing.loopnest.program
lapwing.machine
lapwing.overlap.ir
lapwing.store
lapwing.trace
lapwing.loopnest.binding
lapwing.codegen.compilation
lapwing.overlap.libraries
lapwing.overlap.languages.shared
lapwing.overlap.languages.c.parsing
lapwing.overlap.languages.c.writing
lapwing.overlap.languages.c.reading
lapwing.overlap.languages.c
lapwing.overlap.languages.fortran.parsing
lapwing.overlap.languages.fortran.writing
lapwing.overlap.languages.fortran.reading
lapwing.overlap.languages.fortran
lapwing.overlap.languages
lapwing.overlap.dataflow
lapwing.tiling
lapwing.tiling.phased
lapwing.roofline
lapwing.codegen.body
lapwing.codegen.outer_loops
lapwing.codegen.inner_loops
lapwing.codegen.rows
lapwing.codegen.lanes
lapwing.codegen.temporal
lapwing.codegen
lapwing.overlap.analysis.memory
lapwing.overlap.emission
lapwing.planner
lapwing.theory
lapwing.overlap.analysis.messages
lapwing.runtime.binding
lapwing.trace.pmpi
lapwing.cli.tables
lapwing.overlap.analysis.effects
lapwing.runtime.mpi
lapwing.overlap.analysis
lapwing.runtime.arrays
lapwing.overlap.analysis.ranks
lapwing.runtime
lapwing.calibrate.core
lapwing.calibrate
lapwing.api.calls
lapwing.api
lapwing
lapwing.launch
lapwing.export
lapwing.export.driver
lapwing.export.driver.partial_evaluation
lapwing.overlap.report
lapwing.session
lapwing.overlap.transforms
lapwing.overlap.verify
lapwing.overlap.transforms.index_set_splitting
lapwing.overlap.transforms.progress
lapwing.overlap.transforms.split_phase
lapwing.overlap.transforms.software_pipelining
lapwing.overlap.transforms.outlining
lapwing.overlap
lapwing.cli.actions
lapwing.cli
lapwing.__main__
""".split()


# Who may tell languages apart in overlap/: the languages themselves, what is known of their libraries, and MPI's table, which has
# the parameters of both forms of a call.
OF_LANGUAGES = ("lapwing.overlap.languages", "lapwing.overlap.libraries", "lapwing.overlap.mpi")


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SOURCES / "lapwing").rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def folder_of(module: str) -> str:
    """The folder a module lies in; of what lies in the package itself, the module."""
    path = modules()[module]
    return module if path.parent == SOURCES / "lapwing" else ".".join(path.parent.relative_to(SOURCES).parts)


@cache
def imports(module: str) -> frozenset[str]:
    return frozenset(_imports(module))


def _imports(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module in modules():
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else str(node.module)


def test_every_folder_is_in_the_list() -> None:
    assert {folder_of(module) for module in modules()} == set(ORDER)
    assert len(ORDER) == len(set(ORDER))


def test_imports_come_from_above() -> None:
    places = {folder: place for place, folder in enumerate(ORDER)}
    for module in modules():
        own = places[folder_of(module)]
        assert not {other for other in imports(module) if places[folder_of(other)] > own}, (
            f"{module} imports from below"
        )


def test_modules_import_each_other_in_no_circle() -> None:
    left = {module: {other for other in imports(module) if other != module} for module in modules()}
    while ready := [module for module, needs in left.items() if not needs & left.keys()]:
        for module in ready:
            del left[module]
    assert not left


def test_no_folder_is_too_full() -> None:
    count = Counter(path.parent for path in modules().values() if path.name != "__init__.py")
    assert not {folder for folder, files in count.items() if files > MOST_MODULES}


def test_no_folder_of_benchmarks_is_too_full() -> None:
    files = (path for path in (REPOSITORY / "bench").rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    count = Counter(path.parent for path in files)
    assert count
    assert not {folder for folder, number in count.items() if number > MOST_MODULES}


# ---- tests --------------------------------------------------------------------------------------------------------------

# Folders of tests that mirror none of the package: what is in them, or whose tests they are.
OF_THEIR_OWN = {
    "literature": "nests as the literature has them",
    "loopnest/constructs": "constructs as people write them, from the text to ranks",
    "property": "random nests, on every engine, against the plain loop",
    "property/integers": "integers of Python's: how large they are, and what conditions say of them",
    "property/nests": "such nests, and the programs that run them",
    "property/programs": "random programs of several nests, random sequential regions",
    "property/simulated": "ranks that exchange messages in Python",
    "property/rows": "innermost loops whose rows stay where they are",
    "property/tiles": "tiles in every inner form",
    "refusals": "what is refused of a nest, in which words, and that the advice helps",
    "overlap/corpus": "programs by the analysis they test",
    "overlap/harness": "compiling, running and comparing MPI programs",
    "overlap/random_programs": "random MPI programs",
}


def folders_of_tests() -> Counter[Path]:
    """Folders with modules in them, and how many."""
    return Counter(path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py"))


def test_tests_mirror_the_tree() -> None:
    """A folder of tests has a counterpart in the package, or beside it (bench/, docs/, examples/)."""
    folders = {folder.as_posix() for folder in folders_of_tests()}
    places = (SOURCES / "lapwing", REPOSITORY)
    alone = {folder for folder in folders if not any((place / folder).is_dir() for place in places)}
    assert alone == OF_THEIR_OWN.keys()


def test_no_folder_of_tests_is_too_full() -> None:
    assert not {folder for folder, files in folders_of_tests().items() if files > MOST_MODULES}


def test_helpers_are_found_in_every_folder_that_has_some() -> None:
    """Modules that tests import are in folders that pytest looks in."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    searched = {REPOSITORY / folder for folder in settings["tool"]["pytest"]["ini_options"]["pythonpath"]}
    helpers = [path for path in TESTS.rglob("*.py") if path.name != "conftest.py" and not path.name.startswith("test_")]
    assert {path.parent for path in helpers} == searched
    assert len({path.name for path in helpers}) == len(helpers)


def test_only_languages_tell_languages_apart() -> None:
    for module, path in modules().items():
        if module.startswith("lapwing.overlap") and not module.startswith(OF_LANGUAGES):
            found = _of_a_language(path.read_text(encoding="utf-8"))
            assert not found, f"{path}:{found[0]} is about one language: ask overlap/languages/language.py"


@pytest.mark.parametrize(
    "text",
    [
        "from lapwing.overlap.languages.c.parsing import toolchain",
        "from lapwing.overlap.languages.registry import _language",
        "import lapwing.overlap.languages.fortran.language as f",
        "if source.language == 'fortran': pass",
        "patterns = {'c': 1}",
        "is_fortran = True",
        "def fortran_text(): pass",
        "def f(is_cpp): pass",
        "model.fortran",
        "if path.suffix in ('.f90', '.f'): pass",
        "isinstance(language, Fortran)",
    ],
)
def test_what_is_about_one_language_is_found(text: str) -> None:
    assert _of_a_language(f"first = 1\n{text}") == [2]


def test_what_is_about_any_language_is_not_taken_for_it() -> None:
    assert not _of_a_language("'Fortran has it so.'\nif language_of(source).by_reference: c = language.name")


def _of_a_language(text: str) -> list[int]:
    """The lines that import one language's own modules, or have its name, or an ending of its files, in a text of its own or in
    an identifier."""
    return sorted({node.lineno for node in ast.walk(ast.parse(text)) if any(map(_is_of_a_language, _words(node)))})


def _words(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return [f"{node.module}.{alias.name}" for alias in node.names]
        case ast.Constant(value=str(value)):
            return [f"={value}"]
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
    return []


def _is_of_a_language(word: str) -> bool:
    if word.startswith("="):
        return word[1:] in {*NAMES, *(ending for family in FAMILIES for ending in family.endings)}
    own = word.startswith(tuple(f"{OF_LANGUAGES[0]}.{folder}." for folder in ("c", "fortran")))
    private = word.startswith(f"{OF_LANGUAGES[0]}.registry._")
    return own or private or re.search(r"fortran|(?<![a-z])cpp(?![a-z])|^_?is_c$", word, re.IGNORECASE) is not None


def test_only_the_package_of_integer_sets_calls_isl() -> None:
    calling = {m for m, path in modules().items() if "import islpy" in path.read_text(encoding="utf-8")}
    assert {folder_of(module) for module in calling} == {"lapwing.affine"}


REDUCES_OBJECTS = frozenset({"allreduce", "scan", "exscan"})  # of mpi4py: see runtime.mpi.communicator.largest


def test_no_module_reduces_objects_over_ranks() -> None:
    """Which methods a module calls of anything: ``comm.allreduce`` and the like wait with the interpreter locked."""
    calls = {
        (module, node.func.attr)
        for module, path in modules().items()
        if not module.startswith("lapwing.overlap")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not {call for call in calls if call[1] in REDUCES_OBJECTS}
