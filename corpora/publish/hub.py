"""Talking to the Hub: the token, who it belongs to, tries and tries again, errors for people.

The token is held by the client alone. Every message that leaves this module has it taken out,
and no error carries the client's own exception, whose request holds the token's header.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, TypeVar

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import httpx, parse_ratelimit_headers  # type: ignore[attr-defined]

from corpora.errors import ConfigError, DiscorporaError

log = logging.getLogger("corpora.publish")

T = TypeVar("T")

# 409 and 412: somebody pushed meanwhile. Every try reads the remote anew, so it sees their state.
TRANSIENT = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
CONFLICTS = frozenset({409, 412})
READERS = frozenset({"read"})


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """How much goes into one commit, and how patient we are.

    `commit_operations` is the Hub's own limit of files to add or delete in a commit. `attempts`
    counts the tries of one step; between them we wait `first_wait` seconds, doubled each time, or
    as long as the Hub asks, never over `longest_wait`.
    """

    commit_operations: int = 25_000
    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 300.0


class Hub:
    """The Hub as one user sees it.

    `token` is by default the one of `hf auth login` or `HF_TOKEN`; `endpoint` that of
    `HF_ENDPOINT`. Raises `ConfigError` if there is no token, or none that can be one.
    """

    def __init__(
        self,
        token: str | None = None,
        *,
        endpoint: str | None = None,
        settings: PublishSettings | None = None,
    ) -> None:
        self._token = _checked_token(token)
        self.settings = settings or PublishSettings()
        self.api = HfApi(endpoint=endpoint, token=self._token, library_name="discorpora")

    def __repr__(self) -> str:
        return f"Hub({self.api.endpoint!r})"

    @property
    def token(self) -> str:
        """For headers and for searching files only; it belongs into no message."""
        return self._token

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Who the token belongs to, asked once: the Hub limits this question strictly."""
        return self.call("asking the Hub whose token this is", self.api.whoami)

    def require_namespace(self, repo_id: str) -> None:
        """Raise `ConfigError` if the token may not write to the namespace of `repo_id`."""
        namespace, who = repo_id.split("/")[0], self.identity
        role = ((who.get("auth") or {}).get("accessToken") or {}).get("role", "")
        if role in READERS:
            raise ConfigError(
                "the token may only read",
                where=repo_id,
                hint="make one that may write: https://huggingface.co/settings/tokens",
            )
        orgs = {org["name"]: org.get("roleInOrg", "") for org in who.get("orgs") or ()}
        allowed = [who["name"], *(name for name, role in orgs.items() if role not in READERS)]
        if namespace not in allowed:
            why = "may only read in" if namespace in orgs else "is not a member of"
            raise ConfigError(
                f"{who['name']} {why} the namespace {namespace!r}",
                where=repo_id,
                hint=f"this token may write to: {', '.join(allowed)}",
            )

    def call(self, doing: str, function: Callable[[], T]) -> T:
        """`function()`, tried again on a passing failure: 429, 5xx, conflict, no connection.

        `doing` says in messages what was going on. Raises `DiscorporaError` in the end.
        """
        for attempt in range(1, max(1, self.settings.attempts) + 1):
            try:
                return function()
            except DiscorporaError:
                raise
            except Exception as error:
                # All of the client's errors, whatever their kind: each is explained, none leaks.
                wait = self._wait(error, attempt)
                failure = self._explained(doing, error, attempt)
            if wait is None:
                break
            log.warning("%s; next try in %.1f s", failure.message, wait)
            time.sleep(wait)
        # Raised here and not in the handler, so that it does not carry the client's exception.
        raise failure

    def redacted(self, text: str) -> str:
        """`text` without the token."""
        return text.replace(self._token, "hf_***")

    def _wait(self, error: Exception, attempt: int) -> float | None:
        """Seconds until the next try; None if there is to be none."""
        status = _status(error)
        passing = _is_dropped(error) if status is None else status in TRANSIENT
        if not passing or attempt >= self.settings.attempts:
            return None
        asked = _asked_wait(error)
        if asked is not None:
            return asked if asked <= self.settings.longest_wait else None
        return min(self.settings.first_wait * 2 ** (attempt - 1), self.settings.longest_wait)

    def _explained(self, doing: str, error: Exception, attempt: int) -> DiscorporaError:
        status = _status(error)
        tries = f" (try {attempt} of {self.settings.attempts})"
        if status is None and _is_dropped(error):
            message = f"no connection to {self.api.endpoint}{tries}"
            hint = "look at the network and HF_ENDPOINT, then publish again: what is up is kept"
        elif status is None:
            message, hint = self.redacted(_first_line(error)), ""
        else:
            message, hint = _of_status(status, self._server_message(error))
            message += tries if status in TRANSIENT else ""
        if (asked := _asked_wait(error)) and asked > self.settings.longest_wait:
            hint = f"the Hub asks to wait {asked:.0f} s: publish again after that"
        return DiscorporaError(f"{doing}: {message}", where=self.api.endpoint, hint=hint)

    def _server_message(self, error: Exception) -> str:
        said = (getattr(e, "server_message", None) for e in _chain(error))
        return self.redacted(next((str(text) for text in said if text), ""))


