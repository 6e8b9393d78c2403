"""Datasets from annotated relations (PDTB, GDTB), and what datasets from trees share with them.

PDTB-E and PDTB-I have the sense of a relation (DiscoEval, section 3.1). `pdtb_marked` asks whether
a relation is explicit or implicit (DisSent, section 6 and A.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, ClassVar, Literal, TypeVar

import pyarrow as pa
from pydantic import Field

from corpora.document import Document, Relation, Span
from corpora.errors import ConfigError
from corpora.prose import FOOTNOTE
from corpora.schemas import PDTB_MARKED
from corpora.schemas import pdtb as pdtb_schema
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Candidate, Part, Prescribed, Reject
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside

Layer = TypeVar("Layer")


class Treebank(Prescribed):
    """A builder from annotated documents, whose splits a table or the treebank may prescribe.

    A candidate has the columns of a row, but the name of its label in place of the number.
    """

    texts: ClassVar[tuple[str, ...]] = ("arg1", "arg2")
    """The columns whose overlap between splits is counted."""
    order: ClassVar[str] = "concat(doc, '#', number)"
    """The order of the rows in a split, in SQL."""
    rows_per_group: ClassVar[int] = 0

    train: Part = 0.8
    validation: Part = 0.1
    test: Part = 0.1

    def write_labelled(
        self,
        names: Sequence[str],
        schema: pa.Schema,
        candidates: Candidates,
        dataset: DatasetFolder,
    ) -> None:
        """Write the candidates that have one of the labels `names`, in the order `order`."""
        query = (
            "select chosen.* replace (list_position($names, label) - 1 as label) from chosen "
            f"where split = $split and list_contains($names, label) order by {self.order}"
        )
        values = {"names": names}
        group = self.rows_per_group
        candidates.write_splits(schema, self.texts, group, query=query, values=values, size=256)


def annotation_layer(document: Document, layer: Layer | None, kind: str) -> Layer:
    """Return `layer`, a layer of annotations of the document; raises `ConfigError` if it is None.

    `kind` is the kind of source that has such a layer, for the message.
    """
    if layer is None:
        raise ConfigError(
            f"document {document.id!r} is not annotated",
            where=document.source,
            hint=f"this dataset is made from sources of the kind {kind}:",
        )
    return layer


class Relations(Treebank):
    """Pairs of arguments; the label comes from the relation between them."""

    kinds: ClassVar[tuple[str, ...]]
    """The kinds of relations that are taken."""

    sections: Literal["discoeval", "dissent", "lin", "ji"] = "discoeval"
    """Sections of the splits where all ids are `wsj_NNNN`: `discoeval` (2-14 / 15-18 / 19-23),
    `dissent` (2-22 / 0-1 / 23-24), `lin` (2-21 / 22 / 23; Lin et al. 2009) or `ji` (2-20 / 0-1 /
    21-22; Ji and Eisenstein 2015)."""

    def relations(self, document: Document, reject: Reject) -> Iterator[tuple[Relation, str, str]]:
        """Yield (relation, text of Arg1, text of Arg2) for each relation of `kinds`.

        The texts are without the connective. Other relations and empty arguments are rejected.
        Raises `ConfigError` for a document without a layer of relations.
        """
        for relation in annotation_layer(document, document.relations, "pdtb"):
            if relation.kind not in self.kinds:
                reject(f"relation_{relation.kind.lower()}")
                continue
            arg1, arg2 = (
                argument_text(document.text, spans, relation.connective_spans)
                for spans in (relation.arg1_spans, relation.arg2_spans)
            )
            if arg1 and arg2:
                yield relation, arg1, arg2
            else:
                reject("argument_empty")


def argument_text(text: str, spans: Iterable[Span], connective: Iterable[Span]) -> str:
    """Return the text at `spans` without the text at the spans of `connective`.

    White space becomes single spaces. The commas around a removed connective go too: they would
    show that it was there.
    """
    pieces = []
    removed_spans = sorted(connective)
    for start, end in spans:
        for removed_start, removed_end in removed_spans:
            if removed_start < end and removed_end > start:
                pieces.append(text[start : max(start, removed_start)])
                start = min(end, removed_end)
        pieces.append(text[start:end])
    argument = " ".join(" ".join(pieces).split())
    if len(pieces) > 1:
        for pattern, replacement in _SEAMS:
            argument = pattern.sub(replacement, argument)
    return argument.lstrip(",;: ")


_SEAMS = (
    (re.compile(r"(?: ?,){2,}"), ""),
    (re.compile(r" ?,(?= ?[.;:!?])"), ""),
    (re.compile(r"(?<=[;:(]) ?,"), ""),
)
"""Commas that a connective between commas leaves behind, and their replacements."""


class Pdtb(Relations):
    """Discourse relations of one kind and their senses."""

    paper = "Chen, Chu and Gimpel 2019, section 3.1"
    gives = {"default": pdtb_schema([])}
    columns = pa.schema(
        [(name, pa.string()) for name in ("label", "arg1", "arg2", "connective", "sense")]
    )
    equal = ("arg1", "arg2", "connective", "sense")

    level: Annotated[int, Field(ge=1, le=3)] = 2
    """Level of the senses (2 in the paper); coarser annotations are left out."""
    senses: Literal["first", "all"] = "first"
    """`first`: one row a relation; `all`: a row for each sense of a relation."""
    min_count: Annotated[int, Field(ge=0)] = 10
    """Minimum rows of a class, over all splits; rarer classes are left out."""
    classes: Annotated[int, Field(ge=0)] = 0
    """Number of most frequent classes to keep; 0: all (DisSent, section 6: 11, with `sections =
    "dissent"`)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield the arguments of each relation with its sense, cut to `level` as the label.

        Rejects relations whose senses are all coarser than `level`.
        """
        for relation, arg1, arg2 in self.relations(document, reject):
            senses = relation.senses[:1] if self.senses == "first" else relation.senses
            # Of several senses with one label the first one counts.
            labels = {sense_at(sense, self.level): sense for sense in reversed(senses)}
            labels.pop("", None)
            if not labels:
                reject("sense_too_coarse")
            for label, sense in labels.items():
                yield Candidate((label, arg1, arg2, relation.connective, sense))

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write the rows of the frequent classes; the label names are in alphabetical order."""
        query = "select label, count(*) as number from chosen group by label"
        counts = candidates.engine.rows(f"{query} order by number desc, label")
        frequent = [name for name, number in counts if number >= self.min_count]
        names = sorted(frequent[: self.classes] if self.classes else frequent)
        rare = sum(number for name, number in counts if name not in names)
        dataset.reject("class_too_rare", rare)
        self.write_labelled(names, pdtb_schema(names), candidates, dataset)


