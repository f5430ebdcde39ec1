"""The lab and `lapwing run --hosts lab`: it is made whole or not at all, limits its links, and a cut link ends a run.

Everything here happens in labs of this process's own prefix; a lab that is up stays as it is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from limits import scaled
from needs import LAB
from processes import default_signals

from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError, RefusedError, RunError
from lapwing.launch import lab as finding
from lapwing.launch import launch
from lapwing.launch.job import Job
from lapwing.launch.progress import ProgressBar

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "lab" / "lab.py"
GAUSS_SEIDEL = str(ROOT / "examples" / "gauss_seidel.py")
PREFIX = f"labtest{os.getpid()}"
H0, H1, SWITCH = f"{PREFIX}-h0", f"{PREFIX}-h1", f"{PREFIX}-switch"
LIMIT = scaled(120)  # seconds for one command, builds included
GONE = scaled(20)  # seconds in which a run must have ended: far less than TCP takes to give up

LINE = """
import socket, sys, time
way, size = sys.argv[1], int(sys.argv[2])
if way == "receive":
    server = socket.create_server(("", 5000))
    print("ready", flush=True)
    line, _ = server.accept()
    while size > 0:
        size -= len(line.recv(1 << 16))
    line.sendall(b"!")
else:
    line = socket.create_connection((sys.argv[3], 5000))
    start = time.monotonic()
    line.sendall(bytes(size))
    assert line.recv(1) == b"!"
    print(time.monotonic() - start)
"""


def without_prefix(name: object) -> str:
    """What tests are called by: every process that runs them must find them under the same names."""
    return str(name).removeprefix(f"{PREFIX}-")


def lab(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One command of lab.py, in the prefix of these tests."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        env={**os.environ, "LAPWING_LAB": PREFIX, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True, timeout=LIMIT).stdout


def namespaces() -> set[str]:
    """The namespaces of these tests."""
    return {line.split()[0] for line in ip("netns", "list").splitlines() if line.startswith(PREFIX)}


def ports() -> set[str]:
    return {link["ifname"] for link in json.loads(ip("-j", "-n", SWITCH, "link"))} - {"lo", "switch"}


def outside() -> tuple[str, set[str]]:
    """The machine's own interfaces, and the namespaces that are not of these tests."""
    names = ",".join(sorted(link["ifname"] for link in json.loads(ip("-j", "link"))))
    return names, {line.split()[0] for line in ip("netns", "list").splitlines() if not line.startswith(PREFIX)}


@pytest.fixture(scope="module")
def machine() -> None:
    """Skips where this machine cannot have a lab."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    if not LAB.is_here:
        pytest.skip(LAB.reason)
    # What a container may forbid, or a kernel leave out. Not by lab.py: a fault of its own must not skip the tests.
    probe = f"{PREFIX}-probe"
    try:
        ip("netns", "add", probe)
        ip("-n", probe, "link", "add", "name", "switch", "type", "bridge")
        ip("-n", probe, "link", "add", "name", "h0", "type", "veth", "peer", "name", "eth0")
        limit = "rate 1mbit burst 10000 latency 400ms".split()
        ip("netns", "exec", probe, "tc", "qdisc", "add", "dev", "h0", "root", "tbf", *limit)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no lab can be made here: {error.stderr.strip()}")
    finally:
        subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)


@pytest.fixture
def own(machine: None) -> Iterator[None]:
    """Leaves nothing of these tests' prefix behind, whatever they did."""
    yield
    remove_all()


def remove_all() -> None:
    for name in namespaces():
        subprocess.run(["ip", "netns", "delete", name], check=False)


@pytest.fixture
def standing(own: None) -> None:
    done = lab("up", "--hosts", "2", "--rate", "200mbit")
    assert done.returncode == 0, done.stderr


# -- making it -------------------------------------------------------------------------------------------------------


def test_up_and_down(own: None) -> None:
    before = outside()
    done = lab("up", "--hosts", "3", "--rate", "50mbit")
    assert done.returncode == 0, done.stderr
    assert namespaces() == {H0, H1, f"{PREFIX}-h2", SWITCH}
    assert outside() == before
    lines = lab("status").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [H0, H1, f"{PREFIX}-h2"]
    assert all("50 Mbit/s each way" in line and "MTU 9000" in line and "link up" in line for line in lines)
    assert finding_lab().hosts == (H0, H1, f"{PREFIX}-h2")
    assert lab("down").returncode == 0
    assert namespaces() == set()
    assert lab("status").stdout == "lab: down\n"
    assert lab("down").returncode == 0
    assert outside() == before


