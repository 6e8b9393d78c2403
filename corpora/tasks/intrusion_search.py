"""Which texts intrude on which: the search of the intrusion builder, a split at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.readers.source import SeenIds
from corpora.rng import stable_id, stream
from corpora.store.folder import DatasetFolder
from corpora.tasks.intruders import Intruder, Scene, find_intruder
from corpora.tasks.pool import Pool, Rows
from corpora.tasks.postings import Postings
from corpora.tasks.sentence_features import SentenceFeatures
from corpora.tasks.similar import FEATURES, MOST

if TYPE_CHECKING:
    from corpora.tasks.intrusion import Settings

FROM_ONE_DOCUMENT = 20
"""So many texts of the host's own document are passed over in the search for another one."""

Pair = dict[str, Any]
"""A row of `INTRUSION_PAIRWISE`, with the `licences` of its two documents."""


def pairs_of(rows: Rows, search: Search, dataset: DatasetFolder) -> Iterator[Pair]:
    """The pairs of each text of a split that an intruder can be found for."""
    pool, settings = search.pool, search.settings
    keys = np.array([stable_id(pool.place(row)) for row in rows.tolist()], np.uint64)
    rows = rows[np.lexsort((rows, keys))]
    profiles = map(search.features.profile, rows.tolist())
    with Postings(dataset.folder, profiles, FEATURES, most=MOST) as index:
        for at, row in enumerate(rows.tolist()):
            others, similarity = index.nearest(at, settings.similar + FROM_ONE_DOCUMENT)
            near = rows[others[similarity <= settings.max_text_similarity]]
            pairs = search.pairs(row, near)
            if isinstance(pairs, str):
                dataset.reject(pairs)
                continue
            for pair in pairs:
                for licence in pair.pop("licences"):
                    dataset.count_licence(licence)
                yield pair


class Search:
    """Looks for the intruders of texts; a sentence, wherever it stands, intrudes only once."""

    def __init__(self, pool: Pool, features: SentenceFeatures, settings: Settings) -> None:
        self.pool, self.features, self.settings = pool, features, settings
        self.used = np.zeros((len(pool), settings.max_sentences), bool)
        self.said = SeenIds()

    def pairs(self, row: int, near: Rows) -> list[Pair] | str:
        """The pairs of one text, or the reason why there is none.

        The positions are random: the first of a random order at which any sentence keeps to the
        bounds. Where the best one there shows too much, the text gives a pair less rather than
        one elsewhere, or easy positions would be the rule.
        """
        pool, settings = self.pool, self.settings
        elsewhere = pool.documents_of(near) != pool.documents_of(np.array([row]))
        donors = near[elsewhere][: settings.similar].tolist()
        if not donors:
            return "no_similar_text"
        scene, places = self._scene(row, donors)
        random = stream(pool.seed, pool.stage, pool.place(row))
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
            pair = _row(row, position, chosen, donor, number, self.pool)
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


def _row(row: int, position: int, chosen: Intruder, donor: int, number: int, pool: Pool) -> Pair:
    record, other = pool.record(row), pool.record(donor)
    sentences = record["sentences"]
    changed = list(sentences)
    changed[position] = other["sentences"][number]
    return {
        "doc": pool.place(row),
        "donor": pool.place(donor),
        "position": position,
        "similarity": chosen.similarity,
        "replaced_similarity": chosen.replaced,
        "pos": sentences,
        "neg": changed,
        "licences": {record["licence"], other["licence"]},
    }
