"""Random uniform pipelines, with all kinds of channels and costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from lapwing.schedule.pipeline import ENGINES, Channel, Pipeline

SECONDS = st.sampled_from([0.0, 0.25, 1.0, 3.0, 0.7])


@st.composite
def pipelines(draw: Callable, engines: tuple[str, ...] = ENGINES) -> Pipeline:
    grid = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda g: np.prod(g) <= 12)))
    steps, sweeps = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    engine = draw(st.sampled_from(engines))
    unit = np.eye(len(grid), dtype=int)
    offsets = [tuple(int(v) for v in row) for row in unit]
    flow = draw(st.lists(st.sampled_from([*offsets, tuple(int(v) for v in unit.sum(axis=0))]), unique=True, max_size=3))
    old = draw(st.lists(st.sampled_from([tuple(-v for v in o) for o in offsets]), unique=True, max_size=2))
    channels: list[Channel] = []
    mapping = draw(st.integers(0, len(grid)))  # the axis of the mapping loop; the last one: it is not cut
    for lag, offset in [(0, o) for o in flow] + [(1, o) for o in old]:
        crosses = mapping < len(grid) and offset[mapping] != 0
        shift = 1 - steps if crosses and lag == 0 else draw(st.sampled_from([0, -1])) if lag else 0
        held = draw(st.sampled_from([None, 0, 1])) if engine == "onesided" else None
        fewest = steps if lag or shift or held is not None else 1
        costs = {name: draw(SECONDS) for name in ("pack", "send", "receive", "unpack", "wire", "latency")}
        channels.append(Channel(offset, lag, shift, **costs, depth=fewest + draw(st.integers(0, 2)), held=held))
    shape = draw(st.sampled_from([(*grid, steps), (steps,), (*grid, 1)]))
    compute = np.random.default_rng(draw(st.integers(0, 99))).choice([0.5, 1.0, 2.0, 5.5], shape)
    node, apart = draw(st.sampled_from([1, 1, 2])), draw(st.booleans())
    overhead, sync, poll = draw(SECONDS), draw(SECONDS), draw(SECONDS)
    return Pipeline(grid, steps, sweeps, compute, tuple(channels), engine, overhead, sync, poll, node, apart)  # type: ignore[arg-type]
