"""Changed files as a diff that git and patch apply, in place, and in another folder."""

from __future__ import annotations

import os
import random
import stat
import subprocess
from pathlib import Path

import pytest
from limits import scaled
from needs import GIT, PATCH

from lapwing.errors import LapwingError, RefusedError
from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.languages.fortran.reading import read_fortran
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options
from lapwing.overlap.source.edits import find_edits
from lapwing.overlap.source.patch import (
    FileChange,
    common_folder,
    count_lines,
    unified_diff,
    with_line_ends,
    write_in_place,
    write_to,
)

needs_git = pytest.mark.skipif(not GIT.is_here, reason=GIT.reason)
needs_patch = pytest.mark.skipif(not PATCH.is_here, reason=PATCH.reason)

BEFORE = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
CASES = {
    "middle": (BEFORE, BEFORE.replace(b"five\n", b"5\nV\n")),
    "first line": (BEFORE, b"zero\n" + BEFORE),
    "last line": (BEFORE, BEFORE[:-4] + b"TEN\n"),
    "two places": (BEFORE * 3, BEFORE.replace(b"one", b"1") + BEFORE + BEFORE.replace(b"ten", b"10")),
    "removed": (BEFORE, BEFORE.replace(b"five\n", b"")),
    "windows": (BEFORE.replace(b"\n", b"\r\n"), BEFORE.replace(b"\n", b"\r\n").replace(b"five\r\n", b"5\r\nV\r\n")),
    "line ends mixed": (b"a\r\nb\nc\rd\r\ne\n", b"a\r\nb\nX\r\nc\rd\r\ne\n"),
    "no final newline": (BEFORE[:-1], BEFORE[:-1].replace(b"nine", b"9")),
    "last line, no final newline": (BEFORE[:-1], BEFORE[:-3] + b"en!"),
    "newline added": (BEFORE[:-1], BEFORE),
    "newline lost": (BEFORE, BEFORE[:-1]),
    "one line": (b"a", b"b"),
    "empty before": (b"", b"a\nb\n"),
    "latin-1": (b"c gr\xfc\xdfe\nx\n", b"c gr\xfc\xdfe\ny\n"),
    "form feed": (b"a\n\x0cb\n\x85c\n", b"a\n\x0cb\nd\n\x85c\n"),
}
NAMES = ("a.f", "sub/dir/b.c", "with space.c", "grüße.f90", 'quo"te.c', "tab\there.c", "back\\slash.c", "-dash.c")


def written(folder: Path, name: str, before: bytes, after: bytes) -> FileChange:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    return FileChange(path, before, after)


def apply(command: list[str], folder: Path, diff: bytes) -> None:
    done = subprocess.run(command, cwd=folder, input=diff, capture_output=True, timeout=scaled(60), check=False)
    assert done.returncode == 0, (done.stdout, done.stderr, diff)


@pytest.mark.parametrize(
    "command",
    [pytest.param(["git", "apply", "-"], marks=needs_git), pytest.param(["patch", "-p1"], marks=needs_patch)],
    ids=["git", "patch"],
)
@pytest.mark.parametrize("case", CASES)
def test_the_diff_applies(tmp_path: Path, case: str, command: list[str]) -> None:
    before, after = CASES[case]
    change = written(tmp_path, "src/a.f", before, after)
    apply(command, tmp_path, unified_diff([change], tmp_path))
    assert change.path.read_bytes() == after


@pytest.mark.parametrize(
    "command",
    [pytest.param(["git", "apply", "-"], marks=needs_git), pytest.param(["patch", "-p1"], marks=needs_patch)],
    ids=["git", "patch"],
)
@pytest.mark.parametrize("name", NAMES)
def test_names(tmp_path: Path, name: str, command: list[str]) -> None:
    change = written(tmp_path, name, *CASES["middle"])
    apply(command, tmp_path, unified_diff([change], tmp_path))
    assert change.path.read_bytes() == CASES["middle"][1]


@needs_git
def test_random_changes_of_many_files(tmp_path: Path) -> None:
    numbers = random.Random(5)
    lines = [b"      end do\n", b"\n", b"      x = y\n", b"c\n"]
    changes = []
    for k in range(40):
        before = [numbers.choice(lines) for _ in range(numbers.randrange(60))]
        after = list(before)
        for _ in range(numbers.randrange(1, 6)):
            at = numbers.randrange(len(after) + 1)
            after[at : at + numbers.randrange(3)] = [b"! %d\n" % k] * numbers.randrange(3)
        changes.append(written(tmp_path, f"{k}.f", b"".join(before), b"".join(after)))
    # git takes a file made empty by a patch for one to be removed only where the patch says so.
    changes = [change for change in changes if change.before and change.after]
    apply(["git", "apply", "-"], tmp_path, unified_diff(changes, tmp_path))
    assert all(change.path.read_bytes() == change.after for change in changes)


