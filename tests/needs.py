"""What some tests need beyond Lapwing's own set-up, and the command that brings it.

``python tests/needs.py`` prints the Debian packages that would bring what is missing here: ``make test`` installs them as root.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Need:
    """``programs``: all of them must be found; a ``|`` stands between names of one program. ``packages``: Debian's. ``files``:
    one of them must be there, if any are named.
    """

    what: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def programs_here(self) -> list[str | None]:
        """The path of each program, None where it is missing."""
        return [next(filter(None, map(shutil.which, names.split("|"))), None) for names in self.programs]

    @property
    def is_here(self) -> bool:
        return None not in self.programs_here and (not self.files or any(Path(file).exists() for file in self.files))

    @property
    def reason(self) -> str:
        """Why a test is skipped, with the command that enables it."""
        return f"no {self.what} here: apt-get install --no-install-recommends {' '.join(self.packages)}"


ADDR2LINE = Need("addr2line", ("addr2line",), ("binutils",))
CHROMIUM = Need("Chromium", ("chromium|chromium-browser|google-chrome|google-chrome-stable",), ("chromium",))
CMAKE = Need("CMake", ("cmake",), ("cmake",))
FORTRAN_MPI = Need("MPI for Fortran", ("mpif90",), ("gfortran", "mpich", "libmpich-dev"))
GFORTRAN = Need("gfortran", ("gfortran",), ("gfortran",))
GIT = Need("git", ("git",), ("git",))
LAB = Need("ip, tc and ethtool for the lab", ("ip", "tc", "ethtool"), ("iproute2", "ethtool"))
LIBURING = Need("liburing", (), ("liburing-dev",), ("/usr/include/liburing.h", "/usr/local/include/liburing.h"))
MAKE = Need("make", ("make",), ("make",))
PATCH = Need("patch", ("patch",), ("patch",))
SIMGRID = Need("SimGrid", ("smpirun", "smpicxx"), ("libsimgrid-dev",))
TASKSET = Need("taskset", ("taskset",), ("util-linux",))

ALL = (ADDR2LINE, CHROMIUM, CMAKE, FORTRAN_MPI, GFORTRAN, GIT, LAB, LIBURING, MAKE, PATCH, SIMGRID, TASKSET)

if __name__ == "__main__":
    print(*sorted({package for need in ALL if not need.is_here for package in need.packages}))
