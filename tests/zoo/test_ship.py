"""The recipe of the shipped scorer, from texts to folder, at a size of seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from zoo.coherence import load_scorer
from zoo.coherence.ship import fitted_years, main

from .test_links import STORIES

NAMES = ["Anna", "Boris", "Clara", "David", "Elena", "Felix", "Greta", "Henry", "Irene", "Jonas"]


def told_by(name: str, story: int) -> str:
    """A story in other words: its sentences, each with something of a name's own."""
    return " ".join(
        f"{sentence[:-1]}, as {name} said on day {place}."
        for place, sentence in enumerate(STORIES[story])
    )


def word_pieces(folder: Path, texts: list[str]) -> Path:
    """A BERT of random weights with a WordPiece tokenizer: the words of `texts`, and letters."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [mark + chr(code) for code in range(97, 123) for mark in ("", "##")]
    words = sorted({word.strip(".,").lower() for text in texts for word in text.split()})
    vocabulary = {w: i for i, w in enumerate(dict.fromkeys([*special, ".", ",", *letters, *words]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    names = {f"{token.strip('[]').lower()}_token": token for token in special}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def test_the_recipe_makes_a_scorer_that_loads(tmp_path: Path) -> None:
    novels = []
    for book, name in enumerate(NAMES[:3]):
        rows = [
            {"book": name, "chapter_id": f"chapter-{i}", "paragraph": i, "text": told_by(other, i)}
            for i, other in enumerate(NAMES[4 + book : 7 + book])
        ]
        novels.append(tmp_path / f"{name}.jsonl")
        novels[-1].write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    articles = tmp_path / "articles.jsonl"
    rows = [
        {"id": f"{name}-{i}", "text": told_by(name, i), "licence": "CC-BY-SA-4.0"}
        for i in range(len(STORIES))
        for name in NAMES
    ]
    articles.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    texts = tmp_path / "texts"
    big = word_pieces(tmp_path / "bert", [row["text"] for row in rows])
    model, shipped = tmp_path / "model", tmp_path / "shipped"
    for words in (
        [*("texts", "--novels", *novels, "--articles", f"jsonl:{articles}"), "--output", texts],
        ["scorer", texts, "--backbone", big, "--words", "150", "--output", model],
        ["ship", model, "--texts", texts, "--output", shipped],
    ):
        assert main([str(word) for word in words]) == 0, words[0]
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    assert config["backbone_config"]["vocab_size"] == 150
    scorer = load_scorer(shipped)
    scorer.config.years = 0.0  # which random weights may have
    packed, trained = scorer.score(STORIES), load_scorer(model).score(STORIES)
    assert packed == pytest.approx(trained, abs=0.2) and packed != trained
    results = json.loads((shipped / "results.json").read_text(encoding="utf-8"))
    assert results["metrics"]["test"]["permuted, wiki"]["pairs"] > 0
    assert "| test | accuracy |" in (shipped / "README.md").read_text(encoding="utf-8")
    # What is loaded is an ordinary model: it saves its weights in float32 again.
    scorer.save_pretrained(tmp_path / "again")
    (tmp_path / "again" / "tokenizer.json").write_bytes((shipped / "tokenizer.json").read_bytes())
    for name in ("tokenizer_config.json",):
        (tmp_path / "again" / name).write_bytes((shipped / name).read_bytes())
    assert load_scorer(tmp_path / "again").score(STORIES) == pytest.approx(packed, abs=1e-6)


class Lengths:
    """A scorer of words a sentence."""

    def score(self, texts: list[tuple[str, ...]]) -> list[float]:
        return [len(" ".join(text).split()) / len(text) for text in texts]


def test_years_get_weight_where_they_tell_coherent_texts() -> None:
    rows = []
    for i in range(60):
        pos = [
            f"In {1800 + i} it rained.",
            "We left.",
            f"In {1850 + i} it snowed.",
            "We came back.",
        ]
        neg = [pos[2], "We left.", pos[0], "We came."]
        rows.append({"source": "wiki", "kind": "permuted", "pos": pos, "neg": neg})
    assert fitted_years(Lengths(), rows) > 0.1
    turned = [{**row, "pos": row["neg"], "neg": row["pos"]} for row in rows]
    assert fitted_years(Lengths(), turned) == 0
