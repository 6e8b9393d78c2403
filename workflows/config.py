"""Build files: TOML, validated before anything runs.

A build file names its sources and the settings of every stage. Unknown keys, misspelt names and
values of a wrong type are errors that name the key and the nearest valid one.
"""

from __future__ import annotations

import glob
import os
from functools import cache
from pathlib import Path

from corpora.declared import Loc, with_absolute_path
from corpora.errors import ConfigError, expand_home, nearest
from corpora.readers import parse_spec, split_spec
from corpora.readers.files import is_hidden
from corpora.readers.source import root_of
from corpora.toml import TomlFile
from workflows.tables import SAMPLE, BuildFile, Source, located
from workflows.variants import with_variants
from zoo.evaluate.published import paper_table

CONFIGS = Path(__file__).parent / "configs"
HERE, PAPERS = Path("workflows/configs"), Path("papers")
"""The folder of shipped build files as seen from the repository, and those of papers in it."""
DATA_VARIABLE = "DISCORPORA_DATA"


def config_path(name: str) -> Path:
    """The build file that `name` means: a path, or the name of one shipped with the package.

    `sample`, `sample.toml` and `workflows/configs/sample.toml` all find the shipped file, from
    whatever folder, as `papers/dissent` does; a file of that path in the current folder comes
    first.
    """
    path = Path(name)
    if path.is_file():
        return path
    inside = path.relative_to(HERE) if path.is_relative_to(HERE) else path
    shipped = CONFIGS / (inside if path.suffix == ".toml" else f"{inside}.toml")
    if inside.parent in (Path(), PAPERS) and shipped.is_file():
        return shipped
    files = [*sorted(CONFIGS.glob("*.toml")), *sorted(CONFIGS.glob("papers/*.toml"))]
    names = [file.relative_to(CONFIGS).with_suffix("").as_posix() for file in files]
    beside = map(str, path.parent.glob("*.toml"))
    raise ConfigError(
        f"no build file {name!r}; {nearest(name, [*beside, *names])}".rstrip("; "),
        hint=f"give the path of a TOML file, or one of the shipped ones: {', '.join(names)}",
    )


def load_build(name: str) -> BuildFile:
    """Read and validate a build file: its path, or the name of a shipped one."""
    path = config_path(name).resolve()
    return _load(path, path.stat().st_mtime_ns, os.environ.get(DATA_VARIABLE, ""))


@cache
def _load(path: Path, mtime_ns: int, data_variable: str) -> BuildFile:
    """The build file; `mtime_ns` is here for the cache alone, since a changed file is read anew."""
    file = TomlFile.read(path)

    def where(keys: Loc) -> str:
        listed = len(keys) > 1 and isinstance(keys[1], int)
        return located(file, keys[:2], keys[2:]) if listed else file.where(keys)

    build = BuildFile.of(file.table, where, entries=True)
    build._file = file
    for number, source in enumerate(build.sources):
        source._number = number
    # The variable wins over the build file, so that one file serves all.
    if folder := data_variable or build.data:
        base = Path.cwd() if data_variable else path.parent
        data = expand_home(folder)
        data = data if data.is_absolute() else (base / data).resolve()
        build = build.model_copy(update={"data": str(data)})
    build = with_variants(build.model_copy(update={"sources": tuple(_expand(build))}))
    _check_names(build)
    return build


def _expand(build: BuildFile) -> list[Source]:
    """Fill in `{data}`; a glob becomes one source a file."""
    sources = []
    for source in build.sources:
        if "{data}" in source.spec and not build.data:
            raise ConfigError(
                f"source {source.name!r} lies under {{data}}, and no data folder is set",
                where=build.where(*source.loc, "spec"),
                hint=f"set the environment variable {DATA_VARIABLE}, or `data` in the build file",
            )
        with build.at(*source.loc, "spec"):
            kind, place = split_spec(build.place(source.spec))
            _, written = split_spec(source.spec)
        kind = with_absolute_path(kind, build.folder)
        matches: list[Source] = []
        if glob.has_magic(written) and not expand_home(place).exists():
            root = Path(build.place(str(root_of(written))))
            # Brackets in the names of these folders are no pattern.
            folders = {"data": build.data, "sample": str(SAMPLE)}
            for name, folder in folders.items():
                written = written.replace(f"{{{name}}}", glob.escape(folder))
            pattern = str(expand_home(written))
            base = Path("/") if pattern.startswith("/") else Path()
            matches = [
                _one_of(source, kind, path, root)
                for path in sorted(base.glob(pattern.lstrip("/")))
                if not is_hidden(path.relative_to(root))
            ]
        sources += matches or [source.model_copy(update={"spec": f"{kind}:{place}"})]
    return sources


