"""Features of the audit's rules: numbers that need no understanding of a text.

Those of equal sentences and texts are computed once. Vocabularies and weights of words come from
the training texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.languages import UNSPACED

Array = NDArray[np.float64]
Text = tuple[str, ...]
"""The sentences of a text, or the sides of a relation."""
Variants = tuple[Text, ...]
"""The only text of a row, or the better and the worse one."""
Matrix = Any
"""A dense or a sparse matrix with a row for each example."""

COSINES_AT_ONCE = 50_000
WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]"
"""A word or a mark; in Chinese and Japanese, a character."""
_OPENING = re.compile(r'(?:^|(?<=[\s(\[—-]))"(?=\S)')


def clean(text: str) -> str:
    """Return `text` with “ and ” for straight quotation marks and those of treebanks (`` and '').

    A straight mark opens at the start of a text and after a space, a dash or a bracket.
    """
    text = text.replace("``", "“").replace("''", "”").strip()
    return _OPENING.sub("“", text).replace('"', "”")


def shape_of(text: str) -> list[float]:
    """Return 19 numbers that describe a sentence without its words.

    They are lengths, quotation marks, letter case, the final mark, other marks, digits, capitals.
    """
    words, end = text.split(), text.rstrip("”’)] ")[-1:]
    first_letter = next(filter(str.isalpha, text), "")
    characters_and_words = len(text), len(words)
    return [
        *characters_and_words,
        *np.log1p(characters_and_words),
        len(text) / len(words),
        text.startswith("“"),
        text.endswith("”"),
        text.count("“") - text.count("”"),
        first_letter.isupper(),
        text[0].islower(),
        *(end == mark for mark in ".?!"),
        bool(end) and end in ",;:—",
        text.count(","),
        text.count(";") + text.count(":"),
        text.count("—") + text.count("--"),
        sum(map(str.isdigit, text)),
        sum(map(str.isupper, text)),
    ]


def open_quotes(text: Sequence[str]) -> list[float]:
    """Return the numbers of errors in the quotation marks “ and ” of the sentences of a text.

    The errors are closing marks without an opening one, openings inside a quotation, and 1 if a
    quotation is open at the end, else 0.
    """
    errors, is_open = [0, 0], False
    for mark in re.findall("[“”]", "".join(text)):
        opens = mark == "“"
        if opens == is_open:
            errors[opens] += 1
        is_open = opens
    return [*errors, is_open]


# The features of a text for some kinds of datasets, from the numbers of its sentences (`shapes`
# [sentences, numbers]), and from the cosines between them (`cosines` [sentences, sentences]).


def _spread(shapes: Array) -> Array:
    """Return mean, standard deviation, minimum and maximum of each number over the sentences."""
    return np.concatenate([shapes.mean(0), shapes.std(0), shapes.min(0), shapes.max(0)])


def _sides(shapes: Array) -> Array:
    """Return the numbers of all sentences, and for two sentences the signs of the differences."""
    signs = np.sign(shapes[0] - shapes[1]) if len(shapes) == 2 else shapes[:0].ravel()
    return np.concatenate([shapes.ravel(), signs])


def _ends_and_trend(shapes: Array) -> Array:
    """Return the numbers of first and last sentence, and the trend and mean step of each number."""
    trend = np.linspace(-1, 1, len(shapes)) @ shapes / len(shapes)
    steps = np.abs(np.diff(shapes, axis=0)).sum(0) / max(1, len(shapes) - 1)
    return np.concatenate([shapes[0], shapes[-1], trend, steps])


def _cohesion(cosines: Array) -> list[float]:
    """Return four numbers of a text from the cosines [sentences, sentences] of its sentences. They
    are the mean over all pairs, mean and minimum over neighbours, and the smallest mean cosine of
    one sentence to all other ones. The diagonal of `cosines` is 0."""
    if len(cosines) < 2:
        return [0.0] * 4
    neighbours, to_others = np.diag(cosines, 1), cosines.sum(1) / (len(cosines) - 1)
    return [to_others.mean(), neighbours.mean(), neighbours.min(), to_others.min()]


def _with_first_moved(text: Sequence[Any]) -> list[list[Any]]:
    """Return the orders of a text in which its first sentence is at position 0, 1, 2 and so on."""
    first, *rest = text
    return [[*rest[:i], first, *rest[i:]] for i in range(len(text))]


def _cohesion_with_first_moved(cosines: Array) -> list[float]:
    """Return the mean cosine of neighbours for each position of the first sentence."""
    orders = _with_first_moved(range(len(cosines)))
    return [float(np.mean(cosines[order[:-1], order[1:]])) for order in orders]


SIDES = (
    *(("sentence1", "sentence2"), ("s1", "s2"), ("arg1", "arg2"), ("left", "right")),
    ("premise", "hypothesis"),
)
BETTER_AND_WORSE = ("pos", "neg")


def _whole(text: Text) -> Text:
    """Return the sentences of a text joined to one."""
    return (" ".join(text),)


class Kind(NamedTuple):
    """The features that the rules use for a kind of dataset.

    - `shape` makes features from the numbers of the sentences, `cohesion` from their cosines,
      `quotes` from their quotation marks.
    - `bags` returns texts of which each gives a bag of words.
    - `alone` is the part of `cohesion` that is a separate rule.
    - `ranked`: rows are two texts, the better one first, whose features are subtracted; otherwise
      they have a `label`.
    - `first`: rules on the first sentence alone are added.
    - `columns`: the possible text columns.
    """

    shape: Callable[[Array], Array]
    bags: Callable[[Text], Sequence[str]] = tuple
    cohesion: Callable[[Array], list[float]] | None = _cohesion
    alone: slice = slice(0, 1)
    quotes: Callable[[Text], list[float]] | None = open_quotes
    ranked: bool = False
    first: bool = False
    columns: tuple[tuple[str, ...], ...] = (("sentences",),)


KINDS: Mapping[str, Kind] = {
    "bso": Kind(
        _sides,
        cohesion=None,  # equal for both orders
        quotes=lambda text: list(np.subtract(open_quotes(text), open_quotes(text[::-1]))),
        columns=SIDES,
    ),
    "sp": Kind(
        np.ravel,
        cohesion=_cohesion_with_first_moved,
        alone=slice(None),
        quotes=lambda text: [n for order in _with_first_moved(text) for n in open_quotes(order)],
        first=True,
    ),
    "dc": Kind(lambda shapes: np.concatenate([shapes.ravel(), _spread(shapes)]), _whole),
    "permuted": Kind(
        _ends_and_trend,
        bags=lambda text: [text[0], text[-1]],
        alone=slice(1, 2),
        ranked=True,
        columns=(BETTER_AND_WORSE, ("document", "orders")),
    ),
    "intrusion": Kind(_spread, _whole, ranked=True, columns=(BETTER_AND_WORSE,)),
    "pairs": Kind(_spread, _whole, ranked=True, columns=(BETTER_AND_WORSE,)),
    "labelled": Kind(_sides, quotes=None, columns=(*SIDES, ("sentence",), ("text",))),
}
"""The kinds named in `corpora.schemas`. `pairs` are ranked texts that differ in any way,
`labelled` one or two texts with a label (DisSent, PDTB, RST, NLI)."""


class Features:
    """Computes the features of rows for each rule.

    Vocabularies are learnt from the rows `train`; `test` are all other rows that `of` is asked for.
    """

    def __init__(self, kind: Kind, train: Sequence[Variants], test: Sequence[Variants]) -> None:
        """Learn the vocabularies from `train`; number the distinct sentences of all rows."""
        from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

        train_texts = list(chain.from_iterable(train))
        self.kind, all_texts = kind, [*train_texts, *chain.from_iterable(test)]
        sentences = dict.fromkeys(chain.from_iterable(all_texts))
        self.index = {sentence: number for number, sentence in enumerate(sentences)}
        self.shapes = np.array([shape_of(sentence) for sentence in sentences], float)
        words = CountVectorizer(
            ngram_range=(1, 2),
            min_df=2,
            binary=True,
            max_features=100_000,
            token_pattern=WORD,
            dtype=np.float32,
        )
        bags = [bag for text in train_texts for bag in kind.bags(text)]
        self.bags = _fit_vocabulary(words, bags)
        """The counts of words in the training texts; `words` counts those of others."""
        self.words: Any = None if self.bags is None else words
        self.bag_index = {bag: number for number, bag in enumerate(bags)}
        weights = TfidfVectorizer(
            ngram_range=(1, 2),
            min_df=2,
            sublinear_tf=True,
            token_pattern=rf"[{UNSPACED}]|[^\W{UNSPACED}]{{2,}}",
        )
        has_pairs = kind.cohesion and any(len(text) > 1 for text in all_texts)
        counted = _fit_vocabulary(weights, map(" ".join, train_texts)) if has_pairs else None
        self.vectors = None if counted is None else weights.transform(sentences)

    def of(self, rows: Sequence[Variants]) -> dict[str, Matrix]:
        """Return for each rule a matrix of features [rows, features].

        For rows of two texts, the features of the second are subtracted from those of the first.
        """
        first, *second = map(self._of_texts, zip(*rows, strict=True))
        return {rule: first[rule] - second[0][rule] for rule in first} if second else first

    def _of_texts(self, texts: Sequence[Text]) -> dict[str, Matrix]:
        """Return for each rule the features of texts; the rule `numbers` has all dense features."""
        from scipy.sparse import hstack

        # Features of each distinct text, from the numbers of its sentences
        kind, number = self.kind, {text: n for n, text in enumerate(dict.fromkeys(texts))}
        rows = [[self.index[sentence] for sentence in text] for text in number]
        features = {"surface": np.array([kind.shape(self.shapes[row]) for row in rows])}
        numbers = [features["surface"]]
        if self.words:
            columns = zip(*map(kind.bags, number), strict=True)
            features["bag"] = hstack([self._bags(column) for column in columns]).tocsr()
        if kind.first:
            features["first"] = self.shapes[[row[0] for row in rows]]
            if self.words:
                features["bag_first"] = self._bags([text[0] for text in number])
        if kind.cohesion and self.vectors is not None:
            cosines = self._cosines(self.vectors, rows)
            numbers.append(np.array([kind.cohesion(of_text) for of_text in cosines]))
            features["cohesion"] = numbers[-1][:, kind.alone]
        if kind.quotes:
            features["quotes"] = np.array([kind.quotes(text) for text in number], float)
            numbers.append(features["quotes"])
        features["numbers"] = np.hstack(numbers)
        # One row for each text, equal ones too
        order = [number[text] for text in texts]
        return {rule: matrix[order] for rule, matrix in features.items()}

    def _bags(self, texts: Sequence[str]) -> Matrix:
        """The words of texts, [texts, words]; those of training texts are counted already."""
        from scipy.sparse import vstack

        new = [text for text in dict.fromkeys(texts) if text not in self.bag_index]
        if not new:
            return self.bags[[self.bag_index[text] for text in texts]]
        known = self.bags.shape[0]
        index = self.bag_index | {text: known + n for n, text in enumerate(new)}
        return vstack([self.bags, self.words.transform(new)], "csr")[[index[t] for t in texts]]

    @staticmethod
    def _cosines(vectors: Matrix, rows: Sequence[list[int]]) -> Iterable[Array]:
        """Yield the cosines [sentences, sentences] of each text, 0 on the diagonal. `rows` has for
        each text the rows of its sentences in `vectors`."""
        pairs = [np.triu_indices(len(row), 1) for row in rows]
        # The rows of both sentences of each pair, for all texts one behind the other.
        left, right = np.hstack([np.take(row, pair) for row, pair in zip(rows, pairs, strict=True)])
        cosines = np.empty(len(left))
        for start in range(0, len(left), COSINES_AT_ONCE):
            part = slice(start, start + COSINES_AT_ONCE)
            cosines[part] = np.ravel(vectors[left[part]].multiply(vectors[right[part]]).sum(1))
        ends = np.cumsum([len(first) for first, _ in pairs])
        for row, pair, of_text in zip(rows, pairs, np.split(cosines, ends[:-1]), strict=True):
            square = np.zeros((len(row), len(row)))
            square[pair] = of_text
            yield square + square.T


def _fit_vocabulary(vectorizer: Any, texts: Iterable[str]) -> Any:
    """Fit the vectorizer to `texts` and return its matrix; None if no word is in two of them."""
    try:
        return vectorizer.fit_transform(texts)
    except ValueError:  # the library's only way to say that the vocabulary is empty
        return None
