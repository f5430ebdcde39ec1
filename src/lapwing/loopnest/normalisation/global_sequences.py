"""Global tuples and lists of numbers of which loops take elements, as variables of the function: regions take them for arrays.

before                               after
OFFSETS = (0, 1, 0, -1)              offsets = OFFSETS
for j in range(1, m):                for j in range(1, m):
    s += u[j + OFFSETS[j % 4]]           s += u[j + offsets[j % 4]]
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from lapwing.loopnest.normalisation.names import all_names, fresh_name, own_names
from lapwing.syntax_places import placed


def with_local_sequences(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> ast.FunctionDef:
    """The function with such variables; the same where it needs none."""
    own = own_names(tree)
    names = [name for name in dict.fromkeys(_looked_up(tree)) if name not in own and _is_of_numbers(meaning(name))]
    if not names:
        return tree
    taken = all_names(tree)
    variables = {name: fresh_name(name.lower(), taken) for name in names}
    found = copy.deepcopy(tree)
    for node in ast.walk(found):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in variables:
            node.value.id = variables[node.value.id]
    first = found.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    found.body[is_text:is_text] = [
        placed(first, ast.Assign([ast.Name(variable, ast.Store())], ast.Name(name, ast.Load())))
        for name, variable in variables.items()
    ]
    return found


def _looked_up(tree: ast.FunctionDef) -> Iterator[str]:
    """The names of which elements are taken in loops, by indices that are no numbers."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    for node in (node for loop in loops for node in ast.walk(loop)):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=index, ctx=ast.Load()):
                if any(isinstance(part, ast.Name) for part in ast.walk(index)):
                    yield name


def _is_of_numbers(value: object) -> bool:
    if not isinstance(value, tuple | list) or type(value) not in (tuple, list):
        return False
    return bool(value) and all(type(part) in (bool, int, float, complex) or _is_of_numbers(part) for part in value)
