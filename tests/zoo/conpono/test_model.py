"""Equations 1 to 3 by hand, exact gradients in blocks, and a model that can learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AlbertModel,
    AutoModel,
    AutoTokenizer,
    BertForMaskedLM,
    BertModel,
    BigBirdModel,
    CamembertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraModel,
    EsmModel,
    PreTrainedTokenizerBase,
    RobertaForMaskedLM,
    XLMRobertaForMaskedLM,
)

import zoo
from corpora.pictures import PALETTE
from corpora.schemas import CONPONO
from tests.zoo.conftest import write_dataset
from tests.zoo.conpono.conftest import CRAFTS, sequences
from zoo.backbones import set_attention
from zoo.conpono import accuracy, modeling
from zoo.conpono.accuracy import accuracies, count_hits, hits, write_plot
from zoo.conpono.examples import Candidates, Collator, Orderings, as_tensors
from zoo.conpono.modeling import ConponoModel, Relations, contrast, load_heads
from zoo.conpono.pretraining import count_cut_texts, worker_count
from zoo.conpono.segments import NO_LABEL, Geometry, Masking, Template
from zoo.conpono.tokens import token_stores
from zoo.evaluate.discoeval import DiscoEval
from zoo.evaluate.discoeval.protocol import representation_of
from zoo.evaluate.encoders import load_encoder
from zoo.modeling import save_model
from zoo.training.data import open_dataset
from zoo.training.throughput import operations
from zoo.vocabularies import train_subwords


class Tensors(Collator):
    """A collator whose batches go into the model at once."""

    def __call__(self, examples: Any) -> dict[str, Any]:
        return as_tensors(super().__call__(examples))


Make = Callable[..., Candidates]
MakeModel = Callable[..., ConponoModel]
PLACES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def hand_made() -> tuple[Relations, torch.Tensor]:
    """K = 1, two candidates, vectors of two numbers."""
    relations = Relations(2, 2)
    weight = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [1.0, 0.0]]]
    relations.weight.data = torch.tensor(weight)
    #                        c           t_1         t_2
    vectors = torch.tensor([[[1.0, 2.0], [1.0, 0.0], [0.0, 1.0]]])
    return relations, vectors


def test_two_candidates_by_hand() -> None:
    relations, vectors = hand_made()
    scores = relations(vectors)
    # W_-1 c = (1, 2); W_+1 c = (4, 1): t_1 takes the first number, t_2 the second.
    assert scores.tolist() == [[[1.0, 2.0], [4.0, 1.0]]]
    loss = contrast(scores, torch.tensor([[1, 0]]))
    at_minus = -math.log(math.exp(2) / (math.exp(1) + math.exp(2)))
    at_plus = -math.log(math.exp(4) / (math.exp(4) + math.exp(1)))
    assert loss.item() == pytest.approx(at_minus + at_plus)
    assert contrast(scores, torch.tensor([[NO_LABEL, 0]])).item() == pytest.approx(at_plus)


def test_mean_over_anchors_of_the_sum_over_targets() -> None:
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 4, 5, generator=random)
    labels = torch.tensor(
        [[0, 1, 2, 3], [NO_LABEL, 0, NO_LABEL, 1], [NO_LABEL, NO_LABEL, 0, NO_LABEL]]
    )
    whole = contrast(scores, labels).item()
    each = [contrast(scores[i : i + 1], labels[i : i + 1]).item() for i in range(3)]
    assert whole == pytest.approx(sum(each) / 3)


def test_gradient_of_w_k() -> None:
    relations, vectors = hand_made()
    contrast(relations(vectors), torch.tensor([[NO_LABEL, 0]])).backward()
    # dL/dW_k = sum_j (p_j - 1[j = target]) t_j c^T, and nothing for a distance without a target
    probability = math.exp(1) / (math.exp(4) + math.exp(1))
    expected = [[-probability, -2 * probability], [probability, 2 * probability]]
    assert torch.allclose(relations.weight.grad[1], torch.tensor(expected))
    assert not relations.weight.grad[0].any()


def test_gradient_of_w_k_is_that_of_finite_differences() -> None:
    relations = Relations(4, 3).double()
    torch.nn.init.normal_(relations.weight, std=0.5)
    vectors = torch.randn(2, 6, 3, dtype=torch.float64)
    labels = torch.tensor([[0, 1, 2, NO_LABEL], [NO_LABEL, 3, 4, 0]])

    def loss(weight: torch.Tensor) -> torch.Tensor:
        anchor = torch.einsum("kde,be->bkd", weight, vectors[:, 0])
        return contrast(anchor @ vectors[:, 1:].transpose(1, 2), labels)

    assert torch.autograd.gradcheck(loss, (relations.weight,))
    assert torch.allclose(loss(relations.weight), contrast(relations(vectors), labels).double())


def test_uni_encoder_scores_without_the_anchor() -> None:
    relations = Relations(2, 2, uni=True)
    relations.weight.data = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    vectors = torch.tensor([[[3.0, 4.0], [1.0, 0.0]]])
    assert relations(vectors).tolist() == [[[11.0, 1.0], [-4.0, 0.0]]]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_w_k_is_drawn_with_standard_deviation_002(tiny_model: MakeModel, k: int) -> None:
    weight = tiny_model(k=k).relations.weight
    assert weight.shape == (2 * k, 32, 32)
    assert weight.std().item() == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("vector", ["cls", "mean"])
@pytest.mark.parametrize("attention", ["sdpa", "eager", "bf16"])
@pytest.mark.parametrize("encoder", ["full", "isolated", "uni"])
def test_blocks_give_the_vectors_of_single_texts(
    candidates: Make,
    tiny_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    encoder: Any,
    attention: str,
    vector: str,
) -> None:
    model = tiny_model(encoder=encoder, vector=vector).eval()
    set_attention(model.backbone, attention)
    examples = candidates(mask_rate=0.15, encoder=encoder)
    batch = [examples[row] for row in range(4)]
    plain = []
    for example in batch:
        for ids, second in zip(sequences(example), example.seconds, strict=True):
            types = torch.tensor([[0] * second + [1] * (len(ids) - second)])
            out = model.backbone(torch.from_numpy(ids)[None], token_type_ids=types)
            mean = out.last_hidden_state[0].mean(0)
            plain.append(out.pooler_output[0] if vector == "cls" else mean)
    vectors = torch.stack(plain).view(4, -1, 32)
    expected = model.relations(vectors)
    inputs = Tensors(tokenizer.pad_token_id, 1024)(batch)
    assert len(inputs["plan"]) > 1
    assert inputs["real_tokens"] == sum(len(example.ids) for example in batch)
    assert inputs["real_tokens"] / len(inputs["slots"]) > 0.9
    found = model(**inputs)
    assert torch.allclose(found.scores, expected, atol=1e-5)
    assert found.parts[0, 1].item() > 1


def test_words_of_esm_are_not_looked_up_before(
    candidates: Make, tokenizer: PreTrainedTokenizerBase
) -> None:
    """It would leave their positions out."""
    torch.manual_seed(0)
    own = {"position_embedding_type": "absolute", "mask_token_id": 4, "token_dropout": False}
    model = ConponoModel.from_backbone(narrow_words(EsmModel, tokenizer, **own), mlm=False).eval()
    inputs = Tensors(tokenizer.pad_token_id, block_tokens=1)([candidates()[0]])
    texts = (inputs["slots"].long() >> 2).split(inputs["plan"][:, 1].tolist())  # one in each block
    vectors = [model.backbone(input_ids=ids[None]).pooler_output for ids in texts]
    expected = model.relations(torch.cat(vectors)[inputs["order"]][None])
    assert torch.allclose(model(**inputs).scores, expected, atol=1e-6)


def narrow_words(kind: Any, tokenizer: PreTrainedTokenizerBase, **own: Any) -> Any:
    """A backbone whose word embeddings are narrower than its states."""
    torch.manual_seed(0)
    return kind(
        kind.config_class(
            vocab_size=len(tokenizer),
            embedding_size=8,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=140,
            pad_token_id=tokenizer.pad_token_id,
            **own,
        )
    )


@pytest.mark.parametrize("kind", [AlbertModel, ElectraModel])
def test_word_embeddings_may_be_narrower_than_the_states(
    candidates: Make, tokenizer: PreTrainedTokenizerBase, kind: Any
) -> None:
    model = ConponoModel.from_backbone(narrow_words(kind, tokenizer)).train()
    examples = candidates(mask_rate=0.15)
    loss = model(**Tensors(tokenizer.pad_token_id, 600)([examples[0]])).parts[0, 1]
    loss.backward()
    assert loss.item() == pytest.approx(math.log(len(tokenizer)), rel=0.1)
    assert model.masked_words.dense.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", [AlbertModel, BertModel, BigBirdModel, ElectraModel])
def test_training_takes_the_vector_that_evaluations_take(
    tokenizer: PreTrainedTokenizerBase, kind: Any
) -> None:
    backbone = narrow_words(kind, tokenizer).eval()
    model = ConponoModel.from_backbone(backbone, mlm=False)
    found = backbone(input_ids=torch.tensor([[5, 6, 7], [8, 9, 10]]))
    first = found.last_hidden_state[:, 0]
    expected = found.pooler_output if kind is not ElectraModel else first
    assert torch.equal(model.pool(first), expected)


@pytest.mark.parametrize(
    "kind", [BertForMaskedLM, RobertaForMaskedLM, XLMRobertaForMaskedLM, CamembertForMaskedLM]
)
def test_a_stored_masked_word_head_is_taken_over(tmp_path: Path, kind: Any) -> None:
    config = kind.config_class(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    stored = kind(config).eval()
    for parameter in stored.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    stored.save_pretrained(tmp_path / "whole")
    stored.base_model.save_pretrained(tmp_path / "bare")
    model = ConponoModel.from_backbone(stored.base_model)
    head = model.masked_words
    (said,) = load_heads(model, str(tmp_path / "bare"))
    assert "has no masked-word head" in said
    assert not list(load_heads(model, str(tmp_path / "whole")))
    ids, labels = torch.tensor([[5, 6, 7]]), torch.tensor([5, 6, 7])
    states = stored.base_model(input_ids=ids).last_hidden_state[0]
    found = head(states, stored.get_input_embeddings().weight, labels)
    expected = torch.nn.functional.cross_entropy(
        stored(input_ids=ids).logits[0], labels, reduction="sum"
    )
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_head_of_another_kind_is_said_not_to_be_read(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    config = ElectraConfig(vocab_size=30, hidden_size=8, num_attention_heads=2, num_hidden_layers=1)
    ElectraForMaskedLM(config).save_pretrained(tmp_path)
    model = ConponoModel.from_backbone(ElectraModel(config))
    (said,) = load_heads(model, str(tmp_path))
    assert said.startswith("electra's masked-word head is not supported")


def test_the_heads_of_a_model_of_this_zoo_are_taken_over(
    tmp_path: Path, tiny_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    own = tiny_model(k=3)
    for parameter in own.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    save_model(own, tokenizer, tmp_path / "own")
    model = tiny_model(k=3)
    assert list(load_heads(model, str(tmp_path / "own"))) == ["W_k copied from the backbone"]
    for name, tensor in model.state_dict().items():
        if not name.startswith("backbone."):
            assert torch.equal(tensor, own.state_dict()[name]), name

    for change, word in {"k": 2, "encoder": "isolated", "objective": "bso"}.items():
        other = tiny_model(**{"k": 3, change: word})
        (said,) = load_heads(other, str(tmp_path / "own"))
        assert f"the backbone's {change} differs" in said and "initialised randomly" in said
        assert torch.equal(other.masked_words.bias, own.masked_words.bias)

    save_model(tiny_model(mlm=False), tokenizer, tmp_path / "without")
    said, _ = load_heads(tiny_model(), str(tmp_path / "without"))
    assert "trained without masked words" in said


def test_what_few_tokens_meet_counts_once_an_example(
    candidates: Make, tiny_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = tiny_model(k=2)
    inputs = Tensors(tokenizer.pad_token_id)([candidates()[row] for row in range(2)])
    encoder = sum(p.numel() for p in model.backbone.encoder.parameters())
    norm = sum(p.numel() for p in model.backbone.embeddings.LayerNorm.parameters())
    parts = (model.relations, model.masked_words, model.backbone.pooler)
    heads = sum(p.numel() for part in parts for p in part.parameters())
    expected = 6 * ((encoder + norm) * inputs["real_tokens"] + heads * 2)
    assert operations(model, 2, inputs["real_tokens"]) == expected
    assert tiny_model(objective="bso", mlm=False).once_a_row == ("ordering", "backbone.pooler")


def test_workers_draw_where_a_gpu_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, expected in {True: 4, False: 0}.items():
        monkeypatch.setattr(torch.accelerator, "is_available", lambda there=there: there)
        assert worker_count(-1) == expected
    assert worker_count(3) == 3 and worker_count(0) == 0


def test_cut_texts_are_counted(candidates: Make) -> None:
    whole, short = candidates(mask_rate=0.15), candidates(mask_rate=0.15, max_tokens=40)
    sequences_of_all = sum(len(whole[row].lengths) for row in range(len(whole)))
    assert count_cut_texts(whole) == (0, sequences_of_all)
    cut, total = count_cut_texts(short)
    longer = sum(int((whole[row].lengths > 40).sum()) for row in range(len(whole)))
    assert (cut, total) == (longer, sequences_of_all) and cut > 0


def gradients(model: ConponoModel, inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
    model.train().zero_grad()
    torch.manual_seed(3)
    model(**inputs).loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def test_blocks_give_the_gradients_of_the_whole_batch(
    candidates: Make, tiny_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = tiny_model()
    examples = candidates(mask_rate=0.15)
    batch = [examples[row] for row in range(4)]
    whole = gradients(model, Tensors(tokenizer.pad_token_id, block_tokens=1 << 20)(batch))
    model.backbone.activation_checkpointing_enable({"use_reentrant": False})
    inputs = Tensors(tokenizer.pad_token_id, block_tokens=500)(batch)
    assert len(inputs["plan"]) > 5
    parts = gradients(model, inputs)
    assert whole.keys() == parts.keys() == dict(model.named_parameters()).keys()
    for name, gradient in whole.items():
        assert torch.allclose(gradient, parts[name], atol=1e-6, rtol=1e-4), name


def test_words_looked_up_together_give_the_same_gradients(
    candidates: Make,
    tiny_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One look-up and one run of the head for all blocks, or one of each a block."""
    model = tiny_model()
    examples = candidates(mask_rate=0.15)
    inputs = Tensors(tokenizer.pad_token_id, block_tokens=500)([examples[r] for r in range(4)])
    together = gradients(model, inputs)
    monkeypatch.setattr(modeling, "takes_vectors", lambda backbone: False)
    monkeypatch.setattr(modeling, "WORDS_AT_ONCE", 1)
    apart = gradients(model, inputs)
    for name, gradient in together.items():
        assert torch.allclose(gradient, apart[name], atol=1e-6, rtol=1e-4), name


