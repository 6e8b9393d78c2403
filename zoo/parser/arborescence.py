"""The best tree of a matrix of arc scores."""

from __future__ import annotations

import math

import networkx
import numpy as np

ROOTS = 3  # likeliest roots that are tried
LEAST_HEADS = 8  # likeliest heads of a word that are tried; an eighth of a long sentence


def best_tree(scores: np.ndarray) -> np.ndarray:
    """Heads (places, 0 the root) of the best tree with one root.

    `scores` are log-probabilities [words, words + 1], place 0 the root. Each word's best head where
    these form such a tree, which is nearly always; else the best of the maximum spanning
    arborescences under the likeliest roots.
    """
    heads = scores.argmax(1)
    if (heads == 0).sum() == 1 and is_tree(heads):
        return heads
    found = [_under(int(root), scores) for root in np.argsort(-scores[:, 0])[:ROOTS]]
    return max(found, key=lambda pair: pair[0])[1]


def is_tree(heads: np.ndarray) -> bool:
    """Whether every word reaches place 0."""
    for word in range(1, len(heads) + 1):
        place, steps = word, 0
        while place:
            place = int(heads[place - 1])
            steps += 1
            if steps > len(heads):
                return False
    return True


def _under(root: int, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """The best tree whose root is the word `root`, and its score."""
    count = len(scores)
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(1, count + 1))
    for word in (word for word in range(count) if word != root):
        # The root heads every word if need be, so that there is always a tree.
        likely = np.argsort(-scores[word, 1:])[: max(LEAST_HEADS, count // 8)]
        for head in {root, *map(int, likely)} - {word}:
            graph.add_edge(head + 1, word + 1, weight=float(scores[word, head + 1]))
    heads = np.zeros(count, np.int64)
    total = float(scores[root, 0])
    if count > 1:
        tree = networkx.maximum_spanning_arborescence(graph)
        for head, word in tree.edges:
            heads[word - 1] = head
            total += float(scores[word - 1, head])
    return (total if math.isfinite(total) else -math.inf), heads
