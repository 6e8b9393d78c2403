"""Scoring for users: windows, percentiles, ranks, explanations; and imported checkpoints."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from corpora.errors import InputError
from tests.zoo.test_coherence_model import BACKBONES, scorer
from zoo.backbones import load_backbone
from zoo.coherence.convert import convert
from zoo.coherence.scoring import (
    REFERENCE,
    Reference,
    SentenceEffect,
    explain,
    find_break,
    load_breaks,
    load_reference,
    percentile,
    rank,
    score_texts,
    windows,
)
from zoo.coherence.scoring import load_scorer as load_windows_scorer
from zoo.evaluate import Scores
from zoo.evaluate.scorers import load_scorer
from zoo.modeling import save_model
from zoo.texts import TextEncoder
from zoo.train import train
from zoo.vocabularies import train_subwords

from .conftest import STORY


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_subwords(STORY, 400)


@pytest.fixture(scope="module")
def model(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from zoo.coherence import CoherenceScorer

    folder = tmp_path_factory.mktemp("scorer")
    save_model(scorer("bert", tokenizer, max_tokens=40), tokenizer, folder)
    return CoherenceScorer.from_pretrained(folder).eval()


@pytest.mark.parametrize("recipe", ["coherence/contrastive_tiny", "coherence/unc_tiny"])
def test_a_scorer_reads_quotes_as_its_dataset_has_them(
    recipe: str, permuted_folder: Path, tmp_path: Path
) -> None:
    """The setting is in the model's folder: a user's text gets the marks of the training texts."""
    data = tmp_path / "balanced"
    copytree(permuted_folder, data)
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    manifest["details"] = {"settings": {"quotes": "balance"}}
    (data / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    output = tmp_path / "model"
    train([recipe, "--dataset", str(data), "--output", str(output), "--max_steps", "1"])
    scorer = load_scorer(str(output))
    as_written = "He came. “It rained. We ran. They followed.” We left."
    pairs = ["He came.", "“It rained.”", "“We ran.”", "“They followed.”", "We left."]
    spoilt = ["He came.", "“It rained.", "“We ran.”", "They followed.”", "We left."]
    one, two, three = scorer.score([as_written, pairs, spoilt])
    assert one == pytest.approx(two) and one == pytest.approx(three)
    assert scorer.config.quotes == "balance"  # type: ignore[attr-defined]
    scorer.config.quotes = "keep"  # type: ignore[attr-defined]
    assert scorer.score([as_written]) != pytest.approx([one])


def test_windows_overlap_and_cover_every_sentence(tokenizer: Any) -> None:
    encoder = TextEncoder(tokenizer, 40)
    cut = windows(encoder, [STORY[i % 5] for i in range(30)])
    assert cut[0].numbers[0] == 0 and cut[-1].numbers[-1] == 29
    for one, after in pairwise(cut):
        assert one.numbers[0] < after.numbers[0] <= one.numbers[-1]
    assert max(sum(map(len, pieces)) for pieces, _ in cut) <= encoder.budget


def test_no_window_lies_inside_the_one_before(tokenizer: Any) -> None:
    """Two short sentences before a long one: a window that begins at the second ends no later."""
    encoder = TextEncoder(tokenizer, 40)
    long = " ".join(["counter", "shop", "shelves"] * encoder.budget)
    [ids] = encoder.sentences([long])
    words = tokenizer.decode(ids[: encoder.budget - 4].tolist())
    text = ["It rained."] * 4 + [words] + ["It rained."] * 4
    cut = windows(encoder, text)
    ends = [numbers[-1] for _, numbers in cut]
    assert ends == sorted(set(ends))
    assert cut[0].numbers[0] == 0 and ends[-1] == len(text) - 1


@pytest.mark.parametrize("sentences", [["One."], STORY[:3], ["word " * 10_000]])
def test_texts_of_any_length_have_a_score(model: Any, sentences: list[str]) -> None:
    [scored] = score_texts(model, [sentences])
    tokens = sum(map(len, model.encoder.sentences(sentences)))
    assert np.isfinite(scored.score)
    assert scored.sentences == len(sentences)
    assert scored.windows == max(1, -(-tokens // model.encoder.budget))


def test_a_sentence_longer_than_a_window_is_read_to_its_end(model: Any) -> None:
    budget = model.encoder.budget
    long = " ".join(["counter", "shop", "shelves"] * budget)
    [ids] = model.encoder.sentences([long])
    text = [STORY[0], long, STORY[1]]
    cut = windows(model.encoder, text)
    assert (cut[0].numbers[0], cut[-1].numbers[-1]) == (0, 2)
    read = (pair for pieces, numbers in cut for pair in zip(pieces, numbers, strict=True))
    own = list({id(piece): piece for piece, number in read if number == 1}.values())
    assert np.concatenate(own).tolist() == ids.tolist() and max(map(len, own)) == budget
    one, other = model.score([text, [STORY[0], long[: len(long) // 2], STORY[1]]])
    assert one != other
    assert model.encoder.cut == 0  # nothing was left out
    effects = explain(model, text)
    assert [effect.sentence for effect in effects] == text


def test_a_long_text_scores_the_mean_of_its_windows(model: Any) -> None:
    text = [STORY[i % 5] for i in range(20)]
    cut = windows(model.encoder, text)
    assert len(cut) > 2
    parts = model.score([[text[number] for number in numbers] for _, numbers in cut])
    assert model.score([text])[0] == pytest.approx(np.mean(parts), abs=1e-6)


def test_explain_gives_the_change_of_the_score(model: Any) -> None:
    text = STORY[:3]
    effects = explain(model, text)
    whole, out, swapped = model.score([text, text[1:], [text[1], text[0], text[2]]])
    assert [effect.sentence for effect in effects] == text
    assert effects[0].left_out == pytest.approx(out - whole, abs=1e-6)
    assert effects[0].swapped == pytest.approx(swapped - whole, abs=1e-6)
    assert effects[-1].swapped is None


def test_one_sentence_has_nothing_to_explain(model: Any) -> None:
    [effect] = explain(model, ["It rained."])
    assert effect.left_out is None and effect.swapped is None


def test_a_break_keeps_its_number_beside_sentences_without_effects() -> None:
    gains = [0.0, 0.0, None, 0.0, 5.0, 0.0]
    effects = [SentenceEffect(str(number), gain, None) for number, gain in enumerate(gains, 1)]
    found = find_break(effects, None)
    assert found is not None and found.sentence == 5


def test_a_scorer_or_a_function_in_hand_has_scores_and_percentiles(
    model: Any,
) -> None:
    texts = ["It rained. We stayed.", "A word."]
    lengths = Scores(lambda texts: [len(text) for text in texts], "length")
    (one, two) = score_texts(lengths, texts, [0.0, 42.0])
    assert (one.score, one.percentile, one.windows) == (len(texts[0]), 50.0, 1)
    assert two.percentile is None
    assert rank(lengths, "", texts) == [(0, 21.0), (1, 7.0)]
    assert load_reference(lengths) is None and load_breaks(lengths) is None
    known = Path(model.name_or_path) / REFERENCE
    known.write_text('{"of": "stories", "texts": 2, "quantiles": [0.0, 1.0]}', encoding="utf-8")
    assert load_reference(model) == Reference("stories", 2, (0.0, 1.0))
    known.unlink()


def test_a_rule_does_not_score_in_windows() -> None:
    with pytest.raises(InputError, match="is a Scores") as caught:
        load_windows_scorer("baseline:longer")
    assert "evaluate pairwise" in caught.value.hint


def test_rank_puts_the_best_alternative_first(model: Any) -> None:
    prompt, ends = STORY[0], [STORY[1], STORY[4], STORY[2]]
    scores = model.score([[prompt, end] for end in ends])
    assert [i for i, _ in rank(model, prompt, ends)] == np.argsort(-np.array(scores)).tolist()


def test_a_score_that_is_no_number_is_refused(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = nn.Parameter(torch.full_like(model.score_head.weight, torch.nan))
    monkeypatch.setitem(model.score_head._parameters, "weight", broken)
    for call in (lambda: explain(model, STORY), lambda: rank(model, "", [STORY, STORY[:2]])):
        with pytest.raises(InputError, match=r"scores with NaN.*\n.*train the model again"):
            call()


def test_percentiles_follow_the_reference(tmp_path: Path) -> None:
    known = Reference.among("", [float(i) for i in range(11)]).quantiles
    assert percentile(-5, known) == 0 and percentile(50, known) == 100
    assert percentile(5.0, known) == pytest.approx(50)
    stored = {"of": "stories", "texts": 11, "quantiles": known}
    (tmp_path / REFERENCE).write_text(json.dumps(stored), encoding="utf-8")
    assert load_reference(tmp_path) == Reference("stories", 11, known)
    assert load_reference(tmp_path / "none") is None
    with pytest.raises(InputError, match="has no texts"):
        Reference.among("", [])


def test_reference_texts_that_tie_are_not_lower() -> None:
    assert percentile(1.0, Reference.among("", [1.0] * 5).quantiles) == 0
    assert percentile(1.1, Reference.among("", [1.0]).quantiles) == 100
    # A text of the reference itself, scored in another batch.
    assert percentile(1.5274451, Reference.among("", [1.52744508]).quantiles) == 0
    mostly = Reference.among("", [0.0] * 90 + [1.0] * 10).quantiles
    assert percentile(0.0, mostly) == 0
    assert percentile(0.5, mostly) == pytest.approx(90, abs=1)
    assert percentile(1.0, mostly) == pytest.approx(90, abs=1)


def test_a_model_of_the_hub_has_its_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the Hub's cache holds a model; no file that lies about here is taken for it."""
    known = Reference.among("", [1.0, 2.0]).quantiles
    folder = tmp_path / "hub" / "models--someone--scorer"
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc", encoding="utf-8")
    file = folder / "snapshots" / "abc" / REFERENCE
    stored = {"of": "stories", "texts": 2, "quantiles": known}
    file.write_text(json.dumps(stored), encoding="utf-8")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # no tries without a net
    assert load_reference("someone/scorer") == Reference("stories", 2, known)
    assert load_reference("someone/other") is None
    monkeypatch.chdir(file.parent)
    assert load_reference("") is None


