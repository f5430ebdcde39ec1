"""Finding compilers and MPI: order, refusals, and the real ones of this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lapwing.codegen.compilation import toolchain
from lapwing.codegen.compilation.exact_flags import flags_to_try
from lapwing.errors import BuildError
from lapwing.runtime.binding import native

ELF = b"\x7fELF and so on"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LAPWING_CC", "LAPWING_CXX", "LAPWING_MPICXX", "LAPWING_MPIEXEC"):
        monkeypatch.delenv(variable, raising=False)
    for cached in (toolchain._ask_version, toolchain._wrapped_command):
        cached.cache_clear()


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Return a function that makes the given directories all of PATH, and hides this environment's MPI."""

    def set_path(*directories: Path) -> None:
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, directories)))
        monkeypatch.setattr(sys, "prefix", str(tmp_path / "no-environment"))

    return set_path


def program(path: Path, version: str = "fake 1.2.3", show: str = "", option: str = "-show") -> Path:
    """Write a program that answers --version and, where `show` is given, one of -show and --showme."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = f'if [ "$1" = {option} ]; then echo "{show}"; exit 0; fi\n' if show else ""
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo; echo "{version}"; echo more; exit 0; fi\n'
        f'{answer}echo "$1: unknown" >&2\nexit 1\n'
    )
    path.chmod(0o755)
    return path


def library(path: Path, content: bytes = ELF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def link(path: Path, target: str | Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


# --- C and C++ compilers --------------------------------------------------------


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
def test_this_machines_compilers_answer() -> None:
    for compiler in (toolchain.find_c_compiler(), toolchain.find_cxx_compiler()):
        path, version = compiler.identity.splitlines()
        assert os.path.isabs(compiler.command[0])
        assert path == os.path.realpath(compiler.command[0])
        assert any(character.isdigit() for character in version)


@pytest.mark.parametrize(
    ("find", "names"),
    [
        (toolchain.find_c_compiler, ["cc", "gcc", "clang"]),
        (toolchain.find_cxx_compiler, ["c++", "g++", "clang++"]),
    ],
)
def test_first_name_on_path_wins(
    find: Callable[[], toolchain.Compiler], names: list[str], only: Callable[..., None], tmp_path: Path
) -> None:
    only(tmp_path)
    for name in reversed(names):
        expected = program(tmp_path / name, version=f"{name} 3.4.5")
        compiler = find()
        assert compiler.command == (str(expected),)
        assert compiler.identity == f"{expected}\n{name} 3.4.5"


@pytest.mark.parametrize(
    ("find", "said"),
    [
        (toolchain.find_c_compiler, ["cc, gcc, clang", "LAPWING_CC", "apt install gcc"]),
        (toolchain.find_cxx_compiler, ["c++, g++, clang++", "LAPWING_CXX", "apt install g++"]),
        (toolchain.find_mpi, ["PATH", "no-environment", "LAPWING_MPICXX", 'pip install "lapwing[mpich]"']),
    ],
)
def test_missing_says_what_was_looked_for(
    find: Callable[[], object], said: list[str], only: Callable[..., None], tmp_path: Path
) -> None:
    only(tmp_path)
    with pytest.raises(BuildError) as caught:
        find()
    for text in said:
        assert text in str(caught.value)


def test_variable_beats_path_and_may_hold_options(
    monkeypatch: pytest.MonkeyPatch, only: Callable[..., None], tmp_path: Path
) -> None:
    program(tmp_path / "path" / "cc")
    mine = program(tmp_path / "a place" / "mycc")
    only(tmp_path / "path")
    monkeypatch.setenv("LAPWING_CC", f"'{mine}' -m64")
    # The fake answers its first argument only, so the option follows what it is asked.
    mine.write_text('#!/bin/sh\necho "mine 9.8 $*"\n')
    compiler = toolchain.find_c_compiler()
    assert compiler.command == (str(mine), "-m64")
    assert compiler.identity == f"{mine}\nmine 9.8 -m64 --version"


@pytest.mark.parametrize("value", ["no-such-compiler -O2", "'unbalanced"])
def test_bad_variable_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CC", value)
    with pytest.raises(BuildError, match=r"LAPWING_CC is .*(no-such-compiler|unbalanced)"):
        toolchain.find_c_compiler()


def test_a_compiler_that_does_not_work_is_refused(only: Callable[..., None], tmp_path: Path) -> None:
    only(tmp_path)
    broken = tmp_path / "mpicxx"
    broken.write_text("#!/bin/sh\necho 'c++: command not found' >&2\nexit 127\n")
    broken.chmod(0o755)
    with pytest.raises(BuildError, match=r"status 127: c\+\+: command not found(.|\n)*apt install g\+\+"):
        toolchain.find_mpi()
    (tmp_path / "cc").write_text("no program\n")
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(BuildError, match="cannot be started"):
        toolchain.find_c_compiler()


def test_a_compiler_is_asked_once(only: Callable[..., None], tmp_path: Path) -> None:
    only(tmp_path)
    counter = tmp_path / "asked"
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho x >> {counter}\necho cc 1.0\n")
    compiler.chmod(0o755)
    assert toolchain.find_c_compiler() == toolchain.find_c_compiler()
    assert counter.read_text() == "x\n"


@pytest.mark.parametrize(
    ("identity", "label"),
    [
        ("/usr/bin/gcc-12\ngcc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc 12.2"),
        ("/usr/bin/gcc\nDebian clang version 14.0.6", "gcc 14.0"),
        (
            "/usr/bin/gcc\nc++ (Debian 12.2.0-14) 12.2.0\n/usr/bin/g++ -lmpi\n/libmpi.so 5 bytes",
            "gcc (g++ 12.2)",
        ),
        ("/usr/bin/gcc\nsays nothing", "gcc"),
        ("unknown", "gcc"),
    ],
)
def test_label_is_short(identity: str, label: str) -> None:
    assert toolchain.Compiler(("/usr/bin/gcc",), identity).label == label


# --- MPI ------------------------------------------------------------------------


def wheel(prefix: Path) -> Path:
    """Lay out an MPI as the mpich wheel does: no symbolic links, a linker script for the development name."""
    library(prefix / "lib" / "libmpi.so", b"INPUT(libmpi.so.12)\n")
    library(prefix / "lib" / "libmpi.so.12")
    program(prefix / "bin" / "mpiexec")
    show = f"c++ -I{prefix}/include -L{prefix}/lib -Wl,-rpath -Wl,{prefix}/lib -lmpi"
    return program(prefix / "bin" / "mpicxx", show=show)


def debian(root: Path, default: str) -> None:
    """Lay out Debian's two MPIs side by side, mpicxx leading to `default` and mpiexec to the other one."""
    binaries, libraries = root / "usr/bin", root / "usr/lib"
    show = f"g++ -L{libraries}/openmpi/lib -lmpi_cxx -lmpi"
    program(binaries / "opal_wrapper", show=show, option="--showme")
    link(binaries / "mpic++.openmpi", "opal_wrapper")
    program(binaries / "orterun")
    link(binaries / "mpiexec.openmpi", "orterun")
    library(libraries / "libmpi.so.40.30.4")
    link(libraries / "libmpi.so.40", "libmpi.so.40.30.4")
    link(libraries / "openmpi/lib/libmpi.so", "../../libmpi.so.40")

    program(binaries / "mpicxx.mpich", show=f"g++ -Wl,-z,relro -L{libraries} -lmpichcxx -lmpich")
    program(binaries / "mpiexec.hydra")
    link(binaries / "mpiexec.mpich", "mpiexec.hydra")
    library(libraries / "libmpich.so.12.2.2")
    link(libraries / "libmpich.so.12", "libmpich.so.12.2.2")
    link(libraries / "libmpich.so", "libmpich.so.12.2.2")

    alternatives = root / "etc/alternatives"
    wrappers = {"openmpi": "mpic++.openmpi", "mpich": "mpicxx.mpich"}
    other = "mpich" if default == "openmpi" else "openmpi"
    link(alternatives / "mpicxx", binaries / wrappers[default])
    link(alternatives / "mpiexec", binaries / f"mpiexec.{other}")
    link(binaries / "mpicxx", alternatives / "mpicxx")
    link(binaries / "mpiexec", alternatives / "mpiexec")


