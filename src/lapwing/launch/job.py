"""One command line of `lapwing run` on its way to the ranks, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # the command hands a job on and needs nothing of what runs it
    from lapwing.schedule.pipeline import Engine

# What becomes known on the way, as (kind, value), values being fit for JSON: "plan" a text; "progress" a label and the
# fraction done or None; "stops" what the plain loop raises; "metrics" a text on where a run's time went.
Emit = Callable[[str, Any], None]


@dataclass(frozen=True)
class Job:
    """One command line of `lapwing run`, as the ranks get it. No engines means the nest's own choice."""

    target: str
    settings: tuple[tuple[str, str], ...]
    engines: tuple[Engine, ...]
    tile: int | None
    grid: tuple[int, ...] | Literal["all"] | None
    repeat: int
    check: bool
    timeline: str | None = None  # a file to write, .html or .json
    helper_cpu: str = "auto"  # as the user wrote it
    memory: int | None = None  # bytes of all ranks of a node together
    pass_sweeps: int | None = None
    ring: int | None = None
    scratch: str | None = None  # the folder for arrays that do not fit
    resume: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        fields = json.loads(text)
        grid = fields["grid"]
        return Job(
            **{
                **fields,
                "settings": tuple((key, value) for key, value in fields["settings"]),
                "engines": tuple(fields["engines"]),
                "grid": tuple(grid) if isinstance(grid, list) else grid,
            }
        )


@dataclass(frozen=True)
class Report:
    """What a session ends with: the JSON document of ``--json``, and a text for every difference found."""

    document: dict[str, Any]
    differences: tuple[str, ...]


def stopped_text(error: str, raises: str) -> str:
    """The error of a run where the plain loop stops as well."""
    if raises.removeprefix("stops: ") in error:
        return f"{error} (the plain loop stops there, too)"
    return f"{error} (the plain loop, too, {raises})"
