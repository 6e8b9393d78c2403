"""A biaffine graph parser on a pretrained encoder: the model, its batches, and its trees.

Dozat and Manning, "Deep Biaffine Attention for Neural Dependency Parsing" (2017), with the vectors
of a pretrained encoder (first piece of a word, a learnt mixture of all layers) in place of LSTMs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import numpy as np
import torch
from pydantic import BaseModel
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from corpora.errors import InputError
from corpora.outside import parsed, record_of
from corpora.store.atomic import replacing
from zoo.backbones import load_backbone, max_positions, tokenizer_of

SHAPES, SUFFIXES, FEATURE_WIDTH = 64, 4096, 32
ARC, REL = 400, 128  # width of the vectors that score arcs, and labels
MAX_PIECES = 512
PIECES_A_WORD = 12
NEVER = -1e4
RECORD = "teacher"
ROOTS = 3  # likeliest roots that are tried
LEAST_HEADS = 8  # likeliest heads of a word that are tried; an eighth of a long sentence


@dataclass(frozen=True)
class Tree:
    """The heads (-1 for the root), labels and XPOS of a sentence, and how sure the teacher is.

    `confidence` is the geometric mean of the probabilities of the arcs and of their labels.
    """

    heads: tuple[int, ...]
    deprels: tuple[str, ...]
    xpos: tuple[str, ...]
    confidence: float


class Encoded(NamedTuple):
    """A sentence: its pieces with the special ones, and of each word its first piece and form."""

    ids: list[int]
    first: list[int]
    shapes: list[int]
    suffixes: list[int]


class Batch(NamedTuple):
    """Padded tensors of some sentences; `first` is the place of each word's first piece."""

    ids: Tensor  # [sentences, pieces]
    first: Tensor  # [sentences, words]
    shapes: Tensor  # [sentences, words]
    suffixes: Tensor  # [sentences, words]
    mask: Tensor  # [sentences, pieces]

    @property
    def words(self) -> Tensor:
        """True at real words, `[sentences, words]`: before the first stands a special piece."""
        return self.first > 0


class Scores(NamedTuple):
    """What the model says of a batch; places count from the root, which is 0."""

    arcs: Tensor  # [sentences, words, places]
    heads: Tensor  # [sentences, places, width]: a place as the head of a label
    dependents: Tensor  # [sentences, words, width]
    tags: Tensor  # [sentences, words, tags]


class Biaffine(nn.Module):
    """x^T U y with a bias on both sides, for `classes` matrices U."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(classes, width + 1, width + 1))

    def forward(self, left: Tensor, right: Tensor, equation: str) -> Tensor:
        """`equation` joins left [b, n, x], the weights [c, x, y] and right [b, m or n, y]."""
        left = nn.functional.pad(left, (0, 1), value=1.0)
        right = nn.functional.pad(right, (0, 1), value=1.0)
        return torch.einsum(equation, left, self.weight.to(left.dtype), right).float()


class Teacher(nn.Module):
    """Scores of arcs, of labels and of tags for the words of a batch."""

    def __init__(self, encoder: Any, deprels: Sequence[str], xpos: Sequence[str]) -> None:
        super().__init__()
        config = encoder.config
        self.encoder, self.deprels, self.xpos = encoder, deprels, xpos
        self.mixture = nn.Parameter(torch.zeros(config.num_hidden_layers + 1))
        self.shape = nn.Embedding(SHAPES, FEATURE_WIDTH)
        self.suffix = nn.Embedding(SUFFIXES, FEATURE_WIDTH)
        width = config.hidden_size + 2 * FEATURE_WIDTH
        self.root = nn.Parameter(torch.randn(width) * 0.02)
        sizes = {"arc_dep": ARC, "arc_head": ARC, "rel_dep": REL, "rel_head": REL}
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(nn.Linear(width, size), nn.LeakyReLU(0.1), nn.Dropout(0.33))
                for name, size in sizes.items()
            }
        )
        self.arc = Biaffine(ARC, 1)
        self.rel = Biaffine(REL, len(deprels))
        self.tag = nn.Linear(width, len(xpos))
        self.dropout = nn.Dropout(0.2)

    def forward(self, batch: Batch) -> Scores:
        layers = self.encoder(
            input_ids=batch.ids, attention_mask=batch.mask, output_hidden_states=True
        ).hidden_states
        weights = self.mixture.softmax(0).to(layers[0].dtype)
        mixed = sum(weight * layer for weight, layer in zip(weights, layers, strict=True))
        first = mixed.gather(1, batch.first.unsqueeze(-1).expand(-1, -1, mixed.shape[-1]))
        features = [first, self.shape(batch.shapes), self.suffix(batch.suffixes)]
        words = self.dropout(torch.cat([part.to(first.dtype) for part in features], dim=-1))
        root = self.root.to(words.dtype).expand(len(words), 1, -1)
        places = torch.cat([root, words], dim=1)
        left, right = self.heads["arc_dep"](words), self.heads["arc_head"](places)
        arcs = self.arc(left, right, "bnx,cxy,bmy->bcnm")[:, 0]
        seen = nn.functional.pad(batch.words, (1, 0), value=True).unsqueeze(1)
        return Scores(
            arcs=arcs.masked_fill(~seen, NEVER),
            heads=self.heads["rel_head"](places),
            dependents=self.heads["rel_dep"](words),
            tags=self.tag(words).float(),
        )

    def label_scores(self, scores: Scores, heads: Tensor) -> Tensor:
        """Scores [sentences, words, labels] of each word's labels under `heads`, its places."""
        index = heads.unsqueeze(-1).expand(-1, -1, scores.heads.shape[-1])
        chosen = scores.heads.gather(1, index)
        return self.rel(scores.dependents, chosen, "bnx,cxy,bny->bnc")


