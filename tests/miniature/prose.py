"""Made-up prose whose sentences know their connective, its sense and its two arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Span = tuple[int, int]


def words(text: str, between: str | None = None) -> list[str]:
    return text.split(between)


WHO = words(
    "keeper baker pilot farmer teacher sailor painter doctor clerk tailor miller singer "
    "gardener carpenter fisherman librarian postman shepherd weaver mason cook driver nurse "
    "captain"
)
KIND = words(
    "old young tired busy clever quiet cheerful careful proud lonely patient honest tall "
    "stubborn gentle nervous"
)
DID = words(
    "painted opened repaired sold carried cleaned counted moved measured watched borrowed "
    "closed covered dropped found guarded hid kept lifted marked needed ordered packed rented "
    "shared"
)
WHAT = words(
    "gate boat oven ladder window basket lantern bridge wagon fence barrel clock table garden "
    "letter map kettle rope bell chair piano stove cart cellar door coat lamp book plough "
    "sail"
)
WHERE = words(
    "near the mill|behind the church|at the harbour|by the river|in the market|on the hill|"
    "beside the station|under the bridge|across the square|outside the school|in the orchard|"
    "at the crossing|below the castle|along the canal|inside the barn|at the border",
    "|",
)
INSIDE = {
    "because": "Contingency.Cause.Reason",
    "before": "Temporal.Asynchronous.Precedence",
    "after": "Temporal.Asynchronous.Succession",
    "while": "Temporal.Synchrony",
    "when": "Temporal.Synchrony",
    "if": "Contingency.Condition.Hypothetical",
    "though": "Comparison.Concession.Expectation",
    "although": "Comparison.Concession.Contra-expectation",
    "as": "Temporal.Synchrony",
    "so": "Contingency.Cause.Result",
    "and": "Expansion.Conjunction",
    "but": "Comparison.Contrast.Juxtaposition",
}
"""Connectives inside a sentence, with their senses in PDTB 2."""
COMMA = ("and", "but", "though", "although")
FRONTED = ("when", "if", "because", "although", "after")
STARTING = {
    "then": "Temporal.Asynchronous.Precedence",
    "also": "Expansion.Conjunction",
    "still": "Comparison.Concession.Contra-expectation",
}
"""Adverbs that join a sentence to the one before."""
IMPLIED = (
    ("in addition", "Expansion.Conjunction"),
    ("because", "Contingency.Cause.Reason"),
    ("so", "Contingency.Cause.Result"),
    ("in particular", "Expansion.Restatement.Specification"),
    ("for example", "Expansion.Instantiation"),
    ("by contrast", "Comparison.Contrast"),
    ("then", "Temporal.Asynchronous.Precedence"),
    ("first", "Expansion.List"),
    ("although", "Comparison.Concession.Contra-expectation"),
    ("meanwhile", "Temporal.Synchrony"),
    ("instead", "Expansion.Alternative.Chosen alternative"),
    ("indeed", "Contingency.Pragmatic cause.Justification"),
)


@dataclass(frozen=True)
class Sentence:
    """A sentence; spans are offsets into its text. Without `first` argument 1 is the sentence
    before."""

    text: str
    connective: str = ""
    sense: str = ""
    marker: Span = (0, 0)
    first: Span | None = None
    second: Span = (0, 0)

    @property
    def tokenised(self) -> str:
        return self.text.replace(",", " ,").removesuffix(".") + " ."

    @property
    def clauses(self) -> list[str]:
        """The sentence cut in front of its second clause; one clause has no connective inside."""
        if self.first is None:
            return [self.text]
        cut = self.second[0] if self.marker[0] == 0 else self.marker[0]
        cut = self.first[0] if self.marker[0] == 0 else cut
        return [self.text[:cut].strip(), self.text[cut:]]


@dataclass(frozen=True)
class Story:
    """A document: paragraphs of sentences."""

    name: str
    paragraphs: tuple[tuple[Sentence, ...], ...]

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        return tuple(sentence for paragraph in self.paragraphs for sentence in paragraph)

    @cached_property
    def texts(self) -> list[str]:
        return [sentence.text for sentence in self.sentences]

    @property
    def text(self) -> str:
        return "\n\n".join(" ".join(s.text for s in paragraph) for paragraph in self.paragraphs)


class Prose:
    """An endless supply of stories; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0

    def clause(self, verb: str = "") -> str:
        pick = self.random.choice
        subject, verb = f"the {pick(KIND)} {pick(WHO)}", verb or pick(DID)
        return f"{subject} {verb} the {pick(WHAT)} {pick(WHERE)}"

    def plain(self) -> Sentence:
        text = self.clause() + "."
        return Sentence(text[0].upper() + text[1:])

    def joined(self) -> Sentence:
        """Two clauses with a connective between them or in front of both."""
        connective = self.random.choice([*INSIDE])
        # A purpose: there "so" is a subordinator, as DisSent's patterns want it.
        one, other = self.clause(), self.clause("could keep" if connective == "so" else "")
        sense = INSIDE[connective]
        if connective in FRONTED and self.random.random() < 0.4:
            text = f"{connective.capitalize()} {other}, {one}."
            start = len(connective) + 1
            second = (start, start + len(other))
            first = (second[1] + 2, len(text) - 1)
            return Sentence(text, connective, sense, (0, len(connective)), first, second)
        comma = "," if connective in COMMA else ""
        text = f"{one[0].upper()}{one[1:]}{comma} {connective} {other}."
        start = len(one) + len(comma) + 1
        end = start + len(connective)
        second = (end + 1, len(text) - 1)
        return Sentence(text, connective, sense, (start, end), (0, len(one)), second)

    def starting(self) -> Sentence:
        connective = self.random.choice([*STARTING])
        text = f"{connective.capitalize()} {self.clause()}."
        end = len(connective)
        sense = STARTING[connective]
        return Sentence(text, connective, sense, (0, end), None, (end + 1, len(text) - 1))

    def paragraph(self, length: int) -> tuple[Sentence, ...]:
        """Sentences of which the first is plain, half of the others have a connective."""
        kinds = (self.plain, self.joined, self.starting)
        weights = (5, 4, 2)
        later = self.random.choices(kinds, weights, k=length - 1)
        return (self.plain(), *(kind() for kind in later))

    def story(self, paragraphs: int = 3, length: int = 4) -> Story:
        self.number += 1
        parts = tuple(self.paragraph(length) for _ in range(paragraphs))
        return Story(f"story-{self.number:05d}", parts)

    def stories(self, count: int, paragraphs: int = 3, length: int = 4) -> Iterator[Story]:
        return (self.story(paragraphs, length) for _ in range(count))
