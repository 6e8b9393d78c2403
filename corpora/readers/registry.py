"""The kinds of sources: how each is found and read, and what options it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.document import Document, Spans
from corpora.errors import InputError
from corpora.readers import (
    arxiv,
    cnn,
    coherence,
    conllu,
    discoeval,
    hub,
    irc,
    jsonl,
    parquet,
    peerread,
    rocstories,
    rst,
    sample,
    storycloze,
    summeval,
    superglue,
    text,
    wikipedia,
    wsj,
)
from corpora.readers.files import find_files
from corpora.readers.source import Source
from corpora.readers.wsj import START


@dataclass(frozen=True, slots=True)
class Reader:
    """How one kind of source is found and read, and what options it takes."""

    kind: str
    summary: str
    find: Callable[[str], list[Path]]
    read: Callable[[Source], Iterator[Document]]
    suffixes: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    licence: str = "unknown"


def _pdtb_files(target: str) -> list[Path]:
    folder = Path(target).expanduser()
    parts = [folder / part for part in ("gold", "raw") if (folder / part).is_dir()]
    if not parts:
        find_files(target, ("",), kind="pdtb")
        raise InputError(
            f"no folder 'gold' in {target!r}",
            hint="pdtb: wants FOLDER/gold/*/ID and FOLDER/raw/*/ID",
        )
    return sorted(path for part in parts for path in part.rglob("*") if path.is_file())


def _read_pdtb(source: Source) -> Iterator[Document]:
    from corpora.readers.pdtb import read_gold

    encoding = source.option("encoding", str, "utf-8")
    folder = Path(source.target).expanduser()
    on_bad = source.note if source.on_bad else None
    for document in read_gold(folder, on_bad=on_bad, encoding=encoding):
        document.language = source.language
        document.paragraphs = _without_start(document)
        yield document


def _without_start(document: Document) -> Spans:
    """The paragraphs but for the Wall Street Journal's `.START`; offsets count it in the text."""
    kept = Spans()
    for start, end in document.paragraphs or ():
        if document.text[start:end].strip() != START:
            kept.add(start, end)
    return kept


def _of_files(kind: str, summary: str, module: Any, *, bare: bool = True) -> Reader:
    """The reader in a module; `bare` if a path's suffix alone says that it is of this kind."""

    def found(target: str) -> list[Path]:
        return find_files(target, module.SUFFIXES, kind=kind)

    find = getattr(module, "find", found)
    suffixes = module.SUFFIXES if bare else ()
    licence = getattr(module, "LICENCE", "unknown")
    return Reader(kind, summary, find, module.read, suffixes, module.OPTIONS, licence)


_ALL = (
    _of_files("text", "plain text, a document per file", text),
    _of_files("jsonl", "JSON Lines with a field mapping", jsonl),
    _of_files("parquet", "Parquet with a field mapping", parquet),
    _of_files("conllu", "CoNLL-U with gold tokens, sentences and trees", conllu),
    _of_files("wikipedia", "MediaWiki XML dumps, as a stream", wikipedia),
    Reader(
        "pdtb",
        "PDTB folders: raw text and gold relations",
        _pdtb_files,
        _read_pdtb,
        options=frozenset({"encoding"}),
    ),
    _of_files("rst", "RST trees: RST-DT .dis, rstWeb .rs3 and .rs4", rst),
    _of_files("irc", "disentangled chat logs", irc, bare=False),
    _of_files("peerread", "PeerRead's parsed papers", peerread),
    _of_files("arxiv", "abstracts of the Kaggle arXiv metadata", arxiv, bare=False),
    _of_files("rocstories", "ROCStories, CSV", rocstories, bare=False),
    _of_files("storycloze", "the Story Cloze Test, CSV", storycloze, bare=False),
    _of_files("summeval", "SummEval's rated summaries", summeval, bare=False),
    _of_files("superglue", "RTE, COPA and ReCoRD of SuperGLUE", superglue, bare=False),
    _of_files("cnn", "CNN and Daily Mail .story files", cnn),
    _of_files("wsj", "the Penn Treebank's raw Wall Street Journal", wsj, bare=False),
    _of_files("discoeval", "DiscoEval's own files of SP, BSO and DC", discoeval, bare=False),
    _of_files("coherence", "pairs of coherent and spoilt texts", coherence, bare=False),
    Reader("hub", "a dataset of the Hugging Face Hub", hub.find, hub.read, (), hub.OPTIONS),
    Reader("sample", "the embedded sample", sample.find, sample.read, licence=sample.LICENCE),
)
READERS: dict[str, Reader] = {reader.kind: reader for reader in _ALL}
