"""What a finished folder would put on the Hub: its files, their bytes, the licence decision.

Needs no network and no token. Only what the manifest names is published, with the card and the
manifest itself: a note or a cache left in the folder stays at home.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.publish.licence import LicenceDecision, dataset_licence, model_licence
from corpora.store.atomic import MANIFEST, read_json, sha256

Kind = Literal["dataset", "model"]

CARD = "README.md"
KINDS: dict[str, str] = {"dataset": "configs", "model": "files"}
TEXTS = (".md", ".json", ".txt", ".toml", ".yaml")
# What the Hub's tokens look like; long enough that no word of a text is one.
TOKEN_LIKE = re.compile(r"\bhf_[A-Za-z0-9]{30,}")


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file: its path in the repository, its size, and its sha256 as the manifest has it.

    `sha256` is empty for the card and the manifest, which the manifest cannot name.
    """

    path: str
    bytes: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Publication:
    """A folder about to be published: what the dry run lists.

    `files` are in the order of their paths; `left_out` are files of the folder that the manifest
    does not name.
    """

    folder: Path
    repo_id: str
    kind: Kind
    private: bool
    files: tuple[PublishedFile, ...]
    left_out: tuple[str, ...]
    licence: LicenceDecision
    manifest: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def data_files(self) -> tuple[PublishedFile, ...]:
        """All files but the card and the manifest."""
        return tuple(file for file in self.files if file.path not in (CARD, MANIFEST))

    def lines(self) -> list[str]:
        """The dry run's listing, a line a file, then the sum and the licence decision."""
        listed = [f"{file.bytes:>14,}  {file.path}" for file in self.files]
        listed.append(f"{self.bytes:>14,}  bytes in {len(self.files)} files")
        listed += [f"  left out, not named by the manifest: {path}" for path in self.left_out]
        return [*listed, f"  licence {self.licence}"]

    def require_licence(self) -> None:
        """Raise `DiscorporaError` with the reason if the licence forbids passing it on."""
        if not self.licence.allowed:
            raise DiscorporaError(
                f"may not be published: {self.licence.reason}",
                where=str(self.folder),
                hint=f"it follows from {', '.join(self.licence.sources) or 'no named licence'}; "
                "build it from sources that may be passed on, or keep it on your disk",
            )

    def verify(self) -> None:
        """Read every data file; raise `InputError` if one is not what the manifest says."""
        for file in self.data_files:
            if sha256(self.folder / file.path) != file.sha256:
                raise InputError(
                    "is not the file that the manifest describes (its sha256 differs)",
                    where=str(self.folder / file.path),
                    hint="remove the folder and build it again",
                )

    def require_no_token(self, token: str = "") -> None:
        """Raise `ConfigError` if a text file holds `token`, or what looks like one."""
        for file in self.files:
            path = self.folder / file.path
            if path.suffix not in TEXTS or file.bytes > 2**24:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if TOKEN_LIKE.search(text) or (token and token in text):
                raise ConfigError(
                    "an access token of the Hub stands in this file",
                    where=str(path),
                    hint="revoke that token, remove it from the build file or command, rebuild",
                )


def plan_publication(
    folder: Path, repo_id: str, *, kind: Kind = "dataset", private: bool = False
) -> Publication:
    """What publishing `folder` as `repo_id` (`NAMESPACE/NAME`) would do.

    A licence that forbids it is no error here: see `Publication.licence`. Raises `InputError` if
    the folder is unfinished, lacks a file or is of another kind, `ConfigError` for a bad id.
    """
    _check_id(repo_id)
    manifest = _read_manifest(folder, kind)
    try:
        named = _named_files(manifest, kind)
    except ValueError as error:
        raise InputError(str(error), where=str(folder / MANIFEST)) from error
    data = {path: sum for path, sum in named if path not in (CARD, MANIFEST)}
    files = [_file(folder, path, sum) for path, sum in data.items()]
    files += [_file(folder, path, "") for path in (CARD, MANIFEST)]
    return Publication(
        folder=folder,
        repo_id=repo_id,
        kind=kind,
        private=private,
        files=tuple(sorted(files, key=lambda file: file.path)),
        left_out=_left_out(folder, {file.path for file in files}),
        licence=dataset_licence(manifest) if kind == "dataset" else model_licence(folder),
        manifest=manifest,
    )


def owned_files(manifest: Mapping[str, Any]) -> set[str]:
    """The data files that a manifest, also one read from the Hub, names as its own.

    Raises `ValueError` if it is in another form than ours.
    """
    for kind, key in KINDS.items():
        if isinstance(manifest.get(key), dict):
            return {path for path, _ in _named_files(manifest, kind)}
    return set()


def _check_id(repo_id: str) -> None:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo_id, re.ASCII):
        raise ConfigError(
            f"{repo_id!r} is not the id of a repository",
            hint="give NAMESPACE/NAME: your user name or an organisation of yours, a slash, a name",
        )


def _read_manifest(folder: Path, kind: Kind) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        what = (
            "holds no manifest.json, so it is not finished" if folder.is_dir() else "is no folder"
        )
        raise InputError(
            what, where=str(folder), hint="build it first: discorpora build; it is written last"
        )
    manifest = read_json(path, "remove the folder and build it again")
    if not isinstance(manifest, dict) or not isinstance(manifest.get(KINDS[kind]), dict):
        raise InputError(
            f"is not the manifest of a {kind}: it has no {KINDS[kind]!r}",
            where=str(path),
            hint="a dataset is published with kind dataset, a model with kind model",
        )
    return manifest


def _named_files(manifest: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    try:
        return list(_dataset_files(manifest) if kind == "dataset" else _model_files(manifest))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"is not the manifest of a {kind} ({error!r})") from error


def _dataset_files(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for config in manifest["configs"].values():
        for split in config["splits"].values():
            yield from ((shard["file"], shard["sha256"]) for shard in split["shards"])


def _model_files(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    # A hidden file is the run's own: it is no part of the model.
    for path, sum in manifest["files"].items():
        if not any(part.startswith(".") for part in PurePosixPath(path).parts):
            yield path, sum


def _file(folder: Path, path: str, sum: str) -> PublishedFile:
    place = folder / path
    if not place.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"names a file outside the folder: {path}", where=str(folder / MANIFEST))
    if not place.is_file():
        raise InputError(
            "is missing: the folder is incomplete",
            where=str(place),
            hint="remove the folder and build it again",
        )
    return PublishedFile(path, place.stat().st_size, sum)


def _left_out(folder: Path, published: set[str]) -> tuple[str, ...]:
    files = (path for path in folder.rglob("*") if path.is_file())
    names = (path.relative_to(folder).as_posix() for path in files)
    return tuple(sorted(name for name in names if name not in published))
