"""A pattern file: its tables, rows and allowed values (`docs/reference/extraction.md`)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from corpora.declared import Loc, TomlTable
from corpora.errors import ConfigError, nearest
from corpora.toml import TomlFile

Scheme = Literal["ud", "clear"]
SCHEMES: tuple[str, ...] = get_args(Scheme)
DERIVED = (
    *("subject", "copula", "finite", "complement", "object", "clause", "statement"),
    *("imperative", "alone", "framed"),
)
"""Properties that follow from a token's children, beside those that `[properties]` names."""
SPAN_KEYS = ("s1_drop", "s2_drop", "s1_mute", "s2_mute")
LABEL_KEYS = ("deprels", "s2_deprels", "s1_deprels", "s1_not", "climb")
PROPERTY_KEYS = ("tags", "s2_needs", "s2_lacks", "s1_needs", "s1_lacks")
CHILD = re.compile(r"(<|>>?)?[=@]?[a-z]+(:[a-z]+)*(\+(clause|subject))?")


def _child(spec: str) -> str:
    """Return `spec`, which names children of a head; `ConfigError` if it is malformed."""
    if not CHILD.fullmatch(spec):
        raise ConfigError(
            f"{spec!r}: expected a label, with `<`, `>` or `>>` before it and `+clause` or "
            "`+subject` after it (both optional)"
        )
    return spec


def fold(words: str) -> str:
    """Return words in lower case, with apostrophes, accents and blanks normalised."""
    folded = " ".join(words.lower().replace("’", "'").split())
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)


Text = Annotated[str, Field(min_length=1)]
Words = Annotated[str, AfterValidator(fold)]
Marker = Annotated[Text, Field(pattern=r"\S"), AfterValidator(fold)]
Names = tuple[str, ...]
Children = tuple[Annotated[str, AfterValidator(_child)], ...]


class Pattern(TomlTable):
    """One marker in one construction: a row of a table.

    Labels match their subtypes (`acl` also `acl:relcl`), `=acl` only itself, `@x` is the class x.
    """

    id: Text
    """Unique; stored with every pair."""
    marker: Marker
    deprels: Names = Field(min_length=1)
    """Labels of the marker's token."""
    comment: Text
    """The linguistic reason."""
    example: Text
    schemes: tuple[Scheme, ...] = get_args(Scheme)
    place: Literal["any", "initial", "edge", "before", "after", "after_governor"] = "any"
    tags: Names = ()
    """Properties of the marker's token."""
    not_before: Names = ()
    """Words that must not follow the marker."""
    s2: Literal["head", "edge_clause", "self", "right_conjunct", "complement"] = "head"
    """How S2's head is found from the marker's token."""
    s2_deprels: Names = ()
    s2_needs: Names = ()
    s2_lacks: Names = ()
    s1: Literal[
        "parent",
        "clause",
        "sentence",
        "conjunct",
        "first_conjunct",
        "marker_head",
        "sibling",
        "child",
        "chained",
        "previous",
    ] = "parent"
    """How S1's head is found from S2's."""
    s1_deprels: Names = ()
    s1_not: Names = ()
    s1_needs: Names = ()
    s1_lacks: Names = ()
    climb: Names = ()
    """Labels to climb through on the way to S1."""
    apart: bool = False
    """Excludes adjacent verbs, which share their object."""
    alike: bool = False
    """If S2 is finite, S1's head is the nearest finite predicate."""
    uninverted: bool = False
    """S2's verb does not come between marker and subject, except in a question."""
    after_words: Names = ()
    """One of these words directly precedes the marker."""
    compared: Names = ()
    """One of these words modifies S2's governor ("as" of "as tall as he is")."""
    s2_words: Names = ()
    """S2's head is one of these words."""
    standalone: bool = True
    """Whether its clauses can stand alone; if not, only the mode `recall` accepts them."""
    checks: tuple[Literal["alone", "asked", "dated", "later", "measured", "reported"], ...] = ()
    """What else the marker may introduce, which the mode `standalone` rejects: a clause that is
    asked ("if"), tells which time is meant ("when"), ends a measure of time ("before"), or stands
    beside what is said ("as")."""
    order: Literal["any", "s1_first", "s2_first"] = "any"
    s1_drop: Children | None = None
    s2_drop: Children | None = None
    s1_mute: Children | None = None
    s2_mute: Children | None = None

    @model_validator(mode="after")
    def _complement_has_labels(self) -> Self:
        if self.s2 == "complement" and not self.s2_deprels:
            raise ConfigError("s2 = 'complement' needs s2_deprels, its labels")
        return self


