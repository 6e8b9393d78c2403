"""Our evaluations of sentence vectors as tasks of the library mteb, and our models as its models.

    import mteb
    from zoo.evaluate import mteb_tasks

    tasks = mteb_tasks.discoeval("DATA") + mteb_tasks.insted("INSTED@pairwise")
    mteb.evaluate(mteb_tasks.encoder("MODEL"), tasks, cache=None)

The tasks take any model of mteb (a `SentenceTransformer` too); the models go to any task of mteb.
Needs the extra `mteb`. A task trains the classifiers of our own suites, so that a model has the
same figures in both. `AbsTaskPairClassification` does not serve: it scores the similarity of two
texts, which is the same in both orders, and every pair here has an order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from torch.utils.data import DataLoader

from corpora.errors import require
from zoo.evaluate.discoeval import DiscoEval
from zoo.evaluate.discoeval.data import TaskData, read
from zoo.evaluate.discoeval.protocol import (
    DEFAULTS,
    classifiers,
    features_of,
    inputs_of,
    split_of,
    vectors_of,
)
from zoo.evaluate.encoders import (
    AUTO,
    SentenceEncoder,
    Vectors,
    encoder_of,
    load_encoder,
    model_key,
)
from zoo.evaluate.in_hand import folder_of
from zoo.evaluate.opening import open_data
from zoo.evaluate.pairwise import Pairwise
from zoo.evaluate.pairwise_sets import PairSet, open_sets
from zoo.evaluate.relations import need_labels, probe
from zoo.evaluate.scorers import Scorer, load_scorer
from zoo.labelled import load

try:
    from mteb import TaskMetadata
    from mteb.abstasks.classification import AbsTaskClassification
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
except ModuleNotFoundError:
    require("mteb", "mteb", "to run the evaluations as its tasks")
    raise

TEXTS = "text"
"""The column that mteb reads."""


def discoeval(
    data: str | Path,
    options: DiscoEval = DEFAULTS,
    *,
    split: str = "test",
    seed: int = 0,
    limit: int = 0,
) -> list[AbsTaskClassification]:
    """Make a task of mteb for each task and domain of DiscoEval in `data` (a folder or Hub id).

    The options `protocol`, `tasks`, `seeds`, `hidden` and `lower` count; the others choose vectors,
    which a model of mteb chooses itself. The protocol `pairs` joins the texts of a pair by a space.
    """

    def mteb_task(data: TaskData) -> AbsTaskClassification:
        """The task of mteb for one task in one domain."""
        inputs = inputs_of(data, options)

        def predictions(encoder: Vectors, scored: str) -> list[np.ndarray]:
            """The classes of the split `scored` that each probe predicts from encoded texts."""
            # "" stands for the encoder's own vectors, not those of one of its layers.
            features = features_of(inputs, vectors_of(encoder, inputs.texts, [""])[""])
            probes = classifiers(data, features, options, seed)
            return [each.predict(features[scored]) for each in probes]

        rows: dict[str, tuple[list[str], list[int]]] = {}
        for name, examples in data.splits.items():
            texts = [
                " ".join(text for slot in slots for text in slot)
                for slots in zip(*examples.slots, strict=True)
            ]
            rows |= {name: (texts, examples.labels.tolist())} if texts else {}
        name = f"DiscoEval {options.protocol} {data.name}"
        about = f"{data.task.name} of DiscoEval (Chen et al. 2019), domain {data.domain}"
        kind = _task_class(_Probed, name, about, split_of(data, split), data.revision)
        return kind(rows, predictions)

    return [mteb_task(each) for each in read(str(data), options.tasks, limit=limit).tasks]


def dissent(data: str, *, split: str = "test", limit: int = 0) -> list[AbsTaskClassification]:
    """Make the task of predicting the marker or relation of two texts from frozen vectors.

    `data` is any dataset of labelled pairs (`dissent`, `pdtb_implicit`). Features and logistic
    regression are those of the suite `pdtb`, protocol `sentences`.
    """
    pairs = load(data, splits={"test": split}, max_eval_rows=limit, empty="warn")
    _ = pairs.data["test"]  # raises an error with the names of the splits if there is none
    need_labels(len(pairs.tables.get("test", ())), split, pairs.data.where)

    def predictions(encoder: Vectors, scored: str) -> list[np.ndarray]:
        """The labels that the probe predicts for the test pairs from encoded texts."""
        return [probe(encoder, pairs, "sentences")[0]]

    about = pairs.data.describe()
    rows = {}
    for name in pairs.tables:
        texts = [" ".join(pair) for pair in zip(*pairs.texts(name), strict=True)]
        rows[split if name == "test" else name] = texts, pairs.gold(name).tolist()
    name = f"{about['name']} {about['config']}"
    text = f"The label of two texts, one of {len(pairs.labels)} (Nie, Bennett and Goodman 2019)"
    return [_task_class(_Probed, name, text, split, about["revision"])(rows, predictions)]


def insted(data: str, *, split: str = "test", limit: int = 0) -> list[AbsTaskRetrieval]:
    """Make a task for each test set of pairs, a coherent and a worse text, that `pairwise` reads.

    The two texts are documents to rank for a query, which is the sentences that both have, in
    order. An encoder prefers the text whose vector is closer to the query's. A scorer (`scorer`)
    prefers the more coherent text; its `accuracy` is that of the suite `pairwise` with long texts
    in windows, but mteb has no ties.
    """
    pair_sets = open_sets(open_data(Pairwise(), data, split), split, limit)
    about, revision = "Which of two texts is coherent", str(pair_sets.description["revision"])
    return [
        _task_class(_Ranked, f"Coherent text {each.name}", about, split, revision)(each)
        for each in pair_sets.sets
    ]


_Predictions = Callable[[Vectors, str], list[np.ndarray]]
"""Called with an encoder and a split: the classes that each classifier predicts, `[rows]` each."""


def _task_class(kind: type, name: str, about: str, split: str, revision: str) -> Any:
    """Make a class for one task: mteb reads the metadata of the class, not of the object."""
    metadata = TaskMetadata(
        name="".join(part[:1].upper() + part[1:] for part in name.replace("-", " ").split()),
        description=about,
        dataset={"path": f"discorpora/{name.replace(' ', '_')}", "revision": revision or "local"},
        type="Reranking" if kind is _Ranked else "Classification",
        category="t2t" if kind is _Ranked else "t2c",
        eval_splits=[split],
        eval_langs=["eng-Latn"],
        main_score="accuracy",
    )
    return type(metadata.name, (kind,), {"metadata": metadata})


class _Probed(AbsTaskClassification):
    """A task of mteb that trains classifiers on the frozen vectors of an example's texts.

    `predictions` encodes the texts and trains the classifiers. `rows` has for each split the joined
    texts of the examples, which mteb only uses for its statistics, and the examples' labels.
    """

    def __init__(
        self, rows: dict[str, tuple[list[str], list[int]]], predictions: _Predictions
    ) -> None:
        self.rows, self.predictions = rows, predictions
        super().__init__()

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Set `dataset` to the texts and labels of each split, as mteb reads them."""
        splits = {
            name: Dataset.from_dict({TEXTS: texts, "label": labels})
            for name, (texts, labels) in self.rows.items()
        }
        self.dataset = {"default": DatasetDict(splits)}
        self.data_loaded = True

    def _evaluate_subset(
        self,
        model: Any,
        data_split: Any,
        *,
        encode_kwargs: Any,
        hf_split: str,
        hf_subset: str,
        **kwargs: Any,
    ) -> Any:
        """Encode a split's texts with mteb's `model`; average the scores of all classifiers."""

        def encode(texts: Sequence[str]) -> Any:
            """Return the vectors of the texts by mteb's model."""
            return model.encode(
                DataLoader(
                    Dataset.from_dict({TEXTS: list(texts)}),
                    batch_size=encode_kwargs.get("batch_size", 32),
                ),
                task_metadata=self.metadata,
                hf_split=hf_split,
                hf_subset=hf_subset,
                **encode_kwargs,
            )

        predicted = self.predictions(Vectors(encode, "mteb"), hf_split)
        gold = data_split[hf_split]["label"]
        return self._calculate_avg_scores(
            [self._calculate_scores(gold, classes) for classes in predicted]
        )


