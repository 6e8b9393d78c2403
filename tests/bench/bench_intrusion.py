"""How hard is our intrusion data? `python tests/bench/bench_intrusion.py --data DATA`

Simple baselines tell a text from the same text with an intruder: on the shared INSteD pairs, on
pairs that we build from the *same* coherent texts, and on others. No baseline may find ours easier.
Accuracy of choosing the coherent one of a pair; chance is 50 %.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from corpora.document import Document, Spans
from corpora.readers.discoeval import read_discoeval
from corpora.store.atomic import staged
from corpora.store.folder import Stage
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

Pair = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
FOLDS = 5
STOP = frozenset(
    re.findall(
        r"\w+",
        "a an the of in on at to for from by with as and or but is are was were be been it its he "
        "she his her they their them this that these those which who had has have not s",
    )
)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def content(text: str) -> set[str]:
    return {word for word in words(text) if word not in STOP}


def jaccard(one: set[str], two: set[str]) -> float:
    return len(one & two) / max(1, len(one | two))


def adjacent_overlap(sentences: Sequence[str]) -> float:
    """Mean overlap of content words of neighbouring sentences."""
    return float(np.mean([jaccard(a, b) for a, b in pairwise(map(content, sentences))]))


def all_overlap(sentences: Sequence[str]) -> float:
    """Mean overlap of content words of any two sentences."""
    return float(np.mean([jaccard(a, b) for a, b in combinations(map(content, sentences), 2)]))


def loneliest(sentences: Sequence[str]) -> float:
    """The least share of content words that a sentence has in common with all others."""
    sets = list(map(content, sentences))
    shares = []
    for i, own in enumerate(sets):
        rest = set().union(*sets[:i], *sets[i + 1 :])
        shares.append(len(own & rest) / max(1, len(own)))
    return min(shares[1:])


def untrained(pairs: Sequence[Pair], score: Callable[[Sequence[str]], float]) -> float:
    """The share of pairs in which the coherent text scores higher; a tie is half right."""
    right = 0.0
    for pair in pairs:
        difference = score(pair["pos"]) - score(pair["neg"])
        right += 0.5 if difference == 0 else float(difference > 0)
    return right / len(pairs)


def bag_of_words(pairs: Sequence[Pair], features: Callable[[Pair, str], str]) -> float:
    """Logistic regression on the difference of two bags of words; cross-validated."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = HashingVectorizer(n_features=2**16, alternate_sign=False, norm=None)
    texts = {form: [features(pair, form) for pair in pairs] for form in ("pos", "neg")}
    difference = vectorizer.transform(texts["pos"]) - vectorizer.transform(texts["neg"])
    fold = np.random.default_rng(0).integers(FOLDS, size=len(pairs))
    right = 0
    for held in range(FOLDS):
        train, test = difference[fold != held], difference[fold == held]
        sign = np.where(np.arange(train.shape[0]) % 2, 1, -1)
        model = LogisticRegression(C=0.1, max_iter=300, fit_intercept=False)
        model.fit(train.multiply(sign[:, None]).tocsr(), sign)
        right += int((model.decision_function(test) > 0).sum())
    return right / len(pairs)


def learned_overlap(pairs: Sequence[Pair]) -> float:
    """Logistic regression on the three overlaps and lengths: catches a bias either way."""
    from sklearn.linear_model import LogisticRegression

    def features(text: Sequence[str]) -> list[float]:
        lengths = [len(words(s)) for s in text]
        own = [adjacent_overlap(text), all_overlap(text), loneliest(text)]
        return [*own, sum(lengths) / 100, max(lengths) / 100, min(lengths) / 100]

    rows = np.array([np.subtract(features(p["pos"]), features(p["neg"])) for p in pairs])
    rows /= rows.std(axis=0) + 1e-9
    fold = np.random.default_rng(0).integers(FOLDS, size=len(pairs))
    right = 0
    for held in range(FOLDS):
        train, test = rows[fold != held], rows[fold == held]
        sign = np.where(np.arange(len(train)) % 2, 1, -1)
        model = LogisticRegression(fit_intercept=False).fit(train * sign[:, None], sign)
        right += int((model.decision_function(test) > 0).sum())
    return right / len(pairs)


