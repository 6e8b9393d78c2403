"""The plan of a publication: files, bytes, licence, card. Needs no network and no token.

Only files that the manifest names are published, with the card and the manifest itself; other files
in the folder are not. The card is merged with the one on the Hub:

- *Text*: ours is between two markers. Text before and after them on the Hub stays, byte for byte; a
card without markers is kept, and ours follows it.
- *Metadata*: our keys replace the remote's, other keys stay; `tags` are merged. An empty value of
ours replaces nothing. The licence keys belong together: our `license` removes the remote's
`license_name` and `license_link`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from corpora import licences
from corpora.audit import AUDIT_FILE
from corpora.errors import ConfigError, DiscorporaError, InputError, amount
from corpora.escape import line
from corpora.licences import Combined
from corpora.outside import HUB_ID, read_record
from corpora.store.atomic import MANIFEST, sha256
from corpora.store.damage import checksums, damages
from corpora.store.manifest import Manifest, Results

if TYPE_CHECKING:
    from huggingface_hub import RepoCard

Kind = Literal["dataset", "model"]

CARD = "README.md"
RESULTS = "results.json"
OURS = (CARD, MANIFEST, AUDIT_FILE)
"""Published with every folder (the audit if there is one); not named in the manifest."""
TEXTS = (".md", ".json", ".txt", ".toml", ".yaml")
TOKEN_LIKE = re.compile(r"\bhf_[A-Za-z0-9]{30,}")
"""The form of the Hub's tokens, long enough that no word matches."""

BEGIN, END = "<!-- discorpora:begin -->", "<!-- discorpora:end -->"
MAKE = "remove the folder and build it again"
MEND = "fix the card on the Hub, then publish again"
PUBLISHER = ("name", "contact", "citation")
LICENCE_KEYS = ("license", "license_name", "license_link")


