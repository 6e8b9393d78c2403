"""Sentence splitting: each rule by an example written for it, the promise on the treebanks."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.document import Document, Spans, paragraph_spans
from corpora.errors import ConfigError
from corpora.readers import open_source
from corpora.sentences import SPLITTERS, split, split_document
from corpora.sentences.rules import _OUTER


def sentences(text: str, language: str = "en", splitter: str = "rules") -> list[str]:
    spans = split(text, paragraph_spans(text), splitter, language)
    return [text[start:end] for start, end in spans]


# A bar marks each boundary; the words are this project's own.
ENGLISH = """
The tide turned. | The boats came in. | Nobody spoke!
Was it late? | Yes! | Very.
She had two sons, Tom (b. March 1990) and Ned (b. 1992). | He had none.
Mr. Bell met Dr. Ames on St. Anne's Lane. | Mrs. Orr was out.
Gen. Hale and Prof. J. R. Moss agreed.
She wrote to J. P. Lane. | He never answered.
Plan B. | The others had failed.
"So did I. | Take mine," said the boy.
It sells tools, rope, etc. and some paint.
It sells tools, rope, etc. | The shop next door sells paint.
Bring fruit, e.g. plums, i.e. something soft.
Lane et al. found none. | See Fig. 3 and vol. 2, pp. 14 and 15.
We met on Sept. 4 and again in Oct. | It rained both times.
He left at 6 p.m. and came back at 9 a.m. | The door was open.
The U.S. coast is long. | She lives in the U.S. | He does not.
Acme Inc. makes anvils. | Its rival is Bolt Ltd. | They share a yard.
It cost 3.50 in 1998. | It costs 7.25 now.
Room No. 5 is free. | No. | It is taken.
He waited ... and waited. | Then he left... | The end.
He waited … and waited… | Then he left.
“Why?” he said. | “Because.” | She closed the door.
“Are you coming?” Tom asked. | “No!” cried the old man. | He sat down.
“He is late.” | “He always is.”
'Is it far?' she asked. | 'Not very.'
(He was wrong.) | She knew it.
She left (at last!) and he stayed.
They won the cup [3] in May. [4] [5] | They lost it again. [citation needed] | So it goes.
The keeper used piles.[1] | They hold.[2][3] | The cost was approx.[4] 400 pounds.
We saw, as Orr showed.3 | They hold.4–6,9 | “It is shut.”7 | It fell.² | See fig.3 The lock.
It was closed.[A] | Nobody spoke. | [A] man came. | He left. | [B] It rained.
• It is slow | • It is cheap | ▪ It holds.
“It is shut.”[5] | Dr.[6] Orr sold tools, rope, etc.[7] and left. | So it goes.
Yours of the 4th inst. came, and that of the 3rd ult. | The ship was lost.
In contrast to Ref. 5, we grew it. | See Refs. 3 and 4. | He asked the ref. | The ref. said no.
1. Open the box. | 2. Take out the rope. | 3. Close it.
Do the following: 1. Wash it. | Then dry it.
Do it thus: 1. Wash it, 2. Dry it, 3. Fold it. | It is late.
“We ran,” said Ann Orr, 54. | “It was dark.” | He had sons, 5 and 8. | They were asleep.
A. The first reason is cost. | B. The second is time.
I like it! :) | Do you? ;-)
i dont know what it is! | maybe a bird. | it flew off
Oh! how the wind blew that night.
Yahoo! bought the firm. | It was cheap.
It ended. | (It had never begun.) | Nobody minded.
See the list at https://example.org/a.b?c=d. | It is long.
Look here: https://example.org/list | It was updated today.
At last . . . she sang.
Versions 1.2.3 and 2.0 differ. | Use example.com or node.js for it.
Thanks for the map. | Best, | Ann
Ann Bell | 04/13/2001 10:22 AM | Please read this.
He shouted "Stop!" | Then it was quiet.
He said that it was over." | Nobody moved.
She sang in Good Night! (1965), and later taught.
It is kept (Figure 7.2). | Emotions help.
We won! | (It was late.) | We slept.
The sun. | Wed. was wet, and Sat. was worse.
They all rose at once—Mr. Bell was last. | Then--Dr. Ames.
The Lieut.-Col. Hale and ex-Gov. Orr met Mr./Mrs. Lane and Sir Wm. Moss.
He is not the vice-president. | Maj. Orr is.
The oct. reading fell, but the est. cost rose. | Nobody paid.
The pipe is 5 in. wide. | We sold it. | it leaks.
we sat by the pond. | the reg. bus came. | a duck slept in the shade. | so did we.
The suit is Orr v. Lane, 7 F. Supp. 2d 15, cert. denied, on 5 U.S.C. sec. 8. | It failed.
Under Fed. R. Civ. P. 9 and Pub. L. No. 95-2 (Cal. Civ. Code § 19) he pays. | The Fed. | Rates rose.
U.S. Const. Art. I, § 8 is old. | He is in Conn. | I, too, like the Fed. | Mr. Orr does not.
Rise at dawn. | May 4th is free. | He came on the 16th. | She stayed.
""".strip().splitlines()


@pytest.mark.parametrize("marked", ENGLISH)
def test_english_rules(marked: str) -> None:
    expected = marked.split(" | ")
    assert sentences(marked.replace(" | ", " ")) == expected


def test_a_forgotten_space_after_a_stop() -> None:
    assert sentences("The engine died.But we drifted on.") == [
        "The engine died.",
        "But we drifted on.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16th. Up early. 17th (Market day). Rain.", ["Up early.", "Rain."]),
        ("July 1st, 1660. To town.\n\n_2 July._", ["To town."]),
        ("Sunday, 5 Aug. 1883. It rained.", ["It rained."]),
        ("“4 May. We sailed.", ["“4 May. We sailed."]),
        ("Monday, May 4, 1998\n\nIt is 1998. Then 12 men came.", None),
        ("May. June. The 4th.", None),
    ],
)
def test_a_bare_date_is_no_sentence(text: str, expected: list[str] | None) -> None:
    if expected is None:
        assert " ".join(sentences(text)) == text.replace("\n\n", " ")
    else:
        assert sentences(text) == expected


def test_a_sentence_never_crosses_a_paragraph() -> None:
    text = "A heading\n\nIt goes on,\n\nand on. It ends"
    assert sentences(text) == ["A heading", "It goes on,", "and on.", "It ends"]


def test_spans_have_no_white_space_around() -> None:
    text = " \t One.   Two. \u00a0"
    assert [text[a:b] for a, b in split(text, Spans([0], [len(text)]))] == ["One.", "Two."]


@pytest.mark.parametrize("mark", ["\u200b", "\u200e", "\u200f", "\u2060", "\ufeff"])
def test_invisible_characters_beside_white_space_are_white_space(mark: str) -> None:
    text = f"{mark}The tide turned.{mark} {mark}But the boats{mark} stayed in. So{mark}we left."
    expected = ["The tide turned.", f"But the boats{mark} stayed in.", f"So{mark}we left."]
    assert sentences(text) == expected


def test_other_languages() -> None:
    chinese = "他来了。“你好！”她说。真的吗？！是的……也许"
    assert sentences(chinese, "zh") == [
        "他来了。",
        "“你好！”",
        "她说。",
        "真的吗？！",
        "是的……",
        "也许",
    ]
    spanish = "El Sr. Paz llegó tarde. ¿Por qué? No lo sé. ¡Qué pena! Vive en EE. UU. desde 1990."
    assert sentences(spanish, "es")[:4] == [
        "El Sr. Paz llegó tarde.",
        "¿Por qué?",
        "No lo sé.",
        "¡Qué pena!",
    ]
    assert sentences("Er kam. Dann ging er.", "de-AT") == ["Er kam.", "Dann ging er."]


def test_lines() -> None:
    assert sentences("It rained .\n We left .\nNobody", splitter="lines") == [
        "It rained .",
        "We left .",
        "Nobody",
    ]


def test_source_keeps_the_sentences_of_the_source() -> None:
    gold = Spans([0], [10])
    document = Document(id="a", text="One. Two. Three.", sentences=gold)
    assert split_document(document, "source").sentences is gold
    bare = Document(id="a", text="One. Two. Three.")
    assert split_document(bare, "source").sentence_texts() == ["One.", "Two.", "Three."]
    assert split_document(document).sentence_texts() == ["One.", "Two.", "Three."]
    assert document.sentences is gold


def test_an_unknown_splitter_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'rules'"):
        split("Text.", Spans([0], [5]), "rule")


@given(
    st.text(alphabet="aB1 .!?…\"'”’()[]:-*_\n\u200b。", max_size=80),
    st.sampled_from(["en", "es", "zh"]),
)
def test_sentences_tile_the_text(text: str, language: str) -> None:
    """In order, without overlap, within a paragraph; but for bare dates only white space is out.

    Invisible characters beside white space count as white space.
    """
    paragraphs = paragraph_spans(text)
    for splitter in SPLITTERS:
        spans = list(split(text, paragraphs, splitter, language))
        text = _OUTER.sub(lambda match: " " * len(match[0]), text)
        ends = [0, *(end for _, end in spans)]
        starts = [*(start for start, _ in spans), len(text)]
        assert all(not text[a:b].strip() for a, b in zip(ends, starts, strict=True))
        assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)
        assert all(any(p <= a and b <= q for p, q in paragraphs) for a, b in spans)


PATHOLOGICAL = {
    "stops": "." * 100_000 + "x",
    "spaced stops": ". " * 50_000,
    "closers": "x." + ")" * 100_000 + "x",
    "spaces": "a." + " " * 100_000 + "b",
    "one word": "a" * 100_000 + ". B",
    "titles": "Mr. " * 25_000,
    "titles and tabs": "Mr.\t" * 25_000,
    "initials": "A. B. " * 17_000,
    "open brackets": "a. " + "[" * 100_000,
    "citations": "a. " + "[1] " * 25_000,
    "glued citations": "a." + "[1]" * 30_000 + " b. " + "a.[1] " * 15_000,
    "raised numbers": "ab.1,2 " * 15_000 + "ab." + "1," * 50_000 + "ab.¹²" * 9_000,
    "ages": "1. " + "a, 2. " * 15_000,
    "half citations": "a. [aaaa aaa " * 8_000,
    "addresses": "http://a " * 11_000,
    "rules": "-" * 100_000 + "x",
    "dates": "1/1/11 1:11 " * 8_000,
    "emoticons": "a. " + ":" * 100_000,
    "letters": "Thanks, " * 12_000,
    "quotes": '"a!" ' * 20_000,
}


@pytest.mark.parametrize("text", PATHOLOGICAL.values(), ids=PATHOLOGICAL.keys())
def test_time_is_linear_in_an_absurd_line(text: str) -> None:
    start = time.process_time()
    split(text, Spans([0], [len(text)]))
    # A quadratic rule would take minutes; ten times what the slowest takes on a busy machine.
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    ("treebank", "promised"), [("en_ewt/en_ewt-ud-dev.conllu", 0.87), ("en_gum/dev", 0.95)]
)
def test_f1_on_treebank_paragraphs(treebank: str, promised: float, discorpora_data: object) -> None:
    """Exact spans against gold sentences, from raw paragraphs; the rules were chosen on train."""
    hits = found = gold = 0
    for document in open_source(f"conllu:{discorpora_data}/treebank/{treebank}"):
        assert document.paragraphs is not None and document.sentences is not None
        spans = set(split(document.text, document.paragraphs))
        hits += len(spans & set(document.sentences))
        found += len(spans)
        gold += len(document.sentences)
    assert 2 * hits / (found + gold) >= promised