def found_position(pairs: Sequence[Pair]) -> float:
    """How often the intruder is the sentence, not the first, that shares least with the others."""
    right = 0
    for pair in pairs:
        sets = list(map(content, pair["neg"]))
        shares = [
            len(own & set().union(*sets[:i], *sets[i + 1 :])) / max(1, len(own))
            for i, own in enumerate(sets)
        ]
        right += int(np.argmin(shares[1:])) + 1 == pair["position"]
    return right / len(pairs)


def chance(pairs: Sequence[Pair]) -> float:
    """What `found_position` would be by chance."""
    return float(np.mean([1 / (len(pair["neg"]) - 1) for pair in pairs]))


def released(path: Path) -> list[Pair]:
    pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for pair in pairs:
        both = zip(pair["pos"], pair["neg"], strict=True)
        pair["position"] = next((i for i, (a, b) in enumerate(both) if a != b), -1)
    return [pair for pair in pairs if pair["position"] > 0]


def as_document(name: str, sentences: Iterable[str]) -> Document:
    """Sentences with gold bounds as a document of one paragraph."""
    spans, at, texts = Spans(), 0, list(sentences)
    for text in texts:
        spans.add(at, at + len(text))
        at += len(text) + 1
    return Document(name, " ".join(texts), licence="CC-BY-SA-3.0", sentences=spans)


def positions(data: Path) -> Iterator[Document]:
    """The texts behind DiscoEval's sentence position: leads of Wikipedia articles."""
    path = data / "discoeval" / "SP" / "wiki" / "valid.txt"
    for number, example in enumerate(read_discoeval("SP", path)):
        sentences = list(example.sentences)
        sentences.insert(example.label, sentences.pop(0))
        yield as_document(f"lead{number}", sentences)


def ours(documents: Iterable[Document], **settings: Any) -> tuple[list[Pair], float]:
    """All pairs that the builder makes of `documents`, and the seconds that it took."""
    intrusion = BUILDERS.find("intrusion").of({"validation": 0, "test": 0, **settings})
    start = process_time()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "intrusion"
        with staged(target) as partial:
            intrusion.build(documents, Target(partial, Stage("intrusion", 1, "0"), 1))
        pairs = pq.read_table(target / "pairwise").to_pylist()
    return pairs, process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    data = parser.parse_args().data
    theirs = released(data / "coherence" / "instead_wikipedia.jsonl")
    texts = [as_document(pair["id"], pair["pos"]) for pair in theirs]
    same, seconds = ours(texts)
    sets = {"INSteD (shared)": theirs, "ours, the same texts": same}
    sets["ours, DiscoEval leads"], more = ours(positions(data))
    baselines: dict[str, Callable[[list[Pair]], float]] = {
        "overlap of neighbours": lambda p: untrained(p, adjacent_overlap),
        "overlap of all": lambda p: untrained(p, all_overlap),
        "loneliest sentence": lambda p: untrained(p, loneliest),
        "overlaps and lengths, trained": learned_overlap,
        "bag of words, text": lambda p: bag_of_words(p, lambda q, form: " ".join(q[form])),
        "intruder's position": found_position,
        "(by chance)": chance,
    }
    sys.stdout.write(f"| | {' | '.join(sets)} |\n|---|{'--:|' * len(sets)}\n")
    sys.stdout.write(f"| pairs | {' | '.join(f'{len(p):,}' for p in sets.values())} |\n")
    for name, baseline in baselines.items():
        found = " | ".join(f"{100 * baseline(pairs):.1f}" for pairs in sets.values())
        sys.stdout.write(f"| {name} | {found} |\n")
    sys.stdout.write(f"\n{seconds:.0f} s and {more:.0f} s of processor time\n")


if __name__ == "__main__":
    main()
