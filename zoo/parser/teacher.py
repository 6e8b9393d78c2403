"""Train the teacher of the compact parser: a biaffine parser on a pretrained encoder.

    python -m zoo.parser.teacher --treebank DIR [--treebank DIR ...] --dev FILE \\
        --backbone PATH|ID --output FILE

It is too slow to ship; `zoo.parser.silver` parses running text with it. With MiniLM the training
takes 25 minutes of two cores.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import zoo.extra  # noqa: F401 (first: without torch it ends the command)

# isort: split
import numpy as np
import torch
from torch import Tensor, nn

from corpora.errors import DiscorporaError
from zoo.commands import command, log
from zoo.parser.biaffine import Batch, Encoding, Teacher, by_length, make_teacher, parse, save
from zoo.parser.treebank import Sentence, sentences_of, treebank_files
from zoo.training.data import evenly


def loss_of(model: Teacher, batch: Batch, sentences: Sequence[Sentence]) -> Tensor:
    """Return the loss of a batch of encoded gold `sentences`, a sum of three cross entropies. They
    are those of arcs, of labels given the gold heads, and half of that of tags."""
    label_number = {name: i for i, name in enumerate(model.deprels)}
    tag_number = {name: i for i, name in enumerate(model.xpos)}
    heads, labels, xpos = (torch.full(batch.words.shape, -100) for _ in range(3))
    for i, sentence in enumerate(sentences):
        count = len(sentence)
        heads[i, :count] = torch.tensor(sentence.heads) + 1
        labels[i, :count] = torch.tensor([label_number[name] for name in sentence.deprels])
        xpos[i, :count] = torch.tensor([tag_number[name] for name in sentence.xpos])
    scores = model(batch)
    label_scores = model.label_scores(scores, heads.clamp(min=0))
    entropy = nn.functional.cross_entropy
    return (
        entropy(scores.arcs.flatten(0, 1), heads.flatten())
        + entropy(label_scores.flatten(0, 1), labels.flatten())
        + 0.5 * entropy(scores.tags.flatten(0, 1), xpos.flatten())
    )


def attachment(
    model: Teacher, encoding: Encoding, sentences: Sequence[Sentence]
) -> tuple[float, float]:
    """Return a teacher's LAS and UAS in percent on gold tokens and sentences, with punctuation."""
    right = labelled = 0
    trees = parse(model, encoding, [sentence.forms for sentence in sentences])
    for sentence, tree in zip(sentences, trees, strict=True):
        if tree is None:
            continue
        for i, head in enumerate(sentence.heads):
            right += head == tree.heads[i]
            labelled += head == tree.heads[i] and sentence.deprels[i] == tree.deprels[i]
    total = sum(map(len, sentences))
    return 100.0 * labelled / total, 100.0 * right / total


def run(options: argparse.Namespace) -> None:
    """Train a teacher on treebanks, and write it to `options.output` at the end."""
    # Data and model
    torch.manual_seed(options.seed)
    sentences = sentences_of(treebank_files(options.treebank, "train"))
    sentences = [sentences[i] for i in evenly(len(sentences), options.limit)]
    dev = sentences_of(treebank_files([options.dev], "dev"))
    deprels, xpos = (
        sorted({label for sentence in sentences for label in getattr(sentence, column)})
        for column in ("deprels", "xpos")
    )
    model, encoding = make_teacher(options.backbone, deprels, xpos)
    log.info("%d sentences, %d words", len(sentences), sum(map(len, sentences)))

    # AdamW with two learning rates, which warm up shortly and then fall linearly to 0
    rng = np.random.default_rng(options.seed)
    encoded = encoding.encode([sentence.forms for sentence in sentences])
    lengths = {i: len(sentence.ids) - 2 for i, sentence in encoded.items()}
    steps = options.epochs * len(by_length(lengths, options.batch_places))
    heads = [p for name, p in model.named_parameters() if not name.startswith("encoder.")]
    groups = [
        {"params": model.encoder.parameters(), "lr": options.learning_rate},
        {"params": heads, "lr": options.head_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98))
    warm_up = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        # Epochs differ by a few batches, so there may be more than `steps` steps.
        lambda step: max(0.0, min((step + 1) / warm_up, (steps - step) / max(1, steps - warm_up))),
    )
    step, words, start = 0, 0, time.perf_counter()
    for epoch in range(options.epochs):
        model.train()
        jitter = dict(zip(lengths, rng.random(len(lengths)), strict=True))
        order = sorted(lengths, key=lambda i: (lengths[i] // 2, jitter[i]))
        batches = by_length(lengths, options.batch_places, order)
        total = 0.0
        for number in rng.permutation(len(batches)):
            members = [sentences[i] for i in batches[number]]
            batch = encoding.batch([encoded[i] for i in batches[number]])
            with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
                loss = loss_of(model, batch, members)
            if not math.isfinite(loss.item()):
                raise DiscorporaError(f"loss {loss.item()} at step {step}", hint="lower the rates")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            total += loss.item()
            words += sum(map(len, members))
            if step % 100 == 0:
                rate = words / (time.perf_counter() - start)
                log.info("step %d of %d, loss %.3f, %.0f words/s", step, steps, loss.item(), rate)
        las, uas = attachment(model, encoding, dev)
        log.info("epoch %d: loss %.3f, LAS %.2f, UAS %.2f", epoch, total / len(batches), las, uas)
    save(model, options.backbone, options.output)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the teacher that the command line describes; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--treebank", type=Path, action="append", required=True, help="CoNLL-U file or folder")
    add("--dev", type=Path, required=True, help="CoNLL-U that is scored after each epoch")
    add("--backbone", required=True, help="folder or Hub id of an encoder with word pieces")
    add("--output", type=Path, required=True, help="the new safetensors file")
    add("--epochs", type=int, default=7)
    add("--batch-places", type=int, default=1800, help="pieces a batch, padding included")
    add("--learning-rate", type=float, default=1.5e-4)
    add("--head-rate", type=float, default=2e-3)
    add("--bf16", action=argparse.BooleanOptionalAction, default=True)
    add("--seed", type=int, default=0)
    add("--limit", type=int, default=0, help="sentences at most, for a try")
    return command(run, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
