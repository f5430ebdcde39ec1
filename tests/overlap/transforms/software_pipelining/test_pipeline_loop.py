"""Work of a loop's next iteration done while this iteration's transfer travels: same results, and refused where they could
differ."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from _building import write
from _running import Reference, required
from everyday import everyday

from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options, Outcome

pytestmark = pytest.mark.usefixtures("own_header")

# Every line that a test changes stands once. `buffer` is what is sent, and scratch memory afterwards.
SORT = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define KEYS 2000
#define LARGEST 256
#define BUCKETS 16
#define TURNS 5

int *keys, *buffer, *received;
int counts[BUCKETS], totals[BUCKETS], firsts[BUCKETS], pointers[BUCKETS];
int *give, *take, *give_at, *take_at;
int rank, size, room, found, checks;
double began, spent;

void start_clock(void) { began = MPI_Wtime(); }
void stop_clock(void) { spent += MPI_Wtime() - began; }

/* Memory for everything. */
void allocate(void)
{
    room = KEYS * 8;
    keys = (int *)malloc(sizeof(int) * KEYS);
    buffer = (int *)malloc(sizeof(int) * room);
    received = (int *)malloc(sizeof(int) * room);
    give = (int *)malloc(sizeof(int) * size);
    take = (int *)malloc(sizeof(int) * size);
    give_at = (int *)malloc(sizeof(int) * size);
    take_at = (int *)malloc(sizeof(int) * size);
}

/* One turn: sort the keys into buckets, send each bucket to its owner, count what came. */
void turn(int number)
{
    int i, k, key, local = 0;
    int shift = 4;
    int per = (BUCKETS + size - 1) / size;
    int *shifted;

    start_clock();
    /* This turn's keys. */
    if (rank == 0) {
        keys[number] = number;
        keys[number + TURNS] = LARGEST - 1 - number;
    }
    for (i = 0; i < BUCKETS; i++) {
        counts[i] = 0;
        totals[i] = 0;
        firsts[i] = 0;
    }
    for (i = 0; i < KEYS; i++)
        counts[keys[i] >> shift]++;
    pointers[0] = 0;
    for (i = 1; i < BUCKETS; i++)
        pointers[i] = pointers[i - 1] + counts[i - 1];
    /* Sort. */
    for (i = 0; i < KEYS; i++) {
        key = keys[i];
        buffer[pointers[key >> shift]++] = key;
    }
    stop_clock();

    MPI_Allreduce(counts, totals, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (k = 0; k < size; k++) {
        give[k] = 0;
        for (i = k * per; i < (k + 1) * per && i < BUCKETS; i++)
            give[k] += counts[i];
    }
    MPI_Alltoall(give, 1, MPI_INT, take, 1, MPI_INT, MPI_COMM_WORLD);
    give_at[0] = take_at[0] = 0;
    for (k = 1; k < size; k++) {
        give_at[k] = give_at[k - 1] + give[k - 1];
        take_at[k] = take_at[k - 1] + take[k - 1];
    }
    MPI_Alltoallv(buffer, give, give_at, MPI_INT, received, take, take_at, MPI_INT, MPI_COMM_WORLD);

    /* What came is counted in the buffer. */
    for (i = 0; i < LARGEST; i++) buffer[i] = 0;
    shifted = buffer - 0;
    for (k = 0; k < size; k++)
        for (i = take_at[k]; i < take_at[k] + take[k]; i++) {
            shifted[received[i]]++;
            local++;
        }
    for (i = 0; i < BUCKETS; i++) {
        firsts[i] += buffer[i * 16 + number];
        checks = (checks * 31 + totals[i] + firsts[i]) % 99991;
    }
    found += local;
}

int main(int argc, char **argv)
{
    int i, number;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    allocate();
    for (i = 0; i < KEYS; i++) keys[i] = (i * 7919 + rank * 104729) % LARGEST;
    for (i = 0; i < room; i++) buffer[i] = received[i] = i % LARGEST;
    turn(1);
    found = 0;
    for (number = 1; number <= TURNS; number++) {
        printf("%d\\n", number);
        turn(number);
    }
    turn(2);
    printf("%d %d\\n", found, checks);
    for (i = 0; i < room; i++) printf("%d %d ", buffer[i], received[i]);
    for (i = 0; i < BUCKETS; i++) printf("%d %d %d %d\\n", counts[i], totals[i], firsts[i], pointers[i]);
    MPI_Finalize();
    return 0;
}
"""

