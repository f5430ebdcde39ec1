#!/usr/bin/env python3
"""A cluster in this machine: hosts as network namespaces, joined by a switch whose links have a given rate.

    lab.py up [--hosts N] [--rate RATE]    make it; a lab that is already there is taken down first
    lab.py down                            remove it
    lab.py status                          its hosts, their addresses and links
    lab.py cut HOST, lab.py mend HOST      pull the cable of a host, put it back

The namespaces are lapwing-h0, lapwing-h1, …, one a host, and lapwing-switch with the bridge. All interfaces live inside
them: nothing is added to the machine's own network, no address of the lab can clash with one of the machine's, and
nothing in the lab reaches the outside. LAPWING_LAB gives another prefix than `lapwing`, for a second lab beside the
first. Needs root, and ip, tc and ethtool. Exit status: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

# The names by which src/lapwing/cli/lab.py finds the hosts; this file stands alone, so that root needs no set-up.
PREFIX_VARIABLE = "LAPWING_LAB"
DEFAULT_PREFIX = "lapwing"
NAMESPACES = Path("/run/netns")

MOST_HOSTS = 16
MTU = 9000  # with 1500 the cost of packets eats a third of what overlap gains
BURST = 10000  # bytes; one packet must fit, and a message must not: it would pass at once, with nothing left to hide
LATENCY = "400ms"  # of packets a link holds back before it drops one
LOWEST_RATE = 1e6  # bit/s; below, one packet takes longer than TCP waits
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}
UNITS = {"bit": 1, "bps": 8}
SCALES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


class LabError(Exception):
    """What went wrong and what to do, for the user."""


class Lab:
    """The namespaces of one prefix. Every name it touches is made or matched here."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.switch = f"{prefix}-switch"

    def host(self, number: int) -> str:
        return f"{self.prefix}-h{number}"

    def number(self, name: str) -> int | None:
        """The number of the host with this name; None for any other name."""
        match = re.fullmatch(re.escape(self.prefix) + r"-h(0|[1-9]\d*)", name)
        return int(match[1]) if match else None

    def hosts(self) -> list[str]:
        """The hosts that there are, in the order of their numbers."""
        found = {number: name for name in namespaces() if (number := self.number(name)) is not None}
        return [found[number] for number in sorted(found)]

    def namespaces(self) -> list[str]:
        return self.hosts() + [name for name in namespaces() if name == self.switch]

    def port(self, host: str) -> str:
        """The switch's end of a host's cable."""
        return f"h{self.number(host)}"


def namespaces() -> list[str]:
    try:
        return sorted(entry.name for entry in NAMESPACES.iterdir())
    except FileNotFoundError:
        return []


def up(lab: Lab, hosts: int, rate: str) -> None:
    """Make the lab, or leave nothing of it behind."""
    if lab.namespaces():
        print(f"lab: removing the one that is there: {', '.join(lab.namespaces())}")
        remove(lab)
    try:
        make_switch(lab)
        for number in range(hosts):
            make_host(lab, number, rate)
        show(lab)
    except BaseException:
        remove(lab)
        raise


def make_switch(lab: Lab) -> None:
    run("ip", "netns", "add", lab.switch)
    run("ip", "-n", lab.switch, "link", "set", "lo", "up")
    # Snooping asks hosts for their multicast groups now and then: packets that a measurement would see.
    run("ip", "-n", lab.switch, "link", "add", "switch", "mtu", MTU, "type", "bridge", "mcast_snooping", 0)
    no_ipv6(lab.switch, "switch")
    run("ip", "-n", lab.switch, "link", "set", "switch", "up")


