"""DiscoEval's released rows (Chen, Chu and Gimpel 2019, sections 3.2 to 3.5), one configuration for
each task and kind of text, and its SP of Wikipedia in the order of the articles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, get_args

from corpora.document import Document
from corpora.readers import read_documents
from corpora.readers.released import Release, ReleasedRow
from corpora.schemas import DISCOEVAL
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.tasks.cards import card_beside
from corpora.tasks.from_sources import Opened, SplitRows
from corpora.tasks.released import Released, read_examples, silenced

Part = Literal[
    "sp_wiki",
    "sp_wiki_mended",
    "sp_arxiv",
    "sp_rocstory",
    "bso_wiki",
    "bso_arxiv",
    "bso_rocstory",
    "dc_wiki",
    "dc_chat",
    "ssp_abs",
]
SHUFFLED, MENDED = "sp_wiki", "sp_wiki_mended"
HEAD = 24
"""The letters and digits of a first sentence by which its article is found."""
LEAD = 20_000
"""The characters of an article in which the sentences of its introduction are looked for."""


class DiscoEval(Released):
    """DiscoEval's released rows of SP, BSO, DC and SSP; each task and domain is a configuration."""

    name = "discoeval"
    paper = "Chen, Chu and Gimpel 2019"
    kinds = ("discoeval",)
    beside = ("wikipedia", "hub", "jsonl", "parquet")
    gives = {part: DISCOEVAL[part.partition("_")[0].upper()] for part in get_args(Part)}
    texts = {
        part: tuple(name for name in columns.names if name.startswith("sentence"))
        for part, columns in gives.items()
    }
    group = "pair"
    card = card_beside(__file__, "discoeval")

    tasks: tuple[Part, ...] = (
        *("sp_wiki", "sp_wiki_mended", "sp_arxiv"),
        *("bso_wiki", "bso_arxiv", "dc_wiki", "dc_chat"),
    )
    """The configurations to build, by default those of texts that may be passed on."""

    def configurations(self) -> tuple[str, ...]:
        return self.tasks

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[SplitRows]:
        """Yield the rows of each file, and those of `sp_wiki` in the order of their articles.

        Sources of articles come after the release. A row without its article is rejected.
        """
        shuffled: list[ReleasedRow] = []
        orders: dict[str, list[str]] = {}
        licence, articles = "", False
        for reader, source in sources:
            if not isinstance(reader, Release):
                orders |= in_order(shuffled, read_documents(reader, source))
                articles = True
                continue
            yield from super().parts([(reader, source)], dataset)
            silent = silenced(source)
            for path in source.files if MENDED in self.tasks else ():
                rows = [row for row in read_examples(reader, path, silent) if row[0] == SHUFFLED]
                licence = reader.licence_of_file(path) if rows else licence
                shuffled += rows
        if not articles:
            return
        if missing := len(shuffled) - len(orders):
            dataset.reject("order_unknown", missing)
        for split in SPLITS:
            mended = (
                (row.where, {**row.columns, "label": int(row.columns["label"]), "sentences": order})
                for row in shuffled
                if row.split == split and (order := orders.get(row.columns["id"]))
            )
            yield SplitRows(MENDED, split, licence, mended)


def in_order(rows: Sequence[ReleasedRow], articles: Iterable[Document]) -> dict[str, list[str]]:
    """Return by a row's id its sentences, the last four in the order of the row's article.

    Sentences and articles are compared by letters and digits, since the release is tokenised. All
    five sentences must be in an article that begins with one of them, none inside another, and the
    first one at the place that the label says.
    """
    texts = [[letters(sentence) for sentence in row.columns["sentences"]] for row in rows]
    rows_by_head: dict[str, list[int]] = {}
    for number, sentences in enumerate(texts):
        for sentence in sentences:
            rows_by_head.setdefault(sentence[:HEAD], []).append(number)
    orders = {}
    for article in articles:
        text = letters(article.text[:LEAD])
        for number in rows_by_head.get(text[:HEAD], ()):
            sentences, columns = texts[number], rows[number].columns
            places = [text.find(sentence) for sentence in sentences]
            order = sorted(range(len(places)), key=places.__getitem__)
            apart = all(places[a] + len(sentences[a]) <= places[b] for a, b in pairwise(order))
            at_label = str(order.index(0)) == columns["label"]
            if all(sentences) and min(places) >= 0 and apart and at_label:
                order.remove(0)
                orders[columns["id"]] = [columns["sentences"][i] for i in (0, *order)]
    return orders


def letters(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return re.sub(r"[\W_]+", "", text.lower())
