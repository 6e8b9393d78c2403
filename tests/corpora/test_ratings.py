"""Blind ratings: what raters see, which answers count, and what is said of them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from corpora import schemas
from corpora.audit.data import Configuration
from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.ratings import endpoint as endpoints
from corpora.ratings.answers import read_answers, score
from corpora.ratings.draw import Draw, draw_rows, read_draw, with_anchors, with_contexts, write_draw
from corpora.ratings.endpoint import Endpoint, send
from corpora.store.rows import hub_features
from tests.chromium import chromium
from tests.completions_server import CompletionsServer
from tests.corpora.conftest import sentence, write_jsonl

KEY = "sk-secret-of-the-miller"
GOOD = '{"rating": "good"}'


def configuration(schema: pa.Schema, rows: list[dict], kind: str = "") -> Configuration:
    metadata = {"huggingface": json.dumps({"info": {"features": hub_features(schema)}})}
    table = pa.Table.from_pylist(rows, schema.with_metadata(metadata))
    return Configuration({"train": pads.dataset(table)}, kind)


def pairs(number: int = 40) -> Configuration:
    rows = [
        {
            **{"doc": f"book/{i // 2}", "group": "book", "marker_start": 1, "label": i % 15},
            **{"s1": sentence(i, "one"), "s2": sentence(i, "two")},
            **{"position": "", "order": "", "s2_added": "", "confidence": 0.9},
        }
        for i in range(number)
    ]
    return configuration(schemas.DISSENT, rows)


def draw_pairs(items: int = 20) -> Draw:
    return draw_rows("books", pairs(), "all", items=items)


def answered(draw: Draw, *ratings: str) -> list[dict]:
    return [{"custom_id": i, "rating": r} for i, r in zip(draw.ids(), ratings, strict=False)]


def test_raters_see_the_texts_and_no_label_split_or_document(tmp_path: Path) -> None:
    draw = draw_pairs()
    write_draw(draw, tmp_path / "draw", "small")
    batch = [json.loads(line) for line in (tmp_path / "draw/batch.jsonl").open(encoding="utf-8")]
    assert [request["custom_id"] for request in batch] == draw.ids()
    first = batch[0]
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert first["body"]["model"] == "small"
    system, user = first["body"]["messages"]
    assert "no_subject" in system["content"]
    fields = draw.items[0].fields
    assert user["content"] == "\n".join(f"{name}: {text}" for name, text in fields.items())
    assert {*fields} == {"marker", "s1", "s2"}
    page = (tmp_path / "draw/page.html").read_text(encoding="utf-8")
    assert all(id in page for id in draw.ids())
    assert "http" not in page.replace("http-equiv", "")
    assert "book/" not in page and '"expected"' not in page
    assert read_draw(tmp_path / "draw") == draw
    with pytest.raises(DiscorporaError, match="already made"):
        write_draw(draw, tmp_path / "draw")


def test_a_text_is_no_markup_on_the_page(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)> “so”"
    config = pairs(1)
    rows = config.splits["train"].to_table().to_pylist()
    draw = draw_rows("x", configuration(schemas.DISSENT, [{**rows[0], "s1": hostile}]), "all")
    write_draw(draw, tmp_path / "draw")
    page = (tmp_path / "draw/page.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 1 and "<img" not in page


def test_a_draw_is_random_and_its_own_at_each_seed() -> None:
    assert draw_pairs() == draw_pairs()
    other = draw_rows("books", pairs(), "all", items=20, seed=1)
    assert other.name != draw_pairs().name and other.digest == draw_pairs().digest
    rows = [item.origin["row"] for item in draw_pairs().items]
    assert rows != sorted(rows) and len({*rows}) == 20


def test_orders_positions_and_intruders_are_rated_by_their_own_rubrics() -> None:
    two = [sentence(0), sentence(1)]
    bso = [
        {"doc": f"d{i // 2}", "label": i % 2, "sentence1": two[i % 2 - 1], "sentence2": two[-i % 2]}
        for i in range(8)
    ]
    draw = draw_rows("bso", configuration(schemas.BSO, bso, "bso"), "default")
    assert draw.rubric.name == "order"
    assert len(draw.items) == 4 == len({item.doc for item in draw.items})  # one form of a text
    for item in draw.items:
        label = bso[item.origin["row"]]["label"]
        assert item.expected == ("swapped", "original")[label]
    five = [sentence(i) for i in range(5)]
    sp = configuration(schemas.SP, [{"doc": "d", "label": 3, "sentences": five}], "sp")
    draw = draw_rows("sp", sp, "default")
    assert (draw.rubric.name, draw.items[0].expected) == ("position", "4")
    assert draw.rubric.choices(draw.items[0].fields) == ("1", "2", "3", "4", "5", "undecidable")
    texts = [
        {"doc": "d", "label": label, "position": position, "sentences": five}
        for label, position in ((0, -1), (0, -1), (1, 2), (1, 2))
    ]
    draw = draw_rows("i", configuration(schemas.INTRUSION_DETECTION, texts), "detection")
    assert [*{item.expected for item in draw.items}] == [*{"none", "3"}]
    with pytest.raises(InputError, match="no rubric fits its columns: doc, label, section"):
        draw_rows("ssp", configuration(schemas.SSP, []), "default")
    with pytest.raises(ConfigError, match="no rubric of such rows 'order'"):
        draw_rows("books", pairs(), "all", rubric="order")


def test_only_single_valid_answers_count_and_the_others_are_told_apart(tmp_path: Path) -> None:
    draw = draw_pairs()
    ids = draw.ids()
    other = draw_rows("books", pairs(), "all", items=20, seed=1)
    body = {"choices": [{"message": {"content": '```json\n{"rating": "Punct"}\n```'}}]}
    lines = [
        *answered(draw, *["good"] * 15),
        {"custom_id": ids[15], "response": {"status_code": 200, "body": body}, "error": None},
        {"custom_id": ids[16], "rating": "I would say good"},
        {"custom_id": ids[17], "response": {"status_code": 500, "body": {}}, "error": None},
        {"custom_id": ids[18], "rating": "good"},
        {"custom_id": ids[18], "rating": "good"},
        {"custom_id": other.ids()[0], "rating": "good"},
        {"custom_id": "of nobody", "rating": "good"},
    ]
    path = write_jsonl(tmp_path / "anna.jsonl", *lines)
    path.write_text(f"{path.read_text()}not json\n")
    answers = read_answers(path, draw)
    assert answers.unusable == {
        **{"double": 1, "failed": 1, "missing": 1, "unparsable": 1},
        **{"other draw": 1, "unreadable line": 2},
    }
    assert answers.ratings == {**dict.fromkeys(range(15), "good"), 15: "punct"}
    [rater] = score(draw, [answers]).raters
    assert (rater.share.usable, rater.share.value, rater.share.interval) == (16, None, None)


def test_shares_have_intervals_over_documents_and_raters_a_kappa(tmp_path: Path) -> None:
    draw = draw_pairs()
    one = ["good"] * 12 + ["s1_bad"] * 6  # 18 of 20: just enough
    two = ["good"] * 10 + ["punct"] * 8 + ["good"] * 2
    files = [
        write_jsonl(tmp_path / f"{name}.jsonl", *answered(draw, *ratings))
        for name, ratings in (("one", one), ("two", two))
    ]
    scores = score(draw, [read_answers(file, draw) for file in files])
    first, second = scores.raters
    assert (first.share.usable, first.share.value) == (18, 66.7)
    assert second.share.value == 60.0 and second.ratings == {"good": 12, "punct": 8}
    assert first.share.interval is not None
    low, high = first.share.interval
    assert 30 < low < 66.7 < high < 95
    # Of 18 both rated 10 good and 6 bad; chance is (12 * 10 + 6 * 8) / 18 ** 2.
    chance = 168 / 324
    assert scores.agreement[0].items == 18
    assert scores.agreement[0].kappa == round((16 / 18 - chance) / (1 - chance), 3)
    same = score(draw, [read_answers(files[0], draw)] * 1 + [read_answers(files[1], draw)])
    assert same == scores
    with pytest.raises(ConfigError, match="two files of answers are called one"):
        score(draw, [read_answers(files[0], draw)] * 2)


def test_anchors_are_mixed_in_and_measure_the_rater_alone(tmp_path: Path) -> None:
    ratings = ["good", "s2_bad", "good", "s2_bad"]
    anchors = [
        {"marker": "but", "s1": sentence(i, "a"), "s2": sentence(i, "b"), "rating": rating}
        for i, rating in enumerate(ratings)
    ]
    draw = with_anchors(draw_pairs(), write_jsonl(tmp_path / "anchors.jsonl", *anchors))
    places = [number for number, item in enumerate(draw.items) if item.anchor]
    assert len(draw.items) == 24 and len(places) == 4 and places != [20, 21, 22, 23]
    said = ["s2_bad" if item.expected == "s2_bad" else "good" for item in draw.items]
    file = write_jsonl(tmp_path / "ben.jsonl", *answered(draw, *said))
    scores = score(draw, [read_answers(file, draw)])
    assert (scores.items, scores.anchors) == (20, 4)
    assert scores.raters[0].kappa_with_anchors == 1.0
    assert scores.raters[0].share.value == 100.0
    bad = write_jsonl(tmp_path / "bad.jsonl", anchors[0], {"s1": "Why?", "rating": "good"})
    with pytest.raises(InputError, match=r"bad.jsonl:2: an anchor with the fields s1"):
        with_anchors(draw_pairs(), bad)


def test_answers_about_a_changed_dataset_are_refused(tmp_path: Path) -> None:
    draw, changed = draw_pairs(), draw_rows("books", pairs(41), "all", items=20)
    assert changed.digest != draw.digest
    file = write_jsonl(tmp_path / "anna.jsonl", *answered(draw, *["good"] * 20))
    with pytest.raises(InputError, match=r"anna.jsonl:1: an answer about rows with the digest"):
        read_answers(file, changed)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "FIRST_WAIT", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def files_and_log(folder: Path, caplog: pytest.LogCaptureFixture) -> str:
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()]
    return "".join([*texts, caplog.text])


def test_an_endpoint_rates_after_temporary_failures_and_never_sees_its_key_again(
    tmp_path: Path, quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    draw = draw_pairs()
    server = CompletionsServer(lambda user: GOOD, key=KEY)
    server.faults = [(429, {"Retry-After": "0"}, ""), (503, {}, "busy"), (400, {}, f"bad {KEY}")]
    with server.running():
        file = send(draw, Endpoint(server.url, "org/small"), tmp_path)
        assert file.name == "answers-org-small.jsonl"
        assert read_answers(file, draw).unusable == {"failed": 1}
        asked = len(server.seen)
        assert asked == 22
        send(draw, Endpoint(server.url, "org/small"), tmp_path)  # only the failed one again
        assert len(server.seen) == asked + 1
    assert read_answers(file, draw).ratings == dict.fromkeys(range(20), "good")
    assert server.seen[0][0]["Authorization"] == f"Bearer {KEY}"
    assert all(body["model"] == "org/small" for _, body in server.seen)
    assert KEY not in files_and_log(tmp_path, caplog)


def test_answers_before_a_failure_are_kept_and_the_error_hides_the_key(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    draw = draw_pairs()
    monkeypatch.setattr(endpoints, "AT_ONCE", 1)
    server = CompletionsServer(lambda user: GOOD)
    server.say = lambda user: server.faults.append((401, {}, f"no: {KEY}")) or GOOD  # type: ignore
    with server.running():
        with pytest.raises(DiscorporaError, match="it answers 401: it does not accept") as error:
            send(draw, Endpoint(server.url, "m"), tmp_path)
        assert KEY not in str(error.value) and error.value.__cause__ is None
        assert len((tmp_path / "answers-m.jsonl").read_text().splitlines()) == 1
        server.say, server.faults = (lambda user: "hm"), [(500, {}, "")] * 6
        with pytest.raises(DiscorporaError, match="it answers 500") as error:
            send(draw, Endpoint(server.url, "m"), tmp_path)
        server.faults = []
        file = send(draw, Endpoint(server.url, "m"), tmp_path)
    answers = read_answers(file, draw)
    assert len(answers.ratings) == 1 and answers.unusable == {"unparsable": 19}
    monkeypatch.setattr(endpoints, "ATTEMPTS", 1)
    with pytest.raises(DiscorporaError, match="no connection"):
        send(draw, Endpoint(server.url, "other"), tmp_path)
    assert KEY not in files_and_log(tmp_path, caplog)


@pytest.mark.parametrize(
    ("url", "variable", "message"),
    [
        ("http://api.example.org/v1", "OPENAI_API_KEY", "without encryption"),
        (f"https://me:{KEY}@api.example.org", "OPENAI_API_KEY", "a user, a password"),
        (f"https://api.example.org?key={KEY}", "OPENAI_API_KEY", "or a query"),
        ("api.example.org/v1", "OPENAI_API_KEY", "not the address of an API"),
        ("https://api.example.org/v1", KEY, "not the name of a variable"),
    ],
)
def test_an_address_that_would_show_the_key_is_refused(
    url: str, variable: str, message: str, quick: None
) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        Endpoint(url, "m", variable)
    assert not re.search(KEY, str(error.value))


@pytest.mark.nightly
def test_people_rate_on_the_page_and_their_answers_are_read(tmp_path: Path) -> None:
    draw = with_contexts(draw_pairs(6), ["So [[then]] it rained.\n\nAll day."] * 6)
    write_draw(draw, tmp_path / "draw")
    with chromium(tmp_path / "profile") as page:
        page.open(tmp_path / "draw/page.html", width=390)
        for key in ("1", "ArrowRight", "2", "ArrowRight", "1", "ArrowLeft", "4", "x", "9"):
            event = f'new KeyboardEvent("keydown", {{key: "{key}", bubbles: true}})'
            page.run(f"document.body.dispatchEvent({event})")
        assert page.run("document.getElementById('count').textContent") == "Item 2 of 6; rated: 3"
        assert page.run("document.querySelector('mark').textContent") == "[[then]]"
        page.run("document.getElementById('open').click()")
        page.run("document.querySelectorAll('#choices input')[7].click()")
        page.picture(tmp_path / "page.png", whole=True)
        page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        page.run("document.getElementById('rater').value = 'Clara B.'")
        page.run("document.getElementById('download').click()")
        deadline = time.monotonic() + 20
        while not (file := tmp_path / "Clara-B.jsonl").is_file() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not page.errors and len(page.addresses) == 1
        assert page.run("document.documentElement.scrollWidth") <= 390
    answers = read_answers(file, draw)
    assert answers.ratings == {0: "good", 1: "no_subject", 2: "good", 3: "punct"}
    assert answers.unusable == {"missing": 2}
