"""Adjacent sentences and the marker that began the second (Discovery, Sileo et al. 2019)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Annotated

import pyarrow as pa
from pydantic import AfterValidator, Field

from corpora.document import Document
from corpora.prose import ANNOUNCES, passages_of
from corpora.schemas import marker_pairs
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Candidate, Part, Reject, check_markers
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside, texts_beside

ID_COLUMNS = ("doc", "group")
MARKERS = tuple(texts_beside(__file__)["markers"]["list"].split(", "))
"""Words and phrases that link an English sentence to the one before it, or comment on it."""

_TOO = re.compile("too ?,", re.IGNORECASE)
"""A second marker after the first: *Then, too,*."""
PAIRED = (("(", ")"), ("[", "]"), ("“", "”"))


def _normalize_markers(markers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the markers in lower case, their words separated by single spaces."""
    return tuple(" ".join(marker.lower().split()) for marker in markers)


class Discovery(Builder):
    """Adjacent sentences and the marker with which the second began."""

    name, version = "discovery", 2
    paper = "Sileo et al. 2019"
    card = card_beside(__file__, "discovery")
    gives = {"default": marker_pairs([], ID_COLUMNS)}
    columns = pa.schema([(name, pa.string()) for name in ("label", "s1", "s2")])
    equal = ("label", "s1", "s2")

    markers: Annotated[
        tuple[str, ...], AfterValidator(_normalize_markers), AfterValidator(check_markers)
    ] = MARKERS
    """What the second sentence may begin with, before a comma, in any letter case."""
    min_words: Annotated[int, Field(ge=1)] = 3
    """Minimum words of a sentence without its marker."""
    max_words: int = 32
    """Maximum words of a sentence without its marker."""
    min_count: Annotated[int, Field(ge=1)] = 10
    """Minimum pairs of a marker; a rarer marker is left out."""
    per_marker: Annotated[int, Field(ge=0)] = 10_000
    """Maximum pairs of a marker (10,000 in the release); 0: all."""
    train: Part = 0.9
    validation: Part = 0.05
    test: Part = 0.05

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        """The pattern of a marker and a comma at the beginning of a sentence."""
        longest_first = sorted(self.markers, key=len, reverse=True)
        return re.compile(rf"({'|'.join(map(re.escape, longest_first))}) ?, ?(?=\S)", re.IGNORECASE)

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield adjacent sentences of a paragraph of which the second begins with a marker."""
        for paragraph in passages_of(document, document.sentence_texts(), "paragraph"):
            for s1, second in pairwise(paragraph):
                if not (opening := self._opening.match(second)):
                    continue
                rest = second[opening.end() :]
                s2 = rest[0].title() + rest[1:]
                lengths = [len(s1.split()), len(s2.split())]
                if self._opening.match(rest) or _TOO.match(rest):
                    reject("two_markers")
                elif min(lengths) < self.min_words:
                    reject("sentence_too_short")
                elif max(lengths) > self.max_words:
                    reject("sentence_too_long")
                elif not (_closes_its_marks(s1) and _closes_its_marks(s2)):
                    reject("open_quotation_or_bracket")
                elif ANNOUNCES.search(s1) or ANNOUNCES.search(s2):
                    reject("announces_the_next")
                else:
                    yield Candidate((opening[1].lower(), s1, s2))

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write the pairs of the markers with `min_count` pairs or more, `per_marker` of each."""
        counts = dict(candidates.engine.rows("select label, count(*) from chosen group by label"))
        names = [name for name in self.markers if counts.get(name, 0) >= self.min_count]
        rare = sum(number for name, number in counts.items() if name not in names)
        dataset.reject("marker_too_rare", rare)
        cap = self.per_marker or max(counts.values(), default=0)
        dataset.reject("not_needed", sum(max(0, counts[name] - cap) for name in names))
        number = f"{len(names)} of the {len(self.markers)} markers"
        dataset.note(f"{number} have at least {self.min_count} pairs.")
        schema, values = marker_pairs(names, ID_COLUMNS), {"names": names, "cap": cap}
        candidates.write_splits(schema, ("s1", "s2"), query=_IN_ORDER, values=values)


def _closes_its_marks(text: str) -> bool:
    """Return whether a sentence closes the quotation marks and brackets that it opens."""
    return text.count('"') % 2 == 0 and all(text.count(a) == text.count(b) for a, b in PAIRED)


_IN_ORDER = """
select chosen.* replace (list_position($names, label) - 1 as label) from chosen
    join (select doc, number, row_number() over (
        partition by label order by priority, doc, number) as place from chosen
    ) using (doc, number)
where list_contains($names, label) and split = $split and place <= $cap
order by priority, doc, number
"""
