"""Extraction beside its alternatives, in one run: `python -m tests.bench.bench_extract`.

On gold trees, sentences a second, text of the pairs included: this matcher, spaCy's
DependencyMatcher with equivalent patterns and a marker prefilter, and a plain walk over token
objects, which it makes of the same arrays or, in a line of its own, finds ready. On raw text: the
pattern stage's share of the parse, raw text to pairs against `nlp.pipe` over every sentence, and
all connectives with their arguments against pairs, both in the trees of every sentence.
Time is processor time of one process, best of some repetitions, without the garbage collector.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from threadpoolctl import threadpool_limits

from corpora.document import Document
from corpora.readers import open_source
from corpora.sentences import split_document
from extract import Extractor
from extract.arguments import arguments
from extract.connectives import connectives
from extract.extractor import extract
from extract.parsers import get_parser
from extract.patterns import load_patterns, resolve_markers
from extract.patterns.table import Pattern
from extract.text import written

MARKERS = resolve_markers("all15")
ROWS = [p for p in load_patterns("en", "ud").patterns if p.marker in MARKERS]
WORD = re.compile(rf"\b(?:{'|'.join(MARKERS)})\b", re.IGNORECASE)


class Token:
    """A token of the plain walk."""

    __slots__ = ("children", "deprel", "end", "finite", "form", "head", "index", "start", "upos")

    def __init__(
        self, index: int, form: str, upos: str, feats: str, deprel: str, start: int, end: int
    ) -> None:
        self.index, self.form, self.upos, self.deprel = index, form.lower(), upos, deprel
        self.finite = "VerbForm=Fin" in feats.split("|")
        self.start, self.end = start, end
        self.head: Token | None = None
        self.children: list[Token] = []


def token_sentences(document: Document) -> list[list[Token]]:
    """The gold trees as objects."""
    t = document.tokens
    assert t is not None
    tokens = [
        Token(i, *row)
        for i, row in enumerate(zip(t.form, t.upos, t.feats, t.deprel, t.start, t.end, strict=True))
    ]
    for token, head in zip(tokens, t.head, strict=True):
        if head >= 0:
            token.head = tokens[head]
            tokens[head].children.append(token)
    return [tokens[a:b] for a, b in zip(t.offsets, t.offsets[1:], strict=False)]


def walk(document: Document, sentences: list[list[Token]], rows: dict[str, list[Pattern]]) -> int:
    """The original's own way: per marker every token of every sentence is looked at."""
    found = 0
    for marker, patterns in rows.items():
        for number, sentence in enumerate(sentences):
            for token in sentence:
                if token.form == marker:
                    found += _walk_rows(document, sentences, number, token, patterns)
    return found


def _walk_rows(
    document: Document,
    sentences: list[list[Token]],
    number: int,
    token: Token,
    patterns: list[Pattern],
) -> int:
    for row in patterns:
        heads = _walk_heads(token, row)
        if heads is not None:
            _walk_text(document, sentences, number, token, *heads)
            for head in heads:
                _ = head is not None and _has(head, "finite") and _has(head, "subject")
            return 1
    return 0


def _walk_heads(token: Token, row: Pattern) -> tuple[Token | None, Token] | None:
    s2 = token.head
    if s2 is None or not _is(token.deprel, row.deprels):
        return None
    if row.s2_deprels and not _is(s2.deprel, row.s2_deprels):
        return None
    if not all(_has(s2, name) for name in row.s2_needs):
        return None
    if row.s1 == "previous":
        return None, s2
    s1 = s2.head
    if s1 is None:
        return None
    if row.s1 == "conjunct":
        before = [c for c in s1.children if c.deprel == "conj" and c.index < s2.index]
        s1 = before[-1] if before else s1
    while row.s1 in ("clause", "sentence") and s1.head is not None and not _has(s1, "clause"):
        s1 = s1.head
    if not all(_has(s1, name) for name in row.s1_needs):
        return None
    return s1, s2


def _has(token: Token, name: str) -> bool:
    """A property, looked for among the children, as the table defines it."""
    labels = [child.deprel for child in token.children]
    if name == "subject":
        return any(_is(label, ("nsubj", "csubj", "expl")) for label in labels)
    if name == "copula":
        return "cop" in labels
    if name == "finite":
        forms = [token, *(c for c in token.children if _is(c.deprel, ("aux", "cop")))]
        return any(form.finite for form in forms)
    return token.upos in ("VERB", "AUX") or _has(token, "copula") or _has(token, "subject")


def _is(label: str, allowed: tuple[str, ...]) -> bool:
    return any(label == a or label.startswith(f"{a}:") for a in allowed)


