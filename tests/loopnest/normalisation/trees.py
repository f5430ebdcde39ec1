"""Functions as syntax trees, for the tests of what normalising makes of them."""

from __future__ import annotations

import ast
import builtins
import textwrap

import numpy as np


def tree(body: str, parameters: str = "u, n") -> ast.FunctionDef:
    """A function of this body."""
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    node = ast.parse(f"def f({parameters}):\n{text}").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def numpy_meaning(name: str) -> object:
    """What a name stands for in a file that has imported NumPy."""
    return np if name == "np" else getattr(builtins, name, None)