def finding_lab() -> finding.Lab:
    """The lab of these tests as `lapwing run` finds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPWING_LAB", PREFIX)
        return finding.find_lab()


def test_up_twice_rebuilds(standing: None) -> None:
    done = lab("up", "--hosts", "1", "--rate", "1gbit")
    assert done.returncode == 0, done.stderr
    assert f"removing the one that is there: {H0}, {H1}, {SWITCH}" in done.stdout
    assert namespaces() == {H0, SWITCH}
    assert "1000 Mbit/s" in lab("status").stdout


def test_leftovers_of_a_crash_are_cleaned_up(own: None) -> None:
    for name in (SWITCH, f"{PREFIX}-h12"):
        ip("netns", "add", name)
    ip("link", "add", "h0", "netns", SWITCH, "type", "veth", "peer", "name", "eth0", "netns", f"{PREFIX}-h12")
    Path("/run/netns", H1).touch()  # a name without a namespace, as a machine that went down leaves them
    done = lab("up")
    assert done.returncode == 0, done.stderr
    assert namespaces() == {H0, H1, SWITCH}
    assert ports() == {"h0", "h1"}


def test_other_names_are_left_alone(own: None) -> None:
    others = {
        f"{PREFIX}-h",
        f"{PREFIX}-h01",
        f"{PREFIX}-h0x",
        f"{PREFIX}-switches",
        f"{PREFIX}x-h0",
        f"{PREFIX}x-switch",
    }
    for name in others:
        ip("netns", "add", name)
    assert lab("up").returncode == 0
    assert namespaces() == others | {H0, H1, SWITCH}
    assert finding_lab().hosts == (H0, H1)
    assert lab("down").returncode == 0
    assert namespaces() == others


@pytest.mark.parametrize("tool", ["ip", "tc", "ethtool"])
def test_a_failure_half_way_leaves_nothing(own: None, tmp_path: Path, tool: str) -> None:
    shim = tmp_path / tool
    # Fails in the middle of the second host, whose port is h1.
    words = {"ip": "*'link set h1 master'*", "tc": "*'dev h1'*", "ethtool": "*' h1 '*"}[tool]
    shim.write_text(
        f'#!/bin/sh\ncase "$*" in {words}) echo "broken on purpose" >&2; exit 7;; esac\nexec {shutil.which(tool)} "$@"\n'
    )
    shim.chmod(0o755)
    done = lab("up", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "failed with status 7: broken on purpose" in done.stderr
    assert namespaces() == set()


def test_a_signal_half_way_leaves_nothing(own: None, tmp_path: Path) -> None:
    shim = tmp_path / "tc"
    shim.write_text(f'#!/bin/sh\necho > {tmp_path}/reached\nsleep 1\nexec {shutil.which("tc")} "$@"\n')
    shim.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "up"],
        env={**os.environ, "LAPWING_LAB": PREFIX, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    while not (tmp_path / "reached").exists():
        assert process.poll() is None
        time.sleep(0.02)
    assert namespaces() == {H0, SWITCH}
    process.terminate()
    assert process.wait(LIMIT) == 128 + signal.SIGTERM
    assert namespaces() == set()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["up", "--hosts", "0"], "expected a number of hosts from 1 to 16"),
        (["up", "--hosts", "17"], "from 1 to 16"),
        (["up", "--hosts", "two"], "'two'"),
        (["up", "--hosts", ""], "''"),
        (["up", "--rate", "fast"], "'fast': expected a rate as tc writes them, such as 200mbit"),
        (["up", "--rate", "200"], "'200'"),
        (["up", "--rate=-5mbit"], "-5mbit"),
        (["up", "--rate", "200mbit burst 1"], "expected a rate"),
        (["up", "--rate", "999kbit"], "too slow"),
        (["cut"], "HOST"),
        ([], "COMMAND"),
    ],
)
def test_wrong_usage(words: list[str], text: str) -> None:
    done = lab(*words)
    assert done.returncode == 2
    assert text in done.stderr


@pytest.mark.parametrize("rate", ["200mbit", "1.5Gbit", "25mbps", "1mbit", "1mibit", "1000kbit"])
def test_rates_as_tc_writes_them(own: None, rate: str) -> None:
    assert lab("up", "--hosts", "1", "--rate", rate).returncode == 0


@pytest.mark.parametrize("host", ["h0", "eth0", f"{PREFIX}-h2", SWITCH], ids=without_prefix)
def test_no_such_host(standing: None, host: str) -> None:
    done = lab("cut", host)
    assert done.returncode == 1
    assert f"there is no host {host}; there are: {H0}, {H1}." in done.stderr


def test_a_prefix_that_is_none() -> None:
    done = lab("up", LAPWING_LAB="../x")
    assert done.returncode == 1
    assert "LAPWING_LAB is '../x'" in done.stderr


@pytest.fixture
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lab_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_root_is_asked_for(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(program.LabError, match="need root: `sudo make lab-up`"):
        program.check_machine()


def test_missing_tools_are_named_with_their_packages(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(program.LabError, match=r"ip, tc, ethtool\. .* apt-get install ethtool iproute2"):
        program.check_machine()


def test_cables(standing: None) -> None:
    assert lab("cut", H1).returncode == 0
    links = [line.rpartition("link ")[2] for line in lab("status").stdout.splitlines()]
    assert links == ["up", "down"]
    assert lab("mend", H1).returncode == 0
    assert "down" not in lab("status").stdout


@pytest.mark.parametrize(
    ("sender", "receiver", "address"),
    [(H0, H1, "10.77.0.2"), pytest.param(H1, H0, "10.77.0.1", marks=pytest.mark.long)],
    ids=without_prefix,
)
def test_the_rate_is_a_limit(own: None, sender: str, receiver: str, address: str) -> None:
    assert lab("up", "--rate", "20mbit").returncode == 0
    size = 2_500_000  # bytes: a second at 20 Mbit/s, whatever else the machine does
    run = ["ip", "netns", "exec"]
    with subprocess.Popen(
        [*run, receiver, sys.executable, "-c", LINE, "receive", str(size)], stdout=subprocess.PIPE
    ) as receiving:
        assert receiving.stdout is not None
        try:
            assert receiving.stdout.readline() == b"ready\n"
            command = [*run, sender, sys.executable, "-c", LINE, "send", str(size), address]
            seconds = float(subprocess.run(command, capture_output=True, check=True, timeout=LIMIT).stdout)
        finally:
            receiving.kill()
    assert seconds > 0.98 * size * 8 / 20e6


@pytest.mark.parametrize("sender", [H0, H1], ids=without_prefix)
def test_packets_are_whole_and_limited_at_both_ends(standing: None, sender: str) -> None:
    for namespace, interface in ((sender, "eth0"), (SWITCH, "h" + sender[-1])):
        features = ip("netns", "exec", namespace, "ethtool", "-k", interface)
        for feature in ("tcp-segmentation", "generic-segmentation", "generic-receive"):
            assert f"{feature}-offload: off" in features
        assert " mtu 9000 " in ip("-n", namespace, "link", "show", interface)
        queue = ip("netns", "exec", namespace, "tc", "qdisc", "show", "dev", interface)
        assert "tbf" in queue
        assert "rate 200Mbit burst 10000b" in queue
    assert " mtu 9000 " in ip("-n", SWITCH, "link", "show", "switch")


# -- finding it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "ranks", "blocks"),
    [
        (2, 2, [("p-h0", 1), ("p-h1", 1)]),
        (2, 5, [("p-h0", 3), ("p-h1", 2)]),
        (3, 2, [("p-h0", 1), ("p-h1", 1)]),
        (3, 4, [("p-h0", 2), ("p-h1", 1), ("p-h2", 1)]),
        (1, 4, [("p-h0", 4)]),
    ],
)
def test_ranks_are_placed_in_blocks(hosts: int, ranks: int, blocks: list[tuple[str, int]]) -> None:
    assert finding.Lab("p", tuple(f"p-h{k}" for k in range(hosts))).blocks(ranks) == blocks


def test_hosts_are_found_in_the_order_of_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lapwing-h10", "lapwing-h9", "lapwing-h", "lapwing-h1a", "xlapwing-h0", "lapwing-switch"):
        (tmp_path / name).touch()
    monkeypatch.setattr(finding, "_NAMESPACES", tmp_path)
    monkeypatch.delenv("LAPWING_LAB", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(finding.shutil, "which", lambda command: f"/usr/sbin/{command}")
    assert finding.find_lab().hosts == ("lapwing-h9", "lapwing-h10")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RefusedError, match="needs root"):
        finding.find_lab()


def test_the_users_settings_of_mpi_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIR_CVAR_CH4_NETMOD", "ucx")
    settings = finding.Lab("p", ("p-h0",)).settings()
    assert "MPIR_CVAR_CH4_NETMOD" not in settings
    assert settings["FI_TCP_IFACE"] == "eth0"


def test_other_launchers_are_refused(tmp_path: Path) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")
    launcher.chmod(0o755)
    with pytest.raises(RefusedError, match=r"works with MPICH.*mpirun \(Open MPI\) 4\.1\.4.*LAPWING_MPICXX"):
        launch.placed(launcher, 2, finding.Lab("p", ("p-h0",)), [])


# -- running on it ---------------------------------------------------------------------------------------------------


def _cannot_run() -> str | None:
    if shutil.which("cc") is None:
        return "no C compiler here"
    try:
        mpiexec = find_mpi().mpiexec
    except BuildError:
        return "no MPI here"
    said = subprocess.run([str(mpiexec), "--version"], capture_output=True, text=True, timeout=LIMIT, check=False)
    return None if "HYDRA" in said.stdout else "the MPI here is not MPICH"


runs_ranks = [pytest.mark.mpi, pytest.mark.skipif(_cannot_run() is not None, reason=str(_cannot_run()))]


def run_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "lapwing", "run", GAUSS_SEIDEL, "--hosts", "lab", *words]


def lapwing(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        run_command(*words),
        env={**os.environ, "LAPWING_LAB": PREFIX},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def test_no_lab_is_refused() -> None:
    done = lapwing("-n", "2")
    assert done.returncode == 2
    assert f"no lab is up: there is no network namespace {PREFIX}-h0" in done.stderr
    assert "`make lab-up HOSTS=2 RATE=200mbit` builds one" in done.stderr


def carried() -> int:
    """Bytes that the switch has handed to the second host."""
    link = json.loads(ip("-j", "-s", "-n", SWITCH, "link", "show", "h1"))[0]
    return int(link["stats64"]["tx"]["bytes"])


@pytest.fixture(scope="module")
def kept(machine: None) -> Iterator[None]:
    yield
    remove_all()


@pytest.fixture
def in_use(kept: None) -> None:
    """Stands, and stays for the next test: a command measures the network of a new one first, which takes seconds."""
    if namespaces() != {H0, H1, SWITCH} or "down" in lab("status").stdout:
        done = lab("up", "--hosts", "2", "--rate", "200mbit")
        assert done.returncode == 0, done.stderr


class TestRuns:
    pytestmark = runs_ranks

    @pytest.mark.parametrize(
        "ranks", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long), 3]
    )
    def test_identical(self, in_use: None, ranks: int) -> None:
        before = carried()
        done = lapwing("-n", str(ranks), "-p", "n=200", "--engine", "blocking,overlap", "--check")
        assert done.returncode == 0, done.stderr
        if ranks > 1:
            assert done.stdout.count("yes") == 2
            # Half of the array at least has gone to the second host over its wire.
            assert carried() - before > 200 * 200 * 8 / 3

    def test_ranks_of_one_host_share_a_node_and_no_others(self, in_use: None, tmp_path: Path) -> None:
        program = tmp_path / "nodes.py"
        program.write_text(
            "from mpi4py import MPI\n"
            "node = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)\n"
            "nodes = MPI.COMM_WORLD.gather(tuple(node.allgather(MPI.COMM_WORLD.Get_rank())))\n"
            "print(nodes) if nodes else None\n"
        )
        found = finding_lab()
        command = [str(find_mpi().mpiexec), *found.arguments(3, [sys.executable, str(program)])]
        environment = {**os.environ, **found.settings()}
        if library := find_mpi().library:
            environment.setdefault("MPI4PY_LIBMPI", str(library))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.stdout.strip() == "[(0, 1), (0, 1), (2,)]", done.stderr

    def test_a_link_that_no_rank_uses_may_be_down(self, in_use: None) -> None:
        lab("cut", H1)
        try:
            done = lapwing("-n", "1", "-p", "n=50", "--check")
        finally:
            lab("mend", H1)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("yes") == 1


SIDE = 300  # points of a side of the plate


class Started:
    """A long run on the lab in mid-run."""

    def __init__(self, ranks: int) -> None:
        share = SIDE * SIDE * 8 / ranks  # bytes of the last rank's part of the array
        before = carried()
        self.process = subprocess.Popen(
            run_command("-n", str(ranks), "-p", f"n={SIDE}", "-p", "sweeps=100000"),
            env={**os.environ, "LAPWING_LAB": PREFIX},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=default_signals,
        )
        deadline = time.monotonic() + LIMIT
        while carried() - before < 1.5 * share:  # its part has gone over the wire, and what is sent in the run
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def ranks(self) -> list[int]:
        """The processes of this run's ranks: all that are in the lab's namespaces."""
        return [int(process) for name in sorted(namespaces()) for process in ip("netns", "pids", name).split()
                if b"lapwing.session.worker" in Path(f"/proc/{process}/cmdline").read_bytes()]  # fmt: skip

    def end(self) -> tuple[int, str]:
        """Exit status and the last line of standard error, once no process is left in the lab."""
        _, errors = self.process.communicate(timeout=GONE)
        left = [process for name in namespaces() for process in ip("netns", "pids", name).split()]
        assert left == []
        return self.process.returncode, errors.splitlines()[-1]


@pytest.fixture
def long_run(in_use: None) -> Iterator[Started]:
    started = Started(3)
    assert len(started.ranks()) == 3
    yield started
    started.process.kill()
    started.process.communicate()


class TestFaults:
    pytestmark = runs_ranks

    def test_a_cable_is_pulled(self, long_run: Started) -> None:
        lab("cut", H1)
        try:
            assert long_run.end() == (1, f"lapwing: the link of {H1} went down; all ranks were ended.")
        finally:
            lab("mend", H1)

    @pytest.mark.long
    def test_a_host_loses_its_interface(self, long_run: Started) -> None:
        ip("-n", H0, "link", "set", "eth0", "down")
        try:
            assert long_run.end() == (1, f"lapwing: the link of {H0} went down; all ranks were ended.")
        finally:
            ip("-n", H0, "link", "set", "eth0", "up")

    def test_a_rank_is_killed(self, long_run: Started) -> None:
        ranks = long_run.ranks()
        os.kill(ranks[-1], signal.SIGKILL)
        expected = (
            f"lapwing: rank 2 (process {ranks[-1]} on {H1}) was killed by signal 9 (SIGKILL); all ranks were ended."
        )
        assert long_run.end() == (1, expected)

    @pytest.mark.long
    def test_ctrl_c(self, long_run: Started) -> None:
        long_run.process.send_signal(signal.SIGINT)
        assert long_run.end() == (130, "lapwing: interrupted")

    @pytest.mark.long
    def test_the_command_is_killed(self, long_run: Started) -> None:
        long_run.process.kill()
        deadline = time.monotonic() + GONE
        while any(ip("netns", "pids", name) for name in namespaces()):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @pytest.mark.long
    def test_the_lab_is_taken_down(self, long_run: Started) -> None:
        assert lab("down").returncode == 0
        status, last = long_run.end()
        assert status == 1
        assert "went down; all ranks were ended." in last


@pytest.mark.mpi
@pytest.mark.skipif(_cannot_run() is not None, reason=str(_cannot_run()))
def test_a_lab_that_is_not_whole(standing: None) -> None:
    lab("cut", H1)
    done = lapwing("-n", "2")
    assert done.returncode == 1
    assert f"the lab is not whole: the link of {H1} is down" in done.stderr
    ip("netns", "delete", SWITCH)
    done = lapwing("-n", "2")
    assert done.returncode == 1
    assert "the lab is not whole: it has no switch" in done.stderr


def test_a_launcher_that_outlasts_a_failed_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Hydra does where the failed rank's machine cannot be reached any more."""
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\necho 'lapwing: rank 1: waited 60 s for rank 0' >&2\nexec sleep 1000\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("LAPWING_MPIEXEC", str(launcher))
    monkeypatch.setattr(launch, "_LAST_GASPS", 0.2)
    job = Job("x.py", (), (), None, None, 1, False)
    with pytest.raises(RunError, match="rank 1: waited 60 s for rank 0"):
        launch.launch(job, 2, None, lambda kind, value: None, ProgressBar(), dict(os.environ))
