"""The stanza parser for real, with a tagger and a parser trained here on a few sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpora.document import Document, Spans
from corpora.readers import open_source
from extract import Extractor
from extract.pairs import Reject
from extract.parsers import get_parser

pytestmark = [pytest.mark.nightly, pytest.mark.slow]
TREES = Path(__file__).parents[1] / "data" / "parser" / "tiny.conllu"
SMALL = {
    **{"hidden_dim": 32, "word_emb_dim": 16, "transformed_dim": 16, "tag_emb_dim": 8},
    **{"deep_biaff_hidden_dim": 16, "batch_size": 200, "max_steps": 60, "eval_interval": 30},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings of `stanza:en` with models of its own; they have learnt next to nothing."""
    tagger = pytest.importorskip("stanza.models.tagger")
    parser = pytest.importorskip("stanza.models.parser")
    folder = tmp_path_factory.mktemp("stanza")
    (folder / "resources.json").write_text("{}", encoding="utf-8")
    given = {"train_file": TREES, "eval_file": TREES, "save_dir": folder, "lang": "en", **SMALL}
    common = [str(part) for name, value in given.items() for part in (f"--{name}", value)]
    common += ["--shorthand", "en_tiny", "--mode", "train", "--no_pretrain", "--cpu", "--seed", "1"]
    tagger.main([*common, "--save_name", "pos.pt"])
    parser.main([*common, "--save_name", "depparse.pt", "--no_checkpoint"])
    return {
        "dir": str(folder),
        "processors": "tokenize,pos,lemma,depparse",
        "tokenize_with_spacy": True,
        "lemma_use_identity": True,
        "pos_model_path": str(folder / "pos.pt"),
        "depparse_model_path": str(folder / "depparse.pt"),
        "allow_unknown_language": True,
        "use_gpu": False,
    }


def test_raw_text_is_parsed_within_its_sentences(models: dict[str, Any]) -> None:
    text = "The kettle sang because the stove glowed. It rained,\nso we stayed."
    plain = Document(id="d", text=text, sentences=Spans([0, 42], [41, len(text)]))
    (parsed,) = get_parser("stanza:en", **models).parse([plain])
    forms = [parsed.strings.strings[code] for code in parsed.form]
    spans = zip(parsed.start.tolist(), parsed.end.tolist(), strict=True)
    assert forms == [text[a:b] for a, b in spans]
    assert parsed.sentence.tolist() == [0, 1]
    begin, end = parsed.offsets[1:].tolist()
    assert (parsed.head[:begin] < begin).all()
    assert ((parsed.head[begin:end] < 0) | (parsed.head[begin:end] >= begin)).all()
    assert parsed.head.min() == -1


def test_gold_tokens_are_kept_and_long_sentences_left_out(models: dict[str, Any]) -> None:
    documents = list(open_source(f"conllu:{TREES}"))
    settings = {k: v for k, v in models.items() if k != "tokenize_with_spacy"}
    rejects: list[Reject] = []
    given = {"gold_tokens": True, "prefilter": None, "max_chars": 40, **settings}
    extractor = Extractor("stanza:en", "all15", on_reject=rejects.append, **given)
    list(extractor.columns(documents))
    long = [span for d in documents for span in d.sentences if span[1] - span[0] > 40]
    assert long and [r.span for r in rejects if r.reason == "sentence_too_long"] == long
    (parsed, *_) = get_parser("stanza:en", gold_tokens=True, **settings).parse(documents)
    assert parsed.start.tolist() == documents[0].tokens.start
