"""discorpora in Python: the main commands as functions. `python -m discorpora` is the command line.

    import discorpora

    for pair in discorpora.extract("We stayed inside because it rained."):
        print(pair.marker, "|", pair.s1, "|", pair.s2)
    folder = discorpora.build("mine.toml")
    rows = discorpora.load(folder / "datasets" / "dissent", "books5")

What these functions call lies in four packages: `corpora`, `extract`, `zoo` and `workflows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import DatasetDict

    from corpora.document import Document
    from extract.pairs import Pair
    from zoo.evaluate.results import Result
    from zoo.evaluate.scorers import Scorer
    from zoo.evaluate.table import Comparison
    from zoo.texts import Text

__all__ = ["build", "compare", "evaluate", "extract", "load", "score", "train"]

for _name in ("corpora", "extract", "workflows", "zoo"):
    _spec = find_spec(_name)
    _place = Path((_spec and _spec.origin) or "nowhere").resolve()
    if _place != (Path(__file__).with_name(_name) / "__init__.py").resolve():
        raise ImportError(
            f"`import {_name}` finds {_place}, and not the package {_name!r} of discorpora: "
            "rename that file or folder, or start Python in another folder"
        )


def extract(
    texts: str | Path | Document | Iterable[str | Path | Document],
    *,
    reader_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Pair]:
    """Yield the pairs of sentences or clauses that a discourse marker joins, in text order.

    `texts` is a text, a source (`text:my_books/`), a file, a document, or several of these. A
    string is a source if it begins with a kind of source, is a path, or has no white space.
    `settings` are those of `extract.Extractor` (`markers`, `mode`, `language`, ...),
    `reader_options` those of the source's reader. Raises `ConfigError` for a wrong setting, and
    `InputError`, once the pairs are read, for a source that cannot be read.
    """
    from corpora.document import Document
    from corpora.readers import READERS, open_source
    from corpora.readers.source import join_paragraphs, paragraphs_of
    from extract import Extractor

    language = settings.get("language", "en")
    options = {"language": language, **(reader_options or {})}

    def is_source(text: str) -> bool:
        kind, colon, _ = text.partition(":")
        words = text.split(maxsplit=1)
        return (colon and kind in READERS) or len(words) < 2 or Path(text[:200]).exists()

    def documents() -> Iterator[Document]:
        """Yield documents as they are, those of sources, and one for each text."""
        inputs = [texts] if isinstance(texts, str | Path | Document) else texts
        for number, item in enumerate(inputs, 1):
            if isinstance(item, Document):
                yield item
            elif isinstance(item, Path) or is_source(item):
                yield from open_source(str(item), options)
            else:
                text, paragraphs = join_paragraphs(paragraphs_of(item))
                yield Document(f"text-{number}", text, language=language, paragraphs=paragraphs)

    return Extractor(**settings).pairs(documents())


def build(
    config: str | Path | Mapping[str, Any] = "sample",
    output: str | Path = "build",
    *,
    workers: int = 1,
    retrain: bool = False,
    rehash: bool = False,
) -> Path:
    """Build everything that a build file names; return the folder `OUTPUT/NAME` of the results.

    `config` is a path, the name of a shipped build file, or the tables of one as a dictionary,
    which is kept as `OUTPUT/NAME.toml`. `workers`, `retrain` and `rehash` are the options of
    `discorpora build`. Raises `ConfigError` for a wrong build file, `InputError` for missing
    inputs, and `DiscorporaError` where a stage fails; the log says why.
    """
    from corpora.errors import DiscorporaError
    from corpora.store.atomic import write_text
    from corpora.toml import toml_lines
    from workflows import console
    from workflows.config import load_build
    from workflows.tasks.build import run_build

    if isinstance(config, Mapping):
        tables, config = config, Path(output, f"{config.get('name', 'build')}.toml")
        write_text(config, "\n".join(toml_lines(tables)))
    console.configure()
    folder = Path(output, load_build(str(config)).name)
    if run_build(str(config), str(output), workers, retrain=retrain, rehash=rehash):
        raise DiscorporaError(
            "not everything could be built: the log says why",
            where=str(config),
            hint="the next build continues after the last finished stage",
        )
    return folder


def train(recipe: str | Path, dataset: str | Path, output: str | Path, **settings: Any) -> Path:
    """Train a model with a recipe and return its folder `output`; a finished model is kept.

    `recipe` is a shipped preset (`dissent/bilstm`), a TOML file, or the name of a recipe's class;
    `dataset` is a folder or Hub id, also with `@CONFIG`; `settings` are those of the recipe. A
    training that was stopped continues from its newest checkpoint. Raises `DiscorporaError`.
    """
    from zoo.options import Assignment
    from zoo.presets import read_preset
    from zoo.train import train_assignment

    preset = read_preset(recipe)
    settings |= {"dataset": str(dataset), "output": str(output)}
    chosen = preset.recipe(settings, f"the settings of {preset.name}")
    train_assignment(Assignment(reference=preset.place, settings=chosen.model_dump(mode="json")))
    return Path(output)


def evaluate(
    suite: str,
    model: Any,
    data: Any,
    *,
    split: str = "test",
    seed: int = 0,
    limit: int = 0,
    batch_size: int = 64,
    threads: int = 1,
    name: str = "",
    json: str | Path | None = None,
    **options: Any,
) -> Result:
    """Evaluate a model with a suite; the figures are in `metrics` of the returned result.

    `model` is a folder, a Hub id, or an object: a model of discorpora or transformers, a
    `SentenceTransformer`, a function as `zoo.evaluate.Vectors(f)` or `Scores(f)`. `data` is a
    folder or Hub id, also with `@CONFIG`, or what `load` or `datasets.load_dataset` returns.
    `options` are those of the suite, `limit` is the maximum number of rows (0: all), `name` the
    model's name in tables, `json` a file for the figures. Raises `DiscorporaError`.
    """
    from zoo.evaluate import SUITES
    from zoo.evaluate.__main__ import Options, judge

    chosen = SUITES.find(suite).of(options, f"the options of the suite {suite}")
    settings = {"model": "", "data": "", "split": split, "seed": seed, "json": str(json or "")}
    settings |= {"limit": limit, "batch_size": batch_size, "threads": threads, "name": name}
    return judge(chosen, model, data, Options.of(settings), suite)


def compare(
    *results: Result | str | Path, published: bool = True, seeds: bool = False
) -> Comparison:
    """Compare the results of several models, in a table for each suite.

    Print it with `print(compare(a, b).render())`. A result is what `evaluate` returns, a file that
    it wrote, or a folder of a model or an evaluation. `published` adds the papers' rows; `seeds`
    averages the results of a model over its seeds. Raises `InputError` for results that differ in
    their data or protocol.
    """
    from zoo.evaluate.compare import compare as tables_of

    return tables_of(results, published=published, seeds=seeds)


def score(texts: Text | Iterable[Text], model: str | Path | Scorer = "") -> list[float]:
    """Return the coherence of each text as a number: the higher, the more coherent.

    A text is a string, or a list of its sentences. `model` is a scorer, its folder or its Hub id,
    or a function as `zoo.evaluate.Scores(f)`; by default the scorer that comes with the package.
    Raises `InputError` for a text without words, and for a model that cannot score texts. Only the
    default one needs no extra `zoo`.
    """
    from zoo.coherence import load_scorer

    scorer = load_scorer(model) if isinstance(model, str | Path) else model
    return scorer.score([texts] if isinstance(texts, str) else list(texts))


def load(dataset: str | Path, config: str = "") -> DatasetDict:
    """Load a dataset from a folder or the Hub; return its splits by name.

    `datasets.load_dataset` reads it. `config` is a configuration, also written `FOLDER@CONFIG`.
    Raises `InputError` for a folder of a model, for anything else that is not a dataset, and for a
    configuration that the dataset lacks.
    """
    from datasets import load_dataset

    from corpora.errors import InputError, unreadable
    from corpora.outside import split_config

    place, config = split_config(str(dataset), config)
    hint = "give a dataset's folder or OWNER/NAME on the Hub"
    if Path(place, "config.json").is_file():  # `datasets` would read its JSON files as rows
        hint += "; a model loads with zoo.register() and AutoModel.from_pretrained"
        raise InputError("is a model's folder, not a dataset's", where=place, hint=hint)
    try:
        return load_dataset(place, config or None)
    except Exception as error:  # the library raises whatever lies below: network, Arrow, ...
        raise unreadable(error, place, hint) from error


if __name__ == "__main__":
    from workflows.cli.app import main

    main()
