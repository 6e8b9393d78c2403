"""The Hub: the token and its owner, retries, and errors for users.

Only the client holds the token. Every message that leaves this module has it removed, and no error
carries the client's exception, whose request contains the token's header.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Annotated, Any, TypeVar

from huggingface_hub import HfApi, get_token
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    httpx,
    parse_ratelimit_headers,
)
from pydantic import AfterValidator, AliasPath, BaseModel, Field

from corpora.errors import ConfigError, DiscorporaError
from corpora.escape import line
from corpora.outside import record_of

log = logging.getLogger("corpora.publish")

T = TypeVar("T")

TRANSIENT = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""HTTP statuses that may pass. 409 and 412: somebody else pushed; a retry reads the new state."""
DROPPED = (httpx.TransportError, json.JSONDecodeError)
"""Errors of the connection; a body that is not JSON is a page of a proxy or load balancer."""
MAX_CAUSES = 10
AGAIN = "publish again later"
LOGIN = "run `hf auth login`, or set HF_TOKEN, with a token with write permission: "
LOGIN += "https://huggingface.co/settings/tokens"
CHANGING = ("someone else is changing this repository", AGAIN)
MEANINGS = {
    401: ("the Hub does not accept this token", LOGIN),
    403: ("the token does not permit this", "choose your own namespace, or a token for this one"),
    404: ("not found", "check the repository's id, and whether the token may read it"),
    409: CHANGING,
    412: CHANGING,
    429: ("the Hub asks for fewer requests (429)", "wait a few minutes, then publish again"),
}
"""The meaning of an HTTP status, and what to do."""


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """The maximum attempts of each step, and the seconds to wait between them.

    The first wait is `first_wait`, doubled each time, or as long as the Hub asks, at most
    `longest_wait`.
    """

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 300.0


Shown = Annotated[str, AfterValidator(line)]
"""A name in one line."""


class Organisation(BaseModel):
    name: Shown
    roleInOrg: str = ""


class Identity(BaseModel):
    """The Hub's record of a token's owner, with the Hub's names of the keys."""

    name: Shown
    orgs: tuple[Organisation, ...] | None = None
    role: Any = Field(None, validation_alias=AliasPath("auth", "accessToken", "role"))


