"""What is scored: pairs and gold relations of the same documents, on the gold text's words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from corpora.document import Document, Relation
from corpora.errors import InputError
from extract.pairs import Pair
from extract.validation.words import GoldText, WordMap, Words, subsequence

EXPLICIT = "Explicit"


def connective(marker: str) -> str:
    """The words of a marker as PDTB writes a connective: `if then` for `if ... then`."""
    return marker.replace(" ... ", " ")


@dataclass(frozen=True, slots=True)
class Item:
    """An extracted pair (S1, S2) or a gold relation (Arg1, Arg2).

    `doc` is the index of its text, `connective` the words of the marker itself.
    """

    doc: int
    marker: str
    connective: Words
    arg1: Words
    arg2: Words


@dataclass(frozen=True, slots=True)
class Gold(Item):
    """`marker` is the connective as annotated; `names` are its words, lower case.

    `connective` holds the words that name it: for a modified connective ("partly because"
    annotated as `because`) these are fewer than the span covers.
    """

    names: tuple[str, ...] = ()


@dataclass(slots=True)
class Material:
    """Everything of one validation. `left_out` counts what takes no part, by reason."""

    texts: list[GoldText] = field(default_factory=list)
    gold: list[Gold] = field(default_factory=list)
    pairs: list[Item] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def omit(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def gather(
    pairs: Iterable[Pair],
    gold: Iterable[Document],
    sources: Iterable[Document],
    markers: Collection[str],
) -> Material:
    """Read the gold of the source's documents and the pairs of `markers` into one unit.

    Each iterable is read once, `sources` first, then `gold`, then `pairs`. Raises `InputError`
    where no document is in both, where two texts differ (the place is named), and where a
    pair's spans lie outside of its document.
    """
    texts = {document.id: document.text for document in sources}
    material = Material()
    maps = _read_gold(material, gold, texts)
    if not maps:
        raise InputError(
            "no document of the gold is in the source",
            where="validate",
            hint=f"they meet by document id; the source has {_some(texts)}",
        )
    for _ in range(len(texts) - len(maps)):
        material.omit("source_documents_without_gold")
    _read_pairs(material, pairs, maps, frozenset(map(connective, markers)))
    return material


def _read_gold(
    material: Material, gold: Iterable[Document], texts: dict[str, str]
) -> dict[str, tuple[int, WordMap]]:
    """Fill in texts and gold relations; the map from each source text to the gold's words."""
    maps: dict[str, tuple[int, WordMap]] = {}
    for document in gold:
        if document.id not in texts:
            material.omit("gold_documents_outside_source")
            continue
        text = GoldText.read(len(material.texts), document.id, document.text)
        maps[document.id] = text.index, WordMap(text, texts[document.id])
        material.texts.append(text)
        material.gold.extend(_relations(material, text, document.relations or []))
    return maps


def _relations(material: Material, text: GoldText, relations: Iterable[Relation]) -> Iterable[Gold]:
    """The explicit relations; one that was annotated with two senses in two rows comes once."""
    to_words = WordMap(text)
    seen = set()
    for relation in relations:
        if relation.kind == EXPLICIT:
            item = _gold(text, relation, to_words)
            if item in seen and item.connective:
                material.omit("gold_rows_of_a_second_sense")
                continue
            seen.add(item)
            yield item


def _gold(text: GoldText, relation: Relation, to_words: WordMap) -> Gold:
    names = tuple(relation.connective.lower().split())
    covered = to_words(relation.connective_spans)
    named = subsequence(names, [text.words[i] for i in covered])
    return Gold(
        doc=text.index,
        marker=" ".join(names),
        connective=tuple(covered[i] for i in named) if named else covered,
        arg1=to_words(relation.arg1_spans),
        arg2=to_words(relation.arg2_spans),
        names=names,
    )


def _read_pairs(
    material: Material,
    pairs: Iterable[Pair],
    maps: dict[str, tuple[int, WordMap]],
    markers: frozenset[str],
) -> None:
    for pair in pairs:
        if connective(pair.marker) not in markers:
            material.omit("pairs_of_other_markers")
        elif pair.doc not in maps:
            material.omit("pairs_without_gold")
        else:
            material.pairs.append(_item(pair, *maps[pair.doc]))


def _item(pair: Pair, doc: int, to_words: WordMap) -> Item:
    try:
        marked, s1, s2 = map(to_words, (pair.marker_spans, pair.s1_spans, pair.s2_spans))
        return Item(doc, connective(pair.marker), marked, s1, s2)
    except IndexError:
        raise InputError(
            f"the spans of the pair of {pair.marker!r} in sentence {pair.sentence} "
            "lie outside of the document",
            where=pair.doc,
            hint="the pairs were extracted from another version of the source; extract again",
        ) from None


def _some(texts: dict[str, str]) -> str:
    shown = ", ".join(sorted(texts)[:3])
    return f"{len(texts)} documents, such as {shown}" if shown else "no documents"
