"""The shipped scorer: its test texts, its model, its folder in the package.

    python -m zoo.coherence.ship texts --novels FILE ... --articles SPEC ... --output TEXTS
    python -m zoo.coherence.ship orders TEXTS --output ORDERS
    python -m zoo.coherence.ship scorer TEXTS --backbone MINILM --output MODEL
    discorpora train coherence/minilm --dataset ORDERS@pairwise --backbone MODEL ... --output FIRST
    discorpora train coherence/minilm --dataset ORDERS@contrastive --backbone FIRST ... \\
        --output RANKER                                               # twice, as in the Makefile
    python -m zoo.coherence.ship ship MODEL --ranker RANKER --texts TEXTS --output FOLDER

`make scorer` runs all steps. The texts are pairs of a coherent text and an incoherent copy: its
sentences permuted (`corpora.tasks.permuted`), or one replaced by another text's
(`corpora.tasks.intrusion`). The model is `zoo.coherence.links` around a sentence encoder with the
most frequent word pieces of the training split, whose permutations train the model of order. The
weights of ascending years and of this model are learnt on the validation split. The folder holds
weights of four bits.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import zoo.extra  # noqa: F401 (first: without torch it ends the command)

# isort: split
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression
from transformers import BertTokenizer

from corpora.document import Document
from corpora.prose import balanced
from corpora.readers import open_source
from corpora.readers.rows import json_rows
from corpora.rng import stable_id
from corpora.schemas import (
    PERMUTED_DOCUMENTS,
    PERMUTED_ORDERS,
    PERMUTED_PAIRWISE,
    STRING,
    STRINGS,
    schema,
)
from corpora.sentences import split_document
from corpora.splits.division import Division
from corpora.store.atomic import read_json, staged, write_json
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from corpora.tasks.builder import Builder, Target
from corpora.tasks.intrusion import Intrusion
from corpora.tasks.permuted import Permuted
from zoo.backbones import load_backbone
from zoo.coherence.links import LinkConfig, LinkScorer, changes_between, years_ascend
from zoo.coherence.modeling import CoherenceScorer
from zoo.coherence.scoring import BREAKS, REFERENCE, Breaks, Reference, explain, stands_out
from zoo.commands import command, leave_shipped, log
from zoo.compact import WEIGHTS, pack, pack_folder
from zoo.evaluate.scorers import Scorer, scores_of
from zoo.evaluate.scores import ranked
from zoo.loading import CONFIG, load_tokenizer
from zoo.modeling import save_model
from zoo.training.data import evenly, open_dataset

SEED = 27
HELD_OUT = {0: "validation", 1: "test"}
"""Splits of ten articles; of novels, the shortest two."""
PAIRS = schema(doc=STRING, source=STRING, kind=STRING, position=pa.int8(), pos=STRINGS, neg=STRINGS)
CARD = Card(
    title="Coherent and incoherent texts",
    summary="Texts of novels and articles, each with a copy whose sentences are permuted, or one "
    "of whose sentences is another text's. They are used to make and to test the shipped scorer.",
    method="`permuted` and `intrusion` of discorpora, over the same held-out books and articles.",
    fields={
        "doc": "id of the text",
        "source": "what the text is from",
        "kind": "`permuted` or `intruded`",
        "position": "the place of the intruder; -1 in a permuted text",
        "pos": "the sentences as written",
        "neg": "the incoherent text",
    },
    citation="",
)
LICENCE = "CC-BY-SA-4.0"
Row = dict[str, Any]
"""A row of `PAIRS`."""
Cue = Callable[[Sequence[Sequence[str]]], Any]
"""A number for each text, larger for coherent ones."""
FITTED, MARKED, JUDGED = 1500, 200, 500
STRENGTH = 0.1
"""Inverse strength of the L2 penalty, chosen by cross-validation on the training split."""
BUILT: dict[str, dict[str, Builder]] = {
    source: {
        "permuted": Permuted(min_sentences=4, repetitions=permutations),
        "intruded": Intrusion(min_sentences=4, per_text=intruders),
    }
    for source, permutations, intruders in (("novels", 1, 1), ("gum", 3, 3), ("wiki", 3, 4))
}
BUILT["sentences"] = {"permuted": Permuted(min_sentences=2, repetitions=1)}
for source in ("novels", "gum"):
    for size in (6, 8):
        BUILT[source][f"permuted-{size}"] = Permuted(
            min_sentences=4, block_from=2 * size, block_size=size, repetitions=1
        )
BUILT["wiki"]["permuted-6"] = Permuted(min_sentences=4, repetitions=8)  # its texts have six
"""By source, the builders of its texts: all that are permuted train the model of order, those of
`KINDS` give the pairs."""
KINDS = ("permuted", "intruded")


def sources(options: argparse.Namespace) -> Iterator[tuple[str, Document]]:
    """Each document with its kind."""
    read = {"layout": "paragraph", "group": "book", "id": "chapter_id", "licence": "CC0-1.0"}
    for path in options.novels:
        for document in open_source(f"jsonl:{path}", read):
            yield "novels", split_document(document)
    for spec in options.articles:
        for document in open_source(spec):
            if document.sentences is None:
                document = split_document(document)
            kind = "gum" if spec.startswith("conllu") else "wiki"
            yield ("sentences" if len(document.sentence_texts()) < 4 else kind), document


def key_of(sentence: str) -> str:
    return re.sub(r"\W", "", sentence).lower()


def texts(options: argparse.Namespace) -> None:
    """Write the pairs of all texts, as the configuration `pairs` of one dataset.

    Texts with a sentence of the test sets `exclude` are not used.
    """
    tested = {
        key_of(text)
        for path in options.exclude
        for _, row in json_rows(path)
        if isinstance(row, dict)
        for text in row["pos"]
    }
    documents: dict[str, list[Document]] = {}
    sizes: Counter[str] = Counter()
    for kind, document in sources(options):
        if tested.isdisjoint(map(key_of, document.sentence_texts())):
            documents.setdefault(kind, []).append(document)
            sizes[document.group] += (kind == "novels") * len(document.text)
    books = [group for group, _ in sorted(sizes.items(), key=lambda item: item[1]) if sizes[group]]
    held_out = dict(zip(books, ("validation", "test"), strict=False))
    split = {
        document.id: held_out.get(document.group, "train")
        if kind == "novels"
        else HELD_OUT.get(stable_id(f"{SEED}/{document.id}") % 10, "train")
        for kind, some in documents.items()
        for document in some
    }
    stage = Stage("scorer", 1, "scorer-texts-1")
    with staged(options.output) as folder, DatasetFolder(folder, "scorer", stage, CARD) as dataset:
        for kind, some in documents.items():
            log.info("%s: %d texts", kind, len(some))
            licences = {document.id: document.licence for document in some}
            for name, builder in BUILT[kind].items():
                part = options.output.parent / f"{options.output.name}-{kind}-{name}"
                with staged(part) as place:
                    target = Target(
                        place, Stage(name, 1, f"scorer-{name}"), SEED, Division.of(split)
                    )
                    builder.build(some, target)
                for where, row in pairs_in(part, name) if name in KINDS else ():
                    row |= {"source": kind, "kind": name}
                    id = row["doc"] if row["doc"] in licences else row["doc"].rpartition("#")[0]
                    dataset.writer("pairs", where, PAIRS).extend([row])
                    dataset.count_licence(licences[id])
        dataset.details["settings"] = {"quotes": "balance"}
        dataset.finish()


def pairs_in(part: Path, name: str) -> Iterator[tuple[str, Row]]:
    """The pairs of a dataset that the builder `name` made, with their split."""
    pairs = open_dataset(str(part), "pairwise").splits
    if name == "intruded":
        for split, table in pairs.items():
            for row in table.select(["doc", "position", "pos", "neg"]).to_pylist():
                for key in ("pos", "neg"):
                    row[key] = [balanced([plain(text)])[0] for text in row[key]]
                yield split, row
        return
    whole = open_dataset(str(part), "documents")
    for split, table in pairs.items():
        sentences = {row["id"]: row["sentences"] for row in whole[split].to_pylist()}
        for row in table.to_pylist():
            pos = [plain(text) for text in sentences[row["document"]]]
            for order in row["orders"]:
                neg = [pos[i] for i in order]
                yield split, {"doc": row["document"], "position": -1, "pos": pos, "neg": neg}


def plain(text: str) -> str:
    """A sentence without the marks of tokenised text (DiscoEval's)."""
    for old, new in (("``", '"'), ("''", '"'), ("-LRB-", "("), ("-RRB-", ")")):
        text = text.replace(old, new)
    return text


def scorer(options: argparse.Namespace) -> None:
    """Write a scorer around an uncased BERT with the texts' most frequent word pieces.

    All letters stay, so that every word has pieces.
    """
    rows = open_dataset(str(options.texts), "pairs")["train"]["pos"].to_pylist()
    tokenizer = load_tokenizer(options.backbone)
    distinct = list(dict.fromkeys(text for row in rows for text in row))
    counts: Counter[int] = Counter()
    for start in range(0, len(distinct), 1024):
        for ids in tokenizer(distinct[start : start + 1024], add_special_tokens=False).input_ids:
            counts.update(ids)
    words = {number: word for word, number in tokenizer.get_vocab().items()}
    always = [
        number
        for number, word in sorted(words.items())
        if number in tokenizer.all_special_ids
        or (len(word.removeprefix("##")) == 1 and word.isascii())
    ]
    often = sorted(counts, key=lambda number: (-counts[number], number))
    kept = sorted(list(dict.fromkeys([*always, *often]))[: options.words])
    vocabulary = {words[number]: place for place, number in enumerate(kept)}
    small = BertTokenizer(vocab=vocabulary, model_max_length=512)
    model: Any = load_backbone(options.backbone, {})
    vectors = model.embeddings.word_embeddings.weight[kept].detach().clone()
    model.resize_token_embeddings(len(kept))
    model.embeddings.word_embeddings.weight.data = vectors
    model.config.vocab_size = len(kept)
    model.config.pad_token_id = small.pad_token_id
    used = sum(counts[number] for number in kept) / counts.total()
    log.info("%d word pieces, %.2f %% of those used", len(kept), 100 * used)
    made = LinkScorer(LinkConfig(backbone_config=model.config, quotes="balance"))
    made.backbone = model
    options.output.mkdir(parents=True)
    save_model(made, small, options.output)
    pack_folder(options.output)


def orders(options: argparse.Namespace) -> None:
    """Write the permuted documents of all sources as one dataset, to train the model of order."""
    stage = Stage("permuted", 1, "scorer-orders-1")
    with staged(options.output) as folder, DatasetFolder(folder, "orders", stage, CARD) as dataset:
        for part in sorted(options.texts.parent.glob(f"{options.texts.name}-*-permuted*")):
            kind = part.name.removeprefix(f"{options.texts.name}-")
            for config, column, columns in (
                ("documents", "id", PERMUTED_DOCUMENTS),
                ("pairwise", "document", PERMUTED_PAIRWISE),
                ("contrastive", "document", PERMUTED_ORDERS),
            ):
                if not (part / config).is_dir():  # two sentences have one other order
                    continue
                for split, table in open_dataset(str(part), config).splits.items():
                    # Documents of two sources, and blocks of two sizes, may have one id.
                    ids = pc.binary_join_element_wise(kind, table[column], "/")
                    named = table.drop_columns([column]).append_column(column, ids)
                    writer = dataset.writer(config, split, columns)
                    for batch in named.select(columns.names).cast(columns).to_batches():
                        writer.append(batch)
                        dataset.count_licence(LICENCE, batch.num_rows)
        dataset.details["settings"] = {"quotes": "balance"}
        dataset.finish()


def ship(options: argparse.Namespace) -> None:
    """Pack a model into a folder, with the weight of years, its figures and its card."""
    made = open_dataset(str(options.texts), "pairs")
    tables = {"test": [made["test"]]}
    for path in options.unseen:
        tables[path.name] = list(open_dataset(str(path), "pairs").splits.values())
    unseen = {name: long_rows(*some) for name, some in tables.items()}
    folder, known = options.output, long_rows(made["validation"])
    shutil.copytree(options.model, folder)
    if options.ranker:
        add_ranker(folder, options.ranker, options.rank)
    model = LinkScorer.from_pretrained(folder)
    cues: list[Cue] = [model.similarities, lambda texts: [years_ascend(text) for text in texts]]
    if options.ranker:
        cues.append(model.ranker.score)
    names = ("years", "order")
    fitted = dict(zip(names, fitted_weights(cues, known), strict=False))
    write_json(folder / CONFIG, {**read_json(folder / CONFIG), **fitted})
    model = LinkScorer.from_pretrained(folder)
    metrics = {name: told_apart(model, rows) for name, rows in unseen.items()}
    scores = model.score(list(dict.fromkeys(tuple(row["pos"]) for row in known)))
    reference = Reference.among("held-out novels and articles of the validation split", scores)
    write_json(folder / REFERENCE, asdict(reference))
    marked = {name: marks(model, rows) for name, rows in unseen.items()}
    breaks = measured_breaks(marks(model, known), [*marked.values()])
    write_json(folder / BREAKS, asdict(breaks))
    metrics["breaks"] = {name: judged_breaks(own, breaks.least) for name, own in marked.items()}
    figures, marked_table = tables_of(metrics)
    leave_shipped(
        folder,
        "zoo.coherence.ship",
        SEED,
        model,
        metrics,
        Path(__file__).with_name("shipped.md"),
        figures=figures,
        breaks=marked_table,
        years=f"{model.config.years:.2f}",
        order=f"{model.config.order:.2f}",
        rank=str(model.config.order_rank),
        texts=f"{reference.texts:,}",
    )


def add_ranker(folder: Path, ranker: Path, rank: int) -> None:
    """Add to a packed model in `folder` what makes its encoder into that of `ranker`."""
    trained = CoherenceScorer.from_pretrained(ranker)
    changes = changes_between(LinkScorer.from_pretrained(folder).backbone, trained.backbone, rank)
    named = {f"changes.{name}": change.contiguous() for name, change in changes.items()}
    head = {f"order_head.{name}": part for name, part in trained.score_head.state_dict().items()}
    weights = folder / WEIGHTS
    save_file({**load_file(weights), **pack(named), **head}, weights, {"format": "pt"})
    most = trained.config.max_tokens
    config = {**read_json(folder / CONFIG), "order_rank": rank, "order_tokens": most}
    write_json(folder / CONFIG, config)


def long_rows(*tables: pa.Table) -> list[Row]:
    """The rows whose texts have four sentences or more: fewer tell little of their order."""
    return [row for table in tables for row in table.to_pylist() if len(row["pos"]) > 3]


def parts_of(rows: Sequence[Row], most: int) -> list[list[Row]]:
    """At most `most` rows of each kind and source, spread evenly."""
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((row["kind"], row["source"]), []).append(row)
    return [[part[i] for i in evenly(len(part), most)] for part in parts.values()]


def both_scores(model: Scorer, rows: Sequence[Row]) -> np.ndarray:
    """The scores of the coherent and of the incoherent texts, `[2, rows]`."""
    texts = [tuple(row[key]) for key in ("pos", "neg") for row in rows]
    return scores_of(model, texts).reshape(2, -1)


def fitted_weights(cues: Sequence[Cue], rows: Sequence[Row]) -> list[float]:
    """The weights of all cues but the first, whose weight is 1; none is negative.

    Logistic regression tells which text of a pair is coherent, by the differences of the cues. At
    most `FITTED` pairs of each kind and source; each such part counts alike. Beside a first cue
    that is no better than chance the others get no weight.
    """
    parts = parts_of(rows, FITTED)
    some = [row for part in parts for row in part]
    each = np.concatenate([np.full(len(part), len(some) / len(part)) for part in parts])
    texts = [tuple(row[key]) for key in ("pos", "neg") for row in some]
    values = np.array([cue(texts) for cue in cues]).reshape(len(cues), 2, -1)
    table = (values[:, 0] - values[:, 1]).T
    spread = table.std(0).clip(1e-6)
    # Each pair counts in both directions, which leaves no intercept.
    both, right = np.concatenate([table, -table]) / spread, np.repeat([1, 0], len(table))
    weights = np.tile(each / len(parts), 2) / 2
    learner = LogisticRegression(C=STRENGTH, fit_intercept=False)
    first, *others = learner.fit(both, right, sample_weight=weights).coef_[0] / spread
    log.info("weights: %d pairs", len(some))
    return [round(max(0.0, float(other / first)), 4) if first > 0 else 0.0 for other in others]


def told_apart(model: Scorer, rows: Sequence[Row]) -> dict[str, Any]:
    """The share of pairs whose coherent text scores higher: of all, and by kind and source."""
    rows = [row for part in parts_of(rows, JUDGED) for row in part]
    coherent, other = both_scores(model, rows)
    parts: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        for name in ("accuracy", row["kind"], f"{row['kind']}, {row['source']}"):
            parts.setdefault(name, []).append(number)
    groups = [row["doc"].partition("#")[0] for row in rows]
    found = {}
    for name, own in sorted(parts.items()):
        figures = ranked(coherent[own], other[own], [groups[i] for i in own], SEED, name)
        found[name] = {**figures, "pairs": len(own)}
    return found


class Marks(NamedTuple):
    """The marks of some intruded texts and of their coherent forms."""

    margins: np.ndarray
    """Of the intruded texts; 0 where leaving out any sentence lowers the score."""
    right: np.ndarray
    """Whether the marked sentence is the intruder."""
    coherent: np.ndarray
    """The margins of the coherent forms."""


def marks(model: Any, rows: Sequence[Row]) -> Marks:
    """The marks of at most `MARKED` texts, spread over the rows."""

    def mark(sentences: list[str]) -> tuple[int, float]:
        gains = np.array([effect.left_out for effect in explain(model, sentences)][1:], float)
        place, margin = stands_out(gains)
        return place + 1, margin if gains[place] > 0 else 0.0

    intruded = [row for row in rows if row["kind"] == "intruded"]
    some = [intruded[i] for i in evenly(len(intruded), MARKED)]
    found = [mark(row["neg"]) for row in some]
    right = [place == row["position"] for (place, _), row in zip(found, some, strict=True)]
    margins = np.array([margin for _, margin in found])
    return Marks(margins, np.array(right), np.array([mark(row["pos"])[1] for row in some]))


def measured_breaks(known: Marks, unseen: Sequence[Marks]) -> Breaks:
    """How good the marks are: the minimum margin is that of a fifth of the `known` coherent texts,
    all shares are those of the `unseen` texts."""
    least = max(float(np.quantile(known.coherent, 0.8)), 1e-6)
    margins, right, coherent = map(np.concatenate, zip(*unseen, strict=True))
    steps = np.unique([least, *np.quantile(margins, np.linspace(0, 0.95, 20))])
    steps = steps[steps >= least]
    return Breaks(
        of="novels and articles that the scorer has not seen",
        texts=len(margins),
        least=least,
        marked_coherent=float((coherent >= least).mean()),
        margins=tuple(round(float(step), 4) for step in steps),
        right=tuple(round(float(right[margins >= step].mean()), 4) for step in steps),
    )


def judged_breaks(found: Marks, least: float) -> dict[str, Any]:
    """The share of texts with a mark, and the share of correct marks."""
    shares = {
        "marked": found.margins >= least,
        "right_of_marked": found.right[found.margins >= least],
        "right_of_all": found.right,
        "marked_coherent": found.coherent >= least,
    }
    return {"texts": len(found.right), **{name: float(own.mean()) for name, own in shares.items()}}


def tables_of(metrics: dict[str, Any]) -> tuple[str, str]:
    """The rows of the card's tables: of the figures, and of the marks."""

    def row(name: str, part: str, of: dict[str, Any]) -> str:
        value = f"{100 * of['value']:.1f}"
        if of["ci"]:  # none where the documents are too few
            value += " [{:.1f}, {:.1f}]".format(*(100 * bound for bound in of["ci"]))
        return f"| {name} | {part} | {of['pairs']:,} | {value} |"

    figures = [
        row(name, part, of)
        for name, parts in metrics.items()
        if name != "breaks"
        for part, of in parts.items()
    ]
    breaks = [
        f"| {name} | {of['texts']:,} | {100 * of['marked']:.0f} "
        f"| {100 * of['right_of_marked']:.0f} | {100 * of['marked_coherent']:.0f} |"
        for name, of in metrics["breaks"].items()
    ]
    return "\n".join(figures), "\n".join(breaks)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    of = {run: commands.add_parser(run.__name__) for run in (texts, orders, scorer, ship)}
    of[texts].add_argument("--novels", type=Path, nargs="+", required=True)
    of[texts].add_argument("--articles", nargs="+", required=True)
    of[texts].add_argument("--exclude", type=Path, nargs="*", default=[])
    of[orders].add_argument("texts", type=Path)
    of[scorer].add_argument("texts", type=Path)
    of[scorer].add_argument("--backbone", required=True)
    of[scorer].add_argument("--words", type=int, default=12_000)
    of[ship].add_argument("model", type=Path)
    of[ship].add_argument("--texts", type=Path, required=True)
    of[ship].add_argument("--ranker", type=Path, help="a `CoherenceScorer` trained from the model")
    of[ship].add_argument("--rank", type=int, default=64, help="rank of the ranker's changes")
    of[ship].add_argument(
        "--unseen", type=Path, nargs="*", default=[], help="more texts to judge by"
    )
    for run, each in of.items():
        each.add_argument("--output", type=Path, required=True)
        each.set_defaults(run=run)
    return command(lambda options: options.run(options), parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
