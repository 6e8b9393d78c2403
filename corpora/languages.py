"""Codes of languages, by which parsers, pattern tables and the Hub know them."""

from __future__ import annotations

import re
from typing import Annotated

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
