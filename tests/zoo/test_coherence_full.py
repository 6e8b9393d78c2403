"""The full model: momentum encoder, queue, mining, slices, and its loop."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, normalize

from corpora.errors import InputError
from tests.zoo.conftest import orders_of, story_documents, write_dataset
from tests.zoo.test_resume import kill_at, killed, train_together
from zoo.coherence import CoherenceScorer
from zoo.coherence.contrastive import prepare
from zoo.coherence.data import Documents, candidate_rows
from zoo.coherence.loop import FullTraining, document_slice, hardest_negatives, random_negatives
from zoo.coherence.modeling import ScoreOutput
from zoo.coherence.objectives import MomentumContrast, MomentumEncoder, NegativeQueue
from zoo.coherence.recipes import Full
from zoo.coherence.scoring import REFERENCE, Reference
from zoo.evaluate.__main__ import main as evaluate
from zoo.evaluate.compare import compare
from zoo.presets import read_preset
from zoo.train import train
from zoo.training.job import Job
from zoo.training.mapped import Texts

PAPER_MOMENTUM = Full.model_fields["momentum"].default
FULL = ["coherence/full_tiny", "--mine_every", "16", "--candidates", "10", "--max_tokens", "64"]


@pytest.fixture(scope="session")
def ranked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 documents to train on with ten negatives a row; few others."""
    from corpora import schemas

    parts: dict[tuple[str, str], tuple[list[dict[str, Any]], Any]] = {}
    for seed, (split, size) in enumerate({"train": 50, "validation": 6, "test": 6}.items()):
        documents = story_documents(size, seed)
        parts["documents", split] = documents, schemas.PERMUTED_DOCUMENTS
        parts["pairwise", split] = orders_of(documents, 1, 4), schemas.PERMUTED_PAIRWISE
        parts["ranked", split] = orders_of(documents, 10, 1), schemas.PERMUTED_ORDERS
    return write_dataset(tmp_path_factory.mktemp("data") / "ranked", "ranked", parts)


# Momentum (equations 3 to 5)


def test_one_update_follows_equation_4() -> None:
    layer = nn.Linear(3, 2)
    momentum = MomentumEncoder(layer, 0.9)
    before = layer.weight.detach().clone()
    with torch.no_grad():
        layer.weight += 1.0
    momentum.update(layer)
    assert torch.allclose(momentum.encoder.weight, 0.9 * before + 0.1 * (before + 1.0))


def test_ten_thousand_updates_of_the_papers_momentum_keep_to_exact_arithmetic() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(16, 16)
    momentum = MomentumEncoder(layer, PAPER_MOMENTUM)
    exact = layer.weight.detach().double()
    start = exact.clone()
    plain = layer.weight.detach().clone()
    for _ in range(10_000):
        with torch.no_grad():
            layer.weight += 1e-3 * torch.randn_like(layer.weight)
        momentum.update(layer)
        exact = PAPER_MOMENTUM * exact + (1 - PAPER_MOMENTUM) * layer.weight.detach().double()
        plain = PAPER_MOMENTUM * plain + (1 - PAPER_MOMENTUM) * layer.weight.detach()
    moved = (exact - start).abs().max()
    error = (momentum.difference[0].double() - (exact - start)).abs().max()
    assert error < 1e-4 * moved
    assert (plain.double() - exact).abs().max() > 10 * error  # float32 by itself does not hold it


def test_the_momentum_of_a_bfloat16_encoder_is_kept_in_float32() -> None:
    """A weight moves by less than bfloat16 tells apart: the difference holds it nevertheless."""
    torch.manual_seed(0)
    layer = nn.Linear(16, 16).to(torch.bfloat16)
    momentum = MomentumEncoder(layer, PAPER_MOMENTUM)
    start = layer.weight.detach().double()
    exact = start.clone()
    for _ in range(500):
        with torch.no_grad():
            layer.weight += 1e-2 * torch.randn_like(layer.weight)
        momentum.update(layer)
        exact = PAPER_MOMENTUM * exact + (1 - PAPER_MOMENTUM) * layer.weight.detach().double()
    moved = exact - start
    assert (momentum.difference[0].double() - moved).abs().max() < 1e-4 * moved.abs().max()
    assert momentum.encoder.weight.dtype == torch.bfloat16