def test_wheel_is_found_without_activation(
    only: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    only(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    wrapper = wheel(tmp_path / "venv")
    found = toolchain.find_mpi()
    assert found.mpicxx.command == (str(wrapper),)
    assert found.mpiexec == tmp_path / "venv/bin/mpiexec"
    assert found.library == tmp_path / "venv/lib/libmpi.so.12"


def test_path_beats_the_environment_and_the_variable_beats_path(
    only: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel(tmp_path / "venv")
    on_path = wheel(tmp_path / "cluster")
    named = wheel(tmp_path / "named")
    only(on_path.parent)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    assert toolchain.find_mpi().mpicxx.command == (str(on_path),)
    monkeypatch.setenv("LAPWING_MPICXX", str(named))
    assert toolchain.find_mpi().mpicxx.command == (str(named),)
    assert toolchain.find_mpi().mpiexec == named.parent / "mpiexec"


def test_the_environment_beats_the_systems_own_directories(
    only: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own, system, wanted = (wheel(tmp_path / name) for name in ("venv", "system", "module"))
    monkeypatch.setattr(toolchain.os, "defpath", str(system.parent))
    only(system.parent)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    assert toolchain.find_mpi().mpicxx.command == (str(own),)
    monkeypatch.delenv("PATH")
    assert toolchain.find_mpi().mpicxx.command == (str(own),)
    # What somebody put on PATH is meant, and an environment that is on PATH has its place there.
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (wanted.parent, system.parent))))
    assert toolchain.find_mpi().mpicxx.command == (str(wanted),)
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (system.parent, own.parent))))
    assert toolchain.find_mpi().mpicxx.command == (str(system),)


