"""P3's model of an out-of-core wavefront: three blocks in memory, disk, network and CPU at work at once (P3, section 3).

A matrix of N columns and M rows, M / P = MB of them on each of P processors in a ring, is worked through in blocks of MB x NB
elements. Lengths and volumes are counted in elements, times in seconds.

Three things differ from the paper, each where it says so: the disk may be shared, the top frontier may be read element by
element, and eq. 17 is corrected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lapwing.errors import RefusedError

# -- memory ------------------------------------------------------------------------------------------------------------


def most_elements(bottom: int, top: int, right: int, rows: int, block: int) -> int:
    """BF + TF + RF + 3 MB NB: elements in memory at once (P3, eq. 3)."""
    return bottom + top + right + 3 * rows * block


def largest_block(memory: int, bottom: int, top: int, right: int, rows: int) -> int:
    """NB_max = floor((Mem - (BF + TF + RF)) / (3 MB)), the widest block that fits ``memory`` elements (P3, eq. 4).

    Raises RefusedError where not even one column fits.
    """
    block = (memory - (bottom + top + right)) // (3 * rows)
    if block < 1:
        raise RefusedError(
            f"memory for {memory} elements: expected room for {most_elements(bottom, top, right, rows, 1)}, the frontiers and "
            f"three blocks of {rows} rows and one column. Give more memory or more ranks."
        )
    return block


# -- the machine -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutOfCoreMachine:
    """P processors in a ring. Latencies in seconds, inverse bandwidths in seconds per element, speed in operations a second.

    disk_sharing: how many processes use one disk at a time: 1 for a disk each, as P3 assumes, P for one disk among all. Its
    bandwidth is divided among them; its latency is not, because P3 counts that as work of the processor (section 3).
    Raises RefusedError for values that make no sense.
    """

    processors: int  # P
    speed: float
    receive_latency: float  # beta_R
    send_latency: float  # beta_S
    network_per_element: float  # tau_c
    io_latency: float  # beta_io
    io_per_element: float  # tau_io of a disk that serves one process
    disk_sharing: int = 1

    def __post_init__(self) -> None:
        if self.processors < 1 or not 1 <= self.disk_sharing <= self.processors:
            raise RefusedError(
                f"{self.processors} processors, {self.disk_sharing} of them on one disk: expected at least one processor and "
                "from one to all of them on a disk."
            )
        if not (self.speed > 0 and math.isfinite(self.speed)):
            raise RefusedError(f"speed {self.speed} operations a second: expected a positive number.")
        for name in "receive_latency send_latency network_per_element io_latency io_per_element".split():
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise RefusedError(f"{name} {value}: expected a number of seconds, not negative.")

    def communicate(self, length: float) -> float:
        """Comm(L) = beta_R + beta_S + L tau_c (P3, eq. 5)."""
        return self.receive_latency + self.send_latency + length * self.network_per_element

    def transfer(self, length: float) -> float:
        """Io(L) = beta_io + L tau_io, with tau_io times disk_sharing (P3, eq. 6)."""
        return self.io_latency + length * self.io_per_element * self.disk_sharing

    def compute(self, operations: float) -> float:
        """Comp(L) = f(L) / speed; the argument is f(L), operations (P3, eq. 7)."""
        return operations / self.speed


# -- the generic model -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wavefront:
    """A sweep over a matrix of ``columns`` (N), ``rows`` of them (MB = M / P) on each processor.

    top_frontier: elements of TF. bottom_per_column: elements of BF per column of a block. operations: f per element.
    contiguous: whether the top frontier lies contiguously on disk and is read at once (what P3's eq. 15 charges), or
    element by element (what P3's program does; its section 3.1.1).
    """

    columns: int
    rows: float
    top_frontier: float
    bottom_per_column: float
    operations: float
    machine: OutOfCoreMachine
    contiguous: bool = True

    def read_block(self, block: float) -> float:
        """Io(MB x NB)."""
        return self.machine.transfer(self.rows * block)

    def read_top(self) -> float:
        """Io(TF), or TF Io(1) if it is read element by element."""
        if self.contiguous:
            return self.machine.transfer(self.top_frontier)
        return self.top_frontier * self.machine.transfer(1)

    def synchronisation(self, block: float) -> float:
        """T_synchro = Io(MB NB) + Io(TF) + Comm(TF) (P3, eq. 8)."""
        return self.read_block(block) + self.read_top() + self.machine.communicate(self.top_frontier)

    def stage(self, block: float) -> float:
        """beta_io + Comp(MB NB) + Comm(BF): what one processor delays the next by (in P3, eq. 9)."""
        machine = self.machine
        computation = machine.compute(self.operations * self.rows * block)
        return machine.io_latency + computation + machine.communicate(self.bottom_per_column * block)

    def load(self, block: float) -> float:
        """T_load = (P - 1)(beta_io + Comp(MB NB) + Comm(BF)) + 3 Io(MB NB) (P3, eq. 9)."""
        return (self.machine.processors - 1) * self.stage(block) + 3 * self.read_block(block)

    def steady_state(self, block: float) -> float:
        """T_steady = (N / NB - 3) 2 Io(MB NB) (P3, eq. 10)."""
        return (self.columns / block - 3) * 2 * self.read_block(block)

    def flush(self, block: float) -> float:
        """T_flush = 2 Io(MB NB) (P3, eq. 11)."""
        return 2 * self.read_block(block)

    def transition(self, block: float) -> float:
        """T_transition, from one sweep to the next (P3, eq. 13)."""
        return self.synchronisation(block) + self.stage(block) + 3 * self.read_block(block)

    def total(self, block: float, sweeps: int = 1) -> float:
        """T_total of K sweeps (P3, eq. 14; for one sweep eq. 12).

        K (Io(TF) + Comm(TF)) + (P + K - 2)(beta_io + Comp(MB NB) + Comm(BF)) + 2 K (N / NB) Io(MB NB)
        """
        _check_block(block, self.columns)
        _check_sweeps(sweeps)
        top = self.read_top() + self.machine.communicate(self.top_frontier)
        stages = self.machine.processors + sweeps - 2
        return sweeps * top + stages * self.stage(block) + 2 * sweeps * self.columns / block * self.read_block(block)


# -- the mean filter of section 4 --------------------------------------------------------------------------------------

FILTER_OPERATIONS = 5  # a point, from its four neighbours and itself


def mean_filter(columns: int, machine: OutOfCoreMachine, contiguous: bool = True) -> Wavefront:
    """P3's instance (section 4): a square matrix, MB = N / P, BF = NB, TF = N, 5 operations a point."""
    return Wavefront(columns, columns / machine.processors, columns, 1, FILTER_OPERATIONS, machine, contiguous)


def filter_time(
    columns: int, block: float, machine: OutOfCoreMachine, sweeps: int = 1, contiguous: bool = True
) -> float:
    """T_total of the mean filter, multiplied out (P3, eq. 19; for one sweep eq. 15).

    (P + 2K - 2)(beta_R + beta_S + beta_io) + N K (tau_c + tau_io) + 2 K N^2 tau_io / P
        + 2 K N beta_io / NB + NB (P + K - 2)(5 N / (P speed) + tau_c)

    With S processes on a disk tau_io is S tau_io, so that for one disk among all the I/O term is not divided by P. A top
    frontier read element by element adds K (N - 1) beta_io.
    """
    _check_block(block, columns)
    _check_sweeps(sweeps)
    n, k, p = columns, sweeps, machine.processors
    io = machine.io_per_element * machine.disk_sharing
    latencies = machine.receive_latency + machine.send_latency + machine.io_latency
    scattered = 0.0 if contiguous else k * (n - 1) * machine.io_latency
    fixed = (
        (p + 2 * k - 2) * latencies + n * k * (machine.network_per_element + io) + 2 * k * n * n * io / p + scattered
    )
    return fixed + _requests(n, machine, k) / block + block * _pipeline(n, machine, k)


def filter_slope(columns: int, block: float, machine: OutOfCoreMachine, sweeps: int = 1) -> float:
    """dT / dNB = (P + K - 2)(5 N / (P speed) + tau_c) - 2 K N beta_io / NB^2 (P3, eq. 20; for one sweep eq. 16)."""
    _check_block(block, columns)
    _check_sweeps(sweeps)
    return _pipeline(columns, machine, sweeps) - _requests(columns, machine, sweeps) / block**2


def filter_curvature(columns: int, block: float, machine: OutOfCoreMachine, sweeps: int = 1) -> float:
    """d2T / dNB2 = 4 K N beta_io / NB^3, never negative (P3, eq. 21; for one sweep eq. 18)."""
    _check_block(block, columns)
    _check_sweeps(sweeps)
    return 2 * _requests(columns, machine, sweeps) / block**3


def best_block(columns: int, machine: OutOfCoreMachine, sweeps: int = 1, most: float = math.inf) -> float:
    """NB_opt, the real width in [1, min(N, most)] that minimises filter_time (P3, eq. 17, corrected).

    NB_opt = sqrt(2 K P speed beta_io / ((P + K - 2)(5 + P speed tau_c / N)))

    The positive zero of eq. 16 and eq. 20. P3 prints eq. 17 without the "/ N" (see printed_best_block). ``most`` is the bound by
    memory, largest_block. One processor and one sweep make no pipeline: then the widest block is best. Neither a shared
    disk nor a scattered top frontier changes NB_opt.
    """
    _check_sweeps(sweeps)
    widest = min(columns, most)
    _check_block(widest, columns)
    pipeline = _pipeline(columns, machine, sweeps)
    found = math.sqrt(_requests(columns, machine, sweeps) / pipeline) if pipeline else math.inf
    return min(max(found, 1.0), widest)


def printed_best_block(machine: OutOfCoreMachine, sweeps: int = 1) -> float:
    """Eq. 17 as P3 prints it, for comparison only: it is no zero of eq. 16, and too small where P speed tau_c > 5.

    NB = sqrt(2 K P speed beta_io / ((P + K - 2)(5 + P speed tau_c)))

    For N = 32768, P = 4, 100 Mflop/s and 11 MB/s it is 7.7 times too small, and what depends on NB in eq. 15 takes 3.9 times
    as long; both whatever beta_io. Raises RefusedError for one processor and one sweep.
    """
    _check_sweeps(sweeps)
    stages = machine.processors + sweeps - 2
    if not stages:
        raise RefusedError("eq. 17 for one processor and one sweep: expected a pipeline, two processors or two sweeps.")
    flow = machine.processors * machine.speed
    per_element = FILTER_OPERATIONS + flow * machine.network_per_element
    return math.sqrt(2 * sweeps * flow * machine.io_latency / (stages * per_element))


def _requests(columns: int, machine: OutOfCoreMachine, sweeps: int) -> float:
    """2 K N beta_io: the latency of all requests at NB = 1."""
    return 2 * sweeps * columns * machine.io_latency


def _pipeline(columns: int, machine: OutOfCoreMachine, sweeps: int) -> float:
    """(P + K - 2)(5 N / (P speed) + tau_c): how much longer the pipeline's fill is for every column of a block."""
    computation = machine.compute(FILTER_OPERATIONS * columns / machine.processors)
    return (machine.processors + sweeps - 2) * (computation + machine.network_per_element)


def _check_block(block: float, columns: int) -> None:
    if not 0 < block <= columns:
        raise RefusedError(f"a block of {block} columns of {columns}: expected more than none and at most all.")


def _check_sweeps(sweeps: int) -> None:
    if sweeps < 1:
        raise RefusedError(f"{sweeps} sweeps: expected at least one.")
