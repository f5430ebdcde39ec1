"""A headless Chromium, driven through its DevTools protocol over a pipe with nothing but the standard library."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from limits import scaled
from needs import CHROMIUM

LIMIT = scaled(60)  # seconds for one answer, or for a page to get ready

Answer = dict[str, Any]


def find_chromium() -> str | None:
    return CHROMIUM.programs_here[0] if CHROMIUM.is_here else None


def _place(commands: int, answers: int) -> None:
    # Out of the way first: one of them may be 3 or 4 already.
    commands, answers = (fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (commands, answers))
    os.dup2(commands, 3)
    os.dup2(answers, 4)


class Chromium:
    """One browser with one page. ``complaints`` gathers console errors, exceptions and requests that failed."""

    def __init__(self, program: str, profile: Path, width: int = 1400, height: int = 1000) -> None:
        # The browser reads commands from descriptor 3 and answers on 4, each ended by a zero byte.
        their_in, self._out = os.pipe()
        self._in, their_out = os.pipe()
        self._process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--remote-debugging-pipe", f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank",
            ],
            pass_fds=(3, 4), preexec_fn=lambda: _place(their_in, their_out),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(their_in)
        os.close(their_out)
        self._pending = b""
        self._number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._session = None
        with contextlib.suppress(OSError, AssertionError):
            self._call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> Answer:
        """One command of the protocol on the page."""
        return self._call(method, **parameters)

    def open(self, path: Path) -> None:
        """Load a page and wait until its script says it is ready."""
        self.call("Page.navigate", url=path.as_uri())
        end = time.monotonic() + LIMIT
        while self.run("document.documentElement?.dataset.ready") != "yes":
            assert time.monotonic() < end, f"{path} did not get ready: {self.complaints}"
            time.sleep(0.05)
        self.settle()

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.settle()

    def drag(self, start: tuple[float, float], end: tuple[float, float], modifiers: int = 0) -> None:
        held: dict[str, Any] = {"button": "left", "buttons": 1, "modifiers": modifiers, "clickCount": 1}
        self.mouse("mousePressed", *start, **held)
        self.mouse("mouseMoved", *end, **held)
        self.mouse("mouseReleased", *end, **held)

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self.settle()

    def key(self, key: str) -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def scheme(self, name: str) -> None:
        """ "light" or "dark", as the system would ask for it."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.settle()

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _call(self, method: str, **parameters: Any) -> Answer:
        self._number += 1
        message: Answer = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + LIMIT
        while True:
            answer = self._next(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: Answer = answer["result"]
                return result
            self._hear(answer)

    def _next(self, end: float) -> Answer:
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            data = os.read(self._in, 1 << 20)
            assert data, "Chromium has ended"
            self._pending += data
        text, _, self._pending = self._pending.partition(b"\0")
        answer: Answer = json.loads(text)
        return answer

    def _hear(self, event: Answer) -> None:
        given = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(given["exceptionDetails"])[:2000])
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(given["args"]))
            case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                self.complaints.append(given["entry"]["text"])
            case "Network.loadingFailed":
                self.complaints.append(given["errorText"])
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"][:200])
