"""The language of a text, as `extract`, `score`, `predict-marker` and `init` tell it."""

from __future__ import annotations

import pytest

from corpora.languages import frequent_words, other_language, recognise_language

FOREIGN = {
    "de": "Die Tür stand offen, aber es war niemand da, und der Hund schlief auf dem Sofa.",
    "fr": "La porte était ouverte, mais il n'y avait personne dans la maison.",
    "es": "La puerta estaba abierta, pero no había nadie en la casa.",
    "it": "La porta era aperta, ma non c'era nessuno nella casa.",
    "nl": "De deur stond open, maar er was niemand in het huis.",
    "sv": "Dörren stod öppen, men det var ingen som hade gått in i huset.",
    "pl": "Drzwi były otwarte, ale nikogo nie było już w domu.",
    "ru": "Дверь была открыта, но в доме никого не было.",
    "el": "Η πόρτα ήταν ανοιχτή.",
    "ja": "門は開いていたが、家には誰もいなかった。",
    "zh": "门开着，但是屋里没有人。",
    "ko": "문은 열려 있었지만 집에는 아무도 없었다.",
}
ENGLISH = (
    "Rain fell.",
    "Anna sang. Bela left.",
    "Mr. de la Cruz met Herr von Stein and the Duke.",
    "She said 'wie geht es dir', and they laughed.",
    "Nice weather today!",
    "12 34, x y",
)


@pytest.mark.parametrize("code", FOREIGN)
def test_another_language_is_recognised(code: str) -> None:
    text = FOREIGN[code]
    assert recognise_language(text) == code
    assert other_language(text, "en") not in ("", "another language")
    assert other_language(text, code) == ""
    assert other_language("He went to the door, and it was open.", code) == "English"


@pytest.mark.parametrize("text", ENGLISH)
def test_a_short_english_text_is_not_foreign(text: str) -> None:
    assert other_language(text, "en") == other_language(text, "en-GB") == ""


def test_a_language_without_a_list_is_neither_recognised_nor_checked() -> None:
    basque = "Atea irekita zegoen, baina etxean ez zegoen inor, eta txakurra lo zegoen. " * 4
    assert recognise_language(basque) == "" and other_language(basque, "en") == "another language"
    assert other_language(basque, "eu") == "" and other_language(FOREIGN["de"], "eu") == ""


def test_a_book_is_read_beyond_its_title_page() -> None:
    title = "This is a free book that you may give to others, with all that is in it. " * 20
    assert recognise_language(title + FOREIGN["de"] * 200) == "de"


def test_no_english_word_is_in_another_list() -> None:
    words = frequent_words()
    assert not [code for code in words if code != "en" and words[code] & words["en"]]


@pytest.mark.parametrize(
    "text",
    ["Мужчина спал.", "ไปบ้านแล้วนอน", "კაცი სახლში იყო.", "Det var ikke på bordet."],
)
def test_a_short_text_without_english_letters_or_words_is_foreign(text: str) -> None:
    assert other_language(text, "en")
    assert not other_language("Ann Bell slept, 7 to 9.", "en")
