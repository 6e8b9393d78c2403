"""`fetch NAME`: openly licensed sources, at a pinned revision, with checksum and resume."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from corpora.errors import ConfigError, InputError, chosen, require
from corpora.store.atomic import write_json

EXTRA = "fetch"
ATTEMPTS = 5
WAIT = 1.0
"""Seconds before the second attempt; twice as long before each further one."""

_TIMEOUT = 60
# An incomplete piece is lost when a connection drops.
_CHUNK = 1 << 13
_BUSY = frozenset((408, 429, 500, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file below the source's folder: its expected size and checksum."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """A source on the network. `url` has the places `{revision}` and `{path}`."""

    name: str
    summary: str
    kind: str
    licence: str
    revision: str
    url: str
    files: tuple[RemoteFile, ...]

    def address(self, file: RemoteFile) -> str:
        return self.url.format(revision=self.revision, path=file.path)


@cache
def known_sources() -> dict[str, RemoteSource]:
    """The sources that `fetch` knows, by name (`corpora/fetch.toml`)."""
    here, sources = Path(__file__).parent, {}
    for name, row in tomllib.loads((here / "fetch.toml").read_text(encoding="utf-8")).items():
        files = [RemoteFile(path, **what) for path, what in row.pop("files", {}).items()]
        if "list" in row:
            for line in (here / row.pop("list")).read_text(encoding="utf-8").splitlines():
                sha256, size, path = line.split("\t")
                files.append(RemoteFile(path, sha256, int(size)))
        sources[name] = RemoteSource(name=name, files=tuple(files), **row)
    return sources


def fetch(
    name: str,
    folder: Path,
    *,
    sources: Mapping[str, RemoteSource] | None = None,
    attempts: int = ATTEMPTS,
    wait: float = WAIT,
) -> Path:
    """Download the files of a known source to `folder/name` and return that folder.

    Existing files with the right bytes are kept, an interrupted download is resumed (also in a
    later run), and dropped connections and busy servers are retried.
    `source.json` beside the files names licence, revision and address.

    Raises `ConfigError` for an unknown name, `InputError` without network, for an answer that is
    not a file, and for bytes with another checksum (they are removed); `DiscorporaError` without
    the extra `fetch`.
    """
    sources = known_sources() if sources is None else sources
    source, target = sources[chosen("source", name, sources)], folder / name
    pooch = require("pooch", EXTRA, "to fetch a source")
    pooch.get_logger().setLevel("WARNING")
    for file in source.files:
        if Path(file.path).is_absolute() or ".." in Path(file.path).parts or "\\" in file.path:
            raise ConfigError(f"the path {file.path!r} leads out of its folder", where=name)
        address = source.address(file)
        download = _Resuming(target / file.path, file.size, attempts, wait)
        try:
            pooch.retrieve(
                address, f"sha256:{file.sha256}", fname=file.path, path=target, downloader=download
            )
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise _explained(error, address, file.path, name) from None
    about = {"name": name, "revision": source.revision, "licence": source.licence}
    write_json(target / "source.json", {**about, "kind": source.kind, "url": source.url})
    return target


def _explained(error: Exception, address: str, path: str, name: str) -> InputError:
    import requests

    # What pooch raises itself: the checksum.
    message = f"{address} does not have the expected sha256 ({path}); it was removed"
    hint = "run it again; if the error remains, the file was changed at its origin"
    if isinstance(error, requests.HTTPError) and error.response is not None:
        message = f"the server answers {error.response.status_code} for {address}"
        hint = "the file may have moved: fetch it by hand, and tell the maintainers"
    elif isinstance(error, requests.RequestException):
        message = f"cannot fetch {address}: {type(error).__name__}"
        hint = "check the network and run it again: downloaded parts are kept"
    elif isinstance(error, OSError):
        message = f"cannot write {error.filename or path}: {error.strerror or error}"
        hint = "check the permission to write there and the free space"
    return InputError(message, where=name, hint=hint)


@dataclass(slots=True)
class _Resuming:
    """A downloader for pooch that resumes an earlier attempt, which pooch's own cannot.

    Bytes are collected in a hidden file beside the target; when it has the announced size, pooch
    checks and moves it.
    """

    target: Path
    size: int
    attempts: int
    wait: float

    def __call__(
        self, url: str, output_file: str | Path, pooch: object, check_only: bool = False
    ) -> None:
        import requests

        part = self.target.with_name(f".{self.target.name}.part")
        for attempt in range(1, self.attempts + 1):
            try:
                self._download(url, part)
                break
            except requests.RequestException as error:
                status = None if error.response is None else error.response.status_code
                if attempt == self.attempts or status not in (None, *_BUSY):
                    raise
            time.sleep(self.wait * 2 ** (attempt - 1))
        part.replace(output_file)

    def _download(self, url: str, part: Path) -> None:
        """One attempt; raises `requests.ConnectionError` if fewer bytes come than announced."""
        import requests

        have = part.stat().st_size if part.is_file() else 0
        if have == self.size:
            return
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
            response.raise_for_status()
            ranged = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            resumed = response.status_code == 206 and ranged
            with part.open("ab" if resumed else "wb") as file:
                for chunk in response.iter_content(_CHUNK):
                    file.write(chunk)
                    if file.tell() > self.size:
                        break
                have = file.tell()
        if have > self.size:
            part.unlink()
            raise InputError(
                f"{url} has more than the {self.size:,} bytes expected; it was removed",
                hint="the file was changed at its origin",
            )
        if have < self.size:
            raise requests.ConnectionError(f"{url} ended too early")
