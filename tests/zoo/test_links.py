"""The scorer of links: the one that is shipped, and the recipe that makes it."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.numpy import load_file, save_file

from corpora.errors import InputError
from zoo.coherence import SHIPPED, load_scorer
from zoo.coherence.links import LinkConfig, LinkScorer
from zoo.coherence.packed import PackedScorer
from zoo.coherence.scoring import (
    Breaks,
    SentenceEffect,
    explain,
    find_break,
    score_texts,
    warn_of_chance,
)
from zoo.compact import pack
from zoo.modeling import save_model
from zoo.texts import as_sentences

STORIES = [
    [
        "Mira found a small brass key at the bottom of the garden well.",
        "It was green with age and no longer than her thumb.",
        "She tried it in every lock of the house, but none would turn.",
        "At last she remembered the old chest in the attic.",
        "The key went in easily, and the lid sprang open.",
        "Inside the chest lay a bundle of letters tied with a ribbon.",
    ],
    [
        "The ferry to the island leaves at seven in the morning.",
        "Passengers should be at the harbour half an hour before that.",
        "The crossing takes two hours when the sea is calm.",
        "On the way the boat passes a lighthouse from the last century.",
        "After landing, most visitors walk up to the village.",
    ],
    [
        "Henrik Dahl was a Danish botanist of the nineteenth century.",
        "He was born on a farm and studied plants from an early age.",
        "Later he taught botany at the university for thirty years.",
        "His main work describes the mosses of northern Europe.",
        "He died in the winter after it was published.",
    ],
    [
        "To make the soup, first cut two onions into thin rings.",
        "Fry the onions slowly in butter until they are brown.",
        "Then add a litre of stock and let it simmer.",
        "Taste the soup and add salt and pepper.",
        "Serve it hot with bread and cheese on top.",
    ],
    [
        "The old bridge over the river was closed last spring.",
        "Engineers had found deep cracks in two of its pillars.",
        "Since then drivers have had to take a long detour.",
        "The city council now wants to build a new bridge.",
        "It says the work could begin next year.",
    ],
    [
        "My grandfather kept bees behind his workshop.",
        "Every summer he let me help him with the hives.",
        "I wore a veil that was much too large for me.",
        "The bees crawled over it and never stung me.",
        "In the evening we ate bread with the new honey.",
    ],
]


@pytest.fixture(scope="module")
def shipped() -> Any:
    return load_scorer()


def test_the_shipped_scorer_tells_texts_of_two_stories_from_their_permutations(
    shipped: Any,
) -> None:
    draw = random.Random(0)
    told = total = 0
    for number, story in enumerate(STORIES):
        text = [*STORIES[number - 1], *story]
        others = [draw.sample(text, len(text)) for _ in range(10)]
        scores = shipped.score([text, *others])
        told += sum(scores[0] > score for score in scores[1:])
        total += len(others)
    assert told / total > 0.85


def test_the_shipped_scorer_tells_stories_from_intruded_ones(shipped: Any) -> None:
    told = total = marked = 0
    for number, story in enumerate(STORIES):
        for place in range(1, len(story)):
            stranger = STORIES[number - 1][place % 5]
            intruded = [*story[:place], stranger, *story[place + 1 :]]
            coherent, spoilt = shipped.score([story, intruded])
            told, total = told + (coherent > spoilt), total + 1
            gains = [effect.left_out or 0.0 for effect in explain(shipped, intruded)][1:]
            marked += gains.index(max(gains)) + 1 == place
    assert told / total > 0.85
    assert marked / total > 0.5  # chance: a quarter


def test_scores_do_not_depend_on_what_else_is_scored(shipped: Any) -> None:
    together = shipped.score([*STORIES, " ".join(STORIES[0])])
    assert together == shipped.score([*STORIES, " ".join(STORIES[0])])
    alone = [shipped.score([story])[0] for story in STORIES]
    assert together[:-1] == pytest.approx(alone, abs=1e-4)
    assert together[-1] == pytest.approx(together[0], abs=1e-4)


def test_onnx_runtime_gives_the_scores_that_torch_gives(shipped: Any) -> None:
    loaded = LinkScorer.from_pretrained(SHIPPED)
    assert isinstance(shipped, PackedScorer)
    long = [sentence for story in STORIES for sentence in story] * 3
    others = ["In 1848 he was born. In 1850 he left it.", "One.", ["A sentence.", " "]]
    texts = [*STORIES, long, *others, 300 * "naïve “hä” 你好 "]
    ours, theirs = (
        model.score_windows(list(map(as_sentences, texts))) for model in (shipped, loaded)
    )
    assert [number for _, number in ours] == [number for _, number in theirs]
    assert [one for one, _ in ours] == pytest.approx([other for other, _ in theirs], abs=1e-5)
    assert shipped.score(texts) == pytest.approx(loaded.score(texts), abs=1e-5)
    assert shipped.cut == loaded.cut > 0 and shipped.score_windows([]) == []
    for one, other in zip(explain(shipped, STORIES[0]), explain(loaded, STORIES[0]), strict=True):
        assert one.left_out == pytest.approx(other.left_out, abs=1e-5)
    [half] = load_scorer(bf16=True).score(STORIES[:1])
    assert half == pytest.approx(ours[0][0], abs=0.02)


def test_a_scorer_without_a_model_of_order(tmp_path: Path) -> None:
    loaded = LinkScorer.from_pretrained(SHIPPED)
    config = LinkConfig(backbone_config=loaded.config.backbone_config, quotes="balance")
    plain = LinkScorer(config)
    plain.backbone = loaded.backbone
    save_model(plain, loaded.tokenizer, tmp_path, packed=True)
    packed = load_scorer(tmp_path)
    assert packed.score(STORIES) == pytest.approx(
        LinkScorer.from_pretrained(tmp_path).score(STORIES), abs=1e-5
    )


@pytest.mark.parametrize("lost", ["order_head.bias", "changes.embeddings-LayerNorm-bias"])
def test_a_lost_weight_is_named(lost: str, tmp_path: Path) -> None:
    folder = shutil.copytree(SHIPPED, tmp_path / "copy")
    weights = load_file(folder / "model.safetensors")
    del weights[lost]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(InputError, match=lost.removesuffix(".bias")):
        load_scorer(folder).score(STORIES)


def test_a_long_text_has_a_score_and_effects(shipped: Any) -> None:
    text = [sentence for story in STORIES for sentence in story]
    [scored] = score_texts(shipped, [text], reference=[-10.0, 10.0])
    assert scored.sentences == len(text) and scored.percentile is not None
    effects = explain(shipped, text)
    assert [effect.sentence for effect in effects] == text
    assert all(effect.left_out is not None for effect in effects)


def test_a_sentence_may_be_blank(shipped: Any) -> None:
    text = ["A sentence stands here.", " "]
    whole, first = shipped.score([text, text[:1]])
    effects = explain(shipped, text)
    assert effects[1].left_out == pytest.approx(first - whole, abs=1e-6)


def test_one_sentence_has_no_percentile_and_no_break(shipped: Any) -> None:
    [scored] = score_texts(shipped, [["It rained."]], reference=[-10.0, 10.0])
    assert scored.percentile is None
    assert find_break(explain(shipped, ["It rained."]), None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "holds no text"), ([], "holds no text"), ("Half \ud800 pair.", "half a surrogate pair")],
)
def test_what_is_no_text_is_refused(shipped: Any, text: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        shipped.score([STORIES[0], text])
    assert error.value.where == "text 2"


def test_a_score_that_is_no_number_is_refused(
    shipped: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped.config, "others", float("nan"))
    with pytest.raises(InputError, match="scores with NaN"):
        shipped.score(["It rained. We stayed."])


def test_a_break_stands_out_from_the_measured_margin_on() -> None:
    measured = Breaks("held-out texts", 100, 0.5, 0.2, [0.5, 2.0], [0.6, 0.9])
    flat = [SentenceEffect("s", gain, None) for gain in (9.0, 0.1, 0.11, 0.1, 0.0)]
    assert find_break(flat, measured) is None  # the first sentence does not count
    clear = [SentenceEffect("s", gain, None) for gain in (0.0, 0.0, 0.0, 1.0, 0.0)]
    found = find_break(clear, measured)
    assert found is not None and found.sentence == 4
    assert found.right == pytest.approx(0.9) and found.margin > 2
    unmeasured = find_break(clear, None)
    assert unmeasured is not None and unmeasured.right is None
    falling = [SentenceEffect("s", gain, None) for gain in (0.0, -1.0, -0.1, -1.0)]
    assert find_break(falling, measured) is None


def test_a_scorer_near_chance_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for low, warned in ((0.48, 1), (0.6, 1)):
        accuracy = {"value": 0.62, "ci": [low, 0.7]}
        results = {"metrics": {"test": {"accuracy": accuracy}}}
        (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
        warn_of_chance(tmp_path)
        assert len(caplog.records) == warned
    assert "tells 62 of 100 test pairs" in caplog.text


def test_four_bits_keep_a_matrix_nearly_as_it_is() -> None:
    weight = torch.randn(64, 96, generator=torch.Generator().manual_seed(1))
    packed = pack({"a": weight, "b": weight[0]})
    assert packed["a"].shape == (64, 48) and packed["a.scale"].shape == (64, 3)
    assert torch.equal(packed["b"], weight[0])


def test_the_shipped_folder_is_small_and_says_how_good_it_is() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) <= 16e6
    results = json.loads((SHIPPED / "results.json").read_text(encoding="utf-8"))
    accuracy = results["metrics"]["test"]["accuracy"]["value"]
    assert f"{100 * accuracy:.1f}" in (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert accuracy > 0.75
