"""Documents on disk: every layer comes back, the same bytes each time, a broken run goes on."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpora.document import Document, Relation, Sections, Spans, Tokens, Turns
from corpora.errors import DiscorporaError, InputError
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.sentences.shards import split_documents
from corpora.store.documents import (
    iter_documents,
    write_documents,
)

FIXTURE = Path(__file__).resolve().parent.parent / "data" / "readers" / "harbour.conllu"


def full() -> Document:
    """A document with every layer, some of them empty."""
    return Document(
        id="full",
        text="Ida laughed because Bo fell. \U0001f600\n\nThe end.",
        group="g",
        source="text:x",
        licence="CC0-1.0",
        language="en",
        title="Tïtle",
        url="https://example.org",
        categories=("a", "b"),
        sections=Sections([1], [""], [0], [30]),
        sentences=Spans([0], [28]),
        turns=Turns(["ida"], [-1], [0], [30]),
        tokens=Tokens(["Ida"], [0], [3], ["PROPN"], [""], [""], ["root"], [-1], [0, 1]),
        relations=[
            Relation("Explicit", "because", ((12, 19),), ((0, 11),), ((20, 27),), ("A.B",), "x:1"),
            Relation("Implicit", "", (), ((0, 3), (4, 11)), ((31, 38),)),
        ],
    )


def empty_layers() -> Document:
    return Document(id="empty", text="x", sentences=Spans(), turns=Turns(), relations=[])


def many(count: int, size: int = 1) -> Iterator[Document]:
    for number in range(count):
        yield Document(id=f"d{number}", text=f"One is {number}. Two is not. " * size)


def test_all_layers_come_back(tmp_path: Path) -> None:
    documents = [full(), empty_layers(), Document(id="bare", text="x"), *open_source(str(FIXTURE))]
    assert write_documents(documents, tmp_path) == len(documents)
    assert list(iter_documents(tmp_path)) == documents


def test_shards_are_counted_and_read_in_order(tmp_path: Path) -> None:
    assert write_documents(many(25), tmp_path / "a", docs_per_shard=10) == 25
    assert [path.name for path in sorted((tmp_path / "a").iterdir())] == [
        f"documents-0000{n}.parquet" for n in range(3)
    ]
    write_documents([full()], tmp_path / "b")
    ids = [d.id for d in iter_documents([tmp_path / "a", tmp_path / "b"])]
    assert ids == [*(f"d{n}" for n in range(25)), "full"]


def test_shards_beyond_five_digits_come_last(tmp_path: Path) -> None:
    write_documents(many(20), tmp_path, docs_per_shard=10)
    for old, new in ((1, 100_000), (0, 99_999)):
        (tmp_path / f"documents-{old:05d}.parquet").rename(tmp_path / f"documents-{new}.parquet")
    assert [document.id for document in iter_documents(tmp_path)] == [f"d{n}" for n in range(20)]


def test_the_bytes_depend_on_the_documents_only(tmp_path: Path) -> None:
    def bytes_of(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    for name in "ab":
        write_documents([full(), *many(300)], tmp_path / name)
        split_documents(tmp_path / name, tmp_path / f"{name}-split")
    assert bytes_of(tmp_path / "a-split") == bytes_of(tmp_path / "b-split")
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


def test_a_broken_run_goes_on_from_its_shards(tmp_path: Path) -> None:
    def broken() -> Iterator[Document]:
        yield from many(25)
        raise RuntimeError("the power went")

    whole, folder = tmp_path / "whole", tmp_path / "folder"
    write_documents(many(40), whole, docs_per_shard=10)
    with pytest.raises(RuntimeError):
        write_documents(broken(), folder, docs_per_shard=10)
    kept = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(kept) == 2
    assert write_documents(many(40), folder, docs_per_shard=10) == 40
    for path in whole.iterdir():
        again = folder / path.name
        assert again.read_bytes() == path.read_bytes()
        assert kept.get(path.name, again.stat().st_mtime_ns) == again.stat().st_mtime_ns
    assert len(list(folder.iterdir())) == 4


def test_the_sentences_of_a_splitter_stand_beside_those_of_the_source(tmp_path: Path) -> None:
    documents = [full(), Document(id="z", text="他来了。她走了。", language="zh"), *many(3)]
    write_documents(documents, tmp_path / "d", docs_per_shard=2)
    for splitter, count in (("rules", 11), ("source", 9)):
        folder = tmp_path / splitter
        assert split_documents(tmp_path / "d", folder, splitter) == count
        split = list(iter_documents(folder))
        assert split == [split_document(document, splitter) for document in documents]
        assert split[1].sentence_texts() == ["他来了。", "她走了。"]
        shard = pq.read_table(folder / "documents-00000.parquet")
        assert shard.schema.metadata[b"splitter"] == splitter.encode()
        assert shard["sentences"].to_pylist() == [{"start": [0], "end": [28]}, None]
    assert [path.name for path in sorted(folder.iterdir())] == [
        f"documents-0000{n}.parquet" for n in range(3)
    ]


def test_a_broken_splitter_goes_on_from_its_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_documents(many(40), tmp_path / "d", docs_per_shard=10)
    split_documents(tmp_path / "d", tmp_path / "whole")

    def broken(document: Document, splitter: str) -> Document:
        if document.id == "d25":
            raise RuntimeError("the power went")
        return split_document(document, splitter)

    with monkeypatch.context() as context, pytest.raises(RuntimeError):
        context.setattr("corpora.sentences.shards.split_document", broken)
        split_documents(tmp_path / "d", tmp_path / "s")
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s").iterdir()}
    assert len(kept) == 2
    assert split_documents(tmp_path / "d", tmp_path / "s") == 80
    for path in (tmp_path / "s").iterdir():
        assert path.read_bytes() == (tmp_path / "whole" / path.name).read_bytes()
        assert kept.get(path.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns


def test_no_documents_are_no_missing_folder(tmp_path: Path) -> None:
    assert write_documents([], tmp_path / "none") == 0
    assert split_documents(tmp_path / "none", tmp_path / "split") == 0
    assert list(iter_documents(tmp_path / "none")) == list(iter_documents(tmp_path / "split")) == []
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no documents-\*"):
        list(iter_documents(tmp_path / "empty"))


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    write_documents(many(3), tmp_path)
    shard = tmp_path / "documents-00000.parquet"
    shard.write_bytes(shard.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"documents-00000\.parquet: cannot be read"):
        list(iter_documents(tmp_path))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(DiscorporaError, match="file"):
        write_documents(many(1), tmp_path / "file" / "d")


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        folder = tmp_path / str(count)
        tracemalloc.start()
        write_documents(many(count, 30), folder)
        split_documents(folder, folder / "split")
        for _ in iter_documents(folder / "split"):
            pass
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(640) < 1.2 * peak(128)
