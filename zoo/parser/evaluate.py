"""Score a pipeline on treebank documents: gold tokens, own sentences, raw paragraphs, speed.

python -m zoo.parser.evaluate PIPELINE CONLLU... [--loader MODULE:FUNCTION] [--json OUT]
"""

import argparse
import importlib
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import NumpyOps, set_current_ops

from zoo.parser.documents import bare_doc
from zoo.parser.treebank import Sentence, sentences_of, treebank_files

LABELS = ("advcl", "conj", "parataxis", "mark", "cc", "advmod", "acl:relcl", "ccomp", "root")
Span = tuple[int, int]
log = logging.getLogger("zoo.parser")


@dataclass(frozen=True, slots=True)
class Word:
    """A word by its character span; `head` is its head's span, None for a root."""

    span: Span
    head: Span | None
    deprel: str
    upos: str
    xpos: str


@dataclass(slots=True)
class Tally:
    """Counts of gold, predicted and shared items, each an F1."""

    gold: Counter[str] = field(default_factory=Counter)
    predicted: Counter[str] = field(default_factory=Counter)
    shared: Counter[str] = field(default_factory=Counter)

    def add(self, gold: Sequence[Word], predicted: Sequence[Word]) -> None:
        by_span = {word.span: word for word in predicted}
        for counter, words in ((self.gold, gold), (self.predicted, predicted)):
            counter.update(("words", "uas", "las", "upos", "xpos") * len(words))
            counter.update(f"label {word.deprel}" for word in words)
        for word in gold:
            found = by_span.get(word.span)
            if found is not None:
                self.shared.update(_agreements(word, found))

    def add_sentences(self, gold: set[Span], predicted: set[Span]) -> None:
        self.gold["sentences"] += len(gold)
        self.predicted["sentences"] += len(predicted)
        self.shared["sentences"] += len(gold & predicted)

    def f1(self, key: str) -> float:
        """In percent, one decimal."""
        total = self.gold[key] + self.predicted[key]
        return round(200.0 * self.shared[key] / total, 1) if total else 0.0

    def summary(self) -> dict[str, float | dict[str, float]]:
        keys = ("words", "sentences", "uas", "las", "upos", "xpos")
        found: dict[str, float | dict[str, float]] = {key: self.f1(key) for key in keys}
        found["labels"] = {label: self.f1(f"label {label}") for label in LABELS}
        return found


def _agreements(gold: Word, found: Word) -> list[str]:
    keys = ["words"]
    keys += [key for key in ("upos", "xpos") if getattr(gold, key) == getattr(found, key)]
    if gold.head == found.head:
        keys.append("uas")
        if gold.deprel == found.deprel:
            keys += ["las", f"label {gold.deprel}"]
    return keys


def gold_words(sentences: Sequence[Sentence]) -> tuple[list[Word], set[Span], str]:
    """The words of one document or paragraph, its sentence spans, and its text."""
    words: list[Word] = []
    bounds: set[Span] = set()
    parts: list[str] = []
    length = 0
    for sentence in sentences:
        spans: list[Span] = []
        for form, space in zip(sentence.forms, sentence.spaces, strict=True):
            spans.append((length, length + len(form)))
            parts += [form, " " * space]
            length += len(form) + space
        bounds.add((spans[0][0], spans[-1][1]))
        for i, span in enumerate(spans):
            head = None if sentence.heads[i] < 0 else spans[sentence.heads[i]]
            words.append(Word(span, head, sentence.deprels[i], sentence.upos[i], sentence.xpos[i]))
    return words, bounds, "".join(parts)


def parsed_words(doc: Doc) -> tuple[list[Word], set[Span]]:
    """The words of a parsed document (blanks left out) and its sentence spans."""
    spans = [(token.idx, token.idx + len(token)) for token in doc]
    words = [
        Word(
            spans[token.i],
            None if token.head.i == token.i else spans[token.head.i],
            "root" if token.dep_ == "ROOT" else token.dep_,
            token.pos_,
            token.tag_,
        )
        for token in doc
        if not token.is_space
    ]
    return words, {(sent.start_char, sent.end_char) for sent in doc.sents}