# Iterations that stay exact under the change, each other than SORT in one respect.
VARIANTS = {
    "as it is": (),
    "array": (
        ("int *keys, *buffer, *received;", "int *keys, buffer[KEYS * 8], *received;"),
        ("    buffer = (int *)malloc(sizeof(int) * room);\n", ""),
    ),
    "one counter": (
        ("buffer[pointers[key >> shift]++] = key;", "if (key % 3) buffer[found2++] = key;"),
        ("    /* Sort. */\n", "    found2 = 0;\n"),
        ("double began", "int found2;\ndouble began"),
    ),
    "local counters": (
        ("    int *shifted;\n", "    int *shifted, where[BUCKETS];\n"),
        ("    /* Sort. */\n", "    for (i = 0; i < BUCKETS; i++) where[i] = pointers[i];\n"),
        ("buffer[pointers[key >> shift]++]", "buffer[where[key >> shift]++]"),
    ),
    "buckets with gaps": (
        ("pointers[i] = pointers[i - 1] + counts[i - 1];", "pointers[i] = pointers[i - 1] + counts[i - 1] + i % 3;"),
    ),
    "counting down": (
        ("for (number = 1; number <= TURNS; number++)", "for (number = TURNS; number > 0; number -= 2)"),
    ),
    "arguments made of the loop's variable": (
        ("void turn(int number)", "void turn(int number, int more)"),
        ("        turn(number);", "        turn(TURNS - number, more);"),
        ("    turn(1);", "    turn(1, 2);"),
        ("    turn(2);", "    turn(2, 3);"),
        ("    int i, number;", "    int i, number, more = 3;"),
        ("keys[number] = number;", "keys[number] = number + more;"),
    ),
    "no braces": (
        ('++) {\n        printf("%d\\n", number);\n        turn(number);\n    }', "++)\n        turn(number);"),
    ),
    "result unused by others": (("        totals[i] = 0;\n", ""),),
    "messages that reach beyond what was sorted": (
        ("    MPI_Alltoall(give,", "    give[size - 1] += 5;\n    MPI_Alltoall(give,"),
    ),
    "messages that begin before what was sorted": (
        ("    pointers[0] = 0;", "    pointers[0] = 7;"),
        ("give_at[0] = take_at[0] = 0;", "give_at[0] = 3;\n    take_at[0] = 0;"),
    ),
    "counts in bytes": (
        ("give[k] += counts[i];", "give[k] += counts[i] * 4;"),
        (
            "MPI_Alltoallv(buffer, give, give_at, MPI_INT, received, take, take_at, MPI_INT",
            "MPI_Alltoallv(buffer, give, give_at, MPI_BYTE, received, take, take_at, MPI_BYTE",
        ),
        ("i < take_at[k] + take[k]; i++", "i < take_at[k] + take[k] && i < room; i++"),
        ("    room = KEYS * 8;", "    room = KEYS * 16;"),
    ),
    "only read by others": (
        ("        firsts[i] = 0;\n", "        if (i % 2) firsts[i] = 0;\n"),
        ("firsts[i] += buffer", "checks += firsts[i] * buffer"),
    ),
}

# Iterations where the collectives before the transfer stay in theirs, each other than SORT in one respect.
BEHIND = {
    "a collective behind the transfer": (
        ("    found += local;", "    MPI_Bcast(&local, 1, MPI_INT, 0, MPI_COMM_WORLD);\n    found += local;"),
    ),
    "a barrier in the loop": (('        printf("%d\\n", number);', "        MPI_Barrier(MPI_COMM_WORLD);"),),
    "messages in the loop": (
        (
            '        printf("%d\\n", number);',
            "        MPI_Sendrecv(&size, 1, MPI_INT, 0, 3, &ranks, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);",
        ),
        ("    int i, number;", "    int i, number;\n    int ranks;"),
    ),
    "a message before them": (
        (
            "    MPI_Allreduce(counts",
            "    MPI_Sendrecv(counts, 1, MPI_INT, 0, 3, &local, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);\n"
            "    checks += local; local = 0;\n    MPI_Allreduce(counts",
        ),
    ),
    "a wait before them": (
        ("double began", "MPI_Request request = MPI_REQUEST_NULL;\nint more;\ndouble began"),
        (
            "    turn(1);",
            "    turn(1);\n    MPI_Irecv(&more, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);\n"
            "    MPI_Send(&size, 1, MPI_INT, 0, 3, MPI_COMM_SELF);",
        ),
        ("    MPI_Allreduce(counts", "    MPI_Wait(&request, MPI_STATUS_IGNORE);\n    MPI_Allreduce(counts"),
    ),
    "a collective not always called": (("    MPI_Allreduce(counts", "    if (number != 4) MPI_Allreduce(counts"),),
}