def named(manifest: Manifest) -> dict[str, str]:
    """The data files of a manifest with their sha256. Hidden files belong to a training run."""
    splits = (split for config in manifest.configs.values() for split in config.splits.values())
    shards = {shard.file: shard.sha256 for split in splits for shard in split.shards}
    files = {path: sum for path, sum in manifest.files.items() if "/." not in f"/{path}"}
    return {path: sum for path, sum in (shards | files).items() if path not in OURS}


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file: its path in the repository, its size, and its sha256 as the manifest has it.

    `sha256` is empty for the card, the manifest and the audit.
    """

    path: str
    bytes: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Publication:
    """A folder to be published, as a dry run lists it.

    `files` are in the order of their paths; `left_out` are files of the folder that the manifest
    does not name.
    """

    folder: Path
    repo_id: str
    kind: Kind
    private: bool
    files: tuple[PublishedFile, ...]
    left_out: tuple[str, ...]
    licence: Combined
    manifest: Manifest

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def data_files(self) -> tuple[PublishedFile, ...]:
        """All files except the card, the manifest and the audit."""
        return tuple(file for file in self.files if file.path not in OURS)

    def lines(self) -> list[str]:
        """The lines of a dry run: each file, the sum, and the licence decision."""
        listed = [f"{file.bytes:>14,}  {file.path}" for file in self.files]
        listed.append(f"{self.bytes:>14,}  bytes in {amount(len(self.files), 'file')}")
        listed += [f"  left out, not named by the manifest: {path}" for path in self.left_out]
        return [*listed, *self.missing(), f"  licence {self.licence}"]

    def missing(self) -> list[str]:
        """What the card of a dataset does not say, with the keys of the build file for it."""
        if self.kind == "model":
            return []
        absent = [key for key in PUBLISHER if not self.manifest.stage.publisher.get(key)]
        lines = [f"  the card lacks, from [publisher]: {', '.join(absent)}"] if absent else []
        for key in ("title", "url"):
            bare = [line(s.name or s.spec) for s in self.manifest.sources if not getattr(s, key)]
            if bare:
                lines.append(f"  the card lacks, from [[sources]]: {key} of {', '.join(bare)}")
        return lines

    def require_licence(self) -> None:
        """Raise `DiscorporaError` with the reason if the licence forbids passing it on."""
        if not self.licence.redistributable:
            sources = ", ".join(self.licence.sources) or "no named licence"
            hint = f"derived from {sources}; build it from sources that may be passed on"
            said = f"may not be published: {self.licence.reason}"
            raise DiscorporaError(said, where=str(self.folder), hint=hint)

    def require_no_token(self, token: str = "") -> None:
        """Raise `ConfigError` if a text file contains `token`, or something like a token.

        Text files above 16 MiB are not read.
        """
        for file in self.files:
            path = self.folder / file.path
            if path.suffix not in TEXTS or file.bytes > 2**24:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if TOKEN_LIKE.search(text) or (token and token in text):
                said = "this file contains an access token of the Hub"
                hint = "revoke that token, remove it from the build file or command, rebuild"
                raise ConfigError(said, where=str(path), hint=hint)

    def verify(self) -> None:
        """Read every file; raise `InputError` if one is not what the manifest says."""
        for path, problem in damages(self.folder):
            raise InputError(problem, where=str(path), hint=MAKE)
        sealed = checksums(self.folder / MANIFEST) is not None  # then `damages` has read the files
        for file in () if sealed else self.data_files:
            if sha256(path := self.folder / file.path) != file.sha256:
                said = "its sha256 differs from the one in the manifest"
                raise InputError(said, where=str(path), hint=MAKE)

    def card(self, theirs: str | None) -> str:
        """The folder's card merged into the Hub's, with the repository's id in its examples.

        Raises `InputError` for a card of the Hub that cannot be merged.
        """
        text = (self.folder / CARD).read_text(encoding="utf-8")
        loads = 'load_dataset("{}"'.format
        text = text.replace(loads(self.manifest.name), loads(self.repo_id))
        text = text.replace('folder = "."  # this folder, or', f'folder = "{self.repo_id}"  #')
        ours = read_card(text, where=str(self.folder / CARD))
        for key in LICENCE_KEYS:
            ours.data.pop(key)
        ours.data["license"] = self.licence.hub
        if self.licence.hub == "other":
            ours.data["license_name"] = self.licence.id.lower()
        return merged_card(ours, theirs, where=f"the card of {self.repo_id} on the Hub")


def plan_publication(
    folder: Path, repo_id: str, *, kind: Kind = "dataset", private: bool = False
) -> Publication:
    """The plan to publish `folder` as `repo_id` (`NAMESPACE/NAME`).

    A licence that forbids it is not an error here: see `Publication.licence`. Raises `InputError`
    if the folder is unfinished, lacks a file or is of another kind, `ConfigError` for a bad id.
    """
    if not (repo_id.isascii() and HUB_ID.fullmatch(repo_id)):
        hint = "give NAMESPACE/NAME, where NAMESPACE is your user name or organisation"
        raise ConfigError(f"{repo_id!r} is not a repository id", hint=hint)
    if not (folder / MANIFEST).is_file():
        said = f"has no {MANIFEST}, so it is not finished" if folder.is_dir() else "is not a folder"
        hint = "build it first with: discorpora build"
        raise InputError(said, where=str(folder), hint=hint)
    manifest = read_record(Manifest, folder / MANIFEST, MAKE)
    if not (manifest.configs if kind == "dataset" else manifest.files):
        hint = "a dataset is published with kind dataset, a model with kind model"
        said = f"is not the manifest of a {kind}"
        raise InputError(said, where=str(folder / MANIFEST), hint=hint)
    files = []
    ours = [path for path in OURS if path != AUDIT_FILE or (folder / path).is_file()]
    for path, sum in sorted({**named(manifest), **dict.fromkeys(ours, "")}.items()):
        place = folder / path
        if not place.resolve().is_relative_to(folder.resolve()):
            raise InputError("is outside the folder", where=str(place), hint=MAKE)
        if not place.is_file():
            said = "is missing: the folder is incomplete"
            raise InputError(said, where=str(place), hint=MAKE)
        files.append(PublishedFile(path, place.stat().st_size, sum))
    inside = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    left_out = tuple(sorted(inside - {file.path for file in files}))
    licence = _licence(folder, manifest, kind)
    return Publication(folder, repo_id, kind, private, tuple(files), left_out, licence, manifest)


def _licence(folder: Path, manifest: Manifest, kind: Kind) -> Combined:
    """The licence that follows from the sources; for a dataset at least as strict as declared.

    The manifest names a dataset's sources, the results those of a model.
    """
    stored = manifest.licence
    own = [*stored.sources, *manifest.licences] if stored else []
    found = read_record(Results, folder / RESULTS, MAKE).licences if kind == "model" else {}
    origins = {name: {id or licences.UNKNOWN for id in ids} for name, ids in found.items()}
    ids = {id or licences.UNKNOWN for id in own}.union(*origins.values())
    names = tuple(sorted(ids))
    try:
        licence = licences.combine(names)
    except ConfigError:
        reason = f"unknown licence {', '.join(names)}: some of its sources may be closed"
        return Combined("other", "other", False, reason, names)
    closed = {id for id in names if not licences.lookup(id).redistributable}
    if forbidding := [origin for origin, ids in origins.items() if ids & closed]:
        return replace(licence, reason=f"{', '.join(forbidding)}: {licence.reason}")
    if stored and licence.redistributable and not stored.redistributable:
        reason = stored.reason or "its manifest says that it may not be passed on"
        return replace(licence, hub="other", redistributable=False, reason=reason)
    return licence


def read_card(text: str, *, where: str) -> RepoCard:
    """A card's metadata and text. Raises `InputError` naming `where` for bad metadata."""
    import yaml
    from huggingface_hub import RepoCard

    try:
        return RepoCard(text.removeprefix("\ufeff"))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        said = f"its metadata is not a YAML table: {error}"
        raise InputError(said, where=where, hint=MEND) from error


def merged_card(ours: RepoCard, theirs: str | None, *, where: str) -> str:
    """The card to publish, from ours and the one on the Hub (None if there is none).

    Raises `InputError` naming `where` (the remote card) if its metadata cannot be read or its
    markers do not pair up.
    """
    # A text of the data may hold the markers: in ours they are no comments.
    own = ours.text.strip().replace("<!-- discorpora:", "&lt;!-- discorpora:")
    body = f"{BEGIN}\n{own}\n{END}"
    if theirs is None:
        ours.text = f"\n{body}\n"
        return str(ours)
    card = read_card(theirs, where=where)
    filled = {key: value for key, value in ours.data.to_dict().items() if value not in ("", [], {})}
    if "license" in filled:
        for key in LICENCE_KEYS:
            card.data.pop(key)
    tags: list[str] = []
    for given in (card.data.get("tags"), filled.get("tags")):
        tags += [given] if isinstance(given, str) else map(str, given or ())
    filled["tags"] = list(dict.fromkeys(tags)) or None
    for key, value in filled.items():
        card.data[key] = value
    text: str = card.text
    markers = re.findall(f"{BEGIN}|{END}", text)
    if not markers:
        card.text = text.removesuffix("\n") + f"\n\n{body}\n"
    elif markers == [BEGIN, END]:
        card.text = f"{text.partition(BEGIN)[0]}{body}{text.partition(END)[2]}"
    else:
        said = f"it needs one {BEGIN!r} and after it one {END!r}, or neither"
        raise InputError(said, where=where, hint=MEND)
    return str(card)
