"""The disk rings of two ranks (disk_ring.hpp), which wait for one another's passes, and mostly for one another's messages, also
where one of them meets an error of the plain loop: both come to their end.

What a rank waits for are counters that only grow, so one order of all that may happen stands for every other, but for some
choices that are tried one by one: where the error is, when the other rank hears of it, how many slabs each has room for, and
whose slabs are written as late as can be.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

SLABS, PASSES = 4, 5
STEPS = SLABS * PASSES
FREE = 2  # the first passes, whose generations take no other's place
LATE = ((), (0,), (1,), (0, 1))  # ranks whose slabs are written as late as can be
BUFFERS = 2  # messages that may be under way to a rank
# Slabs that each has room for, and whether there are messages, which keep the two together.
ROOMS = ((1, 1, True), (1, 3, True), (3, 1, True), (2, 2, True), (SLABS, SLABS, False))


@dataclass(frozen=True)
class Protocol:
    """What may be broken."""

    gives_up_at_once: bool = False
    finishes_own_passes: bool = False
    notices_while_waiting_for_messages: bool = True
    hears_while_waiting_for_the_disk: bool = True


@dataclass
class Rank:
    number: int
    slots: int
    exchanges: bool  # messages with the other
    trap: int | None = None  # the step at which it meets the error
    hears: int = STEPS  # the step from which on it looks whether the other has met one
    step: int = 0
    written: int = 0  # slabs
    noticed: int = 0  # passes
    to_write: int = STEPS
    computes: bool = True

    def goes_on(self, other: Rank, protocol: Protocol, writes: bool) -> bool:
        """Do all that can be done now; whether there was something."""
        before = (self.step, self.written, self.noticed, self.to_write)
        waits_for_message = self.step < STEPS and self.has_slabs and not self.has_messages(other)
        if not waits_for_message or protocol.notices_while_waiting_for_messages:
            self.noticed = max(self.noticed, self.written // SLABS)
        if writes:
            # A pass may be written once all ranks have finished the one before it.
            may_be_written = max(FREE, min(self.noticed, other.noticed) + 1) * SLABS
            self.written = max(self.written, min(self.step, may_be_written, self.to_write))
        self.advance(other, protocol)
        return before != (self.step, self.written, self.noticed, self.to_write)

    @property
    def has_slabs(self) -> bool:
        return not self.computes or self.step < self.written + self.slots

    def has_messages(self, other: Rank) -> bool:
        """The first rank needs the last sweep's of the other, which needs this sweep's; both need room for theirs."""
        if not self.exchanges:
            return True
        if self.number == 0:
            return other.step > self.step - SLABS and self.step < other.step + BUFFERS
        return other.step > self.step

    def advance(self, other: Rank, protocol: Protocol) -> None:
        is_behind = other.trap is not None and other.step > other.trap and self.comes_after(other.number, other.trap)
        waits_for_disk = self.step == STEPS or not self.has_slabs
        looks = self.step >= self.hears or (waits_for_disk and protocol.hears_while_waiting_for_the_disk)
        if self.computes and is_behind and looks:
            assert other.trap is not None
            here = min(self.step, STEPS - 1)
            self.stop(protocol, here if protocol.finishes_own_passes else min(here, other.trap))
        if self.step == STEPS or not self.has_slabs or not self.has_messages(other):
            return
        if self.step == self.trap:
            self.stop(protocol, self.step)
        self.step += 1

    def comes_after(self, number: int, trap: int) -> bool:
        return (self.step // SLABS, self.number) > (trap // SLABS, number)

    def stop(self, protocol: Protocol, first: int) -> None:
        """first: the step at which a rank has stopped, the first that is known."""
        self.computes = False
        self.to_write = self.written if protocol.gives_up_at_once else first // SLABS * SLABS

    @property
    def has_ended(self) -> bool:
        return self.step == STEPS and self.written >= self.to_write and self.noticed >= self.to_write // SLABS


def stuck(protocol: Protocol, errors: bool) -> list[tuple[Rank, Rank]]:
    """Where nothing goes on."""
    found = []
    traps = range(STEPS) if errors else [None]
    for room, trapped, trap, hears, late in itertools.product(ROOMS, (0, 1), traps, range(STEPS + 1), LATE):
        *slots, exchanges = room
        ranks = Rank(0, slots[0], exchanges), Rank(1, slots[1], exchanges)
        ranks[trapped].trap = trap
        ranks[1 - trapped].hears = hears

        def go_on(late: tuple[int, ...], ranks: tuple[Rank, Rank] = ranks) -> bool:
            return any([rank.goes_on(ranks[1 - k], protocol, k not in late) for k, rank in enumerate(ranks)])

        while go_on(late) or go_on(()):
            pass
        if not all(rank.has_ended for rank in ranks):
            found.append(ranks)
    return found


@pytest.mark.parametrize("errors", [False, True])
def test_both_come_to_their_end(errors: bool) -> None:
    assert stuck(Protocol(), errors) == []


@pytest.mark.long
def test_a_rank_that_gives_up_at_once_holds_the_other_up() -> None:
    assert stuck(Protocol(gives_up_at_once=True), errors=True)


@pytest.mark.long
def test_a_rank_that_finishes_its_own_passes_waits_for_those_of_the_one_that_stopped() -> None:
    """Where no messages keep them together it may be some passes ahead."""
    found = stuck(Protocol(finishes_own_passes=True), errors=True)
    assert found
    assert not any(rank.exchanges for rank, _ in found)


def test_a_rank_that_waits_for_a_message_must_say_what_is_written() -> None:
    assert stuck(Protocol(notices_while_waiting_for_messages=False), errors=True)
    assert stuck(Protocol(notices_while_waiting_for_messages=False), errors=False)


@pytest.mark.long
def test_a_rank_that_waits_for_the_disk_must_hear_of_errors() -> None:
    assert stuck(Protocol(hears_while_waiting_for_the_disk=False), errors=True)