# Iterations whose transfer starts an iteration ahead, each other than SORT in one respect, and whether only it writes its buffer.
FEWER = (
    ("    for (i = 0; i < KEYS; i++)\n        counts", "    for (i = 0; i < KEYS / number; i++)\n        counts"),
    ("    for (i = 0; i < KEYS; i++) {\n        key", "    for (i = 0; i < KEYS / number; i++) {\n        key"),
)
ONLY = (
    ("received = (int *)malloc(sizeof(int) * room);", "received = (int *)calloc(room, sizeof(int));"),
    ("buffer[i] = received[i] = i % LARGEST;", "buffer[i] = i % LARGEST;"),
)
BACKWARDS = (("for (number = 1; number <= TURNS; number++)", "for (number = TURNS; number >= 1; number--)"),)
EVEN = (
    ("for (number = 1; number <= TURNS; number++)", "for (number = 1; number < TURNS; number++)"),
)  # buffers have swapped
MACROS = "displs type comm first end inter ranks inside other brought places kind n r".split()
LOOKAHEAD = {
    "as it is": ((), False),
    "macros": (
        (("#define TURNS 5\n", "#define TURNS 5\n" + "".join(f"#define {m} 1.5\n" for m in MACROS)), *ONLY),
        True,
    ),
    "an even number of turns": (EVEN, False),
    "only written by the transfer": (ONLY, True),
    "an even number of turns, fewer keys each": (FEWER + EVEN, False),
    "an even number of turns, fewer keys each, only written by the transfer": (FEWER + EVEN + ONLY, True),
    "fewer keys each turn": (FEWER, False),
    "fewer keys each turn, only written by the transfer": (FEWER + ONLY, True),
    "more keys each turn": (FEWER + BACKWARDS, False),
    "more keys each turn, only written by the transfer": (FEWER + BACKWARDS + ONLY, True),
    "the loop again": (
        (
            ("    turn(2);", "    received[5] = 7;\n    for (i = 4; i > 1; i -= 2)\n        turn(i);\n    turn(2);"),
            *FEWER,
        ),
        False,
    ),
    "the loop again, only written by the transfer": (
        (("    turn(2);", "    for (i = 4; i > 1; i -= 2)\n        turn(i);\n    turn(2);"), *FEWER, *ONLY),
        True,
    ),
    "messages placed with gaps": (  # found when it runs
        (("give_at[0] = take_at[0] = 0;", "give_at[0] = 0;\n    take_at[0] = 3;"),),
        False,
    ),
    "messages placed with gaps, only written by the transfer": (
        (("give_at[0] = take_at[0] = 0;", "give_at[0] = 0;\n    take_at[0] = number % 2;"), *ONLY, *FEWER),
        True,
    ),
    "rows that are arrays": (
        (
            ("int *give, *take, *give_at, *take_at;", "int give[8], take[8], give_at[8], take_at[8];"),
            ("    give = (int *)malloc(sizeof(int) * size);\n", ""),
            ("    take = (int *)malloc(sizeof(int) * size);\n", ""),
            ("    give_at = (int *)malloc(sizeof(int) * size);\n", ""),
            ("    take_at = (int *)malloc(sizeof(int) * size);\n", ""),
        ),
        False,
    ),
    "a communicator of the program's own": (
        (
            ("double began", "MPI_Comm all;\ndouble began"),
            ("    allocate();", "    MPI_Comm_dup(MPI_COMM_WORLD, &all);\n    allocate();"),
            ("take_at, MPI_INT, MPI_COMM_WORLD);", "take_at, MPI_INT, all);"),
        ),
        False,
    ),
}