def tally(pairs: Iterable[tuple[Sequence[Sentence], Doc]]) -> Tally:
    """Counts over units (sentence, document or paragraph), each with its gold sentences."""
    counts = Tally()
    for sentences, doc in pairs:
        gold, bounds, _ = gold_words(sentences)
        words, found = parsed_words(doc)
        counts.add(gold, words)
        counts.add_sentences(bounds, found)
    return counts


def documents(sentences: Iterable[Sentence]) -> list[list[Sentence]]:
    return [list(members) for _, members in groupby(sentences, key=lambda s: s.document)]


def paragraphs(sentences: Iterable[Sentence]) -> list[list[Sentence]]:
    keyed = groupby(sentences, key=lambda s: (s.document, s.paragraph))
    return [list(members) for _, members in keyed]


def score_gold(nlp: Language, sentences: Sequence[Sentence], *, own_sentences: bool) -> Tally:
    """Gold tokens of whole documents, the sentence starts gold or the pipeline's own."""
    units = documents(sentences)
    docs = [bare_doc(nlp.vocab, unit, keep_starts=not own_sentences) for unit in units]
    return tally(zip(units, nlp.pipe(docs), strict=True))


def score_raw(nlp: Language, sentences: Sequence[Sentence]) -> Tally:
    """From the paragraphs' text, so with the pipeline's own tokens and sentences."""
    units = paragraphs(sentences)
    return tally(zip(units, nlp.pipe(gold_words(unit)[2] for unit in units), strict=True))


def tokens_per_second(nlp: Language, sentences: Sequence[Sentence], repeats: int = 3) -> float:
    """The best of `repeats` runs from paragraph text to parse, in seconds of CPU time."""
    texts = [gold_words(unit)[2] for unit in paragraphs(sentences)]
    rates = []
    for _ in range(repeats):
        start = time.process_time()
        count = sum(len(doc) for doc in nlp.pipe(texts))
        rates.append(count / (time.process_time() - start))
    return max(rates)


def evaluate(nlp: Language, sentences: Sequence[Sentence]) -> dict[str, object]:
    """All scores of one set of documents, F1s in percent."""
    return {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "gold_sentences": score_gold(nlp, sentences, own_sentences=False).summary(),
        "own_sentences": score_gold(nlp, sentences, own_sentences=True).summary(),
        "raw_paragraphs": score_raw(nlp, sentences).summary(),
        "tokens_per_second": round(tokens_per_second(nlp, sentences)),
    }


def loader(name: str) -> Callable[..., Language]:
    """The function `MODULE:FUNCTION` that opens a pipeline folder."""
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"no loader {name!r}: give MODULE:FUNCTION ({error})") from error


def table(name: str, scores: dict[str, object]) -> str:
    """A readable table of what `evaluate` returned."""
    lines = [f"{name}: {scores['words']} words, {scores['tokens_per_second']} tokens/s"]
    for way in ("gold_sentences", "own_sentences", "raw_paragraphs"):
        row = dict(scores[way])  # type: ignore[call-overload]
        labels = row.pop("labels")
        cells = " ".join(f"{key} {value:5.1f}" for key, value in row.items())
        lines.append(f"  {way:15} {cells}")
        lines.append(" " * 18 + " ".join(f"{key} {value:.1f}" for key, value in labels.items()))
    return "\n".join(lines)


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """Each path by its stem, or by the whole of it where several share one."""
    stems = Counter(path.stem for path in paths)
    return {path.stem if stems[path.stem] == 1 else str(path): path for path in paths}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=Path, help="the pipeline's folder")
    parser.add_argument("conllu", type=Path, nargs="+", help="a file, or a folder with a dev split")
    parser.add_argument("--loader", default="extract.embedded:load", metavar="MODULE:FUNCTION")
    parser.add_argument("--json", type=Path, help="write the scores here as well")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    set_current_ops(NumpyOps(use_blis=False))
    try:
        nlp = loader(options.loader)(options.pipeline)
        sets = {
            name: sentences_of(treebank_files(path, "dev"))
            for name, path in named(options.conllu).items()
        }
    except (OSError, ValueError) as error:
        log.error("error: %s", error)
        return 2
    scores = {name: evaluate(nlp, sentences) for name, sentences in sets.items()}
    for name, found in scores.items():
        sys.stdout.write(table(name, found) + "\n")
    if options.json:
        temporary = options.json.with_suffix(".partial")
        temporary.write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")
        temporary.replace(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
