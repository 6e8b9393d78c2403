"""The shipped scorer: its test texts, its model, its folder in the package.

    python -m zoo.coherence.ship texts --novels FILE ... --articles SPEC ... --output TEXTS
    python -m zoo.coherence.ship orders TEXTS --output ORDERS
    python -m zoo.coherence.ship scorer TEXTS --backbone MINILM --output MODEL
    discorpora train coherence/minilm --dataset ORDERS@pairwise --backbone MODEL ... --output FIRST
    discorpora train coherence/minilm --dataset ORDERS@contrastive --backbone FIRST ... \\
        --output RANKER                                               # twice, as in the Makefile
    python -m zoo.coherence.ship ship MODEL --ranker RANKER --texts TEXTS --output FOLDER
    python -m zoo.coherence.ship measure FOLDER --texts TEXTS         # again, in its own folder

`make scorer` runs all steps. The texts are pairs of a coherent text and an incoherent copy: its
sentences permuted (`corpora.tasks.permuted`), or one replaced by another text's
(`corpora.tasks.intrusion`). The model is `zoo.coherence.links` around a sentence encoder with the
most frequent word pieces of the training split, whose permutations train the model of order. The
weights of the parts of a score are learnt on the validation split. The folder holds weights of four
bits.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import zoo.extra  # noqa: F401 (first: without torch it ends the command)

# isort: split
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression

from corpora.document import Document
from corpora.quotes import QUOTE_MARKS, balance_quotes
from corpora.readers import open_source
from corpora.readers.rows import json_rows
from corpora.rng import stable_id, stream
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
from zoo.coherence.links import LinkConfig, LinkScorer, changes_between
from zoo.coherence.modeling import CoherenceScorer
from zoo.coherence.scoring import BREAKS, REFERENCE, Breaks, Reference, explain, largest_gain
from zoo.commands import command, log, write_shipped_files
from zoo.compact import pack
from zoo.evaluate.scores import ranking_accuracy, wins
from zoo.loading import CONFIG, WEIGHTS, load_tokenizer
from zoo.modeling import save_model
from zoo.training.data import evenly, open_dataset
from zoo.training.job import RESULTS
from zoo.vocabularies import keep_frequent_pieces

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
TextPair = dict[str, Any]
"""A row of `PAIRS`."""
Cues = Callable[[Sequence[Sequence[str]]], np.ndarray]
"""A function of texts (lists of sentences): numbers `[texts, cues]`, larger for coherent ones."""
FITTED, MARKED, JUDGED, CHANGED = 1500, 200, 500, 200
"""Maximum rows of each kind and source to fit weights with, to mark, to test intruders with, and to
make the small changes of `changed` in."""
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
"""The builders of texts, by source and name. The model of order is trained on all whose name begins
with "permuted"; those of `KINDS` give the pairs."""
KINDS = ("permuted", "intruded")


def read_documents(options: argparse.Namespace) -> Iterator[tuple[str, Document]]:
    """Yield the documents of the novels and articles in `options`, each after a key of `BUILT`."""
    settings = {"layout": "paragraph", "group": "book", "id": "chapter_id", "licence": "CC0-1.0"}
    for path in options.novels:
        for document in open_source(f"jsonl:{path}", settings):
            yield "novels", split_document(document)
    for spec in options.articles:
        for document in open_source(spec):
            if document.sentences is None:
                document = split_document(document)
            source = "gum" if spec.startswith("conllu") else "wiki"
            yield ("sentences" if len(document.sentence_texts()) < 4 else source), document


def sentence_key(sentence: str) -> str:
    """Return the letters and digits of a sentence in lower case, to compare it with others."""
    return re.sub(r"\W", "", sentence).lower()


def texts(options: argparse.Namespace) -> None:
    """Write pairs of coherent and incoherent texts, as the configuration `pairs` of a dataset.

    The files of `options.exclude` are test sets: texts with a sentence of a test set are not used.
    """
    # Read the documents without a sentence of a test set.
    excluded = {
        sentence_key(text)
        for path in options.exclude
        for _, row in json_rows(path)
        if isinstance(row, dict)
        for text in row["pos"]
    }
    documents_of: dict[str, list[Document]] = {}
    novel_sizes: Counter[str] = Counter()
    for source, document in read_documents(options):
        if excluded.isdisjoint(map(sentence_key, document.sentence_texts())):
            documents_of.setdefault(source, []).append(document)
            if source == "novels":
                novel_sizes[document.group] += len(document.text)
    # Split them: the two shortest novels are for validation and test; articles by their ids.
    shortest_first = sorted(novel_sizes, key=novel_sizes.__getitem__)
    novel_splits = dict(zip(shortest_first, ("validation", "test"), strict=False))
    split = {
        document.id: novel_splits.get(document.group, "train")
        if source == "novels"
        else HELD_OUT.get(stable_id(f"{SEED}/{document.id}") % 10, "train")
        for source, documents in documents_of.items()
        for document in documents
    }
    # Build the pairs of each source with several builders, and write them into one dataset.
    stage = Stage("scorer", 1, "scorer-texts-1")
    with staged(options.output) as folder, DatasetFolder(folder, "scorer", stage, CARD) as dataset:
        for source, documents in documents_of.items():
            log.info("%s: %d texts", source, len(documents))
            licences = {document.id: document.licence for document in documents}
            for name, builder in BUILT[source].items():
                part = options.output.parent / f"{options.output.name}-{source}-{name}"
                with staged(part) as partial:
                    target = Target(
                        partial, Stage(name, 1, f"scorer-{name}"), SEED, Division.of(split)
                    )
                    builder.build(documents, target)
                for pair_split, pair in read_pairs(part, name) if name in KINDS else ():
                    pair |= {"source": source, "kind": name}
                    pair_id = pair["doc"]  # the document's id, or `ID#NUMBER`
                    id = pair_id if pair_id in licences else pair_id.rpartition("#")[0]
                    dataset.writer("pairs", pair_split, PAIRS).extend([pair])
                    dataset.count_licence(licences[id])
        dataset.details["settings"] = {"quotes": "balance"}
        dataset.finish()


def read_pairs(part: Path, name: str) -> Iterator[tuple[str, TextPair]]:
    """Yield split and pair for each row of the dataset folder that the builder `name` wrote."""
    pairs = open_dataset(str(part), "pairwise").splits
    if name == "intruded":
        for split, table in pairs.items():
            for row in table.select(["doc", "position", "pos", "neg"]).to_pylist():
                for key in ("pos", "neg"):
                    row[key] = [balance_quotes([plain_marks(text)])[0] for text in row[key]]
                yield split, row
        return
    documents = open_dataset(str(part), "documents")
    for split, table in pairs.items():
        sentences = {row["id"]: row["sentences"] for row in documents[split].to_pylist()}
        for row in table.to_pylist():
            pos = [plain_marks(text) for text in sentences[row["document"]]]
            for order in row["orders"]:
                neg = [pos[i] for i in order]
                yield split, {"doc": row["document"], "position": -1, "pos": pos, "neg": neg}


def plain_marks(text: str) -> str:
    """Return a sentence with plain quotes and brackets in place of a treebank's, as `-LRB-`."""
    for treebank, plain in (("``", '"'), ("''", '"'), ("-LRB-", "("), ("-RRB-", ")")):
        text = text.replace(treebank, plain)
    return text


