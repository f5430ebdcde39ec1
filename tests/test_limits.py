"""`make test-long MINUTES=…`: what there is no time for is skipped, in every process that shares the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from limits import scaled

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("minutes", "summary"), [pytest.param("5", "2 passed", marks=pytest.mark.long), ("0", "2 skipped")]
)
def test_minutes(minutes: str, summary: str, tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text("def test_one(): pass\ndef test_other(): pass\n")
    words = ["-q", "-n", "2", "-p", "conftest", "-c", str(TESTS.parent / "pyproject.toml"), "--minutes", minutes]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(tmp_path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(TESTS)}, timeout=scaled(60), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary in done.stdout.splitlines()[-1]
