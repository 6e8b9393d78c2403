"""Discourse coherence (DiscoEval, section 3.4): is one of six sentences from another text?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.rng import stream
from corpora.schemas import DC
from corpora.splits import SPLITS, Shares
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, used
from corpora.tasks.discoeval import common
from corpora.tasks.discoeval.chat import conversations
from corpora.tasks.discoeval.donors import (
    AnyOther,
    Donors,
    Sentences,
    Similar,
    replacement,
)
from corpora.tasks.discoeval.sp import balanced
from corpora.tasks.pool import Pool, Rows
from corpora.tasks.similar import Categories, Profiles
from corpora.tasks.target import Target

VERSION = 4
LENGTH = 6
REPLACED = range(1, 5)
"""Positions, counted from 0, at which a sentence is replaced: the paper's 2 to 5."""

WINDOWS_A_BATCH = 256

CARD = Card(
    title="Discourse coherence",
    summary=(
        "Six consecutive sentences, once as written and once with one of the inner four replaced "
        "by a sentence of another document or conversation. The discourse coherence task (DC) of "
        "DiscoEval, on texts of your own."
    ),
    method=(
        "DiscoEval, section 3.4. Configuration `text`: six consecutive sentences; the intruder "
        "comes from the document with the largest share of common categories or, where no other "
        "document shares a category, from one of the most similar documents by TF-IDF of hashed "
        "words and pairs of words (`found_by`; the notes count both). Configuration `chat`: six "
        "consecutive turns of a conversation, without those that are short or technical; the "
        "intruder is from any other conversation. A document nearly alike is a copy or another "
        "version, and gives no intruder. In both, the intruder stood at the same position of a "
        "window of its own text, of which no sentence stands in the text that it intrudes on, and "
        "that text is in the same split. Each window gives two rows, one after the other."
    ),
    fields={
        "doc": "id of the document, or of the conversation",
        "pair": "which two rows belong together, counted in a split",
        "label": "`incoherent` (0, a sentence was replaced) or `coherent` (1)",
        "position": "the place, 1 to 4 counted from 0, of the replaced sentence; -1 if coherent",
        "donor": "the document that the intruder is from, or empty",
        "found_by": "`categories`, `tfidf` or `chance`: how the donor was chosen; or empty",
        "sentences": "six sentences or turns",
    },
    citation=common.CITATION,
    limits=(
        "Sentences are split by a program; a wrong boundary gives a wrong example.",
        "A replaced sentence can fit as well as the one that stood there.",
        "Similar documents are looked up by their weightiest features, and not by those of more "
        "than 1,000 documents: the best one of a large corpus can be missed.",
        "The paper names no rules for leaving out technical turns; the ones used here are its own.",
    ),
    tags=("discoeval", "coherence"),
)