def test_the_launchers_mpi_is_that_of_its_ranks(
    only: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours, other = wheel(tmp_path / "launcher"), wheel(tmp_path / "path")
    only(other.parent)
    monkeypatch.setattr(toolchain.os, "readlink", lambda path: str(ours.parent / "hydra_pmi_proxy"))
    assert toolchain._mpicxx_command() == (str(ours),)
    monkeypatch.setattr(toolchain.os, "readlink", lambda path: str(ours.parent / "bash"))
    assert toolchain._mpicxx_command() == (str(other),)


def test_compilers_have_a_path_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        monkeypatch.delenv("PATH", raising=False)
        if value is not None:
            monkeypatch.setenv("PATH", value)
        assert toolchain.compiler_environment()["PATH"] == os.defpath


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
@pytest.mark.parametrize("name", ["g++", "mpicc"])
def test_a_compiler_of_no_mpi_is_refused_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here")
    monkeypatch.setenv("LAPWING_MPICXX", name)
    with pytest.raises(BuildError, match=r"LAPWING_MPICXX is .*, which is not the C\+\+ compiler of an MPI.*unset it"):
        toolchain.find_mpi()


@pytest.mark.parametrize(("default", "soname"), [("openmpi", "libmpi.so.40"), ("mpich", "libmpich.so.12")])
def test_debian_launcher_and_library_belong_to_the_wrapper(
    default: str, soname: str, only: Callable[..., None], tmp_path: Path
) -> None:
    debian(tmp_path, default)
    only(tmp_path / "usr/bin")
    found = toolchain.find_mpi()
    assert found.mpicxx.command == (str(tmp_path / "usr/bin/mpicxx"),)
    assert found.mpiexec.name == f"mpiexec.{default}"
    assert found.library is not None
    assert found.library.name == soname
    assert found.library.resolve().is_relative_to(tmp_path / "usr/lib")


def test_launcher_beside_the_real_wrapper(only: Callable[..., None], tmp_path: Path) -> None:
    wrapper = wheel(tmp_path / "opt")
    (wrapper.parent / "mpiexec").rename(wrapper.parent / "mpiexec.hydra")
    link(tmp_path / "bin" / "mpicxx", wrapper)
    only(tmp_path / "bin")
    assert toolchain.find_mpi().mpiexec == wrapper.parent / "mpiexec.hydra"


def test_missing_launcher_is_refused_or_chosen(
    only: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrapper = wheel(tmp_path / "opt")
    (wrapper.parent / "mpiexec").unlink()
    only(wrapper.parent)
    with pytest.raises(BuildError, match=r"no MPI launcher found(.|\n)*LAPWING_MPIEXEC"):
        toolchain.find_mpi()
    launcher = program(tmp_path / "slurm" / "srun")
    monkeypatch.setenv("LAPWING_MPIEXEC", str(launcher))
    assert toolchain.find_mpi().mpiexec == launcher
    monkeypatch.setenv("LAPWING_MPIEXEC", f"{launcher} --mpi=pmix")
    with pytest.raises(BuildError, match="one program without options"):
        toolchain.find_mpi()


def test_wrapper_that_tells_nothing_has_no_library(only: Callable[..., None], tmp_path: Path) -> None:
    program(tmp_path / "mpicxx")
    program(tmp_path / "mpiexec")
    only(tmp_path)
    assert toolchain.find_mpi().library is None


def test_library_the_linker_finds_by_itself(only: Callable[..., None], tmp_path: Path) -> None:
    library(tmp_path / "lib/libmpi.so.12.1.8")
    link(tmp_path / "lib/libmpi.so", "libmpi.so.12.1.8")
    soname = link(tmp_path / "lib/libmpi.so.12", "libmpi.so.12.1.8")
    library(tmp_path / "lib/libmpi.so.11", ELF + b" of an older release")
    wrapper = program(tmp_path / "bin/mpicxx", show="g++ -lmpi")
    text = wrapper.read_text()
    answer = f'if [ "$1" = -print-file-name=libmpi.so ]; then echo {tmp_path}/lib/libmpi.so; exit 0; fi\n'
    wrapper.write_text(text.replace("#!/bin/sh\n", "#!/bin/sh\n" + answer))
    program(tmp_path / "bin/mpiexec")
    only(wrapper.parent)
    assert toolchain.find_mpi().library == soname


def test_identity_tells_one_mpi_from_another_in_the_same_place(only: Callable[..., None], tmp_path: Path) -> None:
    wrapper = wheel(tmp_path)
    only(wrapper.parent)
    before = toolchain.find_mpi().mpicxx.identity
    assert f"-L{tmp_path}/lib" in before
    library(tmp_path / "lib/libmpi.so.12", ELF + b" of the next release")
    assert toolchain.find_mpi().mpicxx.identity != before


def real_mpi() -> toolchain.MpiInstallation:
    try:
        return toolchain.find_mpi()
    except BuildError as error:
        pytest.skip(f"no MPI here: {error}")


def test_real_library_is_the_one_a_program_links(tmp_path: Path) -> None:
    mpi = real_mpi()
    source = tmp_path / "program.cpp"
    source.write_text("#include <mpi.h>\nint main() { int v, s; return MPI_Get_version(&v, &s); }\n")
    subprocess.run([*mpi.mpicxx.command, "-o", tmp_path / "program", source], check=True)
    listed = subprocess.run(["ldd", tmp_path / "program"], check=True, capture_output=True, text=True).stdout
    assert mpi.library is not None
    linked = [line.split()[2] for line in listed.splitlines() if line.split()[0] == mpi.library.name]
    assert [os.path.realpath(path) for path in linked] == [os.path.realpath(mpi.library)]


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="no mpi4py here")
def test_mpi4py_loads_the_real_library() -> None:
    mpi = real_mpi()
    if mpi.library is None or mpi.library.name not in ("libmpi.so.12", "libmpi.so.40"):
        pytest.skip(f"mpi4py's wheels ask for libmpi.so.12 or libmpi.so.40, this MPI is {mpi.library}")
    script = "from mpi4py import MPI; print(open('/proc/self/maps').read())"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "MPI4PY_LIBMPI": str(mpi.library)},
        check=True,
        capture_output=True,
        text=True,
    )
    mapped = {line.split()[-1] for line in ran.stdout.splitlines() if "/libmpi" in line}
    assert {os.path.realpath(path) for path in mapped} == {os.path.realpath(mpi.library)}


