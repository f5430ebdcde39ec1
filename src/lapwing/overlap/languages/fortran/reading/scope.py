"""Names of one program unit: what each is, and the symbols they become.

Declarations are first gathered as :class:`Entity` (they may come in any order, and a module's before or after its users);
symbols are made when someone asks for one, and are the same object from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Dimension, Storage, Symbol
from lapwing.overlap.languages.fortran.parsing.file import File, identifiers_of
from lapwing.overlap.languages.fortran.reading.constants import KINDS
from lapwing.overlap.languages.fortran.reading.intrinsics import INTRINSICS, UNMISTAKABLE
from lapwing.overlap.languages.fortran.reading.overloads import Overloads
from lapwing.overlap.languages.fortran.reading.units import Unit
from lapwing.overlap.libraries import summaries
from lapwing.overlap.source.spans import Span


@dataclass(eq=False)
class Entity:
    """What the declarations say of one name; nodes are read when the symbol is made, in ``file``."""

    name: str
    scope: Scope
    file: File
    where: Span | None = None
    type: Node | None = None
    type_file: File | None = None
    shape: Node | None = None
    shape_file: File | None = None
    value: Node | None = None
    value_file: File | None = None
    length: Node | None = None
    parameter: bool = False
    saved: bool = False
    argument: bool = False
    pointer: bool = False
    allocatable: bool = False
    target: bool = False
    by_value: bool = False
    optional: bool = False
    volatile: bool = False
    external: bool = False
    intent: str | None = None
    contradictory: bool = False  # declared twice, in branches of an #if
    common: str | None = None
    overlay: str | None = None
    unknown: str | None = None  # the missing file or module it may come from
    bounds: tuple[Dimension, ...] | None = None  # given by an allocatable's only ALLOCATE
    symbol: Symbol | None = None
    busy: bool = False


@dataclass
class Use:
    """``only``: local name to the module's name; None where everything is taken. ``renamed``: likewise, beside everything."""

    module: str
    only: dict[str, str] | None
    renamed: dict[str, str]
    start: int = 0  # of the statement in its file


@dataclass(frozen=True)
class StatementFunction:
    """``head``: its name with its dummy arguments, in ``scope``."""

    scope: Scope
    head: Node
    body: Node

    def used(self) -> Iterator[Node]:
        """The names in its body that are no dummy arguments."""
        file = self.scope.unit.file
        dummies = {file.name(node) for node in self.head.children[1].children if node.type == "identifier"}
        return (node for node in identifiers_of(self.body) if file.name(node) not in dummies)


