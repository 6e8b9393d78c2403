"""Coherence: `coherence:` (Jwalapuram et al. 2022) and `summeval:` (Fabbri et al. 2021).

The test sets of `coherence:` are pickles of a list of `{"pos": [sentences], "neg": [sentences]}`
(training files: `negs`, a list of such texts); the same records as JSON Lines are read too. Votes
are in a separate pickle, `STEM_Annotations.pkl` beside `STEM.pkl`: a list for each annotator, `0`
if `pos` reads better, `1` if `neg` does.

`summeval:` reads the released `model_annotations.aligned.jsonl`: one summary in each line, with
`id` (the article's), `model_id`, `decoded` (the summary) and `expert_annotations`, ratings from 1
to 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from corpora.document import Document
from corpora.errors import InputError, amount, check_choice
from corpora.readers.fields import NONE, Fields, Filled, Record, Texts, json_type
from corpora.readers.files import DOCUMENT_LIMIT, expect, find_files, good_record
from corpora.readers.guarded import load_plain
from corpora.readers.records import as_document
from corpora.readers.released import Columns, Rated
from corpora.readers.rows import JSON_LINES, json_rows
from corpora.readers.source import OnBad, Reader, Source, check_id, fail, refusing

TestSet = Literal[
    "insted",
    "insted_cnn",
    "probe_animacy_pronoun_downgrade",
    "probe_animacy_pronoun_upgrade",
    "probe_gender_pronoun_flip",
    "probe_past_to_future_flip",
    "probe_singular_determiner_flip",
    "probe_number_exaggerate",
    "probe_conjunction_flip",
    "probe_to_negation",
    "storycloze",
    "summeval",
    "lmvlm",
]
"""The coherence test sets; the probes (Shen et al. 2021) in the order of the paper's table 3."""
SETS: tuple[str, ...] = get_args(TestSet)

PICKLES = (".pkl", ".pickle")
SUFFIXES = (*PICKLES, ".jsonl", ".jsonl.gz")
ANNOTATIONS = "_annotations"

_VOTES = {"0": 1, 0: 1, "1": 0, 1: 0}
"""Our vote (1 for `pos`, 0 for `neg`) by the authors' code (0 for `pos`, 1 for `neg`)."""


class Coherence(Reader):
    """Pairs of coherent and incoherent texts."""

    name = "coherence"
    suffixes = SUFFIXES
    licence_by = "set"
    paper = "Jwalapuram et al. 2022"

    set: TestSet | None = None
    """The coherence test set of the files, if their names do not tell."""

    @field_validator("licence")
    @classmethod
    def _check_test_sets(cls, licence: str | dict[str, str]) -> str | dict[str, str]:
        """Return `licence`, a table by test set; `ConfigError` if a key is not a test set. Without
        this check a misspelt set would silently get the licence of `default`."""
        for name in licence if isinstance(licence, dict) else ():
            check_choice("test set", name, (*SETS, "default"))
        return licence

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return the files of pairs at `target` and the pickles of votes beside them, sorted."""
        files = find_files(target, cls.suffixes, kind=cls.name)
        return sorted({*files, *(votes for path in files for votes in annotations_of(path))})

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the coherent texts as documents, with their sentences as a layer.

        A text that occurs several times in a file (once for each negative) is one document.
        """
        if is_annotations(path):
            return
        by_set = isinstance(self.licence, dict)
        licence = self.licence_of(self.set_of(path) if by_set else "")
        for where, pairs in groupby(read_pairs(path, source.refuse), attrgetter("where")):
            pair = next(pairs)
            with source.refusing(where):
                record = {"sentences": list(pair.pos), "licence": licence}
                yield as_document(record, source, f"{stem}/{pair.text}")

    def set_of(self, path: Path) -> str:
        """Return the test set of a file: the option `set`, or the one in the file's name.

        Raises `InputError` if the name has none.
        """
        name = path.name.lower()
        probes = [probe for probe in SETS if probe.startswith("probe_")]
        probes = [probe for probe in probes if probe.removeprefix("probe_") in name]
        if self.set or probes:
            return self.set or probes[0]
        if "insted" in name or "instead" in name:
            return "insted_cnn" if "cnn" in name else "insted"
        for test_set in ("storycloze", "summeval", "lmvlm"):
            if test_set in name.replace("_", ""):
                return test_set
        raise InputError(
            "cannot tell the test set from its name",
            where=str(path),
            hint=f'give set = "NAME" in the source\'s options; sets are {", ".join(SETS)}',
        )


@dataclass(frozen=True, slots=True)
class CoherencePair:
    """A coherent text (`pos`) and an incoherent one (`neg`), as sentences.

    `text` is the id of the coherent one (several pairs share it where a record has `negs`),
    `reference` the file that the source names. `prompt` is the text that both continue. `votes` are
    the annotators': 1 for `pos`, 0 for `neg`, -1 for neither. `where` is the record's `file:line`.
    """

    id: str
    text: str
    pos: tuple[str, ...]
    neg: tuple[str, ...]
    where: str
    reference: str = ""
    prompt: tuple[str, ...] = ()
    votes: tuple[int, ...] = ()


