"""`fetch NAME`: openly licensed sources, at a pinned revision, with checksum and resume."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from corpora.errors import ConfigError, InputError, chosen
from corpora.store.atomic import sha256, write_json

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
                digest, size, path = line.split("\t")
                files.append(RemoteFile(path, digest, int(size)))
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
    not a file, and for bytes with another checksum (they are removed).
    """
    import requests

    sources = known_sources() if sources is None else sources
    source, target = sources[chosen("source", name, sources)], folder / name
    for file in source.files:
        if Path(file.path).is_absolute() or ".." in Path(file.path).parts or "\\" in file.path:
            raise ConfigError(f"the path {file.path!r} leads out of its folder", where=name)
        path, address = target / file.path, source.address(file)
        if path.is_file() and sha256(path) == file.sha256:
            continue
        part = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for attempt in range(1, attempts + 1):
                try:
                    _download(address, part, file.size)
                    break
                except requests.RequestException as error:
                    status = None if error.response is None else error.response.status_code
                    if attempt == attempts or status not in (None, *_BUSY):
                        raise
                time.sleep(wait * 2 ** (attempt - 1))
            if part.stat().st_size > file.size or sha256(part) != file.sha256:
                part.unlink()
                message = f"{address} does not have the expected sha256 and {file.size:,} bytes"
                hint = "run it again; if the error remains, the file was changed at its origin"
                raise InputError(f"{message} ({file.path}); it was removed", where=name, hint=hint)
            part.replace(path)
        except requests.HTTPError as error:
            assert error.response is not None
            message = f"the server answers {error.response.status_code} for {address}"
            hint = "the file may have moved: fetch it by hand, and tell the maintainers"
            raise InputError(message, where=name, hint=hint) from None
        except requests.RequestException as error:
            message = f"cannot fetch {address}: {type(error).__name__}"
            hint = "check the network and run it again: downloaded parts are kept"
            raise InputError(message, where=name, hint=hint) from None
        except OSError as error:
            message = f"cannot write {error.filename or file.path}: {error.strerror or error}"
            hint = "check the permission to write there and the free space"
            raise InputError(message, where=name, hint=hint) from None
    about = {"name": name, "revision": source.revision, "licence": source.licence}
    write_json(target / "source.json", {**about, "kind": source.kind, "url": source.url})
    return target


def _download(url: str, part: Path, size: int) -> None:
    """One attempt to complete `part`, which is longer than `size` where the answer is.

    Raises `requests.ConnectionError` if fewer bytes come than expected.
    """
    import requests

    have = part.stat().st_size if part.is_file() else 0
    if have >= size:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
        response.raise_for_status()
        ranged = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        with part.open("ab" if response.status_code == 206 and ranged else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                if file.tell() > size:
                    break
            have = file.tell()
    if have < size:
        raise requests.ConnectionError(f"{url} ended too early")
