"""What an example holds: its anchor, its targets by distance, and text of other documents."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.schemas import CONPONO
from tests.zoo.conftest import write_dataset
from tests.zoo.conpono.conftest import rows, texts
from zoo.conpono.examples import AnchorExample, Candidates, Orderings
from zoo.conpono.segments import NO_LABEL, Geometry, Masking, Template
from zoo.conpono.tokens import TokenStore, token_stores
from zoo.conpono.training import EpochRows
from zoo.training.data import open_dataset
from zoo.training.trainer import EpochSampler

Make = Callable[..., Candidates]


def parsed(text: str) -> list[tuple[str, int, int]]:
    sentences = [sentence.split() for sentence in text.split(".") if sentence.strip()]
    return [(words[2], int(words[-1]), int(words[5])) for words in sentences]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_label_of_each_distance_is_the_target_there(
    candidates: Make, tokenizer: PreTrainedTokenizerBase, k: int
) -> None:
    geometry = Geometry(k=k)
    examples = candidates(geometry=geometry, targets=4, candidates=10)
    seen: Counter[int] = Counter()
    for row in range(len(examples)):
        example = examples[row, 3]
        (anchor_text, nothing), *pairs = texts(example, tokenizer)
        anchor = parsed(anchor_text)
        assert nothing == "" and len(pairs) == 10
        assert [at for _, _, at in anchor] == list(range(anchor[0][2], anchor[0][2] + 4))
        own = (anchor[0][0], anchor[0][1])
        for distance, label in zip(geometry.distances, example.labels.tolist(), strict=True):
            if label == NO_LABEL:
                continue
            seen[distance] += 1
            first, target = (parsed(text) for text in pairs[label])
            assert first == anchor
            assert all((document, day) == own for document, day, _ in target)
            gap = target[0][2] - anchor[-1][2] if distance > 0 else anchor[0][2] - target[-1][2]
            assert gap == abs(distance)
            assert not {at for *_, at in target} & {at for *_, at in anchor}
    assert set(seen) == {d for d in geometry.distances if abs(d) <= 3}  # nine sentences: no 4


def test_labels_at_the_largest_distance(tmp_path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Paragraphs of 12 sentences: an anchor, three sentences between, and the target at k = 4."""
    part = {("default", "train"): (rows(6, 3, 12, "t"), CONPONO)}
    folder = write_dataset(tmp_path / "data", "conpono", part)
    geometry = Geometry(k=4)
    store = token_stores(
        open_dataset(str(folder), streamed=True), tokenizer, geometry, tmp_path / "m"
    )["train"]
    template, masking = Template.of(tokenizer, 128), Masking.of(tokenizer, 0.0)
    examples = Candidates(store, store, template, masking, geometry, 12, targets=8)
    seen: Counter[int] = Counter()
    for row in range(len(examples)):
        for epoch in range(6):
            example = examples[row, epoch]
            (anchor_text, _), *pairs = texts(example, tokenizer)
            anchor = [at for *_, at in parsed(anchor_text)]
            for distance in (-4, 4):
                label = int(example.labels[geometry.distances.index(distance)])
                if label == NO_LABEL:
                    continue
                seen[distance] += 1
                target = [at for *_, at in parsed(pairs[label][1])]
                first = anchor[-1] + 4 if distance > 0 else anchor[0] - 6
                assert target == [first, first + 1, first + 2]
    assert min(seen[-4], seen[4]) > 5


def test_random_candidates_are_of_other_documents_and_unlike_each_other(
    candidates: Make, tokenizer: PreTrainedTokenizerBase
) -> None:
    examples = candidates(candidates=20)
    for row in range(len(examples)):
        example = examples[row]
        _, *pairs = texts(example, tokenizer)
        targets = example.labels[example.labels != NO_LABEL]
        assert sorted(targets) == list(range(len(targets)))
        own = parsed(pairs[0][0])[0][0]
        for _, text in pairs[len(targets) :]:
            assert own not in {document for document, *_ in parsed(text)}
        assert len({text for _, text in pairs}) == 20


