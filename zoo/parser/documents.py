"""Training documents: treebank sentences grouped, varied and made into spaCy examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from zoo.parser.treebank import Sentence

CURLY = {"'": "’", '"': "“", "``": "“", "''": "”", "--": "—", "...": "…"}


@dataclass(frozen=True, slots=True)
class Grouping:
    """The maximum size of a training document, and the share `augment` of them that is varied."""

    sentences: int = 3
    words: int = 80
    augment: float = 0.1
    reverse: bool = False
    """Whether sentences are read from their last word to their first."""


def group(
    sentences: Sequence[Sentence], grouping: Grouping, rng: np.random.Generator
) -> Iterator[list[Sentence]]:
    """Yield groups of neighbouring sentences of a document; a group's size is drawn uniformly.

    Short groups train fast (the parser steps through a batch in lockstep); groups of more than one
    sentence teach it where sentences start.
    """
    current: list[Sentence] = []
    size = 1
    for sentence in sentences:
        if current and (
            len(current) >= size
            or sentence.document != current[0].document
            or sum(map(len, current)) + len(sentence) > grouping.words
        ):
            yield current
            current = []
        if not current:
            size = int(rng.integers(1, grouping.sentences + 1))
        current.append(sentence)
    if current:
        yield current


def to_doc(
    vocab: Vocab, sentences: Sequence[Sentence], *, trees: bool = True, starts: bool = True
) -> Doc:
    """Return a `Doc` of the sentences' gold tokens, with gold `trees` (and tags) and `starts`."""
    annotation: dict[str, Any] = {}
    if starts:
        annotation["sent_starts"] = [i == 0 for s in sentences for i in range(len(s))]
    if trees:
        # spaCy counts heads from the document's start; a root is its own head.
        heads: list[int] = []
        for sentence in sentences:
            start = len(heads)
            heads.extend(start + (i if head < 0 else head) for i, head in enumerate(sentence.heads))
        annotation |= {
            "heads": heads,
            "tags": [tag for sentence in sentences for tag in sentence.xpos],
            "pos": [tag for sentence in sentences for tag in sentence.upos],
            "deps": [label for sentence in sentences for label in sentence.deprels],
        }
    return Doc(
        vocab,
        words=[form for sentence in sentences for form in sentence.forms],
        spaces=[space for sentence in sentences for space in sentence.spaces],
        **annotation,
    )


def examples(
    vocab: Vocab, sentences: Sequence[Sentence], grouping: Grouping, rng: np.random.Generator
) -> Iterator[Example]:
    """Yield the examples of an epoch in the treebank's order, grouped and varied by `rng`."""
    for members in group(sentences, grouping, rng):
        if rng.random() < grouping.augment:
            change = (lower_case, typographic, without_final_punctuation)[int(rng.integers(3))]
            members = [change(sentence) for sentence in members]
        if grouping.reverse:
            members = [reversed_order(sentence) for sentence in members[::-1]]
        yield Example(to_doc(vocab, members, trees=False, starts=False), to_doc(vocab, members))


def batches(items: Sequence[Example], words: int, rng: np.random.Generator) -> list[list[Example]]:
    """Return batches of about `words` words, of documents of similar length, in random order.

    The parser steps through a batch in lockstep, so that equal lengths waste no time.
    """
    jitter = rng.random(len(items))
    order = sorted(range(len(items)), key=lambda i: (len(items[i].reference), jitter[i]))
    by_length: list[list[Example]] = [[]]
    for i in order:
        if sum(len(item.reference) for item in by_length[-1]) >= words:
            by_length.append([])
        by_length[-1].append(items[i])
    return [by_length[i] for i in rng.permutation(len(by_length))]


def lower_case(sentence: Sentence) -> Sentence:
    """Return the sentence with all words in lower case."""
    return replace(sentence, forms=tuple(form.lower() for form in sentence.forms))


def typographic(sentence: Sentence) -> Sentence:
    """Return the sentence with curly quotes and apostrophes, dashes and ellipsis characters."""
    forms = []
    in_quotes = False
    for form in sentence.forms:
        if form == '"':
            forms.append("”" if in_quotes else "“")
            in_quotes = not in_quotes
        else:
            forms.append(CURLY.get(form, form.replace("'", "’")))
    return replace(sentence, forms=tuple(forms))


def reversed_order(sentence: Sentence) -> Sentence:
    """Return the sentence with its words from last to first."""
    last = len(sentence) - 1
    columns = ("forms", "upos", "xpos", "deprels", "spaces")
    reversed_columns: dict[str, Any] = {name: getattr(sentence, name)[::-1] for name in columns}
    heads = tuple(head if head < 0 else last - head for head in sentence.heads[::-1])
    return replace(sentence, heads=heads, **reversed_columns)


def without_final_punctuation(sentence: Sentence) -> Sentence:
    """Return the sentence without its last token if that is punctuation without dependents."""
    last = len(sentence) - 1
    if last < 1 or sentence.deprels[last] != "punct" or last in sentence.heads:
        return sentence
    columns = ("forms", "upos", "xpos", "heads", "deprels")
    shorter: dict[str, Any] = {name: getattr(sentence, name)[:last] for name in columns}
    spaces = (*sentence.spaces[: last - 1], sentence.spaces[last])
    return replace(sentence, spaces=spaces, **shorter)