def scorer(options: argparse.Namespace) -> None:
    """Write a scorer around an uncased BERT whose vocabulary is the texts' most frequent pieces."""
    rows = open_dataset(str(options.texts), "pairs")["train"]["pos"].to_pylist()
    distinct = list(dict.fromkeys(text for row in rows for text in row))
    model: Any = load_backbone(options.backbone, {})
    small = keep_frequent_pieces(model, load_tokenizer(options.backbone), distinct, options.words)
    # The scorer around it
    link_scorer = LinkScorer(LinkConfig(backbone_config=model.config, quotes="balance"))
    link_scorer.backbone = model
    options.output.mkdir(parents=True)
    save_model(link_scorer, small, options.output, packed=True)


def orders(options: argparse.Namespace) -> None:
    """Write all permuted documents beside `options.texts` as one dataset. The model of order is
    trained on it."""
    stage = Stage("permuted", 1, "scorer-orders-1")
    with staged(options.output) as folder, DatasetFolder(folder, "orders", stage, CARD) as dataset:
        for part in sorted(options.texts.parent.glob(f"{options.texts.name}-*-permuted*")):
            prefix = part.name.removeprefix(f"{options.texts.name}-")
            for config, column, columns in (
                ("documents", "id", PERMUTED_DOCUMENTS),
                ("pairwise", "document", PERMUTED_PAIRWISE),
                ("contrastive", "document", PERMUTED_ORDERS),
            ):
                if not (part / config).is_dir():  # two sentences have one other order
                    continue
                for split, table in open_dataset(str(part), config).splits.items():
                    # Documents of two sources, and blocks of two sizes, may have one id.
                    ids = pc.binary_join_element_wise(prefix, table[column], "/")
                    table = table.drop_columns([column]).append_column(column, ids)
                    writer = dataset.writer(config, split, columns)
                    for batch in table.select(columns.names).cast(columns).to_batches():
                        writer.append(batch)
                        dataset.count_licence(LICENCE, batch.num_rows)
        dataset.details["settings"] = {"quotes": "balance"}
        dataset.finish()