def _one_of(source: Source, kind: str, path: Path, root: Path) -> Source:
    """Make a source from one match of a glob. The path below `root` names it and its documents."""
    inside = path.relative_to(root)
    # Of a file in a folder without brackets the name says it all.
    marked = len(inside.parts) > 1 or path.is_dir() or glob.has_magic(str(path))
    spec = f"{kind}:{root}/./{inside}" if marked else f"{kind}:{path}"
    # The source's name ends at the first dot of the file's name.
    words = "-".join([*inside.parts[:-1], inside.name.split(".")[0]]).lower()
    slug = "".join(c if c.isalnum() else "-" for c in words)
    return source.model_copy(update={"name": f"{source.name}-{slug}", "spec": spec})


def _check_names(build: BuildFile) -> None:
    """Check that each name of a table is one that the build file has."""
    for name in build.datasets:
        build.builder(name)  # also of one that no source feeds
    # Sources: each has its own name, and names datasets that exist.
    specs: dict[str, str] = {}
    for source in build.sources:
        keys = source.loc
        if source.name in specs:
            raise ConfigError(
                f"two sources are named {source.name!r}: {specs[source.name]} and {source.spec}",
                where=build.where(*keys),
                hint="give each [[sources]] table its own name; of a glob's files the letters and "
                "digits of the path count, up to the first dot of the name: rename one",
            )
        specs[source.name] = source.spec
        with build.at(*keys, "spec"):
            reader, _ = parse_spec(source.spec)
        reader.of(source.reader_options(), build.whereabouts(*keys, "options"))
        with build.at(*keys):
            for dataset in source.datasets:
                build.dataset(dataset)
        if source.splitter and source.datasets:
            _check_splitter(build, source)
    # Validations: each has its own name, and names sources that exist.
    checks: set[str] = set()
    for number, check in enumerate(build.validation):
        _check_own_source(build, f"{check.name}-gold", ("validation", number, "name"))
        if check.name in checks:
            raise ConfigError(
                f"two [[validation]] tables are named {check.name!r}",
                where=build.where("validation", number, "name"),
                hint="give each its own name: its results are found by it",
            )
        checks.add(check.name)
        with build.at("validation", number, "sources"):
            for name in check.sources:
                build.source(name)
    # Models: their datasets and bases exist, and no chain of bases is a circle.
    for key, model in build.models.items():
        if model.dataset:
            with build.at("models", key, "dataset"):
                build.dataset(model.dataset)
        chain, base = [key], model.base
        while base:
            with build.at("models", chain[-1], "base"):
                following = build.model(base).base
                if base in chain:
                    circle = " -> ".join([*chain, base])
                    raise ConfigError(f"the bases form a circle: {circle}")
            chain.append(base)
            base = following
    # Evaluations: no model has their name; their datasets and models exist.
    for key, evaluation in build.evaluations.items():
        with build.at("evaluations", key):
            if key in build.models:
                raise ConfigError(f"a model is called {key!r} too; rename it")
        if evaluation.data:
            _check_own_source(build, f"{key}-data", ("evaluations", key))
        with build.at("evaluations", key, "dataset"):
            for name in evaluation.datasets:
                build.dataset(name)
        with build.at("evaluations", key, "models"):
            for name in evaluation.models:
                build.model(name)
    _check_tables(build)


def _check_tables(build: BuildFile) -> None:
    """Check that the tables of papers name what the build has: models, datasets, evaluations."""
    names: set[str] = set()
    for number, shown in enumerate(build.tables):
        keys = ("tables", number)
        if shown.table in names:
            raise ConfigError(
                f"two [[tables]] are {shown.table!r}",
                where=build.where(*keys),
                hint="give all rows in one",
            )
        names.add(shown.table)
        with build.at(*keys, "evaluations"):
            for on in shown.evaluations:
                build.evaluation(on)
        suites = {part.suite for part in paper_table(shown.table).parts}
        for key, rows in (("rows", shown.rows), ("more", shown.more)):
            for item in (item for items in rows.values() for item in items):
                name, at, on = item.partition("@")
                with build.at(*keys, key):
                    if "validation" in suites:
                        build.check(name)
                    elif "dataset" in suites:
                        build.dataset(name)
                    else:
                        build.model(name)
                    if at:
                        build.evaluation(on)


def _check_own_source(build: BuildFile, name: str, keys: Loc) -> None:
    """What a validation or evaluation reads itself must differ in name from every source."""
    if name in build.by_name:
        raise ConfigError(
            f"its own data are recorded as {name!r}, and a source is named so too",
            where=build.where(*keys),
            hint="rename one of the two",
        )


def _check_splitter(build: BuildFile, source: Source) -> None:
    """Raise `ConfigError` if a source has its own splitter, but no stage would use it."""
    validated = any(source.name in check.sources for check in build.validation)
    if not validated and all(build.builder(name).reads == "sources" for name in source.datasets):
        raise ConfigError(
            f"splitter = {source.splitter!r} changes nothing: {', '.join(source.datasets)} read "
            "the source themselves",
            where=build.where(*source.loc, "splitter"),
            hint="take it out; coherence_tests has a setting `splitter` of its own, for summaries",
        )
