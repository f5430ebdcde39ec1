"""The process that files with errors are read in first (trial.py)."""

from __future__ import annotations

import json
import os
import signal
import sys

from lapwing.orphans import die_with
from lapwing.overlap.languages.c.reading.trial import DONE, Trial
from lapwing.overlap.languages.c.reading.units import try_to_read


def main() -> None:
    """Reads what it is told to, a file a line, and says when it has."""
    # Its input ends with the parent, but nobody looks at it while libclang reads, and a fork of the parent's may hold it open.
    die_with(os.getppid(), signal.SIGKILL)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try_to_read(Trial(**request))
        sys.stdout.buffer.write(DONE)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