def test_a_checkpoint_of_the_momentum_goes_on() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(16, 16)
    momentum, again = MomentumEncoder(layer, 0.9), MomentumEncoder(layer, 0.9)
    with torch.no_grad():
        layer.weight += 1.0
    momentum.update(layer)
    again.load_state_dict(momentum.state_dict())
    assert torch.equal(again.encoder.weight, momentum.encoder.weight)


def test_the_momentum_encoder_gets_no_gradient() -> None:
    layer = nn.Linear(3, 2)
    momentum = MomentumEncoder(layer, 0.9)
    texts = torch.ones(1, 3)
    loss = (layer(texts) * momentum.encoder(texts)).sum()
    loss.backward()
    assert layer.weight.grad is not None
    assert all(p.grad is None and not p.requires_grad for p in momentum.encoder.parameters())


def test_momentum_contrast_of_one_document_by_hand() -> None:
    own, followed = torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])
    queue = NegativeQueue(4, 2)
    queue.push(torch.tensor([[5.0, 0.0], [0.0, -1.0]]))
    positive = float(cosine_similarity(own, followed))
    assert positive == pytest.approx(0.8)
    expected = -math.log(
        math.exp(0.8) / (math.exp(0.8) + math.exp(0.6 - 0.1) + math.exp(-0.8 - 0.1))
    )
    found = MomentumContrast(margin=0.1)(own, followed, queue())
    assert float(found) == pytest.approx(expected, abs=1e-6)


# The queue


def test_the_queue_keeps_the_latest_when_it_wraps() -> None:
    queue = NegativeQueue(4, 2)
    angles = torch.arange(6.0)
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    for start in range(0, 6, 2):
        queue.push(vectors[start : start + 2])
        assert len(queue()) == min(4, start + 2)
    torch.testing.assert_close(queue(), vectors[[4, 5, 2, 3]])


def test_the_queue_takes_more_than_it_holds() -> None:
    queue = NegativeQueue(3, 2)
    angles = torch.arange(7.0)
    queue.push(torch.stack([angles.cos(), angles.sin()], dim=1))
    torch.testing.assert_close(queue()[:, 0], angles[-3:].cos())


# Mining (algorithm 1) and slices


class Scored:
    """Documents whose text is their order, and a model that scores an order by a table."""

    def __init__(self, scores: dict[tuple[int, ...], float]) -> None:
        self.scores, self.batches = scores, 0

    def permuted(self, document: str, order: list[int]) -> tuple[int, ...]:
        return tuple(order)

    def score_ids(self, texts: list[tuple[int, ...]], *_: Any, **__: Any) -> list[float]:
        self.batches += 1
        return [self.scores[text] for text in texts]


def test_the_mined_negatives_are_the_hardest() -> None:
    random = np.random.default_rng(3)
    orders = [random.permutation(5).tolist() for _ in range(50)]
    orders = [list(order) for order in dict.fromkeys(map(tuple, orders))]
    scored: Any = Scored({tuple(order): float(random.normal()) for order in orders})
    [(_, chosen)] = hardest_negatives(scored, scored, [("d", orders)], keep=5)
    best = sorted(orders, key=lambda order: -scored.scores[tuple(order)])[:5]
    assert chosen == best
    assert scored.batches == 1


def test_equal_scores_and_few_negatives() -> None:
    scored: Any = Scored({(1,): 0.0, (2,): 0.0})
    assert hardest_negatives(scored, scored, [("d", [[1], [2]])], keep=3) == [
        ("d", [[1], [2], [1]])
    ]


