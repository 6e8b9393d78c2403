"""`coherence:` pairs of a coherent text and a spoilt one, as Jwalapuram et al. 2022 publish them.

Their test sets are pickles of a list of `{"pos": [sentences], "neg": [sentences]}` (training
files: `negs`, a list of such texts); the same records as JSON Lines are read too. Votes stand in
a pickle of their own, `STEM_Annotations.pkl` beside `STEM.pkl`: a list for each annotator, `0`
where `pos` reads better, `1` where `neg` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.errors import BadRecord, InputError
from corpora.readers import jsonl
from corpora.readers.fields import strings, typed
from corpora.readers.layouts import as_document
from corpora.readers.plain_pickle import load_plain
from corpora.readers.source import DOCUMENT_LIMIT, OnBad, Refused, Source, check_unicode
from corpora.readers.whole import CANONICAL

PICKLES = (".pkl", ".pickle")
SUFFIXES = (*PICKLES, ".jsonl", ".jsonl.gz")
OPTIONS = frozenset({"set"})
"""`set`: which of the coherence test sets the files are, where their names do not tell."""

LICENCE = "CC-BY-SA-3.0"
ANNOTATIONS = "_annotations"

_SENTENCES = 10_000
_VOTES = {"0": 1, "1": 0}
"""The authors' code: 0 where `pos` scores higher, 1 where `neg` does."""


@dataclass(frozen=True, slots=True)
class CoherencePair:
    """A coherent text and a spoilt one, as sentences.

    `text` is the id of the coherent one (several pairs share it where a record has `negs`),
    `reference` the file that the source names. `prompt` is what both go on from. `votes` are the
    annotators': 1 for `pos`, 0 for `neg`, -1 for neither.
    """

    id: str
    text: str
    pos: tuple[str, ...]
    neg: tuple[str, ...]
    where: str
    reference: str = ""
    prompt: tuple[str, ...] = ()
    votes: tuple[int, ...] = ()


def read_pairs(path: Path, on_bad: OnBad | None = None) -> Iterator[CoherencePair]:
    """The pairs of a pickle or of a JSON Lines file; one for each text of `negs`.

    A record may have a `prompt` (a text or a list of sentences) and `votes`; a pickle of
    annotations beside the file gives the votes of its records, in their order.

    A record of another form goes to `on_bad`; without it the first one raises `InputError`.
    Raises `InputError` for a pickle that holds anything but plain values (`load_plain`), and for
    annotations that do not fit the records.
    """
    votes = _votes_beside(path)
    number = -1
    for number, (where, record) in enumerate(_records(path)):
        try:
            if isinstance(record, BadRecord):
                raise Refused(record.reason)
            pairs = list(_pairs(record, f"{path.name.partition('.')[0]}-{number:04d}", where))
            if votes:
                column = tuple(coder[number] for coder in votes if number < len(coder))
                pairs = [replace(pair, votes=column) for pair in pairs]
            yield from pairs
        except Refused as refusal:
            if on_bad is None:
                raise InputError(str(refusal), where=where) from None
            value = record.value if isinstance(record, BadRecord) else repr(type(record))
            on_bad(BadRecord(where, str(refusal), value))
    if any(len(coder) != number + 1 for coder in votes):
        raise InputError(
            f"{number + 1} records, but annotations of {', '.join(str(len(v)) for v in votes)}",
            where=str(path),
            hint=f"the file *{ANNOTATIONS}.pkl beside it belongs to another one",
        )


def with_group(pairs: Iterable[CoherencePair]) -> Iterator[tuple[str, CoherencePair]]:
    """Each pair after what it shares with those that are not independent of it.

    That is the file that it names, else the first text of its prompt, else its own text.
    """
    prompts: dict[tuple[str, ...], str] = {}
    for pair in pairs:
        prompted = any(map(str.strip, pair.prompt))
        alone = prompts.setdefault(pair.prompt, pair.text) if prompted else pair.text
        yield pair.reference or alone, pair


