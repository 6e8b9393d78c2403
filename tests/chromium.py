"""Headless Chromium over its DevTools protocol: what a page shows, says and asks for."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tornado.websocket import websocket_connect

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")


class Page:
    """A page: it collects errors of its console, exceptions, and the addresses that it loads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: Any) -> None:
        self.loop, self.socket = loop, socket
        self.errors: list[str] = []
        self.addresses: list[str] = []
        self._number = 0
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        _wait(self.loop, lambda: self.socket.write_message(json.dumps(request)))
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path: Path, width: int = 1280, height: int = 1000, dark: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        self.call("Page.navigate", url=path.absolute().as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        done = self.call("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression is true, for a minute at most."""
        true = f"new Promise((done, no) => {{ const end = Date.now() + 60000; (function look() {{ \
            if ({script}) done(true); else if (Date.now() > end) no('never true'); \
            else setTimeout(look, 20); }})(); }})"
        self.run(true)

    def picture(self, path: Path, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        answer = json.loads(_wait(self.loop, self.socket.read_message))
        said = answer.get("params", {})
        if answer.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(said["exceptionDetails"]))
        elif answer.get("method") == "Runtime.consoleAPICalled" and said["type"] == "error":
            self.errors.append(json.dumps(said["args"]))
        elif answer.get("method") == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(said["entry"]["text"])
        elif answer.get("method") == "Network.requestWillBeSent":
            self.addresses.append(said["request"]["url"])
        return answer


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A page of a browser of its own, or a skip where there is no Chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium is installed")
    command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    port_file = profile / "DevToolsActivePort"
    loop = asyncio.new_event_loop()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            for _ in range(600):
                if port_file.is_file() and port_file.read_text().count("\n"):
                    break
                loop.run_until_complete(asyncio.sleep(0.1))
            port = port_file.read_text().split()[0]
            with urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(one for one in json.load(answer) if one["type"] == "page")
            address, most = target["webSocketDebuggerUrl"], 1 << 28
            yield Page(loop, _wait(loop, lambda: websocket_connect(address, max_message_size=most)))
        finally:
            browser.terminate()
            browser.wait(20)
            loop.close()


def _wait(loop: asyncio.AbstractEventLoop, begin: Callable[[], Any]) -> Any:
    """What a call gives that has to begin in the running loop."""

    async def done() -> Any:
        return await asyncio.wait_for(begin(), 120)

    return loop.run_until_complete(done())
