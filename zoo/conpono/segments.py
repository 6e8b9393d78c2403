"""Where anchors and targets lie in a paragraph (section 2.3 and its example)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Geometry:
    """Sentences of an anchor and of a target, and K, the largest distance `|k|`."""

    anchor: int = 4
    target: int = 3
    k: int = 2

    @property
    def window(self) -> int:
        """The sentences of an anchor and a target side by side: the shortest usable paragraph."""
        return self.anchor + self.target

    @property
    def distances(self) -> list[int]:
        """`-K .. -1, 1 .. K`: the order of W_k, of labels and of the accuracies."""
        return [*range(-self.k, 0), *range(1, self.k + 1)]

    def place(self, k: int) -> int:
        """The index of the distance `k` in `distances`."""
        return k + self.k - (k > 0)

    def target_start(self, anchor_start: int, k: int) -> int:
        """The first sentence of the target `k` away from the anchor at `anchor_start`.

        k = 1 begins right after the anchor, k = -1 ends right before it. The paper's example:
        the anchor s7..s10 has the target s1..s3 at k = -4, "because s3 is 4 positions behind s7".
        """
        if k > 0:
            return anchor_start + self.anchor - 1 + k
        return anchor_start + k - self.target + 1

    def targets(self, anchor_start: int, sentences: int) -> list[int]:
        """The distances whose whole target lies in a paragraph of so many `sentences`."""
        starts = {k: self.target_start(anchor_start, k) for k in self.distances}
        return [k for k, at in starts.items() if at >= 0 and at + self.target <= sentences]

    def anchors(self, sentences: int) -> np.ndarray:
        """The anchor starts in a paragraph that have a target at k = 1 or k = -1 at least."""
        starts = np.arange(max(sentences - self.anchor + 1, 0))
        after = starts + self.window <= sentences
        return starts[after | (starts >= self.target)]

    def draw(
        self, sentences: int, targets: int, random: np.random.Generator
    ) -> tuple[int, list[int]]:
        """An anchor's start and the distances of its targets, in the order of `distances`.

        At most `targets` are drawn of those that exist (the paper: 4 of 8); fewer exist near a
        paragraph's ends, and then all of them are taken. Each anchor is as likely as any other.
        """
        start = int(random.choice(self.anchors(sentences)))
        possible = self.targets(start, sentences)
        chosen = random.permutation(len(possible))[:targets]
        return start, [possible[i] for i in sorted(chosen)]


def cut_pair(anchor: int, target: int, budget: int) -> tuple[int, int]:
    """The tokens left of an anchor and a target so that both fit in `budget`: the longer is cut.

    The same as taking a token off the end of the longer one until they fit, as BERT does.
    """
    if anchor + target <= budget:
        return anchor, target
    half = budget // 2
    if anchor <= half:
        return anchor, budget - anchor
    if target <= half:
        return budget - target, target
    return budget - half, half