def read_pairs(path: Path, on_bad: OnBad = fail) -> Iterator[CoherencePair]:
    """Yield the pairs of a pickle or of a JSON Lines file, one for each incoherent text.

    A record has one such text, `neg`, or a list of them, `negs`. It may have a `prompt` (a text or
    a list of sentences) and `votes`; a pickle of annotations beside the file gives the votes of its
    records, in their order.

    An invalid record goes to `on_bad`; by default the first one raises `InputError`. Raises
    `InputError` for a pickle with anything but plain values (`load_plain`), and for annotations
    that do not fit the records.
    """
    records: Iterable[tuple[str, Any]] = json_rows(path)
    if path.name.endswith(PICKLES):
        pairs = enumerate(_list_in_pickle(path, "a list of pairs"), 1)
        records = ((f"{path}:{number}", record) for number, record in pairs)
    votes_by_coder: list[list[int]] = []
    for votes_file in annotations_of(path):
        for coder in _list_in_pickle(votes_file, "a list of votes for each annotator"):
            # A value that is not a list counts as no votes: an error says that they are too few.
            values = coder if isinstance(coder, list | tuple) else ()
            votes_by_coder.append(
                [_VOTES.get(v, -1) if isinstance(v, str | int) else -1 for v in values]
            )
    count = 0
    for count, (where, record) in enumerate(records, 1):
        # A list of a pickle may contain itself: it is never printed.
        with refusing(on_bad, where, type(record)):
            fields = _PairRecord.of(good_record(record))
            number = f"{path.name.partition('.')[0]}-{count - 1:04d}"
            id = number if fields.id is None else fields.id
            votes = tuple(coder[count - 1] for coder in votes_by_coder if count <= len(coder))
            negatives = {f"{id}:{index}": text for index, text in enumerate(fields.negs)}
            if fields.neg is not None:
                negatives, votes = {id: fields.neg}, votes or fields.votes
            expect(negatives, "not a pair: expected 'neg', or a list 'negs'")
            shared = (where, str(fields.reference_file)[:512], tuple(fields.prompt), votes)
            for key, neg in negatives.items():
                yield CoherencePair(key, id, fields.pos, neg, *shared)
    if any(len(coder) != count for coder in votes_by_coder):
        raise InputError(
            f"{amount(count, 'record')}, but annotations of "
            f"{', '.join(str(len(coder)) for coder in votes_by_coder)}",
            where=str(path),
            hint=f"the file *{ANNOTATIONS}.pkl beside it belongs to another one",
        )


def with_group(pairs: Iterable[CoherencePair]) -> Iterator[tuple[str, CoherencePair]]:
    """Yield (key of its group, pair) for each pair; pairs of one group are not independent.

    The key is the pair's `reference`, else the `text` of the first pair with the same prompt, else
    its own `text`.
    """
    first_texts: dict[tuple[str, ...], str] = {}  # by prompt
    for pair in pairs:
        key = pair.text
        if any(map(str.strip, pair.prompt)):
            key = first_texts.setdefault(pair.prompt, pair.text)
        yield pair.reference or key, pair


def is_annotations(path: Path) -> bool:
    """Whether a pickle contains votes, not texts."""
    return path.stem.lower().endswith(ANNOTATIONS) and path.suffix in PICKLES


def annotations_of(path: Path) -> list[Path]:
    """Return the pickle of votes beside a pickle of pairs, as a list of one path or none."""
    name = f"{path.stem}{ANNOTATIONS}".lower()
    files = path.parent.glob("*.p*kl*") if path.suffix in PICKLES else ()
    return [file for file in files if is_annotations(file) and file.stem.lower() == name][:1]


def _list_in_pickle(path: Path, expected: str) -> list[Any]:
    """Return the list in a pickle of plain values; `InputError` names `expected` if it has none."""
    value = load_plain(path)
    if not isinstance(value, list | tuple):
        raise InputError(f"a pickle of {json_type(value)}, expected {expected}", where=str(path))
    return list(value)


def _check_text(sentences: tuple[str, ...], field: ValidationInfo) -> tuple[str, ...]:
    """Return the sentences of a text; `Refused` if the text is too long or all are empty."""
    name = field.field_name
    within = sum(map(len, sentences)) <= DOCUMENT_LIMIT
    expect(within, f"too long: {name!r} has more than {DOCUMENT_LIMIT:,} characters")
    expect(any(map(str.strip, sentences)), f"no text: {name!r} has none")
    return sentences


SHORT = Field(max_length=10_000, fail_fast=True)
LISTED = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
Sentences = Annotated[tuple[str, ...], SHORT, LISTED, AfterValidator(_check_text)]
"""The sentences of a text."""


class _PairRecord(Fields):
    """A coherent text (`pos`) and one incoherent text (`neg`), or several (`negs`)."""

    id: str | None = None
    pos: Sentences
    neg: Sentences | None = None
    negs: Annotated[tuple[Sentences, ...], SHORT, LISTED] = NONE
    prompt: Texts = NONE
    votes: Annotated[tuple[Literal[-1, 0, 1], ...], SHORT, LISTED] = NONE
    reference_file: Any = ""


class _Expert(Fields):
    coherence: Annotated[float, Field(ge=1, le=5)]


class _Summary(Fields):
    """A line of SummEval: the summary `decoded` by the system `model_id`, and experts' ratings."""

    id: Filled
    model_id: Filled
    decoded: Filled
    expert_annotations: Annotated[list[_Expert], Field(min_length=1, fail_fast=True)]


class SummEval(Rated):
    """SummEval's rated summaries."""

    name = "summeval"
    suffixes = JSON_LINES
    paper = "Fabbri et al. 2021"

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """Yield the row of a summary: its `rating` is the mean of its experts' `ratings` (1 to 5).

        The id is `ARTICLE/SYSTEM`; the summaries of an article are a group.
        """
        summary = _Summary.of(record)
        name = f"{check_id(summary.id)}/{check_id(summary.model_id)}"
        ratings = [expert.coherence for expert in summary.expert_annotations]
        row = {"id": name, "group": summary.id, "title": "", "text": summary.decoded}
        yield "summeval", row | {"split": "test", "ratings": ratings, "rating": fmean(ratings)}