# Iterations whose transfer cannot start an iteration ahead: the change of SORT, and what the refusal says (None: it is not
# tried).
NO_LOOKAHEAD = {
    "the buffer is written in the loop": ((("    found += local;", "    received[3] = 1;\n    found += local;"),), "written in"),
    "the buffer is written between turns": (
        (('        printf("%d\\n", number);', "        received[number] = 1;"),),
        "written in",
    ),
    "its address is kept": (
        (("double began", "int *other;\ndouble began"), ("    turn(1);", "    turn(1);\n    other = received;")),
        "reached",
    ),
    "an element's address is kept": (
        (("double began", "int *other;\ndouble began"), ("    turn(1);", "    turn(1);\n    other = &received[4];")),
        "reached",
    ),
    "a procedure gets its address": (
        (
            ("void start_clock", "void touch(int *some) { some[0] = 1; }\nvoid start_clock"),
            ("    turn(1);", "    turn(1);\n    touch(received);"),
        ),
        "reached",
    ),
    "it has two memories": (
        (("    turn(1);", "    turn(1);\n    received = (int *)malloc(sizeof(int) * room);\n    received[0] = 3;"),),
        "one malloc",
    ),
    "an array": (
        (
            ("int *keys, *buffer, *received;", "int *keys, *buffer, received[KEYS * 8];"),
            ("    received = (int *)malloc(sizeof(int) * room);\n", ""),
        ),
        "no allocated memory",
    ),
    "a part of the buffer": ((("MPI_INT, received, take,", "MPI_INT, received + 1, take,"),), "no allocated memory"),
    "a row that changes": ((("    found += local;", "    take_at[size - 1] = 0;\n    found += local;"),), None),
    "a communicator that changes": (
        (
            ("double began", "MPI_Comm all = MPI_COMM_WORLD;\ndouble began"),
            ("take_at, MPI_INT, MPI_COMM_WORLD);", "take_at, MPI_INT, all);"),
            ("    found += local;", "    if (local < 0) all = MPI_COMM_SELF;\n    found += local;"),
        ),
        "all is written",
    ),
    "a type of the program's own": (
        (
            ("take, take_at, MPI_INT,", "take, take_at, kind,"),
            ("double began", "MPI_Datatype kind = MPI_INT;\ndouble began"),
        ),
        "may have gaps",
    ),
    "an argument that is computed": ((("take, take_at, MPI_INT,", "take, take_at + 0 * number, MPI_INT,"),), "written in"),
    "a collective that stays before it": (
        (
            (
                "    MPI_Alltoall(give,",
                "    MPI_Allreduce(&found, &checks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);\n    MPI_Alltoall(give,",
            ),
        ),
        None,
    ),
}  # fmt: skip

# Iterations whose transfer is not sent from the second buffer, each other than SORT in one respect.
NOT_SENT = {
    "the array is read before": (("    MPI_Alltoall(give,", "    checks += buffer[3];\n    MPI_Alltoall(give,"),),
    "the array is written before": (("    MPI_Alltoall(give,", "    buffer[found % 7] = 5;\n    MPI_Alltoall(give,"),),
    "only a part of the array is sent": (("MPI_Alltoallv(buffer, give,", "MPI_Alltoallv(buffer + 1, give,"),),
    "a type of the program's own": (
        ("MPI_Alltoallv(buffer, give, give_at, MPI_INT,", "MPI_Alltoallv(buffer, give, give_at, kind,"),
        ("double began", "MPI_Datatype kind = MPI_INT;\ndouble began"),
    ),
}

# Where only the sorting has to stay: the change of SORT, and what the refusal says.
PARTLY = {
    "elements that are not known": (
        (
            (
                "buffer[pointers[key >> shift]++] = key;",
                "buffer[pointers[key >> shift]] = key, pointers[key >> shift] += 1;",
            ),
        ),
        "known to the element",
        "buffer",
    ),
    "counters used elsewhere in the loop": (
        (("        key = keys[i];\n", "        key = keys[i];\n        pointers[1] += i == 9;\n"),),
        "known to the element",
        "buffer",
    ),
    "the array used elsewhere in the loop": (
        (("        key = keys[i];\n", "        key = keys[i];\n        buffer[0] += 1;\n"),),
        "known to the element",
        "buffer",
    ),
    "memory allocated twice": (
        (
            (
                "    turn(1);",
                "    turn(1);\n    buffer = (int *)malloc(sizeof(int) * room);\n    for (i = 0; i < room; i++) buffer[i] = i;",
            ),
        ),
        "can be double-buffered",
        "buffer",
    ),
}

