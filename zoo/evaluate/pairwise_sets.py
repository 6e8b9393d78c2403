"""Test sets of coherent and spoilt texts: a built dataset folder, or the user's own files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from corpora.readers.coherence import SUFFIXES, is_annotations, read_pairs, with_group
from corpora.store.atomic import sha256
from zoo.evaluate.scorers import Scorer, scores_of
from zoo.evaluate.scores import finite
from zoo.training.data import SPLITS, Dataset, no_split, open_configs, spread


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
        whole = hashlib.sha256()
        for pair in self.pairs:
            whole.update(repr((pair.prompt, pair.pos, pair.neg)).encode())
        return whole.hexdigest()[:16]


@dataclass(frozen=True)
class PairSets:
    """All sets of one place, and what a result says of it."""

    sets: Sequence[PairSet]
    description: Mapping[str, Any]


def open_sets(spec: str, split: str = "test", limit: int = 0) -> PairSets:
    """The test sets of a dataset folder (`@CONFIG` for one of them), a Hub id, or JSON Lines.

    Every configuration with columns `pos` and `neg` is a set, and so is every file of a folder
    of JSON Lines (or of the authors' pickles). `limit`: so many pairs a set, spread evenly.
    Raises `InputError` where there are none.
    """
    path = Path(spec)
    if path.is_file() or (path.is_dir() and not (path / "manifest.json").is_file()):
        sets, about = _of_files(path, limit)
    else:
        sets, about = _of_dataset(spec, split, limit)
    rows = {each.name: len(each.pairs) + each.identical for each in sets}
    return PairSets(sets, {**about, "rows": rows})


def score_pairs(
    found: PairSet, scorer: Scorer, prompt: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the coherent and of the other texts; each distinct text is scored once."""
    before = [pair.prompt if prompt else () for pair in found.pairs]
    texts = [(*head, *pair.pos) for head, pair in zip(before, found.pairs, strict=True)]
    texts += [(*head, *pair.neg) for head, pair in zip(before, found.pairs, strict=True)]
    scores = finite(scores_of(scorer, texts), "the model gives scores", found.name)
    coherent, other = np.split(scores, 2)
    return coherent, other


def _of_files(path: Path, limit: int) -> tuple[list[PairSet], dict[str, str]]:
    """A set of each file; the pairs of one reference text, or of one prompt, are a group."""
    files = [path]
    if path.is_dir():
        named = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
        files = [file for file in named if file.is_file() and not is_annotations(file)]
    if not files:
        raise InputError(
            "no test set here",
            where=str(path),
            hint='give a built dataset folder, or JSON Lines of {"pos": [...], "neg": [...]}',
        )
    sets: dict[str, PairSet] = {}
    for file in files:
        name = file.name.partition(".")[0]
        if name in sets:
            both = " and ".join(one.name for one in files if one.name.partition(".")[0] == name)
            raise InputError(
                f"{both} are both the set {name!r}",
                where=str(path),
                hint="a set has its file's name up to the first dot: rename one",
            )
        pairs = [
            TextPair(group, pair.prompt, pair.pos, pair.neg, pair.votes)
            for group, pair in with_group(read_pairs(file))
        ]
        if 0 < limit < len(pairs):
            pairs = [pairs[i] for i in np.linspace(0, len(pairs) - 1, limit).astype(int)]
        sets[name] = _set_of(name, pairs, str(file))
    hashes = sorted((file.name, sha256(file)) for file in files)
    revision = hashlib.sha256(repr(hashes).encode()).hexdigest()[:16]
    return [*sets.values()], {"name": path.name, "config": "", "revision": revision}


def _of_dataset(spec: str, split: str, limit: int) -> tuple[list[PairSet], dict[str, str]]:
    """A set of each configuration that is named, or that there is; a Hub id's default one."""
    config, opened = open_configs(spec)
    if split not in SPLITS:
        raise no_split(split, opened[0].splits, spec)
    sets, described = [], []
    for data in opened:
        table = data.splits.get(split)
        if table is None or not table.num_rows or not {"pos", "neg"} <= {*table.column_names}:
            continue
        sets.append(_of_table(data.need("pos", "neg"), spread(table, limit)))
        described.append(data.describe())
    if not sets:
        raise InputError(
            f"no configuration has columns pos and neg in its split {split!r}",
            where=spec,
            hint="give a dataset built by coherence_tests, or intrusion@pairwise",
        )
    about = {key: described[0][key] for key in ("name", "revision", "licence", "licence_hub")}
    return sets, {**about, "config": config}


def _of_table(data: Dataset, table: pa.Table) -> PairSet:
    """The pairs of a table; those that its builder left out as identical are counted too."""
    for name in ("pos", "neg"):
        kind = table.schema.field(name).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise InputError(f"{name} is {kind}, expected a list of sentences", where=data.where)

    def pairs() -> Iterator[TextPair]:
        for number, row in enumerate(table.to_pylist()):
            id, prompt = str(row.get("id") or row.get("doc") or number), row.get("prompt")
            yield TextPair(
                # An id of a text is DOCUMENT#NUMBER: texts of one document are not independent.
                group=str(row.get("group") or id.rpartition("#")[0] or id),
                prompt=(prompt,) if isinstance(prompt, str) else tuple(prompt or ()),
                pos=tuple(row["pos"]),
                neg=tuple(row["neg"]),
                votes=tuple(row.get("votes") or ()),
            )

    # `intrusion@pairwise` is called after its dataset.
    name = data.name if data.config in ("pairwise", "default") else data.config
    found = _set_of(name, pairs(), data.where)
    before = int(data.manifest.get("rejects", {}).get(f"identical_{data.config}", 0))
    return replace(found, identical=found.identical + before)


def _set_of(name: str, pairs: Iterable[TextPair], where: str) -> PairSet:
    whole = list(pairs)
    different = [pair for pair in whole if pair.pos != pair.neg]
    if not different:
        raise InputError(
            f"holds no pair of texts that differ, of {len(whole)} pairs",
            where=where,
            hint='a line is {"pos": [...], "neg": [...]}',
        )
    return PairSet(name, different, len(whole) - len(different))
