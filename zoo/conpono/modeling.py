"""The CONPONO model: one encoder, W_k or the ordering head, a masked-word head (section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Partial
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import AutoModelForMaskedLM, PretrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.utils.generic import ModelOutput

from zoo.attention import padding_known
from zoo.backbones import BackboneConfig, OverBackbone, pooled
from zoo.conpono.segments import NO_LABEL
from zoo.loading import model_type, opening
from zoo.modeling import known_to_auto

ROBERTA = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
BERT = "cls.predictions"
HEADS = {
    "bert": (f"{BERT}.transform.dense", f"{BERT}.transform.LayerNorm", f"{BERT}.bias"),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), ROBERTA),
}
"""By model type: the names of the transformation, norm and bias of its masked-word head."""
NEW = "a new one starts from its embeddings"
OBJECTIVE_HEADS = {
    "conpono": ("relations", "W_k", ("objective", "encoder", "k", "vector")),
    "bso": ("ordering", "ordering head", ("objective", "vector")),
}
"""By objective: the module of its head, its name in notes, and the settings that must be equal to
reuse it.
"""
ONCE_A_ROW = ("relations", "ordering", "masked_words", "backbone.pooler")
"""Modules used for few or no tokens of a row."""
WORDS_AT_ONCE = 2048
"""Masked words that the head processes at once (at least those of one block)."""


@strict
class ConponoConfig(BackboneConfig):
    """The backbone's configuration, and the settings of training.

    `objective` "bso" is the ordering baseline, which has no W_k. An anchor has `anchor_sentences`,
    a target `target_sentences`; targets are at distances up to `k` on both sides. With `mlm` there
    is a masked-word head. `vector` is a text's vector: [CLS], or the mean of the tokens.
    """

    model_type = "discorpora-conpono"

    objective: Literal["conpono", "bso"] = "conpono"
    encoder: Literal["full", "isolated", "uni"] = "full"
    k: int = 2
    anchor_sentences: int = 4
    target_sentences: int = 3
    max_tokens: int = 512
    mlm: bool = True
    vector: Literal["cls", "mean"] = "cls"


@dataclass
class ConponoOutput(ModelOutput):
    """The output: `loss` is the sum of its parts, the objective's and the masked words'.

    `scores [batch, 2K, candidates]`, or `[batch, pairs]` for the ordering baseline. `parts [batch,
    2]` are the same in each row, so that batches of different sizes count by their examples.
    """

    loss: Tensor | None = None
    scores: Tensor | None = None
    parts: Any = None


class Relations(nn.Module):
    """The log-bilinear scores of candidates (equation 2), one W_k per distance:

        log f_k(s_j, s_i) = t_j^T W_k c_i        full and isolated encoders
        log f_k(s_j, s_i) = t_j^T w_k            uni-encoder

    `distances` is 2K, the number of distances; `width` the size of a vector. `weight` is `[2K,
    width, width]` or, for the uni-encoder (`uni`), `[2K, width]`, initialised with standard
    deviation 0.02.
    """

    def __init__(self, distances: int, width: int, uni: bool = False) -> None:
        super().__init__()
        shape = (distances, width) if uni else (distances, width, width)
        self.weight = nn.Parameter(torch.empty(shape))

    def forward(self, vectors: Tensor) -> Tensor:
        """Return `scores [batch, 2K, candidates]` of `vectors [batch, sequences, width]`.

        The first sequence is the anchor alone (c); all further sequences are candidates (t). The
        uni-encoder has candidates only. In float32, whatever the encoder's precision.
        """
        weight, vectors = self.weight.float(), vectors.float()
        if weight.dim() == 2:
            return torch.einsum("kd,bjd->bkj", weight, vectors)
        anchor = torch.einsum("kde,be->bkd", weight, vectors[:, 0])
        return anchor @ vectors[:, 1:].transpose(1, 2)


def contrast(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the softmax loss over candidates (equation 3), one row for each target:

        L_k = -log( f_k(s_{i+k}, s_i) / sum_j f_k(s_j, s_i) )

    `scores [batch, 2K, candidates]`; `labels [batch, 2K]`, -100 without a target. The mean over
    anchors of the sum over their targets.
    """
    rows, targets = scores.flatten(0, 1), labels.flatten()
    return cross_entropy(rows, targets, ignore_index=NO_LABEL, reduction="sum") / len(labels)


class Ordering(nn.Module):
    """The ordering baseline's head: one logit for each pair, above 0 for swapped spans."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return `logits [batch, pairs]` of `vectors [batch, pairs, width]`, in float32."""
        weight, bias = self.linear.weight.float(), self.linear.bias.float()
        return nn.functional.linear(vectors.float(), weight, bias).squeeze(-1)


