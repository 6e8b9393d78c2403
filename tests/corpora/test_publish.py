"""Publishing through the real client, to a small Hub on this machine."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from huggingface_hub import EvalResult, ModelCardData, RepoCard

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.publish import PublishResult, plan_publication, publish
from corpora.publish.hub import Hub, PublishSettings
from corpora.publish.plan import BEGIN, END, merged_card
from corpora.store.atomic import MANIFEST, sha256, staged, write_json
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from corpora.store.rows import class_label
from tests.hub_server import HubServer
from tests.hub_state import Blob
from tests.processes import ran

TOKEN = "hf_" + "Secret7" * 5
ID = "ana/sentences"
ROOT = Path(__file__).resolve().parents[2]
CARD = Card("Sentences", "What it is.", "How it was made.", {"text": "a text"}, "@misc{x}")
SCHEMA = pa.schema([pa.field("text", pa.string()), class_label("label", ["no", "yes"])])
ROUTES = {
    "whoami": "GET /api/whoami-v2",
    "info": "GET /api/datasets/ana/sentences$",
    "create": "POST /api/repos/create",
    "tree": "GET .*/tree/",
    "read": "GET .*/resolve/",
    "validate": "POST /api/validate-yaml",
    "preupload": "POST .*/preupload/",
    "batch": "POST .*/objects/batch",
    "upload": "PUT /lfs/",
    "verify": "POST /lfs/.*/verify",
    "commit": "POST .*/commit/",
}
ONCE_TRIED = ("whoami", "info", "create", "read", "validate", "commit")

Publish = Callable[..., PublishResult]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    import huggingface_hub.utils
    from huggingface_hub import constants

    huggingface_hub.utils.disable_progress_bars()
    # The local Hub takes large files over LFS; and other tests may have asked to stay offline.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-login"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    hub = HubServer()
    hub.add_user(TOKEN, "ana", lab="write", club="read")
    with hub.running():
        yield hub


@pytest.fixture
def send(server: HubServer, folder: Path) -> Publish:
    """`publish` to the local Hub, in a hurry."""

    def send(place: Path = folder, id: str = ID, *, token: str = TOKEN, **options: Any) -> Any:
        keys = PublishSettings.__dataclass_fields__
        chosen = {key: options.pop(key) for key in list(options) if key in keys}
        settings = PublishSettings(**{"first_wait": 0.01, **chosen})
        return publish(place, id, hub=Hub(token, endpoint=server.url, settings=settings), **options)

    return send


def make(
    place: Path, word: str = "row", rows: int = 24, licence: str = "CC-BY-4.0", card: Card = CARD
) -> Path:
    """A dataset folder: configuration `one` in shards of eight rows, `two` in a single one."""
    source = {"spec": "text:notes", "revision": "r1", "licence": licence}
    stage = Stage("sample-stage", 1, f"hash-of-{word}", {"size": rows}, {}, [source])
    lines = [{"text": f"{word} number {i}", "label": i % 2} for i in range(rows)]
    with (
        staged(place) as partial,
        DatasetFolder(partial, "sample", stage, card, rows_per_shard=8, rows_per_group=8) as data,
    ):
        data.writer("one", "train", SCHEMA, texts=("text",)).extend(lines)
        data.writer("one", "test", SCHEMA, texts=("text",)).extend(lines[:4])
        data.writer("two", "train", SCHEMA).extend([{"text": "always the same", "label": 1}])
        data.licences[licence] += rows
        data.finish("one")
    return place


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("made") / "dataset")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "dataset")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder as training leaves it, its run's own hidden file named by the manifest too."""
    place = tmp_path / "model"
    place.mkdir()
    (place / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    write_json(place / "config.json", {"model_type": "discorpora-test"})
    write_json(place / "results.json", {"licences": {"data sample": ["CC0-1.0"]}})
    example = 'folder = "."  # this folder, or the id of the model'
    card = f"---\nlicense: CC0-1.0\ntags: [discorpora]\n---\n\n# M\n\n`{example}`\n"
    (place / "README.md").write_text(card)
    sums = {path.name: sha256(path) for path in place.iterdir()} | {".job.json": "0" * 64}
    write_json(place / MANIFEST, {"settings": {"seed": 0}, "files": sums})
    return place


def files_of(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def remote(server: HubServer, id: str = ID, kind: str = "dataset") -> dict[str, bytes]:
    blobs = server.repository(id, kind).files
    return {path: blob.data for path, blob in blobs.items() if path != ".gitattributes"}


def edit(server: HubServer, path: str, data: bytes, id: str = ID) -> None:
    """A commit that somebody makes on the Hub's pages."""
    repository = server.repository(id)
    repository.commit("edited by hand", {**repository.files, path: Blob(data, False)})


# --- what is pushed -----------------------------------------------------------------------------


def test_folder_and_card_go_up_in_one_commit(
    server: HubServer, send: Publish, folder: Path
) -> None:
    server.page = 2
    result = send()
    assert set(result.written) == set(remote(server))
    assert result.status == "published"
    there, here = remote(server), files_of(folder)
    assert {**there, "README.md": b""} == {**here, "README.md": b""}
    assert [title for _, title, _ in server.repository(ID).commits] == [
        "initial commit",
        "Publish sample with discorpora",
    ]
    assert result.revision == server.repository(ID).head
    assert result.url == f"{server.url}/datasets/{ID}"


def test_the_card_names_the_repository_and_keeps_our_metadata(
    server: HubServer, send: Publish, folder: Path
) -> None:
    send()
    card = RepoCard(remote(server)["README.md"].decode())
    ours = RepoCard.load(folder / "README.md").data.to_dict()
    assert card.data.to_dict() == {**ours, "license": "cc-by-4.0"}
    assert f'load_dataset("{ID}")' in card.text


def test_a_second_publication_pushes_nothing(server: HubServer, send: Publish) -> None:
    first = send()
    server.seen.clear()
    second = send()
    assert (second.status, second.revision) == ("unchanged", first.revision)
    assert not server.count("POST") and not server.count("PUT")


def test_changed_data_is_one_commit_that_leaves_no_old_shard(
    server: HubServer, send: Publish, tmp_path: Path
) -> None:
    send()
    server.seen.clear()
    changed = make(tmp_path / "changed", word="line", rows=12)
    result = send(changed)
    assert server.count("POST .*/commit/") == 1
    assert {**remote(server), "README.md": b""} == {**files_of(changed), "README.md": b""}
    assert "one/train-00002-of-00003.parquet" in result.deleted
    # `two` holds the same row as before: its bytes do not travel again.
    assert "two/train-00000-of-00001.parquet" not in result.written


def test_files_that_people_added_stay(server: HubServer, send: Publish, tmp_path: Path) -> None:
    send()
    added = ("figures/plot.svg", "one/train-notes/of-ours.parquet")
    for path in added:
        edit(server, path, b"<svg/>")
    send(make(tmp_path / "changed", word="line"))
    assert [remote(server).get(path) for path in added] == [b"<svg/>"] * 2


def test_a_manifest_of_somebody_else_owns_no_files(server: HubServer, send: Publish) -> None:
    server.make(ID)
    for path, data in (("old.csv", b"a"), (MANIFEST, b'[{"configs": "old.csv"}]')):
        edit(server, path, data)
    assert send().status == "published"
    assert remote(server)["old.csv"] == b"a"


@pytest.mark.parametrize("lost", ["two/train-00000-of-00001.parquet", "audit.json"])
def test_a_file_lost_on_the_hub_is_sent_again(server: HubServer, send: Publish, lost: str) -> None:
    send()
    repository = server.repository(ID)
    repository.commit("lost", {p: b for p, b in repository.files.items() if p != lost})
    assert send().status == "published"
    assert lost in remote(server)


def test_what_the_manifest_does_not_name_stays_at_home(
    server: HubServer, send: Publish, folder: Path
) -> None:
    (folder / "notes.txt").write_text("my own")
    assert send().plan.left_out == ("notes.txt",)
    assert "notes.txt" not in remote(server)


def test_a_model_is_published_the_same_way(server: HubServer, send: Publish, model: Path) -> None:
    result = send(model, "lab/scorer", kind="model")
    there = remote(server, "lab/scorer", "model")
    assert result.url == f"{server.url}/lab/scorer"
    assert {**there, "README.md": b""} == {**files_of(model), "README.md": b""}
    card = there["README.md"].decode()
    assert RepoCard(card).data.license == "cc0-1.0"
    assert 'folder = "lab/scorer"' in card
    assert send(model, "lab/scorer", kind="model").status == "unchanged"


def test_a_model_brings_its_figures_in_the_form_of_the_hub(
    server: HubServer, send: Publish, model: Path
) -> None:
    """The first figure of each configuration's test split: a task of the dataset's `eval.yaml`."""

    def figure(split: str, kind: str, value: float, config: str = "one") -> EvalResult:
        return EvalResult(
            *("text-classification", "sample", "sample", kind, value),
            dataset_config=config,
            dataset_split=split,
            dataset_revision="0123abcd",
            metric_name=f"{split} {kind}",
        )

    figures = [
        *(figure("validation", "accuracy", 0.5), figure("test", "accuracy", 0.7)),
        *(figure("test", "f1", 0.6), figure("test", "accuracy", 0.8, "two")),
    ]
    metadata = ModelCardData(license="cc0-1.0", model_name="M", eval_results=figures)
    (model / "README.md").write_text(f"---\n{metadata}\n---\n\n# M\n")
    assert send(model, "lab/none", kind="model").plan.made == {}
    result = send(model, "lab/scorer", kind="model", dataset=ID)
    there = remote(server, "lab/scorer", "model")[".eval_results/discorpora.yaml"]
    assert ".eval_results/discorpora.yaml" in result.written
    assert yaml.safe_load(there) == [
        {"dataset": {"id": ID, "task_id": task}, "value": value, "notes": "test accuracy"}
        for task, value in (("one", 0.7), ("two", 0.8))
    ]
    assert send(model, "lab/scorer", kind="model", dataset=ID).status == "unchanged"
    assert send(model, "lab/scorer", kind="model", dataset="ana/moved").status == "published"
    with pytest.raises(ConfigError, match="only a model has figures"):
        send(dataset=ID)


def test_a_benchmark_says_so(server: HubServer, send: Publish, tmp_path: Path) -> None:
    """Only configurations with test rows are tasks."""
    benchmark = make(tmp_path / "benchmark", card=replace(CARD, benchmark=True))
    send(benchmark)
    assert yaml.safe_load(remote(server)["eval.yaml"]) == {
        "name": "Sentences",
        "description": "What it is.",
        "evaluation_framework": "discorpora",
        "tasks": [{"id": "one", "config": "one", "split": "test"}],
    }


def test_an_upload_broken_off_changes_nothing_and_goes_on_from_there(
    server: HubServer, send: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpora.publish.repository.FILES_AN_UPLOAD", 2)
    send()
    before = remote(server)
    new = make(tmp_path / "new", word="line", rows=40)
    server.seen.clear()
    server.once(
        ROUTES["verify"], lambda: server.fail("POST .*/batch", status=403, times=9), late=True
    )
    with pytest.raises(DiscorporaError, match=r"uploading files .* does not permit this"):
        send(new)
    assert remote(server) == before and server.count("PUT /lfs/") == 2
    server.faults.clear()
    server.seen.clear()
    assert send(new).status == "published"
    assert server.count("PUT /lfs/") == 4 and server.count(ROUTES["commit"]) == 1
    assert {**remote(server), "README.md": b""} == {**files_of(new), "README.md": b""}


def test_each_batch_of_uploads_has_its_own_tries(
    server: HubServer, send: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpora.publish.repository.FILES_AN_UPLOAD", 1)

    def cut() -> None:  # once a batch: five in all, of three tries each
        server.fail("POST .*/preupload/", status=409)
        if server.count("POST .*/verify") < 4:
            server.once(ROUTES["verify"], cut, late=True)

    cut()
    assert send(attempts=2).status == "published"
    assert server.count("POST .*/preupload/") > 9 and server.count("PUT /lfs/") == 5


def test_private_is_private(server: HubServer, send: Publish) -> None:
    send(private=True)
    assert server.repository(ID).private
    server.make("ana/open")
    with pytest.raises(ConfigError, match="public"):
        send(id="ana/open", private=True)


# --- the card -----------------------------------------------------------------------------------

THEIRS = """---
license: other
license_name: mine
tags:
- linguistics
- discorpora
annotations_creators:
- expert-generated
---
# Read this first

Ask us before you train.
"""


def test_a_card_written_by_hand_is_kept_and_ours_follows(server: HubServer, send: Publish) -> None:
    server.make(ID)
    edit(server, "README.md", THEIRS.encode())
    send()
    card = RepoCard(remote(server)["README.md"].decode())
    data, text = card.data.to_dict(), card.text
    assert data["annotations_creators"] == ["expert-generated"]
    assert data["tags"] == ["linguistics", "discorpora", "discourse"]
    assert data["license"] == "cc-by-4.0" and "license_name" not in data
    assert [config["config_name"] for config in data["configs"]] == ["one", "two"]
    assert text.startswith("# Read this first\n\nAsk us before you train.\n\n" + BEGIN)


def test_what_stands_around_our_part_survives_the_next_version(
    server: HubServer, send: Publish, tmp_path: Path
) -> None:
    send()
    card = remote(server)["README.md"].decode()
    edited = card.replace(BEGIN, f"Before.\n{BEGIN}") + "\n## Users\r\n\r\nAfter, é.\n"
    edit(server, "README.md", edited.encode())
    send(make(tmp_path / "changed", word="line"))
    text = remote(server)["README.md"].decode()
    assert "Before.\n" + BEGIN in text and text.endswith("\n## Users\r\n\r\nAfter, é.\n")
    assert "line number 0" in text and "row number 0" not in text
    assert text.count(BEGIN) == text.count(END) == 1


@pytest.mark.parametrize(
    ("card", "why"),
    [
        (f"# Card\n{BEGIN}\nno end", "needs one"),
        (f"{END}\n{BEGIN}", "needs one"),
        (f"{BEGIN}\n{END}\n{BEGIN}\n{END}", "needs one"),
        ("---\na: [1\n---\n# Card", "not a YAML table"),
        ("---\n- a\n---\n# Card", "not a YAML table"),
    ],
)
def test_a_card_that_cannot_be_merged_is_refused_and_nothing_is_pushed(
    server: HubServer, send: Publish, card: str, why: str
) -> None:
    server.make(ID)
    edit(server, "README.md", card.encode())
    with pytest.raises(InputError, match=why) as caught:
        send()
    assert ID in caught.value.where and caught.value.hint
    assert set(remote(server)) == {"README.md"}


def test_an_empty_value_of_ours_replaces_nothing() -> None:
    ours, theirs = "---\nlanguage: []\na: 1\n---\nx", "---\nlanguage: [cs]\na: 2\n---\n"
    card = RepoCard(merged_card(RepoCard(ours), theirs, where=""))
    assert card.data.to_dict() == {"language": ["cs"], "a": 1}


# --- a Hub that fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONCE_TRIED)
@pytest.mark.parametrize("status", [429, 500, 503, 0])
def test_a_passing_failure_is_tried_again(
    server: HubServer, send: Publish, name: str, status: int
) -> None:
    headers = {"Retry-After": "0"} if status == 429 else {}
    server.fail(ROUTES[name], status=status, times=2, headers=headers)
    assert send().status == "published"
    assert len(server.repository(ID).commits) == 2


@pytest.mark.parametrize("status", [429, 0])
def test_a_passing_failure_of_the_uploads_is_tried_again(
    server: HubServer, send: Publish, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Here the client itself waits, at least a second each: not in this test.
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    for name in set(ROUTES) - set(ONCE_TRIED):
        server.fail(ROUTES[name], status=status, headers={"Retry-After": "0"})
    assert send().status == "published"
    assert len(server.repository(ID).commits) == 2


def test_a_page_of_html_in_place_of_an_answer_is_tried_over(
    server: HubServer, send: Publish
) -> None:
    for name in ("validate", "info"):
        server.fail(ROUTES[name], status=502, body=b"<html>Bad gateway</html>", times=2)
    assert send().status == "published"


@pytest.mark.parametrize("name", ["create", "commit"])
def test_a_lost_answer_makes_no_second_commit(server: HubServer, send: Publish, name: str) -> None:
    server.drop(ROUTES[name], late=True)
    assert send().status == "published"
    assert len(server.repository(ID).commits) == 2


def test_somebody_elses_push_in_between_is_merged(server: HubServer, send: Publish) -> None:
    server.make(ID)
    server.once(ROUTES["commit"], lambda: edit(server, "README.md", THEIRS.encode()))
    assert send().status == "published"
    assert "Ask us before you train." in remote(server)["README.md"].decode()


def test_tries_are_bounded(server: HubServer, send: Publish) -> None:
    server.fail(ROUTES["whoami"], status=503, times=99)
    with pytest.raises(DiscorporaError, match=r"503.*try 3 of 3") as caught:
        send(attempts=3)
    assert server.count("whoami") == 3 and caught.value.hint


def test_the_hub_is_given_the_time_it_asks_for(server: HubServer, send: Publish) -> None:
    server.fail(ROUTES["whoami"], status=429, headers={"Retry-After": "1"})
    start = time.monotonic()
    send()
    assert time.monotonic() - start > 1


def test_too_long_a_wait_is_said_and_not_waited(server: HubServer, send: Publish) -> None:
    date = "Fri, 31 Dec 2100 23:59:59 GMT"
    dates = ({"Retry-After": date.replace("GMT", zone)} for zone in ("GMT", "-0000", ""))
    for asked in ({"Retry-After": "4000"}, *dates, {"RateLimit": '"api";r=0;t=900'}):
        server.fail(ROUTES["whoami"], status=429, headers=asked)
        with pytest.raises(DiscorporaError, match="429") as caught:
            send(longest_wait=5.0)
        assert "asks to wait" in caught.value.hint


def test_no_connection_is_an_error_for_people(folder: Path, server: HubServer) -> None:
    settings = PublishSettings(attempts=2, first_wait=0.01)
    hub = Hub(TOKEN, endpoint="http://127.0.0.1:9", settings=settings)
    with pytest.raises(DiscorporaError, match="no connection"):
        publish(folder, ID, hub=hub)


def test_what_the_hub_holds_is_compared_after_the_push(server: HubServer, send: Publish) -> None:
    def spoil() -> None:
        server.repository(ID).files["two/train-00000-of-00001.parquet"] = Blob(b"other", True)

    server.once(ROUTES["commit"], spoil, late=True)
    with pytest.raises(DiscorporaError, match="differs from what was sent: two/train"):
        send()


# --- refused, with the reason -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "why"),
    [("bob/sentences", "not a member of"), ("club/sentences", "may only read in")],
)
def test_a_namespace_one_may_not_write_to(
    server: HubServer, send: Publish, id: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        send(id=id)
    assert "ana, lab" in caught.value.hint
    assert not server.count("POST")


def test_a_token_that_may_only_read(server: HubServer, send: Publish) -> None:
    server.add_user("hf_reader", "ana", role="read")
    with pytest.raises(ConfigError, match="may only read"):
        send(token="hf_reader")


def test_a_right_that_the_hub_denies(server: HubServer, send: Publish) -> None:
    server.fail(ROUTES["create"], status=403, body=b'{"error": "no right to create in ana"}')
    with pytest.raises(DiscorporaError, match="no right to create in ana") as caught:
        send()
    assert "token" in caught.value.hint and server.count("repos/create") == 1


def test_metadata_that_the_hub_refuses_cost_no_upload(server: HubServer, send: Publish) -> None:
    body = b'{"errors": [{"message": "\\"license\\" must be one of a list"}], "warnings": []}'
    server.fail(ROUTES["validate"], status=400, body=body)
    with pytest.raises(DiscorporaError, match="must be one of a list"):
        send()
    assert not server.count("POST .*/commit/") and not server.count("PUT /lfs/")


def test_an_unknown_token(server: HubServer, send: Publish) -> None:
    with pytest.raises(DiscorporaError, match="does not accept this token"):
        send(token="hf_nobodys")


def test_no_token(server: HubServer, folder: Path) -> None:
    with pytest.raises(ConfigError, match="no access token") as caught:
        publish(folder, ID)
    assert "hf auth login" in caught.value.hint
    assert not server.seen


@pytest.mark.parametrize(
    ("licence", "why"),
    [
        ("LDC", "LDC User Agreement forbids"),
        ("unknown", "licence of a source is unknown"),
    ],
)
def test_a_licence_that_forbids_it(
    server: HubServer, send: Publish, tmp_path: Path, licence: str, why: str
) -> None:
    closed = make(tmp_path / "closed", licence=licence)
    with pytest.raises(DiscorporaError, match=why) as caught:
        send(closed)
    assert licence in caught.value.hint
    assert not server.seen


def test_licences_that_cannot_be_combined(send: Publish, folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["licences"] = {"CC-BY-SA-4.0": 3, "GFDL-1.3": 2}
    write_json(folder / MANIFEST, manifest)
    with pytest.raises(DiscorporaError, match=r"CC-BY-SA-4\.0 and GFDL-1\.3 cannot be"):
        send()


def test_a_verdict_changed_by_hand_does_not_help(send: Publish, tmp_path: Path) -> None:
    closed = make(tmp_path / "closed", licence="LDC")
    manifest = json.loads((closed / MANIFEST).read_text())
    manifest["licence"] |= {"redistributable": True, "id": "MIT", "hub": "mit"}
    write_json(closed / MANIFEST, manifest)
    with pytest.raises(DiscorporaError, match="LDC"):
        send(closed)


@pytest.mark.parametrize("licence", ["LDC", "", "other"])
def test_a_model_of_closed_text(send: Publish, model: Path, licence: str) -> None:
    write_json(model / "results.json", {"licences": {"data wsj": [licence]}})
    with pytest.raises(DiscorporaError, match="may not be published"):
        send(model, "lab/scorer", kind="model")


def test_a_model_that_started_from_closed_text(send: Publish, model: Path) -> None:
    licences = {"data open": ["CC-BY-4.0"], "data wsj": ["LDC", "MIT"]}
    write_json(model / "results.json", {"licences": licences})
    with pytest.raises(DiscorporaError, match="published: data wsj: LDC: the LDC User Agreement"):
        send(model, "lab/scorer", kind="model")
    write_json(model / "results.json", {"dataset": {"licence": "CC-BY-4.0"}})
    with pytest.raises(DiscorporaError, match="may not be published: unknown: the licence"):
        send(model, "lab/scorer", kind="model")


def test_an_unfinished_folder(folder: Path, tmp_path: Path) -> None:
    (folder / MANIFEST).unlink()
    for place in (folder, tmp_path / "nowhere"):
        with pytest.raises(InputError) as caught:
            plan_publication(place, ID)
        assert "discorpora build" in caught.value.hint


def test_a_folder_of_the_other_kind(folder: Path, model: Path) -> None:
    with pytest.raises(InputError, match="not the manifest of a model"):
        plan_publication(folder, ID, kind="model")
    with pytest.raises(InputError, match="not the manifest of a dataset"):
        plan_publication(model, ID)


def test_a_damaged_folder(server: HubServer, send: Publish, folder: Path) -> None:
    shard = folder / "two" / "train-00000-of-00001.parquet"
    shard.write_bytes(shard.read_bytes()[::-1])
    with pytest.raises(InputError, match="sha256 differs"):
        send()
    shard.unlink()
    with pytest.raises(InputError, match="incomplete"):
        send()
    assert not server.repositories


def test_a_manifest_that_points_outside(folder: Path) -> None:
    (folder.parent / "secret").write_text("x")
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["configs"]["two"]["splits"]["train"]["shards"][0]["file"] = "../secret"
    write_json(folder / MANIFEST, manifest)
    with pytest.raises(InputError, match="expected a path inside the folder"):
        plan_publication(folder, ID)


@pytest.mark.parametrize("id", ["sentences", "a/b/c", "ana/", "ana/some name", "https://x/y"])
def test_an_id_that_is_none(folder: Path, id: str) -> None:
    with pytest.raises(ConfigError, match="not a repository id"):
        plan_publication(folder, id)


# --- the dry run --------------------------------------------------------------------------------


def test_the_dry_run_lists_and_touches_nothing(server: HubServer, folder: Path) -> None:
    result = publish(folder, ID, dry_run=True)
    listed = "\n".join(result.lines())
    assert result.status == "dry run" and not server.seen
    for path, data in files_of(folder).items():
        assert f"{len(data):,}  {path}" in listed
    assert f"{result.plan.bytes:,}  bytes in {len(files_of(folder))} files" in listed
    assert "CC-BY-4.0: may be published" in listed
    assert "note on the card: Warning: too few rows" in listed


def test_the_dry_run_says_what_would_be_refused(tmp_path: Path) -> None:
    closed = make(tmp_path / "closed", licence="LDC")
    listed = "\n".join(publish(closed, ID, dry_run=True).lines())
    assert "may NOT be published" in listed and "LDC User Agreement" in listed


def test_the_dry_run_needs_no_client(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from corpora.publish import publish\n"
        f"publish(Path({str(folder)!r}), 'a/b', dry_run=True)\n"
        "assert not {'huggingface_hub', 'datasets', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# --- the token stays secret ---------------------------------------------------------------------


def child(server: HubServer, code: str, place: Path, **env: str) -> str:
    """What a program prints and logs that talks to the local Hub with the client's settings."""
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))},
        **{"HF_ENDPOINT": server.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(place / "home")},
        **{"HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONPATH": str(ROOT), **env},
    }
    done = ran([sys.executable, "-c", textwrap.dedent(code)], cwd=place, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_the_token_reaches_no_log_no_error_and_no_file(
    server: HubServer, folder: Path, tmp_path: Path
) -> None:
    echo = f'{{"error": "token {TOKEN} may not"}}'.encode()
    server.fail(ROUTES["whoami"], status=429, headers={"Retry-After": "0"}, body=echo)
    server.drop(ROUTES["info"])
    server.fail(ROUTES["commit"], status=500, body=echo)
    server.fail(ROUTES["create"], status=403, body=echo)
    said = child(
        server,
        f"""
        import logging, sys, traceback
        from pathlib import Path
        logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
        from corpora.errors import DiscorporaError
        from corpora.publish import publish
        from huggingface_hub import logging as hub_logging
        hub_logging.set_verbosity_debug(); hub_logging.enable_propagation()
        for _ in range(2):
            try:
                result = publish(Path({str(folder)!r}), {ID!r})
                print("RESULT", result)
            except DiscorporaError as error:
                chain = [error.__cause__, error.__context__]
                print("ERROR", repr(error), error, error.hint, chain)
                traceback.print_exc()
        """,
        tmp_path,
        HF_TOKEN=TOKEN,
        HF_DEBUG="1",
    )
    assert "ERROR" in said and "RESULT" in said and "hf_***" in said and "DEBUG" in said
    assert TOKEN not in said
    everything = {**files_of(tmp_path), **remote(server)}
    assert not [path for path, data in everything.items() if TOKEN.encode() in data]


def test_the_token_is_in_no_error_of_this_process(
    server: HubServer, send: Publish, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"<html>{TOKEN}</html>".encode()
    for name, status in [("whoami", 401), ("create", 403), ("commit", 422)]:
        server.fail(ROUTES[name], status=status, body=echo, headers={"X-Error-Message": TOKEN})
        with pytest.raises(DiscorporaError) as caught:
            send()
        error = caught.value
        assert error.__context__ is None and error.__cause__ is None
        assert TOKEN not in f"{error!r}{error}{error.args}{vars(error)}"
    assert TOKEN not in "\n".join(r.getMessage() for r in caplog.records if "corpora" in r.name)
    assert TOKEN not in repr(Hub(TOKEN))


@pytest.mark.parametrize("length", range(270, 300, 6))
def test_a_message_that_is_cut_holds_no_part_of_the_token(
    server: HubServer, send: Publish, length: int
) -> None:
    said = json.dumps({"error": "x" * length + TOKEN}).encode()
    server.fail(ROUTES["create"], status=403, body=said)
    with pytest.raises(DiscorporaError) as caught:
        send()
    assert TOKEN[:9] not in str(caught.value)


def test_a_token_that_no_header_can_hold_is_not_quoted(folder: Path) -> None:
    with pytest.raises(ConfigError, match="spaces or other invalid") as caught:
        publish(folder, ID, token="hf_one\nhf_two")
    assert "hf_one" not in str(caught.value)


@pytest.mark.parametrize("token", [TOKEN, "short-secret"])
def test_a_token_in_a_file_is_not_published(
    server: HubServer, send: Publish, folder: Path, token: str
) -> None:
    server.add_user(token, "ana")
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["stage"]["command"] = f"discorpora build --token {token}"
    write_json(folder / MANIFEST, manifest)
    with pytest.raises(ConfigError, match="access token") as caught:
        send(token=token)
    assert MANIFEST in caught.value.where and token not in str(caught.value)


# --- as a user reads it -------------------------------------------------------------------------


def test_the_published_dataset_loads_as_the_folder_does(
    server: HubServer, send: Publish, folder: Path, tmp_path: Path
) -> None:
    send()
    said = child(
        server,
        f"""
        import datasets
        for config in (None, "one", "two"):
            there = datasets.load_dataset({ID!r}, config)
            here = datasets.load_dataset({str(folder)!r}, config)
            assert list(there) == list(here), (there, here)
            for split in here:
                assert there[split].features == here[split].features
                assert there[split].to_list() == here[split].to_list()
        print("equal", here)

        from corpora.audit.opening import opened
        for config, data in opened({ID!r}).items():
            for split, rows in data.splits.items():
                there = datasets.load_dataset({ID!r}, config, split=split)
                assert rows.to_table().to_pylist() == there.to_list()
            print("audited", config)

        from pathlib import Path
        from workflows.cli.pages import browse
        browse({ID!r}, Path("page"))
        print("browsed", Path("page/data/index.js").read_text().count('"name":'))
        """,
        tmp_path,
    )
    assert "equal" in said and "audited one" in said and "audited two" in said
    assert "page/index.html" in said and "browsed 2" in said
