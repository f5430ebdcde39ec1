"""What a program gives a meaning of its own to: operators, assignment, input and output, and the end of a variable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from tree_sitter import Node

from lapwing.overlap.languages.fortran.parsing.file import File, child_of, children_of

ASSIGNMENT = "="
OPERATORS = {
    ".eq.": "==",
    ".ne.": "!=",
    "/=": "!=",
    ".lt.": "<",
    ".le.": "<=",
    ".gt.": ">",
    ".ge.": ">=",
    ".and.": "&&",
    ".or.": "||",
    ".not.": "!",
    ".eqv.": "==",
    ".neqv.": "!=",
}
_DEFINED = re.compile(r"\boperator\s*\(([^)]+)\)|\b(assignment)\s*\(\s*=\s*\)")
_INPUT_OUTPUT = re.compile(r"\b(?:read|write)\s*\(\s*(?:un)?formatted\s*\)")
_DERIVED = re.compile(r"\b(type|class)\s*\(\s*(\w+|\*)\s*[()]")
# Types of standard modules, whose variables just end.
_STANDARD = re.compile(r"mpi_\w+|c_ptr|c_funptr|ieee_\w+|omp_\w+")


class Names(Protocol):
    """The names of a program unit (scope.py)."""

    def parameter_types(self, procedure: str) -> list[tuple[Node | None, File]] | None: ...


@dataclass(frozen=True)
class _Specific:
    """A procedure that an operator stands for. ``body``: its interface, if that is given; ``bound``: it is bound to a type."""

    name: str
    names: Names
    file: File
    body: Node | None = None
    bound: bool = False

    def takes_structure(self) -> bool:
        """Whether an argument is certainly of a derived type, so that it is never called for numbers."""
        if self.bound:
            return True
        if self.body is not None:
            return _DERIVED.search(self.file.name(self.body)) is not None
        types = self.names.parameter_types(self.name) or ()
        return any(type_ is not None and _is_derived(type_, file) for type_, file in types)


@dataclass(eq=False)
class Overloads:
    """``specifics``: procedures by the operator, in the program model's spelling, that may call them. ``input_output``: whether
    some derived type is read or written by a procedure. ``final``: types that have a procedure for their variables' end;
    ``parts``: the types that a type extends or has components of."""

    specifics: dict[str, list[_Specific]] = field(default_factory=dict)
    input_output: bool = False
    final: set[str] = field(default_factory=set)
    parts: dict[str, set[str]] = field(default_factory=dict)
    _for_numbers: dict[str, bool] = field(default_factory=dict)

    def interface(self, names: Names, file: File, node: Node) -> None:
        """Takes in an INTERFACE with all in it."""
        statement = child_of(node, "interface_statement")
        head = file.name(statement) if statement is not None else ""
        self._note_input_output(head)
        for operator in _operators(head):
            found = self.specifics.setdefault(operator, [])
            for child in node.children:
                if child.type in ("subroutine", "function"):
                    found.append(_Specific("", names, file, child))
                elif child.type == "procedure_statement":
                    found += [_Specific(file.name(name), names, file) for name in children_of(child, "method_name")]

    def derived_type(self, names: Names, file: File, node: Node) -> None:
        """Takes in a derived type's definition."""
        head = child_of(node, "derived_type_statement")
        name = child_of(head, "type_name") if head is not None else None
        base = child_of(head, "base_type_specifier") if head is not None else None
        parent = child_of(base, "identifier", "type_name") if base is not None else None
        parts = self.parts.setdefault(file.name(name) if name is not None else "", set())
        parts |= {file.name(parent)} if parent is not None else set()
        for child in node.children:
            if child.type == "variable_declaration":
                type_ = child.child_by_field_name("type")
                found = _DERIVED.match(file.name(type_)) if type_ is not None else None
                parts |= {found[1] if found[1] == "class" else found[2]} if found is not None else set()
            elif child.type == "derived_type_procedures":
                self._bound(names, file, child)
                if child_of(child, "final_statement") is not None and name is not None:
                    self.final.add(file.name(name))

    def _bound(self, names: Names, file: File, node: Node) -> None:
        for statement in children_of(node, "generic_statement"):
            text = file.name(statement)
            self._note_input_output(text)
            for operator in _operators(text):
                self.specifics.setdefault(operator, []).append(_Specific("", names, file, bound=True))

    def _note_input_output(self, text: str) -> None:
        self.input_output = self.input_output or _INPUT_OUTPUT.search(text) is not None

    def may_call(self, operator: str, structures: bool) -> bool:
        """Whether an operation may call a procedure. ``structures``: whether an operand may be of a derived type."""
        return operator in self.specifics and (structures or self._is_for_numbers(operator))

    def _is_for_numbers(self, operator: str) -> bool:
        """Whether it may be so without an operand of a derived type: for characters, or arrays of different ranks."""
        if operator not in self._for_numbers:
            self._for_numbers[operator] = not all(s.takes_structure() for s in self.specifics[operator])
        return self._for_numbers[operator]

    def may_end(self, type_: str) -> bool:
        """Whether a procedure may be called when a variable of a type, as spelled, is finalised or assigned."""
        found = _DERIVED.match(type_.lower())
        if not self.final or found is None:
            return False
        if found[1] == "class":
            return True  # it may be of any type that extends it
        return found[2] in self._ending or not (found[2] in self.parts or _STANDARD.fullmatch(found[2]))

    @cached_property
    def _ending(self) -> frozenset[str]:
        """The types with FINAL, and all that are made of them. Asked for when all declarations have been read."""
        found = {"class", *self.final}
        while more := {name for name, parts in self.parts.items() if parts & found} - found:
            found |= more
        return frozenset(found)


def _operators(text: str) -> Iterator[str]:
    for match in _DEFINED.finditer(text):
        spelled = ASSIGNMENT if match[2] else match[1].replace(" ", "")
        yield OPERATORS.get(spelled, spelled)


def _is_derived(node: Node, file: File) -> bool:
    return node.type != "intrinsic_type" and file.name(node).startswith(("type", "class"))
