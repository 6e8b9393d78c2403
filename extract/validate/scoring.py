"""Score extracted pairs against gold relations.

Three views, always together: strict scores of marker and arguments, the paper's alignment
(DisSent, appendix A.2), and the same alignment with gold of other documents as its control.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from corpora.document import Document
from corpora.errors import ConfigError, InputError, amount, check_choice, nearest
from corpora.intervals import FEW
from corpora.rng import stream
from extract.pairs import Pair
from extract.validate import strict
from extract.validate.distances import (
    AT_MOST,
    BELOW,
    NEAREST,
    Aligned,
    Sequences,
    Vocabulary,
    joined,
    measure,
    nearest_reading,
    summary,
)
from extract.validate.material import DESCRIPTION, Item, Material, connective, gather

FILTERS = ("dissent",)
STAGE = "validate.bootstrap"
SEED, RESAMPLES = 0, 1000
MANY = 5
"""If half of all pairs are wrong, this many in a row are wrong by chance in 3 % of cases."""


class Alignments(TypedDict):
    """Alignment by criterion: with all gold (`paper`), and with gold of other documents only."""

    paper: dict[str, Aligned]
    control: dict[str, Aligned]


class Blocks(Alignments):
    """All scores of some documents."""

    strict: strict.ByMarker[strict.Figures]
    nearest: Aligned
    """Alignment by the reading that comes nearest to figure 2 of the paper."""


class Validation(Blocks):
    """The JSON of `discorpora validate`: scores over all documents and over the unseen ones."""

    documents: dict[str, int]
    unseen: Blocks
    settings: dict[str, Any]


def validate(
    pairs: Iterable[Pair],
    gold: Iterable[Document],
    sources: Iterable[Document],
    markers: Sequence[str],
    *,
    seen: Collection[str] = (),
    settings: Mapping[str, Any] | None = None,
    multiword: str = "other",
    filters: str = "",
) -> Validation:
    """Score pairs against gold relations; the result is the JSON of `discorpora validate`.

    `gold` documents (`corpora.readers.pdtb.read_gold`) and `sources` (what was extracted from)
    meet by id; only documents in both count. `seen` are the ids of documents that the parser was
    trained on; `unseen` of the result has all scores without these documents. `settings` are facts
    about the pairs (parser, `trees`) that are copied into the result. `multiword` is a
    policy of `strict.count`; `settings.multiword` has the scores under the other policies. With the
    `filters` "dissent" pairs of unfit lengths are left out, as from the dataset (appendix A.1), and
    strict scores are of relations of fit lengths; the paper's criteria use all gold pairs (A.2).

    An undefined figure (denominator 0) is None. `ci` is the 95 % bootstrap interval of F1
    over documents, None if fewer than `corpora.intervals.FEW` have a pair or a relation of the
    row. Raises `InputError` as `material.gather` does, and for `MANY` pairs or more without one
    gold relation of their markers.
    """
    if multiword not in strict.POLICIES:
        hint = f"{nearest(multiword, strict.POLICIES)}choices: {', '.join(strict.POLICIES)}"
        raise ConfigError(f"no policy {multiword!r}", where="multiword", hint=hint)
    if filters:
        check_choice("filter", filters, FILTERS)
    material = gather(pairs, gold, sources, markers, filters)
    unseen = [text.index for text in material.texts if text.id not in seen]
    scoring = Scoring(material, markers, multiword)
    extracted, relations = scoring.counts[multiword].sum(axis=(0, 1))[:2].tolist()
    if extracted >= MANY and not relations:
        frequent = Counter(g.marker or "(no connective)" for g in material.gold).most_common(5)
        examples = ", ".join(f"{name} ({number})" for name, number in frequent)
        raise InputError(
            f"{amount(extracted, 'pair')}, and no explicit gold relation of their markers",
            where="validate",
            hint=f"explicit connectives of these documents' gold: {examples}"
            if examples
            else "the gold of these documents has no explicit relation: check that it is complete",
        )
    everything = scoring.blocks(list(range(len(material.texts))))
    filtered = {"filters": filters} if filters else {}
    all_unseen = len(unseen) == len(material.texts)
    return {
        **everything,
        "documents": {"seen": len(material.texts) - len(unseen), "unseen": len(unseen)},
        "unseen": everything if all_unseen else scoring.blocks(unseen),
        "settings": dict(settings or {}) | filtered | scoring.settings(unseen),
    }


def tree_source(parser: str, *, gold_tokens: bool = False, gold_sentences: bool = False) -> str:
    """Return a description of the trees that pairs came from, such as "embedded on raw text"."""
    if parser == "gold":
        return "gold trees"
    layers = ["tokens"] * gold_tokens + ["sentences"] * gold_sentences
    return f"{parser} on " + (f"gold {' and '.join(layers)}" if layers else "raw text")


class Scoring:
    """Computes the scores of one validation over any documents, by index in `material.texts`.

    `markers` are the markers whose pairs count; `policy` says how gold relations of other
    connectives count (one of `strict.POLICIES`).
    """

    def __init__(self, material: Material, markers: Sequence[str], policy: str = "other") -> None:
        self.material, self.names, self.policy = material, tuple(markers), policy
        self.markers = tuple(map(connective, markers))
        self.counts = {p: strict.count(material, self.markers, p) for p in strict.POLICIES}
        self.vocabulary = vocabulary = Vocabulary(material.texts)
        encoded = [vocabulary.encode(text.words) for text in material.texts]
        codes = {marker: i for i, marker in enumerate(self.markers)}

        def sequences(items: Sequence[Item]) -> Sequences:
            """Return items with a character for each word; the marker of other items is -1."""
            return Sequences(
                [joined(encoded[item.doc], item.arg1) for item in items],
                [joined(encoded[item.doc], item.arg2) for item in items],
                np.array([item.doc for item in items], dtype=np.int64),
                np.array([codes.get(item.marker, -1) for item in items], dtype=np.int64),
            )

        # A gold pair without words on one side would be at distance 0 from any such pair.
        words = [sequences(material.pairs)]
        words.append(sequences([g for g in material.gold if g.arg1 and g.arg2]))
        decode = vocabulary.decode
        self.units = {
            "words": words,
            "characters": [
                replace(s, first=[*map(decode, s.first)], second=[*map(decode, s.second)])
                for s in words
            ],
        }

    def blocks(self, documents: list[int]) -> Blocks:
        """Return the scores (strict, by distances, nearest) of pairs and gold in `documents` alone.

        `documents` are indices into `material.texts`.
        """
        weights = strict.draws(len(documents), RESAMPLES, stream(SEED, STAGE))
        return {
            "strict": strict.summary(self.counts[self.policy][documents], self.names, weights),
            **self.alignment(documents, "characters"),
            "nearest": self.nearest_reading(documents),
        }

    def sides(self, documents: list[int], unit: str) -> list[Sequences]:
        """Return pairs and gold pairs of these documents, in `unit` (`words` or `characters`)."""
        return [
            side.take(np.flatnonzero(np.isin(side.doc, documents))) for side in self.units[unit]
        ]

    def nearest_reading(self, documents: list[int]) -> Aligned:
        """Return the figures of `criterion_nearest` over these documents."""
        pairs, gold = self.sides(documents, "words")
        return summary({NEAREST: nearest_reading(pairs, gold)}, pairs.marker, self.names)[NEAREST]

    def alignment(self, documents: list[int], unit: str) -> Alignments:
        """Align pairs with gold over these documents, by distances in `unit`.

        The figures `paper` align each pair with all gold, the figures `control` with the gold of
        other documents, where nothing should align.
        """
        pairs, gold = self.sides(documents, unit)
        distances = measure(pairs, gold)
        return {
            "paper": summary(distances.all_gold, pairs.marker, self.names),
            "control": summary(distances.control, pairs.marker, self.names),
        }

    def settings(self, unseen: list[int]) -> dict[str, Any]:
        """Return what is needed to interpret the figures: units, criteria, policies, omissions."""
        columns = {marker: i for i, marker in enumerate(self.markers)}
        all_documents = list(range(len(self.material.texts)))
        in_words = self.alignment(unseen or all_documents, "words")
        return {
            "markers": list(self.names),
            "unit": DESCRIPTION,
            "dice_at_least": strict.DICE,
            "interval": {
                "share": strict.INTERVAL,
                "resamples": RESAMPLES,
                "seed": SEED,
                "fewest_documents": FEW,
            },
            # Occurrence under each policy for markers inside gold connectives of several words.
            "multiword": {
                "policy": self.policy,
                "gold": sum(strict.is_multiword(g, columns) for g in self.material.gold),
                "occurrence": {p: _occurrence(c) for p, c in self.counts.items()},
                "unseen": {p: _occurrence(c[unseen]) for p, c in self.counts.items()},
            },
            "empty_connective": strict.count_unmarked(self.material, self.markers),
            "paper": {
                "vocabulary": len(self.vocabulary.words) - 2,
                "gold_pairs": len(self.units["words"][1]),
                "unit": "characters",
                # The overall figures of the other reading, of unseen documents if there are any.
                "in_words": {
                    "paper": {c: table["overall"] for c, table in in_words["paper"].items()},
                    "control": {c: table["overall"] for c, table in in_words["control"].items()},
                },
                "criterion_paper": f"min < {BELOW:.1f}",
                "criterion_strict": f"max <= {AT_MOST:.1f}, same document and marker",
                "criterion_nearest": f"max < {BELOW:.1f} in words, same marker",
            },
            "left_out": dict(sorted(self.material.left_out.items())),
        }


def _occurrence(counts: strict.Counts) -> dict[str, float | None]:
    """Return the overall scores of `occurrence` from the counts of `strict.count`."""
    extracted, gold, hits = (int(n) for n in counts.sum(axis=(0, 1))[:3])
    scores = strict.score(extracted, gold, hits)
    figures = {"p": scores["p"], "r": scores["r"], "f1": scores["f1"]}
    return {**figures, "extracted": extracted, "gold": gold}
