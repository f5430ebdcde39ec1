"""Where ranks are started: the option ``--hosts``."""

from __future__ import annotations

from typing import Any

import click


class Hosts(click.Path):
    """A host file, or the word `lab`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "lab":
            from lapwing.launch.lab import find_lab

            return find_lab()
        return super().convert(value, param, ctx)