class PdtbExplicit(Pdtb):
    """Explicit discourse relations: the sense of two arguments, from PDTB or GDTB."""

    name, version = "pdtb_explicit", 2
    card = card_beside(__file__, "pdtb_explicit")
    kinds = ("Explicit",)


class PdtbImplicit(Pdtb):
    """Implicit discourse relations: the sense of two arguments, from PDTB or GDTB."""

    name, version = "pdtb_implicit", 1
    card = card_beside(__file__, "pdtb_implicit")
    kinds = ("Implicit",)


def sense_at(sense: str, level: int) -> str:
    """Return the first `level` parts of a sense (`Contingency.Cause` at 2), "" if it has fewer."""
    parts = sense.split(".")
    return ".".join(parts[:level]) if len(parts) >= level else ""


class PdtbMarked(Relations):
    """Marked or unmarked relations: did a connective stand between two arguments?"""

    name, version = "pdtb_marked", 4
    paper = "Nie, Bennett and Goodman 2019, section 6 and appendix A.3"
    card = card_beside(__file__, "pdtb_marked")
    gives = {"default": PDTB_MARKED}
    kinds = ("Explicit", "Implicit")
    columns = pa.schema([("label", pa.string()), ("arg1", pa.string()), ("arg2", pa.string())])
    equal = ("label", "arg1", "arg2")

    sections: Literal["discoeval", "dissent"] = "dissent"
    """Sections of the splits where all ids are `wsj_NNNN`: `discoeval` (2-14 / 15-18 / 19-23) or
    `dissent` (2-22 / 0-1 / 23-24)."""

    arguments: Literal["matched", "annotated"] = "matched"
    """`matched`: equal numbers of marked and unmarked rows in each split, of similar lengths, each
    argument with a capital first letter and no mark at its end; `annotated`: all relations as
    annotated (the paper's)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield the arguments of explicit (`marked`) and of implicit relations (`unmarked`).

        Rejects implicit relations whose arguments an explicit one joins too, and with `arguments =
        "matched"` those that would be easy to tell.
        """
        explicit = [r for r in document.relations or () if r.kind == "Explicit"]
        for relation, arg1, arg2 in self.relations(document, reject):
            if relation.kind == "Implicit" and any(
                arguments_overlap(r, relation) for r in explicit
            ):
                reject("implicit_beside_explicit")
                continue
            if self.arguments == "matched":
                if max(relation.arg1_spans)[1] > min(relation.arg2_spans)[0]:
                    reject("arguments_not_in_order")
                    continue
                arg1, arg2 = without_edge_marks(arg1), without_edge_marks(arg2)
                if len(arg1.split()) < CLAUSE or len(arg2.split()) < CLAUSE:
                    reject("argument_too_short")
                    continue
                if CONNECTIVE.match(arg2):
                    reject("another_connective")
                    continue
            yield Candidate(("marked" if relation.kind == "Explicit" else "unmarked", arg1, arg2))

    def select(self, candidates: Candidates) -> None:
        """Split the documents, then reject rows until both labels of each split match."""
        super().select(candidates)
        if self.arguments == "matched":
            candidates.dataset.reject("unmatched", int(candidates.engine.value(_UNMATCHED)))

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write all kept candidates."""
        self.write_labelled(("unmarked", "marked"), PDTB_MARKED, candidates, dataset)


def arguments_overlap(one: Relation, other: Relation) -> bool:
    """Return whether Arg1 of `one` overlaps Arg1 of `other`, and Arg2 overlaps Arg2."""

    def overlap(spans: Iterable[Span], others: Sequence[Span]) -> bool:
        return any(a < d and c < b for a, b in spans for c, d in others)

    first = overlap(one.arg1_spans, other.arg1_spans)
    return first and overlap(one.arg2_spans, other.arg2_spans)


CLAUSE = 3
"""The minimum words of an argument that may be a clause: "Possible" is none."""

CONNECTIVE = re.compile(
    r"(?:also|although|and|because|besides|but|finally|furthermore|hence|however|instead|meanwhile|"
    r"moreover|nevertheless|nonetheless|nor|or|otherwise|so|still|then|therefore|though|thus|"
    r"unless|yet)\b",
    re.IGNORECASE,
)
"""A second argument that begins with one is marked, whatever else was removed or not annotated."""


def without_edge_marks(argument: str) -> str:
    """Return an argument with a capital first letter, without punctuation at its ends and notes.

    Arguments of implicit relations are mostly sentences, those of explicit ones clauses: their ends
    alone would tell the label.
    """
    text = FOOTNOTE.sub("", argument).strip(" ,;:.!?…-–—")
    first = next((i for i, character in enumerate(text) if character.isalnum()), 0)
    return text[:first] + text[first : first + 1].title() + text[first + 1 :]


_UNMATCHED = r"""
with measured as (
    select part, doc, number, priority, split, label, [
        floor(log2(len(string_split(argument, ' ')))) for argument in [arg1, arg2]
    ] as lengths, [
        regexp_matches(argument, '.\p{Lu}') for argument in [arg1, arg2]
    ] as names, [
        case when regexp_matches(argument, '^(?i)to\s') then 'infinitive'
            when regexp_matches(argument, '^\w+ing\b') then 'participle'
            when regexp_matches(argument, '^(?i)(that|wh\w+)\b') then 'relative'
            when regexp_matches(argument, '^(?i)(am|are|can|could|did|do|does|had|has|have|is|may|'
                'might|must|shall|should|was|were|will|would)\b') then 'auxiliary'
            else '' end for argument in [arg1, arg2]
    ] as opens
    from chosen
), ranked as (
    select *,
        row_number() over (
            partition by split, lengths, names, opens, label order by priority, doc, number
        ) as place,
        count(*) filter (label = 'marked') over alike as marked,
        count(*) filter (label = 'unmarked') over alike as unmarked
    from measured
    window alike as (partition by split, lengths, names, opens)
)
delete from kept using ranked where place > least(marked, unmarked)
    and kept.part = ranked.part and kept.doc = ranked.doc and kept.number = ranked.number
"""
"""Deletes rows of the more frequent label: coarsened exact matching (Iacus, King and Porro 2012).

In each split, rows with arguments of similar lengths, openings and names are matched.
"""