@dataclass(eq=False)
class Scope:
    """``world``: all scopes of the program. ``implicit``: a type for each first letter, None under IMPLICIT NONE; a missing
    letter has the default type. ``commons``: member names of each block, in order. ``generics``: names that stand for several
    procedures. ``missing``: include files whose declarations are not known. ``unread``: declarations the model has no word
    for."""

    unit: Unit
    host: Scope | None
    world: World
    entities: dict[str, Entity] = field(default_factory=dict)
    implicit: dict[str, tuple[File, Node]] | None = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    commons: dict[str, list[str]] = field(default_factory=dict)
    procedures: dict[str, Unit] = field(default_factory=dict)
    interfaces: set[str] = field(default_factory=set)
    generics: dict[str, list[str]] = field(default_factory=dict)
    statement_functions: dict[str, StatementFunction] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    result: str | None = None
    save_all: bool = False
    private: bool = False
    public_names: set[str] = field(default_factory=set)
    private_names: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    mpi_interface: str | None = None
    cache: dict[str, Entity | None] = field(default_factory=dict)
    procedure_cache: dict[str, Unit | None] = field(default_factory=dict)
    generic_cache: dict[str, bool] = field(default_factory=dict)
    unknown_cache: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    visible_cache: dict[str, Entity] | None = None

    def find(self, name: str) -> Entity | None:
        """The variable ``name`` is declared as: here, in a module used, or in the host."""
        if name in self.entities:
            return self.entities[name]
        if name not in self.cache:
            self.cache[name] = self._find_elsewhere(name)
        return self.cache[name]

    def _find_elsewhere(self, name: str) -> Entity | None:
        for use in self.uses:
            found = self._used(use, name)
            if found is not None:
                return found
        return self.host.find(name) if self.host is not None and name not in self.procedures else None

    def _used(self, use: Use, name: str) -> Entity | None:
        module = self.world.modules.get(use.module)
        original = original_name(use, name)
        if module is None or original is None or not module.exports(original):
            return None
        return module.find(original)

    def kind_name(self, name: str) -> str | None:
        """What a name is called in the standard module it is from, ``real64`` of ``use iso_fortran_env, only: wp => real64``;
        None if it is from none."""
        for use in self.uses:
            original = original_name(use, name)
            if original is None:
                continue
            module = self.world.modules.get(use.module)
            if module is not None and module.exports(original):
                found = module.kind_name(original)
                if found is not None:
                    return found
            elif module is None and use.module in _MODULES_WITH_KINDS and original in KINDS:
                return original
        return self.host.kind_name(name) if self.host is not None else None

    def implied(self, name: str, file: File, where: Span) -> Entity:
        """A new variable that no declaration names: implicitly typed, or from what could not be read."""
        entity = self.entities[name] = Entity(name, self, file, where)
        entity.unknown = next(iter(self.unknown_sources()), None)
        self.type_implicitly(entity)
        self.cache.clear()
        return entity

    def type_implicitly(self, entity: Entity) -> None:
        rules = self.implicit
        if entity.type is None and rules is not None and entity.name[0] in rules:
            entity.type_file, entity.type = rules[entity.name[0]]

    def statement_function(self, name: str) -> StatementFunction | None:
        """The statement function of this name, here or in the host."""
        if name in self.statement_functions:
            return self.statement_functions[name]
        hidden = self.host is None or name in self.entities or name in self.procedures
        return None if hidden or self.host is None else self.host.statement_function(name)

    def exports(self, name: str) -> bool:
        if name in self.private_names:
            return False
        return not self.private or name in self.public_names

    def procedure(self, name: str) -> Unit | None:
        """The procedure of the program that a call of ``name`` reaches, None if there is none or it is not certain."""
        found = self.procedure_here(name)
        if found is not None:
            return found
        entity = self.find(name)
        if entity is not None and (entity.argument or entity.pointer):
            return None
        return self.world.externals.get(name)

    def called(self, name: str) -> str | None:
        """What a call of ``name`` is of: a procedure of the program by its name, by its key where others have that name, too; one
        that is in no source, though others have its name or the language has one of that name, so that it is none of these. None:
        what a variable points to, or one of several."""
        entity = self.find(name)
        if entity is not None and (entity.argument or entity.pointer):
            return None
        unit = self.procedure(name)
        if unit is not None:
            return unit.name if self.world.namesakes[unit.name] == 1 else unit.key
        if self.is_generic(name):
            return None
        of_language = name in INTRINSICS or summaries.lookup(name, "fortran") is not None
        doubtful = self.is_external(name) or (bool(self.unknown_sources()) and name not in UNMISTAKABLE)
        hides = of_language and not name.startswith(_OF_LIBRARIES) and doubtful
        return f"external {name}" if hides or self.world.namesakes[name] > 0 else name

    def is_external(self, name: str) -> bool:
        """Whether declarations say that ``name`` is a procedure that is none of the language's own: EXTERNAL, an interface, or
        the ONLY of a module that is not known."""
        entity = self.find(name)
        return entity.external if entity is not None else self._has_interface(name)

    def _has_interface(self, name: str) -> bool:
        if name in self.interfaces:
            return True
        for use in self.uses:
            module = self.world.modules.get(use.module)
            original = original_name(use, name)
            if original is None:
                continue
            if module is None and use.only is not None and use.module not in KNOWN_MODULES:
                return True
            if module is not None and module.exports(original) and module._has_interface(original):
                return True
        return self.host is not None and self.host._has_interface(name)

    def names_procedure(self, name: str) -> bool:
        """Whether a name that no declaration gives a type is a procedure's by itself, not only where it is called."""
        return self.procedure_here(name) is not None or self.is_generic(name) or self._has_interface(name)

    def procedure_here(self, name: str) -> Unit | None:
        """Likewise, internal, module and used procedures only."""
        if name not in self.procedure_cache:
            self.procedure_cache[name] = self._procedure_here(name)
        return self.procedure_cache[name]

    def _procedure_here(self, name: str) -> Unit | None:
        if not self.is_generic(name):
            return self.specific_here(name)
        found = self.specifics(name)
        return found.pop() if len(found) == 1 and not _is_defined_elsewhere(name) else None

    def specific_here(self, name: str) -> Unit | None:
        """The procedure of this very name."""
        if name in self.procedures:
            return self.procedures[name]
        if name in self.entities and name != self.unit.name:
            return None  # its declaration hides others of that name
        for use in self.uses:
            module = self.world.modules.get(use.module)
            original = original_name(use, name)
            if module is not None and original is not None and module.exports(original):
                found = module.specific_here(original)
                if found is not None:
                    return found
        return self.host.specific_here(name) if self.host is not None else None

    def parameter_types(self, procedure: str) -> list[tuple[Node | None, File]] | None:
        """The types that the procedure of this very name declares for its parameters, each with the file it stands in; None where
        there is no such procedure."""
        unit = self.specific_here(procedure)
        if unit is None:
            return None
        scope = self.world.scopes[unit]
        entities = [scope.entities[name] for name in scope.parameters]
        return [(entity.type, entity.type_file or unit.file) for entity in entities]

    def specifics(self, name: str) -> set[Unit | None]:
        """What a generic name stands for: modules and hosts may each add to it. None: a procedure that is not known."""
        if name in self.procedures and name not in self.generics:
            return {self.procedures[name]}
        found = {self.specific_here(specific) for specific in self.generics.get(name, ())}
        for use in self.uses:
            module = self.world.modules.get(use.module)
            original = original_name(use, name)
            if module is not None and original is not None and module.exports(original):
                found |= module.specifics(original)
        return found | (self.host.specifics(name) if self.host is not None else set())

    def is_generic(self, name: str) -> bool:
        """Whether ``name`` stands for several procedures, or for one that is not named so."""
        if name not in self.generic_cache:
            self.generic_cache[name] = self._is_generic(name)
        return self.generic_cache[name]

    def _is_generic(self, name: str) -> bool:
        if name in self.generics:
            return True
        if name in self.procedures:
            return False
        for use in self.uses:
            module = self.world.modules.get(use.module)
            original = original_name(use, name)
            if module is not None and original is not None and module.is_generic(original):
                return True
        return self.host is not None and self.host.is_generic(name)

    def unknown_sources(self) -> tuple[str, ...]:
        """What may declare names that are not known here: missing include files and modules, declarations that were not read."""
        return self._unknown()[0]

    def unknown_declarations(self) -> tuple[str, ...]:
        """Why the variables visible here are not all known; missing modules do not count, most declare none."""
        return self._unknown()[1]

    def _unknown(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self.unknown_cache is None:
            sources = list(self.missing)
            reasons = [f"the include file {name} was not found" for name in self.missing]
            if self.unread:
                sources.append(f"declaration of {self.unit.name}")
            reasons += [f"a declaration in {self.unit.name} that cannot be read: {text}" for text in self.unread]
            for module, name in self._used_modules():
                if module is None and name not in KNOWN_MODULES:
                    sources.append(f"module {name}")
            for other in [module for module, _ in self._used_modules()] + [self.host]:
                if other is not None:
                    sources += other.unknown_sources()
                    reasons += other.unknown_declarations()
            self.unknown_cache = tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(reasons))
        return self.unknown_cache

    def _used_modules(self) -> Iterator[tuple[Scope | None, str]]:
        for use in self.uses:
            module = self.world.modules.get(use.module)
            if module is not self:
                yield module, use.module

    def mpi(self) -> str | None:
        """The MPI interface that is visible here: "mpi_f08", "mpi", "mpif.h" or None."""
        reached = [self]
        for scope in reached:
            others = [module for module, _ in scope._used_modules()] + [scope.host]
            reached += [other for other in others if other is not None and other not in reached]
        found = {scope.mpi_interface for scope in reached} | {use.module for scope in reached for use in scope.uses}
        return next((interface for interface in ("mpi_f08", "mpi", "mpif.h") if interface in found), None)

    def open_hosts(self) -> set[str]:
        """Prefixes of the scopes whose procedures can all be named here, but for private ones: no USE with ONLY is between."""
        found = {self.unit.prefix} | (self.host.open_hosts() if self.host is not None else set())
        for use in self.uses:
            module = self.world.modules.get(use.module)
            if module is not None and module is not self and use.only is None and not module.private:
                found |= module.open_hosts()
        return found

    def visible(self) -> dict[str, Entity]:
        """Every variable that can be named here."""
        if self.unit.kind != "module":
            return self._visible()
        if self.visible_cache is None:
            self.visible_cache = self._visible()
        return self.visible_cache

    def _visible(self) -> dict[str, Entity]:
        names: dict[str, Entity] = dict(self.host.visible()) if self.host is not None else {}
        for use in self.uses:
            module = self.world.modules.get(use.module)
            if module is None or module is self:
                continue
            exported = {name: entity for name, entity in module.visible().items() if module.exports(name)}
            if use.only is not None:
                names.update({local: exported[name] for local, name in use.only.items() if name in exported})
                continue
            hidden = set(use.renamed.values())
            names.update({name: entity for name, entity in exported.items() if name not in hidden})
            names.update({local: exported[name] for local, name in use.renamed.items() if name in exported})
        names.update(self.entities)
        return names


