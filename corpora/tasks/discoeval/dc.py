"""Discourse coherence (DiscoEval, section 3.4): is one of six sentences from another text?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Self

import pyarrow as pa
from pydantic import Field, model_validator

from corpora.document import Document
from corpora.rng import stream
from corpora.schemas import DC
from corpora.splits import SPLITS, Shares
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Candidate, Reject, Size
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside
from corpora.tasks.discoeval.chat import conversations
from corpora.tasks.discoeval.donors import (
    WINDOWS,
    Find,
    Windows,
    any_other,
    sentence_keys,
    similar_documents,
)
from corpora.tasks.discoeval.order import Consecutive, balanced_labels
from corpora.tasks.similar import Categories, Profiles

REPLACED = range(1, 5)
"""Positions, counted from 0, at which a sentence is replaced: the paper's 2 to 5."""


class Dc(Consecutive):
    """Discourse coherence: is one of six sentences, or turns, from another text?

    The sizes count rows, two a window.
    """

    name, version = "dc", 8
    paper = "Chen, Chu and Gimpel 2019, section 3.4"
    card = card_beside(__file__, "dc")
    gives = {"text": DC, "chat": DC}
    default = "text"
    LENGTH = 6
    columns = pa.schema(
        [
            *Consecutive.columns,
            ("categories", pa.list_(pa.string())),
            ("known", pa.list_(pa.uint64())),
        ]
    )
    """The document's `categories`, and keys of all its sentences (`known`); in its first window
    only."""

    similar: Annotated[int, Field(ge=1)] = 5
    """Without common categories, the number of most similar documents from which the donor is
    drawn."""
    max_text_similarity: Annotated[float, Field(gt=0, le=1)] = 0.8
    """A document with a higher similarity (cosine of TF-IDF) is a copy or another version, and
    cannot be the donor."""
    intruder_words: Annotated[int, Field(ge=1)] = 5
    """Minimum words of an intruder and of the sentence it replaces (`short_sentence_replaced`): a
    short reply fits nearly everywhere."""
    chat_step: Annotated[int, Field(ge=1)] = 1
    """Turns from the start of one window to the next; windows of a conversation overlap, as in the
    released files."""
    chat_min_words: Annotated[int, Field(ge=1)] = 3
    """Minimum plain words of a turn."""
    chat_max_words: int = 100
    """Maximum words of a turn."""
    chat_plain: Annotated[float, Field(ge=0, le=1)] = 0.7
    """Minimum share of plain words among the tokens of a turn."""
    chat_train: Size = 5_816
    chat_validation: Size = 1_834
    chat_test: Size = 2_418

    @model_validator(mode="after")
    def _check_chat_sizes(self) -> Self:
        self.shares("chat")
        return self

    def shares(self, part: str = "") -> Shares:
        """Return the maximum rows of each split of `text` or `chat`, two for each window."""
        chat = "chat_" if part == "chat" else ""
        return Shares(*(getattr(self, f"{chat}{split}") for split in SPLITS))

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield windows of six turns of a conversation (part `chat`), or sentences (`text`).

        The first window also has the keys of all sentences or turns of its document, and the
        categories of a text. The other windows have none: the choice of a donor needs these
        once for a document.
        """
        if not document.is_chat:
            keys = sentence_keys(document.sentence_texts())
            for number, window in enumerate(super().candidates(document, reject)):
                of_first_window = ((), ()) if number else (document.categories, keys)
                yield Candidate((*window.values, *of_first_window), "text")
            return
        rules = (self.chat_min_words, self.chat_max_words, self.chat_plain)
        for name, turns in conversations(document, *rules, reject):
            starts = range(0, len(turns) - self.LENGTH + 1, self.chat_step)
            if not starts:
                reject("conversation_too_short")
            for start in starts:
                turns_of_window = turns[start : start + self.LENGTH]
                known = () if start else sentence_keys(turns)
                yield Candidate((turns_of_window, 0, (), known), "chat", name)

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write each window twice, with an intruder and unchanged."""
        with Profiles(candidates.target.folder) as profiles:
            categories = Categories()
            rows = (row for batch in candidates.engine.batches(_TEXT) for row in batch.to_pylist())
            for doc, group in groupby(rows, key=itemgetter("doc")):
                windows = list(group)
                profiles.add(doc, " ".join(text for row in windows for text in row["sentences"]))
                categories.add(doc, windows[0]["categories"])
            limits = (self.similar, self.max_text_similarity)
            similar = partial(similar_documents, profiles, categories, *limits)
            if "text" in candidates.assignments:
                self._write_config("text", similar, candidates, dataset)
        if "chat" in candidates.assignments:
            self._write_config("chat", any_other, candidates, dataset)

    def _write_config(
        self, config: str, find_donors: Find, candidates: Candidates, dataset: DatasetFolder
    ) -> None:
        """Write windows by priority until there are enough, or none is left.

        Each window gives two rows, as in the released files: changed (label 0), then the original
        (label 1). `find_donors` yields for each window the documents that may give the intruder; a
        window without an intruder is rejected.
        """
        target, stage = candidates.target, candidates.target.stage_of(config)
        found_by: Counter[str] = Counter()

        def pairs(windows: Windows, positions: Sequence[int]) -> Iterator[dict[str, Any]]:
            """Yield two rows for each of `positions`, at which a window's sentence is replaced."""
            pair = 0
            choices = find_donors(windows.documents, windows.hosts(windows.kept))
            for row, choice in zip(windows.kept.tolist(), choices, strict=True):
                if pair == len(positions):
                    return
                position = positions[pair]
                intruder = windows.intruder(row, position, choice, self.intruder_words)
                if isinstance(intruder, str):
                    dataset.reject(intruder)
                    continue
                sentence, donor, donor_licence = intruder
                doc, licence, sentences = windows.window(row)
                dataset.count_licence(licence, 2)
                if donor_licence != licence:
                    dataset.count_licence(donor_licence)
                found_by[choice.found_by] += 1
                changed = [*sentences[:position], sentence, *sentences[position + 1 :]]
                for values in (
                    (doc, pair, 0, position, donor, choice.found_by, changed),
                    (doc, pair, 1, -1, "", "", sentences),
                ):
                    yield dict(zip(DC.names, values, strict=True))
                pair += 1

        # Write each split, and count the windows that were not needed.
        for split, size in zip(SPLITS, map(int, self.shares(config).parts), strict=True):
            writer = dataset.writer(config, split, DC, texts=("sentences",))
            rejects_before = dataset.rejects.total()
            with candidates.memory_mapped(WINDOWS, {"part": config, "split": split}) as table:
                windows = Windows(candidates, table, config, split)
                number = min(size // 2, len(windows.kept))
                random = stream(target.seed, stage, f"positions of {split}")
                positions = REPLACED.start + balanced_labels(number, len(REPLACED), random)
                writer.extend(pairs(windows, positions.tolist()))
            unused = len(windows.kept) - writer.rows // 2
            rejected = dataset.rejects.total() - rejects_before
            dataset.reject("not_needed", unused - rejected)
            if writer.rows < size // 2 * 2:
                dataset.note(
                    f"{config}, {split}: {size:,} rows were asked for, the corpus gives "
                    f"{writer.rows:,}."
                )
        for method, number in sorted(found_by.items()):
            dataset.note(f"`{config}`: {number:,} intruders were found by {method}.")


_TEXT = """
select doc, sentences, categories from candidate where part = 'text' order by doc, number
"""