class _Ranked(AbsTaskRetrieval):
    """A task of mteb to rank the two texts of each pair for a query, the sentences both have."""

    def __init__(self, pairs: PairSet) -> None:
        self.pairs = pairs
        super().__init__()

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Set `dataset`: pair 0 has the query q0, the worse text d0a and the coherent text d0b."""
        queries, corpus = [], []
        for number, pair in enumerate(self.pairs.pairs):
            other = set(pair.neg)
            shared = [*pair.prompt, *(sentence for sentence in pair.pos if sentence in other)]
            queries.append({"id": f"q{number}", TEXTS: " ".join(shared)})
            for side, sentences in (("a", pair.neg), ("b", pair.pos)):
                text = " ".join((*pair.prompt, *sentences))
                corpus.append({"id": f"d{number}{side}", TEXTS: text})
        ids = [query["id"] for query in queries]
        tables = {
            "queries": Dataset.from_list(queries),
            "corpus": Dataset.from_list(corpus),
            "relevant_docs": {id: {f"d{id[1:]}b": 1} for id in ids},
            "top_ranked": {id: [f"d{id[1:]}a", f"d{id[1:]}b"] for id in ids},
        }
        self.dataset: Any = {"default": {self.metadata.eval_splits[0]: tables}}
        self.data_loaded = True


# Our models as models of mteb.


def encoder(model: Any, representation: str = AUTO, name: str = "") -> AbsEncoder:
    """Convert a model folder, an encoder or a function of texts to an encoder of mteb."""
    if isinstance(model, str | Path):
        model = load_encoder(str(model), representation)
    frozen = encoder_of(model, name)
    folder = folder_of(frozen)
    return _Encoder(frozen, _meta(folder) if folder else ModelMeta.create_empty())


def scorer(model: str) -> _Scorer:
    """Load a coherence scorer (folder, Hub id or `baseline:RULE`) as a cross-encoder of mteb."""
    return _Scorer(load_scorer(model), _meta(model))


def _meta(model: str) -> ModelMeta:
    """The name and revision of a model (folder or Hub id), by which mteb files its results."""
    name = re.sub(r"[^\w.-]", "-", Path(model).name)
    revision = model_key(model, None)[:16] or None
    return ModelMeta.create_empty({"name": f"discorpora/{name}", "revision": revision})


def _texts(batches: Any) -> list[str]:
    """All texts of a loader's batches."""
    return [text for batch in batches for text in batch[TEXTS]]


class _Encoder(AbsEncoder):
    """An encoder of the zoo (`model`) with mteb's interface; `meta` is mteb's record of a model."""

    def __init__(self, model: SentenceEncoder, meta: ModelMeta) -> None:
        self.model, self.mteb_model_meta = model, meta

    def encode(self, inputs: Any, **kwargs: Any) -> np.ndarray:
        """The vectors of all texts of the loader, `[texts, dim]`."""
        return np.asarray(self.model.encode(_texts(inputs)))


class _Scorer:
    """A scorer of the zoo with mteb's interface of a cross-encoder; queries are ignored."""

    def __init__(self, model: Scorer, meta: ModelMeta) -> None:
        self.model, self.mteb_model_meta = model, meta

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> np.ndarray:
        """Score the texts of `inputs2`, `[texts]`; `inputs1` are the queries."""
        return np.array(self.model.score(_texts(inputs2)))
