"""The mode `standalone`: which pairs of the right construction can stand alone as sentences."""

from __future__ import annotations

import pytest

from corpora.document import Document, Turns, paragraph_spans
from extract import Extractor, Pair, Reject
from extract.standalone import MARKUP, Speech
from tests.extract.trees import document


def extracted(*sentences: str, subjects: str = "own") -> tuple[list[Pair], list[str]]:
    """The pairs of some trees, and why the other candidates are none."""
    reasons: list[str] = []
    extractor = Extractor(
        "gold",
        subjects=subjects,
        min_confidence=0,
        on_reject=lambda reject: reasons.append(reject.reason),
    )
    return list(extractor.pairs([document(*sentences)])), reasons


STAYED = "We/P/nsubj/2 stayed/V!/root/0"


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        # A condition is no statement: "I stay if he sings and she dances".
        (
            "I/P/nsubj/2 stay/V!/root/0 if/SCONJ/mark/5 he/P/nsubj/5 sings/V!/advcl/2 "
            "and/CCONJ/cc/8 she/P/nsubj/8 dances/V!/conj/5",
            "s2_lost_word",
        ),
        # "Either he sings or she dances, and we sleep": one of the two.
        (
            "Either/CCONJ/cc:preconj/3 he/P/nsubj/3 sings/V!/root/0 and/CCONJ/cc/6 we/P/nsubj/6 "
            "sleep/V!/conj/3",
            "s2_lost_word",
        ),
        # What is denied or wished: "I do not think that he sang and she danced".
        (
            "I/P/nsubj/4 do/X!/aux/4 not/PART/advmod/4 think/V/root/0 he/P/nsubj/6 sang/V!/ccomp/4 "
            "and/CCONJ/cc/9 she/P/nsubj/9 danced/V!/conj/6",
            "s2_lost_word",
        ),
        (
            "I/P/nsubj/2 hope/V!/root/0 he/P/nsubj/4 sang/V!/ccomp/2 and/CCONJ/cc/7 she/P/nsubj/7 "
            "danced/V!/conj/4",
            "s2_lost_word",
        ),
        # "not because": the text says that this is no reason.
        (
            f"{STAYED} not/PART/advmod/6 because/SCONJ/mark/6 it/P/nsubj/6 rained/V!/advcl/2",
            "s1_lost_word",
        ),
        # "than if": the text compares, and does not say what S1 would say alone.
        (
            "We/P/nsubj/3 are/X!/cop/3 better/A/root/0 than/SCONJ/mark/7 if/SCONJ/mark/7 "
            "he/P/nsubj/7 sings/V!/advcl/3",
            "s1_lost_word",
        ),
        # "that she left" is no demonstrative, whatever the parser took it for.
        (
            f"{STAYED} and/CCONJ/cc/6 that/P/obj/6 she/P=PRP/nsubj/6 left/V!/conj/2",
            "s2_fragment",
        ),
        # What is remembered is not asked: "Remember when he slept because it rained?"
        (
            "Remember/V/root/0 when/R=WRB/advmod/4 he/P/nsubj/4 slept/V!/advcl/1 "
            "because/SCONJ/mark/7 it/P/nsubj/7 rained/V!/advcl/4 ?/?/punct/1",
            "s1_fragment",
        ),
        # "a place which he left, but critics say is a camp": the relative word is lost.
        (
            f"{STAYED} but/CCONJ/cc/5 critics/N/nsubj/5 say/V!/conj/2 is/X!/cop/8 a/DET/det/8 "
            "camp/N/ccomp/5",
            "s2_fragment",
        ),
        # An object does not follow its verb across another clause: it is what we watched.
        (
            "She/P/nsubj/2 shows/V!/root/0 how/R=WRB/advmod/5 he/P/nsubj/5 works/V!/ccomp/2 "
            "and/CCONJ/cc/8 we/P/nsubj/8 watched/V!/conj/5 a/DET/det/10 film/N/obj/2",
            "s2_fragment",
        ),
        # A relative clause also behind an interjection.
        (
            "Well/I/discourse/5 ,/,/punct/1 which/P=WDT/obj/5 you/P/nsubj/5 know/V!/root/0 "
            "but/CCONJ/cc/8 he/P/nsubj/8 slept/V!/conj/5",
            "s1_fragment",
        ),
        (
            f"{STAYED} and/CCONJ/cc/8 at/ADP/case/5 first/N/obl/8 when/R=WRB/advmod/8 "
            "you/P/nsubj/8 try/V!/conj/2",
            "s2_fragment",
        ),
        # "Three of which": the relative word is in the subject.
        (
            "Three/NUM/nsubj/5 of/ADP/case/3 which/P=WDT/nmod/1 were/X!/cop/5 dirty/ADJ/root/0 "
            "but/CCONJ/cc/8 he/P/nsubj/8 slept/V!/conj/5",
            "s1_fragment",
        ),
        # The bracket in front of the side ends inside it.
        (
            "If/SCONJ/mark/3 he/P/nsubj/3 asks/V!/advcl/8 (/-LRB-/punct/6 she/P/nsubj/6 "
            "hopes/V!/ccomp/8 )/-RRB-/punct/6 say/V=VB/root/0 so/R/advmod/8",
            "s1_fragment",
        ),
        # "As it has for years" compares.
        (
            f"{STAYED} as/SCONJ/mark/5 they/P/nsubj/5 have/V!/advcl/2 for/ADP/case/7 years/N/obl/5",
            "construction",
        ),
        # "What if" asks; right behind "know", "when" opens what is known.
        (
            "I/P/nsubj/2 think/V!/root/0 what/P=WP/obj/2 if/SCONJ/mark/6 he/P/nsubj/6 "
            "sleeps/V!/advcl/2",
            "construction",
        ),
        (
            "I/P/nsubj/2 know/V!/root/0 when/R=WRB/advmod/5 he/P/nsubj/5 sleeps/V!/advcl/2",
            "construction",
        ),
        # "a song which he wrote and she sang"
        (
            "It/P/nsubj/3 was/X!/cop/3 song/N/root/0 he/P/nsubj/5 wrote/V!/acl:relcl/3 "
            "and/CCONJ/cc/8 she/P/nsubj/8 sang/V!/conj/5",
            "s2_fragment",
        ),
        # "that is how he is and she was": nothing ends in an auxiliary.
        (
            f"{STAYED} because/SCONJ/mark/5 we/P/nsubj/5 had/X!/advcl/2",
            "s2_fragment",
        ),
        # A comparison, and "as" for what is said.
        (
            "He/P/nsubj/2 ran/V!/root/0 as/R/advmod/4 fast/R/advmod/2 as/SCONJ/mark/7 "
            "legs/N/nsubj/7 carried/V!/advcl/4 him/P/obj/7",
            "construction",
        ),
        (
            "He/P/nsubj/2 ran/V!/root/0 as/SCONJ/mark/5 you/P/nsubj/5 know/V!/advcl/2",
            "construction",
        ),
        # "the day when we left"
        (
            "I/P/nsubj/2 remember/V!/root/0 the/DET/det/4 day/N/obj/2 when/SCONJ/mark/7 "
            "we/P/nsubj/7 left/V!/acl:relcl/4",
            "construction",
        ),
        # "Nobody knew him then."
        (
            "He/P/nsubj/2 sang/V!/root/0 and/CCONJ/cc/5 she/P/nsubj/5 danced/V!/conj/2 "
            "then/R/advmod/5",
            "construction",
        ),
    ],
)
def test_what_cannot_stand_alone_is_refused_with_its_reason(tree: str, reason: str) -> None:
    _, reasons = extracted(f"{tree} ././punct/2")
    assert reason in reasons


