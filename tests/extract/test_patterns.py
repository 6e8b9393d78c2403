"""Pattern tables: they load, their rows are documented, and an error names file and row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from corpora.errors import ConfigError
from extract import Extractor, Reject
from extract.patterns import load_patterns, read_table, resolve_markers, table_languages
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


def test_the_sets_of_the_paper() -> None:
    assert len(resolve_markers("all15")) == 15
    assert set(resolve_markers("books5")) == {"and", "but", "because", "if", "when"}
    assert set(resolve_markers("books8")) == {*resolve_markers("books5"), "before", "so", "though"}


def test_markers_may_be_named_one_by_one() -> None:
    assert resolve_markers("Because, for  example,because") == ("because", "for example")
    assert resolve_markers("if ... then") == ("if ... then",)


def test_the_marker_that_the_docs_add_is_one() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "extraction.md").read_text(encoding="utf-8")
    (added,) = re.findall(r"```toml\n(\[\[pattern\]\].*?)```", page, re.S)
    whole = (root / "extract" / "patterns" / "en.toml").read_text(encoding="utf-8")
    table = read_table(f"{whole}\n{added}", "en.toml", "ud")
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
        (BASE + ROW + 'direktion = "left"\n', r"t\.toml, pattern 1 \(as\.manner\): unknown key"),
        (BASE + ROW + 's1 = "parents"\n', r"pattern 1 .*s1 = 'parents'; did you mean 'parent'"),
        (BASE + ROW + 's2_needs = ["clauses"]\n', r"s2_needs = 'clauses'; did you mean 'clause'"),
        (BASE + ROW.replace('marker = "as"', ""), "the key 'marker' is missing"),
        (BASE + ROW + 's2_deprels = "advcl"\n', "s2_deprels = 'advcl' is no list"),
        (BASE + ROW + ROW, r"t\.toml: two patterns have the id 'as\.manner'"),
        (ROW, r"t\.toml: no \[classes\.ud\]"),
        ("[[pattern]\n", r"t\.toml: not valid TOML"),
        (BASE + '[[multiword]]\nwords = "as if"\nlike = "as"\n', "like = 'as' has no pattern"),
        (BASE + "[spans]\ns3_drop = []\n", r"\[spans\]: unknown key 's3_drop'"),
        (BASE + ROW + 's1_drop = ["conj+verbs"]\n', "conj.verbs"),
        (BASE.replace('["nsubj"]', '"nsubj"'), r"classes\.ud\]: subject = 'nsubj' is no list"),
        (BASE + 'subjekt = ["x"]\n', r"unknown key 'subjekt'; did you mean 'subject'"),
        (BASE + 'core = ["@subjects"]\n', r"core = '@subjects'; did you mean '@subject'"),
        (
            BASE + ROW + 'climb = ["@clausal"]\n',
            r"as\.manner: climb = '@clausal'; choose from @sub",
        ),
        (BASE + ROW + "climb = [3]\n", "climb holds 3, no string"),
        (BASE + ROW + 's2 = "complement"\n', "s2 = 'complement' needs s2_deprels"),
        ('spaces = "no"\n' + BASE, "spaces = 'no' is no boolean"),
        (BASE + '[properties.verb]\nupos = "VERB"\n', r"properties\.verb\]: upos = 'VERB' is no"),
        (BASE + '[properties.verb]\npos = ["VERB"]\n', "unknown key 'pos'; did you mean 'xpos'"),
        (BASE + '[[multiword]]\nlike = "as"\n', "multiword None: the key 'words' is missing"),
        (BASE + "[[multiword]]\nwords = 3\n", "words = 3 is no string"),
        (
            BASE + '[sets]\nall = ["as", "like"]\n' + ROW,
            r"\[sets\]: all holds 'like', which has no",
        ),
        ("pattern = 3\n" + BASE, "pattern = 3 is no list"),
    ],
)
def test_a_bad_row_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_table(text, "t.toml", "ud")


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
    keys: str, clause: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = read_table(f"{TABLE}{keys}\n", "t.toml", "ud")
    for module in ("patterns", "extractor"):
        monkeypatch.setattr(f"extract.{module}.load_patterns", lambda *_: table)
    rejects: list[Reject] = []
    extractor = Extractor("gold", "because", on_reject=rejects.append)
    pairs = list(extractor.pairs([document(f"{LEFT} {clause}")]))
    assert [pair.s2 for pair in pairs] + [reject.reason for reject in rejects] == [found]
