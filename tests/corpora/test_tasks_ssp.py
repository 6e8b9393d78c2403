"""SSP: which sections count, what is no prose, balance, that order changes nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from corpora.document import Document, Sections
from corpora.errors import InputError
from corpora.sentences import split_document
from corpora.tasks.discoeval.ssp import sections_of, why_no_prose
from tests.corpora.conftest import rows_of

PARTS = ["Abstract", "1 Introduction", "1.1 Aims", "2 Methods", "2.1 Birds", "5 Conclusions"]
LEVELS = [1, 2, 3, 2, 3, 2]


def paper(name: str, headings: list[str] = PARTS, levels: list[int] = LEVELS) -> Document:
    sections, blocks, at = Sections(), [], 0
    for number, (heading, level) in enumerate(zip(headings, levels, strict=True)):
        block = " ".join(
            f"We watched the birds of place {name} from tower {number} on day {i} of spring."
            for i in range(4)
        )
        for column, value in zip(
            (sections.level, sections.heading, sections.start, sections.end),
            (level, heading, at, at + len(block)),
            strict=True,
        ):
            column.append(value)
        blocks.append(block)
        at += len(block) + 2
    text = "\n\n".join(blocks)
    return split_document(Document(name, text, licence="CC-BY-4.0", sections=sections))


@pytest.fixture
def documents():
    return [paper(f"p{i}") for i in range(30)]


@pytest.fixture
def built(build, documents):
    def built(name="x", documents=documents, **settings):
        return build("ssp", documents, name, **settings)

    return built


def test_abstracts_and_middle_sections_are_labelled_and_nothing_else_is_taken(built):
    for split in rows_of(built()[0]).values():
        assert {(row["label"], row["section"]) for row in split} == {
            (1, "Abstract"),
            (0, "2 Methods"),
            (0, "2.1 Birds"),
        }


def test_labels_are_balanced_and_no_paper_is_in_two_splits(built):
    splits = rows_of(built()[0])
    for rows in splits.values():
        assert len(set(Counter(row["label"] for row in rows).values())) == 1
    papers = [{row["doc"] for row in rows} for rows in splits.values()]
    assert len(papers) == 3 and sum(map(len, papers)) == len(set.union(*papers))


def test_sizes_count_rows_and_what_is_missing_is_said(built):
    _, manifest = built(train=20, validation=6, test=6)
    splits = manifest["configs"]["default"]["splits"]
    assert [splits[s]["rows"] for s in ("train", "validation", "test")] == [20, 6, 6]
    _, manifest = built("small")
    assert any("train: 10,000 rows were asked for" in note for note in manifest["notes"])


def test_a_paper_needs_an_abstract_and_a_body(built, documents):
    alone = [paper("a", ["Abstract"], [1]), paper("b", ["Methods"], [2])]
    _, manifest = built(documents=[*documents, *alone])
    assert manifest["rejects"]["paper_without_abstract"] == 1
    assert manifest["rejects"]["paper_without_body"] == 1
    with pytest.raises(InputError, match="not one row"):
        built("none", documents=alone)
    with pytest.raises(InputError, match="two documents have the id"):
        built("twice", documents=[documents[0], documents[0]])


def test_a_sentence_of_both_parts_is_left_out(built, documents):
    text = "The same long sentence stands in every single part of this paper, word by word."
    same = Document(
        "same",
        f"{text}\n\n{text}",
        licence="MIT",
        sections=Sections(
            [1, 2], ["Abstract", "Methods"], [0, len(text) + 2], [len(text), 2 * len(text) + 2]
        ),
    )
    folder, manifest = built(documents=[*documents, split_document(same)])
    labels = {
        r["label"] for rows in rows_of(folder).values() for r in rows if text in r["sentence"]
    }
    assert labels <= {1} and manifest["rejects"]["exact_duplicate"] == 1


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("Abstract", "abstract"),
        ("ABSTRACT", "abstract"),
        ("Abstract.", "abstract"),
        ("3 Abstract Meaning Representation", "body"),
        ("1 Introduction", "other"),
        ("I. INTRODUCTION", "other"),
        ("1Introduction", "other"),
        ("5. Conclusions and Outlook", "other"),
        ("Concluding remarks", "other"),
        ("Acknowledgements", "other"),
        ("References", "other"),
        ("Appendix A: Proofs", "other"),
        ("", "other"),
        ("4.2 Results", "body"),
        ("Related Work", "body"),
        ("Discussion", "body"),
        ("3 Coreference Resolution", "body"),
        ("Learning from Preferences", "body"),
    ],
)
def test_what_a_section_is_follows_from_its_heading(heading, kind):
    assert {found for found, *_ in sections_of(paper("p", [heading], [2]))} == {kind}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("We watched the birds from the tower every morning in early spring.", ""),
        ("Too short a one to tell.", "sentence_too_short"),
        ("and so the birds went on to sing until the very end.", "fragment"),
        ("The birds that we watched from the tower until the very end of", "fragment"),
        ("Let the rate be r = 2 for all of the birds that we saw there.", "equation"),
        ("Then 12 of 31 in 4 by 7 with 8 and 9 are 10.", "equation"),
    ],
)
def test_equations_and_fragments_are_no_prose(text, reason):
    assert why_no_prose(text, 10, 100, 0.7) == reason


def test_what_the_rules_call_no_prose_is_rare_in_the_released_files(discorpora_data):
    """There the tokens stand apart."""
    path = discorpora_data / "discoeval" / "SSP" / "abs" / "train.txt"
    released = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    kept = [line for line in released if why_no_prose(line[1], 1, 1000, 0.7) != "equation"]
    assert len(kept) > 0.9 * len(released)


def test_what_stands_behind_the_conclusion_is_no_body(documents):
    headings = [*PARTS, "A Proof of the Theorem", "A.1 Lemmas", "Limits", "Abstract"]
    document = paper("p", headings, [*LEVELS, 2, 3, 2, 1])
    kinds = {heading: kind for kind, heading, _ in sections_of(document)}
    assert {name for name, kind in kinds.items() if kind == "body"} == {"2 Methods", "2.1 Birds"}
    assert kinds["Abstract"] == "other"  # the second one, such as a translation
    inside = paper("q", ["Abstract", "2 Inconclusive evidence", "3 Methods"], [1, 2, 2])
    assert "body" in {kind for kind, heading, _ in sections_of(inside) if "3" in heading}
    # The conclusion of one study is not the paper's.
    studies = [
        "Abstract",
        "1 First study",
        "1.1 Conclusion",
        "2 Second study",
        "3 Conclusions",
        "A",
    ]
    nested = paper("r", studies, [1, 2, 3, 2, 2, 2])
    found = {heading: kind for kind, heading, _ in sections_of(nested)}
    assert [name for name, kind in found.items() if kind == "body"] == studies[1:4:2]