def test_a_stated_fact_loses_nothing_without_its_subordinator() -> None:
    pairs, _ = extracted(
        "I/P/nsubj/2 know/V!/root/0 that/SCONJ/mark/5 he/P/nsubj/5 sang/V!/ccomp/2 and/CCONJ/cc/9 "
        "that/SCONJ/mark/9 she/P/nsubj/9 danced/V!/conj/5 ././punct/2"
    )
    assert [(pair.s1, pair.s2) for pair in pairs] == [("He sang.", "She danced.")]


def test_a_word_behind_the_subject_introduces_nothing() -> None:
    pairs, _ = extracted(
        "He/P/nsubj/4 was/X!/cop/4 to/PART/mark/4 leave/V/root/0 and/CCONJ/cc/7 we/P/nsubj/7 "
        "stayed/V!/conj/4 ././punct/4"
    )
    assert [(pair.s1, pair.s2) for pair in pairs] == [("He was to leave.", "We stayed.")]


def test_words_of_neither_side_part_a_side_from_its_marker() -> None:
    _, reasons = extracted(
        "He/P/nsubj/2 sang/V!/root/0 and/CCONJ/cc/5 she/P/nsubj/5 dancing/V/conj/2 so/R/advmod/8 "
        "we/P/nsubj/8 stayed/V!/parataxis/2 ././punct/2"
    )
    assert "apart" in reasons


