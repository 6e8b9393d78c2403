"""What the training command says when its input does not fit."""

from __future__ import annotations

import gzip
import json
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import ByT5Tokenizer

from corpora import schemas
from corpora.errors import ConfigError, DiscorporaError, InputError
from tests.zoo.opened import evaluate
from zoo.backbones import load_backbone, tokenizer_of
from zoo.coherence import CoherenceScorer
from zoo.dissent import BiLstmConfig, BiLstmForMarkers
from zoo.evaluate.relations import DisSent
from zoo.modeling import save_model
from zoo.vocabularies import train_subwords

from .conftest import MARKERS, STORY, pair_rows, write_dataset

Run = Callable[..., tuple[int, str]]
TINY = "dissent/bilstm_tiny"


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_good_checkpoint(
    train_cli: Run,
    pairs_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    forward, calls = BiLstmForMarkers.forward, []

    def failing(self: BiLstmForMarkers, *args: object, **kwargs: object) -> object:
        output = forward(self, *args, **kwargs)
        calls.append(self.training)
        if sum(calls) == 9:
            output.loss = output.loss * float("nan")
        return output

    monkeypatch.setattr(BiLstmForMarkers, "forward", failing)
    output = tmp_path / "model"
    code, message = train_cli(TINY, "--dataset", pairs_folder, "--output", output)
    assert code != 0 and not output.exists()
    assert "the loss is nan in the steps up to 12" in message
    assert "checkpoint-6" in message and "learning_rate or lower max_grad_norm" in message
    kept = tmp_path / "model.partial" / "checkpoints" / "checkpoint-6"
    assert (kept / "model.safetensors").is_file()
    assert f"its checkpoints stay in {tmp_path / 'model.partial'}; the same" in caplog.text


def test_weights_that_are_not_finite_are_not_kept(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    code, message = train_cli(
        TINY,
        *("--dataset", pairs_folder, "--output", tmp_path / "model"),
        *("--learning_rate", "1e38", "--max_grad_norm", "0", "--epochs", "2"),
    )
    assert code != 0
    assert "loss" in message or "weight" in message
    assert "--max_grad_norm 1, and train" in message  # there was none to lower
    assert not list((tmp_path / "model.partial").rglob("sealed.json"))


def test_a_folder_without_manifest(train_cli: Run, pairs_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(pairs_folder, tmp_path / "data")
    (tmp_path / "data" / "manifest.json").unlink()
    code, message = train_cli(TINY, "--dataset", tmp_path / "data", "--output", tmp_path / "m")
    assert code != 0 and "manifest.json: cannot be read" in message
    assert not (tmp_path / "m.partial").exists()


def test_word_vectors_that_are_not_there(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    options = ["--dataset", pairs_folder, "--output", tmp_path / "m", "--vectors", "none.txt"]
    code, message = train_cli(TINY, *options)
    assert code == 2 and "none.txt: vectors: no such file" in message and "give the path" in message


def test_a_dataset_that_is_not_there(train_cli: Run, tmp_path: Path) -> None:
    code, message = train_cli(TINY, "--dataset", tmp_path / "none", "--output", tmp_path / "m")
    assert code != 0 and "no such dataset folder" in message


def test_a_file_in_place_of_a_dataset(train_cli: Run, tmp_path: Path) -> None:
    rows = tmp_path / "my.jsonl"
    rows.write_text('{"s1": "Anna sang.", "s2": "Bela left.", "label": "and"}\n', encoding="utf-8")
    for spec in (rows, f"{rows}@all"):
        code, message = train_cli(TINY, "--dataset", spec, "--output", tmp_path / "m")
        assert code != 0 and "my.jsonl: is a file, expected a dataset folder" in message
        assert f"discorpora init mine.toml {rows}" in message and "push_to_hub" in message


def test_help_for_a_recipe_that_is_not_there(train_cli: Run) -> None:
    code, message = train_cli("dissent/ngran", "--help")
    assert code == 2 and "did you mean 'dissent/ngram'" in message


def test_a_configuration_that_is_not_there(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    code, message = train_cli(TINY, "--dataset", f"{pairs_folder}@al", "--output", tmp_path / "m")
    assert code != 0 and "did you mean 'all'" in message


def test_a_shard_that_is_gone(train_cli: Run, pairs_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(pairs_folder, tmp_path / "data")
    next((tmp_path / "data").rglob("test-*.parquet")).unlink()
    code, message = train_cli(TINY, "--dataset", tmp_path / "data", "--output", tmp_path / "m")
    assert code != 0 and "test-00000-of-00001.parquet" in message


def test_a_dataset_folder_that_was_damaged(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(pairs_folder, tmp_path / "data")
    options = [TINY, "--dataset", tmp_path / "data", "--output", tmp_path / "m"]
    shard = next((tmp_path / "data").rglob("test-*.parquet"))
    shard.write_bytes(shard.read_bytes()[:-100])
    code, message = train_cli(*options)
    assert code == 2 and "cannot be read" in message and shard.name in message
    (tmp_path / "data" / "manifest.json").write_text("[]", encoding="utf-8")
    code, message = train_cli(*options)
    assert code == 2 and "is no manifest" in message


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [("s1", None, "no s1"), ("label", -1, "a label that is"), ("label", 3, "a label that is")],
)
@pytest.mark.parametrize("recipe", [TINY, "dissent/ngram"])
def test_a_row_that_cannot_be_used_is_named(
    recipe: str, column: str, value: object, problem: str, train_cli: Run, tmp_path: Path
) -> None:
    if recipe != TINY and value == -1:
        pytest.skip("there it says that the row has no label")
    folder = hub_like(tmp_path / "data", {"validation": {3: {column: value}}})
    code, message = train_cli(recipe, "--dataset", folder, "--output", tmp_path / "m")
    assert code == 2 and f"row 3 of the split 'validation' has {problem}" in message


@pytest.mark.parametrize("recipe", ["dissent/transformer_tiny", "dissent/ngram"])
def test_a_split_whose_labels_are_hidden(recipe: str, train_cli: Run, tmp_path: Path) -> None:
    hidden = {row: {"label": -1} for row in range(9)}
    options = [recipe, "--output", tmp_path / "m", "--dataset"]
    folder = hub_like(tmp_path / "validation", {"validation": hidden})
    code, message = train_cli(*options, folder)
    assert code == 2 and "the split 'validation' has no row with a label" in message
    if recipe == "dissent/ngram":
        assert train_cli(*options, hub_like(tmp_path / "test", {"test": hidden}))[0] == 0
        found = json.loads((tmp_path / "m" / "results.json").read_text(encoding="utf-8"))
        assert any("validation split is reported" in note for note in found["notes"])


def test_columns_that_are_no_texts(train_cli: Run, pairs_folder: Path, tmp_path: Path) -> None:
    options = ["dissent/ngram", "--dataset", pairs_folder, "--output", tmp_path / "m"]
    code, message = train_cli(*options, "--columns", "s1,s1")
    assert code == 2 and "expected two columns of texts, got s1, s1" in message
    code, message = train_cli(*options, "--columns", "s1,s3")
    assert code == 2 and "no column 's3'" in message and "s1 (string), s2 (string)" in message
    code, message = train_cli(*options, "--columns", "s1,label")
    assert code == 2 and "no column 'label' of texts" in message and "call two of" in message


def hub_like(folder: Path, changes: dict[str, dict[int, dict[str, object]]]) -> Path:
    """A dataset folder with rows that our own builders do not write, as others' may be."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = schemas.dissent(MARKERS)
    parts = {("all", s): (pair_rows(9, 1), schema) for s in ("train", "validation", "test")}
    write_dataset(folder, "hub", parts)
    for split, rows in changes.items():
        path = next(folder.rglob(f"{split}-*.parquet"))
        table = pq.read_table(path)
        found = table.to_pylist()
        for row, values in rows.items():
            found[row] |= values
        nullable = pa.schema([field.with_nullable(True) for field in table.schema])
        changed = pa.Table.from_pylist(found, nullable.with_metadata(table.schema.metadata))
        pq.write_table(changed, path)
    return folder


def test_splits_with_other_labels(train_cli: Run, pairs_folder: Path, tmp_path: Path) -> None:
    schema = schemas.dissent([*MARKERS[:2], "while"])
    other = write_dataset(tmp_path / "o", "o", {("all", "test"): (pair_rows(9, 2), schema)})
    shutil.copytree(pairs_folder, tmp_path / "data")
    shard = "all/test-00000-of-00001.parquet"
    shutil.copy(other / shard, tmp_path / "data" / shard)
    code, message = train_cli(TINY, "--dataset", tmp_path / "data", "--output", tmp_path / "m")
    assert code != 0
    assert "only in the train: so" in message and "only in the test: while" in message
    assert not list(tmp_path.glob("m*"))


def test_an_empty_class(train_cli: Run, tmp_path: Path) -> None:
    schema = schemas.dissent([*MARKERS, "although"])
    parts = {("all", s): (pair_rows(12, 1), schema) for s in ("train", "validation", "test")}
    folder = write_dataset(tmp_path / "data", "empty", parts)
    options = ["--dataset", folder, "--epochs", "1"]
    code, message = train_cli(
        TINY, *options, "--output", tmp_path / "a", "--empty_classes", "error"
    )
    assert code != 0 and "no training row has the label although" in message
    code, _ = train_cli(TINY, *options, "--output", tmp_path / "b")
    assert code == 0
    results = json.loads((tmp_path / "b" / "results.json").read_text(encoding="utf-8"))
    assert results["data"]["empty_classes"] == ["although"]


def test_texts_too_long_are_counted_and_said(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    code, _ = train_cli(
        TINY,
        *("--dataset", pairs_folder, "--output", tmp_path / "m"),
        *("--max_tokens", "3", "--epochs", "1"),
    )
    assert code == 0
    results = json.loads((tmp_path / "m" / "results.json").read_text(encoding="utf-8"))
    assert results["data"]["truncated"]["train"] > 0
    assert any("cut at 3 tokens" in note for note in results["notes"])
    assert "cut at 3 tokens" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    model = BiLstmForMarkers(BiLstmConfig(vocab_size=9, embedding_size=4, hidden_size=4))
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin; only model\.safetensors"):
        BiLstmForMarkers.from_pretrained(tmp_path)


def test_a_model_of_another_class_is_refused(tmp_path: Path) -> None:
    BiLstmForMarkers(BiLstmConfig(vocab_size=9, embedding_size=4, hidden_size=4)).save_pretrained(
        tmp_path
    )
    with pytest.raises(InputError, match="discorpora-dissent-bilstm"):
        CoherenceScorer.from_pretrained(tmp_path)


def test_a_backbone_without_pad_token(
    train_cli: Run, permuted_folder: Path, tmp_path: Path
) -> None:
    from zoo.backbones import load_backbone

    table = {"model_type": "bert", "hidden_size": 16, "num_attention_heads": 2}
    table |= {"num_hidden_layers": 1, "intermediate_size": 16, "vocab_size": 400}
    load_backbone("", table).save_pretrained(tmp_path / "backbone")
    tokenizer = train_subwords(STORY, 400)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(tmp_path / "backbone")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'recipe = "coherence.contrastive"\n[settings]\nmax_steps = 2\n', encoding="utf-8"
    )
    options = ["--dataset", permuted_folder, "--backbone", tmp_path / "backbone"]
    code, message = train_cli(recipe, *options, "--output", tmp_path / "m")
    assert code != 0 and "has no pad token" in message and "--pad_token" in message
    code, message = train_cli(recipe, *options, "--output", tmp_path / "m", "--pad_token", "[SEP]")
    assert code == 0, message


def test_a_tokenizer_of_python_code_is_refused(tmp_path: Path) -> None:
    ByT5Tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="tokenizer, ByT5Tokenizer, is not supported") as caught:
        tokenizer_of(str(tmp_path))
    assert "tokenizer.json" in caught.value.hint


def test_the_suite_dissent_names_a_row_without_a_text(
    dissent_models: dict[str, Path], tmp_path: Path
) -> None:
    folder = hub_like(tmp_path / "null", {"test": {3: {"s2": None}}})
    with pytest.raises(InputError, match="row 3 of the split 'test' has no s2"):
        evaluate(DisSent(), dissent_models["ngram"], folder)


def test_too_few_negatives(train_cli: Run, permuted_folder: Path, tmp_path: Path) -> None:
    code, message = train_cli(
        "coherence/contrastive_tiny",
        *("--dataset", permuted_folder, "--output", tmp_path / "m", "--negatives", "9"),
    )
    assert code != 0 and "5 negatives" in message


def test_other_settings_at_the_same_place(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    options = ["--dataset", pairs_folder, "--output", tmp_path / "m", "--epochs", "1"]
    assert train_cli(TINY, *options)[0] == 0
    code, message = train_cli(TINY, *options, "--seed", "5")
    assert code != 0 and "seed: 0, now 5" in message


@pytest.mark.parametrize("unfinished", [False, True])
def test_another_configuration_is_another_run(
    unfinished: bool, train_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schemas.dissent(MARKERS)
    parts = {
        (config, split): (pair_rows(24, seed), schema)
        for seed, config in enumerate(("all", "balanced"))
        for split in ("train", "validation", "test")
    }
    folder = write_dataset(tmp_path / "data", "two", parts)
    options = ["--output", tmp_path / "m", "--epochs", "1"]
    if unfinished:
        with monkeypatch.context() as patch:
            patch.setattr("zoo.training.finishing.save_model", _full)
            assert train_cli(TINY, "--dataset", f"{folder}@all", *options)[0] != 0
    else:
        assert train_cli(TINY, "--dataset", f"{folder}@all", *options)[0] == 0
    code, message = train_cli(TINY, "--dataset", f"{folder}@balanced", *options)
    assert code != 0 and "dataset_config: 'all', now 'balanced'" in message
    assert train_cli(TINY, "--dataset", folder, "--dataset_config", "all", *options)[0] == 0


def _full(*_: object) -> None:
    raise OSError("no space left on device")


def test_other_contents_of_a_file_are_another_run(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("we 1 2 3\nbell 4 5 6\n", encoding="utf-8")
    options = ["dissent/sif", "--dataset", pairs_folder, "--vectors", vectors]
    options += ["--output", tmp_path / "m"]
    assert train_cli(*options)[0] == 0 and train_cli(*options)[0] == 0
    vectors.write_text("we 1 2 3\nbell 4 5 7\n", encoding="utf-8")
    code, message = train_cli(*options)
    assert code != 0 and "vectors_files" in message


def test_an_output_that_cannot_be_written(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    output = tmp_path / "file" / "model"
    code, message = train_cli(TINY, "--dataset", pairs_folder, "--output", output)
    assert code != 0 and "cannot write" in message


def test_a_full_disk_is_said_and_the_run_goes_on_later(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    options = [TINY, "--dataset", pairs_folder, "--output", tmp_path / "m", "--epochs", "1"]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # No file may grow beyond 100 kB: the weights do not fit, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        code, message = train_cli(*options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code != 0 and "cannot write" in message
    assert not (tmp_path / "m").exists()
    assert train_cli(*options)[0] == 0


def test_a_reporter_that_is_not_installed(
    train_cli: Run, pairs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    code, message = train_cli(
        TINY,
        *("--dataset", pairs_folder, "--output", tmp_path / "m"),
        *("--report_to", '["tensorboard"]'),
    )
    assert code != 0 and "discorpora[report]" in message


def test_an_empty_split(train_cli: Run, tmp_path: Path) -> None:
    schema = schemas.dissent(MARKERS)
    parts = {("all", split): (pair_rows(9, 1), schema) for split in ("train", "test")}
    folder = write_dataset(tmp_path / "d", "d", {**parts, ("all", "validation"): ([], schema)})
    code, message = train_cli(TINY, "--dataset", folder, "--output", tmp_path / "m")
    assert code != 0 and "the split 'validation' has no rows" in message


def test_fixed_embeddings_need_vectors(train_cli: Run, pairs_folder: Path, tmp_path: Path) -> None:
    options = [TINY, "--dataset", pairs_folder, "--train_embeddings", "false", "--epochs", "1"]
    code, message = train_cli(*options, "--output", tmp_path / "m")
    assert code != 0 and "--vectors" in message
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("we 1 2 3\nbell 4 5 6\n", encoding="utf-8")
    more = ["--vectors", vectors, "--output", tmp_path / "m"]
    code, message = train_cli(*options, *more)
    assert code != 0 and "--embedding_size 3" in message
    packed = tmp_path / "vectors.txt.gz"
    packed.write_bytes(gzip.compress(vectors.read_bytes()))
    code, message = train_cli(*options, "--vectors", packed, "--output", tmp_path / "m")
    assert code == 2 and "unpack it" in message
    assert train_cli(*options, *more, "--embedding_size", "3")[0] == 0
    table = load_file(tmp_path / "m" / "model.safetensors")["encoder.embeddings.weight"]
    assert [1.0, 2.0, 3.0] in table.tolist() and [4.0, 5.0, 6.0] in table.tolist()


@pytest.mark.parametrize(
    ("recipe", "column"),
    [
        ("dissent/bilstm_tiny", "s1"),
        ("conpono/tiny", "sentences"),
        ("coherence/contrastive_tiny", "document"),
        ("coherence/unc_tiny", "id"),
        ("criteria/bigru_tiny", "title"),
    ],
)
def test_a_dataset_of_another_task_is_refused_by_its_columns(
    recipe: str, column: str, tmp_path: Path, train_cli: Run
) -> None:
    import pyarrow as pa

    schema = pa.schema([pa.field("sentence", pa.string(), nullable=False)])
    configs = ("default", "documents", "pairwise", "contrastive")
    parts = {
        (config, split): ([{"sentence": "It rained."}], schema)
        for config in configs
        for split in ("train", "validation", "test")
    }
    data = write_dataset(tmp_path / "data", "other", parts)
    config = "default" if "dissent" in recipe or "conpono" in recipe else ""
    code, message = train_cli(
        recipe, "--dataset", f"{data}@{config}" if config else data, "--output", tmp_path / "model"
    )
    assert code == 2 and f"no column {column!r}" in message and "sentence" in message
    assert not (tmp_path / "model").exists()


def test_the_dropout_of_attention_is_set_or_refused(tmp_path: Path) -> None:
    table = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1}
    table |= {"num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 20}
    assert load_backbone("", table).config.attention_probs_dropout_prob == 0.1
    made = load_backbone("", table, attention_dropout=0.0)
    made.save_pretrained(tmp_path / "own")
    loaded = load_backbone(str(tmp_path / "own"), {}, attention_dropout=0.3)
    rates = {module.p for name, module in loaded.named_modules() if name.endswith("self.dropout")}
    assert rates == {0.3} and loaded.config.attention_probs_dropout_prob == 0.3
    xlnet = {"model_type": "xlnet", "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 8}
    with pytest.raises(ConfigError, match="none of its own"):
        load_backbone("", xlnet, attention_dropout=0.0)
    bare = load_backbone("", table, hidden_dropout=0.0)
    assert bare.config.hidden_dropout_prob == 0 and bare.config.attention_probs_dropout_prob == 0.1
    assert load_backbone("", xlnet, hidden_dropout=0.2).config.dropout == 0.2


@pytest.mark.parametrize("name", ["/nowhere/model", "./model", "build/models/dissent"])
def test_a_path_that_is_not_there_is_no_hub_id(name: str) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        load_backbone(name, {})
    with pytest.raises(ConfigError, match="no such folder"):
        tokenizer_of(name)


def test_a_tokenizer_that_cannot_be_written(tmp_path: Path) -> None:
    tokenizer = train_subwords(["It was dark."], 300)
    model = BiLstmForMarkers(BiLstmConfig(vocab_size=5, embedding_size=2, hidden_size=2))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The weights fit, the vocabulary does not.
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, before[1]))
    try:
        with pytest.raises(DiscorporaError, match="cannot write"):
            save_model(model, tokenizer, tmp_path / "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
