"""Sentence intrusion (Shen et al. 2021; Jwalapuram, Joty and Lin 2022, section 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.schemas import INTRUSION_DETECTION, INTRUSION_PAIRWISE
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Part, Reject, Row
from corpora.tasks.candidates import Candidates
from corpora.tasks.discoeval.common import lead, units

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
    configurations={
        "detection": "a text a row, as it is or with an intruder, and where that stands",
        "pairwise": "a text and the same with an intruder a row: which is the coherent one?",
    },
    limits=(
        "A sentence of a similar text can fit as well as the one it replaces.",
        "Similar texts are looked up by their weightiest features, and not by those of more than "
        "1,000 texts: the best one of a large corpus can be missed.",
    ),
    tags=("coherence", "sentence-intrusion"),
)


class Intrusion(Builder):
    """Texts, and the same with one sentence replaced by one of a similar text."""

    name, version = "intrusion", 5
    paper = "Shen et al. 2021; Jwalapuram, Joty and Lin 2022, section 2.3"
    card = CARD
    gives = {"detection": INTRUSION_DETECTION, "pairwise": INTRUSION_PAIRWISE}
    default = "detection"
    columns = pa.schema([INTRUSION_DETECTION.field("sentences")])
    equal = ("sentences",)

    take: Literal["lead", "windows"] = "lead"
    """`lead`: the lead section of a document (the whole document where it has no sections);
    `windows`: each unit `within` a document, cut into texts."""
    within: Literal["paragraph", "section", "document"] = "paragraph"
    """The unit that is cut into texts."""
    min_sentences: Annotated[int, Field(ge=2)] = 3
    """The fewest sentences of a text."""
    max_sentences: Annotated[int, Field(le=127)] = 8
    """The most sentences of a text; a lead is cut to them."""
    min_words: int = 4
    """Sentences of fewer words are no intruders."""
    similar: Annotated[int, Field(ge=1)] = 50
    """From how many of the most similar texts the intruder may come."""
    max_text_similarity: float = 0.8
    """A text more alike than that is a copy, and passed over."""
    min_similarity: Annotated[float, Field(ge=0)] = 0.03
    """The least similarity of the intruder to the rest of the text (cosine of TF-IDF)."""
    max_similarity: Annotated[float, Field(le=1)] = 0.6
    """The greatest; the intruder is also no more alike to any one sentence of the text."""
    max_ratio: Annotated[float, Field(ge=1)] = 2.0
    """How many times longer than the replaced sentence the intruder may be, or shorter."""
    max_cost: float = 20.0
    """How much the intruder may differ from the replaced sentence, in squared steps
    (`corpora.tasks.intruders`): lower is harder, and gives fewer rows."""
    per_text: Annotated[int, Field(ge=1)] = 1
    """Pairs of one text at most, each with the intruder at another place (more than one: to
    train on)."""
    choose: Literal["matched", "random"] = "matched"
    """`matched`: the intruder that differs least from what it replaces; `random`: any that keeps
    to the bounds, which is easier, and then `max_cost` is not asked."""
    train: Part = 0.8
    """The share of the documents in the training split."""
    validation: Part = 0.1
    """The share of the documents in the validation split."""
    test: Part = 0.1
    """The share of the documents in the test split."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.min_sentences > self.max_sentences:
            raise ConfigError(
                f"min_sentences {self.min_sentences} and max_sentences {self.max_sentences}",
                hint="min_sentences <= max_sentences",
            )
        if self.min_similarity >= self.max_similarity:
            raise ConfigError(
                f"min_similarity {self.min_similarity} and max_similarity {self.max_similarity}",
                hint="min_similarity < max_similarity",
            )
        self.shares()
        return self

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The texts of one document; the others are counted as too short."""
        sentences = document.sentence_texts()
        if self.take == "lead":
            texts = [lead(document, sentences)[: self.max_sentences]]
        else:
            texts = [
                unit[start : start + self.max_sentences]
                for unit in units(document, sentences, self.within)
                for start in range(0, len(unit), self.max_sentences)
            ]
        for text in texts:
            if len(text) >= self.min_sentences and all(text):
                yield Row((text,))
            else:
                reject("too_few_sentences")

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """Each pair as one row of `pairwise` and two of `detection`."""
        from corpora.tasks.intrusion_search import Search
        from corpora.tasks.sentence_features import SentenceFeatures

        with (
            taken.mapped(_TEXTS) as texts,
            SentenceFeatures(taken.target.folder) as features,
        ):
            for batch in texts.to_batches(TEXTS_A_BATCH):
                features.add(batch["sentences"].to_pylist())
            search = Search(self, taken.target, texts, features)
            start = 0
            for split in SPLITS:
                rows = range(start, start + taken.count(split))
                start = rows.stop
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
                pairs = search.pairs_of(rows, dataset)
                while some := list(islice(pairs, TEXTS_A_BATCH)):
                    pairwise.extend(some)
                    detection.extend(
                        {"doc": pair["doc"], "label": label, "position": at, "sentences": text}
                        for pair in some
                        for label, at, text in (
                            (0, -1, pair["pos"]),
                            (1, pair["position"], pair["neg"]),
                        )
                    )


_TEXTS = """
select doc || '#' || number as id, doc_key, licence, sentences
from candidate
    join documents using (part, doc)
    left join kept using (part, doc, number)
order by
    case split when 'train' then 0 when 'validation' then 1 when 'test' then 2 else 3 end,
    sha256(id), doc, number
"""
"""All texts, those of a split together: the last ones, duplicates, count as texts do in TF-IDF."""