def make_host(lab: Lab, number: int, rate: str) -> None:
    host = lab.host(number)
    port = lab.port(host)
    run("ip", "netns", "add", host)
    run("ip", "-n", host, "link", "set", "lo", "up")
    cable = ["link", "add", port, "netns", lab.switch, "mtu", MTU, "type", "veth"]
    run("ip", *cable, "peer", "name", "eth0", "netns", host, "mtu", MTU)
    # The egress of one end is one direction, that of the other end the other.
    for namespace, interface in ((host, "eth0"), (lab.switch, port)):
        no_ipv6(namespace, interface)
        # Offloading would hand packets of 64 KB to the rate limit, which drops what is larger than its burst.
        run("ip", "netns", "exec", namespace, "ethtool", "-K", interface, "gso", "off", "tso", "off", "gro", "off")
        limit = ["tbf", "rate", rate, "burst", BURST, "latency", LATENCY]
        run("tc", "-n", namespace, "qdisc", "add", "dev", interface, "root", *limit)
    run("ip", "-n", lab.switch, "link", "set", port, "master", "switch", "up")
    run("ip", "-n", host, "address", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
    run("ip", "-n", host, "link", "set", "eth0", "up")


def no_ipv6(namespace: str, interface: str) -> None:
    """IPv6 would announce itself now and then, and delay addresses while it looks for others like them."""
    if Path("/proc/sys/net/ipv6").exists():
        run("ip", "-n", namespace, "link", "set", interface, "addrgenmode", "none")


def remove(lab: Lab) -> None:
    """Remove what there is, whole or not."""
    for host in lab.hosts():
        # By hand, since processes still running there would keep a namespace, and its cable, beyond its name.
        attempt("ip", "-n", host, "link", "delete", "eth0")
    if lab.switch in namespaces():
        attempt("ip", "-n", lab.switch, "link", "delete", "switch")
    for name in lab.namespaces():
        attempt("ip", "netns", "delete", name)
    if left := lab.namespaces():
        raise LabError(f"{', '.join(left)} cannot be removed; try `ip netns delete NAME`, which says why.")


def set_cable(lab: Lab, host: str, state: str) -> None:
    """Pull the cable of a host at the switch, or put it back. The host sees its carrier go, as with a real one."""
    if host not in lab.hosts():
        raise LabError(f"there is no host {host}; there are: {', '.join(lab.hosts()) or 'none (make lab-up)'}.")
    run("ip", "-n", lab.switch, "link", "set", lab.port(host), state)


def show(lab: Lab) -> None:
    if not lab.hosts():
        print("lab: down")
        return
    for host in lab.hosts():
        link = read_json("ip", "-j", "-n", host, "address", "show", "dev", "eth0")
        limits = read_json("tc", "-j", "-n", host, "qdisc", "show", "dev", "eth0")
        address = ", ".join(a["local"] for a in link["addr_info"])
        rate = limits.get("options", {}).get("rate")
        speed = "no limit" if rate is None else f"{rate * 8 / 1e6:g} Mbit/s each way"
        print(f"{host}  {address}  {speed}  MTU {link['mtu']}  link {'up' if 'LOWER_UP' in link['flags'] else 'down'}")


def read_json(*words: object) -> Any:
    """The first thing in the answer of ip or tc."""
    answer = [thing for thing in json.loads(run(*words)) if thing]
    if not answer:
        raise LabError(
            f"`{shlex.join(map(str, words))}` finds nothing: the lab is not whole; `make lab-up` rebuilds it."
        )
    return answer[0]


def run(*words: object) -> str:
    """The output of a command, which must succeed."""
    command = [str(word) for word in words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise LabError(f"`{shlex.join(command)}` failed with status {done.returncode}: {said}")
    return done.stdout


def attempt(*words: object) -> None:
    """A command whose failure means that there is nothing to do."""
    with contextlib.suppress(LabError):
        run(*words)


def check_machine() -> None:
    """Raises LabError where this process cannot make a lab."""
    if os.geteuid() != 0:
        raise LabError("the lab is made of network namespaces, which need root: `sudo make lab-up`, or be root.")
    missing = [name for name in PACKAGES if shutil.which(name) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES[name] for name in missing}))
        raise LabError(f"not found on PATH: {', '.join(missing)}. Debian, Ubuntu: apt-get install {packages}")


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    with Path(__file__).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def a_number_of_hosts(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MOST_HOSTS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of hosts from 1 to {MOST_HOSTS}.")
    return int(text)


def a_rate(text: str) -> str:
    """A rate as tc writes them; `200mbit` and `25mbps` are the same, since bps is bytes per second."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmgt]i?)?(bit|bps)", text.lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a rate as tc writes them, such as 200mbit or 1.5gbit.")
    if float(match[1]) * SCALES[match[2] or ""] * UNITS[match[3]] < LOWEST_RATE:
        raise argparse.ArgumentTypeError(f"{text!r} is too slow for MPI over TCP: expected 1mbit or more.")
    return text


def a_prefix(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", text):
        raise LabError(f"{PREFIX_VARIABLE} is {text!r}: expected lower-case letters, digits and -, at most 31.")
    return text


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="lab.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    making = commands.add_parser("up", help="make the lab")
    making.add_argument("--hosts", type=a_number_of_hosts, default=2, metavar="N", help="hosts (default 2)")
    making.add_argument("--rate", type=a_rate, default="200mbit", help="of every link, each way (default 200mbit)")
    commands.add_parser("down", help="remove the lab")
    commands.add_parser("status", help="hosts, addresses, links")
    for name, text in (("cut", "pull the cable of a host"), ("mend", "put the cable of a host back")):
        commands.add_parser(name, help=text).add_argument("host", metavar="HOST")
    return parser.parse_args()


def stop(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def main() -> None:
    wanted = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        lab = Lab(a_prefix(os.environ.get(PREFIX_VARIABLE) or DEFAULT_PREFIX))
        check_machine()
        with one_at_a_time():
            match wanted.command:
                case "up":
                    up(lab, wanted.hosts, wanted.rate)
                case "down":
                    remove(lab)
                case "status":
                    show(lab)
                case "cut":
                    set_cable(lab, wanted.host, "down")
                case "mend":
                    set_cable(lab, wanted.host, "up")
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