# What must not be changed: the change of SORT, and what the refusal says.
REFUSED = {
    "the work needs a result": (
        (("        keys[number] = number;", "        keys[number] = number + found % 7;"),),
        "needs nothing that the rest of this iteration computes",
        "found",
    ),
    "the work needs what the loop writes": (
        (('        printf("%d\\n", number);', "        keys[5] = found % 9;"),),
        "known to the element",
        "keys",
    ),
    "a loop that may be left": (
        (("        turn(number);", "        turn(number);\n        if (found < 0) break;"),),
        "certainly follows",
        "",
    ),
    "an iteration that may be left out": (
        (('        printf("%d\\n", number);', "        if (found < 0) continue;"),),
        "certainly follows",
        "",
    ),
    "a bound that changes": (
        (
            ("for (number = 1; number <= TURNS;", "for (number = 1; number <= last;"),
            ("double began", "int last = 5;\ndouble began"),
            ("    found += local;", "    found += local;\n    if (number == 3) last = 4;"),
        ),
        "bounds do not change",
        "",
    ),
    "an early end of the program": (
        (("    found += local;", "    found += local;\n    if (found < 0) exit(1);"),),
        "all that the loop does is known",
        "exit",
    ),
    "a transfer that is not always made": (
        (("    MPI_Allreduce(counts", "    if (number > 90) return;\n    MPI_Allreduce(counts"),),
        "at every call",
        "",
    ),
    "called twice an iteration": (
        (("        turn(number);", "        turn(number);\n        turn(number);"),),
        "once per iteration",
        "",
    ),
    "arguments that are not known an iteration ahead": (
        (("        turn(number);", "        turn(number + found % 2);"),),
        "arguments are known",
        "number",
    ),
    "an argument that changes": (
        (("    start_clock();", "    number = number % 3;\n    start_clock();"),),
        "keeps its arguments",
        "number",
    ),
    "work of an iteration a rank": (
        (
            ("    start_clock();", "    start_clock();\n    for (i = 0; i < size; i++) give_at[i] = i;"),
            ("        counts[keys[i] >> shift]++;", "        counts[(keys[i] + found - found) >> shift]++;"),
            ("        key = keys[i];", "        key = keys[i] + found - found;"),
        ),
        "needs nothing that the rest of this iteration computes",
        "found",
    ),
    "a transfer too small for copies": (
        (
            (
                "MPI_Alltoallv(buffer, give, give_at, MPI_INT, received, take, take_at",
                "MPI_Alltoall(buffer, 4, MPI_INT, received, 4",
            ),
            ("    MPI_Alltoall(give, 1, MPI_INT, take, 1, MPI_INT, MPI_COMM_WORLD);\n", ""),
        ),
        "takes longer than the copies",
        "4 elements",
    ),
    "a procedure with types of its own": (
        (("    int *shifted;\n", "    struct pair { int one, two; };\n    int *shifted;\n"),),
        "types are known to others",
        "",
    ),
    "a procedure that calls itself": (
        (("    found += local;", "    found += local;\n    if (found < 0) turn(number);"),),
        "all that the loop does is known",
        "calls itself",
    ),
    "an array others write, too": (
        (("        firsts[i] = 0;\n", "        if (i % 2) firsts[i] = 0;\n"),),
        "known to the element",
        "firsts",
    ),
    "a window others write into": (
        (
            (
                "    turn(1);",
                "    MPI_Win window;\n    MPI_Win_create(keys, 8, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);\n    turn(1);",
            ),
        ),
        "own statements",
        "one-sided",
    ),
}


def changed(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} must stand once in the program"
        text = text.replace(old, new)
    return text


def rewritten(text: str, folder: Path) -> tuple[Outcome, list[Path]]:
    """What pipelining alone makes of a program, and the files it writes."""
    sources = write({"sort.c": text}, folder / "before")
    outcome = rewrite(
        read_c(sources, (), {}, None), Options(transformations=frozenset({"pipeline-loop", "nonblocking"}))
    )
    after = {change.path.name: change.after.decode("latin-1") for change in outcome.changes} or {"sort.c": text}
    return outcome, write(after, folder / "after")