def test_a_target_drawn_again_is_no_negative(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    # Every document has the same first paragraph: its segments must not come as negatives.
    made = rows(6, 2, 9, "x")
    for row in made:
        row["sentences"][:9] = made[0]["sentences"][:9]
    folder = write_dataset(tmp_path / "data", "conpono", {("default", "train"): (made, CONPONO)})
    store = token_stores(
        open_dataset(str(folder), streamed=True), tokenizer, Geometry(), tmp_path / "m"
    )["train"]
    examples = Candidates(
        store, store, Template.of(tokenizer, 128), Masking.of(tokenizer, 0.0), Geometry(), 12
    )
    for row in range(len(examples)):
        for epoch in range(10):
            _, *pairs = texts(examples[row, epoch], tokenizer)
            assert len({text for _, text in pairs}) == 12


def test_encoders_take_their_own_sequences(
    candidates: Make, tokenizer: PreTrainedTokenizerBase
) -> None:
    full, isolated, uni = (
        texts(candidates(encoder=name)[3], tokenizer) for name in ("full", "isolated", "uni")
    )
    assert [first for first, _ in full] == [full[0][0]] * 9
    assert [text for text, _ in isolated] == [full[0][0], *(second for _, second in full[1:])]
    assert uni == full[1:]


def same(one: AnchorExample, two: AnchorExample) -> bool:
    return all(np.array_equal(getattr(one, f), getattr(two, f)) for f in vars(one))


def test_another_epoch_draws_anew_the_same_epoch_the_same(candidates: Make) -> None:
    examples = candidates(mask_rate=0.15)
    assert same(examples[0, 1], examples[0, 1])
    assert same(examples[0], examples[0, 0])
    assert not same(examples[0, 1], examples[0, 2])
    assert not same(examples[0, 1], replace(examples, seed=6)[0, 1])


def test_document_order_changes_nothing(tmp_path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    made = rows(8, 3, 9, "t")
    stores = []
    for name, order in {"one": made, "two": made[::-1]}.items():
        part = {("default", "train"): (order, CONPONO)}
        folder = write_dataset(tmp_path / name / "data", name, part)
        dataset = open_dataset(str(folder), streamed=True)
        stores.append(token_stores(dataset, tokenizer, Geometry(), tmp_path / name / "m")["train"])
    first, second = (
        Candidates(s, s, Template.of(tokenizer, 128), Masking.of(tokenizer, 0.15), Geometry(), 8)
        for s in stores
    )
    assert not np.array_equal(stores[0].tokens, stores[1].tokens)
    for row in range(len(first)):
        assert same(first[row, 1], second[row, 1])


def keep(batch: list[AnchorExample]) -> list[AnchorExample]:
    return batch


def test_workers_change_nothing(candidates: Make) -> None:
    examples = candidates(mask_rate=0.15)
    found = []
    for workers in (0, 2):
        rows = EpochSampler([1] * len(examples), 4, seed=3)
        rows.set_epoch(2)
        sampler = EpochRows(rows)
        loader = DataLoader(examples, 8, sampler=sampler, num_workers=workers, collate_fn=keep)
        found.append([example for batch in loader for example in batch])
    assert all(same(one, two) for one, two in zip(*found, strict=True))


def test_a_pickled_store_maps_the_same_files(store: TokenStore) -> None:
    copy = pickle.loads(pickle.dumps(store))
    mapped: Any = copy.tokens
    while not isinstance(mapped, np.memmap):
        mapped = mapped.base  # None where the store was read instead
    assert np.array_equal(copy.tokens, store.tokens)


def test_long_texts_are_cut_to_the_limit(
    candidates: Make, tokenizer: PreTrainedTokenizerBase
) -> None:
    example = candidates(max_tokens=40)[0]
    assert example.lengths.max() == 40
    assert all(ids[-1] == tokenizer.sep_token_id for ids in np.split(
        example.ids, np.cumsum(example.lengths)[:-1]
    ))  # fmt: skip


def test_masking_hides_words_only(candidates: Make, tokenizer: PreTrainedTokenizerBase) -> None:
    examples = candidates(mask_rate=0.15)
    plain = candidates(mask_rate=0.0)
    total = chosen = hidden = 0
    for row in range(len(examples)):
        masked, whole = examples[row], plain[row]
        labelled = masked.mlm != NO_LABEL
        assert np.array_equal(masked.mlm[labelled], whole.ids[labelled])
        assert np.array_equal(masked.ids[~labelled], whole.ids[~labelled])
        special = np.isin(whole.ids, [tokenizer.cls_token_id, tokenizer.sep_token_id])
        assert not labelled[special].any()
        total += (~special).sum()
        chosen += labelled.sum()
        hidden += (masked.ids[labelled] == tokenizer.mask_token_id).sum()
    assert 0.14 < chosen / total < 0.16
    assert 0.77 < hidden / chosen < 0.83


def test_orderings_swap_half_and_hide_it_from_the_lengths(
    candidates: Make, tokenizer: PreTrainedTokenizerBase
) -> None:
    base = candidates()
    examples = Orderings(base.store, base.pool, base.template, base.masking, base.geometry, 8)
    seen: Counter[tuple[bool, int]] = Counter()
    for row in range(len(examples)):
        example = examples[row]
        for (one, two), label in zip(texts(example, tokenizer), example.labels, strict=True):
            one_places, two_places = ([at for *_, at in parsed(t)] for t in (one, two))
            assert (one_places > two_places) == bool(label)
            both = sorted(one_places + two_places)
            assert both == list(range(both[0], both[0] + 7))
            seen[bool(label), len(one_places)] += 1
    assert set(seen) == {(swapped, size) for swapped in (True, False) for size in (3, 4)}
    assert min(seen.values()) > sum(seen.values()) / 4 * 0.7


def test_short_paragraphs_are_named(tmp_path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    part = {("default", "train"): (rows(3, 2, 5, "s"), CONPONO)}
    folder = write_dataset(tmp_path / "data", "conpono", part)
    with pytest.raises(InputError, match="no paragraph has 7 sentences"):
        token_stores(
            open_dataset(str(folder), streamed=True), tokenizer, Geometry(), tmp_path / "m"
        )


def test_the_store_is_made_once(
    tmp_path: Path, paragraphs_folder: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    dataset, partial = open_dataset(str(paragraphs_folder), streamed=True), tmp_path / "a.partial"
    token_stores(dataset, tokenizer, Geometry(), tmp_path / "a")
    before = {path: path.stat().st_mtime_ns for path in partial.rglob("*")}
    token_stores(dataset, tokenizer, Geometry(), tmp_path / "a")
    assert before == {path: path.stat().st_mtime_ns for path in partial.rglob("*")}
    token_stores(dataset, tokenizer, Geometry(anchor=3), tmp_path / "a")
    assert len(list(partial.iterdir())) == 2
