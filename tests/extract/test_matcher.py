"""The matcher on trees written by hand: which words are markers, and what they join."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.document import Document, Spans, Tokens, Turns
from extract import Extractor, Pair, Reject
from tests.extract.trees import document


def asked(subjects: str) -> dict[str, Any]:
    """The settings of the mode `recall`, or of `standalone` with `subjects`."""
    chosen = {"mode": "standalone", "subjects": subjects} if subjects else {"mode": "recall"}
    return {**chosen, "min_confidence": 0.0}


def pairs(*sentences: str, markers: str = "all15", subjects: str = "") -> list[Pair]:
    return list(Extractor("gold", markers, **asked(subjects)).pairs([document(*sentences)]))


def rejects(*sentences: str, markers: str = "all15", subjects: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    extractor = Extractor(
        *("gold", markers),
        on_reject=lambda r: found.__setitem__(r.marker, r.reason),
        **asked(subjects),
    )
    list(extractor.pairs([document(*sentences)]))
    return found


def test_a_subordinate_clause_may_come_first() -> None:
    (pair,) = pairs(
        "Although/SCONJ/mark/4 it/P/nsubj/4 had/X!/aux/4 rained/V/advcl/8 ,/PUNCT/punct/4 "
        "the/DET/det/7 roads/N/nsubj/8 dried/V!/root/0 ././punct/8"
    )
    assert (pair.marker, pair.order, pair.position) == ("although", "s2_first", "same_sentence")
    assert (pair.s1, pair.s2) == ("The roads dried.", "It had rained.")
    assert pair.has_clauses


def test_a_clause_of_time_in_front_stays_outside_another_one() -> None:
    found = pairs(
        "When/R/advmod/3 he/P/nsubj/3 came/V!/advcl/6 ,/PUNCT/punct/3 she/P/nsubj/6 "
        "sang/V!/root/0 while/SCONJ/mark/9 we/P/nsubj/9 cooked/V!/advcl/6 ././punct/6"
    )
    assert [(p.marker, p.s1, p.s2) for p in found] == [
        ("when", "She sang while we cooked.", "He came."),
        ("while", "She sang.", "We cooked."),
    ]


def test_s1_is_the_conjunct_before() -> None:
    found = pairs(
        "He/P/nsubj/2 sang/V!/root/0 ,/PUNCT/punct/5 she/P/nsubj/5 danced/V!/conj/2 and/CCONJ/cc/8 "
        "we/P/nsubj/8 slept/V!/conj/2 ././punct/2"
    )
    assert [(p.s1, p.s2) for p in found] == [("She danced.", "We slept.")]


def test_the_word_that_introduces_a_clause_is_in_its_span_but_not_in_its_text() -> None:
    source = (
        "I/P/nsubj/2 know/V!/root/0 that/SCONJ/mark/5 he/P/nsubj/5 sang/V!/ccomp/2 and/CCONJ/cc/9 "
        "that/SCONJ/mark/9 she/P/nsubj/9 danced/V!/conj/5"
    )
    (pair,) = pairs(source)
    assert (pair.s1, pair.s2) == ("He sang.", "She danced.")
    text = document(source).text
    assert [text[a:b] for a, b in pair.s1_spans] == ["that he sang"]
    assert [text[a:b] for a, b in pair.s2_spans] == ["that she danced"]


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ("read/V!/root/0 letters/N/obj/2 and/CCONJ/cc/5 wrote/V!/conj/2 verse/N/obj/5", True),
        ("peeled/V!/root/0 and/CCONJ/cc/4 chopped/V!/conj/2 onions/N/obj/2", False),
    ],
)
def test_verb_phrases_are_joined_but_not_verbs_that_share_an_object(
    second: str, found: bool
) -> None:
    assert bool(pairs(f"He/P/nsubj/2 {second}")) is found


def test_nouns_are_not_clauses() -> None:
    assert rejects("Cats/N/nsubj/4 and/CCONJ/cc/3 dogs/N/conj/1 slept/V!/root/0") == {
        "and": "s2_head"
    }


def test_a_coordinator_at_the_start_looks_back_whole_sentence() -> None:
    (pair,) = pairs(
        "She/P/nsubj/2 called/V!/root/0 ././punct/2",
        "But/CCONJ/cc/4 nobody/P/nsubj/4 ever/R/advmod/4 came/V!/root/0 ././punct/4",
    )
    assert (pair.position, pair.order) == ("previous_sentence", "s1_first")
    assert (pair.s1, pair.s2, pair.has_clauses) == ("She called.", "Nobody ever came.", True)


def test_nothing_stands_before_the_first_sentence() -> None:
    assert rejects("But/CCONJ/cc/3 nobody/P/nsubj/3 came/V!/root/0") == {"but": "s1_head"}


def test_so_is_a_marker_at_the_edge_of_its_clause_only() -> None:
    before = "It/P/nsubj/2 snowed/V!/root/0"
    edge = pairs(before, "So/R/advmod/3 we/P/nsubj/3 stayed/V!/root/0")
    assert [(p.s1, p.s2) for p in edge] == [("It snowed.", "We stayed.")]
    assert rejects(before, "We/P/nsubj/4 were/X!/cop/4 so/R/advmod/4 cold/A/root/0") == {
        "so": "marker_place"
    }


def test_so_in_an_adverbial_clause_behind_its_governor_stays_in_the_sentence() -> None:
    before = "It/P/nsubj/2 snowed/V!/root/0"
    (result,) = pairs(
        before, "She/P/nsubj/2 slept/V!/root/0 so/R/advmod/5 we/P/nsubj/5 left/V!/advcl/2"
    )
    assert (result.s1, result.s2) == ("She slept.", "We left.")
    (opening,) = pairs(
        before, "So/R/advmod/3 we/P/nsubj/3 stayed/V!/advcl/5 she/P/nsubj/5 slept/V!/root/0"
    )
    assert (opening.position, opening.s1) == ("previous_sentence", "It snowed.")


def test_several_words_are_not_taken_for_one_of_them() -> None:
    source = (
        "He/P/nsubj/2 swam/V!/root/0 even/R/advmod/6 though/SCONJ/mark/6 it/P/nsubj/6 "
        "rained/V!/advcl/2"
    )
    assert rejects(source) == {"even though": "multiword"}
    (pair,) = pairs(source, markers="even though")
    assert (pair.marker, pair.s1, pair.s2) == ("even though", "He swam.", "It rained.")


def test_if_then_is_one_connective_in_two_places() -> None:
    source = (
        "If/SCONJ/mark/3 it/P/nsubj/3 rains/V!/advcl/7 ,/PUNCT/punct/3 then/R/advmod/7 "
        "we/P/nsubj/7 stay/V!/root/0"
    )
    assert rejects(source) == {"if ... then": "multiword"}
    (pair,) = pairs(source, markers="if ... then,if,then")
    assert (pair.marker, pair.marker_spans) == ("if ... then", ((0, 2), (14, 18)))
    assert (pair.s1, pair.s2) == ("We stay.", "It rains.")


def test_every_occurrence_of_a_marker_counts() -> None:
    found = pairs(
        "He/P/nsubj/2 left/V!/root/0 because/SCONJ/mark/5 she/P/nsubj/5 slept/V!/advcl/2 "
        "because/SCONJ/mark/8 it/P/nsubj/8 rained/V!/advcl/5"
    )
    assert [(p.s1, p.s2) for p in found] == [
        ("He left.", "She slept because it rained."),
        ("She slept.", "It rained."),
    ]


def test_standing_alone_wants_a_finite_verb_and_a_subject_on_both_sides() -> None:
    source = "After/SCONJ/mark/2 eating/V/advcl/4 he/P/nsubj/4 slept/V!/root/0"
    (pair,) = pairs(source)
    assert not pair.has_clauses
    assert rejects(source, subjects="shared") == {"after": "s2_no_clause"}


def test_a_subject_may_be_shared_but_not_only_meant() -> None:
    shared = (
        "It/P/nsubj:pass/3 was/X!/aux:pass/3 written/V/root/0 in/ADP/case/5 ink/N/obl/3 "
        "and/CCONJ/cc/7 sealed/V/conj/3 by/ADP/case/9 hand/N/obl/7"
    )
    (pair,) = pairs(shared, subjects="shared")
    assert (pair.s1, pair.s2, pair.has_clauses) == (
        *("It was written in ink.", "Sealed by hand."),
        True,
    )
    assert rejects(shared, subjects="own") == {"and": "s2_no_clause"}
    meant = "Open/V/root/0 it/P/obj/1 and/CCONJ/cc/4 read/V/conj/1 it/P/obj/4"
    assert rejects(meant, subjects="shared") == {"and": "s1_no_clause"}


def test_a_clause_whose_verb_is_left_out_is_one() -> None:
    (pair,) = pairs(
        "Ann/N/nsubj/2 won/V!/root/0 gold/N/obj/2 and/CCONJ/cc/5 Tom/N/conj/2 silver/N/orphan/5"
    )
    assert (pair.s1, pair.s2) == ("Ann won gold.", "Tom silver.")
    assert rejects("Ann/N/nsubj/2 met/V!/root/0 Sue/N/obj/2 and/CCONJ/cc/5 Tom/N/conj/3") == {
        "and": "s2_head"
    }


def test_a_clause_joins_the_whole_clause_before_it_not_its_last_predicate() -> None:
    chain = (
        "He/P/nsubj/3 never/R/advmod/3 called/V!/root/0 or/CCONJ/cc/5 wrote/V!/conj/3 "
        "but/CCONJ/cc/{n} {s2}"
    )
    source = chain.format(n=8, s2="we/P/nsubj/8 waited/V!/conj/3")
    (pair,) = pairs(source, markers="but")
    assert (pair.s1, pair.s2) == ("He never called or wrote.", "We waited.")
    # Without a subject of its own S2 is a further predicate of the list.
    source = chain.format(n=7, s2="sent/V!/conj/3 money/N/obj/7")
    (pair,) = pairs(source, markers="but")
    assert (pair.s1, pair.s2) == ("Wrote.", "Sent money.")


def test_what_shares_no_subject_is_a_first_part_of_its_own() -> None:
    (pair,) = pairs(
        "He/P/nsubj/2 left/V!/root/0 ,/PUNCT/punct/4 wait/V/conj/2 and/CCONJ/cc/7 you/P/nsubj/7 "
        "see/V!/conj/2"
    )
    assert (pair.s1, pair.s2) == ("Wait.", "You see.")


def test_a_clause_before_with_its_own_subject_stays_the_first_part() -> None:
    (pair,) = pairs(
        "Ann/N/nsubj/2 sang/V!/root/0 ,/PUNCT/punct/5 Tom/N/nsubj/5 danced/V!/conj/2 "
        "but/CCONJ/cc/8 Sue/N/nsubj/8 slept/V!/conj/2"
    )
    assert (pair.s1, pair.s2) == ("Tom danced.", "Sue slept.")


def test_words_hung_on_the_marker_from_behind_are_the_beginning_of_s2() -> None:
    (pair,) = pairs(
        "He/P/nsubj/2 slept/V!/root/0 but/CCONJ/cc/8 at/ADP/case/5 last/ADJ/dep/3 the/DET/det/7 "
        "dog/N/nsubj/8 barked/V!/conj/2"
    )
    assert (pair.s1, pair.s2) == ("He slept.", "At last the dog barked.")


def test_a_comma_under_another_label_is_still_no_word() -> None:
    (pair,) = pairs(
        "He/P/nsubj/2 slept/V!/root/0 ,/X/dep/2 but/CCONJ/cc/6 she/P/nsubj/6 read/V!/conj/2"
    )
    assert (pair.s1, pair.s2) == ("He slept.", "She read.")


def test_verbs_side_by_side_are_one_event_but_not_in_a_list() -> None:
    two = "They/P/nsubj/2 peeled/V!/root/0 and/CCONJ/cc/4 chopped/V!/conj/2 onions/N/obj/2"
    assert rejects(two) == {"and": "s1_head"}
    (pair,) = pairs(
        "They/P/nsubj/2 washed/V!/root/0 ,/PUNCT/punct/4 peeled/V!/conj/2 and/CCONJ/cc/6 "
        "chopped/V!/conj/2 onions/N/obj/6"
    )
    assert (pair.s1, pair.s2) == ("Peeled.", "Chopped onions.")


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("laughed/V!", "left/V!/conj/2 rooms/N/obj/4", True),
        ("hesitated/V!", "went/V!/conj/2 home/N/obl/4", True),
        ("laughed/V!", "left/V!/conj/2 rooms/N/obj/2", False),
        ("laughed/V!", "left/V!/conj/2", False),
        ("laughed/V!", "leave/V/conj/2 rooms/N/obj/4", False),
        ("laugh/V", "left/V!/conj/2 rooms/N/obj/4", False),
    ],
)
def test_finite_verbs_side_by_side_are_two_events_if_the_second_has_its_own_complement(
    first: str, second: str, found: bool
) -> None:
    assert bool(pairs(f"He/P/nsubj/2 {first}/root/0 and/CCONJ/cc/4 {second}")) is found


def test_markers_of_two_words() -> None:
    (pair,) = pairs(
        "Birds/N/nsubj/3 are/X!/cop/3 clever/A/root/0 ././punct/3",
        "Crows/N/nsubj/6 ,/PUNCT/punct/4 for/ADP/case/4 example/N/obl/6 ,/PUNCT/punct/4 "
        "use/V!/root/0 tools/N/obj/6 ././punct/6",
        markers="for example",
    )
    assert (pair.s1, pair.s2) == ("Birds are clever.", "Crows use tools.")


def test_non_projective_trees_are_matched() -> None:
    (pair,) = pairs(
        "News/N/nsubj/2 came/V!/root/0 today/R/advmod/2 because/SCONJ/mark/6 it/P/nsubj/6 "
        "rained/V!/advcl/2 of/ADP/case/8 floods/N/nmod/1 ././punct/2"
    )
    assert (pair.s1, pair.s2) == ("News came today of floods.", "It rained.")


def test_a_sentence_of_2000_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    # A chain as deep as it is long; in blocks and at once the same comes out.
    links = (
        f"and/CCONJ/cc/{i + 1} he/P/nsubj/{i + 2} ran/V!/conj/{i - 1}" for i in range(3, 2000, 3)
    )
    source = "He/P/nsubj/2 ran/V!/root/0 " + " ".join(links)
    found = pairs(source)
    assert len(found) == 666
    monkeypatch.setattr("extract.clauses.TOKENS_AT_ONCE", 1 << 30)
    assert pairs(source) == found


RAIN = "It/P/nsubj/2 rained/V!/root/0"


@pytest.mark.parametrize(
    ("clause", "marker", "said"),
    [
        ("right/R/advmod/6 after/SCONJ/mark/6 he/P/nsubj/6 left/V!/advcl/2", "after", "He left."),
        ("just/R/advmod/6 when/R/advmod/6 he/P/nsubj/6 left/V!/advcl/2", "when", "He left."),
        (
            "three/NUM/nummod/4 days/N/obl:unmarked/7 after/SCONJ/mark/7 he/P/nsubj/7 "
            "left/V!/advcl/2",
            "after",
            "He left.",
        ),
        (
            "but/CCONJ/cc/7 only/R/advmod/7 if/SCONJ/mark/7 he/P/nsubj/7 left/V!/conj/2",
            "but",
            "He left.",
        ),
        (
            "but/CCONJ/cc/7 not/PART/advmod/7 that/SCONJ/mark/7 it/P/nsubj/7 snowed/V!/conj/2",
            "but",
            "Not it snowed.",
        ),
        (
            "because/SCONJ/mark/6 then/R/advmod/6 he/P/nsubj/6 left/V!/advcl/2",
            "because",
            "Then he left.",
        ),
    ],
)
def test_what_modifies_a_subordinator_is_in_the_span_but_not_in_the_text(
    clause: str, marker: str, said: str
) -> None:
    source = f"{RAIN} {clause}"
    (pair,) = pairs(source, markers=marker)
    assert (pair.s1, pair.s2) == ("It rained.", said)
    text = document(source).text
    words = [word for a, b in pair.s2_spans for word in text[a:b].split()]
    marked = {word for a, b in pair.marker_spans for word in text[a:b].split()}
    assert words == [word for word in text.split()[2:] if word not in marked]


def test_a_subordinator_inside_a_clause_takes_nothing_from_it() -> None:
    (pair,) = pairs(
        f"{RAIN} and/CCONJ/cc/9 it/P/nsubj:outer/9 is/X!/cop/9 just/R/advmod/9 "
        "because/SCONJ/mark/9 he/P/nsubj/9 left/V!/conj/2",
        markers="and",
    )
    assert pair.s2 == "It is just because he left."


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            "If/SCONJ/mark/5 not/R/advmod/3 all/DET/det/4 members/N/nsubj/5 agree/V!/advcl/8 "
            "the/DET/det/7 vote/N/nsubj/8 fails/V!/root/0",
            [("The vote fails.", "Not all members agree.")],
        ),
        (
            "If/SCONJ/mark/5 so/R/advmod/3 many/A/amod/4 people/N/nsubj/5 come/V!/advcl/7 "
            "we/P/nsubj/7 leave/V!/root/0",
            [("We leave.", "So many people come.")],
        ),
        ("If/SCONJ/mark/2 not/R/advcl/4 we/P/nsubj/4 leave/V!/root/0", []),
        ("Many/A/nsubj/5 if/SCONJ/mark/4 not/R/advmod/4 all/DET/advcl/1 left/V!/root/0", []),
    ],
)
def test_if_so_and_if_not_are_clauses_of_their_own(
    source: str, found: list[tuple[str, str]]
) -> None:
    assert [(p.s1, p.s2) for p in pairs(source, markers="if")] == found


def test_because_of_course_is_because() -> None:
    course = (
        f"{RAIN} because/SCONJ/mark/7 of/ADP/advmod/7 course/N/fixed/4 we/P/nsubj/7 sang/V!/advcl/2"
    )
    (pair,) = pairs(course)
    assert (pair.marker, pair.s2) == ("because", "Of course we sang.")
    cause = f"{RAIN} because/ADP/case/5 of/ADP/fixed/3 winds/N/obl/2"
    assert rejects(cause) == {"because of": "multiword"}


def test_see_also_is_a_reference() -> None:
    see = f"{RAIN} ;/PUNCT/punct/2 see/V/parataxis/2 also/R/advmod/4 Table/N/obj/4 3/N/nummod/6"
    assert rejects(see, markers="also") == {"see also": "multiword"}
    seen = f"{RAIN} ;/PUNCT/punct/2 we/P/nsubj/6 also/R/advmod/6 saw/V!/parataxis/2 hail/N/obj/6"
    assert [pair.s2 for pair in pairs(seen, markers="also")] == ["We saw hail."]


def test_still_inside_a_conjunct_is_an_adverb_of_time() -> None:
    inside = f"{RAIN} and/CCONJ/cc/7 he/P/nsubj/7 is/X!/cop/7 still/R/advmod/7 asleep/A/conj/2"
    assert rejects(inside, markers="still") == {"still": "marker_place"}
    (pair,) = pairs(
        f"{RAIN} and/CCONJ/cc/6 still/R/advmod/6 he/P/nsubj/6 sang/V!/conj/2", markers="still"
    )
    assert (pair.s1, pair.s2) == ("It rained.", "He sang.")


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ("So/R/advmod/2 do/V!/root/0 I/P/nsubj/2", ("so do", "multiword")),
        ("So/R/advmod/2 did/V!/root/0 his/P/nmod:poss/4 brother/N/obj/2", ("so did", "multiword")),
        ("So/R/advmod/2 can/X!/root/0 he/P/nsubj/2", ("so", "marker_place")),
        ("So/R/advmod/4 was/X!/cop/1 she/P/nsubj/4 asleep/A/root/0", ("so", "marker_place")),
        ("So/R/advmod/4 is/X!/aux/4 he/P/nsubj/4 coming/V/root/0 ?/PUNCT/punct/4", None),
        ("So/R/advmod/4 do/X!/aux/4 you/P/nsubj/4 sing/V/root/0 ?/PUNCT/punct/4", None),
        ("So/R/advmod/4 never/R/advmod/4 did/X!/aux/4 sing/V/root/0 he/P/nsubj/4", None),
        ("So/R/advmod/3 we/P/nsubj/3 stayed/V!/root/0", None),
        ("So/R/advmod/2 stay/V!/root/0 here/R/advmod/2", None),
    ],
)
def test_so_for_what_another_does_is_no_marker(second: str, reason: tuple[str, str] | None) -> None:
    assert bool(pairs(RAIN, second, markers="so")) is (reason is None)
    assert rejects(RAIN, second, markers="so") == dict([reason] if reason else [])


def test_a_word_belongs_to_one_candidate() -> None:
    source = (
        "Even/R/advmod/4 if/SCONJ/mark/4 it/P/nsubj/4 rains/V!/advcl/8 ,/PUNCT/punct/4 "
        "then/R/advmod/8 we/P/nsubj/8 go/V!/root/0"
    )
    (pair,) = pairs(source, markers="even if,if ... then")
    assert pair.marker == "if ... then"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".NET is here But we left", ".NET is here."),
        ("-5 is cold But we left", "-5 is cold."),
        ("- He left But we left", "He left."),
        ("...he is left But we left", "He is left."),
        ("—he is left But we left", "He is left."),
    ],
)
def test_a_mark_that_opens_a_word_of_the_sentence_before_stays(text: str, said: str) -> None:
    first = text.partition(" But")[0].split()
    before = " ".join(f"{w}/N/{'root/0' if i == 0 else 'dep/1'}" for i, w in enumerate(first))
    (pair,) = pairs(before, "But/CCONJ/cc/3 we/P/nsubj/3 left/V!/root/0", markers="but")
    assert pair.s1 == said


def test_a_subordinator_behind_subject_or_copula_stays_in_the_text() -> None:
    (pair,) = pairs(
        "The/DET/det/2 plan/N/nsubj/5 was/X!/cop/5 to/PART/mark/5 leave/V/root/0 "
        "because/SCONJ/mark/8 it/P/nsubj/8 rained/V!/advcl/5"
    )
    assert (pair.s1, pair.s2) == ("The plan was to leave.", "It rained.")
    (pair,) = pairs(
        "He/P/nsubj/2 sang/V!/root/0 and/CCONJ/cc/8 the/DET/det/5 fact/N/nsubj/8 is/X!/cop/8 "
        "that/SCONJ/mark/8 danced/V!/conj/2 she/P/nsubj/8"
    )
    assert pair.s2 == "The fact is that danced she."


def test_the_last_mark_goes_to_the_clause_that_it_stands_behind() -> None:
    (pair,) = pairs(
        "I/P/nsubj/2 called/V!/root/0 ,/PUNCT/punct/7 but/CCONJ/cc/7 did/X!/aux/7 he/P/nsubj/7 "
        "answer/V/conj/2 ?/PUNCT/punct/2"
    )
    assert (pair.s1, pair.s2) == ("I called.", "Did he answer ?")
    (pair,) = pairs(
        "Did/X!/aux/3 he/P/nsubj/3 call/V/root/0 and/CCONJ/cc/7 did/X!/aux/7 she/P/nsubj/7 "
        "answer/V/conj/3 ?/PUNCT/punct/3"
    )
    assert (pair.s1, pair.s2) == ("Did he call?", "Did she answer.")
    (pair,) = pairs(
        "Why/R/advmod/4 should/X!/aux/4 I/P/nsubj/4 bother/V/root/0 when/R/advmod/8 he/P/nsubj/8 "
        "can/X!/aux/8 sing/V/advcl/4 ?/PUNCT/punct/4"
    )
    assert (pair.s1, pair.s2) == ("Why should I bother?", "He can sing.")


def test_a_conjunct_is_finite_by_an_auxiliary_that_it_shares() -> None:
    shared = (
        "She/P/nsubj/3 may/X!/aux/3 come/V/root/0 soon/R/advmod/3 and/CCONJ/cc/6 sing/V/conj/3 "
        "songs/N/obj/6"
    )
    assert len(pairs(shared, subjects="shared")) == 1
    bare = "She/P/nsubj/2 came/V!/root/0 soon/R/advmod/2 and/CCONJ/cc/5 sing/V/conj/2 songs/N/obj/5"
    assert len(pairs(bare)) == 1
    assert rejects(bare, subjects="shared") == {"and": "s2_no_clause"}
    plural = document(bare.replace("She", "They").replace("came/V!", "come/V!"))
    assert plural.tokens is not None
    plural.tokens.xpos[1], plural.tokens.xpos[4] = "VBP", "VB"  # they look alike
    assert len(list(Extractor("gold", subjects="shared").pairs([plural]))) == 1
    infinitive = (
        "She/P/nsubj/3 may/X!/aux/3 come/V/root/0 soon/R/advmod/3 and/CCONJ/cc/7 to/PART/mark/7 "
        "sing/V/conj/3"
    )
    assert rejects(infinitive, subjects="shared") == {"and": "s2_no_clause"}


def test_a_fragment_opens_with_its_subordinator() -> None:
    before = "He/P/nsubj/2 stayed/V!/root/0 ././punct/2"
    opens = "Because/SCONJ/mark/3 it/P/nsubj/3 rained/V!/root/0 ././punct/3"
    (pair,) = pairs(before, opens)
    assert (pair.s1, pair.s2) == ("He stayed.", "It rained.")
    inside = (
        "This/P/nsubj/5 is/X!/cop/5 because/SCONJ/mark/5 it/P/nsubj/5 rained/V!/root/0 ././punct/5"
    )
    assert not pairs(before, inside, markers="because")


def test_the_rows_of_a_correlative_look_at_the_part_that_it_is_like() -> None:
    sentence = (
        "Not/PART/advmod/2 only/R/advmod/5 did/X!/aux/5 it/P/nsubj/5 rain/V/root/0 "
        ",/PUNCT/punct/10 but/CCONJ/cc/10 the/DET/det/9 wind/N/nsubj/10 blew/V!/conj/5 ././punct/5"
    )
    (pair,) = pairs(sentence, markers="not only ... but")
    assert pair.marker == "not only ... but"
    assert (pair.s1, pair.s2) == ("Did it rain.", "The wind blew.")
    assert pair.marker_spans == ((0, 8), (23, 26))


def test_a_turn_does_not_go_on_from_another_conversation() -> None:
    log = document(
        "It/P/nsubj/2 works/V!/root/0 ././punct/2",
        "But/CCONJ/cc/3 mine/P/nsubj/3 broke/V!/root/0 ././punct/3",
    )
    spans = log.sentences
    assert spans is not None
    for talks, expected in (((1, 2), 0), ((1, 1), 1), ((-1, 2), 1)):
        log.turns = Turns(["a", "b"], list(talks), list(spans.start), list(spans.end))
        assert len(list(Extractor("gold", mode="recall").pairs([log]))) == expected


# Whatever the tree: the matcher ends, spans lie in the text, S1 and S2 never overlap.

MARKERS = ("and", "but", "if", "then", "so", "because", "when", "for example", "if ... then")
WORDS = [
    "and", "but", "if", "then", "so", "that", "even", "though", "when", "as", "well", "not", "only",
    "also", "because", "he", "runs", "tree", ",", "(", "”", ".", "?", "for", "example",
    "שלום", "👍🏽",
]  # fmt: skip
LABELS = [
    "root", "nsubj", "cc", "conj", "mark", "advmod", "advcl", "acl:relcl", "parataxis", "xcomp",
    "punct", "cop", "aux", "discourse", "obl", "ccomp", "orphan", "never:seen",
]  # fmt: skip
TAGS = ["VERB", "NOUN", "AUX", "PUNCT", "ADV", ""]


@st.composite
def trees(draw: st.DrawFn) -> Document:
    """A document of random sentences: any labels, any heads without a cycle, shared spans."""
    tokens, spans, parts, position = Tokens(), Spans(), [], 0
    for _ in range(draw(st.integers(1, 4))):
        base, begin = len(tokens), position
        size = draw(st.integers(1, 14))
        order = draw(st.permutations(range(size)))
        for place in range(size):
            rank = order.index(place)
            parent = draw(st.integers(-1, rank - 1)) if rank else -1
            tokens.head.append(base + order[parent] if parent >= 0 else -1)
            form = draw(st.sampled_from(WORDS))
            if place and draw(st.integers(0, 9)) == 0:
                tokens.start.append(tokens.start[-1])
                tokens.end.append(tokens.end[-1])
            else:
                tokens.start.append(position)
                tokens.end.append(position + len(form))
                parts.append(form)
                position += len(form) + 1
            tokens.form.append(form)
            tokens.upos.append(draw(st.sampled_from(TAGS)))
            tokens.xpos.append("")
            tokens.feats.append(draw(st.sampled_from(["", "VerbForm=Fin|Tense=Past"])))
            tokens.deprel.append(draw(st.sampled_from(LABELS)))
        tokens.offsets.append(len(tokens))
        spans.add(begin, position - 1)
    return Document(id="random", text=" ".join(parts), tokens=tokens, sentences=spans)


@cache
def one_extractor(subjects: str) -> Extractor:
    """One for all examples: its tables are compiled once."""
    return Extractor("gold", MARKERS, **asked(subjects))


@settings(max_examples=150, deadline=None)
@given(trees(), st.sampled_from(["", "shared", "own"]))
def test_the_matcher_is_total(document: Document, subjects: str) -> None:
    candidates = {f.lower() for f in document.tokens.form} & {"and", "if", "because", "when"}
    rejects: list[Reject] = []
    extractor = one_extractor(subjects)
    extractor.on_reject = rejects.append
    pairs = list(extractor.pairs([document]))
    assert not candidates or pairs or rejects
    for pair in pairs:
        inside = {}
        for name in ("marker_spans", "s1_spans", "s2_spans"):
            spans = getattr(pair, name)
            assert spans
            assert all(0 <= a < b <= len(document.text) for a, b in spans)
            assert list(spans) == sorted(spans)
            inside[name] = {i for a, b in spans for i in range(a, b)}
        assert not inside["s1_spans"] & inside["s2_spans"]
        assert not inside["s2_spans"] & inside["marker_spans"]
        assert pair.s1 and pair.s2
