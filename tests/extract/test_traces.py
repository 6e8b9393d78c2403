"""Traces of a larger construction, without which a side says something else."""

from __future__ import annotations

import pytest

from extract.text import written
from tests.extract.test_standalone import extracted


@pytest.mark.parametrize(
    ("tree", "outcome"),
    [
        # "If" for "whether": behind "ask" or "matter", or with "or not"; and a condition.
        (
            "They/P=PRP/nsubj/2 asked/V=VBD/root/0 the/DET=DT/det/5 old/A=JJ/amod/5 "
            "sailor/N=NN/iobj/2 if/SCONJ=IN/mark/10 the/DET=DT/det/8 harbour/N=NN/nsubj/10 "
            "was/X=VBD/cop/10 safe/A=JJ/advcl/2 ./PUNCT/punct/2",
            "construction",
        ),
        (
            "He/P=PRP/nsubj/2 wondered/V=VBD/root/0 aloud/R=RB/advmod/2 if/SCONJ=IN/mark/8 "
            "the/DET=DT/det/6 lamp/N=NN/nsubj/8 would/X=MD/aux/8 last/V=VB/advcl/2 "
            "./PUNCT/punct/2",
            "construction",
        ),
        (
            "It/P=PRP/nsubj/4 does/X=VBZ/aux/4 not/PART=RB/advmod/4 matter/V=VB/root/0 "
            "if/SCONJ=IN/mark/8 the/DET=DT/det/7 roof/N=NN/nsubj/8 leaks/V=VBZ/advcl/4 "
            "./PUNCT/punct/4",
            "construction",
        ),
        (
            "We/P=PRP/nsubj/2 leave/V=VBP/root/0 if/SCONJ=IN/mark/5 it/P=PRP/nsubj/5 "
            "rains/V=VBZ/advcl/2 or/CCONJ=CC/cc/7 not/PART=RB/conj/5 ./PUNCT/punct/2",
            "construction",
        ),
        (
            "I/P=PRP/nsubj/3 would/X=MD/aux/3 ask/V=VB/root/0 it/P=PRP/obj/3 of/ADP=IN/case/6 "
            "you/P=PRP/obl/3 if/SCONJ=IN/mark/9 I/P=PRP/nsubj/9 had/V=VBD/advcl/3 a/DET=DT/det/11 "
            "friend/N=NN/obj/9 ./PUNCT/punct/3",
            "I would ask it of you. | I had a friend.",
        ),
        (
            "I/P=PRP/nsubj/3 will/X=MD/aux/3 tell/V=VB/root/0 them/P=PRP/iobj/3 "
            "if/SCONJ=IN/mark/8 the/DET=DT/det/7 boat/N=NN/nsubj/8 comes/V=VBZ/advcl/3 "
            "./PUNCT/punct/3",
            "I will tell them. | The boat comes.",
        ),
        # "As" for what is said, or behind the predicate of its clause; and at the same time.
        (
            "The/DET=DT/det/2 harbour/N=NN/nsubj/10 ,/PUNCT/punct/2 as/SCONJ=IN/mark/6 "
            "Martin/PROPN=NNP/nsubj/6 put/V=VBD/advcl/10 it/P=PRP/obj/6 ,/PUNCT/punct/6 "
            "was/X=VBD/cop/10 empty/A=JJ/root/0 ./PUNCT/punct/10",
            "construction",
        ),
        (
            "The/DET=DT/det/2 bill/N=NN/nsubj/11 ,/PUNCT/punct/8 as/SCONJ=IN/mark/8 "
            "the/DET=DT/det/6 lawyer/N=NN/nsubj/8 had/X=VBD/aux/8 warned/V=VBN/advcl/11 "
            "them/P=PRP/iobj/8 ,/PUNCT/punct/8 came/V=VBD/root/0 to/ADP=IN/case/13 "
            "nothing/P=NN/obl/11 ./PUNCT/punct/11",
            "construction",
        ),
        (
            "The/DET=DT/det/2 house/N=NN/nsubj/4 was/X=VBD/cop/4 empty/A=JJ/root/0 "
            ",/PUNCT/punct/9 as/SCONJ=IN/mark/9 I/P=PRP/nsubj/9 had/X=VBD/aux/9 "
            "feared/V=VBN/advcl/4 it/P=PRP/nsubj/12 would/X=MD/aux/12 be/V=VB/ccomp/9 "
            "./PUNCT/punct/4",
            "construction",
        ),
        (
            "Tired/A=JJ/advcl/7 as/SCONJ=IN/mark/4 he/P=PRP/nsubj/4 was/V=VBD/advcl/1 "
            ",/PUNCT/punct/1 he/P=PRP/nsubj/7 walked/V=VBD/root/0 on/R=RB/advmod/7 "
            "./PUNCT/punct/7",
            "construction",
        ),
        (
            "He/P=PRP/nsubj/2 laughed/V=VBD/root/0 as/SCONJ=IN/mark/5 she/P=PRP/nsubj/5 "
            "put/V=VBD/advcl/2 the/DET=DT/det/7 lamp/N=NN/obj/5 down/ADP=RP/compound:prt/5 "
            "./PUNCT/punct/2",
            "He laughed. | She put the lamp down.",
        ),
        (
            "She/P=PRP/nsubj/2 told/V=VBD/root/0 him/P=PRP/iobj/2 the/DET=DT/det/5 "
            "story/N=NN/obj/2 as/SCONJ=IN/mark/8 they/P=PRP/nsubj/8 walked/V=VBD/advcl/2 "
            "home/R=RB/advmod/8 ./PUNCT/punct/2",
            "She told him the story. | They walked home.",
        ),
        # What is supposed, excepted or left open; and a plural, a denied event, a possibility.
        (
            "He/P=PRP/nsubj/2 laughed/V=VBD/root/0 as/SCONJ=IN/mark/8 though/SCONJ=IN/mark/8 "
            "it/P=PRP/nsubj/8 were/X=VBD/cop/8 a/DET=DT/det/8 joke/N=NN/advcl/2 "
            "and/CCONJ=CC/cc/12 they/P=PRP/nsubj/12 were/X=VBD/cop/12 friends/N=NNS/conj/8 "
            "./PUNCT/punct/2",
            "s2_lost_word",
        ),
        (
            "If/SCONJ=IN/mark/8 it/P=PRP/nsubj/8 had/X=VBD/aux/8 not/PART=RB/advmod/8 "
            "been/X=VBN/cop/8 for/ADP=IN/case/8 the/DET=DT/det/8 storm/N=NN/advcl/13 "
            ",/PUNCT/punct/8 we/P=PRP/nsubj/13 would/X=MD/aux/13 have/X=VB/aux/13 "
            "arrived/V=VBN/root/0 ./PUNCT/punct/13",
            "s2_lost_word",
        ),
        (
            "When/R=WRB/advmod/3 anybody/P=NN/nsubj/3 called/V=VBD/advcl/7 ,/PUNCT/punct/3 "
            "the/DET=DT/det/6 dog/N=NN/nsubj/7 barked/V=VBD/root/0 ./PUNCT/punct/7",
            "s2_lost_word",
        ),
        (
            "Not/PART=RB/advmod/5 only/R=RB/advmod/5 did/X=VBD/aux/5 he/P=PRP/nsubj/5 "
            "lose/V=VB/root/0 the/DET=DT/det/7 key/N=NN/obj/5 ,/PUNCT/punct/11 he/P=PRP/nsubj/11 "
            "also/R=RB/advmod/11 forgot/V=VBD/parataxis/5 the/DET=DT/det/13 address/N=NN/obj/11 "
            "./PUNCT/punct/5",
            "s1_lost_word",
        ),
        (
            "He/P=PRP/nsubj/3 was/X=VBD/cop/3 calm/A=JJ/root/0 ,/PUNCT/punct/9 "
            "except/SCONJ=IN/mark/9 when/R=WRB/advmod/9 the/DET=DT/det/8 dog/N=NN/nsubj/9 "
            "barked/V=VBD/advcl/3 ./PUNCT/punct/3",
            "s1_lost_word",
        ),
        (
            "She/P=PRP/nsubj/5 was/X=VBD/cop/5 never/R=RB/advmod/5 so/R=RB/advmod/5 "
            "pale/A=JJ/root/0 as/SCONJ=IN/mark/10 when/R=WRB/advmod/10 the/DET=DT/det/9 "
            "bell/N=NN/nsubj/10 rang/V=VBD/advcl/5 ./PUNCT/punct/5",
            "s1_lost_word",
        ),
        (
            "If/SCONJ=IN/mark/5 it/P=PRP/nsubj/5 had/X=VBD/aux/5 not/PART=RB/advmod/5 "
            "rained/V=VBN/advcl/13 for/ADP=IN/case/7 days/N=NNS/obl/5 ,/PUNCT/punct/5 "
            "the/DET=DT/det/10 well/N=NN/nsubj/13 would/X=MD/aux/13 be/X=VB/cop/13 "
            "full/A=JJ/root/0 ./PUNCT/punct/13",
            "The well would be full. | It had not rained for days.",
        ),
        (
            "She/P=PRP/nsubj/2 smiled/V=VBD/root/0 when/R=WRB/advmod/6 anybody/P=NN/nsubj/6 "
            "could/X=MD/aux/6 see/V=VB/advcl/2 her/P=PRP/obj/6 ./PUNCT/punct/2",
            "She smiled. | Anybody could see her.",
        ),
        (
            "He/P=PRP/nsubj/2 lost/V=VBD/root/0 not/PART=RB/advmod/6 only/R=RB/advmod/6 "
            "the/DET=DT/det/6 key/N=NN/obj/2 but/CCONJ=CC/cc/10 also/R=RB/advmod/10 "
            "the/DET=DT/det/10 ring/N=NN/conj/6 ,/PUNCT/punct/14 and/CCONJ=CC/cc/14 "
            "she/P=PRP/nsubj/14 laughed/V=VBD/conj/2 ./PUNCT/punct/2",
            "He lost not only the key but also the ring. | She laughed.",
        ),
        # A side that ends in a relative word or conjunction; and in a demonstrative.
        (
            "He/P=PRP/nsubj/2 built/V=VBD/root/0 a/DET=DT/det/4 mill/N=NN/obj/2 ,/PUNCT/punct/6 "
            "which/P=WDT/nsubj/13 ,/PUNCT/punct/6 when/R=WRB/advmod/11 the/DET=DT/det/10 "
            "wind/N=NN/nsubj/11 blew/V=VBD/advcl/13 ,/PUNCT/punct/11 sang/V=VBD/acl:relcl/4 "
            "./PUNCT/punct/2",
            "s1_fragment",
        ),
        (
            "They/P=PRP/nsubj/2 stayed/V=VBD!/root/0 that/SCONJ=IN/advmod/2 "
            "because/SCONJ=IN/mark/6 it/P=PRP/nsubj/6 rained/V=VBD!/advcl/2",
            "s1_fragment",
        ),
        (
            "They/P=PRP/nsubj/2 stayed/V=VBD!/root/0 and/CCONJ=CC/dep/2 because/SCONJ=IN/mark/6 "
            "it/P=PRP/nsubj/6 rained/V=VBD!/advcl/2",
            "s1_fragment",
        ),
        (
            "We/P=PRP/nsubj/3 are/X=VBP/cop/3 sorry/A=JJ/root/0 for/ADP=IN/case/5 that/P=DT/obl/3 "
            "because/SCONJ=IN/mark/9 you/P=PRP/nsubj/9 were/X=VBD/cop/9 kind/A=JJ/advcl/3 "
            "./PUNCT/punct/3",
            "We are sorry for that. | You were kind.",
        ),
        # What modifies the marker goes with it; what measures or counts in the clause stays.
        (
            "The/DET=DT/det/2 sun/N=NN/nsubj/4 had/X=VBD/aux/4 set/V=VBN/root/0 "
            "long/R=RB/advmod/4 before/SCONJ=IN/mark/9 the/DET=DT/det/8 riders/N=NNS/nsubj/9 "
            "came/V=VBD/advcl/4 ./PUNCT/punct/4",
            "The sun had set. | The riders came.",
        ),
        (
            "He/P=PRP/nsubj/2 rang/V=VBD!/root/0 half/DET=PDT/det:predet/5 an/DET=DT/det/5 "
            "hour/N=NN/obl:unmarked/2 after/SCONJ=IN/mark/9 we/P=PRP/nsubj/9 had/X=VBD!/aux/9 "
            "left/V=VBN/advcl/2",
            "He rang. | We had left.",
        ),
        (
            "We/P=PRP/nsubj/3 would/X=MD/aux/3 stay/V=VB/root/0 if/SCONJ=IN/mark/9 "
            "only/R=RB/advmod/7 the/DET=DT/det/7 rain/N=NN/nsubj/9 would/X=MD/aux/9 "
            "stop/V=VB/advcl/3 ./PUNCT/punct/3",
            "We would stay. | The rain would stop.",
        ),
        (
            "He/P=PRP/nsubj/2 sings/V=VBZ/root/0 just/R=RB/advmod/6 because/SCONJ=IN/mark/6 "
            "we/P=PRP/nsubj/6 asked/V=VBD/advcl/2 him/P=PRP/iobj/6 ./PUNCT/punct/2",
            "He sings. | We asked him.",
        ),
        (
            "He/P=PRP/nsubj/4 did/X=VBD/aux/4 not/PART=RB/advmod/4 wait/V=VB/root/0 "
            "long/R=RB/advmod/4 before/SCONJ=IN/mark/8 he/P=PRP/nsubj/8 knocked/V=VBD/advcl/4 "
            "./PUNCT/punct/4",
            "He did not wait long. | He knocked.",
        ),
        (
            "We/P=PRP/nsubj/3 will/X=MD/aux/3 wait/V=VB/root/0 if/SCONJ=IN/mark/8 "
            "only/R=RB/advmod/7 two/NUM=CD/nummod/7 men/N=NNS/nsubj/8 come/V=VBP/advcl/3 "
            "./PUNCT/punct/3",
            "We will wait. | Only two men come.",
        ),
        (
            "He/P=PRP/nsubj/4 does/X=VBZ/aux/4 not/PART=RB/advmod/4 sing/V=VB/root/0 "
            "just/R=RB/advmod/8 because/SCONJ=IN/mark/8 we/P=PRP/nsubj/8 asked/V=VBD/advcl/4 "
            "him/P=PRP/iobj/8 ./PUNCT/punct/4",
            "s1_lost_word",
        ),
        # The words that turned subject and auxiliary around are lost, or still there.
        (
            "Only/R=RB/advmod/9 when/R=WRB/advmod/5 the/DET=DT/det/4 ice/N=NN/nsubj/5 "
            "melts/V=VBZ/advcl/9 can/X=MD/aux/9 the/DET=DT/det/8 ships/N=NNS/nsubj/9 "
            "leave/V=VB/root/0 ./PUNCT/punct/9",
            "s1_fragment",
        ),
        (
            "Only/R=RB/advmod/5 after/SCONJ=IN/mark/5 we/P=PRP/nsubj/5 had/X=VBD/aux/5 "
            "left/V=VBN/advcl/8 did/X=VBD/aux/8 he/P=PRP/nsubj/8 call/V=VB/root/0 her/P=PRP/obj/8 "
            "./PUNCT/punct/8",
            "s1_fragment",
        ),
        (
            "Only/R=RB/advmod/2 rarely/R=RB/advmod/5 did/X=VBD/aux/5 he/P=PRP/nsubj/5 "
            "write/V=VB/root/0 ,/PUNCT/punct/9 but/CCONJ=CC/cc/9 she/P=PRP/nsubj/9 "
            "kept/V=VBD/conj/5 every/DET=DT/det/11 letter/N=NN/obj/9 ./PUNCT/punct/5",
            "Only rarely did he write. | She kept every letter.",
        ),
        # The clause says how long it was, or which time; and what happened then.
        (
            "It/P=PRP/nsubj/4 was/X=VBD/cop/4 not/PART=RB/advmod/4 long/A=JJ/root/0 "
            "before/SCONJ=IN/mark/8 the/DET=DT/det/7 bell/N=NN/nsubj/8 rang/V=VBD/advcl/4 "
            "./PUNCT/punct/4",
            "construction",
        ),
        (
            "There/P=EX/expl/2 was/V=VBD/root/0 a/DET=DT/det/4 winter/N=NN/nsubj/2 "
            "when/R=WRB/advmod/8 the/DET=DT/det/7 lake/N=NN/nsubj/8 froze/V=VBD/advcl/2 "
            "./PUNCT/punct/2",
            "construction",
        ),
        (
            "She/P=PRP/nsubj/4 was/X=VBD/cop/4 in/ADP=IN/case/4 one/NUM=CD/root/0 "
            "of/ADP=IN/case/7 those/DET=DT/det/7 moods/N=NNS/nmod/4 when/R=WRB/advmod/10 "
            "nothing/P=NN/nsubj/10 helps/V=VBZ/advcl/4 ./PUNCT/punct/4",
            "construction",
        ),
        (
            "He/P=PRP/nsubj/5 had/X=VBD/aux/5 not/PART=RB/advmod/5 been/X=VBN/cop/5 "
            "long/A=JJ/root/0 in/ADP=IN/case/8 the/DET=DT/det/8 town/N=NN/obl/5 "
            "before/SCONJ=IN/mark/11 we/P=PRP/nsubj/11 met/V=VBD/advcl/5 ./PUNCT/punct/5",
            "He had not been long in the town. | We met.",
        ),
        (
            "We/P=PRP/nsubj/4 had/X=VBD/aux/4 been/X=VBN/cop/4 there/R=RB/root/0 "
            "for/ADP=IN/case/7 ten/NUM=CD/nummod/7 minutes/N=NNS/obl/4 when/R=WRB/advmod/11 "
            "the/DET=DT/det/10 lights/N=NNS/nsubj/11 went/V=VBD/advcl/4 out/R=RB/advmod/11 "
            "./PUNCT/punct/4",
            "We had been there for ten minutes. | The lights went out.",
        ),
    ],
)
def test_a_side_keeps_what_it_says(tree: str, outcome: str) -> None:
    """`outcome` is the pair, or why there is none."""
    pairs, reasons = extracted(tree)
    if " | " in outcome:
        assert outcome in [f"{pair.s1} | {pair.s2}" for pair in pairs]
    else:
        assert not pairs and outcome in reasons