def sides(*sentences: str) -> list[tuple[str, str]]:
    return [(pair.s1, pair.s2) for pair in extracted(*sentences)[0]]


def test_a_clause_without_conjunction_continues_the_last_conjunct() -> None:
    assert sides(
        "He/P/nsubj/2 sang/V!/root/0 yet/CCONJ/cc/5 she/P/nsubj/5 danced/V!/conj/2 so/R/advmod/8 "
        "we/P/nsubj/8 stayed/V!/parataxis/2 ././punct/2"
    ) == [("She danced.", "We stayed.")]


def test_a_conjunct_of_s1_lends_it_the_subject() -> None:
    assert sides(
        "He/P/nsubj/2 sat/V!/root/0 and/CCONJ/cc/4 slept/V!/conj/2 when/SCONJ/mark/7 we/P/nsubj/7 "
        "left/V!/advcl/4 ././punct/2"
    ) == [("He sat and slept.", "We left.")]


def test_a_coordinator_inside_a_side_stays() -> None:
    assert sides(
        "Towers/N/nsubj/4 and/CCONJ/cc/4 walls/N/dep/4 fell/V!/root/0 but/CCONJ/cc/7 we/P/nsubj/7 "
        "stayed/V!/conj/4"
    ) == [("Towers and walls fell.", "We stayed.")]


def test_a_subordinate_clause_gives_no_reason_for_a_question() -> None:
    answer = "Because/SCONJ/mark/3 it/P/nsubj/3 rained/V!/root/0 ././punct/3"
    _, reasons = extracted("Did/X!/aux/3 you/P/nsubj/3 stay/V/root/0 ?/./punct/3", answer)
    assert reasons == ["previous"]
    assert sides("You/P/nsubj/2 stayed/V!/root/0 ././punct/2", answer) == [
        ("You stayed.", "It rained.")
    ]


def test_what_a_dash_separates_from_the_inner_clause_is_no_part_of_s1() -> None:
    tree = (
        "We/P/nsubj/2 waited/V!/root/0 before/SCONJ/mark/5 he/P/nsubj/5 left/V!/advcl/2 "
        "—/:/punct/8 a/DET/det/8 mistake/N/obj/2 ././punct/2"
    )
    assert sides(tree) == [("We waited.", "He left.")]


def test_an_imperative_needs_no_subject() -> None:
    assert sides(
        "Close/V=VB/root/0 the/DET/det/3 gate/N/obj/1 and/CCONJ/cc/6 do/X=VB/aux/6 "
        "wait/V=VB/conj/1 here/R/advmod/6 ././punct/1"
    ) == [("Close the gate.", "Do wait here.")]
    assert sides(
        "If/SCONJ/mark/3 it/P/nsubj/3 rains/V!/advcl/4 close/V=VB/root/0 it/P/obj/4 ././punct/4"
    ) == [("Close it.", "It rains.")]
    _, reasons = extracted(  # "to close the gate and wait"
        "He/P/nsubj/2 tried/V!/root/0 to/PART/mark/4 close/V=VB/xcomp/2 gates/N/obj/4 "
        "and/CCONJ/cc/7 wait/V=VB/conj/4 here/R/advmod/7 ././punct/2"
    )
    assert reasons == ["s1_head"]
    _, reasons = extracted(  # "you can rest, then leave": it shares the "can"
        "You/P/nsubj/3 can/X!/aux/3 rest/V=VB/root/0 here/R/advmod/3 then/R/advmod/6 "
        "leave/V=VB/parataxis/3 us/P/obj/6 ././punct/3"
    )
    assert reasons == ["s2_no_clause"]