class Multiword(TomlTable):
    """A connective of several words; `second` are the words further on (`if ... then`).

    Its words are no marker in a pair, unless the user's `markers` name the whole connective. In the
    mode `standalone` a `modified` form ("even though") counts as the marker `like` ("though").
    """

    words: Marker
    second: Words = ""
    like: Words = ""
    """The marker whose rows it uses; if empty, it is always left out."""
    modified: bool = False
    """Whether its other words leave the relation as it is ("even though")."""
    last_deprels: Names = ()
    """It is a connective only where its last word has one of these labels."""

    @property
    def name(self) -> str:
        return " ... ".join(filter(None, (self.words, self.second)))


class Classes(TomlTable):
    """The labels of a scheme in classes, which the rows of a table name."""

    subject: Names = ()
    copula: Names = ()
    auxiliary: Names = ()
    conjunct: Names = ()
    punctuation: Names = ()
    opener: Names = ()
    """Words that may precede a marker at the start of its sentence."""
    core: Names = ()
    """Labels that a marker at `place = "edge"` precedes."""
    dependent: Names = ()
    """Labels that `s2 = "edge_clause"` climbs through."""
    remnant: Names = ()
    """Remains of a clause whose verb is elided."""
    complement: Names = ()
    """Objects, clauses and obliques of a verb; for `apart`."""
    subordinator: Names = ()
    modifier: Names = ()
    """Modifiers of a subordinator: muted directly before it."""
    stray: Names = ()
    """Words after a marker that a parser wrongly attaches to it: they belong to S2."""
    case: Names = ()
    object: Names = ()
    """Complements that a transitive verb or a verb of saying needs."""
    plain_subject: Names = ()
    """Subjects that a conjunct can share: not a clause, not "there"."""
    acting_subject: Names = ()
    """Subjects of active verbs."""
    dependent_clause: Names = ()
    """Clauses that are part of another one and make no statement without it."""
    adverbial_clause: Names = ()
    reported_clause: Names = ()
    """The complement of a verb of saying or thinking."""
    main_clause: Names = ()
    """Clauses that no other clause governs."""


class Tags(TomlTable):
    """The tags that give a token a property."""

    upos: Names = ()
    xpos: Names = ()
    feats: Names = ()


class Spans(TomlTable):
    """Children that are left out of a span (`drop`) or of its text only (`mute`), in all rows."""

    s1_drop: Children = ()
    s2_drop: Children = ()
    s1_mute: Children = ()
    s2_mute: Children = ()


class Standalone(TomlTable):
    """Words that decide whether a clause keeps its meaning when it stands alone."""

    asserted: Names = ()
    """Subordinators of clauses stated as facts; these can stand alone without them."""
    complementizer: Names = ()
    """Subordinators that open the complement of a verb."""
    correlative: Names = ()
    """First parts of a correlative, without which the clause changes its meaning."""
    unreal: Names = ()
    """Verbs whose complement is wished for or doubted."""
    denying: Names = ()
    """Words that negate what they modify."""
    focusing: Names = ()
    """Words that stress the subordinate clause behind them ("precisely because")."""
    hypothetical: Names = ()
    """Words that mean something else, or nothing, outside a clause that is not asserted."""
    comparing: Names = ()
    """Words that open a comparison, exception or limit ("than if he leaves", "except when")."""
    exclusive: Names = ()
    """What says that nothing else holds: "not **only** did he sing", "if **only** he came"."""
    opposing: Names = ()
    """The other half of "not only", and what corrects a denied reason."""
    excepting: Names = ()
    """Behind a denied "be" what it would be without: "if it had not been **for** him"."""
    inquiring: Names = ()
    """Verbs whose clause with "if" is what is asked."""
    deciding: Names = ()
    """Words right before "if" that make its clause what is known or decided."""
    dating: Names = ()
    """Nouns right before "when" that its clause identifies."""
    demonstrating: Names = ()
    """What announces that a clause will identify a noun: "**those** days when"."""
    period: Names = ()
    """Nouns of time that measure: "two **days** before he came"."""
    measuring: Names = ()
    """Adverbs that measure time: "**long** before he came"."""
    likening: Names = ()
    """Words right before "as" that make it a comparison."""
    being: Names = ()
    """Forms of the copula, whose predicate may be fronted: "tired as he **was**"."""
    relative: Names = ()
    """Relative words; a sentence does not end in one behind a comma or preposition."""
    possessor: Names = ()
    """The relative word in front of a noun: "before **whose** door"."""
    reporting: Names = ()
    """Verbs whose object "as" stands for ("as he **said**")."""
    addressing: Names = ()
    """The same with one word behind them that is no noun ("as he **told** us", "as he **put** it",
    "as he **pointed** out")."""