def ship(options: argparse.Namespace) -> None:
    """Write the scorer's folder: the model with its fitted weights, its figures and its card."""
    # The model, with the weights of its parts fitted on the validation split
    folder = options.output
    validation = long_pairs(open_dataset(str(options.texts), "pairs")["validation"])
    shutil.copytree(options.model, folder)
    if options.ranker:
        add_ranker(folder, options.ranker, options.rank)
    model = LinkScorer.from_pretrained(folder)
    weights = fit_cue_weights(lambda texts: model.parts(texts)[0], validation)
    *further, others, years, order = weights
    fitted = {"reaches": [1.0, *further], "others": others, "years": years, "order": order}
    write_json(folder / CONFIG, {**read_json(folder / CONFIG), **fitted})
    model = LinkScorer.from_pretrained(folder)
    # Scores of coherent texts to compare to, marks of intruding sentences
    scores = model.score(list(dict.fromkeys(tuple(pair["pos"]) for pair in validation)))
    reference = Reference.among("held-out novels and articles of the validation split", scores)
    write_json(folder / REFERENCE, asdict(reference))
    test_marks = {
        name: mark_intruders(model, pairs)
        for name, pairs in unseen_pairs(options.texts, options.unseen).items()
    }
    breaks = measure_breaks(mark_intruders(model, validation), [*test_marks.values()])
    write_json(folder / BREAKS, asdict(breaks))
    test_marks["all"] = Marks(*map(np.concatenate, zip(*test_marks.values(), strict=True)))
    shares = {name: mark_shares(marks, breaks.least) for name, marks in test_marks.items()}
    write_json(folder / RESULTS, {"metrics": {"breaks": shares}})
    options.folder = folder
    measure(options)


def measure(options: argparse.Namespace) -> None:
    """Measure the accuracies of the scorer in a folder, and write its results and its card. The
    shares of right marks, which `ship` measures, stay as they are."""
    folder = options.folder
    model = LinkScorer.from_pretrained(folder)
    tests = unseen_pairs(options.texts, options.unseen)
    judged = {}
    for name, pairs in tests.items():
        permuted, intruded = ([p for p in pairs if p["kind"] == kind] for kind in KINDS)
        some = chain.from_iterable(sample_by_kind(intruded, JUDGED))
        to_change = chain.from_iterable(sample_by_kind(permuted, CHANGED))
        judged[name] = [*permuted, *some, *changed([*to_change])]
    judged["all"] = [pair for pairs in judged.values() for pair in pairs]
    texts = list(dict.fromkeys(tuple(p[key]) for p in judged["all"] for key in ("pos", "neg")))
    parts, _ = model.parts(texts)
    scores_of = dict(zip(texts, zip(parts @ model.weights, parts[:, 0], strict=True), strict=True))
    metrics = {name: pair_accuracy(pairs, scores_of) for name, pairs in judged.items()}
    metrics["breaks"] = read_json(folder / RESULTS)["metrics"]["breaks"]
    figures, marked_table = card_tables(metrics)
    write_shipped_files(
        folder,
        "zoo.coherence.ship",
        SEED,
        model,
        metrics,
        Path(__file__).with_name("shipped.md"),
        figures=figures,
        breaks=marked_table,
        pieces=f"{model.backbone.config.vocab_size:,}",
        two=f"{model.config.reaches[1]:.2f}",
        others=f"{model.config.others:.2f}",
        years=f"{model.config.years:.3f}",
        order=f"{model.config.order:.3f}",
        rank=str(model.config.order_rank),
        texts=f"{read_json(folder / REFERENCE)['texts']:,}",
    )


