"""Languages: their codes, by which parsers and the Hub know them, and the check of a text's own."""

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
"""What may be written where a code is meant."""
UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""The characters of Chinese and Japanese, between whose words no blanks stand, as a class."""
_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def is_code(value: str) -> bool:
    """Whether it has the form of a code."""
    return _CODE.fullmatch(value) is not None


def code_of(value: str) -> str:
    """The code itself. Raises `ConfigError` for what is none, with the code for a name."""
    code = LANGUAGES.get(value.lower())
    if not value or (not code and is_code(value)):
        return value
    raise ConfigError(
        f"{value!r} is not a language code",
        hint=f'write "{code}"' if code else 'expected a code such as "en", "de" or "pt-BR"',
    )


Language = Annotated[str, AfterValidator(code_of)]
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
"""The characters of scripts that are as good as a language's own."""


@cache
def frequent_words() -> dict[str, frozenset[str]]:
    """The most frequent words of each language, by its code (`languages.toml`)."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {code: frozenset(words.split()) for code, words in table.items()}


def is_foreign(words: Any, frequent: Any) -> Any:
    """Whether a text of so many `words` has too few `frequent` ones of a language, or of each text.

    Both are numbers, or arrays of them; numerals are no words.
    """
    return (words >= FEW_WORDS) & (frequent < FREQUENT * words)


def recognised(*texts: str) -> str:
    """The code of the language of texts: that of most of their frequent words, "" if unclear."""
    return _most_frequent(*_counted(*texts))


def other_language(text: str, language: str) -> str:
    """The language of a text that is not in `language`: "German", or "another language".

    "" for a text that may be in it, and for a language whose frequent words are not known. A short
    text counts as foreign only if it has words of another language, and hardly one of this, or no
    letter of its script.
    """
    code = language.partition("-")[0].lower()
    words, counts = _counted(text)
    if code not in {*frequent_words(), *_SCRIPTS, "ja"}:
        return ""
    best = _most_frequent(words, counts)
    elsewhere = best not in ("", code) and counts[best] > 2 * counts[code]
    if elsewhere:
        return name_of(best)
    # Danish and Norwegian share most of their frequent words.
    several = not counts[code] and max(counts.values()) >= max(2, FREQUENT * words)
    written = counts[code] if code in {*_SCRIPTS, "ja"} else _written_as(code, text)
    if several or (words and not written) or is_foreign(words, counts[code]):
        return "another language"
    return ""


def _written_as(code: str, text: str) -> bool:
    """Whether a text has a letter of the script of a language."""
    scripts = {"ru": "CYRILLIC", "uk": "CYRILLIC", "ar": "ARABIC", "fa": "ARABIC"}
    script = scripts.get(code, "LATIN")
    letters = filter(str.isalpha, text)
    return any(unicodedata.name(letter, "").startswith(script) for letter in letters)


def name_of(code: str) -> str:
    """The English name of a language, or its code."""
    return next((name.title() for name, known in LANGUAGES.items() if known == code), code)


def _counted(*texts: str) -> tuple[int, Counter[str]]:
    """The words of texts, and how many of them each language has among its frequent ones."""
    words = Counter[str]()
    for text in texts:
        # A book may begin with a title page or a licence in another language.
        step = max(len(text) // SAMPLES, SAMPLE)
        for start in range(0, len(text), step):
            words.update(_WORD.findall(text[start : start + SAMPLE].lower()))
    counts = Counter[str]()
    for code, frequent in frequent_words().items():
        known = [words[word] for word in frequent if word in words]
        # One word is no evidence of another language: "y" is Spanish, and a coordinate.
        counts[code] = sum(known) if len(known) > 1 or code == "en" else 0
    for code, script in _SCRIPTS.items():
        counts[code] = sum(n for word, n in words.items() if re.match(f"[{script}]", word))
    # Japanese has Chinese characters too, but no Chinese text has kana.
    kana = sum(n for word, n in words.items() if _KANA.match(word))
    if kana > FREQUENT * counts["zh"]:
        counts["ja"], counts["zh"] = counts["zh"], 0
    return words.total(), counts


def _most_frequent(words: int, counts: Counter[str]) -> str:
    (best, most), (_, second) = counts.most_common(2)
    return best if most >= max(2, FREQUENT * words) and most > second else ""
