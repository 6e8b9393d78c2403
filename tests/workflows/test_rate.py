"""`discorpora rate`: from a built dataset to figures on its card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpora.errors import ConfigError, InputError
from corpora.publish.plan import plan_publication
from corpora.ratings.draw import read_draw
from corpora.store.atomic import read_json
from corpora.store.copies import is_linked
from corpora.store.damage import damages
from tests.completions_server import CompletionsServer
from workflows.cli.app import app
from workflows.results import stage_folder


def rate(*words: object) -> str:
    done = CliRunner().invoke(app, ["rate", *map(str, words)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def output(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a build, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return Path(shutil.copytree(built.parent, tmp_path / "out", symlinks=True)) / "tiny"


def rated(draw_folder: Path, name: str, rating: str = "", leave: int = 0) -> Path:
    """A rater who is always right, or always says the same, and leaves out the last items."""
    draw = read_draw(draw_folder)
    lines = [
        json.dumps({"custom_id": id, "rating": rating or item.expected})
        for id, item in zip(draw.ids(), draw.items, strict=True)
    ]
    path = draw_folder.parent / f"{name}.jsonl"
    path.write_text("\n".join(lines[: len(lines) - leave]) + "\n", encoding="utf-8")
    return path


def test_pairs_are_drawn_with_their_passages(output: Path) -> None:
    said = rate(output / "datasets/dissent@all", "-n", 8)
    folder = Path("build/rate/dissent@all")
    assert (
        "8 items, rubric pairs" in said and f"rate {output}/datasets/dissent@all --answers" in said
    )
    for item in read_draw(folder).items:
        assert [*item.fields] == ["context", "marker", "s1", "s2"]
        assert f"[[{item.fields['marker']}]]" in item.fields["context"].lower()
        assert item.fields["s2"].rstrip(".!?”")[-8:] in item.fields["context"]


def test_scores_go_on_the_card_of_a_dataset_and_stay_there(output: Path) -> None:
    bso, draw = output / "datasets/bso", Path("draw")
    rate(bso, "-n", 20, "--to", draw)
    one, two = rated(draw, "anna"), rated(draw, "ben|b", "undecidable", leave=3)
    said = rate(bso, "--to", draw, "-a", one, "-a", two, "--card", "--json", "scores.json")
    assert "anna" in said and "20 of 20" in said and "missing 3" in said
    assert "none: fewer than 90 % of the items have a usable answer" in said
    scores = read_json(Path("scores.json"))
    assert [rater["share"]["value"] for rater in scores["raters"]] == [100.0, None]
    card = (bso / "README.md").read_text(encoding="utf-8")
    assert card.count("## Blind ratings\n") == 1
    assert card.index("## Labels") < card.index("## Blind ratings") < card.index("## How far")
    assert "| anna | 20 | 100.0 |" in card
    assert r"| ben\|b | 17 | none: fewer than 90 % usable |  | missing 3 | undecidable 17 |" in card
    assert not [*damages(bso)] and is_linked(stage_folder(bso), bso)
    assert read_json(bso / "manifest.json")["ratings"][0]["draw"] == scores["draw"]
    files = {file.path for file in plan_publication(bso, "me/orders").files}
    assert {"README.md", "manifest.json"} <= files

    rate(bso, "--to", draw, "-a", one, "--card")  # again: in place of the first
    assert "ben" not in (bso / "README.md").read_text(encoding="utf-8")
    rate(bso, "-n", 12, "--seed", 1, "--to", "second")
    rate(bso, "--to", "second", "-a", rated(Path("second"), "anna"), "--card")
    card = (bso / "README.md").read_text(encoding="utf-8")
    assert card.count("| anna |") == 2 and card.count("## Blind ratings\n") == 1

    (bso / "README.md").write_text("Mine.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"README\.md: has 6 bytes where"):
        rate(bso, "--to", draw, "-a", one, "--card")
    assert (bso / "README.md").read_text(encoding="utf-8") == "Mine.\n"


def test_an_endpoint_is_asked_and_scored_in_one_command(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "a-key-of-the-test")
    server = CompletionsServer(lambda user: '{"rating": 3}', key="a-key-of-the-test")
    with server.running():
        options = ("--endpoint", server.url, "--model", "tiny", "--key-variable", "MY_KEY")
        said = rate(output / "datasets/sp", "-n", 10, *options, "--json", "-")
    scores = json.loads(said)
    assert scores["rubric"] == "position" and scores["raters"][0]["ratings"] == {"3": 10}
    draw = read_draw(Path("build/rate/sp"))
    right = sum(item.expected == "3" for item in draw.items)
    assert scores["raters"][0]["share"]["value"] == 10.0 * right
    files = [path.read_text(encoding="utf-8") for path in Path("build/rate/sp").iterdir()]
    assert files and "a-key-of-the-test" not in "".join(files)


def test_a_draw_is_for_one_dataset_and_is_not_changed(output: Path) -> None:
    bso = output / "datasets/bso"
    rate(bso, "-n", 5, "--to", "draw")
    file = rated(Path("draw"), "anna")
    with pytest.raises(ConfigError, match="has a draw already"):
        rate(bso, "--to", "draw")
    with pytest.raises(ConfigError, match="the dataset has changed, or is another one"):
        rate(output / "datasets/sp", "--to", "draw", "-a", file)
    with pytest.raises(InputError, match=r"manifest\.json: cannot be read"):
        rate(bso, "-a", file)
    runner = CliRunner()
    for words, message in (
        (["-a", str(file), "-n", "9", "--to", "draw"], "has a draw, which --items"),
        (["--endpoint", "http://localhost:1/v1"], "--endpoint needs --model NAME"),
    ):
        done = runner.invoke(app, ["rate", str(bso), *words])
        assert done.exit_code == 2 and message in done.stderr.replace("\n", " ")
