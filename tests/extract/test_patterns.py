"""Pattern tables: they load, their rows are documented, and an error names file and row."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corpora.document import Document
from corpora.errors import ConfigError, InputError
from extract import Extractor, Reject
from extract import patterns as module
from extract.patterns import load_patterns, patterns_hash, resolve_markers, table_languages
from tests.extract.trees import document

ROW = """
[[pattern]]
id = "as.manner"
marker = "as"
deprels = ["mark"]
comment = "c"
example = "e"
"""
BASE = '[classes.ud]\nsubject = ["nsubj"]\n'


@pytest.mark.parametrize("language", table_languages())
def test_every_row_has_a_reason_and_an_example_with_its_marker(language: str) -> None:
    table = load_patterns(language, "ud")
    assert table.language == language and table.patterns
    for row in table.patterns:
        assert len(row.comment) > 5, row.id
        words = [re.escape(w) for w in row.marker.split()]
        assert re.search(" ".join(words), row.example, re.IGNORECASE), row.id


def test_the_patterns_of_the_paper_are_a_shipped_file() -> None:
    names, language = resolve_markers("all15"), load_patterns("en")
    for scheme in ("ud", "clear"):
        table = load_patterns("en", scheme, ["dissent2019"])
        assert {*table.markers} == {*names} and not table.multiwords
        assert {row.marker for row in table.patterns} == {*names}
    assert load_patterns("en") is language and language.multiwords
    extractor = Extractor(mode="recall", patterns="dissent2019")
    for row in load_patterns("en", "ud", ["dissent2019"]).patterns:
        pairs = list(extractor.pairs([Document(id="d", text=row.example)]))
        # The embedded parser, of UD v2, has no `mark` of a root, and `acl` for no clause of time.
        if row.id not in ("dissent2019.so.previous", "dissent2019.after.noun"):
            assert row.id in {pair.pattern for pair in pairs}, row.id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He ran so that he would not be late.", []),  # the marker has a dependent
        ("He came early because we had asked.", [("because", "He came early.", "We had asked.")]),
        (
            "The dog slept while the soup boiled, and she read a book.",
            [
                ("while", "The dog slept and she read a book.", "The soup boiled."),
                ("and", "The dog slept while the soup boiled.", "She read a book."),
            ],
        ),
        (
            "If it rains, the ferry also stops.",
            [
                ("if", "The ferry also stops.", "It rains."),
                ("also", "It rains.", "The ferry stops."),
            ],
        ),
    ],
)
def test_pairs_by_the_patterns_of_the_paper(text: str, expected: list[Any]) -> None:
    pairs = Extractor(mode="recall", patterns="dissent2019").pairs([Document(id="d", text=text)])
    assert [(pair.marker, pair.s1, pair.s2) for pair in pairs] == expected


def test_the_sets_of_the_paper() -> None:
    assert len(resolve_markers("all15")) == 15
    assert set(resolve_markers("books5")) == {"and", "but", "because", "if", "when"}
    assert set(resolve_markers("books8")) == {*resolve_markers("books5"), "before", "so", "though"}


def test_markers_may_be_named_one_by_one() -> None:
    assert resolve_markers("Because, for  example,because") == ("because", "for example")
    assert resolve_markers("if ... then") == ("if ... then",)


def test_the_marker_that_the_docs_add_is_one(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "extraction.md"
    _, added = re.findall(
        r"```toml\n(\[\[pattern\]\].*?)```", page.read_text(encoding="utf-8"), re.S
    )
    (tmp_path / "mine.toml").write_text(added, encoding="utf-8")
    table = load_patterns("en", files=[tmp_path / "mine.toml"])
    assert table.markers[-1] == "whereas" and table.patterns[-1].id == "whereas.subordinate"


def test_sets_and_markers_may_be_named_together() -> None:
    assert resolve_markers("books5, however,and") == (*resolve_markers("books5"), "however")
    assert resolve_markers(["however", "books5"]) == ("however", *resolve_markers("books5"))


@pytest.mark.parametrize(
    ("markers", "language", "said"),
    [
        ("becuase", "en", "did you mean 'because'"),
        ("books9", "en", "did you mean 'books"),
        ("", "en", "no marker given"),
        ("and", "xx", "no patterns for language 'xx'"),
    ],
)
def test_an_unknown_marker_is_an_error_with_a_suggestion(
    markers: str, language: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        resolve_markers(markers, language)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BASE + ROW + 'direktion = "left"\n', r"t\.toml:10: unknown key 'pattern\.0\.direktion'"),
        (BASE + ROW + 's1 = "parents"\n', r"toml:10: .*s1 = 'parents': did you mean 'parent'"),
        (
            BASE + ROW + 's2_needs = ["clauses"]\n',
            r"toml:10: s2_needs = 'clauses': did you mean 'c",
        ),
        (
            BASE + ROW.replace('marker = "as"', ""),
            r"toml:4: the key 'pattern\.0\.marker' is missing",
        ),
        (
            BASE + ROW.replace("deprels", "deprel"),
            r"toml:7: unknown key 'pattern\.0\.deprel'; did you mean 'deprels'",
        ),
        (
            BASE + '[[multiword]]\nword = "as if"\n',
            r"toml:4: unknown key 'multiword\.0\.word'; did you mean 'words'",
        ),
        (
            BASE + ROW.replace('"as"', '""'),
            r"toml:6: pattern\.0\.marker = ''.*at least 1 character",
        ),
        (BASE + ROW.replace('"as"', '" "'), r"toml:6: pattern\.0\.marker = ' ': String should m"),
        (BASE + ROW + ROW, r"t\.toml: two patterns have the id 'as\.manner'"),
        (ROW, r"t\.toml: no \[classes\.ud\]"),
        ("[[pattern]\n", r"t\.toml: not valid TOML"),
        (BASE + '[[multiword]]\nwords = "as if"\nlike = "as"\n', "toml:5: like = 'as': "),
        (BASE + "[spans]\ns3_drop = []\n", r"toml:4: unknown key 'spans\.s3_drop'"),
        (BASE + ROW + 's1_drop = ["conj+verbs"]\n', "toml:10: .*'conj.verbs': expected a label"),
        (
            BASE + "subject = 3\n".replace("subject", "core"),
            r"classes\.ud\.core = 3: expected a text",
        ),
        (BASE + 'subjekt = ["x"]\n', r"unknown key 'classes\.ud\.subjekt'; did you mean 'subject'"),
        (BASE + 'core = ["@subjects"]\n', r"core = '@subjects': did you mean '@subject'"),
        (BASE + ROW + 'climb = ["@clausal"]\n', r"climb = '@clausal': choose from @sub"),
        (BASE + ROW + "climb = [3]\n", r"pattern\.0\.climb\.0 = 3: expected a text in quotes"),
        (BASE + ROW + 's2 = "complement"\n', "s2 = 'complement' needs s2_deprels"),
        ('spaces = "nein"\n' + BASE, r"toml:1: spaces = 'nein': expected true or false"),
        (
            BASE + '[properties.verb]\npos = ["VERB"]\n',
            r"'properties\.verb\.pos'; did you mean 'xp",
        ),
        (
            BASE + '[[multiword]]\nlike = "as"\n',
            r"toml:3: the key 'multiword\.0\.words' is missing",
        ),
        (
            BASE + "[[multiword]]\nwords = 3\n",
            r"multiword\.0\.words = 3: expected a text in quotes",
        ),
        (BASE + '[sets]\nall = ["as", "like"]\n' + ROW, r"toml:4: all = 'like': choose from as"),
        ("pattern = 3\n" + BASE, "toml:1: pattern = 3: expected a table"),
        ('language = "es"\n' + BASE, "toml:1: language = 'es': this is the table of 'xx'"),
    ],
)
def test_a_bad_key_is_an_error_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_patterns("xx", files=[tmp_path / "t.toml"])


LEFT = "He/P/nsubj/2 left/V!/root/0"
TABLE = """
[classes.ud]
subject = ["nsubj"]
[properties.verb]
upos = ["VERB"]
[properties.finite_tag]
feats = ["VerbForm=Fin"]
[[pattern]]
id = "because.own"
marker = "because"
deprels = ["mark"]
comment = "c"
example = "e"
"""


@pytest.mark.parametrize(
    ("keys", "clause", "found"),
    [
        ('not_before = ["of"]', "because/SCONJ/mark/5 he/P/nsubj/5 ran/V!/advcl/2", "He ran."),
        (
            'not_before = ["of"]',
            "because/SCONJ/mark/5 of/ADP/dep/5 ran/V!/advcl/2",
            "marker_relation",
        ),
        ('s2_lacks = ["finite"]', "because/SCONJ/mark/4 running/V/advcl/2", "Running."),
        ('s2_lacks = ["finite"]', "because/SCONJ/mark/4 ran/V!/advcl/2", "s2_head"),
        ('s1_lacks = ["subject"]', "because/SCONJ/mark/4 ran/V!/advcl/2", "s1_head"),
        ('s1_lacks = ["copula"]', "because/SCONJ/mark/4 ran/V!/advcl/2", "Ran."),
        ('place = "before"', "because/SCONJ/mark/4 ran/V!/advcl/2", "Ran."),
        ('place = "before"', "ran/V!/advcl/2 because/SCONJ/mark/3", "marker_place"),
        ('place = "after"', "ran/V!/advcl/2 because/SCONJ/mark/3", "Ran."),
        ('place = "after"', "because/SCONJ/mark/4 ran/V!/advcl/2", "marker_place"),
        ('s2 = "self"', "because/SCONJ/mark/2 she/P/nsubj/3 fast/R/advmod/3", "She fast."),
    ],
)
def test_a_key_of_a_row_does_what_the_docs_say(
    keys: str, clause: str, found: str, tmp_path: Path
) -> None:
    (tmp_path / "t.toml").write_text(f"{TABLE}{keys}\n", encoding="utf-8")
    rejects: list[Reject] = []
    extractor = Extractor(
        "gold", "because", "recall", "xx", patterns=tmp_path / "t.toml", on_reject=rejects.append
    )
    pairs = list(extractor.pairs([document(f"{LEFT} {clause}")]))
    assert [pair.s2 for pair in pairs] + [reject.reason for reject in rejects] == [found]


MINE = """
[sets]
mine = ["whereas", "because"]
[[multiword]]
words = "not least because"
like = "because"
[[pattern]]
id = "whereas.subordinate"
marker = "whereas"
deprels = ["mark"]
s2_deprels = ["advcl"]
comment = "A contrast."
example = "The valley was dry, whereas the hills were green."
[[pattern]]
id = "because.mine"
marker = "because"
deprels = ["cc"]
comment = "Another one."
example = "It was dry because of it."
"""
SENTENCE = f"{LEFT} whereas/SCONJ/mark/5 she/P/nsubj/5 stayed/V!/advcl/2"


def test_a_file_of_the_user_adds_markers_and_replaces_rows(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    files = [str(tmp_path / "mine.toml")]
    table = load_patterns("en", files=files)
    assert [row.id for row in table.patterns if row.marker == "because"] == ["because.mine"]
    assert table.markers[-1] == "whereas" and table.spaces
    assert resolve_markers("mine,not least because", files=files) == (
        *("whereas", "because"),
        "not least because",
    )
    assert load_patterns("en").markers == table.markers[:-1]
    (pair,) = Extractor("gold", "mine", "recall", patterns=files).pairs([document(SENTENCE)])
    assert (pair.marker, pair.s1, pair.s2) == ("whereas", "He left.", "She stayed.")
    assert pair.pattern == "whereas.subordinate"
    because = f"{LEFT} because/SCONJ/mark/5 she/P/nsubj/5 stayed/V!/advcl/2"
    extractor = Extractor("gold", "mine", "recall", patterns=files)
    assert not list(extractor.pairs([document(because)]))
    assert extractor.reject_counts == {"marker_relation": 1}


def test_a_marker_may_be_written_with_capitals_and_any_apostrophe(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[sets]\nMine = ["Whereas", "’Cause"]\n'
        + ROW.replace("as", "Whereas")
        + ROW.replace('"as"', '"’Cause"').replace("as.manner", "cause"),
        encoding="utf-8",
    )
    both = ("whereas", "'cause")
    assert resolve_markers("Mine", files=[file]) == both
    assert resolve_markers("WHEREAS,’cause", files=[file]) == both
    text = "We left. They ate. We stayed ’cause it rained. She slept. We stayed 'cause it rained."
    extractor = Extractor(markers="'cause", mode="recall", patterns=file)
    found = len(list(extractor.pairs([Document("d", text)])))
    assert found + extractor.reject_counts.total() == 2


def test_a_row_with_the_id_of_another_marker_is_an_error_of_the_users_file(tmp_path: Path) -> None:
    row = ROW.replace("as.manner", "as.modifier").replace('"as"', '"like"')
    (tmp_path / "mine.toml").write_text(row, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml: two patterns have the id 'as\.modifier'"):
        load_patterns("en", files=[tmp_path / "mine.toml"])


def test_a_changed_file_is_read_again_and_changes_the_hash(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE, encoding="utf-8")
    before = patterns_hash("en", [file])
    assert load_patterns("en", files=[file]).markers[-1] == "whereas"
    file.write_text(MINE.replace('"whereas"', '"whilst"'), encoding="utf-8")
    os.utime(file, ns=(1, 1))
    assert load_patterns("en", files=[file]).markers[-1] == "whilst"
    assert len({before, patterns_hash("en", [file]), patterns_hash("en")}) == 3
    assert patterns_hash("en", []) == patterns_hash("en") != patterns_hash("es")


def test_a_language_may_come_from_a_file_alone(tmp_path: Path) -> None:
    (tmp_path / "nl.toml").write_text(f'language = "nl"\n{TABLE}', encoding="utf-8")
    assert resolve_markers("all", "nl", [tmp_path / "nl.toml"]) == ("because",)
    with pytest.raises(ConfigError, match="choose from en, es, zh"):
        load_patterns("nl")
    with pytest.raises(InputError, match=r"no-such\.toml: no such pattern file"):
        load_patterns("nl", files=[tmp_path / "no-such.toml"])


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs packages with a pattern file each, as `pip` would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(name: str, table: str, value: str = "") -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "more.toml").write_text(table, encoding="utf-8")
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n", encoding="utf-8")
        entry = f"[discorpora.patterns]\nen = {value or f'{name}:more.toml'}\n"
        (about / "entry_points.txt").write_text(entry, encoding="utf-8")
        module._plugins.cache_clear()

    yield add
    module._plugins.cache_clear()
    for folder in tmp_path.iterdir():
        sys.modules.pop(folder.name, None)


WHEREAS = MINE[MINE.index("[[pattern]]") : MINE.rindex("[[pattern]]")]


def test_a_plugin_adds_markers(install: Callable[..., None]) -> None:
    shipped = patterns_hash("en")
    install("contrasts", WHEREAS)
    assert load_patterns("en").markers[-1] == "whereas" and patterns_hash("en") != shipped
    assert [p.marker for p in Extractor("gold", "all", "recall").pairs([document(SENTENCE)])] == [
        "whereas"
    ]
    assert "whereas" not in load_patterns("es").markers


@pytest.mark.parametrize(
    ("table", "value", "said"),
    [
        (
            WHEREAS,
            "",
            r"second.more\.toml: pattern whereas is in another pattern table.*first.more",
        ),
        (
            MINE.replace("whereas", "whilst"),
            "",
            r"second.*: pattern because is in.*patterns.en\.toml",
        ),
        (WHEREAS, "second:less.toml", r"entry point en = 'second:less\.toml'.*: no file"),
        (WHEREAS, "third:more.toml", "entry point en = 'third:more.toml'.*cannot be imported"),
        (WHEREAS, "second", "expected .PACKAGE:FILE"),
    ],
)
def test_a_plugin_that_does_not_fit_is_an_error(
    table: str, value: str, said: str, install: Callable[..., None]
) -> None:
    install("first", WHEREAS)
    install("second", table, value)
    with pytest.raises(ConfigError, match=re.compile(said, re.S)):
        load_patterns("en")


@pytest.mark.slow
def test_a_users_patterns_reach_the_worker_processes(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    text = "The valley was dry, whereas the hills were green."
    extractor = Extractor(markers="mine", mode="recall", patterns=tmp_path / "mine.toml", workers=2)
    assert [p.marker for p in extractor.pairs([Document(id="d", text=text)])] == ["whereas"]


@pytest.mark.slow
def test_the_embedded_parser_finds_the_markers_of_most_examples() -> None:
    table = load_patterns("en", "ud")
    extractor = Extractor(markers=table.markers, mode="recall")
    documents = [Document(id=row.id, text=row.example) for row in table.patterns]
    found = {(pair.doc, pair.marker) for pair in extractor.pairs(documents)}
    hits = sum((row.id, row.marker) in found for row in table.patterns)
    assert hits >= 0.75 * len(table.patterns)
