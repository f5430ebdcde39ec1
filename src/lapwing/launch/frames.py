"""How the first rank talks to the command that started it: lines among its ordinary output, marked with a secret.

Standard output is the one channel every launcher carries from a rank on any machine to the one where `lapwing run` was
typed; a file or a pipe in a temporary directory would not be.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

ALIVE = b"lapwing\n"  # the first thing on the first rank's standard input where a command holds the other end


def _mark(token: str) -> bytes:
    return f"\x1e{token} ".encode()


class FrameWriter:
    """Writes events to a file descriptor."""

    def __init__(self, descriptor: int, token: str) -> None:
        self._descriptor, self._mark = descriptor, _mark(token)
        self._lock = threading.Lock()

    def __call__(self, kind: str, value: Any) -> None:
        data = self._mark + json.dumps([kind, value]).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._descriptor, data) :]


class FrameReader:
    """Tells events from ordinary output in a stream of bytes."""

    def __init__(self, token: str) -> None:
        self._mark = _mark(token)
        self._pending = b""

    def feed(self, data: bytes) -> tuple[bytes, list[tuple[str, Any]]]:
        """The ordinary output, and the events, in the bytes so far; what may yet become an event waits."""
        self._pending += data
        text = b""
        events: list[tuple[str, Any]] = []
        while True:
            before, mark, after = self._pending.partition(self._mark)
            if not mark:
                break
            line, newline, rest = after.partition(b"\n")
            if not newline:
                self._pending = mark + after
                return text + before, events
            kind, value = json.loads(line)
            events.append((kind, value))
            text, self._pending = text + before, rest
        kept = next((k for k in range(len(self._mark) - 1, 0, -1) if self._pending.endswith(self._mark[:k])), 0)
        end = len(self._pending) - kept
        text, self._pending = text + self._pending[:end], self._pending[end:]
        return text, events

    def rest(self) -> bytes:
        """What is left at the end of the stream."""
        left, self._pending = self._pending, b""
        return left
