"""What an exported program leaves: arrays and numbers that its function returns, and arrays passed that it has changed."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from lapwing.export.driver.code import Give
from lapwing.export.driver.operations import End, Printed, Written
from lapwing.export.driver.partial_evaluation.evaluation import Evaluation
from lapwing.export.driver.partial_evaluation.refusals import refuse
from lapwing.export.driver.partial_evaluation.state import Path
from lapwing.export.driver.residency import Residency
from lapwing.export.driver.values import Known, Register, Several, Value, View


class Results:
    """Of one program. inputs: the arrays passed."""

    def __init__(self, evaluation: Evaluation, inputs: Sequence[str]) -> None:
        self._evaluation, self._inputs = evaluation, inputs
        self._source, self._memories = evaluation.source, evaluation.memories

    def end(self, give: Give, path: Path) -> End:
        """What is left by a way through the driver that ends here."""
        arrays: list[Written] = []
        numbers: list[Printed] = []
        if give.value is not None:
            value = self._evaluation.value(give.value, path, frozenset(path.names))
            self._returned("returned", "returned", value, give.value, arrays, numbers, path)
        for name in self._inputs:
            as_it_was = Residency.new(("file", name), self._memories.ranks)
            if path.arrays.get(name, as_it_was) != as_it_was:
                memory = self._memories.by_name[name]
                arrays.append(self._output(name, View.of(name, memory.dtype, memory.shape), path))
        return End(tuple(arrays), tuple(numbers))

    def _returned(
        self,
        name: str,
        file: str,
        value: Value,
        node: ast.expr,
        arrays: list[Written],
        numbers: list[Printed],
        path: Path,
    ) -> None:
        match value:
            case Known(value=None):
                pass
            case Known(value=tuple() | list() as items):
                for k, one in enumerate(items):
                    self._returned(f"{name}[{k}]", f"{file}_{k}", Known(one), node, arrays, numbers, path)
            case Known(value=number):
                text = str(number.item() if isinstance(number, np.generic) else number)
                numbers.append(Printed(name, text))
            case Several(items=items):
                for k, item in enumerate(items):
                    self._returned(f"{name}[{k}]", f"{file}_{k}", item, node, arrays, numbers, path)
            case Register():
                numbers.append(Printed(name, "", value.name, value.type.dtype))
            case View():
                if not value.is_whole:
                    refuse(self._source, node, f"{ast.unparse(node)} returns a part of an array", "Return the array")
                arrays.append(self._output(file, value, path))

    def _output(self, name: str, view: View, path: Path) -> Written:
        residency = self._memories.residency(path, view.memory)
        owned = residency.owned()
        self._memories.keep(view.memory, owned)
        return Written(name, view, residency.origin, owned)