# --- the processor --------------------------------------------------------------


def test_cpu_identity_changes_with_model_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    def identity(text: str) -> str:
        monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
        return toolchain.cpu_identity.__wrapped__()

    first = identity("processor : 0\nmodel name : A 1\nflags : sse avx\ncpu MHz : 1000\n\nprocessor : 1\n")
    assert "avx sse" in first
    assert first == identity("processor : 0\nmodel name : A 1\nflags : avx sse\ncpu MHz : 2000\n")
    assert first != identity("processor : 0\nmodel name : A 1\nflags : sse avx avx2\n")
    assert first != identity("processor : 0\nmodel name : B 2\nflags : sse avx\n")


def test_cpu_identity_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    monkeypatch.setattr("platform.processor", lambda: "some core")
    assert toolchain.cpu_identity.__wrapped__() == "riscv64\nsome core"


def test_flags_are_those_of_the_compiler() -> None:
    flags = ("-O3", "-fno-tree-loop-distribution", "-fno-tree-loop-vectorize")
    assert toolchain.Compiler(("/usr/bin/cc",), "/usr/bin/gcc-12\ncc (Debian 12.2.0) 12.2.0").spelled(flags) == flags
    clang = toolchain.Compiler(("/usr/bin/cc",), "/usr/lib/llvm-16/bin/clang\nDebian clang version 16.0.6")
    assert clang.spelled(flags) == ("-O3", "-fno-vectorize")


