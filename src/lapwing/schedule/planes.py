"""The exact recurrence, plane by plane: in the (max, +) algebra, what a step needs is a maximum and what it costs a sum.

All steps of a plane (order.py) are worked out at once. Sweeps are worked out one after the other; nothing in a sweep
depends on a later one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lapwing.schedule.dataflow import ChannelTables, Indices, compute_by_rank, tables_of
from lapwing.schedule.order import order_of
from lapwing.schedule.pipeline import Pipeline, Seconds

# Rows before the first node and a column past the last rank hold 0, when the run began: what is not waited for.
_PAD = 2


class Planes:
    """All times of a pipeline. Times are (nodes + 2, ranks + 1): row 2 + n is node n, numbered over all sweeps.

    begin: all messages are there; computed: the computation is over; taken: the buffers of the step's messages are free
    again; end: the computing CPU is done with the step; passed: its messages were handed over (later than ``end`` with a
    helper). link: (ranks + 1,), when the last message left; opened: when the old values before a sweep were exchanged.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.tables = tables_of(pipeline)
        self.compute = compute_by_rank(pipeline)
        shape = (pipeline.total_steps + _PAD, pipeline.ranks + 1)
        self.begin, self.computed, self.end = (np.zeros(shape) for _ in range(3))
        helper = pipeline.engine == "helper"
        self.taken = np.zeros(shape)
        self.passed = np.zeros(shape) if helper else self.end
        self.prepared = np.zeros(shape) if helper else self.begin
        self.arrival = [np.zeros(shape) for _ in self.tables]
        self.link = np.zeros(pipeline.ranks + 1)
        self.opened = np.zeros(pipeline.ranks + 1)
        self.sweep = 0
        self._first = _PAD
        self._step = {
            "blocking": self._blocking_step,
            "overlap": self._inline_step,
            "onesided": self._inline_step,
            "helper": self._apart_step if pipeline.apart else self._helped_step,
        }[pipeline.engine]

    def run(self) -> Planes:
        """Work out all sweeps."""
        pipeline = self.pipeline
        order = order_of(pipeline, self.tables)
        levels = order.levels(pipeline.grid)
        planes = _plane_members(levels, order.stretch, pipeline.steps)
        for self.sweep in range(pipeline.sweeps):
            self._first = _PAD + self.sweep * pipeline.steps
            if self.sweep and pipeline.engine == "blocking":
                self._exchange_old_values()
            for ranks, steps in planes:
                self._step(ranks, steps)
        return self

    # -- what the engines share --------------------------------------------------------------------------------------

    def _needed(self, table: ChannelTables) -> bool:
        return self.sweep >= table.channel.lag

    def _made(self, table: ChannelTables) -> bool:
        return self.sweep + table.channel.lag < self.pipeline.sweeps

    def _arrived(self, ready: Seconds, ranks: Indices, steps: Indices) -> None:
        """Raise ``ready`` to when the steps' messages are all there."""
        for table, arrival in zip(self.tables, self.arrival, strict=True):
            if self._needed(table) and not self._exchanged(table):
                rows = self._first - table.channel.lag * self.pipeline.steps + table.need[steps]
                came = arrival[np.maximum(rows, 0), table.sender[ranks]]
                np.maximum(ready, np.where(table.count[steps] > 0, came, 0.0), out=ready)

    def _exchanged(self, table: ChannelTables) -> bool:
        """Whether the messages travel between sweeps, all in one."""
        return self.pipeline.engine == "blocking" and table.channel.lag > 0

    def _taking(self, ranks: Indices, steps: Indices, receive: bool = True, unpack: bool = True) -> Seconds:
        seconds = np.zeros(len(ranks))
        for table in self.tables:
            if self._needed(table):
                cost = table.channel.receive * (receive and not self._exchanged(table)) + table.channel.unpack * unpack
                seconds += cost * table.receives[ranks] * table.count[steps]
        return seconds

    def _packing(self, ranks: Indices) -> Seconds:
        seconds = np.zeros(len(ranks))
        for table in self.tables:
            if self._made(table):
                seconds += table.channel.pack * table.sends[ranks]
        return seconds

    def _roomy(self, ready: Seconds, ranks: Indices, steps: Indices) -> None:
        """Raise ``ready`` to when every channel has room for what the steps make."""
        for table in self.tables:
            if self._made(table):
                rows = self._first + table.room[steps]
                old = self._first - _PAD + steps >= table.channel.depth
                freed = self.taken if table.channel.held is None else self.computed
                room = freed[np.where(old, rows, 0), table.receiver[ranks]]
                np.maximum(ready, room, out=ready)

    def _send(self, time: Seconds, ranks: Indices, rows: Indices) -> None:
        """Add what sending costs the CPU to ``time``, and put the messages on their way."""
        for table, arrival in zip(self.tables, self.arrival, strict=True):
            if self._made(table):
                time += table.channel.send * table.sends[ranks]
                link = np.maximum(self.link[ranks], time) + table.wire[ranks]
                self.link[ranks] = np.where(table.sends[ranks] > 0, link, self.link[ranks])
                arrival[rows, ranks] = link + table.channel.latency + self.pipeline.poll

    def _computing(self, ranks: Indices, steps: Indices) -> Seconds:
        return self.pipeline.step_overhead + self.compute[ranks, steps]

    # -- one plane of each engine ------------------------------------------------------------------------------------

    def _inline_step(self, ranks: Indices, steps: Indices) -> None:
        rows = self._first + steps
        time = self.end[rows - 1, ranks]
        self._arrived(time, ranks, steps)
        self.begin[rows, ranks] = time
        time = time + self._taking(ranks, steps)
        self.taken[rows, ranks] = time
        time += self._computing(ranks, steps)
        self.computed[rows, ranks] = time
        self._roomy(time, ranks, steps)
        time += self._packing(ranks)
        self._send(time, ranks, rows)
        self.end[rows, ranks] = time

    def _blocking_step(self, ranks: Indices, steps: Indices) -> None:
        rows = self._first + steps
        time = self._after(rows - 1, steps, ranks)
        self._arrived(time, ranks, steps)
        self.begin[rows, ranks] = time
        time = time + self._taking(ranks, steps)
        self.taken[rows, ranks] = time
        time += self._computing(ranks, steps)
        self.computed[rows, ranks] = time
        time += self._packing(ranks)
        for table, arrival in zip(self.tables, self.arrival, strict=True):
            if table.channel.lag:
                continue
            taking = table.posted[steps]
            posted = self._after(self._first + taking - 1, taking, table.receiver[ranks])
            sends = table.sends[ranks]
            time = np.maximum(time + table.channel.send * sends, posted)
            time += table.wire[ranks] + self.pipeline.synchronisation * sends
            arrival[rows, ranks] = time + table.channel.latency
        self.end[rows, ranks] = time

    def _after(self, rows: Indices, steps: Indices, ranks: Indices) -> Seconds:
        """When the step before was over: of a sweep's first step, when the old values were exchanged."""
        return np.where(steps > 0, self.end[rows, ranks], self.opened[ranks])

    def _exchange_old_values(self) -> None:
        """All messages of a sweep travel as one, when both ranks have ended it (blocking.hpp)."""
        pipeline, before = self.pipeline, self.end[self._first - 1].copy()
        before[-1] = 0.0
        old = [table for table in self.tables if table.channel.lag]
        cost = sum((t.sends * t.channel.send + t.receives * t.channel.receive for t in old), np.zeros(pipeline.ranks))
        ready = before.copy()
        ready[:-1] += cost
        done, link = ready.copy(), ready.copy()
        for table in old:
            sent = np.flatnonzero(table.sends)
            there = table.receiver[sent]
            begin = np.maximum(link[sent], ready[there])
            link[sent] = begin + pipeline.steps * table.wire[sent] + pipeline.synchronisation
            done[sent] = np.maximum(done[sent], link[sent])
            done[there] = np.maximum(done[there], link[sent] + table.channel.latency)
        self.opened = done

    def _apart_step(self, ranks: Indices, steps: Indices) -> None:
        rows = self._first + steps
        time = np.maximum(self.prepared[rows - 1, ranks], self.passed[rows - 2, ranks])
        np.maximum(time, np.where(steps > 0, self.end[rows - 2, ranks], self.end[rows - 1, ranks]), out=time)
        self._arrived(time, ranks, steps)
        time += self._taking(ranks, steps)
        self.prepared[rows, ranks] = self.taken[rows, ranks] = time
        begin = np.maximum(time, self.end[rows - 1, ranks])
        self.begin[rows, ranks] = begin
        end = begin + self._computing(ranks, steps)
        self.computed[rows, ranks] = self.end[rows, ranks] = end
        time = np.maximum(end, self.passed[rows - 1, ranks])
        self._roomy(time, ranks, steps)
        time += self._packing(ranks)
        self._send(time, ranks, rows)
        self.passed[rows, ranks] = time

    def _helped_step(self, ranks: Indices, steps: Indices) -> None:
        rows = self._first + steps
        time = np.maximum(self.prepared[rows - 1, ranks], self.passed[rows - 2, ranks])
        self._arrived(time, ranks, steps)
        self._roomy(time, ranks, steps)
        time += self._taking(ranks, steps, unpack=False)
        self.prepared[rows, ranks] = time
        time = np.maximum(time, self.end[rows - 1, ranks])
        self.begin[rows, ranks] = time
        time = time + self._taking(ranks, steps, receive=False) + self._computing(ranks, steps)
        self.computed[rows, ranks] = time
        time = time + self._packing(ranks)
        self.end[rows, ranks] = time
        time = np.maximum(time, self.passed[rows - 1, ranks])
        self.taken[rows, ranks] = time
        self._send(time, ranks, rows)
        self.passed[rows, ranks] = time


def _plane_members(levels: Indices, stretch: int, steps: int) -> Sequence[tuple[Indices, Indices]]:
    """The ranks of every plane with a step in it, and which step."""
    by_residue = []
    for residue in range(stretch):
        ranks = np.flatnonzero(levels % stretch == residue)
        by_residue.append(ranks[np.argsort(levels[ranks], kind="stable")])
    planes = []
    for plane in range(int(levels.max()) + stretch * (steps - 1) + 1):
        ranks = by_residue[plane % stretch]
        low, high = np.searchsorted(levels[ranks], [plane - stretch * (steps - 1), plane + 1])
        members = ranks[low:high]
        if members.size:
            planes.append((members, (plane - levels[members]) // stretch))
    return planes
