"""Sentence intrusion (Shen et al. 2021; Jwalapuram, Joty and Lin 2022, section 2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.schemas import INTRUSION_DETECTION, INTRUSION_PAIRWISE
from corpora.splits import Shares
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.discoeval.common import lead, one_of, units
from corpora.tasks.intrusion_search import Pair, Search, pairs_of
from corpora.tasks.sentence_features import SentenceFeatures
from corpora.tasks.target import Target, split_candidates

VERSION = 5
TEXTS_A_BATCH = 256
ROWS_PER_GROUP = 2_048

CARD = Card(
    title="Sentence intrusion",
    summary=(
        "Texts of three to eight sentences, and the same with one sentence, never the first, "
        "replaced by one of a similar text: to detect it, or to tell the two apart. After INSteD, "
        "on texts of your own."
    ),
    method=(
        "Shen et al. 2021, in the pairwise form of Jwalapuram, Joty and Lin 2022 (section 2.3). "
        "Similar texts of other documents are looked up by TF-IDF of hashed words and pairs of "
        "words. The position is random; the intruder is the sentence of these texts (never a "
        "first one, each at most once) that is most like the replaced one in its similarity to the "
        "rest of the text and to the sentences around, in the share of its rarer words that the "
        "rest has, and in length. Its similarity is bounded on both sides: not off-topic, not a "
        "near copy of any sentence of the text. A text for which the best one still shows is left "
        "out. The texts of a pair, and the one that the intruder is from, are in one split."
    ),
    fields={
        "doc": "id of the text, `DOCUMENT#NUMBER`",
        "label": "`coherent` or `intruded`; the two forms of a text stand one after the other",
        "position": "the place of the intruder, counted from 0; -1 if there is none",
        "sentences": "the sentences of the text",
        "donor": "id of the text that the intruder is from",
        "similarity": "of the intruder to the rest of the text: cosine of TF-IDF",
        "replaced_similarity": "the same of the sentence that it replaces",
        "pos": "the sentences as written",
        "neg": "the same with the intruder",
    },
    citation="""@article{shen-etal-2021-evaluating,
  title = {Evaluating Document Coherence Modeling},
  author = {Shen, Aili and Mistica, Meladel and Salehi, Bahar and Li, Hang and Baldwin, Timothy
            and Qi, Jianzhong},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {9},
  pages = {621--640},
  year = {2021}
}
@inproceedings{jwalapuram-etal-2022-rethinking,
  title = {Rethinking Self-Supervision Objectives for Generalizable Coherence Modeling},
  author = {Jwalapuram, Prathyusha and Joty, Shafiq and Lin, Xiang},
  booktitle = {Proceedings of ACL},
  pages = {6044--6059},
  year = {2022}
}""",
    limits=(
        "A sentence of a similar text can fit as well as the one it replaces.",
        "Similar texts are looked up by their weightiest features, and not by those of more than "
        "1,000 texts: the best one of a large corpus can be missed.",
    ),
    tags=("coherence", "sentence-intrusion"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Which texts, how similar an intruder is, and the shares of the splits.

    `take`: `lead`, the lead section of a document (the whole document where it has no sections),
    or `windows`, each unit `within` a document (`paragraph`, `section`, `document`) cut into
    texts. A text has `min_sentences` to `max_sentences` (a lead is cut to them); sentences of
    fewer than `min_words` words are no intruders.
    `similar`: from how many of the most similar texts the intruder may come;
    `max_text_similarity`: a text more alike than that is a copy, and passed over.
    `min_similarity`, `max_similarity`: of the intruder to the rest of the text (cosine of
    TF-IDF); it is also no more alike to any one sentence of it. `max_ratio`: of the lengths of
    the two. `max_cost`: how much the intruder may differ from the replaced sentence, in squared
    steps (`corpora.tasks.intruders`): lower is harder, and gives fewer rows. `per_text`: pairs of
    one text at most, each with the intruder at another place (more than one: to train on).
    `choose`: `matched`, the intruder that differs least from what it replaces; or `random`, any
    that keeps to the bounds: easier, and then `max_cost` is not asked.
    """

    take: Literal["lead", "windows"] = "lead"
    within: Literal["paragraph", "section", "document"] = "paragraph"
    min_sentences: int = 3
    max_sentences: int = 8
    min_words: int = 4
    similar: int = 50
    max_text_similarity: float = 0.8
    min_similarity: float = 0.03
    max_similarity: float = 0.6
    max_ratio: float = 2.0
    max_cost: float = 20.0
    per_text: int = 1
    choose: Literal["matched", "random"] = "matched"
    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1

    def __post_init__(self) -> None:
        one_of("take", self.take, ("lead", "windows"))
        one_of("within", self.within, ("paragraph", "section", "document"))
        one_of("choose", self.choose, ("matched", "random"))
        if not 2 <= self.min_sentences <= self.max_sentences <= 127:
            raise ConfigError(
                f"min_sentences {self.min_sentences} and max_sentences {self.max_sentences}",
                hint="2 <= min_sentences <= max_sentences <= 127",
            )
        if not 0 <= self.min_similarity < self.max_similarity <= 1:
            raise ConfigError(
                f"min_similarity {self.min_similarity} and max_similarity {self.max_similarity}",
                hint="0 <= min_similarity < max_similarity <= 1",
            )
        if min(self.similar, self.max_ratio, self.per_text) < 1:
            raise ConfigError(
                f"similar = {self.similar}, max_ratio = {self.max_ratio}, "
                f"per_text = {self.per_text}",
                hint="1 or more",
            )
        Shares(self.train, self.validation, self.test)


