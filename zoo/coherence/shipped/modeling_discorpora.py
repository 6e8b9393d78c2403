"""The encoders of discorpora's models, in one file that needs only torch and transformers.

Training writes it beside the weights, so that a model loads without discorpora:

    AutoModel.from_pretrained(FOLDER, trust_remote_code=True)

A backbone of transformers is loaded by its own class; a bidirectional recurrence over words by the
class below. The recurrence skips padding in one of two ways, which give the same states up to
rounding. On a GPU cuDNN runs packed sequences at full speed. On a CPU oneDNN processes a whole
padded batch 1.5 to 2 times as fast as torch a packed one; so texts run in groups of similar length,
and each direction separately, since the backward one must not begin in the padding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutputWithPooling, SequenceClassifierOutput
from transformers.utils.hub import cached_file

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}
Layer = nn.LSTM | nn.GRU
GROUP = 32
"""Texts of similar length that a recurrence on a CPU processes together."""
Pooling = Literal["first", "last", "mean"]
BACKBONE = r"^(?!backbone\.)"
"""Matches the weights outside the backbone: the heads that training adds."""
WEIGHTS, SCALE = "model.safetensors", ".scale"
SHARED = 32
"""Neighbours in a row of a matrix that share a scale, where weights are stored in four bits."""
ONE_SCORE = {
    "num_labels": 1,
    "problem_type": "regression",
    "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"},
}
"""Settings of a model with one unbounded score: no sigmoid in `CrossEncoder` or pipelines."""
OF_THE_HUB = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")
"""The arguments of `from_pretrained` that say where a file comes from."""


def unpack(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights that are stored in four bits as float32, by name (`zoo.compact` packs them).

    A matrix `[rows, columns]` is stored as uint8 `[rows, columns / 2]`, two numbers in a byte, and
    under its name with `.scale` as the scales `[rows, columns / 32]`. Other tensors stay as they
    are.
    """
    weights: dict[str, Tensor] = {}
    for name, stored in packed.items():
        if name + SCALE in packed:
            levels = torch.stack([stored & 15, stored >> 4], dim=-1).flatten(1).float() - 8
            scale = packed[name + SCALE].float().unsqueeze(-1)
            weights[name] = (levels.unflatten(1, (-1, SHARED)) * scale).flatten(1)
        elif not name.endswith(SCALE):
            weights[name] = stored
    return weights


class StoredModel(PreTrainedModel):
    """A `PreTrainedModel` that also loads weights of four bits, which become float32.

    The configuration of such a folder has `stored = "int4"`.
    """

    config_class: type[PretrainedConfig]

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | PathLike[str] | None, *args: Any, **kwargs: Any
    ) -> Any:
        """Load a model from a folder or Hub id, with the arguments that transformers takes."""
        path = pretrained_model_name_or_path
        config = kwargs.pop("config", None)
        origin = {key: kwargs[key] for key in OF_THE_HUB if kwargs.get(key) is not None}
        if path is not None and not isinstance(config, PretrainedConfig):
            config = cls.config_class.from_pretrained(config or path, **origin)
        if path is None or getattr(config, "stored", "") != "int4":
            return super().from_pretrained(path, *args, config=config, **kwargs)
        config.stored = "float32"
        weights = unpack(load_file(str(cached_file(str(path), WEIGHTS, **origin))))
        kwargs |= {"config": config, "state_dict": weights, "dtype": torch.float32}
        loaded: Any = super().from_pretrained(None, *args, **kwargs)
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        model.config._name_or_path = str(path)  # where its tokenizer is
        return loaded