def test_the_first_round_draws_at_random_and_the_same_for_the_same_seed() -> None:
    row = ("d", [[i] for i in range(50)])
    first, again = ([random_negatives(row, 5, 1, number) for number in range(3)] for _ in range(2))
    assert first == again
    assert first[0] != first[1]
    assert all(len({tuple(order) for order in chosen}) == 5 for _, chosen in first)


def numbered(names: str, size: int, first: int = 0) -> Documents:
    """Documents of `size` sentences, each one token: its number, counted over all documents."""
    encoder: Any = SimpleNamespace(assemble=np.concatenate)
    tokens = Texts.of([number] for number in range(first, first + size * len(names)))
    arrays = {"tokens": tokens, "sizes": [size] * len(names), "cut": np.zeros(1)}
    return Documents(pa.table({"id": list(names)}), encoder, arrays)


@pytest.mark.parametrize("slices", ["contiguous", "prefix"])
def test_slices_are_contiguous_and_of_four_sentences_at_least(slices: str) -> None:
    recipe = Full.of({"dataset": "d", "output": "o", "slices": slices})
    found = {
        tuple(document_slice(numbered("d", 9), "d", recipe, step).tolist()) for step in range(400)
    }
    assert all(part == tuple(range(part[0], part[0] + len(part))) for part in found)
    assert {len(part) for part in found} == set(range(4, 10))
    assert {part[0] for part in found} == ({0} if slices == "prefix" else set(range(6)))


def test_a_short_document_is_its_own_slice() -> None:
    recipe = Full(dataset="d", output="o")
    assert document_slice(numbered("d", 2), "d", recipe, 0).tolist() == [0, 1]


# The loop


@pytest.fixture
def training(ranked_folder: Path, tmp_path: Path) -> Callable[..., FullTraining]:
    """The loop of the tiny recipe over the 50 documents, as the recipe makes it."""

    def make(**options: str) -> FullTraining:
        preset = read_preset("coherence/full_tiny")
        given = {"dataset": str(ranked_folder), "output": str(tmp_path / "model"), **options}
        s = preset.recipe(given)
        assert isinstance(s, Full)
        prepared = prepare(s)
        rows, _, _ = candidate_rows(
            prepared.documents["train"], prepared.rows["train"], s.candidates
        )
        job = Job(preset.name, preset.about, s, tmp_path / "model")
        return FullTraining(s, job, prepared, rows)

    return make


def test_the_configuration_may_stand_at_the_datasets_end(
    ranked_folder: Path, tmp_path: Path
) -> None:
    given = {"dataset": f"{ranked_folder}@pairwise", "output": str(tmp_path / "o")}
    recipe = read_preset("coherence/full_tiny").recipe(given)
    assert isinstance(recipe, Full)
    assert prepare(recipe).dataset.config == "pairwise"


def test_splits_that_the_cut_empties_are_said_before_the_training(
    ranked_folder: Path, tmp_path: Path
) -> None:
    given = {"dataset": str(ranked_folder), "output": str(tmp_path / "o"), "max_tokens": "8"}
    recipe = read_preset("coherence/full_tiny").recipe(given)
    assert isinstance(recipe, Full)
    with pytest.raises(InputError, match=r"'validation': no text differs.*= 8\n.*raise max_tokens"):
        prepare(recipe)


class Plain(nn.Module):
    """In the model's place: a text's vector is (length, first sentence's number), no encoder."""

    config = SimpleNamespace(pad_token_id=0)

    def __init__(self) -> None:
        super().__init__()
        self.followed: list[list[list[int]]] = []

    def vectors(
        self, ids: Tensor, mask: Tensor, encoder: Any = None, padded: bool | None = None
    ) -> Tensor:
        texts = [row[:size].tolist() for row, size in zip(ids, mask.sum(1).tolist(), strict=True)]
        if encoder is not None:
            self.followed.append(texts)
            return torch.tensor([[1.0, 2.0 * text[0]] for text in texts])
        return torch.tensor([[float(len(text)), float(text[0])] for text in texts])

    def forward(self, ids: Tensor, mask: Tensor, with_vectors: bool, padded: bool) -> ScoreOutput:
        vectors = self.vectors(ids, mask)
        return ScoreOutput(vectors[:, 1] / 10, vectors if with_vectors else None)