@dataclass(frozen=True, slots=True)
class Settings(common.Consecutive):
    """Where windows are taken from (see `Consecutive`), and the sizes in rows, two a window.

    `similar`: how many of the most similar documents a donor is drawn from, where there are no
    common categories. `max_text_similarity`: a document more alike than that (cosine of TF-IDF)
    is a copy or another version, and no donor.
    `chat_step`: turns from the start of one window to the next (1, as in the released files);
    `chat_min_words`, `chat_max_words`: plain words a turn must have, words it may have;
    `chat_plain`: the share of its tokens that must be plain words.
    `chat_train`, `chat_validation`, `chat_test`: the sizes of `chat`.
    """

    LENGTH: ClassVar[int] = LENGTH

    within: Literal["paragraph", "section", "document"] = "section"
    similar: int = 5
    max_text_similarity: float = 0.8
    chat_step: int = 1
    chat_min_words: int = 3
    chat_max_words: int = 100
    chat_plain: float = 0.7
    chat_train: int = 5_816
    chat_validation: int = 1_834
    chat_test: int = 2_418

    def __post_init__(self) -> None:
        # A slotted dataclass has no zero-argument `super`.
        common.Consecutive.__post_init__(self)
        for name in ("similar", "chat_step", "chat_min_words"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", hint="1 or more")
        if not 0 <= self.chat_plain <= 1:
            raise ConfigError(f"chat_plain = {self.chat_plain}", hint="a share, 0 to 1")
        if not 0 < self.max_text_similarity <= 1:
            raise ConfigError(
                f"max_text_similarity = {self.max_text_similarity}", hint="above 0, and at most 1"
            )
        try:
            Shares(*self.sizes_of("chat").values())
        except ConfigError as error:
            raise ConfigError(f"chat_{error.message}", hint=error.hint) from None

    def sizes_of(self, config: str) -> dict[str, int]:
        if config == "text":
            return self.sizes
        chat = (self.chat_train, self.chat_validation, self.chat_test)
        return dict(zip(SPLITS, chat, strict=True))


def configurations(settings: Settings) -> Iterable[str]:
    """What `Builder.configurations` gives."""
    return ("text", "chat")


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with a sentence layer; returns the manifest.

    Documents with turns give the configuration `chat`, the others `text`.
    """
    with (
        target.dataset(CARD) as dataset,
        target.pool("text") as text,
        target.pool("chat") as chat,
        Profiles(target.folder / ".profiles") as profiles,
        Sentences(target.folder / ".sentences") as sentences,
    ):
        categories = Categories()
        for document in documents:
            if document.turns is not None:
                _add_chat(document, chat, sentences, settings, dataset)
                continue
            windows = common.runs(document, settings, dataset.reject)
            text.add(document, windows)
            if windows:
                sentences.add(document.id, document.sentence_texts())
                profiles.add(document.id, " ".join(s for window in windows for s in window))
                categories.add(document.id, document.categories)
        similar = Similar(profiles, categories, settings.similar, settings.max_text_similarity)
        dataset.details |= {"split": {}, "settings": used(settings, target.seed)}
        _config("text", text, similar, sentences, dataset, settings)
        _config("chat", chat, AnyOther(), sentences, dataset, settings)
        dataset.languages = text.languages | chat.languages
        return dataset.finish("text" if len(text) else "chat")


def _add_chat(
    document: Document,
    pool: Pool,
    sentences: Sentences,
    settings: Settings,
    dataset: DatasetFolder,
) -> None:
    rules = (settings.chat_min_words, settings.chat_max_words, settings.chat_plain)
    for conversation, turns in conversations(document, *rules, dataset.reject):
        starts = range(0, len(turns) - LENGTH + 1, settings.chat_step)
        if not starts:
            dataset.reject("conversation_too_short")
        windows = [turns[start : start + LENGTH] for start in starts]
        pool.add(conversation, windows, whole=document.id)
        if starts:
            sentences.add(conversation.id, turns)


def _config(
    config: str,
    pool: Pool,
    donors: Donors,
    sentences: Sentences,
    dataset: DatasetFolder,
    settings: Settings,
) -> None:
    """Write all splits of a configuration, if there is anything for it."""
    if not len(pool):
        return
    sizes = settings.sizes_of(config)
    assignment = pool.assign(Shares(*sizes.values()))
    distinct = pool.distinct()
    dataset.reject("exact_duplicate", len(pool) - distinct.size)
    dataset.details["split"][config] = assignment.to_dict()
    found: Counter[str] = Counter()
    for split in SPLITS:
        donors.enter(pool, pool.names_in(split, assignment.split))
        rows = pool.of_split(split, assignment, distinct)
        writer = dataset.writer(config, split, DC, texts=("sentences",))
        before = dataset.rejects.total()
        pairs = _pairs(rows, split, sizes[split] // 2, pool, donors, sentences, dataset)
        for number, (record, changed) in enumerate(pairs):
            dataset.count_licence(record["licence"], 2)
            if changed["licence"] != record["licence"]:
                dataset.count_licence(changed["licence"])
            found[changed["found_by"]] += 1
            writer.extend(_rows(number, record, changed))
        _say(split, config, sizes[split], writer.rows, dataset)
        refused = dataset.rejects.total() - before
        dataset.reject("not_needed", rows.size - writer.rows // 2 - refused)
    for how, number in sorted(found.items()):
        dataset.note(f"`{config}`: {number:,} intruders were found by {how}.")


def _pairs(
    rows: Rows,
    split: str,
    wanted: int,
    pool: Pool,
    donors: Donors,
    sentences: Sentences,
    dataset: DatasetFolder,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Windows by priority, each with what replaces one of its sentences, until there are enough."""
    wanted = min(wanted, rows.size)
    order = stream(pool.seed, pool.stage, f"positions of {split}")
    positions = REPLACED.start + balanced(wanted, len(REPLACED), order)
    made = 0
    for start in range(0, rows.size, WINDOWS_A_BATCH):
        if made == wanted:
            return
        some = rows[start : start + WINDOWS_A_BATCH].tolist()
        for row, candidates in zip(some, donors.find(some), strict=True):
            if made == wanted:
                return
            record = pool.record(row)
            position = int(positions[made])
            changed = replacement(pool, sentences, row, record, position, candidates)
            if isinstance(changed, str):
                dataset.reject(changed)
                continue
            yield record, changed
            made += 1


def _rows(number: int, record: dict[str, Any], changed: dict[str, Any]) -> list[dict[str, Any]]:
    """The changed window (label 0), then the original (label 1), as the released files have it."""
    shared = {"doc": record["doc"], "pair": number}
    original = {"position": -1, "donor": "", "found_by": "", "sentences": record["sentences"]}
    return [{**shared, "label": 0, **changed}, {**shared, "label": 1, **original}]


def _say(split: str, config: str, size: int, rows: int, dataset: DatasetFolder) -> None:
    if rows < size // 2 * 2:
        dataset.note(f"{config}, {split}: {size:,} rows were asked for, the corpus gives {rows:,}.")
