"""Backbones of eight families, drawn at random, each with the tokenizer class of its family."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModel,
    BertConfig,
    BertTokenizer,
    DebertaV2Config,
    DebertaV2Tokenizer,
    GPT2Config,
    GPT2Tokenizer,
    ModernBertConfig,
    Qwen2Tokenizer,
    Qwen3Config,
    RobertaConfig,
    RobertaTokenizer,
    T5Config,
    T5Tokenizer,
    XLNetConfig,
    XLNetTokenizer,
)

from zoo.vocabularies import train_subwords

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 140,
}
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0}
CONFIGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "bert": (BertConfig, SIZES),
    "roberta": (RobertaConfig, {**SIZES, "type_vocab_size": 1}),
    "deberta": (DebertaV2Config, {**SIZES, **RELATIVE}),
    "modernbert": (ModernBertConfig, {**SIZES, "local_attention": 16}),
    "xlnet": (XLNetConfig, {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16}),
    "gpt2": (GPT2Config, {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 140}),
    "qwen": (Qwen3Config, {**SIZES, "num_key_value_heads": 1, "head_dim": 8}),
    "t5": (T5Config, {"d_model": 16, "d_ff": 16, "d_kv": 8, "num_layers": 1, "num_heads": 2}),
}
BYTES: dict[str, tuple[Any, list[str]]] = {
    "roberta": (RobertaTokenizer, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
    "gpt2": (GPT2Tokenizer, ["<|endoftext|>"]),
    "qwen": (Qwen2Tokenizer, ["<|endoftext|>"]),
}
PIECES: dict[str, tuple[Any, list[str], dict[str, int]]] = {
    "deberta": (
        DebertaV2Tokenizer,
        ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"],
        {"unk_id": 3},
    ),
    "xlnet": (
        XLNetTokenizer,
        ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"],
        {},
    ),
    "t5": (T5Tokenizer, ["<pad>", "</s>", "<unk>"], {"extra_ids": 0}),
}


def write_family(folder: Path, family: str, texts: Sequence[str]) -> Path:
    """A folder with a backbone of one layer and a tokenizer whose words are those of `texts`."""
    tokenizer = tokenizer_of(family, texts)
    kind, sizes = CONFIGS[family]
    config = kind(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tokenizer_of(family: str, texts: Sequence[str]) -> Any:
    """A tokenizer of the family's own class."""
    words = list(dict.fromkeys(word for text in texts for word in text.split()))
    letters = sorted(set("".join(words)))
    if family == "bert":
        marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        pieces = dict.fromkeys([*marks, *letters, *(f"##{letter}" for letter in letters), *words])
        return BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)})
    if family in PIECES:
        kind, marks, more = PIECES[family]
        scored = dict.fromkeys(marks, 0.0) | dict.fromkeys([*letters, "▁"], -9.0)
        scored |= {f"▁{word}": -3.0 for word in words}
        return kind(vocab=[*scored.items()], **more)
    trained = train_subwords(texts, 400, lower=False, max_length=140)
    if family == "modernbert":
        return trained
    kind, marks = BYTES[family]
    model = json.loads(trained.backend_tokenizer.to_str())["model"]
    pieces = dict.fromkeys([*marks, *list(model["vocab"])[5:]])
    merges = [tuple(pair) for pair in model["merges"]]
    return kind(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges)