def test_a_past_tense_tagged_as_a_participle_is_finite() -> None:
    bent = "He/P/nsubj/2 sang/V!/root/0 and/CCONJ/cc/5 she/P/{}/5 bent/V=VBN/conj/2 ././punct/2"
    assert sides(bent.format("nsubj")) == [("He sang.", "She bent.")]
    assert extracted(bent.format("nsubj:pass")) == ([], ["s2_no_clause"])


def test_an_afterthought_of_s1_behind_s2_is_left_out() -> None:
    tree = (
        "He/P/nsubj/2 sang/V!/root/0 and/CCONJ/cc/5 she/P/nsubj/5 danced/V!/conj/2 {} "
        "without/ADP/case/8 shoes/N/obl/2 ././punct/2"
    )
    assert sides(tree.format(",/PUNCT/punct/8")) == [("He sang.", "She danced.")]
    # Without a mark between them it may be S2's.
    assert extracted(tree.format("twice/R/advmod/5")) == ([], ["s1_fragment"])


def test_clauses_with_that_are_joined_to_each_other() -> None:
    assert sides(
        "She/P/nsubj/2 learnt/V!/root/0 that/SCONJ/mark/5 he/P/nsubj/5 sang/V!/ccomp/2 "
        "and/CCONJ/cc/9 that/SCONJ/mark/9 we/P/nsubj/9 danced/V!/conj/2 ././punct/2"
    ) == [("He sang.", "We danced.")]


def test_a_clause_may_end_in_an_auxiliary_whose_verb_it_has() -> None:
    assert sides(
        "I/P/nsubj/2 know/V!/root/0 what/PRON/obj/2 it/P/nsubj/3 is/X!/cop/3 and/CCONJ/cc/8 "
        "we/P/nsubj/8 stayed/V!/conj/2 ././punct/2"
    ) == [("I know what it is.", "We stayed.")]


def test_neither_inside_a_clause_stays() -> None:
    assert sides(
        "He/P/nsubj/2 sang/V!/root/0 but/CCONJ/cc/7 it/P/nsubj/7 was/X!/cop/7 "
        "neither/CCONJ/cc:preconj/7 loud/A/conj/2 nor/CCONJ/cc/9 clear/A/conj/7 ././punct/2"
    ) == [("He sang.", "It was neither loud nor clear.")]


def test_neither_at_the_start_of_a_side_stays() -> None:
    """It joins the subject's conjuncts, not the clause to another."""
    assert sides(
        "He/P/nsubj/2 sang/V!/root/0 but/CCONJ/cc/8 neither/CCONJ/cc:preconj/5 Ann/PROPN/nsubj/8 "
        "nor/CCONJ/cc/7 Bo/PROPN/conj/5 slept/V!/conj/2 ././punct/2"
    ) == [("He sang.", "Neither Ann nor Bo slept.")]


def test_the_sentence_before_is_a_whole_statement() -> None:
    slept = "But/CCONJ/cc/3 we/P/nsubj/3 slept/V!/root/0 ././punct/3"
    heading = "The/DET/det/2 rain/N/nsubj/3 stopped/V!/root/0"
    assert extracted(f"{heading} ././punct/3", slept)[0]
    assert extracted(heading, slept) == ([], ["previous"])
    assert extracted(f"{heading} .[6]/./punct/3", slept)[0]
    which = "Which/PRON/nsubj/2 helped/V!/root/0 us/P/obj/2 ././punct/2"
    before = document(which, slept)
    assert before.tokens is not None
    before.tokens.feats[0] = "PronType=Int"
    reasons: list[str] = []
    extractor = Extractor("gold", on_reject=lambda reject: reasons.append(reject.reason))
    assert list(extractor.pairs([before])) == []
    assert reasons == ["previous"]


