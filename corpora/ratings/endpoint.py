"""Send the items of a draw to an OpenAI-compatible endpoint.

The key stands only in the header of a request: it is removed from what the endpoint answers, and
no error carries the client's exception.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corpora.errors import BadRecord, ConfigError, DiscorporaError, InputError
from corpora.escape import line
from corpora.outside import parse_json
from corpora.progress import show_progress
from corpora.ratings.draw import Draw
from corpora.readers.rows import json_rows
from corpora.store.atomic import beside, locked, write_text

KEY_VARIABLE = "OPENAI_API_KEY"
ATTEMPTS, FIRST_WAIT, LONGEST_WAIT = 6, 1.0, 300.0
"""Maximum attempts; the second is at once, the others wait 2, 4, 8, ... times `FIRST_WAIT` seconds,
or as long as the endpoint asks, at most `LONGEST_WAIT`."""
TIMEOUT = 120  # seconds
AT_ONCE = 4
"""Requests that are sent at the same time."""
LONGEST = 1 << 20
"""Maximum bytes of an answer."""
_TEMPORARY = (408, 409, 425, 429, 500, 502, 503, 504)
_HOPELESS = {
    401: "it does not accept the key",
    403: "the key does not permit this",
    404: "it has no such model, or is not the address of an API",
    405: "it is not the address of an API",
}
"""Statuses that every further request would get too."""
_SECRET = 8
"""Minimum characters of a key that is a secret: local servers take any word, such as EMPTY."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Endpoint:
    """The address of an API, such as `http://localhost:8000/v1`, and a model that it serves.

    `key_variable` names the environment variable that holds the key; without the variable no key is
    sent. Raises `ConfigError` for an address that would show the key to others.
    """

    url: str
    model: str
    key_variable: str = KEY_VARIABLE

    def __post_init__(self) -> None:
        """Check the name of the variable, and that the address keeps the key secret."""
        if not _VARIABLE.fullmatch(self.key_variable):  # it may be the key itself: not shown
            hint = "give the variable's name, such as OPENAI_API_KEY, not the key"
            raise ConfigError("--key-variable is not the name of a variable", hint=hint)
        try:
            parts = urlsplit(self.url)
            host, has_user = parts.hostname, "@" in parts.netloc
        except ValueError:
            host, has_user = "", False
        if has_user or "?" in self.url:
            hint = f"the key belongs in the variable {self.key_variable}"
            raise ConfigError("--endpoint has a user, a password or a query in it", hint=hint)
        if not host or parts.scheme not in ("http", "https"):
            hint = "give the address before /chat/completions: --endpoint http://localhost:8000/v1"
            raise ConfigError(f"{self.url!r} is not the address of an API", hint=hint)
        if not re.fullmatch(r"[!-~]*", key := self._key()):
            problem = f"the key in {self.key_variable} contains spaces or other invalid characters"
            raise ConfigError(problem, hint="set the variable again")
        if len(key) >= _SECRET and parts.scheme == "http" and not _is_local(host):
            raise ConfigError(
                f"{self.url} would get the key in {self.key_variable} without encryption",
                hint="give an address with https://, or name an unset variable with --key-variable",
            )

    def _key(self) -> str:
        return os.environ.get(self.key_variable, "").strip()

    def _without_key(self, text: str) -> str:
        """Return a text without the key, which an endpoint may have repeated."""
        key = self._key()
        for form in {key, json.dumps(key)[1:-1]} if len(key) >= _SECRET else ():
            text = text.replace(form, "***")
        return text

    def asker(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """Return a function that sends a request of a batch and returns the line of its answer.

        The function may run in several threads. It raises `DiscorporaError` if the endpoint cannot
        be reached, or refuses what it would refuse of every request.
        """
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3 import Retry

        key, address = self._key(), f"{self.url.rstrip('/')}/chat/completions"

        class Bounded(Retry):
            """Waits as long as the endpoint asks for, up to `LONGEST_WAIT`."""

            def get_retry_after(self, response: Any) -> float | None:
                seconds = super().get_retry_after(response)
                return None if seconds is None else min(seconds, LONGEST_WAIT)

        def authorize(request: Any) -> Any:
            # As `auth`, since the client would replace a header by what `.netrc` holds.
            if key:
                request.headers["Authorization"] = f"Bearer {key}"
            return request

        # A session that tries again where that may help
        retry = Bounded(
            total=ATTEMPTS - 1,
            status_forcelist=_TEMPORARY,
            allowed_methods=None,
            backoff_factor=FIRST_WAIT,
            raise_on_status=False,
        )
        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry, pool_maxsize=AT_ONCE))

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            try:
                with session.post(
                    address,
                    json=request["body"],
                    auth=authorize,
                    timeout=TIMEOUT,
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    status, content = response.status_code, b""
                    for chunk in response.iter_content(1 << 16):
                        content += chunk
                        if len(content) > LONGEST:
                            break
            except requests.RequestException as error:
                status, content, problem = 0, b"", type(error).__name__
            # Errors of the endpoint are raised; every other answer is returned.
            text = self._without_key(content.decode("utf-8", "replace"))
            if status in (0, *_TEMPORARY):
                problem = f"it answers {status}" if status else f"no connection ({problem})"
                hint = "try again later: what was answered is kept"
            elif status in _HOPELESS or status < 200 or 300 <= status < 400:
                problem = f"it answers {status}: {_HOPELESS.get(status, 'expected an answer')}"
                hint = f"check --endpoint, --model and the key in {self.key_variable}"
            else:
                return {"custom_id": request["custom_id"], **_answer(status, text)}
            said = f" ({line(text)[:200]})" if text.strip() else ""
            raise DiscorporaError(f"{problem}{said}", where=address, hint=hint)

        return ask


def _is_local(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _answer(status: int, text: str) -> dict[str, Any]:
    """Return an answer as in the output of a batch; `error` is set if it is not JSON."""
    try:
        if len(text) > LONGEST:
            raise InputError(f"longer than {LONGEST >> 20} MiB")
        body, error = parse_json(text), None
    except InputError as problem:
        body, error = None, {"message": problem.message}
    return {"response": {"status_code": status, "body": body}, "error": error}


def send(draw: Draw, endpoint: Endpoint, folder: Path) -> Path:
    """Send all items to an endpoint; return the file of answers, `answers-MODEL.jsonl` in `folder`.

    Answers are written as they come. Answers of an earlier, interrupted run with status 200 are
    kept and not asked for again. Raises as `Endpoint.asker` does.
    """
    path = folder / f"answers-{re.sub(r'[^A-Za-z0-9.]+', '-', endpoint.model).strip('-')}.jsonl"
    with locked(beside(path, "lock"), "another process sends these items"):
        ids = {*draw.ids()}
        kept = {id: text for id, text in _answered(path) if id in ids}
        write_text(path, "".join(kept.values()))
        waiting = [r for r in draw.requests(endpoint.model) if r["custom_id"] not in kept]
        ask = endpoint.asker()
        with (
            path.open("a", encoding="utf-8") as file,
            ThreadPoolExecutor(AT_ONCE) as pool,
            show_progress(f"asking {endpoint.model}", len(waiting)) as loop,
        ):
            futures = [pool.submit(ask, request) for request in waiting]
            try:
                for future in as_completed(futures):
                    file.write(endpoint._without_key(_json_line(future.result())))
                    file.flush()
                    loop.done += 1
            finally:
                for future in futures:
                    future.cancel()
    return path


def _answered(path: Path) -> list[tuple[str, str]]:
    """Return the id and the line of each answer in a file whose status is 200."""
    answered = []
    for _, record in json_rows(path) if path.is_file() else ():
        if not isinstance(record, BadRecord):
            response = record.get("response")
            if isinstance(response, dict) and response.get("status_code") == 200:
                answered.append((str(record.get("custom_id")), _json_line(record)))
    return answered


def _json_line(value: Any) -> str:
    return f"{json.dumps(value, ensure_ascii=False)}\n"
