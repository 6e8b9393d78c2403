"""The text of a pair: the author's own, as a sentence; or the paper's tokens."""

from __future__ import annotations

import pytest

from corpora.document import Document
from extract import Extractor
from extract.text import tokenised, written


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        ("he didn't go, because", [(0, 12)], "He didn't go."),
        ("go  slowly\nnow", [(0, 14)], "Go slowly now."),
        ("who was it?", [(0, 11)], "Who was it?"),
        ("it rains, they say, daily", [(0, 8), (20, 25)], "It rains daily."),
        ('he said "go away', [(8, 16)], "Go away."),
        ('he said "go" twice', [(0, 18)], 'He said "go" twice.'),
        ('it was over", she said', [(0, 22)], "It was over, she said."),
        ("he won in May, [3] and", [(0, 18)], "He won in May."),
        ("let it be.’", [(0, 11)], "Let it be."),
        ("let it be,’ said he", [(0, 11)], "Let it be."),
        ("he was ‘Mr.,’ but", [(0, 13)], "He was ‘Mr.’"),
        ("the verb ‘to eat.’", [(0, 16)], "The verb ‘to eat.’"),
        ("he said ‘no’ twice", [(0, 18)], "He said ‘no’ twice."),
        ("it was in the ‘90s", [(0, 18)], "It was in the ‘90s."),
        ("he saw ‘em there", [(0, 16)], "He saw ‘em there."),
        ("the dogs’ bowls broke", [(0, 21)], "The dogs’ bowls broke."),
        # A straight mark may be an apostrophe.
        ("I told him, 'Wait until I come,' but", [(0, 30)], "I told him, 'Wait until I come.'"),
        ("And he was gone.'", [(4, 17)], "He was gone."),
        ("he cried, 'Oh!'", [(0, 15)], "He cried, 'Oh!'"),
        ("she said, 'tis the dogs' bowl", [(0, 29)], "She said, 'tis the dogs' bowl."),
        ("he saw 'em in the '90s", [(0, 22)], "He saw 'em in the '90s."),
        ("it was the dogs'", [(0, 16)], "It was the dogs'."),
        ("(if it rains) we stay", [(1, 13)], "If it rains."),
        ("we stay (and read)", [(0, 18)], "We stay (and read)."),
        ("“never” he said", [(0, 15)], "“Never” he said."),
        ("did you go , then ?", [(0, 10), (18, 19)], "Did you go?"),
        ("éclairs were gone", [(0, 17)], "Éclairs were gone."),
        ("he left…", [(0, 8)], "He left…"),
        ("he was rich. [28]", [(0, 17)], "He was rich."),
        ("he said “no.” [28]", [(0, 18)], "He said “no.”"),
        ("see [28]", [(0, 8)], "See [28]."),
        ("_But_ nobody spoke", [(4, 18)], "Nobody spoke."),
        ("_never_ did he speak", [(0, 20)], "_Never_ did he speak."),
        # A speaker's dash is no word; an option's hyphen is.
        ("-We left", [(0, 8)], "We left."),
        ("—we left", [(0, 8)], "We left."),
        ("-x was set to -5", [(0, 16)], "-x was set to -5."),
        # Emphasis has both marks or none.
        ("but _she_ stayed", [(5, 16)], "_She_ stayed."),
        ("but *she* stayed", [(5, 16)], "*She* stayed."),
        ("but **she** stayed", [(4, 18)], "**She** stayed."),
        ("we told _him_, but", [(0, 12)], "We told _him_."),
        ("_the old dog slept, but it_ woke", [(0, 18)], "The old dog slept."),
        ("_the old dog slept, but it_ woke", [(24, 32)], "It woke."),
        ("the *new, if wet, boat* sank", [(0, 8), (17, 28)], "The *new boat* sank."),
        ("it was _late._ But", [(0, 14)], "It was _late._"),
        ("he set my_var to 2*3, _x to 5*", [(0, 30)], "He set my_var to 2*3, _x to 5*."),
        # A quote that runs on is closed, one that began before is not; brackets stay inside.
        ("and said, “You are right.", [(4, 25)], "Said, “You are right.”"),
        ("have done that,” she said", [(0, 25)], "Have done that, she said."),
        ('have done that," she said', [(0, 25)], "Have done that, she said."),
        ('he said,"Go on" and left', [(0, 24)], 'He said,"Go on" and left.'),
        ('a 12" pipe broke', [(0, 16)], 'A 12" pipe broke.'),
        ("it is “so” or “so", [(0, 17)], "It is “so” or “so.”"),
        ("so he (being late", [(0, 17)], "So he (being late)."),
        ("it has phones (etc.)", [(0, 20)], "It has phones (etc.)."),
        ("(it was late.)", [(0, 14)], "(It was late.)"),
        ("iPhones came first", [(0, 18)], "iPhones came first."),
        ("“iPhones came first.”", [(0, 21)], "“iPhones came first.”"),
        ("2. wash the lid", [(0, 15)], "Wash the lid."),
        ("they met ( in May ) .", [(0, 19)], "They met ( in May )."),
        ("met Ann ( 19 ) there", [(0, 20)], "Met Ann ( 19 ) there."),
        # The quotes of the Penn Treebank
        ("'' at home he slept", [(0, 19)], "At home he slept."),
        ("`` it is so , he said", [(0, 21)], "It is so , he said."),
        ("he said `` go home '' and", [(0, 18)], "He said `` go home.''"),
        ("he sang `` Home ''", [(0, 18)], "He sang `` Home ''."),
        ("a 3'' pipe broke", [(0, 16)], "A 3'' pipe broke."),
        ("we dined ) and left", [(0, 19)], "We dined and left."),
        ("that was sad :(", [(0, 15)], "That was sad."),
        ("and said, “You are right", [(4, 24)], "Said, “You are right.”"),
        ("“,” said he, “go.”", [(0, 18)], "Said he, “go.”"),
        ("do 1) this, 2) that", [(0, 19)], "Do 1) this, 2) that."),
        # The stop stands in for what parted the quote from the words behind it.
        ("“There is your bird,” said he", [(0, 21)], "“There is your bird.”"),
        ("it was never—” and", [(0, 14)], "It was never."),
        ("he called it “home”", [(0, 19)], "He called it “home”."),
        # A quote that is closed between two parts.
        ("“Well, then,” said he, “go.”", [(0, 5), (14, 28)], "“Well,” said he, “go.”"),
        ("“Say, then, that it is”", [(0, 4), (12, 23)], "“Say that it is”."),
    ],
)
def test_as_written(text: str, spans: list[tuple[int, int]], expected: str) -> None:
    assert written(text, spans) == expected


def test_emphasis_is_whole_in_tokens_too() -> None:
    extractor = Extractor(text="tokenised", min_confidence=0)
    for text, s2 in (
        ("we left, but *she* stayed", "* She *"),
        ("_we left, but she_ stayed", "She"),
    ):
        (pair,) = extractor.pairs([Document(id="a", text=text)])
        assert (pair.s1, pair.s2) == ("We left .", f"{s2} stayed .")


def test_tokens_end_in_a_full_stop_of_their_own() -> None:
    assert tokenised(["he", "did", "n't", "go"]) == "He did n't go ."
    assert tokenised(["why", "?"]) == "Why ?"
