"""Score a pipeline on treebank documents, from gold tokens and from raw text, and its speed.

python -m zoo.parser.evaluate PIPELINE CONLLU... [--loader MODULE:FUNCTION] [--json OUT]
"""

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import NumpyOps, set_current_ops

from corpora.store.atomic import write_text
from zoo.commands import command
from zoo.evaluate.table import markdown
from zoo.parser.documents import to_doc
from zoo.parser.treebank import Sentence, sentences_of, treebank_files

LABELS = ("advcl", "conj", "parataxis", "mark", "cc", "advmod", "acl:relcl", "ccomp", "root")
MEASURES = ("las", "uas", "upos", "xpos", "sentences", "words")
WAYS = {
    "gold_sentences": "gold tokens, gold sentences",
    "own_sentences": "gold tokens, own sentences (whole documents)",
    "raw_paragraphs": "raw paragraph text (own tokens and sentences)",
}
"""The inputs on which `evaluate` scores a pipeline: keys of its result, with their descriptions."""
Fact = tuple[Any, ...]
"""A measure and an item that it counts, such as `("uas", span of the word, span of its head)`. A
predicted fact is right if it is also among the gold facts. Spans are in characters."""


def facts_of(doc: Doc) -> set[Fact]:
    """Return all facts of a parsed document, for the F1s of `score`. The head of a root is None.
    Tokens of blanks are left out."""
    facts: set[Fact] = {("sentences", sent.start_char, sent.end_char) for sent in doc.sents}
    spans = [(token.idx, token.idx + len(token)) for token in doc]
    for token, span in zip(doc, spans, strict=True):
        if token.is_space:
            continue
        head = None if token.head.i == token.i else spans[token.head.i]
        deprel = "root" if token.dep_ == "ROOT" else token.dep_
        facts |= {("words", span), ("upos", span, token.pos_), ("xpos", span, token.tag_)}
        facts |= {("uas", span, head), ("las", span, head, deprel), (f"label {deprel}", span, head)}
    return facts


def score(
    nlp: Language, units: Sequence[Sequence[Sentence]], inputs: Iterable[Any]
) -> dict[str, Any]:
    """Return the F1 of each measure and of the arcs of each label, in percent with one decimal.

    `units` are the gold sentences of documents or paragraphs, `inputs` the texts or `Doc`s of the
    same units, which `nlp` parses.
    """
    counts: Counter[str] = Counter()  # gold and predicted facts together
    shared: Counter[str] = Counter()
    for sentences, doc in zip(units, nlp.pipe(inputs), strict=True):
        gold, predicted = facts_of(to_doc(nlp.vocab, sentences)), facts_of(doc)
        counts.update(fact[0] for fact in [*gold, *predicted])
        shared.update(fact[0] for fact in gold & predicted)
    f1 = {key: round(200.0 * shared[key] / count, 1) for key, count in counts.items()}
    labels = {label: f1.get(f"label {label}", 0.0) for label in LABELS}
    return {**{key: f1.get(key, 0.0) for key in MEASURES}, "labels": labels}


def score_gold(
    nlp: Language, sentences: Sequence[Sentence], *, own_sentences: bool
) -> dict[str, Any]:
    """Return the scores on gold tokens of documents, with gold sentences or predicted ones."""
    units = [list(unit) for _, unit in groupby(sentences, key=lambda s: s.document)]
    docs = [to_doc(nlp.vocab, unit, trees=False, starts=not own_sentences) for unit in units]
    return score(nlp, units, docs)


def evaluate(nlp: Language, sentences: Sequence[Sentence]) -> dict[str, Any]:
    """Return all scores of one set of documents, F1s in percent, and the speed.

    Raw paragraphs are parsed from their text, with predicted tokens and sentences. The speed is the
    best of three such runs, in tokens a second of CPU time.
    """
    by_paragraph = groupby(sentences, key=lambda s: (s.document, s.paragraph))
    paragraphs = [list(unit) for _, unit in by_paragraph]
    texts = [to_doc(nlp.vocab, unit, trees=False).text for unit in paragraphs]
    scores = {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "gold_sentences": score_gold(nlp, sentences, own_sentences=False),
        "own_sentences": score_gold(nlp, sentences, own_sentences=True),
        "raw_paragraphs": score(nlp, paragraphs, texts),
    }
    rates = []
    for _ in range(3):
        start = time.process_time()
        count = sum(len(doc) for doc in nlp.pipe(texts))
        rates.append(count / (time.process_time() - start))
    return {**scores, "tokens_per_second": round(max(rates))}


