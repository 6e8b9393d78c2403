"""Languages: the codes by which parsers and the Hub know them, and the language of a text."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from corpora.errors import ConfigError

LANGUAGES = {
    **{"arabic": "ar", "chinese": "zh", "czech": "cs", "danish": "da", "dutch": "nl"},
    **{"english": "en", "finnish": "fi", "french": "fr", "german": "de", "greek": "el"},
    **{"hebrew": "he", "hindi": "hi", "hungarian": "hu", "italian": "it", "japanese": "ja"},
    **{"korean": "ko", "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt"},
    **{"romanian": "ro", "russian": "ru", "spanish": "es", "swedish": "sv", "turkish": "tr"},
    **{"ukrainian": "uk", "vietnamese": "vi", "eng": "en"},
}
"""Names that users write instead of a code, and the code of each."""
UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""The characters of Chinese and Japanese, which are written without blanks, as a regex class."""
_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def is_code(value: str) -> bool:
    """Return whether `value` has the form of a language code, such as `en` or `pt-BR`."""
    return _CODE.fullmatch(value) is not None


def check_code(value: str) -> str:
    """Return `value` if it is a language code or empty; else raises `ConfigError`."""
    code = LANGUAGES.get(value.lower())
    if not value or (not code and is_code(value)):
        return value
    raise ConfigError(
        f"{value!r} is not a language code",
        hint=f'write "{code}"' if code else 'expected a code such as "en", "de" or "pt-BR"',
    )


Language = Annotated[str, AfterValidator(check_code)]
"""A code such as `en`; empty where it is not known."""


# The language of a text.

FEW_WORDS = 30
"""A shorter text has too few words to say that it is not in a language, unless it is in another."""
FREQUENT = 0.1
"""Minimum share of a language's frequent words: English prose has .3 to .5, German .02."""
SAMPLES, SAMPLE = 5, 2_000
"""The places of a long text that are read, and the characters at each."""
_WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+")
_KANA = re.compile("[\u3040-\u30ff]")
_SCRIPTS = {
    **{"el": "\u0370-\u03ff", "he": "\u0590-\u05ff", "hi": "\u0900-\u097f"},
    **{"ko": "\uac00-\ud7a3", "zh": UNSPACED},
}
"""The characters of scripts that hardly any other language uses, by the language's code."""


@cache
def frequent_words() -> dict[str, frozenset[str]]:
    """Return the most frequent words of each language, by its code (`languages.toml`)."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {code: frozenset(words.split()) for code, words in table.items()}


def is_foreign(words: Any, frequent: Any) -> Any:
    """Return whether a text has too few frequent words of a language to be written in it.

    `words` is the number of its words, without numerals; `frequent` is the number of those that are
    frequent in the language. For several texts, both are arrays, and the result is a mask.
    """
    return (words >= FEW_WORDS) & (frequent < FREQUENT * words)


def recognise_language(*texts: str) -> str:
    """Return the code of the language with most of the texts' frequent words, or "" if unclear."""
    return _most_frequent(*_count_words(*texts))


def other_language(text: str, language: str) -> str:
    """Return the language of a text that is not in `language`: "German", or "another language".

    Returns "" for a text that may be in `language`, and if the frequent words of `language` are not
    known. A short text counts as foreign only if it has words of another language and hardly one of
    `language`, or no letter of its script.
    """
    code = language.partition("-")[0].lower()
    words, counts = _count_words(text)
    if code not in {*frequent_words(), *_SCRIPTS, "ja"}:
        return ""
    likeliest = _most_frequent(words, counts)
    if likeliest not in ("", code) and counts[likeliest] > 2 * counts[code]:
        return name_of(likeliest)
    # Two languages may fit alike: Danish and Norwegian share most of their frequent words.
    fits_others = not counts[code] and max(counts.values()) >= max(2, FREQUENT * words)
    in_script = counts[code] if code in {*_SCRIPTS, "ja"} else _has_letter_of(code, text)
    if fits_others or (words and not in_script) or is_foreign(words, counts[code]):
        return "another language"
    return ""


def _has_letter_of(code: str, text: str) -> bool:
    """Return whether a text has a letter of the script of a language."""
    scripts = {"ru": "CYRILLIC", "uk": "CYRILLIC", "ar": "ARABIC", "fa": "ARABIC"}
    script = scripts.get(code, "LATIN")
    letters = filter(str.isalpha, text)
    return any(unicodedata.name(letter, "").startswith(script) for letter in letters)


def name_of(code: str) -> str:
    """Return the English name of a language, or its code if the name is not known."""
    return next((name.title() for name, other in LANGUAGES.items() if other == code), code)


def _count_words(*texts: str) -> tuple[int, Counter[str]]:
    """Return the number of words in samples of the texts, and by language that of frequent ones."""
    words = Counter[str]()
    for text in texts:
        # A book may begin with a title page or a licence in another language.
        step = max(len(text) // SAMPLES, SAMPLE)
        for start in range(0, len(text), step):
            words.update(_WORD.findall(text[start : start + SAMPLE].lower()))
    counts = Counter[str]()
    for code, frequent in frequent_words().items():
        times = [words[word] for word in frequent if word in words]
        # One word is no evidence of another language: "y" is Spanish, and a coordinate.
        counts[code] = sum(times) if len(times) > 1 or code == "en" else 0
    for code, script in _SCRIPTS.items():
        counts[code] = sum(n for word, n in words.items() if re.match(f"[{script}]", word))
    # Japanese has Chinese characters too, but no Chinese text has kana.
    kana = sum(n for word, n in words.items() if _KANA.match(word))
    if kana > FREQUENT * counts["zh"]:
        counts["ja"], counts["zh"] = counts["zh"], 0
    return words.total(), counts


def _most_frequent(words: int, counts: Counter[str]) -> str:
    """Return the language with the most frequent words; "" if these are few, or two are equal.

    `words` is the number of all words, `counts` that of frequent words by language.
    """
    (first, first_count), (_, second_count) = counts.most_common(2)
    return first if first_count >= max(2, FREQUENT * words) and first_count > second_count else ""
