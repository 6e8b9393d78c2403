"""CoNLL-U: text, layers and trees; what is legal is read, what is broken refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, InputError
from corpora.prose import lead, prose
from corpora.readers import open_source

FIXTURE = Path(__file__).resolve().parent.parent / "data" / "readers" / "harbour.conllu"


def word(number: int | str, form: str, head: int | str = 0, misc: str = "_") -> str:
    return f"{number}\t{form}\t_\tX\t_\t_\t{head}\tdep\t_\t{misc}"


def sentence(*words: str, comments: tuple[str, ...] = ()) -> str:
    return "".join(f"{line}\n" for line in (*comments, *words)) + "\n"


def write(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "x.conllu"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return f"conllu:{path}"


def one(spec: str, **options: object) -> Document:
    (document,) = open_source(spec, options)
    return document


def test_text_and_layers() -> None:
    harbour, second = open_source(f"conllu:{FIXTURE}", {"licence": "CC-BY-4.0"})
    assert harbour.text == (
        "The Harbour\n\nDon't go (yet). She sails and he rows.\n\nBoats\n\nVamos al mar."
    )
    assert harbour.sentence_texts()[1:3] == ["Don't go (yet).", "She sails and he rows."]
    assert (harbour.title, harbour.url) == ("The Harbour", "https://example.org/harbour")
    assert (harbour.group, second.group, second.id) == ("harbour", "harbour", "letters/second")
    assert "PDTB" not in repr(harbour)


def test_sections_lie_between_headings() -> None:
    harbour, _ = open_source(f"conllu:{FIXTURE}")
    sections = harbour.sections
    assert sections is not None
    assert (sections.level, sections.heading) == ([1, 2], ["", "Boats"])
    texts = [harbour.text[a:b] for a, b in zip(sections.start, sections.end, strict=True)]
    assert texts == ["Don't go (yet). She sails and he rows.", "Vamos al mar."]


def test_tokens_have_the_spans_of_their_forms_and_heads_of_the_document() -> None:
    harbour, _ = open_source(f"conllu:{FIXTURE}")
    tokens = harbour.tokens
    assert tokens is not None
    spans = list(zip(tokens.start, tokens.end, strict=True))
    for form, (start, end) in zip(tokens.form, spans, strict=True):
        if form not in ("a", "el"):
            assert harbour.text[start:end] == form
    # Words of `al` are no pieces of it in order, so they share its span.
    assert {harbour.text[a:b] for a, b in spans[17:19]} == {"al"}
    assert tokens.offsets == [0, 2, 9, 15, 16, 21]
    assert tokens.head[:2] == [1, -1]
    assert tokens.form[tokens.head[9]] == "sails"
    assert tokens.xpos[16] == ""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_byte_order_mark_and_no_final_newline(
    ending: str, mark: bytes, tmp_path: Path
) -> None:
    content = sentence(word(1, "Rain"), word(2, "fell", 1)).strip().replace("\n", ending)
    document = one(write(tmp_path, mark + content.encode()))
    assert document.text == "Rain fell"
    assert (document.id, document.group) == ("x", "x")


def test_sentences_without_a_space_between_are_joined(tmp_path: Path) -> None:
    first = sentence(word(1, "雨"), word(2, "。", 1, "SpaceAfter=No"))
    document = one(write(tmp_path, first + first), language="zh")
    assert document.text == "雨 。雨 。"
    assert document.sentences is not None
    assert list(document.sentences) == [(0, 3), (3, 6)]


def test_a_multiword_token_takes_the_space_of_its_own_row(tmp_path: Path) -> None:
    rows = [
        "1-2\tgonna\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No",
        word(1, "gon"),
        word(2, "na", 1),
        word(3, "!", 1),
    ]
    assert one(write(tmp_path, sentence(*rows))).text == "gonna!"


def test_an_empty_node_before_the_first_word(tmp_path: Path) -> None:
    rows = ["0.1\tx\t_\t_\t_\t_\t_\t_\t_\t_", word(1, "Go"), "1.1\ty\t_\t_\t_\t_\t_\t_\t_\t_"]
    assert one(write(tmp_path, sentence(*rows))).text == "Go"


def test_documents_without_an_id_are_numbered(tmp_path: Path) -> None:
    new = sentence(word(1, "Go"), comments=("# newdoc",))
    assert [d.id for d in open_source(write(tmp_path, new + new))] == ["x:000001", "x:000002"]


def test_comments_need_no_space(tmp_path: Path) -> None:
    text = "".join(sentence(word(1, "Go"), comments=(f"#newdoc id = {id}",)) for id in "ab")
    assert [d.id for d in open_source(write(tmp_path, text))] == ["a", "b"]


def test_an_id_before_each_sentence_is_one_document(tmp_path: Path) -> None:
    ids = ("a", "a", "b", "b")
    parts = [sentence(word(1, "Go"), comments=(f"# newdoc id = {id}",)) for id in ids]
    a, b = open_source(write(tmp_path, "".join(parts)))
    assert (a.id, a.text, b.id, len(b.sentences or ())) == ("a", "Go Go", "b", 2)
    with pytest.raises(InputError, match=r"x.conllu:7: two documents have the id 'a'") as caught:
        list(open_source(write(tmp_path, parts[0] + parts[2] + parts[1])))
    assert "in the file before" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("forms", "masked"),
    [
        (["____", "___", "_"], True),
        (["____", ",", "___", "."], True),
        (["___", "__", "Name"], True),
        (["Name", ":", "______"], False),
        (["snake_case", "is", "a", "_"], False),
    ],
)
@pytest.mark.parametrize("kind", ["conllu", "disrpt"])
def test_masked_words_are_said_to_be_masked(
    tmp_path: Path, kind: str, forms: list[str], masked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    words = [word(number, form, number - 1) for number, form in enumerate(forms, 1)]
    text = sentence(*words, comments=("# newdoc id = a",))
    spec = write(tmp_path, text + GOOD).replace("conllu:", f"{kind}:")
    assert [d.id for d in open_source(spec)] == (["good"] if masked else ["a", "good"])
    assert ("1 document: masked text" in caplog.text) == masked
    if masked:
        write(tmp_path, text)
        with pytest.raises(InputError) as caught:
            list(open_source(spec))
        assert "skipped: masked text" in str(caught.value.hint)


def test_a_licence_may_follow_the_genre(tmp_path: Path) -> None:
    def document(genre: str) -> str:
        return sentence(
            word(1, "Go"), comments=(f"# newdoc id = {genre}", f"# meta::genre = {genre}")
        )

    spec = write(tmp_path, document("bio") + document("court"))
    bio, court = open_source(spec, {"licence": {"bio": "CC-BY-SA-3.0", "default": "CC-BY-4.0"}})
    assert (bio.licence, court.licence) == ("CC-BY-SA-3.0", "CC-BY-4.0")
    with pytest.raises(ConfigError, match="'court'"):
        list(open_source(spec, {"licence": {"bio": "CC-BY-SA-3.0"}}))


GOOD = sentence(word(1, "Good"), comments=("# newdoc id = good",))
BROKEN = {
    "9 columns": (word(1, "Bad").rsplit("\t", 1)[0], "columns: 9"),
    "spaces for tabs": (word(1, "Bad").replace("\t", " "), "columns: 1"),
    "head out of range": (word(1, "Bad", 2), "head: '2'"),
    "negative head": (word(1, "Bad", -1), "head: '-1'"),
    "head no number": (word(1, "Bad", "_"), "head: '_'"),
    "own head": (word(1, "Bad", 1) + "\n" + word(2, "root"), "cycle"),
    "cycle": ("\n".join([word(1, "a", 2), word(2, "b", 1), word(3, "c")]), "cycle"),
    "no root": (word(1, "a", 2) + "\n" + word(2, "b", 1), "no root"),
    "word missing": (word(1, "a") + "\n" + word(3, "b", 1), "word number: '3'"),
    "no form": (word(1, ""), "form"),
    "range of one word": (
        "1-1" + word(1, "x")[1:] + "\n" + word(1, "x"),
        "multiword token: '1-1' covers one word",
    ),
    "range of nothing": ("3-4" + word(1, "x")[1:] + "\n" + word(1, "x"), "multiword token"),
    "range at the end": (word(1, "x") + "\n2-3" + word(1, "y")[1:], "word number: 2 is missing"),
    "not UTF-8": (b"1\tB\xe4d".decode("latin-1"), "not UTF-8"),
    "comment inside": (word(1, "a") + "\n# text = x\n" + word(2, "b", 1), "comment"),
}


@pytest.mark.parametrize(("lines", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_a_bad_sentence_takes_its_document_with_it(lines: str, reason: str, tmp_path: Path) -> None:
    bad_document = sentence(word(1, "Fine"), comments=("# newdoc id = bad",)) + lines + "\n\n"
    content = GOOD + bad_document + GOOD.replace("= good", "= better")
    encoding = "latin-1" if "UTF-8" in reason else "utf-8"
    spec = write(tmp_path, content.encode(encoding))
    bad: list[BadRecord] = []
    assert [d.id for d in open_source(spec, on_bad=bad.append)] == ["good", "better"]
    assert len(bad) == 1
    assert bad[0].reason.startswith(reason)
    with pytest.raises(InputError, match=r"x\.conllu:(7|8|9): "):
        list(open_source(spec))


def test_sentence_ids_must_differ(tmp_path: Path) -> None:
    twice = sentence(word(1, "Go"), comments=("# sent_id = s1",)) * 2
    with pytest.raises(InputError, match="'s1' comes twice"):
        list(open_source(write(tmp_path, twice)))


def test_the_shared_treebanks_give_back_their_text(discorpora_data: Path) -> None:
    """Every sentence's text is its `# text` comment, every token's span its form."""
    folder = discorpora_data / "treebank" / "en_gum" / "dev"
    for document in open_source(f"conllu:{folder}"):
        lines = (folder / f"{document.id}.conllu").read_text(encoding="utf-8").splitlines()
        comments = [line[len("# text = ") :] for line in lines if line.startswith("# text = ")]
        assert document.sentence_texts() == [" ".join(text.split()) for text in comments]
        assert document.group == document.id
        tokens = document.tokens
        assert tokens is not None
        found = [document.text[a:b] for a, b in zip(tokens.start, tokens.end, strict=True)]
        assert found == tokens.form


def test_sentences_in_a_row_of_one_speaker_are_a_turn(tmp_path: Path) -> None:
    speakers = ("", "Ann", "Ann", "Bo")
    words = ("Boats", "Yes.", "It leaks.", "No.")
    lines = [
        sentence(word(1, form), comments=(f"# speaker = {speaker}",) if speaker else ())
        for speaker, form in zip(speakers, words, strict=True)
    ]
    talk = one(write(tmp_path, "".join(lines)))
    assert talk.turns is not None and talk.turns.speaker == ["", "Ann", "Bo"]
    spans = zip(talk.turns.start, talk.turns.end, strict=True)
    assert [talk.text[a:b] for a, b in spans] == ["Boats", "Yes. It leaks.", "No."]
    assert not talk.is_chat  # sentences are judged as those of a text
    assert one(write(tmp_path, "".join(lines[:3]))).turns is None  # a monologue


def test_a_caption_is_no_prose_and_cuts_its_section(tmp_path: Path) -> None:
    def said(*words: str, block: str = "") -> str:
        rows = [word(n, form, n - 1) for n, form in enumerate(words, 1)]
        return sentence(*rows, comments=(f"# newpar_block = {block}",) if block else ())

    document = one(
        write(
            tmp_path,
            said("Gulls", "wait", ".", block="p (1 s)")
            + said("The", "harbour", ".", block='p (3 s) | figure rend:::"a pier" | caption (1 s)')
            + said("Boats", "leave", ".")
            + said("Nets", "dry", ".")
            + said("Trade", block="head (1 s)")
            + said("Ropes", "sell", ".", block="figure (2 s) | caption (2 s)")
            + said("Photo", ":", "Ann", ".")
            + said("Tar", "sells", ".", block="p (1 s)"),
        )
    )
    texts = prose(document)
    assert list(filter(None, texts)) == [
        "Gulls wait .",
        "Boats leave .",
        "Nets dry .",
        "Tar sells .",
    ]
    assert lead(document, texts) == ["Gulls wait .", "Boats leave .", "Nets dry ."]
    assert document.sections is not None
    assert document.sections.heading == ["", "", "Trade"]
