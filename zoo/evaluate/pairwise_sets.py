"""Test sets of coherent and spoilt texts: a built dataset folder, or the user's own files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.errors import InputError, amount
from corpora.readers.coherence import SUFFIXES, is_annotations, read_pairs, with_group
from corpora.store.atomic import MANIFEST, sha256
from zoo.evaluate.scorers import Scorer, score_both
from zoo.evaluate.scores import PairScores
from zoo.training.data import Dataset, as_datasets, evenly, several, spread


@dataclass(frozen=True, slots=True)
class TextPair:
    """A text and a worse one, after the same prompt.

    `group` is what pairs share that are not independent (a document, a prompt). `votes` has one
    number an annotator: 1 prefers `pos`, 0 prefers `neg`, -1 neither.
    """

    group: str
    prompt: tuple[str, ...]
    pos: tuple[str, ...]
    neg: tuple[str, ...]
    votes: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairSet:
    """The pairs of one set that differ; `identical` counts those left out."""

    name: str
    pairs: Sequence[TextPair]
    identical: int = 0

    @property
    def groups(self) -> list[str]:
        return [pair.group for pair in self.pairs]

    @property
    def votes(self) -> list[tuple[int, ...]]:
        return [pair.votes for pair in self.pairs]

    @property
    def digest(self) -> str:
        """The same for the same pairs in the same order."""
        whole = "".join(repr((pair.prompt, pair.pos, pair.neg)) for pair in self.pairs)
        return hashlib.sha256(whole.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class PairSets:
    """All sets of one place, and what a result says of it."""

    sets: Sequence[PairSet]
    description: Mapping[str, Any]


def holds_pairs(spec: str) -> bool:
    """Whether it is a file or a folder of pairs, and no dataset."""
    path = Path(spec)
    return path.is_file() or (path.is_dir() and not (path / MANIFEST).is_file())


def open_sets(data: Any, split: str = "test", limit: int = 0) -> PairSets:
    """The test sets of datasets in hand, one or a mapping, or of JSON Lines at a path.

    Every configuration with columns `pos` and `neg` is a set, and so is every file of a folder
    of JSON Lines (or of the authors' pickles). `limit`: so many pairs a set, spread evenly.
    Raises `InputError` where there are none.
    """
    if isinstance(data, str | Path):
        path = Path(data)
        files = [path]
        if path.is_dir():
            named = sorted(file for file in path.glob("[!.]*") if file.name.endswith(SUFFIXES))
            files = [file for file in named if file.is_file() and not is_annotations(file)]
        found = _of_files(files, limit)
        hashes = sorted((file.name, sha256(file)) for file in files)
        revision = hashlib.sha256(repr(hashes).encode()).hexdigest()[:16]
        place = path if path.name.strip(".") else path.resolve()  # `.` and `..` name nothing
        about = {"name": place.name, "config": "", "revision": revision}
    else:
        opened = as_datasets(data)
        read = [(each, each.splits[split]) for each in opened if split in each.splits]
        found = [
            _of_table(each, spread(table, limit), len(table))
            for each, table in read
            if table.num_rows and {"pos", "neg"} <= {*table.column_names}
        ]
        described = opened[0].describe()
        about = {key: described[key] for key in ("name", "revision", "licence", "licence_hub")}
        about["config"] = "" if several(data) else opened[0].config
    if not found:
        raise InputError(
            f"no test set here: no JSON Lines, and no columns pos and neg in a split {split!r}",
            where=str(about["name"]),
            hint="give a dataset built by coherence_tests, intrusion@pairwise, or JSON Lines of "
            '{"pos": [...], "neg": [...]}',
        )
    return PairSets(found, {**about, "rows": {s.name: len(s.pairs) + s.identical for s in found}})


def score_pairs(
    found: PairSet, scorer: Scorer, prompt: bool = True, *, whole: bool = False
) -> PairScores:
    """The scores of the coherent and of the other texts, cut alike or `whole`: `score_both`."""
    before = [pair.prompt if prompt else () for pair in found.pairs]
    coherent = [(*head, *pair.pos) for head, pair in zip(before, found.pairs, strict=True)]
    other = [(*head, *pair.neg) for head, pair in zip(before, found.pairs, strict=True)]
    return score_both(scorer, coherent, other, found.name, whole=whole)


def _of_files(files: Sequence[Path], limit: int) -> list[PairSet]:
    """A set of each file; the pairs of one reference text, or of one prompt, are a group."""
    sets: dict[str, PairSet] = {}
    for file in files:
        name = file.name.partition(".")[0]
        if name in sets:
            both = [each.name for each in files if each.name.partition(".")[0] == name]
            raise InputError(
                f"{' and '.join(both)} are both the set {name!r}",
                where=str(file.parent),
                hint="a set has its file's name up to the first dot: rename one",
            )
        pairs = [
            TextPair(group, pair.prompt, pair.pos, pair.neg, pair.votes)
            for group, pair in with_group(read_pairs(file))
        ]
        kept = [pairs[row] for row in evenly(len(pairs), limit).tolist()]
        sets[name] = _set_of(name, kept, str(file))
    return [*sets.values()]


def _of_table(data: Dataset, table: pa.Table, rows: int) -> PairSet:
    """The pairs of a table; those that its builder left out count as identical.

    Of a part of its `rows` nobody knows where those stood: they do not count.
    """
    data.need("pos", "neg")
    for name in ("pos", "neg"):
        kind = table.schema.field(name).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise InputError(f"{name} is {kind}, expected a list of sentences", where=data.where)
    pairs = []
    for number, row in enumerate(table.to_pylist()):
        id, prompt = str(row.get("id") or row.get("doc") or number), row.get("prompt")
        # An id of a text is DOCUMENT#NUMBER: texts of one document are not independent.
        group = str(row.get("group") or id.rpartition("#")[0] or id)
        before = (prompt,) if isinstance(prompt, str) else tuple(prompt or ())
        votes = tuple(row.get("votes") or ())
        pairs.append(TextPair(group, before, tuple(row["pos"]), tuple(row["neg"]), votes))
    # `intrusion@pairwise` is called after its dataset.
    name = data.name if data.config in ("pairwise", "default") else data.config
    found = _set_of(name, pairs, data.where)
    if len(table) < rows:
        return found
    before_it = int(data.manifest.get("rejects", {}).get(f"identical_{data.config}", 0))
    return replace(found, identical=found.identical + before_it)


def _set_of(name: str, pairs: Sequence[TextPair], where: str) -> PairSet:
    different = [pair for pair in pairs if pair.pos != pair.neg]
    if not different:
        raise InputError(
            f"holds no pair of texts that differ, of {amount(len(pairs), 'pair')}",
            where=where,
            hint='a line is {"pos": [...], "neg": [...]}',
        )
    return PairSet(name, different, len(pairs) - len(different))