@pytest.mark.parametrize("focus", ["Just", "Exactly", "Precisely"])
def test_what_stresses_then_goes_with_it(focus: str) -> None:
    before = "He/P/nsubj/2 stood/V!/root/0 up/R/advmod/2 ./PUNCT/punct/2"
    tree = f"{focus}/R/advmod/5 then/R/advmod/5 the/DET/det/4 lamp/N/nsubj/5 fell/V!/root/0"
    pairs, _ = extracted(before, f"{tree} ./PUNCT/punct/5")
    assert [(pair.s1, pair.s2) for pair in pairs] == [("He stood up.", "The lamp fell.")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x divides the sum", "x divides the sum."),
        ("n is even, and m is odd", "n is even, and m is odd."),
        ("a divisor is even", "A divisor is even."),
        ("i know it", "I know it."),
        ("x-rays are harmful", "X-rays are harmful."),
    ],
)
def test_a_variable_gets_no_capital(text: str, sentence: str) -> None:
    assert written(text, [(0, len(text))]) == sentence


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("Because/SCONJ/mark/3 it/P/nsubj/3 rained/V!/root/0 ././punct/3", 1),
        # A phrase in front of the main clause; a main clause that the tree hides.
        (
            "While/SCONJ/mark/6 at/ADP/case/3 sea/N/obl/6 ,/PUNCT/punct/6 he/P/nsubj/6 "
            "wrote/V!/root/0 ././punct/6",
            0,
        ),
        (
            "Because/SCONJ/mark/3 it/P/nsubj/3 shook/V!/root/0 the/DET/det/5 town/N/obj/3 "
            "they/P/nsubj/7 left/V!/acl:relcl/5 ././punct/3",
            0,
        ),
    ],
)
def test_a_subordinate_clause_alone_has_no_main_clause(sentence: str, number: int) -> None:
    pairs, reasons = extracted("We/P/nsubj/2 stayed/V!/root/0 ././punct/2", sentence)
    assert len(pairs) == number and ("construction" in reasons) == (number == 0)


@pytest.mark.parametrize("mark", "□■∎")
def test_a_proof_ends_within_no_side(mark: str) -> None:
    tree = (
        "We/P/nsubj/2 stayed/V!/root/0 and/CCONJ/cc/5 he/P/nsubj/5 slept/V!/conj/2 "
        "{}she/P/nsubj/{} sang/V!/parataxis/5"
    )
    inside = tree.format(f"{mark}/SYM/punct/8 ", 8)
    assert extracted(inside) == ([], ["markup"])
    assert extracted(tree.format("", 7))[0]