def test_any_in_a_condition_supposes_and_in_a_concession_does_not() -> None:
    found, reasons = extracted(
        f"{STAYED} if/SCONJ/mark/5 he/P/nsubj/5 had/V!/advcl/2 any/DET/det/7 time/N/obj/5"
    )
    assert not found and reasons == ["s2_lost_word"]
    concession = (
        f"{STAYED} even/R/advmod/6 though/SCONJ/mark/6 he/P/nsubj/6 had/V!/advcl/2 any/DET/det/8 "
        "time/N/obj/6"
    )
    extractor = Extractor("gold", markers=["even though"], min_confidence=0)
    assert [pair.s2 for pair in extractor.pairs([document(concession)])] == ["He had any time."]


def test_a_focus_on_the_clause_goes_with_its_marker() -> None:
    tree = f"{STAYED} precisely/R/advmod/2 because/SCONJ/mark/6 it/P/nsubj/6 rained/V!/advcl/2"
    assert [pair.s1 for pair in extracted(tree)[0]] == ["We stayed."]


def test_also_behind_a_clause_of_its_own_goes_back_to_it() -> None:
    again = (
        "If/SCONJ/mark/3 it/P/nsubj/3 rains/V!/advcl/6 we/P/nsubj/6 also/R/advmod/6 stay/V!/root/0"
    )
    found, reasons = extracted(f"{STAYED} ./PUNCT/punct/2", f"{again} ./PUNCT/punct/6")
    assert "also" not in [pair.marker for pair in found] and "previous" in reasons


@pytest.mark.parametrize("brackets", ["()", "[]"])
def test_a_sentence_in_brackets_is_no_sentence_before(brackets: str) -> None:
    aside = "{}We/P/nsubj/2 stayed/V!/root/0 .{}/PUNCT/punct/2"
    but = "But/CCONJ/cc/3 he/P/nsubj/3 left/V!/root/0 ./PUNCT/punct/3"
    found, reasons = extracted(aside.format(*brackets), but)
    assert not found and reasons == ["previous"]
    inserted = "[We]/P/nsubj/2 told/V!/root/0 [her]/P/obj/2 ./PUNCT/punct/2"
    assert len(extracted(inserted, but)[0]) == 1


def test_what_is_reported_within_a_speech_is_no_sentence_before() -> None:
    found, _ = extracted(
        "We/P/nsubj/2 must/V!/root/0 “/PUNCT/punct/4 say/V/xcomp/2 he/P/nsubj/6 sleeps/V!/ccomp/4 "
        "./PUNCT/punct/2",
        "But/CCONJ/cc/3 we/P/nsubj/3 stayed/V!/root/0 ”/PUNCT/punct/3 ./PUNCT/punct/3",
    )
    assert not found


def test_a_comma_stays_behind_what_opens_a_clause() -> None:
    tree = "{}/R/advmod/9 ,/PUNCT/punct/9 when/SCONJ/mark/5 it/P/nsubj/5 rained/V!/advcl/9 "
    tree += ",/PUNCT/punct/9 {}/P/nsubj/9 soon/R/advmod/9 left/V!/root/0"
    assert [pair.s1 for pair in extracted(tree.format("Later", "we"))[0]] == [
        "Later, we soon left."
    ]
    tree = "We/P/nsubj/8 ,/PUNCT/punct/8 when/SCONJ/mark/5 it/P/nsubj/5 rained/V!/advcl/8 "
    tree += ",/PUNCT/punct/8 soon/R/advmod/8 left/V!/root/0"
    assert [pair.s1 for pair in extracted(tree)[0]] == ["We soon left."]


def test_a_question_keeps_its_mark_on_both_sides() -> None:
    pairs, _ = extracted(
        "Why/SCONJ/advmod/4 did/X!/aux/4 he/P/nsubj/4 sing/V/root/0 and/CCONJ/cc/9 "
        "how/SCONJ/advmod/9 did/X!/aux/9 she/P/nsubj/9 dance/V/conj/4 ?/PUNCT/punct/4"
    )
    assert [(pair.s1, pair.s2) for pair in pairs] == [("Why did he sing?", "How did she dance?")]


