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
from corpora.readers.released import Example, Release
from corpora.readers.source import Source
from corpora.rng import stable_id
from corpora.schemas import INSTED_DETECTION, INSTED_PAIRWISE, RATED, TAGGED, marked
from corpora.schemas import disrpt as disrpt_schema
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.store.rows import hub_features
from corpora.tasks.discovery import CARD as DISCOVERY
from corpora.tasks.dissent import CARD as DISSENT
from corpora.tasks.from_sources import FromSources, Opened, Part, Rows
from corpora.tasks.intrusion import CARD as INTRUSION


class Released(FromSources):
    """Released rows, in the splits of the release.

    A release of several files is one source, its folder: the labels are those of all its files.
    """

    labelled: ClassVar[Mapping[str, Callable[[Sequence[str]], pa.Schema]]] = {}
    """Of configurations whose labels the data name: their columns, by the names of the labels."""
    group: ClassVar[str] = "id"
    """The column whose equal values stay in one split."""

    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """The share of the training rows, by whole groups, that is validation where the release has
    none (10 % in Jwalapuram et al. 2022)."""

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[Part]:
        """Each file is read once for its labels, splits and bad records, then once a split."""
        for reader, source in sources:
            assert isinstance(reader, Release)
            labels: dict[str, set[str]] = {}
            found: dict[tuple[Path, str], set[str]] = {}
            for path in source.files:
                for config, split, row, _ in _examples(reader, path, source):
                    source.good += 1
                    found.setdefault((path, config), set()).add(split)
                    labels.setdefault(config, set()).add(row.get("label", ""))
            for reason, number in sorted(source.skipped.items()):
                dataset.reject(reason, number)
            # What is bad or left out was counted now.
            silent = replace(source, on_bad=lambda record: None, skipped=source.skipped.copy())
            for split, ((path, config), splits) in product(SPLITS, found.items()):
                of_config = (own for (_, name), own in found.items() if name == config)
                hold = self.held_out if "validation" not in set().union(*of_config) else 0.0
                if split in splits or (hold and split == "validation" and "train" in splits):
                    schema = self.gives[config]
                    if config in self.labelled:
                        schema = self.labelled[config](sorted(labels[config]))
                    examples = (e for e in _examples(reader, path, silent) if e.config == config)
                    rows = self._rows(examples, split, hold, schema)
                    yield Part(config, split, reader.licence_of(), rows, schema)

    def _rows(
        self, examples: Iterable[Example], split: str, hold: float, schema: pa.Schema
    ) -> Rows:
        """The rows of one split, their labels as numbers."""
        names: list[str] = hub_features(schema).get("label", {}).get("names", [])
        number = {name: i for i, name in enumerate(names)}
        for _, of, row, where in examples:
            group = row.setdefault(self.group, row["id"])
            # A number from 0 to 1 that is always the same for a group.
            if of == "train" and stable_id(f"held_out/{group}") / 2**64 < hold:
                of = "validation"
            if of == split:
                yield where, {**row, "label": number[row["label"]]} if names else row


def _examples(reader: Release, path: Path, source: Source) -> Iterator[Example]:
    with source.refusing(path):
        yield from reader.examples(path, source.stem(path, reader.suffixes), source)


LIMITS = (
    "The rows are the release's: nothing is filtered, and what their texts give away stays in.",
)
ID = "the file, and the number of the row in it"


class MarkerPairs(Released):
    """Released pairs of sentences or clauses, and the marker between them: Discovery, DisSent."""

    name = "marker_pairs"
    paper = "Sileo et al. 2019; Nie, Bennett and Goodman 2019"
    kinds = ("discovery", "dissent")
    gives = dict.fromkeys(kinds, marked([]))
    labelled = dict.fromkeys(kinds, marked)
    texts = dict.fromkeys(kinds, ("s1", "s2"))
    card = Card(
        title="Pairs of sentences and the marker between them, as released",
        summary=(
            "Two sentences or clauses, and the discourse marker that joined them: the released "
            "rows of Discovery and of DisSent, each a configuration."
        ),
        method=(
            "Discovery (Sileo et al. 2019): adjacent sentences of a web corpus, the second of "
            "which began with the marker. DisSent (Nie, Bennett and Goodman 2019): clauses of "
            "BookCorpus joined by a marker, found with dependency patterns. The labels are the "
            "release's, in alphabetical order."
        ),
        fields={
            "id": ID,
            "s1": "the first sentence, or the clause that the other is joined to",
            "s2": "the sentence or clause that the marker introduced, marker removed",
            "label": "the marker, as the release writes it",
        },
        citation=f"{DISCOVERY.citation}\n{DISSENT.citation}",
        configurations={
            "discovery": "adjacent sentences of a web corpus, the second without its first marker",
            "dissent": "clauses of BookCorpus without the marker between them",
        },
        limits=(*LIMITS, "Several markers can fit a pair: no model can be right on all."),
        tags=("discourse-markers",),
    )


