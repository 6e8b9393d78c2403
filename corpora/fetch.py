"""`fetch NAME`: openly licensed sources, at a pinned revision, with checksum and resume."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from corpora.errors import ConfigError, InputError, check_choice
from corpora.store.atomic import sha256, write_json

ATTEMPTS = 5
WAIT = 1.0
"""Seconds before the second attempt; twice as long before each further one."""

_TIMEOUT = 60  # seconds
_CHUNK = 1 << 13  # bytes; what is read of an incomplete chunk is lost when a connection drops
_BUSY = frozenset((408, 429, 500, 502, 503, 504))
"""HTTP statuses of a server that may answer later."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file below the source's folder: its expected size and checksum."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """A source on the network: its files at one `revision`, its licence, and the `kind` of its
    reader.

    `url` has the places `{revision}` and `{path}`.
    """

    name: str
    summary: str
    kind: str
    licence: str
    revision: str
    url: str
    files: tuple[RemoteFile, ...]

    def address(self, file: RemoteFile) -> str:
        """Return the URL of a file at the pinned revision."""
        return self.url.format(revision=self.revision, path=file.path)


@cache
def known_sources() -> dict[str, RemoteSource]:
    """Return the sources that `fetch` knows, by name, as `corpora/fetch.toml` declares them."""
    folder, sources = Path(__file__).parent, {}
    tables = tomllib.loads((folder / "fetch.toml").read_text(encoding="utf-8"))
    for name, table in tables.items():
        files = [RemoteFile(path, **fields) for path, fields in table.pop("files", {}).items()]
        if "list" in table:
            for line in (folder / table.pop("list")).read_text(encoding="utf-8").splitlines():
                digest, size, path = line.split("\t")
                files.append(RemoteFile(path, digest, int(size)))
        sources[name] = RemoteSource(name=name, files=tuple(files), **table)
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
    source, target = sources[check_choice("source", name, sources)], folder / name
    for file in source.files:
        if Path(file.path).is_absolute() or ".." in Path(file.path).parts or "\\" in file.path:
            raise ConfigError(f"the path {file.path!r} leads out of its folder", where=name)
        path, address = target / file.path, source.address(file)
        if path.is_file() and sha256(path) == file.sha256:
            continue
        # Download to a hidden file, which gets its name when its checksum is right.
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
    record = {"name": name, "revision": source.revision, "licence": source.licence}
    write_json(target / "source.json", {**record, "kind": source.kind, "url": source.url})
    return target


def _download(url: str, part: Path, size: int) -> None:
    """Try once to download the missing bytes of the partial file `part`. Stops soon after `size`
    bytes, the expected length, so that a longer answer can be recognised. Raises
    `requests.ConnectionError` if fewer bytes come."""
    import requests

    length = part.stat().st_size if part.is_file() else 0
    if length >= size:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={length}-"} if length else {})
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
        response.raise_for_status()
        partial_content = response.status_code == requests.codes.partial_content
        starts_there = response.headers.get("Content-Range", "").startswith(f"bytes {length}-")
        with part.open("ab" if partial_content and starts_there else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                if file.tell() > size:
                    break
            length = file.tell()
    if length < size:
        raise requests.ConnectionError(f"{url} ended too early")
