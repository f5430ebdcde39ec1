"""Declarations: from a unit's specification statements to the entities of its scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from lapwing.overlap.languages.fortran.parsing.file import File, child_of, children_of, identifiers_of
from lapwing.overlap.languages.fortran.reading.scope import Entity, Scope, Use
from lapwing.overlap.languages.fortran.reading.units import Specification

BLANK_COMMON = "//"
# Declarations that change nothing the model knows of.
# A NAMELIST's name is not known then where it is used.
_HARMLESS = {"import_statement", "bind_statement", "generic_statement", "procedure_statement", "namelist_statement"}
_INTENT = re.compile(r"intent\s*\(\s*(in\s*out|in|out)\s*\)")
_FLAGS = {
    "parameter": "parameter",
    "save": "saved",
    "pointer": "pointer",
    "allocatable": "allocatable",
    "target": "target",
    "value": "by_value",
    "optional": "optional",
    "volatile": "volatile",
    "external": "external",
    "intrinsic": "external",
}


def declare(scope: Scope) -> None:
    """Reads everything ``scope``'s unit declares into it."""
    reader = DeclarationReader(scope)
    reader.header()
    for specification in scope.unit.specifications:
        reader.read(specification)
    reader.finish()


class DeclarationReader:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.file = scope.unit.file
        self.equivalences: list[list[str]] = []
        self.readers: dict[str, Callable[[Node], None]] = {
            "variable_declaration": self.variables,
            "variable_modification": self.modification,
            "parameter_statement": self.parameters,
            "common_statement": self.common,
            "equivalence_statement": self.equivalence,
            "data_statement": self.data,
            "save_statement": self.save,
            "implicit_statement": self.implicit,
            "use_statement": self.use,
            "interface": self.interface,
            "derived_type_definition": self.derived_type,
            "private_statement": self.access,
            "public_statement": self.access,
            "enum": self.enum,
        }

    def read(self, specification: Specification) -> None:
        self.file = specification.file
        reader = self.readers.get(specification.node.type)
        if reader is not None:
            reader(specification.node)
        elif specification.node.type not in _HARMLESS:
            self.scope.unread.append(specification.node.type.replace("_", " "))

    def entity(self, name: str, node: Node | None = None) -> Entity:
        entity = self.scope.entities.get(name)
        if entity is None:
            entity = self.scope.entities[name] = Entity(name, self.scope, self.file)
        if node is not None:
            entity.where = self.file.span(node)
        return entity

    # ---- the unit's first statement and what follows from all declarations --------------------------------------------------

    def header(self) -> None:
        unit = self.scope.unit
        if self.scope.host is not None:
            self.scope.implicit = self.scope.host.implicit
        header = unit.header
        if header is None:
            return
        parameters = header.child_by_field_name("parameters")
        if parameters is None:
            parameters = child_of(header, "parameters")
        for node in parameters.children if parameters is not None else ():
            if node.type == "identifier":
                entity = self.entity(self.file.name(node), node)
                entity.argument = True
                self.scope.parameters.append(entity.name)
        if unit.kind == "function":
            self.function_result(header)

    def function_result(self, header: Node) -> None:
        clause = child_of(header, "function_result")
        node = child_of(clause, "identifier") if clause is not None else child_of(header, "name")
        if node is None:
            return
        entity = self.entity(self.file.name(node), node)
        entity.type = header.child_by_field_name("type")
        self.scope.result = entity.name

    def finish(self) -> None:
        for entity in self.scope.entities.values():
            if entity.scope is self.scope:
                self.scope.type_implicitly(entity)
        self.overlay()

    def overlay(self) -> None:
        """EQUIVALENCE groups that share a member are one; with a COMMON member the block itself is laid over. What outlasts a
        call keeps all of its group."""
        groups: list[set[str]] = []
        for names in self.equivalences:
            joined = set(names).union(*(group for group in groups if group & set(names)))
            groups = [group for group in groups if not group & joined] + [joined]
        for group in groups:
            blocks = {self.entity(name).common for name in group} - {None}
            label = f"{self.scope.unit.prefix} equivalence {min(group)}"
            if blocks:
                label = f"common {min(block for block in blocks if block is not None)}"
                self.scope.world.overlaid.update(block for block in blocks if block is not None)
            saved = any(self.entity(name).saved or self.entity(name).value is not None for name in group)
            for name in group:
                self.entity(name).overlay = label
                self.entity(name).saved |= saved

    # ---- types and attributes -----------------------------------------------------------------------------------------------

    def variables(self, node: Node) -> None:
        type_node = node.child_by_field_name("type")
        attributes = node.children_by_field_name("attribute")
        for declarator in node.children_by_field_name("declarator"):
            entity = self.declarator(declarator)
            if entity is None:
                continue
            entity.contradictory = entity.contradictory or entity.type is not None
            entity.type, entity.type_file = type_node, self.file
            if type_node is not None and type_node.type == "procedure":
                entity.external = True
                entity.pointer = "pointer" in self.file.name(type_node)
            for attribute in attributes:
                self.attribute(entity, attribute)

    def declarator(self, node: Node) -> Entity | None:
        """A name with its own bounds, length and initial value."""
        if node.type in ("init_declarator", "pointer_init_declarator", "data_declarator"):
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            entity = self.declarator(left) if left is not None else None
            if entity is not None:
                entity.contradictory = entity.contradictory or entity.value is not None
                entity.value, entity.value_file = right, self.file
            return entity
        name = node if node.type in ("identifier", "method_name") else child_of(node, "identifier")
        if name is None:
            return None
        entity = self.entity(self.file.name(name), name)
        if node.type == "coarray_declarator":
            entity.volatile = True
        size = child_of(node, "size")
        if size is not None:
            entity.contradictory = entity.contradictory or entity.shape is not None
            entity.shape, entity.shape_file = size, self.file
        length = child_of(node, "character_length")
        if length is not None:
            entity.length = length
        return entity

    def attribute(self, entity: Entity, node: Node) -> None:
        text = self.file.name(node)
        word = re.match(r"[a-z]+", text)
        name = word.group() if word else ""
        if name == "dimension" and entity.shape is None:
            entity.shape, entity.shape_file = child_of(node, "argument_list", "size"), self.file
        elif name == "intent":
            found = _INTENT.match(text)
            entity.intent = found.group(1).replace(" ", "") if found else None
        elif name in _FLAGS:
            setattr(entity, _FLAGS[name], True)
        elif name == "private":
            self.scope.private_names.add(entity.name)
        elif name == "public":
            self.scope.public_names.add(entity.name)

    def modification(self, node: Node) -> None:
        """``dimension a(3)``, ``external f``, ``target b(10)``, …"""
        qualifier = child_of(node, "type_qualifier")
        for declarator in node.children_by_field_name("declarator"):
            name = declarator if declarator.type == "identifier" else child_of(declarator, "identifier")
            fresh = name is not None and self.file.name(name) not in self.scope.entities
            entity = self.declarator(declarator)
            if entity is not None and qualifier is not None:
                self.attribute(entity, qualifier)
                if fresh and entity.external and self.file.name(qualifier).startswith("intrinsic"):
                    del self.scope.entities[entity.name]

    def parameters(self, node: Node) -> None:
        for assignment in children_of(node, "parameter_assignment"):
            parts = [child for child in assignment.children if child.is_named]
            if len(parts) == 2:
                entity = self.entity(self.file.name(parts[0]))
                entity.contradictory = entity.contradictory or entity.value is not None
                entity.where = entity.where or self.file.span(parts[0])
                entity.parameter = True
                entity.value, entity.value_file = parts[1], self.file

    def enum(self, node: Node) -> None:
        for name in identifiers_of(node):
            entity = self.entity(self.file.name(name), name)
            entity.parameter = True

    # ---- storage ------------------------------------------------------------------------------------------------------------

    def common(self, node: Node) -> None:
        block = BLANK_COMMON
        for child in _flat_groups(node):
            if child.type == "name":
                block = self.file.name(child).strip() or BLANK_COMMON
            elif child.type in ("identifier", "sized_declarator"):
                entity = self.declarator(child)
                if entity is not None and entity.common is None:
                    entity.common = block
                    self.scope.commons.setdefault(block, []).append(entity.name)

    def equivalence(self, node: Node) -> None:
        for group in children_of(node, "equivalence_set"):
            nodes = [child for child in group.children if child.is_named]
            self.equivalences.append([self.file.name(next(identifiers_of(child))) for child in nodes])
        for names in self.equivalences:
            for name in names:
                self.entity(name)

    def data(self, node: Node) -> None:
        for group in children_of(node, "data_set"):
            for child in group.children:
                if child.type == "data_value":
                    continue
                for name in _initialised(child):
                    self.entity(self.file.name(name)).saved = True

    def save(self, node: Node) -> None:
        names = [child for child in node.children if child.type == "identifier"]
        for name in names:
            self.entity(self.file.name(name)).saved = True
        if not names and child_of(node, "common_block") is None:
            self.scope.save_all = True

    def implicit(self, node: Node) -> None:
        if child_of(node, "none") is not None:
            self.scope.implicit = None
            return
        rules = dict(self.scope.implicit or {})
        current: Node | None = None
        for child in node.children:
            if child.type in ("intrinsic_type", "derived_type"):
                current = child
            elif child.type == "implicit_range" and current is not None:
                first, _, last = self.file.name(child).replace(" ", "").partition("-")
                for code in range(ord(first), ord(last or first) + 1):
                    rules[chr(code)] = (self.file, current)
        self.scope.implicit = rules

    # ---- modules, interfaces, derived types ---------------------------------------------------------------------------------

    def use(self, node: Node) -> None:
        module = child_of(node, "module_name")
        if module is None:
            return
        items = child_of(node, "included_items")
        only = None if items is None else dict(self.aliases(items))
        self.scope.uses.append(Use(self.file.name(module), only, dict(self.aliases(node)), self.file.start(node)))

    def aliases(self, node: Node) -> Iterator[tuple[str, str]]:
        for child in node.children:
            if child.type == "use_alias":
                local, original = child_of(child, "local_name"), child_of(child, "identifier")
                if local is not None and original is not None:
                    yield self.file.name(local), self.file.name(original)
            elif child.type == "identifier":
                yield self.file.name(child), self.file.name(child)

    def interface(self, node: Node) -> None:
        statement = child_of(node, "interface_statement")
        generic = child_of(statement, "name") if statement is not None else None
        self.scope.world.overloads.interface(self.scope, self.file, node)
        specific: list[str] = []
        for child in node.children:
            if child.type in ("subroutine", "function"):
                name = child_of(child.children[0], "name")
                specific += [self.file.name(name)] if name is not None else []
                self.scope.interfaces.update(specific)
            elif child.type == "procedure_statement":
                specific += [self.file.name(name) for name in children_of(child, "method_name")]
        if generic is not None:
            self.scope.generics.setdefault(self.file.name(generic), []).extend(specific)

    def derived_type(self, node: Node) -> None:
        self.scope.world.overloads.derived_type(self.scope, self.file, node)
        fields, types = self.scope.world.fields, self.scope.world.field_types
        for child in node.children:
            if child.type == "variable_declaration":
                type_ = child.child_by_field_name("type")
                base = _base_of(type_, self.file) if type_ is not None else "unknown"
                shaped = any(
                    self.file.name(attribute).startswith("dimension")
                    for attribute in child.children_by_field_name("attribute")
                )
                for declarator in child.children_by_field_name("declarator"):
                    name = next(identifiers_of(declarator), None)
                    if name is not None:
                        array = shaped or any(part.type == "size" for part in _parts(declarator))
                        _note_field(fields, self.file.name(name), "array" if array else "scalar")
                        _note_field(types, self.file.name(name), base)
            elif child.type == "derived_type_procedures":
                for method in (name for statement in child.children for name in children_of(statement, "method_name")):
                    _note_field(fields, self.file.name(method), "procedure")

    def access(self, node: Node) -> None:
        names = {self.file.name(name) for name in children_of(node, "identifier")}
        private = node.type == "private_statement"
        if names:
            (self.scope.private_names if private else self.scope.public_names).update(names)
        else:
            self.scope.private = private


def _note_field(fields: dict[str, str], name: str, kind: str) -> None:
    """Types may have components of the same name: what they are not all is not known."""
    fields[name] = kind if fields.get(name, kind) == kind else "unknown"


def _base_of(type_: Node, file: File) -> str:
    """A component's type: "character", "number" for other basic ones, "struct" or "unknown"."""
    if type_.type == "intrinsic_type":
        return "character" if file.name(type_).startswith("character") else "number"
    return "struct" if type_.type == "derived_type" else "unknown"


def _parts(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _parts(child)


def _flat_groups(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type == "variable_group":
            yield from child.children
        else:
            yield child


def _initialised(node: Node) -> Iterator[Node]:
    """The variables of a DATA statement's list, without indices and components."""
    if node.type == "identifier":
        yield node
    elif node.type in ("call_expression", "derived_type_member_expression"):
        yield from _initialised(node.children[0])
    elif node.type == "implied_do_loop_expression":
        for child in node.children:
            if child.type != "loop_control_expression":
                yield from _initialised(child)