class Insted(Released):
    """INSteD as released: texts in which a sentence may be another one's, and pairs of them."""

    name = "insted"
    paper = "Shen et al. 2021"
    kinds = ("insted",)
    gives = {"detection": INSTED_DETECTION, "pairwise": INSTED_PAIRWISE}
    texts = {"detection": ("sentences",), "pairwise": ("pos", "neg")}
    group = "doc"
    card = Card(
        title="Intruder sentences (INSteD), as released",
        summary=(
            "Texts of Wikipedia or CNN, in half of which a sentence was replaced by one of "
            "another text: INSteD with its training sets, in the columns of `intrusion`."
        ),
        method=(
            "Shen et al. 2021. `detection` has every text of the release; `pairwise` pairs a text "
            "that has an intruder with the original, as Jwalapuram et al. 2022 do. "
            "The release says what is training and what is test data."
        ),
        fields={
            "id": ID,
            "doc": "`file_id` of the release",
            "label": "`coherent` (0) or `intruded` (1)",
            "position": "the place of the intruder, counted from 0; -1 without one",
            "sentences": "the text, with the intruder if it has one",
            "pos": "the original text",
            "neg": "the same with the intruder",
        },
        citation=INTRUSION.citation,
        configurations={
            "detection": "a text a row, as it was or with an intruder, and where that stands",
            "pairwise": "a text and the same with an intruder a row",
        },
        limits=LIMITS,
        tags=("coherence", "intrusion"),
    )


class Disrpt(Released):
    """DISRPT 2025 as released: relations between units, connectives, and discourse units."""

    name = "disrpt"
    paper = "DISRPT 2025"
    kinds = ("disrpt",)
    gives = {"relations": disrpt_schema([]), "connectives": TAGGED, "units": TAGGED}
    labelled = {"relations": disrpt_schema}
    texts = {"relations": ("arg1", "arg2"), "connectives": (), "units": ()}
    group = "doc"
    card = Card(
        title="DISRPT: relations, connectives and discourse units, as released",
        summary=(
            "The shared task on discourse parsing across formalisms (DISRPT 2025) in one form: "
            "which relation holds between two units, which tokens are connectives, and where "
            "discourse units begin."
        ),
        method=(
            "`relations` has the rows of the `.rels` files, units in the order of the text. "
            "`connectives` and `units` have the sentences of the `.conllu` files with the tags of "
            "`Conn` and `Seg`. Rows whose text is masked in the release are left out."
        ),
        fields={
            "id": ID,
            "doc": "id of the document",
            "corpus": "such as `eng.pdtb.gum`: language, formalism, corpus",
            "arg1": "the unit that begins first; `<*>` stands for a gap",
            "arg2": "the other unit",
            "direction": "`1>2` or `1<2`, as annotated",
            "kind": "such as `explicit` or `implicit`; empty before 2025",
            "original": "the label of the corpus",
            "label": "the label of the shared task",
            "tokens": "the tokens of a sentence",
            "tags": "for each token `O`, `B-conn`, `I-conn`, or `B-seg`",
        },
        citation="""@misc{disrpt-2025,
  title = {{DISRPT} 2025: Shared Task on Discourse Relation Parsing and Treebanking},
  howpublished = {https://github.com/disrpt/sharedtask2025},
  year = {2025}
}""",
        configurations={
            "relations": "two units of a text and the relation between them",
            "connectives": "a sentence and which of its tokens are connectives",
            "units": "a sentence and where in it discourse units begin",
        },
        limits=(*LIMITS, "Explicit units hold their connective: it is part of the task."),
        tags=("discourse-relations", "disrpt"),
        task_categories=("text-classification", "token-classification"),
    )


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
    card = Card(
        title="Rated coherence, as released",
        summary=(
            "Texts and how coherent people found them: e-mails, answers and reviews (GCDC), "
            "generated stories (CoheSentia), summaries by systems (SummEval). The suite `ratings` "
            "asks how well a coherence scorer's scores agree with them."
        ),
        method=(
            "GCDC (Lai and Tetreault 2018): 1 to 3, by experts (`gcdc`) and by crowd workers "
            "(`gcdc_crowd`). CoheSentia (Maimon and Tsarfaty 2023): a story rated as a whole, or "
            "sentence by sentence. SummEval (Fabbri et al. 2021): 1 to 5, by experts. `rating` is "
            "the consensus of the release, for SummEval the mean."
        ),
        fields={
            "id": "the file, and the id or number of the text in it",
            "group": "what texts share that are not independent: an article, a title",
            "title": "the title or subject, where there is one",
            "text": "the text; blank lines separate paragraphs",
            "ratings": "one an annotator",
            "rating": "the consensus",
        },
        citation="""@inproceedings{lai-tetreault-2018-discourse,
  title = {Discourse Coherence in the Wild: A Dataset, Evaluation and Methods},
  author = {Lai, Alice and Tetreault, Joel},
  booktitle = {Proceedings of SIGdial},
  year = {2018}
}
@inproceedings{maimon-tsarfaty-2023-cohesentia,
  title = {{COHESENTIA}: A Novel Benchmark of Incremental versus Holistic Assessment of Coherence
           in Generated Texts},
  author = {Maimon, Aviya and Tsarfaty, Reut},
  booktitle = {Proceedings of EMNLP},
  year = {2023}
}
@article{fabbri-etal-2021-summeval,
  title = {{SummEval}: Re-evaluating Summarization Evaluation},
  author = {Fabbri, Alexander R. and Kry{\\'s}ci{\\'n}ski, Wojciech and McCann, Bryan and
            Xiong, Caiming and Socher, Richard and Radev, Dragomir},
  journal = {Transactions of the ACL},
  year = {2021}
}""",
        configurations={
            "gcdc": "e-mails, answers and reviews, rated by experts",
            "gcdc_crowd": "the same texts, rated by crowd workers",
            "cohesentia_holistic": "generated stories, each rated as a whole",
            "cohesentia_incremental": "generated stories, rated sentence by sentence",
            "summeval": "summaries of news articles by systems, rated by experts",
        },
        limits=LIMITS,
        tags=("coherence", "evaluation"),
    )