def test_recomputing_keeps_dropout_and_forgets_activations(
    candidates: Make, tiny_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = tiny_model(dropout=0.1)
    examples = candidates(mask_rate=0.15)
    batch = [examples[row] for row in range(4)]
    inputs = Tensors(tokenizer.pad_token_id, block_tokens=500)(batch)
    kept: list[int] = []

    def pack_hook(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    found, sizes = [], []
    for recompute in (False, True):
        if recompute:
            model.backbone.activation_checkpointing_enable({"use_reentrant": False})
        found.append(gradients(model, inputs))
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack_hook, lambda tensor: tensor):
            model(**inputs)
        sizes.append(sum(kept))
    for name, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][name], atol=1e-6), name
    assert sizes[1] < sizes[0] / 2


def short_windows(folder: Path) -> Path:
    """64 paragraphs of nine sentences of three words: in 8 documents, so that negatives exist."""
    made = [
        {
            "doc": craft,
            "group": "g",
            "sentences": [f"{craft} {other} {place}" for other in CRAFTS for place in PLACES],
            "bounds": list(range(0, 73, 9)),
        }
        for craft in CRAFTS
    ]
    return write_dataset(folder, "conpono", {("default", "train"): (made, CONPONO)})


def test_a_tiny_model_overfits_64_windows(tmp_path: Path, tiny_model: MakeModel) -> None:
    dataset = open_dataset(str(short_windows(tmp_path / "data")), streamed=True)
    tokenizer = train_subwords([*CRAFTS, *PLACES], 400, max_length=128)
    store = token_stores(dataset, tokenizer, Geometry(), tmp_path / "m")["train"]
    masking, template = Masking.of(tokenizer, 0.0), Template.of(tokenizer, 128)
    examples = Candidates(store, store, template, masking, Geometry(), 8, seed=5)
    assert len(examples) == 64
    drawn = [examples[row] for row in range(64)]
    collate = Tensors(tokenizer.pad_token_id)
    # Weights drawn wider than BERT's: a narrow encoder's vectors else hardly differ at first.
    model = tiny_model(width=64, mlm=False, initializer_range=0.1)
    optimizer = torch.optim.AdamW(model.parameters())
    random, epochs = np.random.default_rng(0), 40
    for epoch in range(epochs):
        model.train()
        rate = 2e-3 * min((epoch + 1) / 3, 1 - epoch / epochs)
        for rows in random.permutation(64).reshape(8, 8).tolist():
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = model(**collate([drawn[row] for row in rows])).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right, asked = count_hits(model, examples, Collator(tokenizer.pad_token_id), batch=32)
        if (right == asked).all():
            break
    assert right.sum() == asked.sum() > 64


