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

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from corpora import licences
from corpora.audit import AUDIT_FILE
from corpora.errors import ConfigError, DiscorporaError, InputError, amount
from corpora.escape import line
from corpora.licences import Combined
from corpora.outside import HUB_ID, read_record
from corpora.store.atomic import MANIFEST, sha256
from corpora.store.card import EVAL_FILE
from corpora.store.damage import checksums, damages
from corpora.store.manifest import Manifest, Results

if TYPE_CHECKING:
    from huggingface_hub import RepoCard

Kind = Literal["dataset", "model"]
Content = bytes | Path

CARD = "README.md"
RESULTS = "results.json"
OPTIONAL = (AUDIT_FILE, EVAL_FILE)
OURS = (CARD, MANIFEST, *OPTIONAL)
"""Published with every folder (the optional ones if they are there); not named in the manifest."""
EVAL_RESULTS = ".eval_results/discorpora.yaml"
"""A model's figures in the Hub's own form, beside the card's model-index."""
TEXTS = (".md", ".json", ".txt", ".toml", ".yaml")
LONGEST_TEXT = 16 << 20
TOKEN_LIKE = re.compile(r"\bhf_[A-Za-z0-9]{30,}")
"""The form of the Hub's tokens, long enough that no word matches."""

BEGIN, END = "<!-- discorpora:begin -->", "<!-- discorpora:end -->"
MAKE = "remove the folder and build it again"
MEND = "fix the card on the Hub, then publish again"
PUBLISHER = ("name", "contact", "citation")
LICENCE_KEYS = ("license", "license_name", "license_link")


def data_checksums(manifest: Manifest) -> dict[str, str]:
    """Return the sha256 of each data file of a manifest by its path; hidden files are left out."""
    splits = (split for config in manifest.configs.values() for split in config.splits.values())
    shards = {shard.file: shard.sha256 for split in splits for shard in split.shards}
    files = {path: sum for path, sum in manifest.files.items() if "/." not in f"/{path}"}
    return {path: sum for path, sum in (shards | files).items() if path not in OURS}


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file to publish: its path in the repository, its bytes, and its sha256 in the manifest.

    `sha256` is empty for the card, the manifest and the audit.
    """

    path: str
    bytes: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Publication:
    """The plan to publish a folder, as a dry run lists it.

    `files` are in the order of their paths; `left_out` are the files of the folder that the
    manifest does not name, which are not published. `made` are the bytes of files that are not in
    the folder, by path.
    """

    folder: Path
    repo_id: str
    kind: Kind
    private: bool
    files: tuple[PublishedFile, ...]
    left_out: tuple[str, ...]
    licence: Combined
    manifest: Manifest
    made: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def data_files(self) -> tuple[PublishedFile, ...]:
        """All files except the card, the manifest and the audit."""
        return tuple(file for file in self.files if file.path not in OURS)

    def content(self, path: str) -> Content:
        """Return the bytes of a file that was made for the repository, else its path."""
        return self.made.get(path, self.folder / path)

    def lines(self) -> list[str]:
        """Return the lines of a dry run: files, their sum, the card's notes, the licence."""
        lines = [f"{file.bytes:>14,}  {file.path}" for file in self.files]
        lines.append(f"{self.bytes:>14,}  bytes in {amount(len(self.files), 'file')}")
        lines += [f"  left out, not named by the manifest: {path}" for path in self.left_out]
        lines += [f"  note on the card: {line(note)}" for note in self.manifest.notes]
        return [*lines, *self.missing(), f"  licence {self.licence}"]

    def missing(self) -> list[str]:
        """Return a line for each key of the build file that a dataset's card lacks."""
        if self.kind == "model":
            return []
        keys = [key for key in PUBLISHER if not self.manifest.stage.publisher.get(key)]
        lines = [f"  the card lacks, from [publisher]: {', '.join(keys)}"] if keys else []
        for key in ("title", "url"):
            sources = [source for source in self.manifest.sources if not getattr(source, key)]
            names = ", ".join(line(source.name or source.spec) for source in sources)
            if names:
                lines.append(f"  the card lacks, from [[sources]]: {key} of {names}")
        return lines

    def require_licence(self) -> None:
        """Raise `DiscorporaError` with the reason if the licence forbids publication."""
        if not self.licence.redistributable:
            sources = ", ".join(self.licence.sources) or "no named licence"
            hint = f"derived from {sources}; build it from sources that may be passed on"
            problem = f"may not be published: {self.licence.reason}"
            raise DiscorporaError(problem, where=str(self.folder), hint=hint)

    def require_no_token(self, token: str = "") -> None:
        """Raise `ConfigError` if a text file contains `token`, or anything in the form of a token.

        Text files above `LONGEST_TEXT` bytes are not read.
        """
        for file in self.files:
            path = self.folder / file.path
            if path.suffix not in TEXTS or file.bytes > LONGEST_TEXT or file.path in self.made:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if TOKEN_LIKE.search(text) or (token and token in text):
                problem = "this file contains an access token of the Hub"
                hint = "revoke that token, remove it from the build file or command, rebuild"
                raise ConfigError(problem, where=str(path), hint=hint)

    def verify(self) -> None:
        """Read every file; raise `InputError` if one differs from its checksum in the manifest."""
        for path, problem in damages(self.folder):
            raise InputError(problem, where=str(path), hint=MAKE)
        if checksums(self.folder / MANIFEST) is not None:
            return  # `damages` has read all files
        for file in self.data_files:
            path = self.folder / file.path
            if file.path not in self.made and sha256(path) != file.sha256:
                problem = "its sha256 differs from the one in the manifest"
                raise InputError(problem, where=str(path), hint=MAKE)

    def card(self, theirs: str | None) -> str:
        """Return the folder's card merged into the Hub's card `theirs` (None if there is none).

        Its examples load the repository instead of the folder. Raises `InputError` for a card of
        the Hub that cannot be merged.
        """
        text = (self.folder / CARD).read_text(encoding="utf-8")
        call = 'load_dataset("{}"'.format
        text = text.replace(call(self.manifest.name), call(self.repo_id))
        text = text.replace('folder = "."  # this folder, or', f'folder = "{self.repo_id}"  #')
        ours = read_card(text, where=str(self.folder / CARD))
        for key in LICENCE_KEYS:
            ours.data.pop(key)
        ours.data["license"] = self.licence.hub
        if self.licence.hub == "other":
            ours.data["license_name"] = self.licence.id.lower()
        return merged_card(ours, theirs, where=f"the card of {self.repo_id} on the Hub")


