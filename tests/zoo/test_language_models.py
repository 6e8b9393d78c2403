"""Language models as baselines: exact figures against a naive loop, and their place in suites."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpora.errors import ConfigError, InputError
from tests.zoo.conftest import STORY, SUBJECTS, VERBS, story_documents
from zoo.evaluate.__main__ import main
from zoo.evaluate.language_models import windows
from zoo.evaluate.scorers import baseline, cut_of

TEXTS = [document["sentences"] for document in story_documents(3, 5)]
LONG = [line.format(name) for name in SUBJECTS[:3] for line in STORY]
CONTEXT = 160


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random GPT-2 of one layer for 160 tokens, with a byte-level tokenizer."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "gpt2"
    pieces = ByteLevelBPETokenizer()
    pieces.train_from_iterator([*STORY, *SUBJECTS, *VERBS], 300, special_tokens=["<|end|>"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces._tokenizer, eos_token="<|end|>", model_max_length=10**30
    )
    tokenizer.save_pretrained(folder)
    sizes = {"n_positions": CONTEXT, "n_embd": 16, "n_layer": 1, "n_head": 2}
    config = GPT2Config(
        vocab_size=len(tokenizer), **sizes, initializer_range=0.5, eos_token_id=0, bos_token_id=0
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def next_bert(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    """A random BERT with a next-sentence head."""
    from transformers import AutoTokenizer, BertConfig, BertForNextSentencePrediction

    folder = tmp_path_factory.mktemp("models") / "next"
    config = BertConfig.from_pretrained(tiny_bert)
    config.initializer_range = 0.5
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BertForNextSentencePrediction(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
    return folder


def naive(folder: Path, sentences: list[str]) -> tuple[list[float], list[int]]:
    """The log-probability of each token, one forward pass a token, and tokens a sentence.

    A token sees all before it, or of a long text the window that first reaches it.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    parts = [tokenizer(" " + sentence)["input_ids"] for sentence in sentences]
    ids = [tokenizer.eos_token_id, *(token for part in parts for token in part)]
    found, start, end = [], 0, CONTEXT
    for at in range(1, len(ids)):
        if at == end:
            start, end = end - CONTEXT // 2, end + CONTEXT // 2
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids[start:at]])).logits[0, -1]
        found.append(float(logits.log_softmax(-1)[ids[at]]))
    return found, [len(part) for part in parts]


def test_windows_score_each_token_once_with_half_a_context_before_it() -> None:
    for tokens in (1, 2, 9, 10, 11, 14, 15, 16, 99):
        found = windows(tokens, 10)
        scored = [at for _, first, end in found for at in range(first, end)]
        assert scored == list(range(1, tokens))
        assert all(end - start <= 10 for start, _, end in found)
        assert all(first - start >= 5 for start, first, _ in found[1:])


@pytest.mark.parametrize("sentences", [TEXTS[0], LONG], ids=["one window", "several windows"])
def test_a_causal_models_figures_are_those_of_a_naive_loop(
    gpt2: Path, sentences: list[str]
) -> None:
    tokens, sizes = naive(gpt2, sentences)
    assert (len(tokens) + 1 > CONTEXT) == (sentences is LONG)
    batch = [*TEXTS, sentences, ["Short."]]
    whole = baseline(f"perplexity:{gpt2}").score(batch)
    assert whole[3] == pytest.approx(np.mean(tokens), abs=1e-5)
    parts = np.split(np.array(tokens), np.cumsum(sizes)[:-1])
    given = baseline(f"conditional:{gpt2}").score(batch)
    assert given[3] == pytest.approx(np.mean([part.mean() for part in parts[1:]]), abs=1e-5)
    assert given[4] == pytest.approx(whole[4])  # one sentence: nothing precedes it


def test_next_sentence_probabilities_are_those_of_a_naive_loop(next_bert: Path) -> None:
    from transformers import AutoModelForNextSentencePrediction, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(next_bert)
    model = AutoModelForNextSentencePrediction.from_pretrained(next_bert).eval()
    long = ["A " + "very " * 80 + "long one.", "Then the end."]
    scorer = baseline(f"nsp:{next_bert}")
    found = scorer.score([*TEXTS, long, ["Alone."]])
    for text, value in zip([*TEXTS, long], found, strict=False):
        naive = []
        for pair in pairwise(text):
            inputs = tokenizer(*pair, truncation=True, max_length=64, return_tensors="pt")
            with torch.no_grad():
                naive.append(float(model(**inputs).logits.softmax(-1)[0, 0]))
        assert value == pytest.approx(np.mean(naive), abs=1e-5)
    assert found[-1] == 0 and cut_of(scorer) == 1


def test_a_model_that_is_none_of_the_kind_is_refused(
    gpt2: Path, tiny_bert: Path, next_bert: Path
) -> None:
    for rule, folder, problem in (
        ("nsp", tiny_bert, "has no weights for"),
        ("nsp", gpt2, "cannot load it"),
        ("perplexity", next_bert, "no causal model|has no weights for"),
    ):
        with pytest.raises(InputError, match=problem):
            baseline(f"{rule}:{folder}")
    with pytest.raises(ConfigError, match="names no model"):
        baseline("perplexity")
    with pytest.raises(ConfigError, match="perplexity:MODEL"):
        baseline("perplexty:gpt2")
    scorer = baseline(f"perplexity:{gpt2}")
    for empty in ([], [""], " "):
        with pytest.raises(InputError, match="holds no text"):
            scorer.score([TEXTS[0], empty])


def test_a_masked_model_with_all_its_weights_is_refused_too(
    tiny_bert: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    config = BertConfig.from_pretrained(tiny_bert)
    config.initializer_range = 0.5
    BertForMaskedLM(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="no causal model"):
        baseline(f"conditional:{tmp_path}")


def test_they_stand_beside_every_scorer(
    gpt2: Path, next_bert: Path, permuted_folder: Path, tmp_path: Path
) -> None:
    def evaluated(suite: str, model: str, data: Path, *options: str) -> dict[str, Any]:
        out = tmp_path / f"{suite}.{len(options)}.json"
        words = [suite, "--model", model, "--data", str(data), "--json", str(out), *options]
        assert main(words) == 0
        found: dict[str, Any] = json.loads(out.read_text())
        return found

    names = ["--beside", f"perplexity:{gpt2},nsp:{next_bert}"]
    found = evaluated("permuted", "baseline:longer", permuted_folder, *names)
    beside = found["metrics"]["baselines"]
    assert {"perplexity (gpt2)", "nsp (next)"} < beside.keys()
    own = evaluated("permuted", f"baseline:perplexity:{gpt2}", permuted_folder)
    assert own["model"] == {"name": "perplexity (gpt2)", "type": "baseline"}
    assert own["metrics"]["accuracy"]["value"] == beside["perplexity (gpt2)"]["value"]

    pairs = tmp_path / "pairs.jsonl"
    rows = [{"pos": text, "neg": text[::-1], "votes": [1, 1, 0]} for text in TEXTS]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for suite, options in (("pairwise", ["--encoder", "none"]), ("agreement", [])):
        model = f"baseline:conditional:{gpt2}"
        found = evaluated(suite, model, pairs, *options, "--beside", f"conditional:{gpt2}")
        one = found["metrics"]["sets"]["pairs"]
        figure = one["accuracy" if suite == "pairwise" else "alpha"]["value"]
        assert one["baselines"]["conditional (gpt2)"]["value"] == figure
    assert str(gpt2) not in json.dumps(found)