def unseen_pairs(texts: Path, unseen: Sequence[Path]) -> dict[str, list[TextPair]]:
    """Return pairs to test on: the test split of `texts`, and all splits of each of `unseen`."""
    tables = {"test": [open_dataset(str(texts), "pairs")["test"]]}
    for path in unseen:
        tables[path.name] = list(open_dataset(str(path), "pairs").splits.values())
    return {name: long_pairs(*parts) for name, parts in tables.items()}


def add_ranker(folder: Path, ranker: Path, rank: int) -> None:
    """Add the model of order to the packed model in `folder`, as changes of its encoder."""
    trained = CoherenceScorer.from_pretrained(ranker)
    changes = changes_between(LinkScorer.from_pretrained(folder).backbone, trained.backbone, rank)
    named = {f"changes.{name}": change.contiguous() for name, change in changes.items()}
    head = {f"order_head.{name}": part for name, part in trained.score_head.state_dict().items()}
    weights = folder / WEIGHTS
    save_file({**load_file(weights), **pack(named), **head}, weights, {"format": "pt"})
    order = {"order_rank": rank, "order_tokens": trained.config.max_tokens}
    write_json(folder / CONFIG, {**read_json(folder / CONFIG), **order})


def long_pairs(*tables: pa.Table) -> list[TextPair]:
    """Return the pairs in `tables` whose texts have four sentences or more. Shorter texts have too
    little order."""
    return [pair for table in tables for pair in table.to_pylist() if len(pair["pos"]) > 3]


def sample_by_kind(pairs: Sequence[TextPair], limit: int) -> list[list[TextPair]]:
    """Return a list for each kind and source: at most `limit` of its pairs, at equal intervals."""
    groups: dict[tuple[str, str], list[TextPair]] = {}
    for pair in pairs:
        groups.setdefault((pair["kind"], pair["source"]), []).append(pair)
    return [[group[i] for i in evenly(len(group), limit)] for group in groups.values()]


def fit_cue_weights(cues: Cues, pairs: Sequence[TextPair]) -> list[float]:
    """Fit the weights of `cues` on pairs, and return all but the first, which is 1.

    Logistic regression predicts from the differences of the cues which text of a pair is coherent.
    It takes at most `FITTED` pairs of each kind and source, and each of these groups has the same
    weight. If the first cue is no better than chance, all other cues get weight 0. No weight is
    negative.
    """
    groups = sample_by_kind(pairs, FITTED)
    sample = [pair for group in groups for pair in group]
    pair_weights = np.concatenate(
        [np.full(len(group), len(sample) / len(group)) for group in groups]
    )
    # Differences of the cues between the texts of each pair, `[pairs, cues]`
    texts = [tuple(pair[key]) for key in ("pos", "neg") for pair in sample]
    coherent, incoherent = np.split(cues(texts), 2)
    differences = coherent - incoherent
    deviations = differences.std(0).clip(1e-6)
    # Each pair counts in both directions, so that no intercept is needed.
    features = np.concatenate([differences, -differences]) / deviations
    is_coherent = np.repeat([1, 0], len(differences))
    weights = np.tile(pair_weights / len(groups), 2) / 2
    learner = LogisticRegression(C=STRENGTH, fit_intercept=False)
    fitted = learner.fit(features, is_coherent, sample_weight=weights)
    # Weights relative to that of the first cue
    first, *others = fitted.coef_[0] / deviations
    log.info("weights: %d pairs", len(sample))
    return [round(max(0.0, float(other / first)), 4) if first > 0 else 0.0 for other in others]


