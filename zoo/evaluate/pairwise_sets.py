"""Test sets of pairs, a coherent text and a worse one, from a built dataset or the user's files."""

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
    """A coherent text `pos` and a worse one `neg`, after the same prompt, as sentences.

    Pairs with the same `group` (a document, a prompt) depend on each other. `votes` has a number
    for each annotator: 1 prefers `pos`, 0 prefers `neg`, -1 neither.
    """

    group: str
    prompt: tuple[str, ...]
    pos: tuple[str, ...]
    neg: tuple[str, ...]
    votes: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairSet:
    """A test set of pairs of texts; `identical` counts the pairs of equal texts, left out of it."""

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
        """A hash of the pairs' texts in their order."""
        texts = "".join(repr((pair.prompt, pair.pos, pair.neg)) for pair in self.pairs)
        return hashlib.sha256(texts.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class PairSets:
    """The test sets of a folder, file or dataset, and its description in a result."""

    sets: Sequence[PairSet]
    description: Mapping[str, Any]


def holds_pairs(spec: str) -> bool:
    """Whether `spec` names pairs in JSON Lines: a file, or a folder that is no built dataset."""
    path = Path(spec)
    return path.is_file() or (path.is_dir() and not (path / MANIFEST).is_file())


def open_sets(data: Any, split: str = "test", limit: int = 0) -> PairSets:
    """Open the test sets in dataset objects (one or a mapping), or in JSON Lines at a path.

    A set is a configuration with the columns `pos` and `neg` in `split`, or a file of JSON Lines
    (or of the authors' pickles). A set keeps at most `limit` pairs, spread evenly (0: all). Raises
    `InputError` if there is no set.
    """
    if isinstance(data, str | Path):
        path = Path(data)
        files = [path]
        if path.is_dir():
            named = sorted(file for file in path.glob("[!.]*") if file.name.endswith(SUFFIXES))
            files = [file for file in named if file.is_file() and not is_annotations(file)]
        sets = _sets_of_files(files, limit)
        hashes = sorted((file.name, sha256(file)) for file in files)
        revision = hashlib.sha256(repr(hashes).encode()).hexdigest()[:16]
        name = (path if path.name.strip(".") else path.resolve()).name  # `.` and `..` are no names
        about = {"name": name, "config": "", "revision": revision}
    else:
        datasets = as_datasets(data)
        tables = [(each, each.splits[split]) for each in datasets if split in each.splits]
        sets = [
            _set_of_table(each, spread(table, limit), len(table))
            for each, table in tables
            if table.num_rows and {"pos", "neg"} <= {*table.column_names}
        ]
        description = datasets[0].describe()
        about = {key: description[key] for key in ("name", "revision", "licence", "licence_hub")}
        about["config"] = "" if several(data) else datasets[0].config
    if not sets:
        raise InputError(
            f"no test set here: no JSON Lines, and no columns pos and neg in a split {split!r}",
            where=str(about["name"]),
            hint="give a dataset built by coherence_tests, intrusion@pairwise, or JSON Lines of "
            '{"pos": [...], "neg": [...]}',
        )
    rows = {each.name: len(each.pairs) + each.identical for each in sets}
    return PairSets(sets, {**about, "rows": rows})


def score_pairs(
    pair_set: PairSet, scorer: Scorer, prompt: bool = True, *, whole: bool = False
) -> PairScores:
    """Score both texts of each pair; with `prompt` the pair's prompt is put before both.

    With `whole` long texts are not cut, see `score_both`.
    """
    pairs = pair_set.pairs
    coherent = [(*pair.prompt, *pair.pos) if prompt else pair.pos for pair in pairs]
    other = [(*pair.prompt, *pair.neg) if prompt else pair.neg for pair in pairs]
    return score_both(scorer, coherent, other, pair_set.name, whole=whole)


def _sets_of_files(files: Sequence[Path], limit: int) -> list[PairSet]:
    """Read a test set from each file; pairs of one reference text or prompt are a group."""
    sets: dict[str, PairSet] = {}
    for file in files:
        name = file.name.partition(".")[0]
        if name in sets:
            same_name = [each.name for each in files if each.name.partition(".")[0] == name]
            raise InputError(
                f"{' and '.join(same_name)} are both the set {name!r}",
                where=str(file.parent),
                hint="a set has its file's name up to the first dot: rename one",
            )
        pairs = [
            TextPair(group, pair.prompt, pair.pos, pair.neg, pair.votes)
            for group, pair in with_group(read_pairs(file))
        ]
        chosen = [pairs[row] for row in evenly(len(pairs), limit).tolist()]
        sets[name] = _set_of(name, chosen, str(file))
    return [*sets.values()]


def _set_of_table(data: Dataset, table: pa.Table, rows: int) -> PairSet:
    """Make the test set of `table`, a dataset's split of `rows` rows or a sample of it.

    `identical` of a whole split also counts the pairs of equal texts that its builder left out. For
    a sample it is unknown how many of them would be in it.
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
        sentences = (prompt,) if isinstance(prompt, str) else tuple(prompt or ())
        votes = tuple(row.get("votes") or ())
        pairs.append(TextPair(group, sentences, tuple(row["pos"]), tuple(row["neg"]), votes))
    # A set has its configuration's name, but `intrusion@pairwise` that of its dataset.
    name = data.name if data.config in ("pairwise", "default") else data.config
    pair_set = _set_of(name, pairs, data.where)
    if len(table) < rows:
        return pair_set
    rejected = int(data.manifest.get("rejects", {}).get(f"identical_{data.config}", 0))
    return replace(pair_set, identical=pair_set.identical + rejected)


def _set_of(name: str, pairs: Sequence[TextPair], where: str) -> PairSet:
    """Make the test set of the pairs whose texts differ. Raises `InputError` if none do."""
    different = [pair for pair in pairs if pair.pos != pair.neg]
    if not different:
        raise InputError(
            f"holds no pair of texts that differ, of {amount(len(pairs), 'pair')}",
            where=where,
            hint='a line is {"pos": [...], "neg": [...]}',
        )
    return PairSet(name, different, len(pairs) - len(different))
