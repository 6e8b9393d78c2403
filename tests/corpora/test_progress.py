"""Progress: log lines where there is no terminal, a bar where there is one."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys
import threading
import time

import pytest

from corpora import progress
from corpora.progress import Loop, show_progress, track


def test_one_long_item_is_logged_while_it_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY_SECONDS", 0.05)
    caplog.set_level(logging.INFO, "discorpora")
    for _ in track(["a long document"], "documents", total=2):
        time.sleep(0.3)
    assert "documents: 0 of 2 in 0 s" in caplog.text
    assert not [each for each in threading.enumerate() if each.name == "progress"]


def test_loops_in_each_other_share_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY_SECONDS", 0.05)
    caplog.set_level(logging.INFO, "discorpora")
    with show_progress("evaluating m"):
        for _ in track(range(2), "texts", total=2):
            time.sleep(0.2)
    assert "evaluating m: 0 s; texts: 1 of 2" in caplog.text


def test_a_line_has_rate_and_time_left() -> None:
    loop = Loop("rows", 400, 100, time.monotonic() - 10)
    assert loop.line() == "rows: 100 of 400 in 10 s, 10 a second, 30 s left"
    assert Loop("rows", 36_100, 100, time.monotonic() - 10).line().endswith("60 min left")
    assert Loop("rows", None, 100, time.monotonic() - 10).line().endswith("10 a second")


def test_a_terminal_gets_a_bar() -> None:
    code = (
        "import time\nfrom corpora.progress import track\n"
        "for _ in track(range(20), 'rows', total=20): time.sleep(.1)\n"
    )
    mine, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=environment) as process:
        os.close(theirs)
        drawn = b""
        try:
            while part := os.read(mine, 4096):
                drawn += part
        except OSError:  # the other side is closed
            pass
    os.close(mine)
    assert process.returncode == 0
    assert b"rows" in drawn and b"a second" in drawn and b"/20" in drawn and b"left" in drawn
