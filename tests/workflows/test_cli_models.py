"""The commands that work with models, on tiny ones trained here."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

from corpora import schemas
from extract.patterns import resolve_markers
from tests.processes import ran
from tests.zoo.conftest import orders_of, pair_rows, story_documents, write_dataset
from workflows.cli import app as cli
from zoo.train import train

TEXTS = ("She opened the door. It was dark inside. She lit a lamp.", "Rain. A lamp. The door.")


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts: dict[tuple[str, str], tuple[list[dict[str, Any]], Any]] = {}
    for seed, split in enumerate(("train", "validation", "test")):
        documents = story_documents(4, seed)
        parts["documents", split] = documents, schemas.PERMUTED_DOCUMENTS
        parts["pairwise", split] = orders_of(documents, 1, 2), schemas.PERMUTED_PAIRWISE
    folder = tmp_path_factory.mktemp("scorer")
    data = write_dataset(folder / "data", "permuted", parts)
    options = ["--objective", "pairwise", "--max_steps", "2", "--vocab_size", "200"]
    where = ["--dataset", str(data), "--output", str(folder / "model")]
    train(["coherence/contrastive_tiny", *options, *where])
    return folder / "model"


@pytest.fixture(scope="module")
def markers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model of markers, and its dataset."""
    folder = tmp_path_factory.mktemp("markers")
    schema = schemas.dissent(["because", "but", "so"])
    sizes = {"train": 60, "validation": 12, "test": 12}
    parts = {
        ("all", split): (pair_rows(size, seed), schema)
        for seed, (split, size) in enumerate(sizes.items())
    }
    data = write_dataset(folder / "data", "dissent", parts)
    train(["dissent/ngram", "--dataset", f"{data}@all", "--output", str(folder / "model")])
    return folder / "model", data


