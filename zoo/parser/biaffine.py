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
from corpora.outside import parse_json, record_of
from corpora.store.atomic import replacing
from zoo.backbones import load_backbone, max_positions, tokenizer_of

SHAPES, SUFFIXES, FEATURE_WIDTH = 64, 4096, 32  # numbers of classes, and the width of their vectors
ARC, REL = 400, 128  # widths of the vectors that score arcs and labels
MAX_PIECES = 512  # of a sentence
PIECES_A_WORD = 12  # at most; the rest of a longer word is cut
NEVER = -1e4  # the score of an arc from padding
RECORD = "teacher"  # the key of the teacher's record in its file
ROOTS = 3  # the most probable roots, which are tried
LEAST_HEADS = 8  # most probable heads of a word that are tried; in a long sentence an eighth of all


@dataclass(frozen=True)
class Tree:
    """A parsed sentence: the head of each word (-1 for the root), its label and its XPOS.

    `confidence` is the geometric mean, over words, of the probability of the arc and its label.
    """

    heads: tuple[int, ...]
    deprels: tuple[str, ...]
    xpos: tuple[str, ...]
    confidence: float


class EncodedSentence(NamedTuple):
    """The ids of a sentence's pieces, and each word's first piece, shape and suffix."""

    ids: list[int]
    first: list[int]
    shapes: list[int]
    suffixes: list[int]


class Batch(NamedTuple):
    """Encoded sentences as padded tensors; `first` is the place of each word's first piece."""

    ids: Tensor  # [sentences, pieces]
    first: Tensor  # [sentences, words]
    shapes: Tensor  # [sentences, words]
    suffixes: Tensor  # [sentences, words]
    mask: Tensor  # [sentences, pieces]

    @property
    def words(self) -> Tensor:
        """True at words, False at padding: `[sentences, words]`.

        No word begins at piece 0, which is a special token; padding has 0 in `first`.
        """
        return self.first > 0


class Scores(NamedTuple):
    """The model's scores of a batch. Place 0 is the root, place `i` the `i`-th word."""

    arcs: Tensor  # [sentences, words, places]
    heads: Tensor  # [sentences, places, width]: vectors of heads, which score labels
    dependents: Tensor  # [sentences, words, width]: vectors of dependents, which score labels
    tags: Tensor  # [sentences, words, tags]


class Biaffine(nn.Module):
    """Scores vectors by x^T U y, with a bias on both sides, for each of `classes` matrices U."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(classes, width + 1, width + 1))

    def forward(self, left: Tensor, right: Tensor, equation: str) -> Tensor:
        """Return scores of pairs of left `[b, n, x]` and right `[b, m, y]` by `torch.einsum`."""
        left = nn.functional.pad(left, (0, 1), value=1.0)
        right = nn.functional.pad(right, (0, 1), value=1.0)
        return torch.einsum(equation, left, self.weight.to(left.dtype), right).float()


class Teacher(nn.Module):
    """A parser that scores the arcs, labels and tags of the words of a batch."""

    def __init__(self, encoder: Any, deprels: Sequence[str], xpos: Sequence[str]) -> None:
        """Make untrained layers over `encoder` for the labels `deprels` and the tags `xpos`."""
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
        """Return the scores of a batch; labels are scored later, by `label_scores`."""
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
        real = nn.functional.pad(batch.words, (1, 0), value=True).unsqueeze(1)
        return Scores(
            arcs=arcs.masked_fill(~real, NEVER),
            heads=self.heads["rel_head"](places),
            dependents=self.heads["rel_dep"](words),
            tags=self.tag(words).float(),
        )

    def label_scores(self, scores: Scores, heads: Tensor) -> Tensor:
        """Return label scores `[sentences, words, labels]` if `heads` are the words' heads."""
        index = heads.unsqueeze(-1).expand(-1, -1, scores.heads.shape[-1])
        head_vectors = scores.heads.gather(1, index)
        return self.rel(scores.dependents, head_vectors, "bnx,cxy,bny->bnc")


def shape_of(form: str) -> int:
    """Return a form's shape as a number below 64: case of the letters, digits and marks in it."""
    first, rest = form[:1], form[1:]
    first_class = 0 if first.islower() else 1 if first.isupper() else 2 if first.isdigit() else 3
    rest_class = 0 if not rest else 1 if rest.islower() else 2 if rest.isupper() else 3
    digit, mark = any(c.isdigit() for c in rest), any(c in "-.'" for c in rest)
    return first_class * 16 + rest_class * 4 + 2 * digit + mark


def suffix_of(form: str) -> int:
    """Return a hash (FNV-1a) of a form's last three letters, the same in every process."""
    value = 2166136261
    for code in form[-3:].encode():
        value = (value ^ code) * 16777619 & 0xFFFFFFFF
    return value % SUFFIXES