def pooled(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return one vector for each text, `[batch, width]`, from `states [batch, tokens, width]`.

    `mask [batch, tokens]` is 1 at real tokens, which are on the left.
    """
    if pooling == "first":
        return states[:, 0]
    if pooling == "last":
        rows = torch.arange(len(mask), device=mask.device)
        return states[rows, mask.sum(1) - 1]
    weights = mask.unsqueeze(2).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


class ConponoConfig(PretrainedConfig):
    model_type = "discorpora-conpono"


class PairConfig(PretrainedConfig):
    model_type = "discorpora-dissent-transformer"


class ScorerConfig(PretrainedConfig):
    model_type = "discorpora-coherence-scorer"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, **ONE_SCORE})


class BiLstmConfig(PretrainedConfig):
    model_type = "discorpora-dissent-bilstm"


class SifConfig(PretrainedConfig):
    model_type = "discorpora-dissent-sif"


class CriteriaConfig(PretrainedConfig):
    model_type = "discorpora-criteria"


def backbone_of(config: Any) -> PreTrainedModel:
    """Return the backbone that a model's configuration describes, with random weights."""
    part = config.backbone_config
    backbone_config = AutoConfig.for_model(**part) if isinstance(part, dict) else part
    # For T5, this is the encoder.
    of_texts = type(backbone_config) in AutoModelForTextEncoding._model_mapping
    auto_class: Any = AutoModelForTextEncoding if of_texts else AutoModel
    model: PreTrainedModel = auto_class.from_config(backbone_config)
    return model


class BackboneModel(StoredModel):
    """The backbone of a model, without the heads that training adds."""

    base_model_prefix = ""
    main_input_name = "input_ids"
    _keys_to_ignore_on_load_unexpected = [BACKBONE]

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.backbone = backbone_of(config)
        self.post_init()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the backbone's `forward` returns for the same arguments."""
        return self.backbone(*args, **kwargs)


class ConponoEncoder(BackboneModel):
    config_class = ConponoConfig


class PairEncoder(BackboneModel):
    config_class = PairConfig


class ScorerEncoder(BackboneModel):
    config_class = ScorerConfig


class _Classifier(StoredModel):
    """`logits = W h + b` of the vector h of a text, or of two texts encoded together."""

    base_model_prefix = ""
    main_input_name = "input_ids"
    head: ClassVar[str]

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.backbone = backbone_of(config)
        layer = nn.Linear(self.backbone.config.hidden_size, config.num_labels)
        setattr(self, self.head, layer)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> SequenceClassifierOutput:
        """Return `logits [batch, labels]` of `input_ids [batch, tokens]`, padded on the right."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        types = {k: v for k, v in kwargs.items() if k == "token_type_ids"}
        outputs = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **types)
        vectors = pooled(outputs.last_hidden_state, attention_mask, self.config.pooling)
        return SequenceClassifierOutput(logits=getattr(self, self.head)(vectors))


class PairClassifier(_Classifier):
    """Classifies pairs of texts, which are encoded together."""

    config_class = PairConfig
    head = "classifier"


class Scorer(_Classifier):
    """Scores the coherence of a text by one number.

    `CrossEncoder.predict` takes several texts only as pairs. A pair of a text and an empty text has
    more separators than the text alone; they are hidden, so that the score is the text's.
    """

    config_class = ScorerConfig
    head = "score_head"

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> SequenceClassifierOutput:
        """Return `logits [batch, 1]` of `input_ids [batch, tokens]`, padded on the right."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        separator = getattr(self.config, "sep_token_id", None)
        ends = input_ids == (-1 if separator is None else separator)
        repeated = pad(ends[:, 1:] & ends[:, :-1], (1, 0))
        return super().forward(input_ids, attention_mask * ~repeated, **kwargs)


class WordModel(PreTrainedModel):
    """A model with a recurrent encoder of words, named `encoder`, and its initialisation."""

    base_model_prefix = "encoder"
    main_input_name = "input_ids"

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise a layer as torch does, as in DisSent's released code; embeddings normally."""
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, 0.0, self.config.embedding_std)
            if not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.LSTM | nn.GRU | nn.Linear):
            fan = module.in_features if isinstance(module, nn.Linear) else module.hidden_size
            for parameter in module.parameters(recurse=False):
                init.uniform_(parameter, -1 / math.sqrt(fan), 1 / math.sqrt(fan))


class WordEncoder(WordModel):
    """Encodes a sentence as a vector: word embeddings, recurrence, pooling over the real tokens.

    Its configuration has `vocab_size`, `embedding_size`, `hidden_size` (of one direction),
    `pooling` ("max" or "mean"), `train_embeddings` and `embedding_std`.
    """

    cell: ClassVar[Literal["lstm", "gru"]]
    _input_embed_layer = "embeddings"

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        config = self.config
        self.embeddings = nn.Embedding(
            config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id
        )
        self.embeddings.weight.requires_grad_(config.train_embeddings)
        sizes = config.embedding_size, config.hidden_size
        layer = CELLS[self.cell](*sizes, batch_first=True, bidirectional=True)
        setattr(self, self.cell, layer)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        packed: Any = None,
        **kwargs: object,
    ) -> BaseModelOutputWithPooling:
        """Encode `input_ids [batch, tokens]`, padded on the right.

        Returns `last_hidden_state [batch, tokens, 2 * hidden]` (zeros at padding) and the
        sentence vector `pooler_output [batch, 2 * hidden]`. A row without a token counts as one
        token of padding. With `drop_unknown` words whose vector is zero are left out, and the
        states are those of the other words. `packed [batch]` is an array of the number of words
        that count in each text, at least 1; without it the code waits for the GPU to count them.
        """
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if not input_ids.size(1):
            input_ids = attention_mask = input_ids.new_zeros(len(input_ids), 1, dtype=torch.long)
        # A text without a word counts as one token of padding.
        attention_mask = attention_mask.clone()
        attention_mask[:, 0] = 1
        words, real = self.embeddings(input_ids), attention_mask > 0
        if getattr(self.config, "drop_unknown", False):
            real &= (words != 0).any(2)
            # The words that remain move to the left.
            order = real.int().argsort(dim=1, descending=True, stable=True)
            words = words.gather(1, order.unsqueeze(2).expand_as(words))
            real = real.gather(1, order)
            real[:, 0] = True
        lengths = real.sum(1)
        layer = getattr(self, self.cell)
        if input_ids.device.type == "cpu":
            states = run_in_groups(layer, words, lengths)
        else:
            states = run_packed(layer, words, lengths if packed is None else torch.tensor(packed))
        if self.config.pooling == "mean":
            vectors = states.sum(1) / lengths.unsqueeze(1)
        else:
            vectors = states.masked_fill(~real.unsqueeze(2), float("-inf")).amax(1)
        return BaseModelOutputWithPooling(states, vectors)