def _checked_token(token: str | None) -> str:
    token = (get_token() if token is None else token) or ""
    token = token.strip()
    if not token:
        raise ConfigError(
            "no access token of the Hub was found",
            hint="run `hf auth login`, or set HF_TOKEN, with a token that may write: "
            "https://huggingface.co/settings/tokens",
        )
    # A header cannot hold other characters, and the client's error would quote the token.
    if not re.fullmatch(r"[!-~]+", token):
        raise ConfigError(
            "the access token holds blanks or characters that no token has",
            hint="copy it again from https://huggingface.co/settings/tokens",
        )
    return token


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what it was raised from: the client wraps failed uploads."""
    link: BaseException | None = error
    for _ in range(10):
        if link is None:
            return
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _status(error: Exception) -> int | None:
    for link in _chain(error):
        if isinstance(link, HfHubHTTPError | httpx.HTTPStatusError) and link.response is not None:
            return int(link.response.status_code)
    return None


def _is_dropped(error: Exception) -> bool:
    # A body that is not JSON is a proxy's or a balancer's page, cut short or in the Hub's place.
    kinds = (
        httpx.TimeoutException,
        httpx.NetworkError,
        httpx.RemoteProtocolError,
        json.JSONDecodeError,
    )
    return any(isinstance(link, kinds) for link in _chain(error))


def _asked_wait(error: Exception) -> float | None:
    """How long the response asks to wait: `Retry-After` (seconds or a date), `RateLimit`."""
    responses = (getattr(link, "response", None) for link in _chain(error))
    headers: Mapping[str, str] = next(
        (response.headers for response in responses if response is not None), {}
    )
    asked = str(headers.get("retry-after", "")).strip()
    if asked.isdigit():
        return float(asked)
    if asked:
        try:
            moment = parsedate_to_datetime(asked)
        except ValueError:
            return None
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    limit = parse_ratelimit_headers(headers)
    return float(limit.reset_in_seconds) if limit and not limit.remaining else None


def _of_status(status: int, said: str) -> tuple[str, str]:
    """What an HTTP status means here, and what to do."""
    quoted = f" ({_first_line(said)})" if said else ""
    if status == 401:
        return (
            f"the Hub does not accept this token{quoted}",
            "run `hf auth login` again, or set HF_TOKEN to a valid token",
        )
    if status == 403:
        return (
            f"the token may not do this{quoted}",
            "choose a namespace that is yours, or a token with the right to write there",
        )
    if status == 404:
        return f"not found{quoted}", "look at the repository's id, and whether the token may see it"
    if status == 429:
        return f"the Hub asks for fewer requests (429){quoted}", "wait some minutes, publish again"
    if status in CONFLICTS:
        return f"somebody else is changing this repository{quoted}", "publish again in a while"
    if status >= 500:
        return f"the Hub has a failure of its own ({status}){quoted}", "publish again in a while"
    return f"the Hub refused it ({status}){quoted}", ""


def _first_line(error: object) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