def made(outcome: Outcome) -> int:
    """How many transfers cover work of the iteration after."""
    actions = [a for c in outcome.communications for a in c.actions if a.transformation == "pipeline-loop"]
    return sum("is done while it travels" in a.description for a in actions)


def early(text: str) -> str:
    """The procedure that does the early work."""
    return text.partition("static void turn_early(")[2].partition("\n}\n")[0]


def refused(outcome: Outcome, obligation: str, found: str) -> bool:
    """Whether the pipelining of the large transfer was refused for this reason."""
    refusals = [r for c in outcome.communications if c.call in ("MPI_Alltoallv", "MPI_Alltoall") for r in c.refusals]
    return any(
        r.transformation == "pipeline-loop" and obligation in r.obligation and found in r.found for r in refusals
    )


# Of each family of variants some run every day, one for each kind; a refusal shows in the text.
RUN_VARIANTS = (
    "local counters",
    "counting down",
    "messages that reach beyond what was sorted",
    "counts in bytes",
)
RUN_BEHIND = ("a wait before them", "a collective not always called")
RUN_LOOKAHEAD = (
    "as it is",
    "macros",
    "an even number of turns, fewer keys each, only written by the transfer",
    "messages placed with gaps",
    "rows that are arrays",
)
NO_LOOKAHEAD_EVERYDAY = (
    "the buffer is written in the loop",
    "the buffer is written between turns",
    "its address is kept",
    "it has two memories",
    "a part of the buffer",
    "a row that changes",
    "a communicator that changes",
    "an argument that is computed",
)


def assert_same(folder: Path, after: list[Path], thorough: bool) -> None:
    required("c")
    Reference([folder / "before" / "sort.c"]).assert_unchanged_by(after, thorough)


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(VARIANTS, RUN_VARIANTS))
def test_results_are_the_same(name: str, tmp_path: Path, thorough: bool) -> None:
    text = changed(SORT, VARIANTS[name])
    outcome, after = rewritten(text, tmp_path)
    assert made(outcome) == 1
    assert "buffer_early[" in after[0].read_text()
    assert_same(tmp_path, after, thorough)


def test_collectives_before_the_transfer_are_early_and_it_sends_the_second_buffer(tmp_path: Path) -> None:
    _, after = rewritten(SORT, tmp_path)
    text = after[0].read_text()
    assert "MPI_Allreduce(counts, totals_early" in early(text)
    assert "MPI_Alltoall(give_early, 1, MPI_INT, take_early" in early(text)
    assert "MPI_Ialltoallv(turn_outgoing(give, give_at, MPI_INT, MPI_COMM_WORLD), give," in text


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(BEHIND, RUN_BEHIND))
def test_collectives_that_others_could_pass_stay(name: str, tmp_path: Path, thorough: bool) -> None:
    text = changed(SORT, BEHIND[name])
    outcome, after = rewritten(text, tmp_path)
    assert made(outcome) == 1
    work = early(after[0].read_text())
    assert "buffer_early[" in work
    assert "MPI_" not in work
    assert_same(tmp_path, after, thorough)


@pytest.mark.mpi
def test_collectives_that_need_this_iterations_results_stay(tmp_path: Path, thorough: bool) -> None:
    text = changed(SORT, (("        give[k] = 0;", "        give[k] = found < 0;"),))
    outcome, after = rewritten(text, tmp_path)
    assert made(outcome) == 1
    work = early(after[0].read_text())
    assert "MPI_Allreduce(" in work
    assert "MPI_Alltoall(" not in work
    assert_same(tmp_path, after, thorough)


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(LOOKAHEAD, RUN_LOOKAHEAD))
def test_the_next_transfer_starts_before_the_rest_of_the_iteration(name: str, tmp_path: Path, thorough: bool) -> None:
    changes, only = LOOKAHEAD[name]
    text = changed(SORT, changes)
    _, after = rewritten(text, tmp_path)
    new = after[0].read_text()
    assert "if (!turn_started) MPI_Ialltoallv(" in new
    assert "    turn_same = 1;\n    turn_high = 0;\n" in new or not only
    assert ("if (lw_end < 0) turn_same = 0;" in new) == only
    assert_same(tmp_path, after, thorough)


