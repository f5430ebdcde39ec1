"""The command `lapwing overlap`, with a transformation that stands for the real ones: it shouts every MPI call it finds."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from limits import scaled

from lapwing.cli.main import main
from lapwing.errors import RefusedError
from lapwing.overlap import driver
from lapwing.overlap.driver import Request
from lapwing.overlap.languages.selection import find_sources
from lapwing.overlap.report.outcome import Action, Communication, Outcome, Place, Refusal
from lapwing.overlap.source.patch import FileChange
from lapwing.overlap.source.spans import Problem
from lapwing.overlap.verify import runs

FORTRAN = b"""\
      program hello
c gr\xfc\xdfe
      call mpi_send(a)
      x = 1

      y = 2




      call mpi_barrier(c)
      end
"""
SHOUTED = FORTRAN.replace(b"call mpi_send(a)", b"call MPI_ISEND(a)")


@dataclass
class Done:
    status: int
    output: bytes
    errors: str


class Core:
    """Stands for reading and rewriting; remembers what it was asked."""

    def __init__(self) -> None:
        self.request: Request | None = None

    def transform(self, request: Request, unread: Sequence[Problem]) -> Outcome:
        self.request = request
        communications, changes = [], []
        for path in request.files:
            data = path.read_bytes()
            for number, line in enumerate(data.decode("latin-1").split("\n"), 1):
                place = Place(path, number, line.strip())
                if "mpi_send" in line:
                    action = Action("nonblocking", "a blocking send became a nonblocking one", place)
                    communications.append(
                        Communication(place, "MPI_Send", "hello", None, None, "line 3", actions=(action,))
                    )
                elif "mpi_barrier" in line:
                    refusal = Refusal(
                        "nonblocking", "the call only moves data", "it synchronises", None, "Leave it out."
                    )
                    communications.append(
                        Communication(place, "MPI_Barrier", "hello", None, None, "line 11", refusals=(refusal,))
                    )
            shouted = data.replace(b"call mpi_send(a)", b"call MPI_ISEND(a)")
            if shouted != data:
                changes.append(FileChange(path, data, shouted))
        for folder in request.includes:
            shared = folder / "shared.h"
            changes.append(FileChange(shared, shared.read_bytes(), b"/* changed */\n"))
        return Outcome(tuple(communications), tuple(changes), tuple(unread), 0.5)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Core:
    core = Core()
    monkeypatch.setattr(driver, "transform", core.transform)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello.f").write_bytes(FORTRAN)
    return core


@pytest.fixture
def any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """What --verify runs need not be an MPI program."""
    monkeypatch.setattr(runs._Runner, "traced", lambda self, verification: verification)


def lapwing(capture: pytest.CaptureFixture[bytes], *arguments: str) -> Done:
    with pytest.raises(SystemExit) as raised:
        main(["overlap", *arguments])
    captured = capture.readouterr()
    errors = captured.err.decode()
    assert "Traceback" not in errors
    assert "internal error" not in errors
    assert isinstance(raised.value.code, int)
    return Done(raised.value.code, captured.out, errors)


# ---- what comes out ------------------------------------------------------------


def test_a_patch_and_nothing_else_on_standard_output(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    done = lapwing(capfdbinary, "hello.f")
    assert done.status == 0
    assert done.output.startswith(
        b"--- a/hello.f\n+++ b/hello.f\n@@ -1,6 +1,6 @@\n       program hello\n c gr\xfc\xdfe\n-"
    )
    assert "2 communications in 1 file: 1 rewritten, 1 left as it is." in done.errors
    assert "nonblocking 1" in done.errors
    assert "the call only moves data" in done.errors
    assert Path("hello.f").read_bytes() == FORTRAN
    assert lapwing(capfdbinary, "--diff", "hello.f").output == done.output
    if shutil.which("patch"):
        subprocess.run(["patch", "-p1"], input=done.output, check=True, timeout=scaled(60), capture_output=True)
        assert Path("hello.f").read_bytes() == SHOUTED


def test_a_program_without_mpi(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("plain.c").write_text("int main(void) { return 0; }\n")
    done = lapwing(capfdbinary, "plain.c")
    assert (done.status, done.output) == (0, b"")
    assert "no MPI communication found; nothing to change." in done.errors


def test_nothing_to_change(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("hello.f").write_bytes(SHOUTED)
    for arguments in (["--in-place"], ["-o", "out"], []):
        done = lapwing(capfdbinary, "hello.f", *arguments)
        assert (done.status, done.output) == (0, b"")
        assert "1 communication in 1 file: 0 rewritten, 1 left as it is." in done.errors
    assert not Path("out").exists()


def test_in_place(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("other.f").write_bytes(SHOUTED)
    before = os.stat("other.f")
    done = lapwing(capfdbinary, ".", "--in-place")
    assert (done.status, done.output) == (0, b"")
    assert "changed hello.f" in done.errors
    assert "other.f" not in done.errors
    assert Path("hello.f").read_bytes() == SHOUTED
    assert os.stat("other.f").st_mtime_ns == before.st_mtime_ns
    assert os.stat("other.f").st_ino == before.st_ino


def test_into_a_folder(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("src").mkdir()
    Path("src/hello.f").write_bytes(FORTRAN)
    done = lapwing(capfdbinary, "src", "-o", "out")
    assert (done.status, done.output) == (0, b"")
    assert "wrote out/src/hello.f" in done.errors
    assert Path("out/src/hello.f").read_bytes() == SHOUTED
    assert Path("src/hello.f").read_bytes() == FORTRAN
    assert lapwing(capfdbinary, "src", "-o", "out").status == 0


@pytest.mark.usefixtures("any_program")
def test_an_include_file_elsewhere_changes(
    core: Core, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("include", "src"):
        Path(folder).mkdir()
    Path("include/shared.h").write_text("int x;\n")
    Path("hello.f").rename("src/hello.f")
    monkeypatch.chdir("src")
    arguments = (
        "hello.f",
        "-I",
        "../include",
        "-o",
        "out",
        "--verify",
        "grep -ci mpi_ hello.f || grep -ci mpi_ src/hello.f",
    )
    done = lapwing(capfdbinary, *arguments)
    assert done.status == 0, done.errors
    assert Path("out/include/shared.h").read_text() == "/* changed */\n"
    assert Path("out/src/hello.f").read_bytes() == SHOUTED
    assert Path("../include/shared.h").read_text() == "int x;\n"


def test_a_source_is_not_overwritten_by_o(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    done = lapwing(capfdbinary, "hello.f", "-o", ".")
    assert done.status == 2
    assert "is a source" in done.errors
    assert Path("hello.f").read_bytes() == FORTRAN


def test_the_patch_of_files_elsewhere_names_its_folder(
    core: Core, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("sub").mkdir()
    monkeypatch.chdir("sub")
    done = lapwing(capfdbinary, "../hello.f")
    assert done.output.startswith(b"--- a/hello.f\n")
    assert f"patch -d {Path.cwd().parent} -p1" in done.errors


def test_reports(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    done = lapwing(capfdbinary, "hello.f", "--report", "new/r.txt", "--json", "r.json", "--sarif", "r.sarif")
    assert done.status == 0
    assert done.output.startswith(b"---")
    text = Path("new/r.txt").read_text(encoding="utf-8")
    assert "hello.f:3  MPI_Send in hello" in text
    assert "Leave it out." in text
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert document["schema"] == 1
    assert [c["rewritten"] for c in document["communications"]] == [True, False]
    assert document["verification"] is None
    sarif = json.loads(Path("r.sarif").read_text(encoding="utf-8"))
    assert [result["level"] for result in sarif["runs"][0]["results"]] == ["note", "warning"]


@pytest.mark.parametrize("option", ["--report", "--json", "--sarif"])
def test_one_report_may_be_on_standard_output(
    core: Core, capfdbinary: pytest.CaptureFixture[bytes], option: str
) -> None:
    lapwing(capfdbinary, "hello.f", option, "in_a_file")
    done = lapwing(capfdbinary, "hello.f", option, "-", "-o", "out")
    assert done.status == 0
    assert done.output == Path("in_a_file").read_bytes()
    assert Path("out/hello.f").read_bytes() == SHOUTED
    assert not Path("-").exists()
    assert lapwing(capfdbinary, "hello.f", option, "-").output == done.output
    assert lapwing(capfdbinary, "hello.f", option, "-", "--diff").status == 2


def test_a_folder_that_is_made_for_a_report_is_named(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert "--json new/r.json: made the folder new." in lapwing(capfdbinary, "hello.f", "--json", "new/r.json").errors
    assert "made the folder" not in lapwing(capfdbinary, "hello.f", "--json", "new/r.json").errors


def test_explain(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    done = lapwing(capfdbinary, "hello.f", "--explain", "hello.f:10")
    assert done.status == 0
    assert done.output.startswith(b"hello.f:11  MPI_Barrier in hello\n")
    assert b"MPI_Send" not in done.output
    assert b"advice    Leave it out." in done.output
    missing = lapwing(capfdbinary, "hello.f", "--explain", "hello.f:99")
    assert (missing.status, missing.output) == (2, b"")
    assert "the nearest are at hello.f:11, hello.f:3" in missing.errors


@pytest.mark.usefixtures("any_program")
def test_what_is_verified_is_written(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments = ["hello.f", "--in-place", "--json", "r.json", "--verify", "grep -ci mpi_ hello.f"]
    done = lapwing(capfdbinary, *arguments)
    assert done.status == 0
    assert "verified: the same output, 1 line (" in done.errors
    assert Path("hello.f").read_bytes() == SHOUTED
    verification = json.loads(Path("r.json").read_text(encoding="utf-8"))["verification"]
    assert (verification["same"], verification["exposed"]) == (True, None)
    assert "nothing to verify" in lapwing(capfdbinary, *arguments).errors


@pytest.mark.parametrize("way", [["--in-place"], ["-o", "out"], []])
def test_what_differs_is_not_written(core: Core, capfdbinary: pytest.CaptureFixture[bytes], way: list[str]) -> None:
    done = lapwing(capfdbinary, "hello.f", *way, "--json", "r.json", "--verify", "cat hello.f")
    assert done.status == 1
    assert "transformed, line 3:       call MPI_ISEND(a)" in done.errors
    assert Path("hello.f").read_bytes() == FORTRAN
    assert not Path("out").exists()
    # A patch is looked at before it is applied.
    assert done.output.startswith(b"---") is (way == [])
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["verification"]["same"] is False


@pytest.mark.parametrize("way", [["--in-place"], ["-o", "out"]])
@pytest.mark.parametrize("command", ["grep -ci mpi_ hello.f", "true", ""])
def test_what_did_not_run_is_not_written(
    core: Core, capfdbinary: pytest.CaptureFixture[bytes], way: list[str], command: str
) -> None:
    done = lapwing(capfdbinary, "hello.f", *way, "--verify", command)
    assert done.status == 1
    assert "NOT verified, though the output is the same: no process of" in done.errors
    assert "nothing was written" in done.errors
    assert Path("hello.f").read_bytes() == FORTRAN
    assert not Path("out").exists()


# ---- what goes in ------------------------------------------------------------


def test_options_reach_the_core(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("compile_commands.json").write_text("[]")
    for folder in ("inc", "../more"):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "shared.h").write_text("")
    lapwing(capfdbinary, *"-Iinc -I ../more -D N=3 -DFAST -D E= -p . --no-progress-calls hello.f".split())
    assert core.request is not None
    assert core.request.files == (Path("hello.f"),)
    assert core.request.includes == (Path("inc"), Path("../more"))
    assert core.request.defines == (("N", "3"), ("FAST", "1"), ("E", ""))
    assert core.request.compile_commands == Path("compile_commands.json")
    assert core.request.options.progress_calls is False
    assert core.request.options.transformations is None


def test_what_was_written_by_o_is_no_source(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for _ in range(2):
        assert lapwing(capfdbinary, ".", "-o", "out").status == 0
        assert core.request is not None
        assert core.request.files == (Path("hello.f"),)
    Path("made/by/hand").mkdir(parents=True)
    Path("made/by/hand/one.f").write_bytes(FORTRAN)
    done = lapwing(capfdbinary, ".", "-o", "made/by")
    assert core.request.files == (Path("hello.f"),)
    assert "out: it was not searched for sources: -o wrote into it" in done.errors
    # A folder that is named is searched, whatever it is.
    lapwing(capfdbinary, "out")
    assert core.request.files == (Path("out/hello.f"),)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("heat.c", "\n/* lapwing: what overlapped communication needs. A slot is one call's request */\n"),
        ("heat.c", "/* lapwing: lets MPI go on with what is under way, about every 30 microseconds. */\n"),
        ("heat.f90", "      ! lapwing: what overlapped communication needs\n"),
    ],
)
def test_what_has_been_rewritten_already(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    done = lapwing(capfdbinary, ".", "--in-place")
    assert (done.status, done.output) == (2, b"")
    assert f"{name} has been rewritten already: nothing was changed." in done.errors


def test_transformations_are_chosen(core: Core, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    lapwing(capfdbinary, *"hello.f --only nonblocking --only wait-later --skip wait-later".split())
    assert core.request is not None
    assert core.request.options.transformations == {"nonblocking"}
    lapwing(capfdbinary, *"hello.f --skip pipeline-loop".split())
    assert core.request.options.transformations is not None
    assert {"nonblocking", "wait-later"} < core.request.options.transformations
    assert "pipeline-loop" not in core.request.options.transformations


def test_folders_are_searched(tmp_path: Path) -> None:
    names = "b.f a.F90 deep/c.cpp deep/d.C notes.txt e.h .hidden/f.c .g.c build/h.c cmake-build-debug/i.c made/j.c"
    for name in [*names.split(), "made/CMakeCache.txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "deep" / "round").symlink_to(tmp_path)
    found = find_sources([tmp_path])
    assert [str(path.relative_to(tmp_path)) for path in found.files] == ["a.F90", "b.f", "deep/c.cpp", "deep/d.C"]
    assert found.problems == ()


def test_every_file_once(tmp_path: Path) -> None:
    (tmp_path / "a.f").write_text("")
    (tmp_path / "link.f").symlink_to("a.f")
    found = find_sources([tmp_path / "a.f", tmp_path, tmp_path / "." / "a.f"])
    assert found.files == (tmp_path / "a.f",)


def test_what_cannot_be_read_is_a_problem_and_the_rest_is_done(
    core: Core, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    Path("gone.f").symlink_to("nowhere.f")
    Path("Makefile").write_text("")
    Path("folder.f").mkdir()
    done = lapwing(capfdbinary, "gone.f", "Makefile", "folder.f", "hello.f")
    assert done.status == 0
    assert done.output.startswith(b"--- a/hello.f")
    assert "gone.f: it was not read: No such file or directory" in done.errors
    assert "Makefile: it was not read: its name ends in none of" in done.errors


@pytest.mark.parametrize("entered", [False, True])
def test_a_folder_that_may_not_be_searched(
    core: Core, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, entered: bool
) -> None:
    Path("src/closed").mkdir(parents=True)
    Path("hello.f").rename("src/hello.f")
    really_scan, really_stat = os.scandir, os.stat

    def scan(path: str) -> object:
        if os.path.basename(path) == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return really_scan(path)

    def stat(path: str | Path, **options: bool) -> os.stat_result:
        if "closed/" in os.fspath(path) and not entered:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return really_stat(path, **options)

    monkeypatch.setattr(os, "scandir", scan)
    monkeypatch.setattr(os, "stat", stat)
    done = lapwing(capfdbinary, "src")
    assert (done.status, done.output[:15]) == (0, b"--- a/src/hello"), done.errors
    assert "src/closed: it was not searched for sources: Permission denied" in done.errors
    done = lapwing(capfdbinary, "src/closed")
    assert (done.status, done.output) == (2, b"")
    assert "src/closed: it was not searched for sources: Permission denied" in done.errors


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_named(core: Core, capfdbinary: pytest.CaptureFixture[bytes], encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    Path("wide.f").write_bytes((mark + FORTRAN.decode("latin-1")).encode(encoding))
    for arguments, status in ((["wide.f"], 2), (["."], 0)):
        done = lapwing(capfdbinary, *arguments)
        assert done.status == status
        assert "wide.f: it was not read: it is UTF-16. Convert it to UTF-8" in done.errors
        assert b"wide.f" not in done.output


def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "gone.f").symlink_to("nowhere.f")
    with pytest.raises(RefusedError, match="no source that can be read") as raised:
        find_sources([tmp_path])
    assert "nowhere" not in str(raised.value)
    assert "gone.f: it was not read: No such file" in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "SOURCE"),
        ("nothing.f", "nothing.f: there is no such file or folder"),
        ("''", "an empty name"),
        ("hello.f --bogus", "--bogus"),
        ("hello.f --in-place -o out", "-o and --in-place exclude each other"),
        ("hello.f --diff --in-place", "--diff and --in-place exclude each other"),
        ("hello.f --in-place --explain hello.f:3", "exclude each other"),
        ("hello.f --explain hello.f", "expected FILE:LINE"),
        ("hello.f --explain hello.f:0", "expected FILE:LINE"),
        ("hello.f --explain :3", "expected FILE:LINE"),
        ("hello.f --only sideways", "expected one of nonblocking, "),
        ("hello.f --only nonblocking --skip nonblocking", "no transformation to make"),
        ("hello.f -D 3=x", "expected NAME or NAME=VALUE"),
        ("hello.f -p no.json", "no.json"),
        ("hello.f -o hello.f", "hello.f"),
        ("hello.f --json /dev/null/x", "/dev/null/x"),
        ("hello.f --timeout 0 --verify true", "--timeout"),
    ],
)
def test_wrong_usage(core: Core, capfdbinary: pytest.CaptureFixture[bytes], arguments: str, said: str) -> None:
    done = lapwing(capfdbinary, *shlex.split(arguments))
    assert (done.status, done.output) == (2, b"")
    assert said in done.errors
    assert Path("hello.f").read_bytes() == FORTRAN


def test_help_teaches_and_imports_little() -> None:
    code = (
        "import sys; from lapwing.cli.main import main\n"
        "try: main(['overlap', '--help'])\n"
        "finally: print(sorted({'numpy', 'islpy', 'tree_sitter', 'clang'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=scaled(60), check=False)
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"
    for word in ("Examples:", "--verify", "patch -p1", "Exit status", "--in-place"):
        assert word in done.stdout


# ---- with the real transformations ------------------------------------------------------------------------------------------

RECEIVER = """
program waits
  use mpi
  implicit none
  real :: a(1000), b(1000)
  integer :: i, code, status(MPI_STATUS_SIZE)
  call MPI_Init(code)
  call MPI_Recv(a, 1000, MPI_REAL, 0, 1, MPI_COMM_WORLD, status, code)
  do i = 1, 1000
    b(i) = 2.0 * i
  end do
  print *, b(1), a(1)
  call MPI_Finalize(code)