def test_the_loss_of_two_documents_by_hand(training: Callable[..., FullTraining]) -> None:
    """Equations 2, 3 and 5 with the numbers that `Plain` gives: scores are a tenth of the first
    sentence's number, 1 to 3 in one document and 4 to 6 in the other."""
    loop = training(momentum_weight="0.15", shortest_slice="2")
    loop.queue = NegativeQueue(3, 2)
    loop.documents = numbered("ab", 3, first=1)
    plain: Any = Plain()
    loop.model = loop.parallel = plain
    batch = [("a", [[1, 0, 2], [2, 0, 1]]), ("b", [[1, 0, 2], [2, 1, 0]])]
    found = float(loop.loss(batch))

    def contrast(own: float, *others: float) -> float:
        return -math.log(
            math.exp(own) / (math.exp(own) + sum(math.exp(other - 0.1) for other in others))
        )

    def cosine(one: tuple[float, float], two: tuple[float, float]) -> float:
        return float(cosine_similarity(torch.tensor([one]), torch.tensor([two])))

    # What the momentum encoder reads: the negatives, then a slice of each document.
    negatives, slices = plain.followed
    assert negatives == [[2, 1, 3], [3, 1, 2], [5, 4, 6], [6, 5, 4]]
    assert slices == [
        document_slice(loop.documents, name, loop.recipe, i).tolist() for i, name in enumerate("ab")
    ]
    for text, whole in zip(slices, ([1, 2, 3], [4, 5, 6]), strict=True):
        assert text in (whole[:2], whole[1:], whole)
    # The queue holds three: the first negative of the four is gone.
    queue = [(1.0, 2.0 * text[0]) for text in negatives[1:]]
    assert torch.allclose(loop.queue(), normalize(torch.tensor(queue), dim=-1))
    own = [(3.0, 1.0), (3.0, 4.0)]
    followed = [(1.0, 2.0 * text[0]) for text in slices]
    ranking = (contrast(0.1, 0.2, 0.3) + contrast(0.4, 0.5, 0.6)) / 2
    following = [
        contrast(cosine(z, z_m), *(cosine(z, q) for q in queue))
        for z, z_m in zip(own, followed, strict=True)
    ]
    expected = 0.85 * ranking + 0.15 * sum(following) / 2
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_momentum_encoder_follows_the_weights_before_the_step(
    training: Callable[..., FullTraining],
) -> None:
    """It lags a step behind, as in the authors' code, and keeps its dropout."""
    loop = training(momentum="0.9", learning_rate="1e-2", final_learning_rate="1e-3")
    assert loop.momentum is not None and loop.momentum.encoder.training
    weights = [[p.detach().clone() for p in loop.model.backbone.parameters()]]
    for step in range(2):
        loop._train_step(
            [(name, orders[:5]) for name, orders in loop.rows[4 * step : 4 * step + 4]]
        )
        weights.append([p.detach().clone() for p in loop.model.backbone.parameters()])
    changed = zip(weights[0], weights[1], strict=True)
    assert sum(not torch.equal(start, first) for start, first in changed) > 10
    for own, start, first in zip(loop.momentum.encoder.parameters(), *weights[:2], strict=True):
        torch.testing.assert_close(own.detach(), 0.9 * start + 0.1 * first)