@pytest.mark.parametrize("mark", ["!", "!!!", "?!?"])
def test_a_run_of_marks_is_kept(mark: str) -> None:
    tree = f"{STAYED} and/CCONJ/cc/5 he/P/nsubj/5 left/V!/conj/2 {mark}/PUNCT/punct/2"
    assert [pair.s2 for pair in extracted(tree)[0]] == [f"He left {mark}"]


def spoken(text: str) -> list[tuple[str, str]]:
    """The pairs that the embedded parser finds in a text."""
    pairs = Extractor(markers="but,and,then").pairs([Document(id="speech", text=text)])
    return [(pair.s1, pair.s2) for pair in pairs]


def test_the_tag_of_a_quotation_is_left_out() -> None:
    assert spoken(
        "“Your brother is a kind man,” said the old nurse, “but he forgets his friends.”"
    ) == [("Your brother is a kind man.", "He forgets his friends.")]


def test_another_speaker_or_narration_is_no_other_side() -> None:
    reply = "“The train leaves at noon.”\n\n“But the station is closed today.”"
    assert spoken(reply) == []
    narrated = "“The train leaves at noon.” And the old man closed the window."
    assert spoken(narrated) == []
    dashes = "— The train leaves at noon.\n\n— But the station is closed today."
    assert spoken(dashes) == []
    assert len(spoken(dashes.replace("— ", ""))) == 1
    same = "“The train leaves at noon. But the station is closed today.”"
    assert spoken(same) == [("The train leaves at noon.", "The station is closed today.")]


def test_a_speech_goes_on_over_a_tag_and_into_a_paragraph_that_was_not_closed() -> None:
    text = "“One,” he said, “two.\n\n“Three.” He left. “Four.”\n\n“Five.”"
    speech = Speech(text)
    assert [text[start:end].rstrip() for start, end, _ in speech.stretches] == [
        *("“One,”", "“two.", "“Three.”", "“Four.”", "“Five.”")
    ]
    assert [number for _, _, number in speech.stretches] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("‘I said, “Wait,” and he left.’ She sat.", ["‘I said, “Wait,” and he left.’"]),
        ("‘The boys’ boat,’ he said, ‘can’t float.’", ["‘The boys’ boat,’", "‘can’t float.’"]),
        ("‘Get ‘em out,’ he said. She ran.", ["‘Get ‘em out,’"]),
        ("“She said, ‘Go,’ and he left.” He sat.", ["“She said, ‘Go,’ and he left.”"]),
        ("He went.\n\n‘We sat.\n\n‘We ate.’ He left.", ["‘We sat.\n", "‘We ate.’"]),
        # An apostrophe, and quoted words in the narrator's sentence.
        ("He lost ‘is hat. She left.\n\nHe sat.", []),
        ("He called it ‘home’, and the boys’ boat a ‘ship’.", []),
    ],
)
def test_speech_in_single_marks(text: str, quoted: list[str]) -> None:
    assert [text[start:end] for start, end, _ in Speech(text).stretches] == quoted


def test_narration_and_speech_in_single_marks_are_no_pair() -> None:
    assert spoken("She closed the window. ‘But we can’t stay here,’ he said.") == []
    assert spoken("‘The road is long,’ he said. ‘But we must go.’") == [
        ("The road is long.", "We must go.")
    ]


UNCONVERTED = [
    *(
        "the <b>gate</b> is old",
        "it rained &amp; snowed",
        "it is in the [[old gate|gate]]",
    ),
    *("it is {{old}}", "the [gate](gate.html) is old", "the gate | it is old", "it is \\emph{old}"),
    *("the gate line:-1 position:50% is old", "it is <v Ann Bell>old", "it is <c.red>old"),
    *("the gate [Pg 24] is old", "it is old [Illustration: The gate]", "it isnâ€™t old"),
]


@pytest.mark.parametrize("clause", UNCONVERTED)
def test_markup_is_in_no_side(clause: str) -> None:
    results = Extractor().results_in(f"We went home, but {clause}.")
    results += Extractor().results_in("But we went home.", f"{clause[0].upper()}{clause[1:]}.")
    assert [r.reason for r in results if isinstance(r, Reject)] == ["markup", "previous"]