def plan_publication(
    folder: Path,
    repo_id: str,
    *,
    kind: Kind = "dataset",
    private: bool = False,
    dataset: str = "",
) -> Publication:
    """Return the plan to publish `folder` as `repo_id` (`NAMESPACE/NAME`).

    `dataset` is the repository of the dataset that a model's card has figures on; by default that
    of the card, if the dataset is one of the Hub. With it `EVAL_RESULTS` is published too.

    A licence that forbids it is not an error here: see `Publication.licence`. Raises `InputError`
    if the folder is unfinished, lacks a file or is of another kind, `ConfigError` for a wrong id.
    """
    for id in (repo_id, dataset) if dataset else (repo_id,):
        if not (id.isascii() and HUB_ID.fullmatch(id)):
            hint = "give NAMESPACE/NAME, where NAMESPACE is your user name or organisation"
            raise ConfigError(f"{id!r} is not a repository id", hint=hint)
    if dataset and kind == "dataset":
        raise ConfigError(f"{dataset!r}: only a model has figures on a dataset", where=str(folder))
    if not (folder / MANIFEST).is_file():
        unfinished = f"has no {MANIFEST}, so it is not finished"
        problem = unfinished if folder.is_dir() else "is not a folder"
        hint = "build it first with: discorpora build"
        raise InputError(problem, where=str(folder), hint=hint)
    manifest = read_record(Manifest, folder / MANIFEST, MAKE)
    if not (manifest.configs if kind == "dataset" else manifest.files):
        hint = "a dataset is published with kind dataset, a model with kind model"
        problem = f"is not the manifest of a {kind}"
        raise InputError(problem, where=str(folder / MANIFEST), hint=hint)
    files = []
    ours = [path for path in OURS if path not in OPTIONAL or (folder / path).is_file()]
    for name, sum in sorted({**data_checksums(manifest), **dict.fromkeys(ours, "")}.items()):
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InputError("is outside the folder", where=str(path), hint=MAKE)
        if not path.is_file():
            problem = "is missing: the folder is incomplete"
            raise InputError(problem, where=str(path), hint=MAKE)
        files.append(PublishedFile(name, path.stat().st_size, sum))
    made = {}
    if kind == "model" and (results := eval_results(folder / CARD, dataset)):
        made[EVAL_RESULTS] = results
        digest = hashlib.sha256(results).hexdigest()
        files = [file for file in files if file.path != EVAL_RESULTS]
        files.insert(0, PublishedFile(EVAL_RESULTS, len(results), digest))
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    left_out = tuple(sorted(names - {file.path for file in files}))
    licence = _combined_licence(folder, manifest, kind)
    return Publication(
        folder, repo_id, kind, private, tuple(files), left_out, licence, manifest, made
    )