def configurations(settings: Settings) -> Iterable[str]:
    """What `Builder.configurations` gives."""
    return ("detection", "pairwise")


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with a sentence layer; returns the manifest.

    In memory stay about 150 bytes a text.
    """
    with (
        target.dataset(CARD) as dataset,
        target.pool() as pool,
        SentenceFeatures(target.folder) as features,
    ):
        for document in documents:
            found = list(texts_of(document, settings, dataset))
            pool.add(document, found)
            features.add(found)
        search = Search(pool, features, settings)
        for split, rows in split_candidates(pool, settings, dataset):
            _write(split, pairs_of(rows, search, dataset), dataset)
        return dataset.finish("detection")


def texts_of(document: Document, settings: Settings, dataset: DatasetFolder) -> Iterator[list[str]]:
    """The texts of one document; the others are counted as too short."""
    sentences = document.sentence_texts()
    if settings.take == "lead":
        found = [lead(document, sentences)[: settings.max_sentences]]
    else:
        found = [
            unit[start : start + settings.max_sentences]
            for unit in units(document, sentences, settings.within)
            for start in range(0, len(unit), settings.max_sentences)
        ]
    for text in found:
        if len(text) >= settings.min_sentences and all(text):
            yield text
        else:
            dataset.reject("too_few_sentences")


def _write(split: str, pairs: Iterable[Pair], dataset: DatasetFolder) -> None:
    """Each pair as one row of `pairwise` and two of `detection`."""
    detection = dataset.writer(
        "detection",
        split,
        INTRUSION_DETECTION,
        texts=("sentences",),
        rows_per_group=2 * ROWS_PER_GROUP,
    )
    # Its texts are those of `detection`, and so is their overlap.
    pairwise = dataset.writer(
        "pairwise",
        split,
        INTRUSION_PAIRWISE,
        long=("pos", "neg"),
        rows_per_group=ROWS_PER_GROUP,
    )
    iterator = iter(pairs)
    while some := list(islice(iterator, TEXTS_A_BATCH)):
        pairwise.extend(some)
        detection.extend(
            {"doc": pair["doc"], "label": label, "position": position, "sentences": sentences}
            for pair in some
            for label, position, sentences in (
                (0, -1, pair["pos"]),
                (1, pair["position"], pair["neg"]),
            )
        )