def shape_of(form: str) -> int:
    """A class of how a form is written: case of its first and other letters, digits, marks."""
    first, rest = form[:1], form[1:]
    kind = 0 if first.islower() else 1 if first.isupper() else 2 if first.isdigit() else 3
    other = 0 if not rest else 1 if rest.islower() else 2 if rest.isupper() else 3
    digit, mark = any(c.isdigit() for c in rest), any(c in "-.'" for c in rest)
    return kind * 16 + other * 4 + 2 * digit + mark


def suffix_of(form: str) -> int:
    """The last three letters, hashed (FNV-1a), the same in every process."""
    value = 2166136261
    for code in form[-3:].encode():
        value = (value ^ code) * 16777619 & 0xFFFFFFFF
    return value % SUFFIXES


@dataclass(frozen=True)
class Encoding:
    """Sentences as tensors, with the tokenizer of the encoder; `limit` is its longest input."""

    tokenizer: Any
    limit: int

    def encode(self, sentences: Sequence[Sequence[str]]) -> dict[int, Encoded]:
        """The sentences by number, without those that are empty or beyond the limit.

        An empty word becomes the unknown piece.
        """
        flat = [form for forms in sentences for form in forms]
        unknown = [self.tokenizer.unk_token_id]
        ids = self.tokenizer(flat, add_special_tokens=False)["input_ids"] if flat else []
        words = iter([row[:PIECES_A_WORD] or unknown for row in ids])
        start, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        made = {}
        for number, forms in enumerate(sentences):
            pieces = list(islice(words, len(forms)))
            encoded = Encoded(
                ids=[start, *chain.from_iterable(pieces), end],
                first=list(accumulate(map(len, pieces[:-1]), initial=1)),
                shapes=list(map(shape_of, forms)),
                suffixes=list(map(suffix_of, forms)),
            )
            if forms and len(encoded.ids) <= self.limit:
                made[number] = encoded
        return made

    def batch(self, sentences: Sequence[Encoded]) -> Batch:
        def padded(rows: Iterable[Sequence[int]], value: int = 0) -> Tensor:
            return pad_sequence([torch.tensor(row) for row in rows], True, value)

        ids, first, shapes, suffixes = zip(*sentences, strict=True)
        return Batch(
            padded(ids, self.tokenizer.pad_token_id),
            padded(first),
            padded(shapes),
            padded(suffixes),
            padded([1] * len(row) for row in ids),
        )


def by_length(lengths: Mapping[int, int], most: int, order: Sequence[int] = ()) -> list[list[int]]:
    """The keys of `lengths` in batches of at most `most` padded places; by length, or in `order`.

    An `order` must be nearly sorted by length, or the padding grows.
    """
    batches: list[list[int]] = []
    longest = 0
    for i in order or sorted(lengths, key=lengths.__getitem__):
        longest = max(longest, lengths[i])
        if not batches or (len(batches[-1]) + 1) * longest > most:
            batches.append([])
            longest = lengths[i]
        batches[-1].append(i)
    return batches