def test_equal_scores_count_as_wrong() -> None:
    scores = np.array([[[1.0, 1.0, 0.0], [0.0, 3.0, 2.0]], [[0.0, 1.0, 2.0], [9.0, 9.0, 9.0]]])
    labels = np.array([[0, 1], [NO_LABEL, 2]])
    right, asked = hits(scores, labels)
    assert right.tolist() == [[0, 1], [0, 0]]
    assert asked.tolist() == [[1, 1], [0, 1]]


def test_processes_share_the_last_accuracy(
    candidates: Make,
    tiny_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, examples = tiny_model().eval(), candidates()
    collator = Collator(tokenizer.pad_token_id)
    expected = count_hits(model, examples, collator, 2)
    parts: list[Any] = []
    for rank in range(2):
        state = SimpleNamespace(process_index=rank, num_processes=2)
        monkeypatch.setattr(accuracy, "PartialState", lambda state=state: state)
        monkeypatch.setattr(accuracy, "gather_object", lambda own: parts.extend(own) or parts)
        with suppress(IndexError):  # the first process has its own part alone
            found = count_hits(model, examples, collator, 2)
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)


def test_accuracy_and_plot_by_distance(tmp_path: Path) -> None:
    right, asked = np.array([[1, 0], [1, 0]]), np.array([[1, 1], [1, 0]])
    found = accuracies(right, asked, [-1, 1], seed=0, name="t")
    assert found["accuracy"]["value"] == pytest.approx(2 / 3)
    assert found["accuracy_k-1"]["value"] == 1 and found["accuracy_k+1"]["n"] == 1
    write_plot(tmp_path / "a.svg", {"test": found})
    write_plot(tmp_path / "b.svg", {"test": found})
    assert PALETTE[0] in (tmp_path / "a.svg").read_text()  # as in all figures
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_ordering_baseline_trains_on_pairs(
    candidates: Make, tiny_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    base = candidates(mask_rate=0.15)
    examples = Orderings(base.store, base.pool, base.template, base.masking, base.geometry, 8)
    inputs = Tensors(tokenizer.pad_token_id)([examples[0], examples[1]])
    outputs = tiny_model(objective="bso")(**inputs)
    assert outputs.scores.shape == inputs["labels"].shape == (2, 8)
    assert outputs.parts[0, 0].item() == pytest.approx(math.log(2), abs=0.1)
    assert outputs.loss.item() == pytest.approx(outputs.parts[0].sum().item())


def test_no_masked_words_no_loss(
    candidates: Make, tiny_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    inputs = Tensors(tokenizer.pad_token_id)([candidates()[0]])
    model = tiny_model(mlm=False)
    assert model(**inputs).parts[0, 1].item() == 0
    assert not any("masked_words" in name for name, _ in model.named_parameters())


def test_saved_and_loaded_by_auto_model(
    tmp_path: Path, candidates: Make, tiny_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = tiny_model(k=3, encoder="full").eval()
    save_model(model, tokenizer, tmp_path)
    zoo.register()
    loaded = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(loaded, ConponoModel)
    examples = replace(candidates(mask_rate=0.15), geometry=Geometry(k=3), targets=4)
    inputs = Tensors(tokenizer.pad_token_id)([examples[0]])
    found, expected = loaded(**inputs), model(**inputs)
    assert torch.allclose(found.scores, expected.scores, atol=1e-6)
    assert found.parts[0, 1].item() == pytest.approx(expected.parts[0, 1].item())
    pair = AutoTokenizer.from_pretrained(tmp_path)("The baker", "eats", return_tensors="pt")
    assert loaded.backbone(**pair).pooler_output.shape == (1, 32)


@pytest.mark.parametrize(("vector", "pairs"), [("cls", "pooled"), ("mean", "mean")])
def test_evaluations_take_the_vector_that_was_trained(
    tiny_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    vector: str,
    pairs: str,
) -> None:
    save_model(tiny_model(vector=vector), tokenizer, tmp_path)
    encoder = load_encoder(str(tmp_path))
    assert representation_of(encoder, DiscoEval(protocol="pairs"), "BSO") == pairs
    assert representation_of(encoder, DiscoEval(protocol="single"), "BSO") == "cls_mean"
