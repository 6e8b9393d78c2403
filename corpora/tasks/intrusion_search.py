"""Which texts intrude on which: the search of the intrusion builder, a split at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.readers.source import SeenIds
from corpora.rng import stream
from corpora.store.folder import DatasetFolder
from corpora.tasks.intruders import Intruder, Scene, find_intruder
from corpora.tasks.postings import Postings
from corpora.tasks.sentence_features import SentenceFeatures
from corpora.tasks.similar import FEATURES, MOST

if TYPE_CHECKING:
    from corpora.tasks.builder import Target
    from corpora.tasks.intrusion import Intrusion

Rows = NDArray[np.int64]

FROM_ONE_DOCUMENT = 20
"""So many texts of the host's own document are passed over in the search for another one."""

Pair = dict[str, Any]
"""A row of `INTRUSION_PAIRWISE`, with the `licences` of its two documents."""


class Search:
    """Looks for the intruders of texts; a sentence, wherever it stands, intrudes only once.

    `texts` are mapped to memory; a row is a text's place there and in `features`.
    """

    def __init__(
        self, settings: Intrusion, target: Target, texts: pa.Table, features: SentenceFeatures
    ) -> None:
        self.settings, self.target = settings, target
        self.texts, self.features = texts, features
        self.documents = texts["doc_key"].to_numpy()
        self.used = np.zeros((len(texts), settings.max_sentences), bool)
        self.said = SeenIds()

    def pairs_of(self, rows: range, dataset: DatasetFolder) -> Iterator[Pair]:
        """The pairs of each text of a split that an intruder can be found for."""
        settings = self.settings
        profiles = map(self.features.profile, rows)
        with Postings(self.target.folder, profiles, FEATURES, most=MOST) as index:
            for at, row in enumerate(rows):
                others, similarity = index.nearest(at, settings.similar + FROM_ONE_DOCUMENT)
                near = rows.start + others[similarity <= settings.max_text_similarity]
                pairs = self.pairs(row, near)
                if isinstance(pairs, str):
                    dataset.reject(pairs)
                    continue
                for pair in pairs:
                    for licence in pair.pop("licences"):
                        dataset.count_licence(licence)
                    yield pair

    def pairs(self, row: int, near: Rows) -> list[Pair] | str:
        """The pairs of one text, or the reason why there is none.

        The positions are random: the first of a random order at which any sentence keeps to the
        bounds. Where the best one there shows too much, the text gives a pair less rather than
        one elsewhere, or easy positions would be the rule.
        """
        settings = self.settings
        elsewhere = self.documents[near] != self.documents[row]
        donors = near[elsewhere][: settings.similar].tolist()
        if not donors:
            return "no_similar_text"
        scene, places = self._scene(row, donors)
        id = self.texts["id"][row].as_py()
        random = stream(self.target.seed, self.target.stage.name, id)
        draw = random if settings.choose == "random" else None
        found: list[Pair] = []
        tried = 0
        for position in (1 + random.permutation(len(scene.host) - 1)).tolist():
            if tried == settings.per_text:
                break
            chosen = find_intruder(scene, position, settings, draw)
            if chosen is None:
                continue
            tried += 1
            if (pair := self._first_said(row, position, chosen, scene, places, draw)) is not None:
                found.append(pair)
        if found:
            return found
        return "intruder_shows" if tried else "no_fitting_sentence"

    def _first_said(
        self,
        row: int,
        position: int,
        chosen: Intruder | None,
        scene: Scene,
        places: Rows,
        draw: np.random.Generator | None,
    ) -> Pair | None:
        """The pair of the best intruder that no earlier pair has; None if that one shows."""
        while chosen is not None:
            if draw is None and chosen.cost > self.settings.max_cost:
                return None
            scene.usable[chosen.guest] = False
            donor, number = places[chosen.guest].tolist()
            self.used[donor, number] = True
            pair = self._row(row, position, chosen, donor, number)
            said = pair["neg"][position].casefold()
            # Of sentences without a word (`* * *`) no similarity tells that they are equal.
            if said not in map(str.casefold, pair["pos"]) and self.said.add(said):
                return pair
            chosen = find_intruder(scene, position, self.settings, draw)
        return None

    def _scene(self, row: int, donors: list[int]) -> tuple[Scene, Rows]:
        """The text among its guests, and the text and number of each guest."""
        rows = [row, *donors]
        found = self.features.sentences(rows)
        first = np.searchsorted(found.text, np.arange(len(rows)))
        number = np.arange(len(found.text)) - first[found.text]
        text = np.array(rows)[found.text]
        usable = (number > 0) & (found.words >= self.settings.min_words) & ~self.used[text, number]
        scene = self.features.scene(found, usable)
        return scene, np.stack([text, number], axis=1)[len(scene.host) :]

    def _row(self, row: int, position: int, chosen: Intruder, donor: int, number: int) -> Pair:
        (host,), (other,) = (self.texts.slice(at, 1).to_pylist() for at in (row, donor))
        changed = list(host["sentences"])
        changed[position] = other["sentences"][number]
        return {
            "doc": host["id"],
            "donor": other["id"],
            "position": position,
            "similarity": chosen.similarity,
            "replaced_similarity": chosen.replaced,
            "pos": host["sentences"],
            "neg": changed,
            "licences": {host["licence"], other["licence"]},
        }
