"""Released datasets in this project's columns: the rows of `corpora.readers.released`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, ClassVar

import pyarrow as pa
from pydantic import Field

from corpora.readers.coherence import SummEval
from corpora.readers.released import Release, ReleasedRow, is_held_out
from corpora.readers.source import Source
from corpora.schemas import INSTED_DETECTION, INSTED_PAIRWISE, NLI, RATED, TAGGED, marker_pairs
from corpora.schemas import disrpt as disrpt_schema
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.store.rows import hub_features
from corpora.tasks.cards import card_beside
from corpora.tasks.from_sources import FromSources, Opened, PlacedRows, SplitRows


class Released(FromSources):
    """Released rows, in the splits of the release.

    A release of several files is one source, its folder: the labels are those of all its files.
    """

    labelled: ClassVar[Mapping[str, Callable[[Sequence[str]], pa.Schema]]] = {}
    """Functions from label names to columns, for the configurations whose labels the data name."""
    group: ClassVar[str] = "id"
    """The column whose equal values stay in one split."""

    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """The share of the training rows, by whole groups, that is validation where the release has
    none (10 % in Jwalapuram et al. 2022)."""

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[SplitRows]:
        """Yield the rows of each file by split.

        Each file is read twice: first for its labels, splits and bad records, then for its rows.
        """
        wanted = self.configurations()
        for reader, source in sources:
            assert isinstance(reader, Release)
            labels: dict[str, set[str]] = {}
            splits_of: dict[tuple[Path, str], set[str]] = {}  # by file and configuration
            for path in source.files:
                for config, split, row, _ in read_examples(reader, path, source):
                    source.good += 1
                    if config not in wanted:
                        continue
                    splits_of.setdefault((path, config), set()).add(split)
                    labels.setdefault(config, set()).add(row.get("label", ""))
            for reason, number in sorted(source.skipped.items()):
                dataset.reject(reason, number)
            silent = silenced(source)
            with_validation = {
                name for (_, name), splits in splits_of.items() if "validation" in splits
            }
            for split, ((path, config), splits) in product(SPLITS, splits_of.items()):
                held_out = 0.0 if config in with_validation else self.held_out
                is_held_out_split = held_out and split == "validation" and "train" in splits
                if split in splits or is_held_out_split:
                    schema = self.gives[config]
                    if config in self.labelled:
                        schema = self.labelled[config](sorted(labels[config]))
                    examples = (
                        e for e in read_examples(reader, path, silent) if e.config == config
                    )
                    rows = self._rows_of_split(examples, split, held_out, schema)
                    licence = reader.licence_of_file(path)
                    yield SplitRows(config, split, licence, rows, schema)

    def _rows_of_split(
        self, examples: Iterable[ReleasedRow], split: str, held_out: float, schema: pa.Schema
    ) -> PlacedRows:
        """Yield (place, row) for each example of one split; a label becomes its number. The share
        `held_out` of the training groups is in the split validation."""
        names: list[str] = hub_features(schema).get("label", {}).get("names", [])
        number = {name: i for i, name in enumerate(names)}
        for _, released_split, row, where in examples:
            group = row.setdefault(self.group, row["id"])
            for_validation = released_split == "train" and is_held_out(group, held_out)
            if ("validation" if for_validation else released_split) == split:
                yield where, {**row, "label": number[row["label"]]} if names else row


def silenced(source: Source) -> Source:
    """Return a source to read again, whose bad and skipped records are counted already."""
    return replace(source, on_bad=lambda record: None, skipped=source.skipped.copy())


def read_examples(reader: Release, path: Path, source: Source) -> Iterator[ReleasedRow]:
    """Yield the examples of a file; a record that cannot be read counts as bad."""
    with source.refusing(path):
        yield from reader.rows(path, source.stem(path, reader.suffixes), source)


ID = "the file, and the number of the row in it"


class MarkerPairs(Released):
    """Released pairs of sentences or clauses, and the marker between them: Discovery, DisSent."""

    name = "marker_pairs"
    paper = "Sileo et al. 2019; Nie, Bennett and Goodman 2019"
    kinds = ("discovery", "dissent")
    gives = dict.fromkeys(kinds, marker_pairs([]))
    labelled = dict.fromkeys(kinds, marker_pairs)
    texts = dict.fromkeys(kinds, ("s1", "s2"))
    card = card_beside(__file__, "marker_pairs")


class NaturalInference(Released):
    """SNLI and MultiNLI as released: does a premise entail a hypothesis?"""

    name = "nli"
    paper = "Bowman et al. 2015; Williams et al. 2018"
    kinds = ("nli",)
    gives = {"default": NLI}
    default = "default"
    texts = {"default": ("premise", "hypothesis")}
    card = card_beside(__file__, "nli")


class Insted(Released):
    """INSteD as released: texts in which a sentence may be from another text, and pairs of them."""

    name = "insted"
    paper = "Shen et al. 2021"
    kinds = ("insted",)
    gives = {"detection": INSTED_DETECTION, "pairwise": INSTED_PAIRWISE}
    texts = {"detection": ("sentences",), "pairwise": ("pos", "neg")}
    group = "doc"
    card = card_beside(__file__, "insted")


class Disrpt(Released):
    """Datasets from the released files of DISRPT: relations, connectives, and discourse units."""

    name, version = "disrpt", 3
    paper = "DISRPT 2025"
    kinds = ("disrpt",)
    gives = {"relations": disrpt_schema([]), "connectives": TAGGED, "units": TAGGED}
    labelled = {"relations": disrpt_schema}
    texts = {"relations": ("arg1", "arg2"), "connectives": (), "units": ()}
    group = "doc"
    card = card_beside(__file__, "disrpt")


class Ratings(Released):
    """Texts with ratings of their coherence: GCDC, CoheSentia, SummEval."""

    name = "rated"
    paper = "Lai and Tetreault 2018; Maimon and Tsarfaty 2023; Fabbri et al. 2021"
    kinds = ("gcdc", "cohesentia", "summeval")
    gives = dict.fromkeys(
        ("gcdc", "gcdc_crowd", "cohesentia_holistic", "cohesentia_incremental", SummEval.name),
        RATED,
    )
    texts = dict.fromkeys(gives, ("text",))
    group = "group"
    card = card_beside(__file__, "rated")