def changed(pairs: Sequence[TextPair]) -> list[TextPair]:
    """Return pairs of each coherent text of `pairs` and a copy with one small change: neighbours
    swapped, blocks of two or of three sentences shuffled, or a sentence left out, which is not the
    first or last."""
    texts = {tuple(pair["pos"]): pair for pair in pairs}
    changes = []
    for text, pair in texts.items():
        random, size = stream(SEED, "zoo.coherence.ship.changed", "\n".join(text)), len(text)
        first, left_out = int(random.integers(size - 1)), int(random.integers(1, size - 1))
        swapped = [*text[:first], text[first + 1], text[first], *text[first + 2 :]]
        changes.append({**pair, "kind": "neighbours swapped", "neg": swapped})
        for length, name in ((2, "two"), (3, "three")):
            blocks = [text[start : start + length] for start in range(0, size, length)]
            while (order := random.permutation(len(blocks)).tolist()) == sorted(order):
                pass
            shuffled = [sentence for block in order for sentence in blocks[block]]
            changes.append({**pair, "kind": f"blocks of {name} shuffled", "neg": shuffled})
        rest = [*text[:left_out], *text[left_out + 1 :]]
        changes.append({**pair, "kind": "a sentence left out", "neg": rest})
    return changes


def pair_accuracy(
    pairs: Sequence[TextPair], scores: Mapping[tuple[str, ...], tuple[float, float]]
) -> dict[str, Any]:
    """Return the share of pairs whose coherent text scores higher, and that by the cosine alone:
    in all, by kind, by source; of the permuted pairs also in dialogue, where at least half of the
    sentences hold quoted speech, and in prose, where fewer than a tenth do. `scores` has for each
    text the score and the mean cosine of neighbours."""
    coherent, incoherent = (
        np.array([scores[tuple(pair[key])] for pair in pairs]) for key in ("pos", "neg")
    )
    # The pairs of each figure, by number
    groups: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        kind, source = pair["kind"], pair["source"]
        names = [kind]
        if kind in KINDS:
            names += ["accuracy", f"{kind}, {source}"]
        quoted = np.mean([bool(QUOTE_MARKS.search(text)) for text in pair["pos"]])
        if kind == "permuted" and (quoted >= 0.5 or quoted < 0.1):
            names.append("permuted, dialogue" if quoted >= 0.5 else "permuted, prose")
        for name in names:
            groups.setdefault(name, []).append(number)
    documents = [pair["doc"].partition("#")[0] for pair in pairs]
    figures: dict[str, Any] = {}
    for name, rows in sorted(groups.items()):
        units = [documents[i] for i in rows]
        first, second = coherent[rows].T, incoherent[rows].T
        figures[name] = ranking_accuracy(first[0], second[0], units, SEED, name)
        cosine = float(wins(first[1], second[1]).mean())
        figures[name] |= {"pairs": len(rows), "cosine": cosine}
    return figures


class Marks(NamedTuple):
    """The sentences that a model marks in intruded texts and in their coherent forms, `[texts]`."""

    margins: np.ndarray
    """The margin of each intruded text; 0 if its score falls whichever sentence is left out."""
    right: np.ndarray
    """Whether the marked sentence is the intruder."""
    coherent: np.ndarray
    """The margin of each coherent form."""


