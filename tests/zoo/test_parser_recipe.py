"""The recipe of the embedded parser, on nine sentences written for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.vocab import Vocab

from corpora.errors import InputError
from zoo.parser import card, evaluate, train
from zoo.parser.documents import (
    Grouping,
    batches,
    examples,
    group,
    lower_case,
    to_doc,
    typographic,
    without_final_punctuation,
)
from zoo.parser.tokenizer import adapt_tokenizer
from zoo.parser.treebank import Sentence, sentences_of, treebank_files

PIPELINE = Path(__file__).parents[2] / "extract" / "embedded" / "en_ud_compact"
TINY = Path(__file__).parent.parent / "data" / "parser" / "tiny.conllu"


def steps(**counts: int) -> list[str]:
    """Options for so many batches a stage; the fixture is too small for the least frequency."""
    changes = [f"{stage}.max_steps={count}" for stage, count in counts.items()]
    changes.append("components.parser.min_action_freq=1")
    return [part for change in changes for part in ("--set", change)]


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return sentences_of([TINY])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("parser") / "out"
    settings = steps(training=150, regularisation=10, finishing=10)
    paths = ["--treebank", str(TINY), "--dev", str(TINY), "--output", str(output)]
    assert train.main([*paths, *settings]) == 0
    return output


def test_multiword_tokens_are_split_with_their_spaces(sentences: list[Sentence]) -> None:
    negated = sentences[1]
    assert negated.forms == ("Nora", "did", "n't", "notice", "it", ".")
    assert negated.spaces == (True, False, True, True, False, True)
    assert negated.heads == (3, 3, 3, -1, 3, 3)


def test_empty_nodes_are_no_words(sentences: list[Sentence]) -> None:
    assert "quietly" not in sentences[2].forms
    assert len(sentences[2]) == 9


def test_documents_and_paragraphs_are_told_apart(sentences: list[Sentence]) -> None:
    assert [(s.document, s.paragraph) for s in sentences] == [
        *[("tale-kettle", 0)] * 2,
        *[("tale-kettle", 1)] * 3,
        *[("tale-boat", 0)] * 3,
        ("tale-boat", 1),
    ]


def test_words_give_back_the_text_of_the_file(sentences: list[Sentence]) -> None:
    lines = TINY.read_text(encoding="utf-8").splitlines()
    texts = [line.removeprefix("# text = ") for line in lines if line.startswith("# text")]
    assert [to_doc(Vocab(), [s]).text.strip() for s in sentences] == texts


def test_a_doc_carries_the_trees(sentences: list[Sentence]) -> None:
    doc = to_doc(Vocab(), sentences[:2])
    assert [sent.root.text for sent in doc.sents] == ["sang", "notice"]
    assert [(t.dep_, t.head.text) for t in doc if t.text == "glowed"] == [("advcl", "sang")]


def test_a_short_row_is_reported_with_its_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("# text = No\n1\tNo\tno\n\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.conllu:2: columns: 3"):
        sentences_of([bad])


def test_a_folder_gives_only_the_split_asked_for(tmp_path: Path) -> None:
    for name in ("en_x-ud-train.conllu", "en_x-ud-dev.conllu", "train/a.conllu", "dev/b.conllu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = [file.name for file in treebank_files([tmp_path], "train")]
    assert names == ["en_x-ud-train.conllu", "a.conllu"]
    with pytest.raises(FileNotFoundError, match="split 'test'"):
        treebank_files([tmp_path], "test")


def test_a_split_is_a_whole_part_of_a_name(tmp_path: Path) -> None:
    names = ("train/GUM_news_devices.conllu", "dev/GUM_train_day.conllu", "x/en_x-ud-dev.conllu")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (train,) = treebank_files([tmp_path], "train")
    assert train.name == "GUM_news_devices.conllu"
    found = [file.name for file in treebank_files([tmp_path], "dev")]
    assert found == ["GUM_train_day.conllu", "en_x-ud-dev.conllu"]


@pytest.mark.parametrize("head", ["_", "3", "-1", "x"])
def test_a_head_that_is_none_is_reported_with_its_line(head: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    rows = [
        f"1\tIt\t_\tPRON\tPRP\t_\t{head}\tnsubj\t_\t_",
        "2\tran\t_\tVERB\tVBD\t_\t0\troot\t_\t_",
    ]
    bad.write_text("# text = It ran\n" + "\n".join(rows) + "\n\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"bad\.conllu:2: head: '?{head}"):
        sentences_of([bad])


def test_a_treebank_without_a_sentence_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    empty = tmp_path / "empty.conllu"
    empty.touch()
    paths = ["--treebank", str(empty), "--dev", str(TINY), "--output", str(tmp_path / "out")]
    assert train.main(paths) == 2
    assert evaluate.main([str(PIPELINE), str(empty)]) == 2
    assert caplog.text.count(f"{empty}: there is no document in it") == 2


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "x.conllu", tmp_path / "b" / "x.conllu"
    assert evaluate.names_of([one, TINY, two]) == {str(one): one, "tiny": TINY, str(two): two}


def test_groups_stay_within_documents_and_lose_nothing(sentences: list[Sentence]) -> None:
    groups = list(group(sentences, Grouping(words=20), np.random.default_rng(1)))
    assert [s for members in groups for s in members] == sentences
    for members in groups:
        assert len({s.document for s in members}) == 1
        assert len(members) == 1 or sum(map(len, members)) <= 20


def test_batches_hold_every_example_once(sentences: list[Sentence]) -> None:
    rng = np.random.default_rng(2)
    items = list(examples(Vocab(), sentences, Grouping(augment=1.0), rng))
    batched = [item for batch in batches(items, 20, rng) for item in batch]
    assert sorted(map(id, batched)) == sorted(map(id, items))


def test_variants_keep_the_tree(sentences: list[Sentence]) -> None:
    spoken = sentences[4]
    assert typographic(spoken).forms[0] == "“" and typographic(spoken).forms[5] == "”"
    assert typographic(sentences[1]).forms[2] == "n’t"
    assert lower_case(sentences[1]).forms[0] == "nora"
    shorter = without_final_punctuation(spoken)
    assert shorter.forms == spoken.forms[:-1] and shorter.heads == spoken.heads[:-1]
    assert shorter.spaces[-1]


def test_the_upos_table_keeps_a_longer_key_only_where_it_decides() -> None:
    def words(xpos: str, deprel: str, upos: str) -> Sentence:
        return Sentence("d", 0, ("be",), (True,), (upos,), (xpos,), (-1,), (deprel,))

    votes = [words("VB", "root", "VERB")] * 9 + [words("VB", "cop", "AUX")] * 4
    assert train.learn_upos(votes) == {"VB": "VERB", "VB cop": "AUX"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It’s—it’s late", ["It", "’s", "—", "it", "’s", "late"]),
        ("“Stop!!”—although", ["“", "Stop", "!!", "”", "—", "although"]),
        ("a well-known co-worker", ["a", "well", "-", "known", "co-worker"]),
        ("Paul <unk> was <b>", ["Paul", "<unk>", "was", "<b>"]),
        ("They DON'T id 7pm.", ["They", "DO", "N'T", "id", "7", "pm", "."]),
    ],
)
def test_the_tokenizer_splits_as_ud_does(
    text: str, words: list[str], sentences: list[Sentence]
) -> None:
    nlp = spacy.blank("en")
    adapt_tokenizer(nlp, sentences)
    assert [token.text for token in nlp.tokenizer(text)] == words


@pytest.mark.slow
def test_training_learns_and_leaves_a_pipeline_that_loads(
    trained: Path, sentences: list[Sentence]
) -> None:
    nlp = spacy.load(trained / "en_ud_compact")
    las = evaluate.score_gold(nlp, sentences, own_sentences=False)["las"]
    assert las > evaluate.baseline_las(sentences, sentences) + 10
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert las == record["selected"]["las"]
    assert (trained / "documents.txt").read_text().split() == ["tale-kettle", "tale-boat"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_parser(trained: Path, tmp_path: Path) -> None:
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert record["seed"] == 0
    paths = ["--treebank", str(TINY), "--dev", str(TINY), "--output"]
    settings = steps(training=3, regularisation=2, finishing=2)
    for name in ("a", "b"):
        assert train.main([*paths, str(tmp_path / name), *settings]) == 0
    models = [(tmp_path / n / "en_ud_compact/parser/model").read_bytes() for n in ("a", "b")]
    assert models[0] == models[1]


@pytest.mark.slow
def test_the_command_line_evaluates_and_writes_json(trained: Path, tmp_path: Path) -> None:
    found = tmp_path / "scores.json"
    arguments = [str(trained / "en_ud_compact"), str(TINY), "--json", str(found)]
    assert evaluate.main(arguments) == 0
    scores = json.loads(found.read_text(encoding="utf-8"))["tiny"]
    assert scores["gold_sentences"]["words"] == 100.0
    assert set(scores["gold_sentences"]["labels"]) == set(evaluate.LABELS)


@pytest.mark.slow
def test_the_card_is_written_from_provenance_and_scores(trained: Path) -> None:
    arguments = ["--pipeline", str(trained), "--dev", str(TINY), "--loader", "spacy:load"]
    assert card.main(arguments) == 0
    text = (trained / "CARD.md").read_text(encoding="utf-8")
    assert "| TINY dev | gold tokens, gold sentences |" in text
    assert "| `advcl` |" in text


def test_a_card_without_provenance_leaves_no_scores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "en_ud_compact").symlink_to(PIPELINE)
    assert card.main(["--pipeline", str(tmp_path), "--dev", str(TINY)]) == 2
    assert f"{tmp_path / 'training.json'}: cannot be read" in caplog.text
    assert not (tmp_path / "scores.json").exists()


def test_errors_name_the_value_and_leave_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing, output = tmp_path / "none", tmp_path / "out"
    assert train.main(["--treebank", str(missing), "--output", str(output)]) == 2
    assert f"no treebank at {missing}" in caplog.text
    assert list(tmp_path.iterdir()) == []
    output.mkdir()
    assert train.main(["--treebank", str(TINY), "--output", str(output)]) == 2
    assert f"{output} exists" in caplog.text
    assert evaluate.main([str(output), str(TINY), "--loader", "spacy:nothing"]) == 2
    assert evaluate.main([str(output), str(TINY), "--loader", "json"]) == 2
    assert "no loader 'json': give MODULE:FUNCTION (it is not a function)" in caplog.text


def test_a_setting_of_training_that_is_not_there_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = ["--treebank", str(TINY), "--dev", str(TINY), "--output", str(tmp_path / "out")]
    assert train.main([*paths, "--set", "training.max_stepz=1"]) == 2
    assert "no setting 'training.max_stepz'\n  did you mean 'training.max_steps'" in caplog.text
    assert train.parse_change("training.dropout=1e-1") == ("training.dropout", 0.1)