class Hub:
    """A connection to the Hub for one user.

    `token` is by default that of `hf auth login` or `HF_TOKEN`; `endpoint` that of `HF_ENDPOINT`.
    Raises `ConfigError` for a missing or malformed token.
    """

    def __init__(
        self,
        token: str | None = None,
        *,
        endpoint: str | None = None,
        settings: PublishSettings | None = None,
    ) -> None:
        self.token = ((get_token() if token is None else token) or "").strip()
        """Only for headers and for searching files; never part of a message."""
        # A header cannot hold other characters, and the client's error would quote the token.
        if not re.fullmatch(r"[!-~]+", self.token):
            raise ConfigError(
                "the access token contains spaces or other invalid characters"
                if self.token
                else "no access token of the Hub was found",
                hint=LOGIN,
            )
        self.settings = settings or PublishSettings()
        self.api = HfApi(endpoint=endpoint, token=self.token, library_name="discorpora")

    @cached_property
    def identity(self) -> Identity:
        """The token's owner, requested once: the Hub limits this request strictly."""
        answer = self.call("asking the Hub whose token this is", self.api.whoami)
        return record_of(Identity, answer, f"{self.api.endpoint}/api/whoami-v2", AGAIN)

    def require_namespace(self, repo_id: str) -> None:
        """Raise `ConfigError` if the token may not write to the namespace of `repo_id`."""
        namespace, owner = repo_id.split("/")[0], self.identity
        if owner.role == "read":
            raise ConfigError("the token may only read", where=repo_id, hint=LOGIN)
        orgs = {org.name: org.roleInOrg for org in owner.orgs or ()}
        allowed = [owner.name, *(name for name, role in orgs.items() if role != "read")]
        if namespace not in allowed:
            problem = "may only read in" if namespace in orgs else "is not a member of"
            raise ConfigError(
                f"{owner.name} {problem} the namespace {namespace!r}",
                where=repo_id,
                hint=f"this token may write to: {', '.join(allowed)}",
            )

    def request(self, method: str, address: str, **options: Any) -> bytes:
        """Return the body of the answer to a request for which the client has no function."""
        headers = build_hf_headers(token=self.token)
        response = get_session().request(method, address, headers=headers, **options)
        hf_raise_for_status(response)
        return bytes(response.content)

    def call(self, step: str, function: Callable[[], T]) -> T:
        """Call `function`, again after temporary failures: 429, 5xx, conflict, no connection.

        `step` describes the call in messages: "publishing me/data". Raises `DiscorporaError` after
        the last attempt. Written by hand because the client retries only some requests, and none
        after a conflict.
        """
        settings = self.settings
        attempts = max(1, settings.attempts)
        for attempt in range(1, attempts + 1):
            try:
                return function()
            except DiscorporaError:
                raise
            except Exception as error:
                # All errors of the client: each is explained, none leaks the token.
                temporary, problem, hint, wait = _explain_error(error, self.api.endpoint)
            message = f"{step}: {problem.replace(self.token, 'hf_***')[:300]}"
            if wait is None:
                wait = min(settings.first_wait * 2 ** (attempt - 1), settings.longest_wait)
            elif wait > settings.longest_wait:
                hint = f"the Hub asks to wait {wait:.0f} s: publish again after that"
            if temporary:
                message += f" (try {attempt} of {attempts})"
            if not temporary or wait > settings.longest_wait:
                break
            if attempt < attempts:
                log.warning("%s; next try in %.1f s", message, wait)
                time.sleep(wait)
        # Not in the handler, so that it does not carry the client's exception.
        raise DiscorporaError(message, where=self.api.endpoint, hint=hint)


def _explain_error(error: Exception, endpoint: str) -> tuple[bool, str, str, float | None]:
    """Return whether an error of the client is temporary, a message, what to do, and the seconds
    that the Hub asks to wait. Its causes are read too, since the client wraps failed uploads."""
    errors: list[BaseException] = [error]
    while (cause := errors[-1].__cause__ or errors[-1].__context__) and len(errors) < MAX_CAUSES:
        errors.append(cause)
    responses = (getattr(each, "response", None) for each in errors)
    response = next((each for each in responses if each is not None), None)
    if response is None and any(isinstance(each, DROPPED) for each in errors):
        hint = "check the network and HF_ENDPOINT, then publish again: uploaded files are kept"
        return True, f"no connection to {endpoint}", hint, None
    if response is None:
        return False, " ".join(str(error).split()) or type(error).__name__, "", None
    status = int(response.status_code)
    message, hint = MEANINGS.get(status, (f"the Hub rejected it ({status})", ""))
    if status >= 500:
        message, hint = f"the Hub has an internal error ({status})", AGAIN
    messages = (getattr(each, "server_message", None) for each in errors)
    if text := next(filter(None, messages), ""):
        message += f" ({' '.join(str(text).split())})"
    return status in TRANSIENT, message, hint, _requested_wait(response.headers)


def _requested_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers of an answer ask to wait, None if they ask for nothing.
    `Retry-After` is read by hand, because the client reads no date; `RateLimit` by the client."""
    retry_after, limit = headers.get("retry-after", "").strip(), parse_ratelimit_headers(headers)
    if retry_after.isdecimal():
        return float(retry_after)
    if retry_after:
        with suppress(ValueError):
            # Dates of HTTP are in UTC, whether or not they name a zone.
            wait = parsedate_to_datetime(retry_after).replace(tzinfo=UTC) - datetime.now(UTC)
            return max(0.0, wait.total_seconds())
        return None
    return float(limit.reset_in_seconds) if limit and not limit.remaining else None