def mark_intruders(model: Any, pairs: Sequence[TextPair]) -> Marks:
    """Let a model mark a sentence in at most `MARKED` intruded texts, spread over the pairs: the
    one, never the first, whose removal increases the score of the text most."""

    def mark(sentences: list[str]) -> tuple[int, float]:
        """Return the number of the marked sentence, and its margin (0 if no score increases)."""
        gains = np.array([effect.left_out for effect in explain(model, sentences)][1:], float)
        place, margin = largest_gain(gains)
        return place + 1, margin if gains[place] > 0 else 0.0

    intruded = [pair for pair in pairs if pair["kind"] == "intruded"]
    sample = [intruded[i] for i in evenly(len(intruded), MARKED)]
    marked = [mark(pair["neg"]) for pair in sample]
    right = [place == pair["position"] for (place, _), pair in zip(marked, sample, strict=True)]
    margins = np.array([margin for _, margin in marked])
    return Marks(margins, np.array(right), np.array([mark(pair["pos"])[1] for pair in sample]))


def measure_breaks(validation: Marks, tests: Sequence[Marks]) -> Breaks:
    """Return how often a model's marks in the test texts are right, for each of several margins.

    The least margin of a mark is the margin that a fifth of the coherent validation texts reach.
    """
    least = max(float(np.quantile(validation.coherent, 0.8)), 1e-6)
    margins, right, coherent = map(np.concatenate, zip(*tests, strict=True))
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


def mark_shares(marks: Marks, least: float) -> dict[str, Any]:
    """Return the shares of texts with a mark (a margin of at least `least`) and of right marks."""
    columns = {
        "marked": marks.margins >= least,
        "right_of_marked": marks.right[marks.margins >= least],
        "right_of_all": marks.right,
        "marked_coherent": marks.coherent >= least,
    }
    shares = {name: float(column.mean()) for name, column in columns.items()}
    return {"texts": len(marks.right), **shares}


def card_tables(metrics: dict[str, Any]) -> tuple[str, str]:
    """Return the rows of the card's two Markdown tables: accuracies, and marks."""

    def row(name: str, part: str, accuracy: dict[str, Any]) -> str:
        value = f"{100 * accuracy['value']:.1f}"
        if accuracy["ci"]:  # none if there are too few documents
            value += " [{:.1f}, {:.1f}]".format(*(100 * bound for bound in accuracy["ci"]))
        cosine = f"{100 * accuracy['cosine']:.1f}"
        return f"| {name} | {part} | {accuracy['pairs']:,} | {value} | {cosine} |"

    accuracies = [
        row(name, part, accuracy)
        for name, parts in metrics.items()
        if name != "breaks"
        for part, accuracy in parts.items()
    ]
    breaks = [
        f"| {name} | {shares['texts']:,} | {100 * shares['marked']:.0f} "
        f"| {100 * shares['right_of_marked']:.0f} | {100 * shares['marked_coherent']:.0f} |"
        for name, shares in metrics["breaks"].items()
    ]
    return "\n".join(accuracies), "\n".join(breaks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    runs = (texts, orders, scorer, ship, measure)
    parsers = {run: commands.add_parser(run.__name__) for run in runs}
    parsers[texts].add_argument("--novels", type=Path, nargs="+", required=True)
    parsers[texts].add_argument("--articles", nargs="+", required=True)
    parsers[texts].add_argument("--exclude", type=Path, nargs="*", default=[])
    parsers[orders].add_argument("texts", type=Path)
    parsers[scorer].add_argument("texts", type=Path)
    parsers[scorer].add_argument("--backbone", required=True)
    parsers[scorer].add_argument("--words", type=int, default=26_000)
    parsers[ship].add_argument("model", type=Path)
    parsers[measure].add_argument("folder", type=Path)
    parsers[ship].add_argument(
        "--ranker", type=Path, help="a `CoherenceScorer` trained from the model"
    )
    parsers[ship].add_argument("--rank", type=int, default=64, help="rank of the ranker's changes")
    for run in (ship, measure):
        parsers[run].add_argument("--texts", type=Path, required=True)
        parsers[run].add_argument(
            "--unseen", type=Path, nargs="*", default=[], help="more texts to judge by"
        )
    for run, subparser in parsers.items():
        if run is not measure:
            subparser.add_argument("--output", type=Path, required=True)
        subparser.set_defaults(run=run)
    return command(lambda options: options.run(options), parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