def _is_defined_elsewhere(name: str) -> bool:
    """Whether a generic of this name leaves to an intrinsic, or to MPI, what it does not take itself."""
    return name in INTRINSICS or summaries.lookup(name, "fortran") is not None or mpi.is_mpi_name(name)


def original_name(use: Use, name: str) -> str | None:
    """What a name is called in the module used; None if the USE does not bring it."""
    if use.only is not None:
        return use.only.get(name)
    if name in use.renamed:
        return use.renamed[name]
    return None if name in use.renamed.values() else name


_OF_LIBRARIES = ("mpi_", "pmpi_", "omp_")  # where no module is used, they are declared EXTERNAL
_MODULES_WITH_KINDS = {"iso_c_binding", "iso_fortran_env"}
KNOWN_MODULES = {
    "mpi",
    "mpi_f08",
    "iso_c_binding",
    "iso_fortran_env",
    "ieee_arithmetic",
    "ieee_exceptions",
    "ieee_features",
    "omp_lib",
    "openacc",
}


@dataclass(eq=False)
class World:
    """The whole program: modules by name, external procedures by name, every scope of the program."""

    modules: dict[str, Scope] = field(default_factory=dict)
    externals: dict[str, Unit] = field(default_factory=dict)
    scopes: dict[Unit, Scope] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)  # of derived types: "array", "scalar", "procedure", by name
    field_types: dict[str, str] = field(default_factory=dict)  # their types' bases likewise
    layouts: dict[str, bool] = field(default_factory=dict)  # whether a COMMON block is laid out alike everywhere
    overloads: Overloads = field(default_factory=Overloads)
    overlaid: set[str] = field(default_factory=set)  # COMMON blocks with EQUIVALENCE in them
    opens_standard_units: bool = False  # OPEN may make files of units 0, 5 and 6

    @cached_property
    def namesakes(self) -> Counter[str]:
        """How many procedures of the program have a name."""
        return Counter(unit.name for unit in self.scopes if unit.kind in ("function", "subroutine"))


def storage_of(entity: Entity) -> Storage:
    if entity.parameter:
        return Storage.CONSTANT
    if entity.argument:
        return Storage.ARGUMENT
    if entity.common is not None or entity.unknown is not None or entity.scope.unit.kind == "module":
        return Storage.GLOBAL
    if entity.overlay is not None and entity.overlay.startswith("common "):
        return Storage.GLOBAL
    if entity.saved or entity.value is not None or entity.scope.save_all:
        return Storage.SAVED
    return Storage.LOCAL