@pytest.mark.parametrize(
    "cue",
    [
        "00:04.500 --> 00:06.000 align:start size:80%",
        "00:04.500 --> 00:06.000 region:top",
        "0:04,5 --> 0:06,0 X1:5 Y1:9",
    ],
)
def test_the_times_and_settings_of_a_cue_are_markup(cue: str) -> None:
    marked = MARKUP.search(f"{cue}\nso we sold the boat")
    assert marked is not None and marked.end() == len(cue)
    assert Extractor(min_confidence=0).pairs_in(f"{cue}\nso we sold the boat") == []


def test_emphasis_may_end_the_sentence_before() -> None:
    assert spoken("The gate was _shut._ But the old man opened it.") == [
        ("The gate was _shut._", "The old man opened it.")
    ]


def test_a_pair_has_one_speaker() -> None:
    text = "The boat leaks.\n\nBut the sail is new.\n\nSo we bought the boat."
    for speakers, number in (("aab", 1), ("abb", 1), ("abc", 0), ("aaA", 2), (["", "a", "a"], 1)):
        spans = paragraph_spans(text)
        turns = Turns([*speakers], [0] * 3, spans.start, spans.end)
        extractor = Extractor(markers="but,so")
        assert len(list(extractor.pairs([Document(id="a", text=text, turns=turns)]))) == number
        assert extractor.reject_counts["previous"] == 2 - number


def test_a_question_at_the_end_of_a_paragraph_is_answered_by_another_speaker() -> None:
    extractor = Extractor(markers="but", min_confidence=0)
    for text, pairs in (
        ("Is the old boat safe?\n\nBut the sail is new.", 0),
        ("Is the old boat safe? But the sail is new.", 1),
        ("The old boat leaks.\n\nBut the sail is new.", 1),
    ):
        assert len(list(extractor.pairs([Document(id="a", text=text)]))) == pairs


def test_a_sentence_that_a_page_breaks_gives_no_side() -> None:
    for head, pairs in (("THE GATE 17", 0), ("The rain was over.", 1)):
        text = f"The gate was old, but he went\n\n{head}\n\nhome and slept."
        assert len(list(Extractor().pairs([Document(id="a", text=text)]))) == pairs


def test_emphasis_comparisons_and_notes_are_no_markup() -> None:
    text = (
        "The **gate** is _old_, he wrote <we saw it>, but [he] lies if a<b and b>c; R&D; e.g. {x}"
    )
    assert MARKUP.search(text) is None


def test_a_text_in_another_language_gives_no_pairs() -> None:
    german = (
        "Der Hund lief über die Straße, so dass der Wagen bremsen musste. So kam es, dass sie den "
        "Zug verpasste und am Ende zu Fuß ging. So ist das Leben, so geht es immer weiter."
    )
    extractor = Extractor()
    assert list(extractor.pairs([Document(id="german", text=german)])) == []
    assert set(extractor.reject_counts) == {"language"}


def test_a_pair_has_the_language_of_the_table_that_made_it() -> None:
    text = "The rain stopped and the sun came out."
    (pair,) = Extractor().pairs([Document(id="a", text=text, language="de")])
    assert pair.language == "en"


def test_a_shared_subject_is_copied_where_the_tree_is_sure() -> None:
    shared = (
        "The/DET/det/2 old/A/nsubj/4 will/X!/aux/4 come/V/root/0 in/ADP/case/6 time/N/obl/4 "
        "and/CCONJ/cc/8 sing/V/conj/4 songs/N/obj/8"
    )
    (pair,) = extracted(shared, subjects="restored")[0]
    assert (pair.s2, pair.s2_added) == ("The old will sing songs.", "The old will")
    text = "The old will come in time and sing songs"
    assert [text[start:end] for start, end in pair.s2_spans] == ["sing songs"]
    assert extracted(shared, subjects="own") == ([], ["s2_no_clause"])
    there = shared.replace("old/A/nsubj/4", "old/A/expl/4")
    assert extracted(there, subjects="restored") == ([], ["s2_no_clause"])
    question = (
        "Did/X!/aux/3 he/P/nsubj/3 come/V/root/0 late/R/advmod/3 and/CCONJ/cc/6 sing/V/conj/3 "
        "songs/N/obj/6 ?/PUNCT/punct/3"
    )
    assert extracted(question, subjects="restored") == ([], ["s2_no_clause"])