def is_annotations(path: Path) -> bool:
    """Whether a pickle holds votes and no texts."""
    return path.stem.lower().endswith(ANNOTATIONS) and path.suffix in PICKLES


def _votes_beside(path: Path) -> list[list[int]]:
    """For each annotator the votes, in the order of the records of `path`; none without a file."""
    wanted = f"{path.stem}{ANNOTATIONS}".lower()
    files = path.parent.glob("*.p*kl*") if path.suffix in PICKLES else ()
    found = [file for file in files if is_annotations(file) and file.stem.lower() == wanted]
    if not found:
        return []
    value = load_plain(found[0])
    if not isinstance(value, list | tuple) or not all(isinstance(v, list | tuple) for v in value):
        raise InputError(
            f"a pickle of {typed(value)}, expected a list of votes for each annotator",
            where=str(found[0]),
        )
    return [
        [_VOTES.get(str(vote), -1) if isinstance(vote, str | int) else -1 for vote in coder]
        for coder in value
    ]


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.name.endswith(PICKLES):
        yield from jsonl.records(path)
        return
    value = load_plain(path)
    if not isinstance(value, list | tuple):
        raise InputError(f"a pickle of {typed(value)}, expected a list of pairs", where=str(path))
    for number, record in enumerate(value):
        yield f"{path}:{number + 1}", record


def _pairs(record: Any, name: str, where: str) -> Iterator[CoherencePair]:
    if not isinstance(record, Mapping) or "pos" not in record:
        raise Refused("not a pair: expected an object with 'pos' and 'neg' (or 'negs')")
    id = record.get("id", name)
    if not isinstance(id, str):
        raise Refused(f"wrong type: field 'id' is {typed(id)}, expected a string")
    pos = _sentences(record["pos"], "pos")
    reference = str(record.get("reference_file", ""))[:512]
    prompt = tuple(strings(record.get("prompt"), "prompt"))
    check_unicode("".join(prompt))
    votes = _votes(record.get("votes", ()))
    if "neg" in record:
        neg = _sentences(record["neg"], "neg")
        yield CoherencePair(id, id, pos, neg, where, reference, prompt, votes)
        return
    negatives = record.get("negs")
    if not isinstance(negatives, list | tuple) or not 0 < len(negatives) <= _SENTENCES:
        raise Refused("not a pair: expected 'neg' or a list 'negs'")
    for number, negative in enumerate(negatives):
        neg = _sentences(negative, "negs")
        yield CoherencePair(f"{id}:{number}", id, pos, neg, where, reference, prompt)


def _votes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or any(vote not in (-1, 0, 1) for vote in value):
        raise Refused(f"wrong type: field 'votes' is {typed(value)}, expected 1, 0 and -1")
    return tuple(map(int, value))


def _sentences(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(s, str) for s in value[:_SENTENCES]
    ):
        raise Refused(f"wrong type: field {name!r} is {typed(value)}, expected a list of strings")
    if len(value) > _SENTENCES or sum(map(len, value)) > DOCUMENT_LIMIT:
        raise Refused(f"too long: {name!r} has more than {_SENTENCES:,} sentences or is too large")
    sentences = tuple(value)
    if not any(map(str.strip, sentences)):
        raise Refused(f"no text: {name!r} has none")
    check_unicode("".join(sentences))
    return sentences


def read(source: Source) -> Iterator[Document]:
    """The coherent texts, a document each, with their sentences as a layer.

    A text that comes several times in a file (one for each negative) is one document.
    """

    def on_bad(record: BadRecord) -> None:
        source.refuse(record.where, record.reason, record.value)

    for path in source.files:
        if is_annotations(path):
            continue
        stem, last = source.stem(path, SUFFIXES), ""
        for pair in read_pairs(path, on_bad):
            if pair.where == last:
                continue
            last = pair.where
            record = {"sentences": list(pair.pos)}
            name = f"{stem}/{pair.text}"
            try:
                yield as_document(record, CANONICAL, source, name)
            except Refused as refusal:
                source.refuse(pair.where, str(refusal))
