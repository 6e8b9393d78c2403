"""`hub:` a dataset of the Hugging Face Hub (or a local folder of one), streamed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpora.document import Document
from corpora.errors import InputError
from corpora.readers.records import Place, RecordReader
from corpora.readers.source import Source


class Hub(RecordReader):
    """A dataset of the Hugging Face Hub."""

    name = "hub"

    config: str | None = None
    """The dataset's configuration."""
    split: str = "train"
    """The split that is read."""
    revision: str | None = None
    """The commit or branch that is read."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """No files: a Hub source is known by its revision. A local folder lends its own."""
        if not target:
            raise InputError("hub: names no dataset", hint="write hub:ORG/NAME")
        folder = Path(target).expanduser()
        if folder.is_dir():
            return sorted(path for path in folder.rglob("*") if path.is_file())
        return []

    def read(self, source: Source) -> Iterator[Document]:
        """The documents of one split, rows mapped as those of `jsonl:`. Raises as `records`."""
        stem = source.target.rstrip("/").rpartition("/")[2]
        rows = self.records(source.target, self.config, self.split)
        yield from self.documents(rows, source, stem)

    def records(self, target: str, config: str | None, split: str) -> Iterator[Place]:
        """The rows of one split of a configuration, streamed.

        Raises `InputError` if the dataset, its configuration or split is not there, or without
        network.
        """
        import datasets

        where, number = f"hub:{target}[{split}]", 0
        folder = Path(target).expanduser()
        try:
            rows = datasets.load_dataset(
                str(folder) if folder.is_dir() else target,
                config,
                split=split,
                revision=self.revision,
                streaming=True,
            )
        except Exception as error:  # the library raises whatever lies below: network, Arrow, ...
            raise _refused(error, where) from error
        rows = iter(rows)
        while True:
            try:
                row = next(rows, None)
            except Exception as error:
                raise _refused(error, f"{where}:{number + 1}") from error
            if row is None:
                return
            number += 1
            yield f"{where}:{number}", row


def _refused(error: Exception, where: str) -> InputError:
    reason = str(error).strip().splitlines() or [""]
    return InputError(
        f"cannot be read: {type(error).__name__}: {reason[0][:300]}",
        where=where,
        hint="check the name, config, split and revision, the network, and HF_TOKEN if it is gated",
    )