def _subtree(token: Token, without: Token | None) -> Iterator[Token]:
    stack = [token]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(child for child in top.children if child is not without)


def _walk_text(
    document: Document,
    sentences: list[list[Token]],
    number: int,
    marker: Token,
    s1: Token | None,
    s2: Token,
) -> tuple[str, str]:
    second = sorted(_subtree(s2, marker), key=lambda t: t.index)
    first = sorted(_subtree(s1, s2), key=lambda t: t.index) if s1 else sentences[number - 1]
    return tuple(  # type: ignore[return-value]
        written(document.text, [(t.start, t.end) for t in part]) for part in (first, second)
    )


def dependency_matcher(documents: list[Document]) -> Callable[[], int]:
    """spaCy's matcher with a pattern per row, over the sentences that hold a marker."""
    import spacy
    from spacy.matcher import DependencyMatcher
    from spacy.tokens import Doc

    nlp = spacy.blank("en")
    matcher = DependencyMatcher(nlp.vocab)
    labels = sorted({label for d in documents if d.tokens for label in d.tokens.deprel})
    for row in ROWS:
        matcher.add(row.id, [_spacy_pattern(row, labels)])
    docs = []
    for document in documents:
        t = document.tokens
        assert t is not None
        for a, b in zip(t.offsets, t.offsets[1:], strict=False):
            if WORD.search(" ".join(t.form[a:b])):
                heads = [h - a if h >= 0 else i for i, h in enumerate(t.head[a:b])]
                docs.append(Doc(nlp.vocab, words=t.form[a:b], heads=heads, deps=t.deprel[a:b]))

    def run() -> int:
        found = 0
        for doc in docs:
            for _, tokens in matcher(doc):
                s2 = doc[tokens[0]]
                for head in (s2, s2.head):
                    " ".join(t.text for t in head.subtree)
                found += 1
        return found

    return run


def _spacy_pattern(row: Pattern, labels: list[str]) -> list[dict[str, Any]]:
    def allowed(names: tuple[str, ...]) -> dict[str, Any]:
        return {"DEP": {"IN": [label for label in labels if _is(label, names)]}}

    s2 = allowed(row.s2_deprels) if row.s2_deprels else {}
    marker = {"LOWER": row.marker, **allowed(row.deprels)}
    pattern: list[dict[str, Any]] = [
        {"RIGHT_ID": "s2", "RIGHT_ATTRS": s2},
        {"LEFT_ID": "s2", "REL_OP": ">", "RIGHT_ID": "marker", "RIGHT_ATTRS": marker},
    ]
    if row.s1 != "previous":
        pattern.append({"LEFT_ID": "s2", "REL_OP": "<", "RIGHT_ID": "s1", "RIGHT_ATTRS": {}})
    return pattern


def seconds(work: Callable[[], Any], repeat: int) -> float:
    """Processor seconds of the best of some runs.

    Without the garbage collector, whose share hangs on what else lives in the process.
    """
    best = float("inf")
    gc.collect()
    gc.disable()
    for _ in range(repeat):
        start = process_time()
        work()
        best = min(best, process_time() - start)
    gc.enable()
    return best


def on_gold_trees(documents: list[Document]) -> Iterator[str]:
    """Sentences a second of the three ways."""
    n = sum(len(d.sentences or ()) for d in documents)
    extractor = Extractor("gold", mode="recall")
    parses = list(extractor.parser.parse(documents))

    def ours() -> int:
        return sum(map(len, extract(documents, parses, extractor.settings)))

    rows: dict[str, list[Pattern]] = defaultdict(list)
    for row in ROWS:
        rows[row.marker].append(row)

    def plain() -> int:
        return sum(walk(document, token_sentences(document), rows) for document in documents)

    objects = [token_sentences(document) for document in documents]

    def ready() -> int:
        return sum(
            walk(d, sentences, rows) for d, sentences in zip(documents, objects, strict=True)
        )

    yield f"{n} sentences, {ours()} pairs"
    rates = {
        "this matcher": n / seconds(ours, 7),
        "plain walk": n / seconds(plain, 3),
        "walk, objects ready": n / seconds(ready, 3),
        "DependencyMatcher": n / seconds(dependency_matcher(documents), 1),
    }
    for name, rate in rates.items():
        ratio = rates["this matcher"] / rate
        yield f"{name:20} {rate:12,.0f} sentences/s   {ratio:7.1f} times slower"


def best_pipe(nlp: Any, sentences: list[str]) -> tuple[float, int, int]:
    """The fewest seconds of `nlp.pipe` over all sentences; sentences a text, texts a batch."""
    found = []
    for length in (1, 4, 10, 20):
        texts = [" ".join(sentences[i : i + length]) for i in range(0, len(sentences), length)]
        for size in (8, 32, 128):
            run = partial(sum_of, nlp, texts, size)
            found.append((seconds(run, 2), length, size))
    return min(found)