def test_an_epoch_of_rounds_sees_each_row_once(
    training: Callable[..., FullTraining], monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 rows in rounds of 16; the next epoch has another order."""
    seen: list[str] = []

    def noting(_: Any, batch: Any) -> None:
        seen.extend(name for name, _ in batch)

    monkeypatch.setattr(FullTraining, "_train_step", noting)
    loop = training(mine_every="16", epochs="2", save_steps="100", eval_steps="100")
    loop.run()
    names = sorted(name for name, _ in loop.rows)
    assert sorted(seen[:50]) == sorted(seen[50:]) == names and seen[:50] != seen[50:]
    assert loop.pace.steps == 26  # 13 an epoch


def test_processes_share_the_validation(
    training: Callable[..., FullTraining], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three processes each scores a third; all have the scores in the texts' order."""
    loop = training()
    texts, shares = [5.0, 4.0, 8.0, 1.0, 7.0, 2.0, 9.0], []
    of_all = [score for rank in range(3) for score in texts[rank::3]]
    loop.processes = 3
    loop.model = cast(Any, SimpleNamespace(score_ids=lambda own, _: shares.append(own)))
    monkeypatch.setattr("zoo.coherence.loop.gather_object", lambda own: of_all)
    for rank in range(3):
        loop.accelerator = cast(Any, SimpleNamespace(process_index=rank))
        assert loop.score_ids(texts, 64) == texts
    assert shares == [[5.0, 1.0, 9.0], [4.0, 7.0], [8.0, 2.0]]


def test_development_accuracy_as_released(training: Callable[..., FullTraining]) -> None:
    """A document counts if it is above all of its first negatives, here two of more."""
    loop = training(development="all", negatives="2")
    rows = loop.prepared.rows["validation"].num_rows
    shapes, values = [], np.tile([1.0, 0.0, 0.5, 1.0, 0.0, 1.5, 1.0, 1.0, 0.0], rows)

    def score_ids(texts: Sequence[Any], _: int) -> list[float]:
        shapes.append(len(texts))
        return values[: len(texts)].tolist()

    loop.model = cast(Any, SimpleNamespace(score_ids=score_ids))
    # One of three documents is above both; the second is below one, the third equal to one.
    assert loop._accuracy() == pytest.approx(len(range(0, rows, 3)) / rows)
    assert shapes == [3 * rows]


def test_max_steps_replaces_epochs(ranked_folder: Path, tmp_path: Path) -> None:
    """50 rows in rounds of 16 and batches of 4 are 13 steps an epoch."""
    output = tmp_path / "model"
    options = ["--max_steps", "17", "--eval_steps", "100", "--save_steps", "100"]
    train([*FULL, *options, "--dataset", str(ranked_folder), "--output", str(output)])
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert results["trained_on"] == results["dataset"]["rows"]["train"]
    assert results["training"]["steps"] == 17
    assert results["training"]["rounds"] == 5


def test_save_steps_spares_checkpoints(
    ranked_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds end after 4, 8, 12 and 13 steps; validations after the first and at the end."""
    saved: list[int] = []
    save = lambda self: saved.append(self.progress.step)  # noqa: E731
    monkeypatch.setattr(FullTraining, "_save_checkpoint", save)
    data = ["--eval_steps", "100", "--dataset", str(ranked_folder)]
    train([*FULL, *data, "--output", str(tmp_path / "all")])
    train([*FULL, *data, "--save_steps", "6", "--output", str(tmp_path / "some")])
    assert saved == [4, 8, 12, 13, 4, 12, 13]


@pytest.mark.parametrize("part", ["mining", "training", "validation"])
def test_out_of_memory_says_what_to_lower(
    part: str, ranked_folder: Path, tmp_path: Path, train_cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    target = {"mining": "random_negatives", "training": "FullTraining._train_step"}.get(
        part, "Prepared.ranking"
    )
    monkeypatch.setattr(f"zoo.coherence.loop.{target}", full)
    code, message = train_cli(*FULL, "--dataset", ranked_folder, "--output", tmp_path / "m")
    setting = {"mining": "mining_tokens", "training": "batch_size"}.get(part, "eval_batch_size")
    assert code == 2 and f"lower {setting} (now " in message and part in message


def test_validation_takes_as_many_texts_at_once_as_set(
    ranked_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    original = CoherenceScorer.score_ids

    def noting(self: Any, texts: Any, batch_tokens: int = 0, **more: Any) -> list[float]:
        seen.append(batch_tokens)
        return original(self, texts, batch_tokens, **more)

    monkeypatch.setattr(CoherenceScorer, "score_ids", noting)
    options = ["--max_steps", "1", "--eval_batch_size", "3", "--dataset", str(ranked_folder)]
    train([*FULL, *options, "--output", str(tmp_path / "model")])
    assert set(seen) == {3 * 64}


@pytest.mark.parametrize("recipe", ["coherence/full_tiny", "coherence/contrastive_tiny"])
def test_what_a_bfloat16_run_reports_is_what_its_users_get(
    recipe: str, ranked_folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "model"
    options = ["--bf16", "true", "--max_steps", "3", "--max_tokens", "64"]
    data = ["--dataset", str(ranked_folder), "--dataset_config", "ranked"]
    train([recipe, *options, *data, "--output", str(output)])
    documents = pq.read_table(next((ranked_folder / "documents").glob("validation-*")))
    model = CoherenceScorer.from_pretrained(output)
    scores = model.score(documents["sentences"].to_pylist())
    stored = json.loads((output / REFERENCE).read_text(encoding="utf-8"))["quantiles"]
    assert stored == pytest.approx(Reference.among("", scores).quantiles, abs=1e-6)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(
    ranked_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle of the third round: weights, momentum, queue and mining come back."""

    def run(name: str) -> None:
        options = ["--epochs", "1", "--dataset", str(ranked_folder)]
        train([*FULL, *options, "--output", str(tmp_path / name)])

    run("whole")

    def killed_run() -> None:
        kill_at(monkeypatch, FullTraining, "_train_step", 10)
        run("killed")

    killed(killed_run)
    assert not (tmp_path / "killed").exists()
    run("killed")
    for path in (path for path in (tmp_path / "whole").rglob("*") if path.is_file()):
        other = tmp_path / "killed" / path.relative_to(tmp_path / "whole")
        assert other.read_bytes() == path.read_bytes()
    whole, resumed = (
        json.loads((tmp_path / f"{name}.train.json").read_text(encoding="utf-8"))
        for name in ("whole", "killed")
    )
    # Both pieces of the run count: what was mined, trained, and the time of each part.
    assert resumed["texts_mined"] == whole["texts_mined"] > 0
    for found in (whole, resumed):
        assert set(found["seconds"]) == {"mining", "training", "validation", "checkpoints"}
        spent = found["seconds"]["mining"] + found["seconds"]["training"]
        assert found["instances_per_second"] == pytest.approx(50 / spent, rel=0.05)


@pytest.mark.parametrize("recipe", ["coherence/full_tiny", "coherence/contrastive_tiny"])
def test_tensorboard_hears_of_losses_and_validations(
    recipe: str, ranked_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard", reason="the extra report is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    # As an earlier training in the same process leaves it.
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "other.logs"))
    output = tmp_path / "model"
    options = ["--max_tokens", "64", "--max_steps", "2", "--logging_steps", "1"]
    data = ["--dataset", str(ranked_folder), "--dataset_config", "ranked"]
    train([recipe, *options, *data, "--output", str(output), "--report_to", "tensorboard"])
    scalars: set[str] = set()
    for file in (tmp_path / "model.logs").rglob("events.*"):
        events = EventAccumulator(str(file))
        scalars |= set(events.Reload().Tags()["scalars"])
    assert any("loss" in name for name in scalars), scalars
    assert any("eval" in name for name in scalars), scalars


@pytest.mark.slow
def test_a_tiny_full_model_learns_fifty_documents(ranked_folder: Path, tmp_path: Path) -> None:
    import pyarrow as pa

    output = tmp_path / "model"
    options = ["--epochs", "6", "--learning_rate", "3e-3", "--dataset", str(ranked_folder)]
    train([*FULL, *options, "--output", str(output)])
    documents = pq.read_table(next((ranked_folder / "documents").glob("train-*")))
    orders = pq.read_table(next((ranked_folder / "pairwise").glob("train-*")))
    sentences = dict(
        zip(documents["id"].to_pylist(), documents["sentences"].to_pylist(), strict=True)
    )
    assert isinstance(orders, pa.Table)
    model = CoherenceScorer.from_pretrained(output)
    rows = list(zip(orders["document"].to_pylist(), orders["orders"].to_pylist(), strict=True))
    coherent = model.score([sentences[name] for name, _ in rows])
    other = model.score([[sentences[name][i] for i in orders[0]] for name, orders in rows])
    assert np.mean(np.array(coherent) > np.array(other)) == 1.0


def test_two_processes_mine_and_train_as_one(ranked_folder: Path, tmp_path: Path) -> None:
    """Rounds of batches of 4, shared out, and a last one of 1, computed by both; no dropout."""
    words = [*FULL, "--max_steps", "9", "--mine_every", "13", "--momentum", "0.9"]
    words += ["--backbone_config.hidden_dropout_prob", "0", "--dataset", str(ranked_folder)]
    words += ["--backbone_config.attention_probs_dropout_prob", "0", "--output"]
    train([*words, str(tmp_path / "one")])
    train_together([*words, str(tmp_path / "two")])
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, weight in one.items():
        torch.testing.assert_close(weight, two[name], atol=1e-4, rtol=1e-3, msg=name)
    results = json.loads((tmp_path / "two" / "results.json").read_text(encoding="utf-8"))
    assert results["training"]["processes"] == 2 and results["training"]["rounds"] >= 2


def test_the_full_model_refuses_what_it_does_not_do(
    ranked_folder: Path, tmp_path: Path, train_cli: Any
) -> None:
    code, message = train_cli(
        *FULL, "--gradient_accumulation", 2, "--dataset", ranked_folder, "--output", tmp_path / "m"
    )
    assert code == 2 and "increase batch_size" in message
    words = ["--batch_size", 1, "--processes", 2, "--dataset", ranked_folder]
    code, message = train_cli(*FULL, *words, "--output", tmp_path / "m")
    assert code == 2 and "batch_size = 1" in message and "--batch_size 2" in message
    command = [*FULL, "--dataset", str(ranked_folder), "--output", str(tmp_path / "m")]
    train_together(command, fsdp="the full model does not support FSDP")


# Training on intrusions


def intrusion_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Stories of which one sentence, never the first, is replaced by a line about the weather."""
    random = np.random.default_rng(seed)
    rows = []
    for document in story_documents(count, seed):
        place = int(random.integers(1, 5))
        neg = list(document["sentences"])
        neg[place] = f"Rain fell on {random.choice(['Monday', 'Tuesday', 'Sunday'])} night."
        rows.append(
            {
                "doc": document["id"],
                "donor": "weather",
                "position": place,
                "similarity": 0.1,
                "replaced_similarity": 0.2,
                "pos": document["sentences"],
                "neg": neg,
            }
        )
    return rows


@pytest.fixture(scope="session")
def intrusion_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from corpora import schemas

    sizes = {"train": 60, "validation": 8, "test": 8}
    parts = {
        ("pairwise", split): (intrusion_rows(size, seed), schemas.INTRUSION_PAIRWISE)
        for seed, (split, size) in enumerate(sizes.items())
    }
    return write_dataset(tmp_path_factory.mktemp("data") / "intrusion", "intrusion", parts)


@pytest.mark.parametrize("limit", [400, 16, 9])
def test_an_intruded_text_and_its_original_keep_the_same_sentences(limit: int) -> None:
    from zoo.coherence.data import encode_documents, intrusion_tables
    from zoo.texts import TextEncoder
    from zoo.vocabularies import train_subwords

    rows = intrusion_rows(6, 1)
    tokenizer = train_subwords([s for row in rows for s in (*row["pos"], *row["neg"])], 400)
    documents, orders = intrusion_tables(pa.Table.from_pylist(rows))
    encoder = TextEncoder(tokenizer, limit)
    texts = encode_documents(documents, encoder)
    for row, name, order in zip(
        rows, documents["id"].to_pylist(), orders["orders"].to_pylist(), strict=True
    ):
        kept = texts.size(name)
        expected = [encoder.text(row[side][:kept]) for side in ("pos", "neg")]
        assert texts.original(name).tolist() == expected[0].tolist()
        usable = texts.orders(name, order)
        if row["position"] >= kept:
            assert usable == []  # the cut took the intruder: nothing tells the two apart
            continue
        [found] = usable
        assert texts.permuted(name, found).tolist() == expected[1].tolist()
        assert len(expected[1]) <= limit or kept == 1


def test_pairs_that_the_cut_makes_equal_are_in_no_figure(
    intrusion_folder: Path, tmp_path: Path
) -> None:
    """Training, its card, the suite and a comparison judge the same rows, and say which."""
    model, data = tmp_path / "model", f"{intrusion_folder}@pairwise"
    options = ["--objective", "pairwise", "--max_steps", "2", "--max_tokens", "46"]
    train(["coherence/contrastive_tiny", *options, "--dataset", data, "--output", str(model)])
    results = json.loads((model / "results.json").read_text(encoding="utf-8"))
    trained, card = results["metrics"]["test"], (model / "README.md").read_text(encoding="utf-8")
    pairs, equal = trained["pairs"], trained["identical"]
    assert equal > 0 and pairs > 0 and pairs + equal == 8
    assert results["headline"] in card
    assert f"over {pairs} pairs ({equal} pairs identical after the cut left out" in card
    assert "above a negative" in card and "five" not in card and "contrastive, tiny" not in card
    (validated,) = results["training"]["validations"]
    value = results["metrics"]["validation"]["accuracy"]["value"]
    assert validated["accuracy"] == pytest.approx(value)

    def judged(name: str, *more: str) -> dict[str, Any]:
        out = tmp_path / f"{Path(name).name.replace(':', '-')}{len(more)}.json"
        words = ["pairwise", "--model", name, "--data", data, "--json", str(out)]
        assert evaluate([*words, "--encoder", "none", *more]) == 0
        return json.loads(out.read_text(encoding="utf-8"))

    result = judged(str(model))
    own = result["metrics"]["sets"]["intrusion"]
    assert (own["pairs"], own["identical"]) == (pairs, equal)
    assert own["accuracy"]["value"] == trained["accuracy"]["value"]
    assert own["outcomes"].count("-") == equal and len(own["outcomes"]) == 8
    (note,) = result["notes"][:1]
    assert f"{equal} of 8 pairs left out" in note
    whole = judged(str(model), "--long", "windows")["metrics"]["sets"]["intrusion"]
    assert (whole["pairs"], whole["identical"]) == (8, 0)
    rule = judged("baseline:longer")["metrics"]["sets"]["intrusion"]
    assert (rule["pairs"], rule["identical"]) == (8, 0)  # it reads the texts whole
    (table,) = compare([tmp_path / "model0.json", tmp_path / "baseline-longer0.json"]).tables
    rows = {row.name: row.cells["intrusion"] for row in table.rows}
    assert rows["model"].n == rows["longer"].n == pairs
    assert rows["longer"].value == rows["rule: longer"].value
    assert rows["longer"].value == pytest.approx(100 * own["baselines"]["longer"]["value"])
    assert any(f"over the {pairs} of 8 rows that all models" in note for note in table.notes)
    windows = tmp_path / "model2.json"
    with pytest.raises(InputError, match=r"long = cut.*long = windows"):
        compare([tmp_path / "model0.json", windows])


@pytest.mark.slow
def test_a_tiny_model_learns_to_tell_intrusions(intrusion_folder: Path, tmp_path: Path) -> None:
    options = ["--objective", "pairwise", "--epochs", "8", "--max_tokens", "64"]
    data = ["--dataset", str(intrusion_folder), "--output", str(tmp_path / "model")]
    train(["coherence/contrastive_tiny", *options, *data])
    results = json.loads((tmp_path / "model" / "results.json").read_text(encoding="utf-8"))
    assert results["metrics"]["test"]["accuracy"]["value"] == 1.0
