"""Features of the audit's rules: what can be counted without understanding a text.

Equal sentences and texts are counted once. Vocabularies and weights of words come from the
training texts.
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
Row = tuple[Text, ...]
"""A text, or the better and the worse one."""
Matrix = Any
"""A dense or a sparse matrix with a row for each example."""

COSINES_AT_ONCE = 50_000
WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]"
"""A word or a mark; where no blanks stand between words, a character."""
_OPENING = re.compile(r'(?:^|(?<=[\s(\[—-]))"(?=\S)')


def clean(text: str) -> str:
    """`text` with “ and ” for the quotation marks of treebanks (`` and '') and for straight ones.

    A straight one opens at the start of a text and after a space, a dash or a bracket.
    """
    text = text.replace("``", "“").replace("''", "”").strip()
    return _OPENING.sub("“", text).replace('"', "”")


def shape_of(text: str) -> list[float]:
    """19 numbers of a sentence: length, quotation marks, case, final mark, other marks, digits."""
    words, end = text.split(), text.rstrip("”’)] ")[-1:]
    letter = next(filter(str.isalpha, text), "")
    length = len(text), len(words)
    marks = [text.count(mark) for mark in ("“", "”", ",", ";", ":", "—", "--")]
    return [
        *length,
        *np.log1p(length),
        length[0] / length[1],
        text.startswith("“"),
        text.endswith("”"),
        marks[0] - marks[1],
        letter.isupper(),
        text[0].islower(),
        *(end == mark for mark in ".?!"),
        bool(end) and end in ",;:—",
        marks[2],
        marks[3] + marks[4],
        marks[5] + marks[6],
        sum(map(str.isdigit, text)),
        sum(map(str.isupper, text)),
    ]


def open_quotes(text: Sequence[str]) -> list[float]:
    """Unopened closing marks, openings inside a quotation, and whether one is open at the end."""
    wrong, inside = [0, 0], False
    for mark in re.findall("[“”]", "".join(text)):
        opens = mark == "“"
        if opens == inside:
            wrong[opens] += 1
        inside = opens
    return [*wrong, inside]


# What a kind of dataset makes of the sentences' numbers (`[sentences, numbers]`), of the cosines
# between its sentences (`[sentences, sentences]`), and of its quotation marks.


def _spread(shapes: Array) -> Array:
    return np.concatenate([shapes.mean(0), shapes.std(0), shapes.min(0), shapes.max(0)])


def _sides(shapes: Array) -> Array:
    differ = np.sign(shapes[0] - shapes[1]) if len(shapes) == 2 else shapes[:0].ravel()
    return np.concatenate([shapes.ravel(), differ])


def _ends_and_trend(shapes: Array) -> Array:
    trend = np.linspace(-1, 1, len(shapes)) @ shapes / len(shapes)
    steps = np.abs(np.diff(shapes, axis=0)).sum(0) / max(1, len(shapes) - 1)
    return np.concatenate([shapes[0], shapes[-1], trend, steps])


def _cohesion(cosines: Array) -> list[float]:
    """Mean over all pairs, mean and minimum over neighbours, minimum mean to the rest."""
    if len(cosines) < 2:
        return [0.0] * 4
    near, rest = np.diag(cosines, 1), cosines.sum(1) / (len(cosines) - 1)
    return [rest.mean(), near.mean(), near.min(), rest.min()]


def _placed(text: Sequence[Any]) -> list[list[Any]]:
    """The text with its first sentence at each position."""
    first, *rest = text
    return [[*rest[:at], first, *rest[at:]] for at in range(len(text))]


def _cohesion_placed(cosines: Array) -> list[float]:
    orders = _placed(range(len(cosines)))
    return [float(np.mean(cosines[order[:-1], order[1:]])) for order in orders]


SIDES = (
    *(("sentence1", "sentence2"), ("s1", "s2"), ("arg1", "arg2"), ("left", "right")),
    ("premise", "hypothesis"),
)
BETTER_AND_WORSE = ("pos", "neg")


def _whole(text: Text) -> Text:
    return (" ".join(text),)


class Kind(NamedTuple):
    """How the rules see a kind of dataset.

    `shape`, `cohesion` and `quotes` give features; `bags` the texts of one bag of words each;
    `alone` is the part of `cohesion` that is a separate rule. `ranked`: pairs of texts, the better
    one first, whose features are subtracted. `first`: rules on the first sentence alone are added.
    `columns`: the possible text columns; kinds that are not ranked also have a `label`.
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
        cohesion=_cohesion_placed,
        alone=slice(None),
        quotes=lambda text: [n for order in _placed(text) for n in open_quotes(order)],
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
    """The features of rows by rule: of the text of each, or of the better and the worse one.

    Words are learnt from the rows `train`; `test` are all others that follow.
    """

    def __init__(self, kind: Kind, train: Sequence[Row], test: Sequence[Row]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

        learn = list(chain.from_iterable(train))
        self.kind, every = kind, [*learn, *chain.from_iterable(test)]
        sentences = dict.fromkeys(chain.from_iterable(every))
        self.index = {sentence: number for number, sentence in enumerate(sentences)}
        self.shapes = np.array([shape_of(sentence) for sentence in sentences], float)
        self.words = _fitted(
            CountVectorizer(
                ngram_range=(1, 2),
                min_df=2,
                binary=True,
                max_features=100_000,
                token_pattern=WORD,
                dtype=np.float32,
            ),
            [bag for text in learn for bag in kind.bags(text)],
        )
        weights = TfidfVectorizer(
            ngram_range=(1, 2),
            min_df=2,
            sublinear_tf=True,
            token_pattern=rf"[{UNSPACED}]|[^\W{UNSPACED}]{{2,}}",
        )
        coheres = kind.cohesion and any(len(text) > 1 for text in every)
        fitted = _fitted(weights, map(" ".join, learn)) if coheres else None
        self.vectors = fitted.transform(sentences) if fitted else None

    def of(self, rows: Sequence[Row]) -> dict[str, Matrix]:
        """By rule a matrix with a row for each row; of two texts the differences."""
        one, *two = map(self._of_texts, zip(*rows, strict=True))
        return {rule: one[rule] - two[0][rule] for rule in one} if two else one

    def _of_texts(self, texts: Sequence[Text]) -> dict[str, Matrix]:
        """The features of texts; all numbers together are `numbers`."""
        from scipy.sparse import hstack

        kind, number = self.kind, {text: n for n, text in enumerate(dict.fromkeys(texts))}
        rows = [[self.index[sentence] for sentence in text] for text in number]
        out: dict[str, Matrix] = {"surface": np.array([kind.shape(self.shapes[r]) for r in rows])}
        together = [out["surface"]]
        if self.words:
            columns = zip(*map(kind.bags, number), strict=True)
            out["bag"] = hstack([self.words.transform(column) for column in columns]).tocsr()
        if kind.first:
            out["first"] = self.shapes[[row[0] for row in rows]]
            if self.words:
                out["bag_first"] = self.words.transform([text[0] for text in number])
        if kind.cohesion and self.vectors is not None:
            together.append(np.array([kind.cohesion(c) for c in self._cosines(self.vectors, rows)]))
            out["cohesion"] = together[-1][:, kind.alone]
        if kind.quotes:
            out["quotes"] = np.array([kind.quotes(text) for text in number], float)
            together.append(out["quotes"])
        out["numbers"] = np.hstack(together)
        return {rule: matrix[[number[text] for text in texts]] for rule, matrix in out.items()}

    @staticmethod
    def _cosines(vectors: Matrix, rows: Sequence[list[int]]) -> Iterable[Array]:
        """The cosines between the sentences of each text, 0 on the diagonal."""
        pairs = [np.triu_indices(len(row), 1) for row in rows]
        one, two = np.hstack([np.take(row, pair) for row, pair in zip(rows, pairs, strict=True)])
        found = np.empty(len(one))
        for start in range(0, len(one), COSINES_AT_ONCE):
            part = slice(start, start + COSINES_AT_ONCE)
            found[part] = np.ravel(vectors[one[part]].multiply(vectors[two[part]]).sum(1))
        ends = np.cumsum([len(first) for first, _ in pairs])
        for row, pair, own in zip(rows, pairs, np.split(found, ends[:-1]), strict=True):
            square = np.zeros((len(row), len(row)))
            square[pair] = own
            yield square + square.T


def _fitted(vectorizer: Any, texts: Iterable[str]) -> Any:
    """The vectorizer with the vocabulary of `texts`; None if no word is in two of them."""
    try:
        return vectorizer.fit(texts)
    except ValueError:  # the library's only way to say that the vocabulary is empty
        return None