def test_without_a_reference_there_is_no_percentile(
    model: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", logger="zoo"):
        assert load_reference(tmp_path) is None
    assert [record.message.count("--reference") for record in caplog.records] == [1]
    [scored] = score_texts(model, [STORY[:2]])
    assert scored.percentile is None
    [scored] = score_texts(model, [STORY[:2]], reference=[scored.score - 1, scored.score + 1])
    assert scored.percentile == pytest.approx(50)


# The authors' checkpoints


@pytest.fixture
def backbone_folder(tokenizer: Any, tmp_path: Path) -> Path:
    torch.manual_seed(3)
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    save_model(load_backbone("", BACKBONES["xlnet"] | ids), tokenizer, tmp_path / "backbone")
    return tmp_path / "backbone"


@pytest.mark.parametrize("prefix", ["main_encoder", "model"])
def test_the_authors_state_dict_becomes_a_scorer(
    prefix: str, backbone_folder: Path, tmp_path: Path, tokenizer: Any
) -> None:
    from zoo.coherence import CoherenceScorer

    encoder = load_backbone(str(backbone_folder), {})
    head = nn.Linear(32, 1)
    state = {f"{prefix}.{name}": value for name, value in encoder.state_dict().items()}
    state |= {f"conlinear.{name}": value for name, value in head.state_dict().items()}
    if prefix == "main_encoder":
        state |= {f"momentum_encoder.{n}": v for n, v in encoder.state_dict().items()}
    torch.save(state, tmp_path / "model.pt")
    left_out = convert(tmp_path / "model.pt", tmp_path / "out", str(backbone_folder), 64)
    assert left_out == (["momentum_encoder"] if prefix == "main_encoder" else [])
    model = CoherenceScorer.from_pretrained(tmp_path / "out").eval()
    ids = torch.as_tensor(model.encoder.text(STORY[:2])).long().unsqueeze(0)
    vector = encoder.eval()(input_ids=ids).last_hidden_state[:, -1]
    assert model.score([STORY[:2]])[0] == pytest.approx(head(vector).item(), abs=1e-5)


def test_a_state_dict_of_older_transformers_is_read(tokenizer: Any, tmp_path: Path) -> None:
    """Before 4.31 it also held the numbers of the positions."""
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    encoder = load_backbone("", BACKBONES["bert"] | ids)
    save_model(encoder, tokenizer, tmp_path / "backbone")
    state = {f"model.{name}": value for name, value in encoder.state_dict().items()}
    state["model.embeddings.position_ids"] = torch.arange(512)[None]
    state |= {"conlinear.weight": torch.ones(1, 32), "conlinear.bias": torch.zeros(1)}
    torch.save(state, tmp_path / "old.pt")
    assert convert(tmp_path / "old.pt", tmp_path / "out", str(tmp_path / "backbone"), 64) == []
    assert (tmp_path / "out" / "model.safetensors").is_file()


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("harm"),))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Harmful(), "cannot be read: .*\n.*state dict"),
        ({"weights": [1, 2]}, "is not a state dict"),
        ({"other.weight": torch.zeros(1)}, "do not fit"),
        (
            {"model.x": torch.zeros(1), "conlinear.weight": torch.zeros(1), "odd": torch.zeros(1)},
            "do not fit",
        ),
        ({"model.x": torch.zeros(1), "conlinear.weight": torch.zeros(1)}, "do not fit"),
    ],
)
def test_other_checkpoints_are_refused(
    content: Any, message: str, backbone_folder: Path, tmp_path: Path
) -> None:
    torch.save(content, tmp_path / "model.pt")
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "model.pt", tmp_path / "out", str(backbone_folder))
    assert not (tmp_path / "out").exists()
    assert not Path("harm").exists()


@pytest.mark.parametrize("content", [b"", b".", b"half a page\n", b"(a list)\n", b"X\x01"])
def test_a_file_that_is_no_checkpoint_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.pt: cannot be read"):
        convert(tmp_path / "model.pt", tmp_path / "out")