@pytest.mark.mpi
@pytest.mark.parametrize("flags", everyday(["-std=c90", "-std=c11", "-xc++"], ["-std=c90", "-xc++"]))
def test_what_it_calls_is_declared(flags: str, tmp_path: Path) -> None:
    found = required("c")
    _, after = rewritten(SORT, tmp_path)
    errors = ("-Werror=implicit-function-declaration", "-Werror=unused")
    command = [found.compile[0], flags, "-Wall", "-Wextra", "-Werror=unused-parameter", *errors, "-c", str(after[0])]
    done = subprocess.run([*command, "-o", str(tmp_path / "sort.o")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(NO_LOOKAHEAD, NO_LOOKAHEAD_EVERYDAY))
def test_the_next_transfer_waits_for_the_rest_of_the_iteration(name: str, tmp_path: Path, thorough: bool) -> None:
    changes, why = NO_LOOKAHEAD[name]
    text = changed(SORT, changes)
    outcome, after = rewritten(text, tmp_path)
    assert made(outcome) == 1
    assert "turn_started" not in after[0].read_text()
    assert why is None or refused(outcome, "may start before the rest", why)
    if thorough or why is None:
        assert_same(tmp_path, after, thorough)


@pytest.mark.mpi
@pytest.mark.parametrize("name", NOT_SENT)
def test_buffer_sent_itself_where_others_use_it(name: str, tmp_path: Path, thorough: bool) -> None:
    text = changed(SORT, NOT_SENT[name])
    outcome, after = rewritten(text, tmp_path)
    assert made(outcome) == 1
    assert "turn_outgoing" not in after[0].read_text()
    if thorough or name == "the array is read before":
        assert_same(tmp_path, after, thorough)


@pytest.mark.mpi
@pytest.mark.parametrize("name", PARTLY)
def test_what_cannot_be_early_stays(name: str, tmp_path: Path, thorough: bool) -> None:
    changes, obligation, what = PARTLY[name]
    text = changed(SORT, changes)
    outcome, after = rewritten(text, tmp_path)
    assert made(outcome) == 1
    assert refused(outcome, obligation, what)
    assert "buffer_early" not in after[0].read_text()
    if thorough or name == "elements that are not known":
        assert_same(tmp_path, after, thorough)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_where_results_could_differ(name: str, tmp_path: Path) -> None:
    changes, obligation, what = REFUSED[name]
    outcome, after = rewritten(changed(SORT, changes), tmp_path)
    assert made(outcome) == 0
    assert refused(outcome, obligation, what)
    assert "turn_early" not in after[0].read_text()


def test_files_with_missing_includes_stay(tmp_path: Path) -> None:
    outcome, after = rewritten(f'#include "nowhere.h"\n{SORT}', tmp_path)
    assert made(outcome) == 0
    assert "turn_early" not in after[0].read_text()


@pytest.mark.mpi
def test_loop_and_procedure_in_different_files(tmp_path: Path, thorough: bool) -> None:
    required("c")
    cut = SORT.index("int main(")
    head = "#include <mpi.h>\n#include <stdio.h>\n#define KEYS 2000\n#define LARGEST 256\n#define BUCKETS 16\n#define TURNS 5\n"
    head += "extern int *keys, *buffer, *received, rank, size, room, found, checks;\n"
    head += "extern int counts[BUCKETS], totals[BUCKETS], firsts[BUCKETS], pointers[BUCKETS];\n"
    head += "void allocate(void);\nvoid turn(int number);\n\n"
    sources = write({"sort.c": SORT[:cut], "main.c": head + SORT[cut:]}, tmp_path / "before")
    outcome = rewrite(
        read_c(sources, (), {}, None), Options(transformations=frozenset({"pipeline-loop", "nonblocking"}))
    )
    assert made(outcome) == 1
    after = write({c.path.name: c.after.decode("latin-1") for c in outcome.changes}, tmp_path / "after")
    assert {path.name for path in after} == {"sort.c", "main.c"}
    Reference(sources).assert_unchanged_by(after, thorough, 3)  # they share the buckets unevenly