def sum_of(nlp: Any, texts: list[str], size: int) -> int:
    """The tokens that `nlp.pipe` makes of the texts."""
    return sum(len(doc) for doc in nlp.pipe(texts, batch_size=size))


def on_raw_text(documents: list[Document]) -> Iterator[str]:
    """What the prefilter and the pattern stage cost and bring, beside bare `nlp.pipe`."""
    documents = [split_document(document) for document in documents]
    # Processor time: idle threads that wait for a small matrix product would count as work.
    threadpool_limits(1, user_api="blas")
    extractor = Extractor("embedded", mode="recall", gold_sentences=True, check="none")
    checked = Extractor("embedded", mode="recall", gold_sentences=True)
    nlp: Any = extractor.parser.nlp  # type: ignore[attr-defined]
    sentences = [t for d in documents for t in d.sentence_texts()]
    sizes = [len(doc) for doc in nlp.tokenizer.pipe(sentences)]
    bare, length, size = best_pipe(nlp, sentences)
    parses = list(extractor.parser.parse(documents))
    parse = seconds(lambda: list(extractor.parser.parse(documents)), 3)
    match = seconds(lambda: list(extract(documents, parses, extractor.settings)), 3)
    whole = seconds(lambda: sum(1 for _ in extractor.pairs(documents)), 6)
    twice = seconds(lambda: sum(1 for _ in checked.pairs(documents)), 3)
    ceiling = sum(sizes) / sum(len(p.head) for p in parses)
    yield f"{sum(sizes):,} tokens; to be parsed: one in {ceiling:.2f}"
    best = f"texts of {length} sentences, batches of {size}"
    yield f"nlp.pipe at its best ({best}) {sum(sizes) / bare:10,.0f} tokens/s"
    yield f"pattern stage: {match / parse:.2%} of the parse"
    yield f"raw text to pairs: {bare / whole:.2f} times nlp.pipe, {bare / whole / ceiling:.0%} of"
    yield "  what the prefilter allows"
    yield f"with the second parser: {twice / whole:.2f} times the time"


def relations_beside_pairs(documents: list[Document], check: bool) -> Iterator[str]:
    """What connectives and arguments cost beside matching, in the same trees."""
    documents = [split_document(document) for document in documents]
    threadpool_limits(1, user_api="blas")
    parser = get_parser("embedded", check=check)
    parses = list(parser.parse(documents))
    settings = Extractor("embedded", check="second" if check else "none").settings
    marks = list(connectives(documents, parses))
    stages = {
        "parse": lambda: list(parser.parse(documents)),
        "match": lambda: list(extract(documents, parses, settings)),
        "connectives": lambda: list(connectives(documents, parses)),
        "arguments": lambda: list(arguments(documents, parses, marks)),
    }
    times = {name: seconds(work, 3) for name, work in stages.items()}
    ours = times["parse"] + times["connectives"] + times["arguments"]
    tokens = sum(len(parse.head) for parse in parses)
    yield f"{tokens:,} tokens, {sum(map(len, marks)):,} connectives; seconds"
    yield ", ".join(f"{name} {time:.2f}" for name, time in times.items())
    yield f"parse, connectives, arguments: {ours / (times['parse'] + times['match']):.3f} times"
    yield "  parse and match"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--words", type=int, default=40_000, help="words of the novel to parse")
    options = parser.parse_args()
    if not options.data.is_dir():
        sys.stdout.write(f"no data at {options.data}; name its folder with --data\n")
        return
    for name in ("en_ewt", "en_gum/train"):
        documents = list(open_source(f"conllu:{options.data / 'treebank' / name}"))
        sys.stdout.write(f"gold trees of {name}\n")
        for line in on_gold_trees(documents):
            sys.stdout.write(f"  {line}\n")
    novel = next(iter(sorted((options.data / "books").glob("jane*.jsonl"))))
    sys.stdout.write(f"raw text of {novel.stem}\n")
    documents = list(_first(open_source(f"jsonl:{novel}"), options.words))
    for line in on_raw_text(documents):
        sys.stdout.write(f"  {line}\n")
    for check, name in enumerate(("one parser", "both parsers")):
        sys.stdout.write(f"all relations of it, {name}\n")
        for line in relations_beside_pairs(documents, bool(check)):
            sys.stdout.write(f"  {line}\n")


def _first(documents: Iterator[Document], words: int) -> Iterator[Document]:
    for document in documents:
        yield document
        words -= document.text.count(" ")
        if words <= 0:
            return


if __name__ == "__main__":
    main()
