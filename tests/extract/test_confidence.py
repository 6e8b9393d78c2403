"""The probability that a pair is right: a column of every pair, and a threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from corpora.document import Document
from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from extract import Extractor, Pair, calibrate
from extract.calibrate import agreement_with_gold
from extract.confidence import Model, load_model, threshold

CLEAR = "The boat was late because the storm had not passed."
TANGLED = (
    "When the bell rang at last, my uncle, who had said nothing since noon; and whom nobody, as "
    "the cook held, would have asked: for he was proud, rose, but, being what he was, when the "
    "others had sat down and the lamps were lit, he, the eldest, did not go."
)


def pairs(text: str, name: str = "story", **settings: Any) -> list[Pair]:
    return list(Extractor(**settings).pairs([Document(id=name, text=text)]))


def test_every_pair_has_a_probability() -> None:
    for mode in ("standalone", "recall"):
        made = pairs(f"{CLEAR} {TANGLED}", mode=mode, min_confidence=0)
        assert made
        assert all(pair.confidence is not None and 0 < pair.confidence < 1 for pair in made)


def test_a_short_pair_is_surer_than_a_tangled_one() -> None:
    (clear,) = pairs(CLEAR, mode="recall")
    assert clear.confidence is not None
    for tangled in pairs(TANGLED, mode="recall"):
        assert tangled.confidence is not None and tangled.confidence < clear.confidence


def test_the_threshold_rejects_what_is_less_likely() -> None:
    everything = pairs(f"{CLEAR} {TANGLED}", mode="recall", min_confidence=0)
    middle = sorted(pair.confidence or 0.0 for pair in everything)[len(everything) // 2]
    extractor = Extractor(mode="recall", min_confidence=middle)
    kept = list(extractor.pairs([Document(id="story", text=f"{CLEAR} {TANGLED}")]))
    assert kept == [pair for pair in everything if (pair.confidence or 0.0) >= middle]
    assert extractor.reject_counts["confidence"] == len(everything) - len(kept) > 0


def test_the_default_threshold_is_for_the_parser_that_it_was_fitted_on() -> None:
    assert {threshold("en", "standalone", None, p) for p in ("stanza:en", "spacy:x")} == {0}
    assert Extractor("stanza:en").settings.min_confidence == 0
    assert threshold("en", "standalone", 0.3, "stanza:en") == 0.3


def test_a_text_gets_the_same_probability_in_any_batch() -> None:
    texts = [CLEAR, TANGLED, f"{TANGLED} {CLEAR}"]
    documents = [Document(id=f"d{i}", text=text) for i, text in enumerate(texts)]
    extractor = Extractor(mode="recall")
    together = [pair.confidence for pair in extractor.pairs(documents)]
    assert together == [p.confidence for d in documents for p in extractor.pairs([d])]


def test_a_language_without_a_model_has_none() -> None:
    data = Path(__file__).parents[1] / "data" / "extract"
    assert load_model("es", "standalone") is None
    spanish = list(open_source(f"conllu:{data / 'es'}.conllu"))
    made = list(Extractor("gold", "all", "recall", "es").pairs(spanish))
    assert {pair.confidence for pair in made} == {None}
    with pytest.raises(ConfigError, match="no confidence model"):
        Extractor("gold", "all", "recall", "es", min_confidence=0.5)


def test_a_tree_asks_for_markers_patterns_and_numbers() -> None:
    """A pair of "because" with more than three words in S1 gets 2, another "because" 1."""
    never, nowhere = [9.0] * 2, [0] * 2
    model = Model.of(
        {
            "names": ["marker because", "pattern none", "s1_words"],
            "bias": 0.0,
            "asked": [[0, 1, 2, *nowhere, *nowhere]],
            "thresholds": [[0.5, 0.5, float(np.log1p(3)), *never, *never]],
            "values": [[0, 0, -5, -5, 1, -5, 2, -5]],
        }
    )
    text = f"{CLEAR} We sang because it rained. It rained, but we sang."
    extractor = Extractor(mode="recall", check="none")
    ((candidates, none),) = extractor.candidates([Document(id="a", text=text)])
    assert none is None
    expected = [1 / (1 + np.exp(-score)) for score in (2, 1, 0)]
    assert model.confidences(candidates) == pytest.approx(expected)


def test_it_tells_right_from_wrong_on_documents_it_has_not_seen(discorpora_data: Path) -> None:
    """EWT dev: neither the parser nor the model learnt from it."""
    path = discorpora_data / "treebank" / "en_ewt" / "en_ewt-ud-dev.conllu"
    documents = list(open_source(f"conllu:{path}"))
    gold = Extractor("gold", mode="recall").pairs(documents)
    there = {(pair.doc, pair.marker_spans): pair for pair in gold}
    made = list(Extractor(mode="recall").pairs(documents))
    there_for = [there.get((pair.doc, pair.marker_spans)) for pair in made]
    right = np.array(
        [agreement_with_gold(*both) == "same" for both in zip(made, there_for, strict=True)]
    )
    sure = np.array([p.confidence for p in made])
    assert roc_auc_score(right, sure) > 0.65
    assert brier_score_loss(right, sure) < 0.95 * right.mean() * (1 - right.mean())
    assert abs(right.mean() - sure.mean()) < 0.08


def test_each_document_is_held_out_of_one_fold(tmp_path: Path) -> None:
    words = ("1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_", "2\truns\trun\tVERB\tVBZ\t_\t0\troot\t_\t_")
    names = [f"doc{i}" for i in range(30)]
    text = "".join(f"# newdoc id = {name}\n" + "\n".join(words) + "\n\n" for name in names)
    bank, folds = tmp_path / "bank.conllu", tmp_path / "folds"
    bank.write_text(text, encoding="utf-8")
    calibrate.main(["folds", "--treebank", str(bank), "--output", str(folds)])
    held: list[str] = []
    for fold in range(calibrate.FOLDS):
        parts = {}
        for part in ("held", "train"):
            text = (folds / f"{part}-{fold}.conllu").read_text(encoding="utf-8")
            parts[part] = [line[14:] for line in text.splitlines() if line.startswith("#")]
            assert text.count("root") == len(parts[part])
        assert sorted(parts["held"] + parts["train"]) == sorted(names)
        held += parts["held"]
    assert sorted(held) == sorted(names)


def test_sentences_of_no_document_are_not_lost_from_the_folds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = tmp_path / "bank.conllu"
    bank.write_text("1\tRun\trun\tVERB\tVB\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    folds = tmp_path / "folds"
    assert calibrate.main(["folds", "--treebank", str(bank), "--output", str(folds)]) == 2
    assert f"{bank}: expected '# newdoc id = NAME'" in capsys.readouterr().err
    assert not folds.exists()


def test_calibration_of_files_that_are_not_there_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.json")
    arguments = ["score", "--treebank", missing, "--output", str(tmp_path / "out.json")]
    assert calibrate.main(arguments) == 2
    assert "missing.json" in capsys.readouterr().err


def test_calibration_of_broken_files_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (broken := tmp_path / "x.json").write_text('{"doc": "a", "ratings": ["good"]}', "utf-8")
    out = ["--output", str(tmp_path / "out.json")]
    arguments = ["fit", "x", "--ratings", str(broken), "--novels", "x", *out]
    assert calibrate.main(arguments) == 2
    assert f"{broken}:1: no texts: " in capsys.readouterr().err
    with pytest.raises(InputError, match="0 documents, 0 right pairs, 0 wrong pairs: expected 5"):
        calibrate.fit_model([], "recall")


def test_a_fit_learns_what_the_rows_show_and_ships_it() -> None:
    """Short pairs are right and long ones wrong; the shipped form gives what scikit-learn gives."""
    rows: list[calibrate.Observation] = []
    (pair,) = pairs(CLEAR, mode="recall")
    for i in range(200):
        long = i % 2 == 1
        values = {"s1_words": float(long), "quotes": float(i % 3 == 0)}
        gold = "same" if (not long) ^ (i % 10 == 0) else "none"
        rows.append(calibrate.Observation(replace(pair, doc=f"d{i % 20}"), values, gold, None))
    weights, measures = calibrate.fit_model(rows, "recall")
    assert measures["AUC"] > 0.85 and measures["Brier"] < 0.15
    model = Model.of(weights)
    label = np.array([float(row.gold == "same") for row in rows])
    table = np.array([list(row.features.values()) for row in rows])
    assert model.names == ("s1_words", "quotes")
    expected = calibrate.fit_trees(table, label, np.ones(200)).predict_proba(table)[:, 1]
    assert model.of_table(table.T) == pytest.approx(expected, abs=1e-3)


def test_an_unread_candidate_counts_like_those_that_stand_alike_to_gold_trees() -> None:
    (pair,) = pairs(CLEAR, mode="recall")
    kinds = [("same", True), ("same", None), ("none", True), ("none", False), ("none", None)]
    rows = [calibrate.Observation(pair, {}, gold, good) for gold, good in kinds]
    assert calibrate.right_probabilities(rows, "standalone").tolist() == [1, 1, 1, 0, 0.5]
    assert calibrate.right_probabilities(rows, "recall").tolist() == [1, 1, 0, 0, 0]


def test_words_at_an_edge_do_not_make_a_pair_wrong() -> None:
    (pair,) = pairs(CLEAR, mode="recall")
    assert agreement_with_gold(pair, replace(pair, s1="The boat was late then.")) == "same"
    assert agreement_with_gold(pair, replace(pair, s1="The boat.")) == "other"
    assert agreement_with_gold(pair, None) == "none"