def test_a_denial_is_not_copied() -> None:
    denied = (
        "He/P/nsubj/4 did/X!/aux/4 not/PART/advmod/4 come/V/root/0 late/R/advmod/4 and/CCONJ/cc/7 "
        "sing/V/conj/4 songs/N/obj/7"
    )
    assert extracted(denied, subjects="restored") == ([], ["s2_no_clause"])


def test_quoted_words_in_a_sentence_are_no_speech() -> None:
    assert Speech("He called it “home” and left.").stretches == []
    assert len(Speech("He cried “Stop! Go home.” and left.").stretches) == 1


def test_a_straight_mark_behind_a_word_opens_no_quotation() -> None:
    assert Speech('The pipe is 12" wide. He left.').stretches == []
    assert Speech('"Yes." He left.').stretches == [(0, 6, 1)]


def test_what_a_colon_announces_is_not_left_behind() -> None:
    _, reasons = extracted(
        "He/P/nsubj/2 smiled/V!/root/0 and/CCONJ/cc/5 she/P/nsubj/5 said/V!/conj/2 :/PUNCT/punct/5"
    )
    assert reasons == ["s2_fragment"]
    whole, _ = extracted(
        "He/P/nsubj/2 smiled/V!/root/0 and/CCONJ/cc/5 she/P/nsubj/5 said/V!/conj/2 :/PUNCT/punct/7 "
        "come/V/ccomp/5 ././punct/2"
    )
    assert [pair.s2 for pair in whole] == ["She said : come."]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (
            "We stayed at home even though the sun was shining.",
            [("though", "even though", "We stayed at home.", "The sun was shining.")],
        ),
        (
            "If the snow melts this week, then we will open the pass.",
            [("if", "If then", "We will open the pass.", "The snow melts this week.")],
        ),
        ("We will open the pass even if it snows.", []),
    ],
)
def test_a_modified_form_is_labelled_as_its_marker(
    text: str, pairs: list[tuple[str, str, str, str]]
) -> None:
    found = [
        (p.marker, " ".join(text[a:b] for a, b in p.marker_spans), p.s1, p.s2)
        for p in Extractor(min_confidence=0).pairs_in(text)
    ]
    assert found == pairs
    assert Extractor(mode="recall").pairs_in(text) == []


def test_a_modified_form_that_is_asked_for_keeps_its_name() -> None:
    text = "We stayed at home even though the sun was shining."
    pairs = Extractor(markers="all15,even though", min_confidence=0).pairs_in(text)
    assert [pair.marker for pair in pairs] == ["even though"]


def test_a_sentence_too_long_to_parse_is_no_s1() -> None:
    monster = f"He walked {'on and ' * 300}on."
    for before in ("", "She saw him because he waved. "):
        extractor = Extractor()
        text = f"{before}{monster} But he came to the house. She was glad. They all went home."
        assert "but" not in {pair.marker for pair in extractor.pairs([Document("d", text)])}
        assert extractor.reject_counts["previous"] == 1


@pytest.mark.parametrize("mark", ["?", "!"])
def test_the_last_sentence_of_an_unclosed_quotation_keeps_its_mark(mark: str) -> None:
    text = f"“Was he late{mark}\n\n“But he came to the house.”\n\nShe saw him."
    (pair,) = Extractor().pairs([Document("d", text)])
    assert pair.s1 == f"Was he late{mark}"


def test_a_root_labelled_as_an_object_has_no_governor() -> None:
    before = (
        "Birds/N/nsubj/2 sang/V!/root/0 all/DET/det/4 day/N/obl/2 long/R/advmod/4 here/R/advmod/2"
    )
    tree = "I/P/nsubj/5 and/CCONJ/cc/4 she/P/nsubj/4 sang/V!/conj/5 left/V!/obj/0"
    assert extracted(before, tree) == ([], ["s1_fragment"])
