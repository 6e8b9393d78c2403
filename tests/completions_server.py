"""A small server on 127.0.0.1 that speaks the chat completions of an OpenAI-compatible API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class CompletionsServer:
    """It answers a request with what `say` returns of its user's message.

    `faults` are answers (status, headers, body) to the next requests; `key`: the key that it
    accepts ("": any, or none). `seen` has the headers and the body of each request.
    """

    say: Callable[[str], str]
    key: str = ""
    faults: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    seen: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self) -> Iterator[CompletionsServer]:
        handler = type("BoundHandler", (Handler,), {"api": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            self.url = f"http://127.0.0.1:{server.server_port}/v1"
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


class Handler(BaseHTTPRequestHandler):
    api: CompletionsServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.api.lock:
            self.api.seen.append((dict(self.headers), body))
            fault = self.api.faults.pop(0) if self.api.faults else None
        if fault:
            self._send(*fault)
        elif self.path != "/v1/chat/completions":
            self._send(404, {}, '{"error": {"message": "no such path"}}')
        elif self.api.key and self.headers.get("Authorization") != f"Bearer {self.api.key}":
            self._send(401, {}, '{"error": {"message": "wrong key"}}')
        else:
            message = {
                "role": "assistant",
                "content": self.api.say(body["messages"][-1]["content"]),
            }
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {"object": "chat.completion", "model": body["model"], "choices": [choice]}
            self._send(200, {}, json.dumps(answer))

    def _send(self, status: int, headers: dict[str, str], text: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the tests read `seen`."""
