"""What each setting of a recipe means, for `python -m zoo.train RECIPE --help`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

WIDTH = 100

SHARED = {
    "anneal_steps": "Steps over which the learning rate falls to `final_learning_rate`.",
    "anchor_sentences": "Sentences of an anchor.",
    "batch_size": "Examples of an optimizer step and process (times `gradient_accumulation`).",
    "bilinear_size": "Output of the bilinear layer between adjacent sentences.",
    "block_tokens": "At most so many tokens go through the encoder at a time.",
    "columns": "The two columns of texts; found by their usual names if not given.",
    "dataset_config": "The dataset's configuration; empty: its default, or the recipe's own.",
    "deterministic": "Kernels that give the same numbers each time, where torch has them.",
    "dropout": "Of the vector that the classifier reads.",
    "embedding_size": "Width of the word vectors, where none are given.",
    "empty_classes": "What to do with a label that no training row has.",
    "encoder": "What encodes an anchor and a target (CONPONO, section 4): together, or alone.",
    "epochs": "Passes over the training split.",
    "eval_batch_size": "Examples at a time in validation and test.",
    "final_learning_rate": "The learning rate after `anneal_steps`.",
    "gradient_accumulation": "Batches that make one optimizer step.",
    "hidden_size": "Width of the recurrent layers, of each direction.",
    "iterations": "At most so many of the solver.",
    "keep_checkpoints": "Checkpoints kept while training: the newest.",
    "kernel_heads": "Heads of the lightweight convolution, which share its weights.",
    "kernel_size": "Sentences that the lightweight convolution sees.",
    "learning_rate": "The highest of the schedule.",
    "logging_steps": "Steps from one line of the log to the next.",
    "longest": "Words of the longest n-gram.",
    "lower": "Take words without letter case.",
    "margin": "The distance that a document keeps from its negatives (equations 1 and 2).",
    "max_grad_norm": "Longer gradients are cut to this length; 0: never.",
    "max_tokens": "Tokens of a text (of a pair, where both go in together); the rest is cut.",
    "max_words": "Words of a sentence; the rest is cut.",
    "min_frequency": "Words that are rarer in the training split are unknown.",
    "mlm": "Learn masked words too.",
    "momentum": "The share of itself that the momentum encoder keeps at an update.",
    "negatives": "Negatives of a document in a step.",
    "objective": "What is learnt; the paper's names.",
    "patience": "Stop after so many validations without a new best one (0: never).",
    "pooling": "How a sentence's states make its vector.",
    "projection_size": "Width of the layer between the pair's features and the labels.",
    "queue_size": "Vectors of negatives that the queue holds.",
    "seed": "Of weights, order, dropout and draws.",
    "shortest_slice": "Sentences that a slice for the momentum encoder has at least.",
    "target_sentences": "Sentences of a target.",
    "test_split": "The split that is scored at the end.",
    "train_embeddings": "Train the word vectors too.",
    "validation_split": "The split that is scored while training.",
    "vocab_size": "Words of the vocabulary, the most frequent ones.",
    "weight_decay": "The share of each weight that a step takes off, times the learning rate.",
}
"""Settings that mean the same in several recipes; the docstring under a field goes before."""


def described(settings: type, values: Mapping[str, Any]) -> str:
    """All settings of a recipe: name, value (of `values`, else the default), choices, meaning."""
    said, hints = SHARED | _docstrings(settings), get_type_hints(settings)
    lines = []
    for field in fields(settings):
        default = "" if field.default is MISSING else field.default
        choices = _choices(hints[field.name])
        lines.append(f"  --{field.name} {values.get(field.name, default)!r}{choices}")
        lines += textwrap.wrap(
            said.get(field.name, ""), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6
        )
    return "\n".join(lines) + "\n"


def _docstrings(settings: type) -> dict[str, str]:
    """The docstrings under the fields of a class and its bases."""
    found = {}
    for each in reversed(settings.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(body, ast.ClassDef)
        for line, after in zip(body.body, body.body[1:], strict=False):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        found[line.target.id] = " ".join(text.split())
    return found


def _choices(hint: Any) -> str:
    """The values of a `Literal`."""
    return f"  ({', '.join(map(str, get_args(hint)))})" if get_origin(hint) is Literal else ""
