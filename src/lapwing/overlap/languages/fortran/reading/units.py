"""Program units: each one's header, its declarations (those of include files, too), executable statements and inner units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tree_sitter import Node

from lapwing.overlap.languages.fortran.parsing.file import File, child_of

PROCEDURES = {"program", "subroutine", "function", "module_procedure"}
UNITS = PROCEDURES | {"module", "submodule", "block_data"}

SPECIFICATIONS = {
    "variable_declaration",
    "variable_modification",
    "parameter_statement",
    "common_statement",
    "equivalence_statement",
    "data_statement",
    "save_statement",
    "implicit_statement",
    "use_statement",
    "import_statement",
    "include_statement",
    "interface",
    "derived_type_definition",
    "namelist_statement",
    "private_statement",
    "public_statement",
    "procedure_statement",
    "enum",
    "enumeration_type",
    "cray_pointer_declaration",
    "bind_statement",
    "generic_statement",
    "coarray_declarations",
}
# May stand among the declarations as well as among the executable statements.
_ANYWHERE = {"format_statement", "data_statement", "namelist_statement", "include_statement", "statement_label", ";"}


@dataclass(frozen=True, eq=False)
class Specification:
    file: File
    node: Node


@dataclass(eq=False)
class Unit:
    """``kind``: "program", "subroutine", "function", "module", "block data". ``specifications``: declarations with those of
    included files in place. ``statements``: the executable part, labels included. ``missing``: include files that were not
    found. ``stray``: what a module cannot hold. ``used``, ``declared``, ``functions_end``: where the last USE, declaration
    and statement function end in the file."""

    kind: str
    name: str
    file: File
    node: Node
    host: Unit | None
    specifications: list[Specification] = field(default_factory=list)
    statements: list[Node] = field(default_factory=list)
    inner: list[Unit] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    header: Node | None = None
    footer: Node | None = None
    declared: int = 0
    used: int = 0
    functions_end: int = 0
    stray: list[Node] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Unique among procedures; the prefix of a module's symbols."""
        if self.kind == "module":
            return f"module {self.name}"
        if self.host is None:
            return self.name
        return f"{self.host.prefix}::{self.name}"

    @property
    def prefix(self) -> str:
        """What the keys of the symbols declared here begin with."""
        return self.key if self.kind == "module" else f"procedure {self.key}"


# Gives the declarations of an include file, or None after noting that it is missing.
Include = Callable[[File, Node, Unit], "list[Specification]"]


def units_of(file: File, include: Include) -> list[Unit]:
    """The program units of a file, in order, without the inner ones."""
    return [_unit(file, node, None, include) for node in file.parsed.root.children if node.type in UNITS]


def _unit(file: File, node: Node, host: Unit | None, include: Include) -> Unit:
    kind = {"submodule": "module", "block_data": "block data", "module_procedure": "subroutine"}.get(
        node.type, node.type
    )
    children = node.children
    header = next((child for child in children[:1] if child.type == f"{node.type}_statement"), None)
    unit = Unit(kind, _name(file, header, kind), file, node, host, header=header)
    unit.declared = unit.used = file.statement_span(header).end if header is not None else file.start(node)
    executable = False
    for child in children:
        if child is header:
            continue
        if child.type == "internal_procedures":
            unit.footer = unit.footer or child
            unit.inner += [_unit(file, inner, unit, include) for inner in child.children if inner.type in PROCEDURES]
        elif child.type.startswith("end_") and child.type == f"end_{node.type}_statement":
            unit.footer = unit.footer or child
        elif not executable and (child.type in SPECIFICATIONS or _is_cray_pointer(file, child)):
            _specify(unit, child, include)
        elif executable or kind in PROCEDURES:
            executable = executable or child.type not in _ANYWHERE
            unit.statements.append(child)
        elif child.type not in _ANYWHERE:
            unit.stray.append(child)
    return unit


def _is_cray_pointer(file: File, node: Node) -> bool:
    """``pointer (p, a)``, which tree-sitter takes for a function's call."""
    return node.type == "call_expression" and file.name(node).startswith("pointer")


def _specify(unit: Unit, node: Node, include: Include) -> None:
    unit.declared = unit.file.last_byte(node)
    if node.type in ("use_statement", "import_statement"):
        unit.used = unit.declared
    if node.type == "include_statement":
        unit.specifications += include(unit.file, node, unit)
    else:
        unit.specifications.append(Specification(unit.file, node))


def _name(file: File, header: Node | None, kind: str) -> str:
    name = child_of(header, "name") if header is not None else None
    if name is not None:
        return file.name(name)
    return f"({kind.replace(' ', '_')} of {file.path.name})"
