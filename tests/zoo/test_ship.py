"""The recipe of the shipped scorer, from texts to folder, at a size of seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from zoo.coherence import LinkScorer, load_scorer
from zoo.coherence.modeling import CoherenceScorer
from zoo.coherence.ship import Cues, fit_cue_weights, main
from zoo.loading import load_tokenizer
from zoo.modeling import save_model
from zoo.training.data import open_dataset
from zoo.windows import years_ascend

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
    run("texts", "--novels", *novels, "--articles", f"jsonl:{articles}", "--output", texts)
    run("orders", texts, "--output", tmp_path / "orders")
    every = open_dataset(str(tmp_path / "orders"), "pairwise")["train"]
    assert {name.partition("-")[0] for name in every["document"].to_pylist()} == {"novels", "wiki"}
    run("scorer", texts, "--backbone", big, "--words", "150", "--output", model)
    ranker = as_if_trained(model, tmp_path / "ranker")
    run("ship", model, *("--ranker", ranker, "--rank", 8), "--texts", texts, "--output", shipped)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    assert config["backbone_config"]["vocab_size"] == 150
    scorer = LinkScorer.from_pretrained(shipped)
    assert load_scorer(shipped).score(STORIES) == pytest.approx(scorer.score(STORIES), abs=1e-5)
    trained = load_scorer(ranker).score(STORIES)
    assert scorer.ranker.score(STORIES) == pytest.approx(trained, abs=0.01)
    fitted = scorer.config  # its weights here are of random parts
    fitted.reaches, fitted.others, fitted.years, fitted.order = (3.0, 1.0), 1.0, 0.0, 0.0
    packed = scorer.score(STORIES)
    assert packed == pytest.approx(load_scorer(model).score(STORIES), abs=1e-5)
    scorer.config.order = 0.5
    both = [score + 0.5 * order for score, order in zip(packed, trained, strict=True)]
    assert scorer.score(STORIES) == pytest.approx(both, abs=0.01)
    results = json.loads((shipped / "results.json").read_text(encoding="utf-8"))
    assert results["metrics"]["test"]["permuted, wiki"]["pairs"] > 0
    assert "| test | accuracy |" in (shipped / "README.md").read_text(encoding="utf-8")
    # What is loaded is an ordinary model: it saves its weights in float32 again.
    scorer.save_pretrained(tmp_path / "again")
    (tmp_path / "again" / "tokenizer.json").write_bytes((shipped / "tokenizer.json").read_bytes())
    for name in ("tokenizer_config.json",):
        (tmp_path / "again" / name).write_bytes((shipped / name).read_bytes())
    again = load_scorer(tmp_path / "again")
    assert again.score(STORIES) == pytest.approx(scorer.score(STORIES), abs=1e-6)


def run(*words: object) -> None:
    assert main([str(word) for word in words]) == 0, words[0]


def as_if_trained(model: Path, folder: Path) -> Path:
    """A scorer around the encoder of `model`, whose matrices differ by matrices of rank 1."""
    torch.manual_seed(1)
    backbone = LinkScorer.from_pretrained(model).backbone
    scorer = CoherenceScorer.from_backbone(backbone, 64, vector="mean")
    for weight in scorer.backbone.parameters():
        change = torch.randn(weight.shape[0]) / 8
        weight.data += (
            change if weight.dim() == 1 else torch.outer(change, torch.randn(weight.shape[1]) / 8)
        )
    folder.mkdir()
    save_model(scorer, load_tokenizer(str(model)), folder)
    return folder


def words_a_sentence(text: Sequence[str]) -> float:
    return len(" ".join(text).split()) / len(text)


def lengths_and(cue: Callable[[Sequence[str]], float]) -> Cues:
    """Two cues: the words a sentence, and `cue`."""
    return lambda texts: np.array([[words_a_sentence(text), cue(text)] for text in texts])


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
    turned = [{**row, "pos": row["neg"], "neg": row["pos"]} for row in rows]
    assert fit_cue_weights(lengths_and(years_ascend), rows)[0] > 0.1
    assert fit_cue_weights(lengths_and(years_ascend), turned) == [0]
    assert fit_cue_weights(lengths_and(lambda text: -words_a_sentence(text)), rows) == [0]