class _OfLanguage(TomlTable):
    """Settings of a language in a pattern file."""

    language: str = ""
    spaces: bool = True
    """Words are separated by spaces."""
    stop: str = "."
    """Marks that end a written sentence."""
    pro_drop: bool = False
    """A finite verb needs no overt subject to be a clause."""
    frequent: Names = ()
    """Frequent words of the language, if `corpora/languages.toml` has none: a text without them is
    in another language."""
    sets: dict[Words, tuple[Words, ...]] = Field(default_factory=dict)
    properties: dict[str, Tags] = Field(default_factory=dict)
    spans: Spans = Spans()
    standalone: Standalone = Standalone()


class PatternFile(_OfLanguage):
    """The pattern table of a language, or a file's additions to it."""

    replaces: bool = False
    """The markers and connectives of the files before are left out, all of them."""
    classes: dict[Scheme, Classes] = Field(default_factory=dict)
    multiword: tuple[Multiword, ...] = ()
    pattern: tuple[Pattern, ...] = ()
    _file: TomlFile = PrivateAttr()

    @classmethod
    def read(cls, path: Path) -> PatternFile:
        """Read a file. Raises `ConfigError` with file, line, value and what was expected."""
        toml = TomlFile.read(path)
        file = cls.of(toml.table, toml.where)
        file._file = toml
        return file

    def where(self, keys: Loc = ()) -> str:
        """The place of a key: `FILE:LINE`."""
        return self._file.where(keys)

    def entries(self) -> dict[Loc, Any]:
        """The entries of the file, by keys that another file may also have.

        All rows of a marker are one entry.
        """
        tables = {"sets", "classes", "properties", "spans", "standalone", "multiword", "pattern"}
        single = self.model_fields_set - tables - {"language", "replaces"}
        entries: dict[Loc, Any] = {(key,): getattr(self, key) for key in single}
        entries |= {("sets", name): markers for name, markers in self.sets.items()}
        entries |= {("properties", name): tags for name, tags in self.properties.items()}
        parts: dict[Loc, TomlTable] = {("spans",): self.spans, ("standalone",): self.standalone}
        parts |= {("classes", scheme): classes for scheme, classes in self.classes.items()}
        for keys, part in parts.items():
            entries |= {(*keys, key): getattr(part, key) for key in part.model_fields_set}
        entries |= {("multiword", row.name): row for row in self.multiword}
        for row in self.pattern:
            entries["pattern", row.marker] = (*entries.get(("pattern", row.marker), ()), row)
        return entries

    def check(self, table: PatternTable) -> None:
        """Raise `ConfigError` for a name in the file that `table` does not define."""
        for keys, value, choices in self._names(table):
            if value not in choices:
                raise ConfigError(
                    f"{keys[-1]} = {value!r}: {nearest(value, choices)}"
                    f"choose from {', '.join(choices)}",
                    where=self.where(keys),
                )

    def _names(self, table: PatternTable) -> Iterator[tuple[Loc, str, tuple[str, ...]]]:
        """Each name of a class, property or marker: its place, the name, and the choices."""
        labels: list[tuple[Loc, Names]] = []
        for name, specs in self.classes.get(table.scheme, Classes()):
            labels.append((("classes", table.scheme, name), specs))
        labels += [(("spans", key), specs) for key, specs in self.spans]
        for number, row in enumerate(self.pattern):
            for key in PROPERTY_KEYS:
                for name in getattr(row, key):
                    yield ("pattern", number, key), name, (*table.properties, *DERIVED)
            if table.scheme in row.schemes:
                for key in (*LABEL_KEYS, *SPAN_KEYS):
                    labels.append((("pattern", number, key), getattr(row, key) or ()))
        classes = tuple(f"@{name}" for name, labels_of in table.classes if labels_of)
        for keys, specs in labels:
            for spec in specs:
                name = spec.lstrip("<>").partition("+")[0]
                if name.startswith("@"):
                    yield keys, name, classes
        for number, connective in enumerate(self.multiword):
            if connective.like:
                yield ("multiword", number, "like"), connective.like, table.markers
        for key, members in self.sets.items():
            for marker in members:
                yield ("sets", key), marker, table.choices


class PatternTable(_OfLanguage):
    """All rows of one language for one label scheme, from all its files."""

    scheme: Scheme
    classes: Classes
    multiwords: tuple[Multiword, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    """The rows of the scheme."""
    markers: Names = ()
    """All markers with rows, in this scheme or another."""
    __hash__ = object.__hash__  # `load_patterns` gives one object for the same files

    @property
    def choices(self) -> tuple[str, ...]:
        """All markers that can be selected."""
        return (*self.markers, *(word.name for word in self.multiwords if word.like))