end program
"""
SENDER = "#include <mpi.h>\nvoid tell(float *a) { MPI_Send(a, 1000, MPI_FLOAT, 1, 1, MPI_COMM_WORLD); }\n"


def test_messages_between_two_languages_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("waits.f90").write_text(RECEIVER)
    Path("plain.c").write_text("int one(void) { return 1; }\n")
    done = lapwing(capfdbinary, ".", "--json", "r.json")
    assert done.status == 0
    assert done.output.startswith(b"--- a/waits.f90\n")
    Path("tell.c").write_text(SENDER)
    done = lapwing(capfdbinary, ".", "--json", "r.json")
    assert (done.status, done.output) == (0, b"")
    assert "Fortran and C both call MPI here" in done.errors
    calls = [c["call"] for c in json.loads(Path("r.json").read_text(encoding="utf-8"))["communications"]]
    assert "MPI_Recv" in calls
    assert "MPI_Send" in calls


# ---- several main programs ------------------------------------------------------------------------------------------

TALKER = SENDER + "int main(int c, char **v) { MPI_Init(&c, &v); MPI_Finalize(); return 0; }\n"


@pytest.mark.parametrize(
    ("files", "places"),
    [
        ({"a.c": TALKER, "b.c": "\n" + TALKER.replace("tell", "say")}, ("a.c:3", "b.c:4")),
        ({"a.f90": RECEIVER, "b.f90": RECEIVER.replace("program waits", "program looks")}, ("a.f90:2", "b.f90:2")),
        ({"a.f90": RECEIVER, "b.f90": RECEIVER}, ("a.f90:2", "b.f90:2")),
        ({"a.f90": RECEIVER, "b.f90": RECEIVER.replace("program waits\n", "", 1)}, ("a.f90:2", "b.f90:2")),
    ],
)
def test_two_main_programs_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    files: dict[str, str],
    places: tuple[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).write_text(text)
    done = lapwing(capfdbinary, ".", "--in-place", "--json", "r.json")
    assert (done.status, done.output) == (2, b"")
    assert f"{places[0]} and {places[1]}" in done.errors
    assert "one program at a time" in done.errors
    assert {name: Path(name).read_text() for name in files} == files
    assert not Path("r.json").exists()
    for name in files:
        assert lapwing(capfdbinary, name).status == 0


def test_mains_of_which_one_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    other = "#ifdef TEST\nint main(void) { return 0; }\n#endif\n"
    Path("a.c").write_text(TALKER.replace("int main", f"{other}#ifndef TEST\nint main") + "#endif\n")
    Path("b.c").write_text(other)
    Path("a.f90").write_text("#ifdef TEST\nprogram test\nend program\n#endif\n")
    Path("b.f90").write_text("program plain\nend program\n")
    Path("piece.f90").write_text("x = 1\n")
    assert lapwing(capfdbinary, ".").status == 0
    Path("test.c").write_text("int main(void) { return 0; }\n")
    entry = {"directory": str(tmp_path), "file": "a.c", "command": "cc a.c"}
    Path("compile_commands.json").write_text(json.dumps([entry]))
    done = lapwing(capfdbinary, ".", "-p", ".")
    assert done.status == 0
    assert "test.c:1: main could not be read: another main, in a.c, was read before" in done.errors
    assert lapwing(capfdbinary, ".").status == 2