@dataclass(frozen=True)
class Encoding:
    """Encodes sentences as tensors by the encoder's tokenizer; `limit` is its longest input."""

    tokenizer: Any
    limit: int

    def encode(self, sentences: Sequence[Sequence[str]]) -> dict[int, EncodedSentence]:
        """Return the encoded sentences by number, without those that are empty or too long.

        `sentences` are lists of word forms. A form without pieces becomes the unknown piece.
        """
        flat = [form for forms in sentences for form in forms]
        unknown = [self.tokenizer.unk_token_id]
        ids = self.tokenizer(flat, add_special_tokens=False)["input_ids"] if flat else []
        words = iter([row[:PIECES_A_WORD] or unknown for row in ids])
        start, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        encoded_sentences = {}
        for number, forms in enumerate(sentences):
            pieces = list(islice(words, len(forms)))
            encoded = EncodedSentence(
                ids=[start, *chain.from_iterable(pieces), end],
                first=list(accumulate(map(len, pieces[:-1]), initial=1)),
                shapes=list(map(shape_of, forms)),
                suffixes=list(map(suffix_of, forms)),
            )
            if forms and len(encoded.ids) <= self.limit:
                encoded_sentences[number] = encoded
        return encoded_sentences

    def batch(self, sentences: Sequence[EncodedSentence]) -> Batch:
        """Return encoded sentences as one batch of padded tensors."""

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
    """Return the keys of `lengths` (sentences' numbers) in batches of at most `most` padded tokens.

    The keys are sorted by length, or in `order`, which should be nearly sorted to avoid padding.
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
    """Return the tree of each sentence, a list of word forms; None for an empty or too long one.
    Batches have at most `places` pieces; with `bf16` the model computes in bfloat16."""
    model.eval()
    is_root = np.array([name == "root" for name in model.deprels])
    trees: list[Tree | None] = [None] * len(sentences)
    encoded = encoding.encode(sentences)
    lengths = {i: len(sentence.ids) - 2 for i, sentence in encoded.items()}
    for numbers in by_length(lengths, places):
        batch = encoding.batch([encoded[i] for i in numbers])
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            scores = model(batch)
            arcs = scores.arcs.log_softmax(-1).numpy()
            heads = np.zeros(batch.words.shape, np.int64)
            for row, i in enumerate(numbers):
                count = len(sentences[i])
                heads[row, :count] = best_tree(arcs[row, :count, : count + 1])
            labels = model.label_scores(scores, torch.from_numpy(heads)).log_softmax(-1).numpy()
        # Only an arc from the root has the label `root`.
        allowed = np.where((heads == 0)[..., None], is_root, ~is_root)
        best_labels = np.where(allowed, labels, -np.inf).argmax(-1)
        tags = scores.tags.argmax(-1).numpy()
        for row, i in enumerate(numbers):
            words = np.arange(len(sentences[i]))
            head, label = heads[row, words], best_labels[row, words]
            log_probabilities = arcs[row, words, head] + labels[row, words, label]
            trees[i] = Tree(
                heads=tuple((head - 1).tolist()),
                deprels=tuple(model.deprels[number] for number in label),
                xpos=tuple(model.xpos[tag] for tag in tags[row, words]),
                confidence=float(np.exp(log_probabilities.mean())),
            )
    return trees


def best_tree(scores: np.ndarray) -> np.ndarray:
    """Return the head of each word in the best tree with one root, `[words]`; 0 is the root.

    `scores [words, words + 1]` are log-probabilities of heads. If each word's best head makes a
    tree, as is nearly always so, that is the tree; else the best of the maximum spanning
    arborescences under the most probable roots.
    """
    best = scores.argmax(1)
    if (best == 0).sum() == 1 and is_tree(best):
        return best
    count, highest = len(scores), -np.inf
    for root in np.argsort(-scores[:, 0])[:ROOTS].tolist():
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(1, count + 1))
        for word in (word for word in range(count) if word != root):
            # The root may be the head of every word, so that there is always a tree.
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
    """Return True if the chain of heads of each word ends at the root. `heads [words]` has the
    head of each word; 0 is the root, and words are numbered from 1."""
    ancestors = np.concatenate([[0], heads])
    for _ in range(len(heads).bit_length()):  # each round doubles the distance
        ancestors = ancestors[ancestors]
    return not ancestors.any()


def make_teacher(
    backbone: str, deprels: Sequence[str], xpos: Sequence[str]
) -> tuple[Teacher, Encoding]:
    """Return an untrained teacher and its encoding; raises `ConfigError` for a bad encoder."""
    encoder = load_backbone(backbone, {})
    limit = min(max_positions(encoder.config) or MAX_PIECES, MAX_PIECES)
    return Teacher(encoder, deprels, xpos), Encoding(tokenizer_of(backbone), limit)


class Record(BaseModel):
    """The metadata of a teacher's file: its encoder and its labels."""

    backbone: str
    deprels: list[str]
    xpos: list[str]


def save(model: Teacher, backbone: str, output: Path) -> None:
    """Write a teacher's weights, labels and encoder's name to one safetensors file."""
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    record = {"backbone": backbone, "deprels": model.deprels, "xpos": model.xpos}
    with replacing(output) as path:
        save_file(weights, path, {RECORD: json.dumps(record)})


def load(file: Path) -> tuple[Teacher, Encoding]:
    """Load the teacher that `save` wrote, with the tokenizer of the encoder that it names.

    Raises `InputError` for a file of another kind.
    """
    hint = "make one: python -m zoo.parser.teacher"
    try:
        with safe_open(file, "pt") as opened:
            record = parse_json((opened.metadata() or {})[RECORD], where=str(file), hint=hint)
        names = record_of(Record, record, str(file), hint)
        model, encoding = make_teacher(names.backbone, names.deprels, names.xpos)
        model.load_state_dict(load_file(file))
    except (SafetensorError, KeyError, RuntimeError) as error:  # RuntimeError: other weights
        raise InputError("holds no teacher", where=str(file), hint=hint) from error
    return model, encoding
