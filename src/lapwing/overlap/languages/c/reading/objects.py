"""What C++ does implicitly with objects: destructors, and variables initialised when control first passes.

libclang has no nodes for it, so it has to be known where such objects are made.
"""

from __future__ import annotations

import re

from lapwing.overlap.languages.c.reading.libclang import ClangType, Cursor, Kind, TypeKind, Unit, string

_CLEANUP = re.compile(r"\bcleanup\(")
_SECOND_NAME = re.compile(r"\b(?:alias|weakref)\(")
_DYNAMIC = 1  # of the kinds of thread-local variables, the one whose initialiser may be more than a constant


class Objects:
    """The classes and variables of one translation unit."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._clang = unit._clang
        self._destroyed: dict[str, bool] = {}

    def is_plain(self, clang_type: ClangType) -> bool:
        """Whether an object, or each element of an array, is one that C has, too."""
        element = self._element(clang_type)
        return element.kind != TypeKind.RECORD or bool(self._clang.clang_isPODType(element))

    def has_destructor(self, clang_type: ClangType) -> bool:
        """Whether code runs, or may run, when an object of this type is destroyed."""
        if self.is_plain(clang_type):
            return False
        element = self._element(clang_type)
        name = string(self._clang.clang_getTypeSpelling(element))
        if name not in self._destroyed:
            self._destroyed[name] = self._runs_destructor(element)
        return self._destroyed[name]

    def call_destroys(self, function: Cursor) -> bool:
        """Whether a call of the function destroys objects with destructors: its result or its arguments."""
        result: ClangType = self._clang.clang_getCursorResultType(function)
        return any(map(self.has_destructor, [result, *self.argument_types(function)]))

    def argument_types(self, function: Cursor) -> list[ClangType]:
        clang_type = self._clang.clang_getCursorType(function)
        count = self._clang.clang_getNumArgTypes(clang_type)
        return [self._clang.clang_getArgType(clang_type, number) for number in range(count)]

    def made_late(self, variable: Cursor) -> bool:
        """Whether a ``thread_local`` variable outside of functions may be made where a thread first uses it."""
        if self._clang.clang_getCursorTLSKind(variable) != _DYNAMIC:
            return False
        definition = self._clang.clang_getCursorDefinition(variable)
        if definition.kind != Kind.VAR_DECL or not self.is_plain(self._clang.clang_getCursorType(definition)):
            return True
        return self._unit.initial(definition) is not None and self._unit.evaluate(definition) is None

    def has_cleanup(self, variable: Cursor) -> bool:
        """Whether a function is called when control leaves the variable's block (GNU's attribute)."""
        return self._has_attribute(variable) and bool(_CLEANUP.search(self._unit.declaration(variable)))

    def has_second_name(self, declaration: Cursor) -> bool:
        """Whether what is declared may be what another name declares, too (GNU's attributes and names for the assembler)."""
        labels = [child for child in self._unit.children(declaration) if child.kind == Kind.ASM_LABEL]
        if any(self._unit.name(label) != self._unit.name(declaration) for label in labels):
            return True
        return self._has_attribute(declaration) and bool(_SECOND_NAME.search(self._unit.declaration(declaration)))

    def _has_attribute(self, declaration: Cursor) -> bool:
        return any(child.kind == Kind.UNEXPOSED_ATTRIBUTE for child in self._unit.children(declaration))

    def _element(self, clang_type: ClangType) -> ClangType:
        canonical: ClangType = self._clang.clang_getCanonicalType(clang_type)
        while canonical.kind in TypeKind.ARRAYS:
            canonical = self._clang.clang_getCanonicalType(self._clang.clang_getArrayElementType(canonical))
        return canonical

    def _runs_destructor(self, clang_type: ClangType) -> bool:
        declaration = self._clang.clang_getTypeDeclaration(clang_type)
        template = self._clang.clang_getSpecializedCursorTemplate(declaration)
        members = self._unit.children(self._clang.clang_getCursorDefinition(declaration))
        if template.kind in _TEMPLATES and not members:  # an instance has none of its own
            members = self._unit.children(self._clang.clang_getCursorDefinition(template))
        if not members:
            return True
        destructors = [member for member in members if member.kind == Kind.DESTRUCTOR]
        if any(not self._clang.clang_CXXMethod_isDefaulted(destructor) for destructor in destructors):
            return True
        bases = [self._clang.clang_getCursorType(base) for base in members if base.kind == Kind.BASE_SPECIFIER]
        if any(self._element(base).kind != TypeKind.RECORD for base in bases):
            return True  # a base that the template's arguments decide
        fields = [self._clang.clang_getCursorType(field) for field in self._unit.fields(clang_type)]
        if not fields and any(member.kind == Kind.FIELD_DECL for member in members):
            return True  # an instance of a template that nothing has needed yet
        return any(map(self.has_destructor, [*bases, *fields]))


_TEMPLATES = frozenset((31, 32))  # of classes, whole and partial
