"""The command ``lapwing``: a group whose commands live in modules of their own, imported when they are called.

Exit status: 0 done (and identical, if checked), 1 failed or different, 2 wrong usage or refused, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from lapwing import __version__
from lapwing.errors import LapwingError, RefusedError
from lapwing.notices import speak_in_command

DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130

# These import a file of the user's.
_RUNNING_USER_CODE = ("run", "plan", "simulate", "export", "calibrate")
# The purposes stand here so that `lapwing --help` need not import the commands.
_PURPOSES = {
    "run": "Run a loop nest, on this process or across MPI ranks, and time it.",
    "plan": "Show how a loop nest would be cut and run, and why; runs nothing.",
    "simulate": "Simulate a loop nest's run on a cluster that is not here.",
    "export": "Write a nest or program as a stand-alone C++ program.",
    "calibrate": "Measure this machine, for plans to rest on.",
    "convert": "Copy an array on disk to another format: .npy or Zarr, of any encoding, to plain chunks or .npy.",
    "overlap": "Rewrite an MPI program so that its communication overlaps with computation.",
    "trace": "Run any MPI program and show where communication is exposed, and why.",
}


class _Commands(click.Group):
    """The commands of ``_PURPOSES``: command NAME is ``command`` in ``lapwing.cli.NAME``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_PURPOSES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PURPOSES:
            return None
        command: click.Command = import_module(f"lapwing.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_PURPOSES.items()))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExamples:\n"
    "  lapwing run smooth.py                         the nest in smooth.py, in this process\n"
    "  lapwing run smooth.py -n 4 --check            on 4 MPI ranks, every bit compared with the plain loop\n"
    "\n"
    "LAPWING_DEBUG=1 shows a traceback with every error. "
    "Exit status: 0 done, 1 failed or different, 2 wrong usage or refused.",
)
@click.version_option(__version__, prog_name="lapwing", message="%(prog)s %(version)s")
def _group() -> None:
    """Run plain Python loop nests tiled and pipelined across MPI ranks, with communication hidden behind
    computation and the very bits of the plain loop."""
    from lapwing.runtime.mpi.memory import remove_abandoned_segments
    from lapwing.temporary import remove_abandoned

    remove_abandoned()
    remove_abandoned_segments()


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point: run one command line (default: that of this process) and exit."""
    _prepare_streams()
    if arguments is None and sys.argv[1:2] and sys.argv[1] in _RUNNING_USER_CODE:
        from lapwing.launch.supervision import continue_in_child

        continue_in_child()
    speak_in_command()
    status = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError:
        status = _reader_gone()
    sys.exit(status)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        status = _group.main(args=arguments, prog_name="lapwing", standalone_mode=False)
        return status if isinstance(status, int) else DONE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return _reader_gone()
    except RefusedError as error:
        return _complain("\nlapwing: ".join(map(str, error.refusals)), REFUSED)
    except LapwingError as error:
        return _complain(str(error), FAILED)
    except MemoryError as error:
        return _complain(f"not enough memory ({error or 'no details'}).", FAILED)
    except OSError as error:
        return _complain(f"{error}.", FAILED)
    except Exception as error:
        return _complain(
            f"internal error, please report it: {type(error).__name__}: {error}. LAPWING_DEBUG=1 shows where.", FAILED
        )


def _prepare_streams() -> None:
    # Python has no stream where the descriptor was closed by who started it.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal without × or → still gets the message.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _complain(text: str, status: int) -> int:
    if os.environ.get("LAPWING_DEBUG"):
        traceback.print_exc()
    print(f"lapwing: {text}", file=sys.stderr, flush=True)
    return status


def _reader_gone() -> int:
    """Standard output was closed under us, as `| head` does: nothing more can be said there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return FAILED