def eval_results(card: Path, dataset: str = "") -> bytes:
    """Return the file `EVAL_RESULTS` of a model: its figures on the test splits of a dataset.

    The figures are those of the card's model-index, the first of each configuration: that is the
    task's id, as in the `eval.yaml` of the dataset. `dataset` is the dataset's repository, by
    default the card's name of it. Returns nothing for a name that is no repository, or if there
    are no such figures. The revision is given only if it is a commit of that repository.
    """
    import yaml
    from huggingface_hub import EvalResultEntry, ModelCardData, eval_result_entries_to_yaml

    metadata = read_card(card.read_text("utf-8"), where=str(card)).data.to_dict()
    try:
        results = ModelCardData(**metadata).eval_results or ()
    except (ValueError, TypeError, KeyError) as error:
        problem = f"its model-index is not in the Hub's form: {error}"
        raise InputError(problem, where=str(card), hint=MAKE) from error
    entries: dict[str, EvalResultEntry] = {}
    for result in results:
        from_hub = HUB_ID.fullmatch(result.dataset_type)
        id = dataset or (result.dataset_type if from_hub else "")
        task = result.dataset_config or "default"
        if not id or result.dataset_split != "test" or task in entries:
            continue
        revision = str(result.dataset_revision or "")
        commit = revision if from_hub and re.fullmatch(r"[0-9a-f]{40}", revision) else None
        entries[task] = EvalResultEntry(
            id, task, result.metric_value, commit, notes=result.metric_name
        )
    if not entries:
        return b""
    lines: str = yaml.safe_dump(eval_result_entries_to_yaml([*entries.values()]), sort_keys=False)
    return lines.encode()


def _combined_licence(folder: Path, manifest: Manifest, kind: Kind) -> Combined:
    """Return the licence of a folder, combined from those of its sources. The manifest names the
    sources of a dataset, the results those of a model. The licence is at least as strict as the one
    in the manifest."""
    declared = manifest.licence
    of_data = [*declared.sources, *manifest.licences] if declared else []
    of_model = read_record(Results, folder / RESULTS, MAKE).licences if kind == "model" else {}
    origins = {name: {id or licences.UNKNOWN for id in ids} for name, ids in of_model.items()}
    ids = {id or licences.UNKNOWN for id in of_data}.union(*origins.values())
    names = tuple(sorted(ids))
    try:
        licence = licences.combine(names)
    except ConfigError:
        reason = f"unknown licence {', '.join(names)}: some of its sources may be closed"
        return Combined("other", "other", False, reason, names)
    closed = {id for id in names if not licences.lookup(id).redistributable}
    if forbidding := [origin for origin, ids in origins.items() if ids & closed]:
        return replace(licence, reason=f"{', '.join(forbidding)}: {licence.reason}")
    if declared and licence.redistributable and not declared.redistributable:
        reason = declared.reason or "its manifest says that it may not be passed on"
        return replace(licence, hub="other", redistributable=False, reason=reason)
    return licence


def read_card(text: str, *, where: str) -> RepoCard:
    """Parse a card into metadata and text. Raises `InputError` naming `where` for bad metadata."""
    import yaml
    from huggingface_hub import RepoCard

    try:
        return RepoCard(text.removeprefix("\ufeff"))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        problem = f"its metadata is not a YAML table: {error}"
        raise InputError(problem, where=where, hint=MEND) from error


def merged_card(ours: RepoCard, theirs: str | None, *, where: str) -> str:
    """Return the card to publish, from ours and `theirs` on the Hub (None if there is none).

    Raises `InputError` naming `where` (the remote card) if its metadata cannot be read or its
    markers do not pair up.
    """
    # Our text may quote data that contain the markers: there they must not be comments.
    escaped = ours.text.strip().replace("<!-- discorpora:", "&lt;!-- discorpora:")
    body = f"{BEGIN}\n{escaped}\n{END}"
    if theirs is None:
        ours.text = f"\n{body}\n"
        return str(ours)
    card = read_card(theirs, where=where)
    filled = {key: value for key, value in ours.data.to_dict().items() if value not in ("", [], {})}
    if "license" in filled:
        for key in LICENCE_KEYS:
            card.data.pop(key)
    all_tags: list[str] = []
    for tags in (card.data.get("tags"), filled.get("tags")):
        all_tags += [tags] if isinstance(tags, str) else map(str, tags or ())
    filled["tags"] = list(dict.fromkeys(all_tags)) or None
    for key, value in filled.items():
        card.data[key] = value
    text: str = card.text
    markers = re.findall(f"{BEGIN}|{END}", text)
    if not markers:
        card.text = text.removesuffix("\n") + f"\n\n{body}\n"
    elif markers == [BEGIN, END]:
        card.text = f"{text.partition(BEGIN)[0]}{body}{text.partition(END)[2]}"
    else:
        problem = f"it needs one {BEGIN!r} and after it one {END!r}, or neither"
        raise InputError(problem, where=where, hint=MEND)
    return str(card)