@torch.inference_mode()
def parse(
    model: Teacher,
    encoding: Encoding,
    sentences: Sequence[Sequence[str]],
    places: int = 4000,
    bf16: bool = True,
) -> list[Tree | None]:
    """A tree of each sentence's forms; None where it is longer than the encoder takes."""
    model.eval()
    is_root = np.array([name == "root" for name in model.deprels])
    trees: list[Tree | None] = [None] * len(sentences)
    encoded = encoding.encode(sentences)
    for chosen in by_length({i: len(each.ids) - 2 for i, each in encoded.items()}, places):
        batch = encoding.batch([encoded[i] for i in chosen])
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            scores = model(batch)
            arcs = scores.arcs.log_softmax(-1).numpy()
            heads = np.zeros(batch.words.shape, np.int64)
            for row, i in enumerate(chosen):
                count = len(sentences[i])
                heads[row, :count] = best_tree(arcs[row, :count, : count + 1])
            labels = model.label_scores(scores, torch.from_numpy(heads)).log_softmax(-1).numpy()
        # The label `root` goes with the arc from the root, and with no other.
        allowed = np.where((heads == 0)[..., None], is_root, ~is_root)
        chosen_labels = np.where(allowed, labels, -np.inf).argmax(-1)
        tags = scores.tags.argmax(-1).numpy()
        for row, i in enumerate(chosen):
            words = np.arange(len(sentences[i]))
            head, label = heads[row, words], chosen_labels[row, words]
            sure = arcs[row, words, head] + labels[row, words, label]
            trees[i] = Tree(
                heads=tuple((head - 1).tolist()),
                deprels=tuple(model.deprels[number] for number in label),
                xpos=tuple(model.xpos[tag] for tag in tags[row, words]),
                confidence=float(np.exp(sure.mean())),
            )
    return trees


def best_tree(scores: np.ndarray) -> np.ndarray:
    """Heads (places, 0 the root) of the best tree with one root.

    `scores` are log-probabilities [words, words + 1], place 0 the root. Each word's best head where
    these form such a tree, which is nearly always; else the best of the maximum spanning
    arborescences under the likeliest roots.
    """
    best = scores.argmax(1)
    if (best == 0).sum() == 1 and is_tree(best):
        return best
    count, highest = len(scores), -np.inf
    for root in np.argsort(-scores[:, 0])[:ROOTS].tolist():
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(1, count + 1))
        for word in (word for word in range(count) if word != root):
            # The root heads every word if need be, so that there is always a tree.
            likely = np.argsort(-scores[word, 1:])[: max(LEAST_HEADS, count // 8)]
            for head in {root, *likely.tolist()} - {word}:
                graph.add_edge(head + 1, word + 1, weight=float(scores[word, head + 1]))
        heads = np.zeros(count, np.int64)
        if count > 1:
            for head, word in networkx.maximum_spanning_arborescence(graph).edges:
                heads[word - 1] = head
        total = scores[np.arange(count), heads].sum(dtype=np.float64)
        if total > highest:
            best, highest = heads, total
    return best


def is_tree(heads: np.ndarray) -> bool:
    """Whether every word reaches place 0."""
    ancestors = np.concatenate([[0], heads])
    for _ in range(len(heads).bit_length()):
        ancestors = ancestors[ancestors]
    return not ancestors.any()


def make(backbone: str, deprels: Sequence[str], xpos: Sequence[str]) -> tuple[Teacher, Encoding]:
    """An untrained teacher of these labels; `ConfigError` if the encoder cannot be loaded."""
    encoder = load_backbone(backbone, {})
    limit = min(max_positions(encoder.config) or MAX_PIECES, MAX_PIECES)
    return Teacher(encoder, deprels, xpos), Encoding(tokenizer_of(backbone), limit)


class Record(BaseModel):
    """What a teacher's file says of it."""

    backbone: str
    deprels: list[str]
    xpos: list[str]


def save(model: Teacher, backbone: str, output: Path) -> None:
    """Weights, labels and the encoder's name as one safetensors file, by one rename."""
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    record = {"backbone": backbone, "deprels": model.deprels, "xpos": model.xpos}
    with replacing(output) as path:
        save_file(weights, path, {RECORD: json.dumps(record)})


def load(file: Path) -> tuple[Teacher, Encoding]:
    """What `save` wrote; the encoder is looked up under its name for its tokenizer and shape.

    Raises `InputError` for a file that is none of it.
    """
    hint = "make one: python -m zoo.parser.teacher"
    try:
        with safe_open(file, "pt") as opened:
            record = parsed((opened.metadata() or {})[RECORD], where=str(file), hint=hint)
        names = record_of(Record, record, str(file), hint)
        model, encoding = make(names.backbone, names.deprels, names.xpos)
        model.load_state_dict(load_file(file))
    except (SafetensorError, KeyError, RuntimeError) as error:  # the last: of other weights
        raise InputError("holds no teacher", where=str(file), hint=hint) from error
    return model, encoding