GCC_12 = toolchain.Compiler(("/usr/bin/cc",), "/usr/bin/gcc-12\ncc (Debian 12.2.0-14) 12.2.0")


@pytest.mark.parametrize(
    ("compiler", "waits", "halves", "table"),
    [
        (GCC_12, True, False, "-mtune=skylake"),
        (GCC_12, False, True, "-mtune=skylake-avx512"),
        (GCC_12, False, False, None),
        (toolchain.Compiler(("cc",), "/usr/bin/gcc-15\ncc (Debian 15.1.0-1) 15.1.0"), True, False, None),
        (toolchain.Compiler(("cc",), "/usr/bin/clang\nDebian clang version 12.0.1"), True, False, None),
    ],
)
def test_tuning_is_for_processors_and_compilers_of_which_it_is_known(
    compiler: toolchain.Compiler, waits: bool, halves: bool, table: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "has_slow_line_splits", lambda: waits)
    monkeypatch.setattr(toolchain, "computes_in_halves", lambda: halves)
    assert next(iter(compiler.tuning()), None) == table


@pytest.mark.parametrize("name", ["gcc", "clang", "clang-14", "clang-16"])
def test_tiles_compile_with_the_flags_of_each_compiler(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here")
    source = tmp_path / "empty.c"
    source.write_text("int x;\n", encoding="ascii")
    more = [flag for tried in flags_to_try("") for flag in tried]
    version = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    compiler = toolchain.Compiler((name,), f"{name}\n{version}")
    flags = (*compiler.spelled((*native.TILE_FLAGS, *more)), *compiler.tuning())
    command = [name, *flags, "-c", str(source), "-o", str(tmp_path / "empty.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