@pytest.fixture
def discorpora(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run `discorpora ARGUMENTS`: exit code, output, errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["discorpora", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
            sys.exit(0)
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return run


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for file, text in zip(files, TEXTS, strict=True):
        file.write_text(text, encoding="utf-8")
    return files


def test_score_gives_a_line_a_text(
    scorer: Path, texts: list[Path], discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, _ = discorpora("score", *texts, "--model", scorer, "--json", "--explain")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [row["text"] for row in rows] == [str(path) for path in texts]
    assert all(0 <= row["percentile"] <= 100 and row["windows"] == 1 for row in rows)
    assert [len(row["effects"]) for row in rows] == [3, 3]


def test_score_without_a_model_is_the_shipped_scorer(
    texts: list[Path], tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    one = tmp_path / "single.txt"
    one.write_text("It rained.", encoding="utf-8")
    code, out, err = discorpora("score", *texts, one, "--json", "--explain")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["percentile"] is None for row in rows] == [False, False, True]
    assert rows[0]["reference"]["texts"] > 100 and "reference" not in rows[2]
    code, out, _ = discorpora("score", *texts, "--explain")
    assert code == 0 and f"among {rows[0]['reference']['texts']:,} texts" in out
    assert out.count("no sentence stands out") + out.count("fits least") == 2


def test_a_broken_or_a_strange_model_is_one_line(
    scorer: Path, texts: list[Path], tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    half = tmp_path / "half"
    shutil.copytree(scorer, half)
    weights = half / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "meta.json").write_text('{"lang": "en", "name": "pipeline"}', encoding="utf-8")
    for folder, message in ((half, "damaged or cut short"), (strange, "no model here")):
        code, _, err = discorpora("score", *texts, "--model", folder)
        assert code == 1 and message in err and "Traceback" not in err


def test_a_model_that_is_nowhere_is_said_without_asking_the_hub_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Anna sang. We listened.")
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    done = ran(
        [sys.executable, "-m", "workflows.cli.app", "score", "--model", "nomodel", "a.txt"],
        cwd=tmp_path,
        env={**os.environ, **nobody, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert done.returncode == 1 and "Retry" not in done.stderr
    assert done.stderr.startswith("error: nomodel: there is no such folder, and the Hub cannot be")


def test_scores_in_bfloat16_are_nearly_those_in_float32(
    scorer: Path, texts: list[Path], discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    found = []
    for more in ((), ("--bf16",)):
        _, out, _ = discorpora("score", *texts, "--model", scorer, "--json", *more)
        found.append([json.loads(line)["score"] for line in out.splitlines()])
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], abs=0.05)


def test_rank_orders_the_alternatives_by_score(
    scorer: Path, texts: list[Path], tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    _, out, _ = discorpora("score", *texts, "--model", scorer, "--rank", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["rank"] for row in rows] == [1, 2]
    assert rows[0]["score"] >= rows[1]["score"]
    records = tmp_path / "choices.jsonl"
    records.write_text('{"prompt": "It rained."}\n', encoding="utf-8")
    code, _, err = discorpora("score", records, "--model", scorer, "--rank")
    assert code == 1 and f"{records}:1" in err and '"alternatives"' in err


def test_a_text_file_that_is_not_there_or_empty(
    scorer: Path, tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n", encoding="utf-8")
    bad = (
        (empty, "holds no text"),
        (tmp_path / "none.txt", "no such file"),
        (tmp_path, "is a folder, expected a file"),
    )
    for file, message in bad:
        code, _, err = discorpora("score", file, "--model", scorer)
        assert code == 1 and message in err and str(file) in err


def test_a_pipe_is_read_as_standard_input_is(
    scorer: Path, tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for text, names in (
        ("It rained.", [str(pipe)]),
        ('{"text": "It rained."}\n', ["stdin:000001"]),
    ):
        writer = Thread(target=pipe.write_text, args=(text,), daemon=True)
        writer.start()
        code, out, _ = discorpora("score", pipe, "--model", scorer, "--json")
        assert code == 0 and [json.loads(line)["text"] for line in out.splitlines()] == names


def test_a_recipe_is_no_trained_model(
    texts: list[Path], discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, err = discorpora("score", *texts, "--model", "coherence/minilm")
    assert code == 1 and "is a recipe, not a trained model" in err
    assert "discorpora train coherence/minilm" in err


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Put bytes where the command reads standard input."""

    def put(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    return put


def test_a_prompt_may_be_missing_null_or_a_list(
    scorer: Path, tmp_path: Path, discorpora: Run
) -> None:
    """With a byte-order mark and a blank line, as editors leave them."""
    ends = ["She lit a lamp.", "The door."]
    prompts: list[dict[str, Any]] = [{}, {"prompt": None}, {"prompt": ""}, {"prompt": []}]
    prompts += [{"prompt": "It rained. She left."}, {"prompt": ["It rained.", "She left."]}]
    records = [json.dumps({**prompt, "alternatives": ends}) for prompt in prompts]
    file = tmp_path / "choices.jsonl"
    file.write_text("\ufeff" + "\n\n".join(records), encoding="utf-8")
    code, out, err = discorpora("score", file, "--model", scorer, "--rank", "--json")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["prompt"] for row in rows[::2]] == ["1", "3", "5", "7", "9", "11"]
    scores = [
        {row["alternative"]: row["score"] for row in rows[i : i + 2]} for i in range(0, 12, 2)
    ]
    assert all(row.keys() == {"1", "2"} for row in scores)
    assert scores[0] == scores[1] == scores[2] == scores[3]
    assert scores[4] == scores[5] != scores[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"alternatives": []}', "field 'alternatives' is an empty list"),
        (b'{"alternatives": "One."}', "field 'alternatives' is a string"),
        (b'{"alternatives": ["One.", " "]}', "an alternative is blank"),
        (b'{"alternatives": ["One."], "prompt": 3}', "field 'prompt' is a number"),
        (b'{"alternatives": ["One."], "prompt": "\\ud800"}', "half a surrogate pair"),
        (b'{"alternatives": ["caf\xe9"]}', "not UTF-8: byte 0xe9"),
        (b'["One."]', "not an object"),
        (b"One.", "not JSON"),
        (b"", "has no record to rank"),
    ],
)
def test_a_record_that_cannot_be_ranked(
    line: bytes, message: str, tmp_path: Path, discorpora: Run
) -> None:
    """Said before a model is looked for: there is none here."""
    file = tmp_path / "choices.jsonl"
    file.write_bytes(b"\n" + line)
    code, _, err = discorpora("score", file, "--model", tmp_path / "none", "--rank")
    assert code == 1 and message in err and str(file) in err and '"alternatives"' in err


def test_standard_input_is_text_or_json_lines(
    scorer: Path, texts: list[Path], discorpora: Run, stdin: Callable[[bytes], None]
) -> None:
    def rows(*options: str) -> list[dict[str, Any]]:
        code, out, err = discorpora("score", "-", "--model", scorer, "--json", *options)
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines()]

    stdin("\ufeff{She} opened the door. It was dark inside.".encode())
    assert [(row["text"], row["sentences"]) for row in rows()] == [("-", 2)]
    stdin("".join(json.dumps({"id": t, "text": t}) + "\n" for t in TEXTS).encode())
    assert [row["text"] for row in rows()] == list(TEXTS)
    stdin(json.dumps({"id": "x", "alternatives": list(TEXTS)}).encode())
    assert [row["prompt"] for row in rows("--rank")] == ["x", "x"]
    ranked = ("--model", scorer, "--rank", "--prompt", "-", "--json")
    stdin(b"It rained.")
    code, out, err = discorpora("score", *texts, *ranked)
    assert code == 0 and json.loads(out.splitlines()[0])["prompt"] == "-", err
    stdin(b"It rained.")  # it is read once
    code, _, err = discorpora("score", "-", *ranked)
    assert code == 1 and "standard input: holds no text" in err


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"It was dark.\nA caf\xe9.", "standard input:2: not UTF-8: byte 0xe9 at column 6"),
        (b'{"text": "It was dark."}\n{"text": 3', "standard input:2: not JSON"),
        (b'{"text": "\\udc00"}', "half a surrogate pair"),
        (b" \n", "standard input: holds no text"),
        (b"\x1f\x8bzipped", "gzip"),
        pytest.param(
            b'{"id": "x", "text": "%s"}' % (b"a" * (1 + (4 << 20))),
            "standard input: x: too long",
            id="too long",
        ),
    ],
)
def test_bad_standard_input_is_said_before_a_model_is_loaded(
    data: bytes,
    message: str,
    tmp_path: Path,
    discorpora: Run,
    stdin: Callable[[bytes], None],
) -> None:
    stdin(data)
    code, _, err = discorpora("score", "-", "--model", tmp_path / "none")
    assert code == 1 and message in err and "standard input" in err
    stdin(data)
    code, _, err = discorpora("score", "-", "--model", tmp_path / "none", "--rank")
    assert code == 1 and "no model" not in err and "standard input" in err


@pytest.mark.parametrize("suffix", [".ndjson", ".JSONL", ".jsonl.gz", ".ndjson.gz"])
def test_json_lines_are_known_by_every_suffix_of_the_reader(
    suffix: str, scorer: Path, tmp_path: Path, discorpora: Run
) -> None:
    pack = gzip.compress if suffix.endswith(".gz") else bytes
    file = tmp_path / f"texts{suffix}"
    file.write_bytes(pack("".join(json.dumps({"id": t, "text": t}) + "\n" for t in TEXTS).encode()))
    code, out, err = discorpora("score", file, "--model", scorer, "--json")
    assert code == 0, err
    assert [json.loads(line)["text"] for line in out.splitlines()] == list(TEXTS)
    file.write_bytes(pack(json.dumps({"alternatives": list(TEXTS)}).encode()))
    code, out, err = discorpora("score", file, "--model", scorer, "--rank", "--json")
    assert code == 0, err
    assert len(out.splitlines()) == 2
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("It rained.", encoding="utf-8")
    words = ("--model", tmp_path / "none", "--rank", "--prompt", prompt)
    code, _, err = discorpora("score", file, *words)
    assert code == 1 and "--prompt is for text files" in err


def test_percentiles_in_a_reference_of_ones_own(
    scorer: Path, texts: list[Path], discorpora: Run
) -> None:
    own = ("--reference", texts[0], "--reference", texts[1])
    code, out, err = discorpora("score", *texts, "--model", scorer, "--json", *own)
    assert code == 0, err
    assert sorted(json.loads(line)["percentile"] for line in out.splitlines()) == [0.0, 100.0]


def test_out_of_memory_says_what_to_do(
    discorpora: Run,
    texts: list[Path],
    scorer: Path,
    markers: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("zoo.coherence.CoherenceScorer.score_ids", full)
    monkeypatch.setattr("zoo.dissent.modeling.NgramForMarkers.forward", full)
    for words in (
        ["score", "--model", scorer, *texts],
        ["score", "--model", scorer, "--rank", *texts],
        ["predict-marker", "--model", markers[0], "Anna sang.", "Bela left."],
    ):
        code, out, err = discorpora(*words)
        assert code == 1 and not out
        assert "out of memory on the GPU" in err and "run it on the CPU" in err


def test_predict_marker_for_two_sentences_and_for_a_file(
    markers: tuple[Path, Path], tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    model, _ = markers
    code, out, _ = discorpora("predict-marker", "--model", model, "Anna waited.", "The old house.")
    *lines, prior = out.splitlines()
    found = {line.split()[1]: float(line.split()[0]) for line in lines}
    assert prior.startswith("prior: equal (")
    assert code == 0 and set(found) == {"because", "but", "so"}
    assert sum(found.values()) == pytest.approx(1, abs=1e-3)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("s1\ts2\nAnna waited.\tThe old house.\n", encoding="utf-8")
    _, out, _ = discorpora("predict-marker", "--model", model, pairs, "--top", 1)
    [(marker, probability), prior] = json.loads(out).items()
    assert prior == ("prior", "equal")
    assert (
        found[marker]
        == pytest.approx(probability, abs=1e-4)
        == pytest.approx(max(found.values()), abs=1e-4)
    )
    code, _, err = discorpora("predict-marker", "Anna waited.")
    assert code == 1 and "neither two sentences nor a file" in err
    code, _, err = discorpora("predict-marker", model, pairs)
    assert code == 1 and "a folder, not a sentence" in err and "--model" in err
    code, _, err = discorpora("predict-marker", "Anna waited.", " ")
    assert code == 1 and "the second sentence is empty" in err
    code, _, err = discorpora("predict-marker", "--model", model, "It rained. " * 40, "We left.")
    assert code == 0, err


def test_the_shipped_predictor_needs_no_model(
    discorpora: Callable[..., tuple[int, str, str]],
) -> None:
    pair = "We stayed inside.", "It rained all day."
    shares = {}
    for options, name in (((), "equal"), (("--prior", "corpus"), "corpus")):
        code, out, _ = discorpora("predict-marker", *pair, *options)
        *lines, prior = out.splitlines()
        shares[name] = {line.split()[1]: float(line.split()[0]) for line in lines}
        assert code == 0 and prior.startswith(f"prior: {name} (")
        assert sum(shares[name].values()) == pytest.approx(1, abs=1e-3)
        assert set(shares[name]) == set(resolve_markers("books8"))
    # The training pairs have "and" some thirty times as often as "because".
    odds = {name: share["and"] / share["because"] for name, share in shares.items()}
    assert odds["corpus"] > 15 * odds["equal"]
    code, _, err = discorpora("predict-marker", *pair, "--prior", "flat")
    assert code == 1 and "no prior 'flat'" in err


def test_compare_puts_results_into_one_table(
    markers: tuple[Path, Path], tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    model, data = markers
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        words = ("--model", model, "--data", f"{data}@all", "--json", file, "--name", file.stem)
        assert discorpora("evaluate", "dissent", *words)[0] == 0
    code, out, _ = discorpora("compare", *files, "--no-published")
    assert code == 0 and "| a |" in out and "| b |" in out and "| rule: majority |" in out
    changed = json.loads(files[1].read_text(encoding="utf-8"))
    changed["dataset"]["revision"] = "another"
    files[1].write_text(json.dumps(changed), encoding="utf-8")
    code, _, err = discorpora("compare", *files)
    assert code == 1 and "another" in err


def test_other_checkpoints_are_not_converted(
    tmp_path: Path, discorpora: Callable[..., tuple[int, str, str]]
) -> None:
    file = tmp_path / "model.pt"
    file.write_bytes(b"no checkpoint")
    code, _, err = discorpora("convert", "coherence", file, "-o", tmp_path / "out")
    assert code == 1 and "cannot be read" in err and "state dict" in err
    assert not (tmp_path / "out").exists()


def test_texts_in_another_language_are_named(
    discorpora: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    german = ("Die Tür stand offen, aber es war niemand da.", "Der Hund schlief auf dem Sofa.")
    english = ("The door was open, but nobody was there.", "The dog slept on the sofa.")
    for name, text in (("de", german), ("en", english)):
        (tmp_path / f"{name}.txt").write_text(" ".join(text), encoding="utf-8")
    files = [tmp_path / "de.txt", tmp_path / "en.txt"]
    code, out, err = discorpora("score", "--json", *files)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and rows[0]["foreign"] == "German" and "foreign" not in rows[1]
    assert rows[0]["percentile"] is None and rows[1]["percentile"] is not None
    assert "1 text is not in English" in err and "de.txt (German)" in err
    code, _, err = discorpora("score", "--rank", *files)
    assert code == 0 and "1 alternative is not in English" in err
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("\n".join(map("\t".join, (english, german))), encoding="utf-8")
    for words, named in ((german, "pair 1"), ([pairs], "pair 2")):
        code, _, err = discorpora("predict-marker", *words)
        assert code == 0 and "1 pair is not in English" in err and f"{named} (German)" in err
    assert "not in English" not in discorpora("predict-marker", *english)[2]