def test_the_diff_is_as_diff_writes_it(tmp_path: Path) -> None:
    change = written(tmp_path, "a.f", *CASES["middle"])
    assert unified_diff([change], tmp_path) == (
        b"--- a/a.f\n+++ b/a.f\n@@ -2,7 +2,8 @@\n two\n three\n four\n-five\n+5\n+V\n six\n seven\n eight\n"
    )
    assert count_lines(change) == (2, 1)
    empty = written(tmp_path, "b.f", b"", b"x\n")
    assert b"@@ -0,0 +1 @@\n+x\n" in unified_diff([empty], tmp_path)


def test_nothing_changed_is_no_diff(tmp_path: Path) -> None:
    assert unified_diff([written(tmp_path, "a.f", BEFORE, BEFORE)], tmp_path) == b""


def test_a_long_file_with_few_changes_has_a_small_diff(tmp_path: Path) -> None:
    lines = [b"      end do\n", b"\n", b"c\n", b"      x = y\n"] * 5000
    changed = list(lines)
    for at in range(19000, 0, -1000):
        changed[at : at + 1] = [b"      call MPI_WAIT(r, s, e)\n", b"      x = z\n"]
    change = written(tmp_path, "a.f", b"".join(lines), b"".join(changed))
    assert count_lines(change) == (38, 19)


def test_a_file_that_is_another(tmp_path: Path) -> None:
    before, after = (b"".join(b"%d\n" % k for k in range(start, 9999, 2)) for start in (0, 1))
    assert count_lines(written(tmp_path, "a.f", before, after)) == (4999, 5000)


def test_the_fewest_lines() -> None:
    """Against the longest common subsequence by dynamic programming."""
    numbers = random.Random(3)
    for _ in range(300):
        old, new = ([b"%d" % numbers.randrange(4) for _ in range(numbers.randrange(12))] for _ in range(2))
        edits = find_edits(old, new)
        made, at = [], 0
        for edit in edits:
            made += [*old[at : edit.start], *new[edit.new_start : edit.new_end]]
            at = edit.end
        assert [*made, *old[at:]] == new
        longest = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
        for i, one in enumerate(old):
            for j, other in enumerate(new):
                longest[i + 1][j + 1] = longest[i][j] + 1 if one == other else max(longest[i][j + 1], longest[i + 1][j])
        changed = sum(edit.end - edit.start + edit.new_end - edit.new_start for edit in edits)
        assert changed == len(old) + len(new) - 2 * longest[-1][-1]


