"""Task builders: documents, pair tables or sources in, dataset folders out.

A builder is a module with `VERSION`, a frozen dataclass `Settings` and
`build(inputs, settings, target) -> manifest`; `BUILDERS` lists them, and `find_builder(name).build`
calls one. Of one whose dataset has several configurations, `configurations(settings)` says which
it may have. Settings `train`, `validation` and `test` are shares of the documents (floats), or how
many rows are wanted (integers; where a build has divided the documents, at most).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from corpora.errors import ConfigError, nearest
from corpora.splits import SPLITS

if TYPE_CHECKING:
    from corpora.splits.division import Division
    from corpora.store.folder import Stage


@dataclass(frozen=True, slots=True)
class Builder:
    """A dataset's builder: where it lives and what it reads.

    `reads` is `documents` (with a sentence layer), `pairs` (Parquet files of pairs) or `sources`
    (`(spec, options)` each: data that is no running text, read by the builder itself). `kind`: of
    several datasets that its module makes, which one.
    """

    name: str
    module: str
    reads: Literal["documents", "pairs", "sources"] = "documents"
    kind: str = ""

    @property
    def version(self) -> int:
        return int(self._load().VERSION)

    @property
    def settings(self) -> type[Any]:
        kind: type[Any] = self._load().Settings
        return kind

    @property
    def shares(self) -> tuple[str, ...]:
        """The settings that are shares of the documents: a division stands in for them."""
        defaults = {f.name: f.default for f in fields(self.settings)}
        return tuple(name for name in SPLITS if isinstance(defaults.get(name), float))

    def configurations(self, settings: Any) -> tuple[str, ...]:
        """The configurations that the dataset may have; those without a row are left out."""
        function = getattr(self._load(), "configurations", None)
        return tuple(function(settings)) if function else ("default",)

    def build(
        self,
        inputs: Iterable[Any],
        folder: Path,
        settings: Any,
        *,
        seed: int,
        stage: Stage,
        division: Division | None = None,
        **own: Any,
    ) -> dict[str, Any]:
        """Build the dataset from `inputs`, which are what it `reads`; returns the manifest.

        `folder` is the partial folder that `corpora.store.atomic.staged` yields. `division` says
        which document is in which split; without one the builder divides them itself. Those that
        read sources take `max_bad_share` instead. Raises `InputError` if not one row can be made,
        or if two documents have one id.
        """
        from corpora.tasks.target import Target

        kind = {"kind": self.kind} if self.kind else {}
        target = Target(folder, stage, seed, division)
        manifest: dict[str, Any] = self._load().build(inputs, settings, target, **kind, **own)
        return manifest

    def _load(self) -> Any:
        return import_module(f"corpora.tasks.{self.module}")


BUILDERS = {
    builder.name: builder
    for builder in (
        Builder("dissent", "dissent", "pairs"),
        Builder("sp", "discoeval.sp"),
        Builder("bso", "discoeval.bso"),
        Builder("dc", "discoeval.dc"),
        Builder("ssp", "discoeval.ssp"),
        Builder("pdtb_explicit", "discoeval.pdtb", kind="Explicit"),
        Builder("pdtb_implicit", "discoeval.pdtb", kind="Implicit"),
        Builder("pdtb_marked", "pdtb_marked"),
        Builder("rst", "discoeval.rst"),
        Builder("permuted", "permuted"),
        Builder("intrusion", "intrusion"),
        Builder("conpono", "conpono"),
        Builder("criteria", "criteria"),
        Builder("coherence_tests", "coherence_tests", "sources"),
        Builder("superglue", "superglue", "sources"),
    )
}


def find_builder(name: str) -> Builder:
    """The builder of the dataset `name`; ConfigError with the nearest name if there is none."""
    if name not in BUILDERS:
        raise ConfigError(
            f"no dataset {name!r}; {nearest(name, BUILDERS)}".rstrip("; "),
            hint=f"the datasets are: {', '.join(BUILDERS)}",
        )
    return BUILDERS[name]