class BiLstmEncoder(WordEncoder):
    config_class: type[PretrainedConfig] = BiLstmConfig
    cell = "lstm"
    _keys_to_ignore_on_load_unexpected = [r"^(projection|middle|classifier)\."]


class CriteriaEncoder(WordEncoder):
    config_class: type[PretrainedConfig] = CriteriaConfig
    cell = "gru"
    _keys_to_ignore_on_load_unexpected = [r"^decoders\."]


class SifEncoder(PreTrainedModel):
    """v(s) = sum_w a / (a + p(w)) v(w) / |s|, less its part along the first component u.

    Arora, Liang and Ma 2017. `word_weight [vocabulary]` holds a / (a + p(w)), and 0 for padding
    and for words without a vector, which do not count in |s| either.
    """

    config_class: type[PretrainedConfig] = SifConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    _input_embed_layer = "embeddings"
    _keys_to_ignore_on_load_unexpected = [r"^classifier\."]

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.word_weight = nn.Parameter(self.embeddings.weight.new_zeros(config.vocab_size))
        self.component = nn.Parameter(self.embeddings.weight.new_zeros(config.hidden_size))
        self.requires_grad_(False)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        for parameter in module.parameters(recurse=False):
            init.zeros_(parameter)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: object
    ) -> BaseModelOutputWithPooling:
        """Encode `input_ids [batch, tokens]`.

        Returns the word vectors `last_hidden_state [batch, tokens, size]` and the sentences'
        `pooler_output [batch, size]`.
        """
        vectors = self.embeddings(input_ids.long())
        weights = self.word_weight[input_ids.long()]
        if attention_mask is not None:
            weights = weights * attention_mask
        counts = (weights > 0).sum(1, keepdim=True).clamp(min=1)
        summed = (vectors * weights.unsqueeze(2)).sum(1) / counts
        common = (summed @ self.component).unsqueeze(1) * self.component
        return BaseModelOutputWithPooling(vectors, summed - common)


def run_packed(layer: Layer, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Return the states `[batch, tokens, 2 * hidden]` of `vectors [batch, tokens, size]`.

    Text `i` is the first `lengths[i]` vectors, at least one. States at padding are zeros. The
    recurrence runs in float32: autocast would use float16 for cuDNN's layers whatever its dtype
    (AutocastRNN.cpp in torch), and small gradients vanish in float16 without scaling.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        packed = pack_padded_sequence(
            vectors.float(), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, width = layer(packed)[0], vectors.size(1)
    return pad_packed_sequence(states, batch_first=True, total_length=width)[0]


def run_in_groups(layer: Layer, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Return the same states as `run_packed`, computed in groups of texts of similar length.

    On a CPU this is faster than packed sequences. The backward direction reads each text from its
    last word: `mirrored` has the places of a text's words in reverse order, and padding stays where
    it is. The same places put the backward states back in order.
    """
    order = lengths.argsort(descending=True, stable=True)
    groups = []
    for rows in order.split(GROUP):
        ends = lengths[rows].unsqueeze(1)
        words = vectors[rows, : int(ends[0])]
        steps = torch.arange(words.size(1), device=vectors.device)
        real = steps < ends
        mirrored = torch.where(real, ends - 1 - steps, steps).unsqueeze(2)
        forward = _one_direction(layer, words, layer.all_weights[0])
        reversed_words = words.gather(1, mirrored.expand_as(words))
        backward = _one_direction(layer, reversed_words, layer.all_weights[1])
        backward = backward.gather(1, mirrored.expand_as(backward))
        states = torch.cat([forward, backward], dim=2) * real.unsqueeze(2)
        groups.append(pad(states, (0, 0, 0, vectors.size(1) - words.size(1))))
    return torch.cat(groups)[order.argsort()]


def _one_direction(layer: Layer, vectors: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Return the states `[batch, tokens, hidden]` of one direction, which has these `weights`."""
    start = vectors.new_zeros(1, len(vectors), layer.hidden_size)
    # weights, biases, layers, dropout, training, bidirectional, batch first
    arguments = (list(weights), True, 1, 0.0, layer.training, False, True)
    if isinstance(layer, nn.GRU):
        return torch._VF.gru(vectors, start, *arguments)[0]
    return torch._VF.lstm(vectors, (start, start), *arguments)[0]
