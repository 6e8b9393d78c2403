"""The dataset of explicit discourse relations: annotated, or found by `extract.connectives`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import AfterValidator, Field

from corpora.document import Document, Relation
from corpora.errors import ConfigError, nearest
from corpora.schemas import CONFIDENCE, STRING, schema, text_columns
from corpora.store.documents import documents_in
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Candidate, Reject, Shard, Target, check_markers
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside
from corpora.tasks.relations import Treebank, argument_text, sense_at
from extract import arguments, connectives
from extract.connectives.candidates import GAP, Lexicon
from extract.connectives.model import MODEL
from extract.parse import Parser, by_words
from extract.parsers import check_language, get_parser, is_checked

WORDS_PER_CHUNK = 20_000
TEXTS = ("s1", "s2", "connective", "sense", "origin")


@dataclass(frozen=True, slots=True)
class Predicted(Relation):
    """A relation that was found, and the probability of its connective."""

    confidence: float = 0.0


def explicit_relations(names: Iterable[str]) -> pa.Schema:
    """Return the schema of explicit relations: two arguments, connective and sense, and a label."""
    columns = schema(audit="labelled", doc=STRING, label=list(names), **text_columns(*TEXTS))
    return columns.append(CONFIDENCE)


def _check_connectives(markers: tuple[str, ...]) -> tuple[str, ...]:
    """Return `markers`; raises `ConfigError` for one that is no connective, or comes twice."""
    words = Lexicon.english().words
    for marker in markers:
        if marker not in words:
            problem = f"no connective {marker!r} in English"
            hint = f"{nearest(marker, words)}extract/connectives/lexicon.toml has them all"
            raise ConfigError(problem, hint=hint)
    return check_markers(markers) if markers else markers


class ExplicitRelations(Treebank):
    """Explicit relations: two arguments, their connective and sense, annotated or found."""

    name, version = "explicit_relations", 1
    paper = "Prasad et al. 2008"
    card = card_beside(__file__, "explicit_relations")
    gives = {"default": explicit_relations([])}
    columns = pa.schema([*((n, STRING) for n in ("label", *TEXTS)), CONFIDENCE])
    equal = ("s1", "s2", "connective")
    texts = ("s1", "s2")

    markers: Annotated[tuple[str, ...], AfterValidator(_check_connectives)] = ()
    """The connectives to take; they are the labels, in this order. Without any, all connectives are
    taken, and the label is the sense."""
    parser: str = "embedded"
    """The parser of documents without annotated relations: `embedded`, `gold`, `spacy:NAME` or
    `stanza:en`."""
    min_confidence: Annotated[float | None, Field(ge=0, le=1)] = None
    """Minimum probability of a connective that was found; by default the model's threshold."""
    min_count: Annotated[int, Field(ge=0)] = 10
    """Minimum rows of a label, over all splits; rarer labels are left out."""

    def identity(self) -> dict[str, Any]:
        """Return the settings, and digests of the models that find connectives and arguments."""
        models = (MODEL, arguments.MODEL)
        digests = [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in models]
        return {**super().identity(), "models": digests}

    def candidate_batches(
        self, documents: Any, target: Target, shard: Shard
    ) -> Iterator[pa.RecordBatch]:
        """Yield the candidate rows of documents; those without annotations are parsed first."""
        if isinstance(documents, Path):
            documents = documents_in(documents)
        return super().candidate_batches(self._with_relations(documents), target, shard)

    def _with_relations(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield documents with their annotated relations, or with those that are found."""
        parser: Parser | None = None
        for chunk in by_words(documents, WORDS_PER_CHUNK):
            raw = [document for document in chunk if document.relations is None]
            if raw and parser is None:
                checked = is_checked(self.parser, None)
                parser = get_parser(self.parser, **({"check": True} if checked else {}))
            found = iter(self._found(raw, parser) if parser else ())
            for document in chunk:
                yield document if document.relations is not None else next(found)

    def _found(self, documents: list[Document], parser: Parser) -> Iterator[Document]:
        """Yield documents with the relations that the models find in them."""
        for document in documents:
            check_language(self.parser, document.language)
        parses = list(parser.parse(documents))
        language = next((d.language for d in documents if d.language != "en"), "en")
        least = self.min_confidence
        lists = list(connectives.connectives(documents, parses, parser.scheme, language, least))
        sides = arguments.arguments(documents, parses, lists, parser.scheme)
        for document, items, pairs in zip(documents, lists, sides, strict=True):
            relations: list[Relation] = [
                Predicted(
                    kind="Explicit",
                    connective=item.text,
                    connective_spans=item.spans,
                    arg1_spans=pair.arg1,
                    arg2_spans=pair.arg2,
                    senses=(item.sense,),
                    confidence=item.probability,
                )
                for item, pair in zip(items, pairs, strict=True)
            ]
            yield replace(document, relations=relations)

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield the arguments of each explicit relation; its sense is cut to the second level."""
        forms = {words.replace(GAP, " "): words for words in Lexicon.english().words}
        for relation in document.relations or ():
            if relation.kind != "Explicit":
                reject(f"relation_{relation.kind.lower()}")
                continue
            connective = forms.get(relation.connective, relation.connective)
            sense = next((s for name in relation.senses if (s := sense_at(name, 2))), "")
            s1, s2 = (
                argument_text(document.text, spans, relation.connective_spans)
                for spans in (relation.arg1_spans, relation.arg2_spans)
            )
            if self.markers and connective not in self.markers:
                reject("marker_not_in_set")
            elif not self.markers and not sense:
                reject("sense_too_coarse")
            elif not (s1 and s2):
                reject("argument_empty")
            else:
                label = connective if self.markers else sense
                found = isinstance(relation, Predicted)
                origin = "predicted" if found else "gold"
                confidence = relation.confidence if isinstance(relation, Predicted) else None
                yield Candidate((label, s1, s2, connective, sense, origin, confidence))

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write the rows of the frequent labels: `markers` in their order, or senses by name."""
        counts = dict(candidates.engine.rows("select label, count(*) from chosen group by label"))
        frequent = {name for name, number in counts.items() if number >= self.min_count}
        names = [name for name in self.markers or sorted(frequent) if name in frequent]
        rare = sum(number for name, number in counts.items() if name not in names)
        dataset.reject("class_too_rare", rare)
        self.write_labelled(names, explicit_relations(names), candidates, dataset)
