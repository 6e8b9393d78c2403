"""What a reader is: a class that finds the files of a source and reads their documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, field_validator

from corpora.declared import Declared
from corpora.document import Document
from corpora.errors import ConfigError
from corpora.readers.files import find_files, known_encoding
from corpora.readers.source import Source


def _no_switch(value: Any) -> Any:
    if isinstance(value, bool):
        raise ConfigError(f"{value!r}: expected a whole number")
    return value


Whole = Annotated[int, BeforeValidator(_no_switch)]
"""A whole number; on the command line it is written as text."""
Encoding = Annotated[str, AfterValidator(known_encoding)]
"""An encoding that contains ASCII: `utf-8`, `latin-1`, `cp1252`."""


class Reader(Declared):
    """One kind of source. `name` is the kind, what a spec `KIND:PATH` begins with.

    The options of a source are the fields. The option `name` (what `Document.source` says) is the
    source's and not the reader's: `corpora.readers.opened` takes it.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """How the names of the files end that are looked for in a folder."""
    by_genre: ClassVar[bool] = False
    """Whether the option `licence` may be a table by genre."""
    own_licence: ClassVar[str] = "unknown"
    """The licence of documents that bring none where the options name none either."""

    licence: str | dict[str, str] = ""
    """SPDX identifier of the documents that bring none; for conllu also a table by genre."""
    language: str = "en"
    """ISO 639-1 code of the documents that bring none."""

    @field_validator("licence")
    @classmethod
    def _one_licence(cls, licence: str | dict[str, str]) -> str | dict[str, str]:
        if isinstance(licence, dict) and not cls.by_genre:
            raise ConfigError(
                f"{licence!r} is not a licence",
                hint="give an SPDX identifier such as CC-BY-4.0; a table by genre is for conllu:",
            )
        return licence

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Every file that a source of this kind opens, sorted: its fingerprint is theirs.

        Raises `InputError` if none is there.
        """
        return find_files(target, cls.suffixes, kind=cls.name)

    def read(self, source: Source) -> Iterator[Document]:
        """The documents of `source.files`; a bad record goes to `source`, and the next is read."""
        raise NotImplementedError