def test_files_elsewhere_move_the_folder_of_the_patch(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    assert common_folder([here / "a.f", here / "sub" / "b.f"], here) == here
    assert common_folder([tmp_path / "there" / "a.f", here / "b.f"], here) == tmp_path
    assert common_folder([tmp_path / "there" / "a.f"], here) == tmp_path / "there"


# ---- in place ------------------------------------------------------------


def test_in_place_keeps_mode_and_links(tmp_path: Path) -> None:
    change = written(tmp_path, "real.f", *CASES["latin-1"])
    change.path.chmod(0o751)
    (tmp_path / "link.f").symlink_to("real.f")
    write_in_place([FileChange(tmp_path / "link.f", change.before, change.after)])
    assert (tmp_path / "link.f").is_symlink()
    assert change.path.read_bytes() == change.after
    assert stat.S_IMODE(change.path.stat().st_mode) == 0o751
    assert sorted(os.listdir(tmp_path)) == ["link.f", "real.f"]


def test_a_file_that_changed_meanwhile_stops_all(tmp_path: Path) -> None:
    first, second = (written(tmp_path, name, *CASES["middle"]) for name in ("a.f", "b.f"))
    second.path.write_bytes(b"edited\n")
    with pytest.raises(LapwingError, match=r"b\.f: it was changed while"):
        write_in_place([first, second])
    assert first.path.read_bytes() == first.before
    assert second.path.read_bytes() == b"edited\n"
    assert sorted(os.listdir(tmp_path)) == ["a.f", "b.f"]


def test_a_file_that_is_gone_stops_all(tmp_path: Path) -> None:
    first, second = (written(tmp_path, name, *CASES["middle"]) for name in ("a.f", "b.f"))
    second.path.unlink()
    with pytest.raises(LapwingError, match=r"b\.f: cannot be written: No such file"):
        write_in_place([first, second])
    assert first.path.read_bytes() == first.before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written(tmp_path: Path) -> None:
    change = written(tmp_path, "a.f", *CASES["middle"])
    change.path.chmod(0o444)
    with pytest.raises(LapwingError, match="may not be written"):
        write_in_place([change])


# ---- into another folder ------------------------------------------------------------


def test_only_changed_files_are_written_where_they_lie(tmp_path: Path) -> None:
    change = written(tmp_path, "src/a.f", *CASES["windows"])
    change.path.chmod(0o640)
    other = written(tmp_path, "src/b.f", BEFORE, BEFORE)
    out = tmp_path / "out"
    assert write_to(out, [change], [change.path, other.path], tmp_path) == (out / "src/a.f",)
    assert (out / "src/a.f").read_bytes() == change.after
    assert stat.S_IMODE((out / "src/a.f").stat().st_mode) == 0o640
    assert not (out / "src/b.f").exists()
    assert change.path.read_bytes() == change.before


def test_a_second_run_replaces_what_the_first_wrote(tmp_path: Path) -> None:
    first, second = (written(tmp_path, name, *CASES["middle"]) for name in ("a.f", "b.f"))
    out, sources = tmp_path / "out", [first.path, second.path]
    write_to(out, [first, second], sources, tmp_path)
    again = FileChange(first.path, first.before, b"other\n")
    write_to(out, [again], sources, tmp_path)
    assert (out / "a.f").read_bytes() == b"other\n"
    # What is not changed any more would be built from an old file.
    assert not (out / "b.f").exists()


def test_another_run_leaves_other_sources_files(tmp_path: Path) -> None:
    first, second = (written(tmp_path, name, *CASES["middle"]) for name in ("a.f", "b.f"))
    out = tmp_path / "out"
    write_to(out, [first], [first.path], tmp_path)
    write_to(out, [second], [second.path], tmp_path)
    assert (out / "a.f").read_bytes() == first.after
    write_to(out, [first], [first.path], tmp_path)


def test_what_the_user_wrote_is_not_overwritten(tmp_path: Path) -> None:
    change = written(tmp_path, "a.f", *CASES["middle"])
    out = tmp_path / "out"
    write_to(out, [change], [change.path], tmp_path)
    (out / "a.f").write_bytes(b"my own work\n")
    with pytest.raises(RefusedError, match="did not write it as it is now"):
        write_to(out, [change], [change.path], tmp_path)
    assert write_to(out, [], [change.path], tmp_path) == ()
    assert (out / "a.f").read_bytes() == b"my own work\n"


def test_a_source_is_never_overwritten(tmp_path: Path) -> None:
    change = written(tmp_path, "a.f", *CASES["middle"])
    (tmp_path / "out").symlink_to(".")
    for folder in (tmp_path, tmp_path / "out"):
        with pytest.raises(RefusedError, match="is a source"):
            write_to(folder, [change], [change.path], tmp_path)
    assert change.path.read_bytes() == change.before


def test_no_change_makes_no_folder(tmp_path: Path) -> None:
    change = written(tmp_path, "a.f", BEFORE, BEFORE)
    write_to(tmp_path / "out", [], [change.path], tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    change = written(tmp_path, "a.f", *CASES["middle"])
    (tmp_path / "file").write_text("")
    with pytest.raises(LapwingError, match="cannot be written"):
        write_to(tmp_path / "file" / "out", [change], [change.path], tmp_path)


# ---- line ends ------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "ended"),
    [
        (b"a\r\nb\r\n", b"a\r\nnew\nb\r\n", b"a\r\nnew\r\nb\r\n"),
        (b"a\r\nb\r\nc\n", b"a\r\nnew\r\nb\r\nc\nlast", b"a\r\nnew\r\nb\r\nc\nlast"),
        (b"a\r\nb\n", b"a\r\nnew\nb\n", b"a\r\nnew\nb\n"),
        (b"a\nb\n", b"a\nnew\nb\n", b"a\nnew\nb\n"),
        (b"", b"new\n", b"new\n"),
    ],
)
def test_added_lines_end_as_most_do(before: bytes, after: bytes, ended: bytes) -> None:
    assert with_line_ends(before, after) == ended


PROGRAMS = {
    "a.c": (
        "#include <mpi.h>\nstatic double a[9000], b[9000];\nint main(int c, char **v)\n{\n    MPI_Init(&c, &v);\n"
        "    MPI_Recv(a, 9000, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "    for (int i = 0; i < 9000; i++)\n        b[i] = 2.0 * i;\n    MPI_Finalize();\n    return b[1] + a[1] > 0;\n}\n"
    ),
    "a.f90": (
        "program waits\n  use mpi\n  implicit none\n  real :: a(9000), b(9000)\n  integer :: i, code\n  call MPI_Init(code)\n"
        "  call MPI_Recv(a, 9000, MPI_REAL, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)\n"
        "  do i = 1, 9000\n    b(i) = 2.0 * i\n  end do\n  print *, b(1), a(1)\n  call MPI_Finalize(code)\nend program\n"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_other_line_ends_change_likewise(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    changes = []
    for end in (b"\n", b"\r\n"):
        path.write_bytes(PROGRAMS[name].encode().replace(b"\n", end))
        program = read_c([path]) if name.endswith(".c") else read_fortran([path])
        (change,) = rewrite(program, Options()).changes
        assert change.after.count(end) == change.after.count(b"\n")
        changes.append(change.after.replace(b"\r\n", b"\n"))
    assert b"\r" not in changes[1]
    assert changes[0] == changes[1]