def baseline_las(train: Sequence[Sentence], dev: Sequence[Sentence]) -> float:
    """Return the LAS in percent on `dev` of a baseline that a trained parser must clearly exceed.

    Each word gets the most frequent arc (distance to the head, label) of its gold XPOS in `train`.
    """

    def tagged_arcs(sentences: Sequence[Sentence]) -> Iterable[tuple[str, tuple[int, str]]]:
        """Yield for each word its tag and its arc: distance to the head (0: root) and label."""
        for sentence in sentences:
            columns = zip(sentence.xpos, sentence.heads, sentence.deprels, strict=True)
            for i, (tag, head, deprel) in enumerate(columns):
                yield tag, (0 if head < 0 else head - i, deprel)

    votes: dict[str, Counter[tuple[int, str]]] = defaultdict(Counter)
    for tag, arc in tagged_arcs(train):
        votes[tag][arc] += 1
    best_arcs = {tag: counter.most_common(1)[0][0] for tag, counter in votes.items()}
    hits = [best_arcs.get(tag) == arc for tag, arc in tagged_arcs(dev)]
    return 100.0 * sum(hits) / len(hits)


def loader(name: str) -> Callable[..., Language]:
    """Return the function named `MODULE:FUNCTION`, which loads a pipeline from its folder. Raises
    `ValueError` if there is no such function."""
    try:
        function = resolve_name(name)
        if callable(function):
            return function
        raise ValueError("it is not a function")
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"no loader {name!r}: give MODULE:FUNCTION ({error})") from error


def tables(sets: Mapping[str, dict[str, Any]]) -> tuple[str, str]:
    """Return two Markdown tables, of scores and of labels' F1s, for results of `evaluate`."""
    scores = [["documents", "input", "LAS", "UAS", "UPOS", "XPOS", "sentences", "words"]]
    labels = [["label", *(f"{name}, {way.partition('_')[0]}" for name in sets for way in WAYS)]]
    for name, result in sets.items():
        for way, description in WAYS.items():
            scores.append([name, description, *(f"{result[way][key]:.1f}" for key in MEASURES)])
    for label in LABELS:
        cells = [result[way]["labels"][label] for result in sets.values() for way in WAYS]
        labels.append([f"`{label}`", *(f"{cell:.1f}" for cell in cells)])
    return "\n".join(markdown(scores)), "\n".join(markdown(labels))


def names_of(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the paths by name: a path's stem, or the whole path if others have the same stem."""
    stems = Counter(path.stem for path in paths)
    return {path.stem if stems[path.stem] == 1 else str(path): path for path in paths}


def main(arguments: Sequence[str] | None = None) -> int:
    """Score the pipeline that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=Path, help="the pipeline's folder")
    parser.add_argument("conllu", type=Path, nargs="+", help="a file, or a folder with a dev split")
    parser.add_argument("--loader", default="extract.embedded:load", metavar="MODULE:FUNCTION")
    parser.add_argument("--json", type=Path, help="write the scores here as well")
    return command(run, parser, arguments)


def run(options: argparse.Namespace) -> None:
    """Score the pipeline on each path, and print the tables."""
    set_current_ops(NumpyOps(use_blis=False))
    nlp = loader(options.loader)(options.pipeline)
    paths = names_of(options.conllu)
    sets = {name: sentences_of(treebank_files([path], "dev")) for name, path in paths.items()}
    scores = {name: evaluate(nlp, sentences) for name, sentences in sets.items()}
    for table in tables(scores):
        sys.stdout.write(f"{table}\n\n")
    for name, result in scores.items():
        speed = f"{result['words']} words, {result['tokens_per_second']} tokens/s"
        sys.stdout.write(f"{name}: {speed}\n")
    if options.json:
        write_text(options.json, json.dumps(scores, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
