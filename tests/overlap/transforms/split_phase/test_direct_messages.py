"""Messages without copies: which receives go straight into the program's buffer, and which short messages stay blocking."""

from __future__ import annotations

from pathlib import Path

import pytest
from _transformed import transformed
from everyday import everyday

from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

C = """\
#include <mpi.h>
#include <stdio.h>

#define N 600

static double in[N], out[N], other[N], work[N];

int main(int argc, char **argv)
{
    int rank, size, i, round, n = N, next, previous, first = 0;
    double sum = 0.0;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = argc > 9 ? 5 : SIZE;
    next = RING || rank < size - 1 ? (rank + 1) % size : MPI_PROC_NULL;
    previous = RING || rank > 0 ? (rank + size - 1) % size : MPI_PROC_NULL;
    for (i = 0; i < N; i++) in[i] = out[i] = other[i] = work[i] = i * (rank + 1);
    for (round = 0; round < 4; round++) {
        EXCHANGE
        for (i = 0; i < n; i++) sum += in[i] - 0.5 * other[i];
    }
    printf("%d %a %a\\n", rank, sum, work[7]);
    MPI_Finalize();
    return 0;
}
"""
SEND = "MPI_Send(out, n, MPI_DOUBLE, next, 1, MPI_COMM_WORLD);"
RECEIVE = "MPI_Recv(in, n, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, &status);"
WORK = "for (i = 0; i < N; i++) work[i] = 0.5 * work[i] + round;"
ODD_EVEN = "if (rank % 2) {{ {0} }} else {{ {1} }}"


def exchange(text: str, folder: Path, thorough: bool, size: int = 500, ranks: int = 3, ring: bool = False) -> str:
    """The body of main, which has been seen to do what it did. ``ring``: only where nobody waits for a send."""
    whole = C.replace("EXCHANGE", text).replace("SIZE", str(size)).replace("RING", str(int(ring)))
    result = transformed(whole, "a.c", folder, Options(progress_calls=False))
    result.assert_behaves_as_before(thorough, ranks)
    return result.text.split("int main")[1]


@pytest.mark.mpi
@pytest.mark.parametrize("size", everyday([40, 500], [500]))
def test_a_receive_goes_into_the_programs_buffer(size: int, tmp_path: Path, thorough: bool) -> None:
    main = exchange(f"{SEND}\n        {WORK}\n        {RECEIVE}", tmp_path, thorough, size)
    assert "lapwing_receive_if_long(&lapwing_slots[1], in," in main
    assert main.index("lapwing_receive_if_long") < main.index("work[i] = 0.5") < main.index("lapwing_received(")


@pytest.mark.mpi
def test_of_a_known_length_it_is_plain_mpi(tmp_path: Path, thorough: bool) -> None:
    main = exchange(
        f"{SEND}\n        {WORK}\n        {RECEIVE}".replace("(in, n", "(in, N").replace("(out, n", "(out, N"),
        tmp_path,
        thorough,
    )
    assert "MPI_Irecv(in, N, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, &lapwing_slots[1].lw_request);" in main
    assert "MPI_Wait(&lapwing_slots[1].lw_request, &status);" in main
    assert "lapwing_send(&lapwing_slots[0], out, N," in main


@pytest.mark.mpi
def test_a_send_that_is_known_to_be_short_stays(tmp_path: Path, thorough: bool) -> None:
    whole = C.replace("EXCHANGE", f"{SEND}\n        {WORK}\n        {RECEIVE}".replace("(out, n", "(out, 16"))
    whole = whole.replace("SIZE", "16").replace("RING", "0")
    result = transformed(whole, "a.c", tmp_path, Options(progress_calls=False))
    assert SEND.replace("out, n", "out, 16") in result.text
    assert "lapwing_send" not in result.text
    assert result.refused("MPI_Send(out") == ["a message is worth it: 128 bytes"]
    result.assert_behaves_as_before(thorough)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "work",
    [
        "for (i = 0; i < N; i++) work[i] = 0.5 * work[i] + in[i];",  # reads what was there
        "for (i = 0; i < N; i++) work[i] = 0.5 * work[i], in[N - 1 - i] = i;",  # writes it
    ],
)
def test_where_the_buffer_is_accessed_meanwhile_a_copy_travels(work: str, tmp_path: Path, thorough: bool) -> None:
    main = exchange(f"{SEND}\n        {work}\n        {RECEIVE}", tmp_path, thorough)
    assert "lapwing_post_if_long(&lapwing_slots[1], n," in main
    assert "lapwing_arrive(&lapwing_slots[1], in, &status);" in main


@pytest.mark.mpi
def test_where_its_address_changes_meanwhile_a_copy_travels(tmp_path: Path, thorough: bool) -> None:
    work = "for (i = 0; i < N; i++) work[i] = 0.5 * work[i], first = i % 3;"
    main = exchange(
        f"{SEND}\n        {work}\n        {RECEIVE}".replace("(in, n", "(&in[first], n"), tmp_path, thorough
    )
    assert "lapwing_arrive(&lapwing_slots[1], &in[first], &status);" in main
    assert "lapwing_receive" not in main


@pytest.mark.mpi
@pytest.mark.parametrize("size", everyday([40, 500], [40]))
def test_messages_that_might_match_either_receive_keep_their_order(size: int, tmp_path: Path, thorough: bool) -> None:
    """A short one may not be left for later where another receive comes first."""
    two = "MPI_Send(work, 500, MPI_DOUBLE, next, 1, MPI_COMM_WORLD);"
    second = RECEIVE.replace("in, n", "other, 500")
    main = exchange(f"{SEND}\n        {two}\n        {RECEIVE}\n        {second}", tmp_path, thorough, size)
    assert main.index("MPI_Irecv(in, n,") < main.index("MPI_Irecv(other, 500,") < main.index("MPI_Wait(")


@pytest.mark.mpi
@pytest.mark.parametrize("size", everyday([40, 500], [40]))
@pytest.mark.parametrize(
    "text",
    [
        "MPI_Sendrecv(out, n, MPI_DOUBLE, next, 1, in, n, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, &status);",
        f"{{ MPI_Request r; {RECEIVE.replace('MPI_Recv', 'MPI_Irecv').replace('&status', '&r')}\n        {SEND}\n"
        f"        {WORK}\n        MPI_Wait(&r, &status); }}",
    ],
)
def test_what_waited_for_nobody_waits_for_nobody_if_it_is_short(
    text: str, size: int, tmp_path: Path, thorough: bool
) -> None:
    """Where MPI keeps no message a plain send, or a receive that is posted late, would be a deadlock."""
    main = exchange(text, tmp_path, thorough, size, ring=True)
    assert "lapwing_post_if_long" not in main
    assert "lapwing_receive_if_long" not in main


@pytest.mark.mpi
@pytest.mark.parametrize("size", everyday([40, 500], [40]))
def test_a_send_that_was_put_before_others_never_waits(size: int, tmp_path: Path, thorough: bool) -> None:
    one = f"{RECEIVE.replace('previous', 'next')} {SEND}"
    text = ODD_EVEN.format(one, f"{SEND.replace('next', 'previous')} {RECEIVE}").replace("} else", "}\n        else")
    exchange(text, tmp_path, thorough, size, ranks=2, ring=True)