class MaskedWords(nn.Module):
    """BERT's masked-word head. Its output matrix is the encoder's word embeddings.

    A backbone without a head gets a new one: it starts from the embeddings, with a random
    transformation. `width` is that of the word embeddings, if it differs from the states' (ELECTRA,
    ALBERT).
    """

    def __init__(self, config: PretrainedConfig, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, width)
        self.activation = ACT2FN[getattr(config, "hidden_act", "gelu")]
        self.norm = nn.LayerNorm(width, eps=getattr(config, "layer_norm_eps", 1e-12))
        self.bias = nn.Parameter(torch.empty(config.vocab_size))

    def forward(self, states: Tensor, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the summed loss of masked words: `states [masked, width]`, `labels [masked]`."""
        hidden = self.norm(self.activation(self.dense(states)))
        logits = nn.functional.linear(hidden, embeddings, self.bias)
        return cross_entropy(logits.float(), labels, reduction="sum")


class ConponoModel(OverBackbone):
    """Identifies the text at distance k from an anchor among candidates.

    `backbone` is the encoder that evaluations use.
    """

    config_class = ConponoConfig
    main_input_name = "slots"

    def __init__(self, config: ConponoConfig) -> None:
        """Make the backbone, the head of the objective and, if `config.mlm`, of masked words."""
        super().__init__(config)
        width = self.backbone.config.hidden_size
        if config.objective == "bso":
            self.ordering = Ordering(width)
        else:
            self.relations = Relations(2 * config.k, width, uni=config.encoder == "uni")
        if config.mlm:
            table: Any = self.get_input_embeddings()
            self.masked_words = MaskedWords(self.backbone.config, table.weight.size(1))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        # The ordering head keeps torch's own initialisation.
        if isinstance(module, Relations):
            init.normal_(module.weight, std=0.02)
        elif isinstance(module, MaskedWords):
            init.normal_(module.dense.weight, std=0.02)
            init.zeros_(module.dense.bias)
            init.zeros_(module.bias)

    def forward(
        self,
        slots: Tensor,
        words: Tensor,
        plan: np.ndarray,
        order: Tensor,
        labels: Tensor,
        **kwargs: object,
    ) -> ConponoOutput:
        """Encode the blocks that `Collator` makes, and compare their texts.

        `labels [batch, 2K]` for CONPONO, `[batch, pairs]` for the ordering baseline.
        """
        slots, words = slots.long(), words.long()
        split = torch.stack([slots >> 2, slots >> 1 & 1, slots & 1])
        vectors, mlm_loss = self._encode(split, words, plan)
        vectors = vectors[order.long()].view(len(labels), -1, vectors.size(-1))
        mlm_loss = mlm_loss / max(words.size(1), 1)
        with torch.autocast(vectors.device.type, enabled=False):
            if self.config.objective == "bso":
                scores = self.ordering(vectors)
                objective_loss = binary_cross_entropy_with_logits(scores, labels.float())
            else:
                scores = self.relations(vectors)
                objective_loss = contrast(scores, labels)
        parts = torch.stack([objective_loss, mlm_loss])
        return ConponoOutput(parts.sum(), scores, parts.expand(len(labels), -1))

    @property
    def once_a_row(self) -> tuple[str, ...]:
        """The names of modules whose operations are counted once an example, not once a token."""
        modules = dict(self.named_modules())
        return tuple(name for name in ONCE_A_ROW if name in modules)

    def _encode(self, slots: Tensor, words: Tensor, plan: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the vectors `[sequences, width]` of blocks, and their summed masked-word loss.

        `slots [3, places]` are token ids, types, and marks of real tokens. Words are looked up once
        for all blocks, since the gradient of a look-up is a matrix of the vocabulary's size. Masked
        words of several blocks share runs of the head for the same reason.
        """
        # Look up the words of all blocks.
        table = self.backbone.get_input_embeddings()
        sizes = (plan[:, 0] * plan[:, 1]).tolist()
        word_vectors = table(slots[0]).split(sizes) if takes_vectors(self.backbone) else None
        embeddings = table.weight
        if isinstance(embeddings, DTensor):  # FSDP: a process has a part of it
            embeddings = embeddings.full_tensor(grad_placements=[Partial("avg")])
        parts, masked = slots.split(sizes, 1), words.split(plan[:, 2].tolist(), 1)
        config = self.backbone.config
        takes_types = getattr(config, "type_vocab_size", 0) > 1
        takes_types &= "token_type_ids" in signature(self.backbone.forward).parameters
        # Encode each block; `waiting` has the states and labels of masked words without a loss yet.
        vectors, losses, waiting = [], [], []
        for number, (rows, tokens, _, padded) in enumerate(plan.tolist()):
            ids, types, real = parts[number].view(3, rows, tokens)
            if word_vectors is None:
                inputs = {"input_ids": ids}
            else:
                inputs = {"inputs_embeds": word_vectors[number].view(rows, tokens, -1)}
            if takes_types:
                inputs["token_type_ids"] = types
            if padded:
                inputs["attention_mask"] = real
            with padding_known(bool(padded)):
                states = self.backbone(**inputs).last_hidden_state
            if self.config.vector == "cls":
                vectors.append(self.pool(states[:, 0]))
            else:
                vectors.append(pooled(states, real, "mean") if padded else states.mean(1))
            places, labels = masked[number]
            waiting.append((states.flatten(0, 1)[places], labels))
            is_last = number == len(plan) - 1
            if is_last or sum(len(gold) for _, gold in waiting) >= WORDS_AT_ONCE:
                masked_states, gold = (torch.cat(column) for column in zip(*waiting, strict=True))
                waiting.clear()
                if self.config.mlm:
                    losses.append(self.masked_words(masked_states, embeddings, gold))
        loss = torch.stack(losses).sum() if losses else states.new_zeros((), dtype=torch.float32)
        return torch.cat(vectors), loss

    def pool(self, states: Tensor) -> Tensor:
        """Return the vectors of texts from their states at [CLS], both `[sequences, width]`.

        Those are the output of the pooler (the paper's "pooled representation"), if there is one.
        """
        pooler = getattr(self.backbone, "pooler", None)
        if pooler is None:
            return states
        if isinstance(pooler, nn.Linear):  # ALBERT's and BigBird's, with a separate activation
            backbone: Any = self.backbone
            activation = getattr(backbone, "pooler_activation", None) or backbone.activation
            return activation(pooler(states))
        return pooler(states[:, None])


def takes_vectors(backbone: PreTrainedModel) -> bool:
    """Tell whether a backbone takes vectors of words in place of their ids.

    I-BERT's vectors need a scale; ESM expects vectors of words and positions combined.
    """
    table = backbone.get_input_embeddings()
    is_plain = isinstance(table, nn.Embedding) and backbone.config.model_type != "esm"
    return is_plain and "inputs_embeds" in signature(backbone.forward).parameters


def load_heads(model: ConponoModel, backbone: str) -> Iterator[str]:
    """Copy the objective's and the masked-word head stored with `backbone` into `model`. `backbone`
    is a folder or Hub id. Yields notes for the card, such as on a head that it lacks."""
    kind, mlm = model_type(backbone), model.config.mlm
    if kind == model.config.model_type:  # trained here or converted
        source = ConponoModel.from_pretrained(backbone)
        if mlm and source.config.mlm:
            model.masked_words.load_state_dict(source.masked_words.state_dict())
        elif mlm:
            yield f"the backbone was trained without masked words, so it has no head: {NEW}"
        module, title, keys = OBJECTIVE_HEADS[model.config.objective]
        differ = [key for key in keys if getattr(model.config, key) != getattr(source.config, key)]
        if differ:
            yield f"the backbone's {differ[0]} differs: {title} initialised randomly"
        else:
            model.get_submodule(module).load_state_dict(source.get_submodule(module).state_dict())
            yield f"{title} copied from the backbone"
    elif mlm and kind in HEADS:
        dense, norm, bias = HEADS[kind]
        with opening(backbone) as options:
            stored, report = AutoModelForMaskedLM.from_pretrained(
                backbone, output_loading_info=True, **options
            )
        if any(key.startswith((dense, norm)) for key in report["missing_keys"]):
            # Sentence encoders such as MiniLM are stored without the head.
            yield f"the backbone has no masked-word head: {NEW}"
            return
        head = model.masked_words
        head.dense.load_state_dict(stored.get_submodule(dense).state_dict())
        head.norm.load_state_dict(stored.get_submodule(norm).state_dict())
        head.bias.data.copy_(stored.get_parameter(bias).data)
    elif mlm and kind.startswith("discorpora-"):
        yield f"the backbone has no masked-word head: {NEW}"
    elif mlm:
        yield f"{kind}'s masked-word head is not supported: {NEW}"


known_to_auto(ConponoConfig, model=ConponoModel)
