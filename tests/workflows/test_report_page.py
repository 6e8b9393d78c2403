"""The report in a web browser: headless Chromium, where one is installed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora.schemas import MARKERS_ALL
from tests.bench.bench_browser import synthetic
from tests.chromium import Page, chromium
from tests.processes import ran

pytestmark = pytest.mark.nightly

ROWS = 100_000
HOSTILE = "<img src=x onerror='window.hit=1'> </script><script>window.hit=1</script> \u2028 “end” ?"
WIDTHS = ((1280, False), (1280, True), (390, False))
AXE = """axe.run({preload: false}).then((found) => found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 200)).join("; ")}`))"""
SET = """(() => { const control = document.querySelector("SELECTOR"); control.value = "VALUE";
    control.dispatchEvent(new Event("input", {bubbles: true})); })()"""
COUNT = "document.getElementById('count').textContent"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, or a skip where npm cannot bring it."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, which brings axe-core")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "axe-core"]
    done = ran(command, cwd=folder)
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip(f"npm cannot install axe-core: {done.stderr.strip()[-200:]}")
    return script.read_text(encoding="utf-8")


def shown(page: Page, path: Path, width: int = 1280, dark: bool = False) -> None:
    page.open(path, width, dark=dark)
    page.until("document.querySelector('.example')")


def give(page: Page, selector: str, value: object) -> str:
    """Fill in a control; what the page then says that it found."""
    page.run(SET.replace("SELECTOR", selector).replace("VALUE", str(value)))
    return str(page.run(COUNT))


@pytest.mark.parametrize(("width", "dark"), WIDTHS)
def test_a_report_asks_for_nothing_and_has_no_serious_finding(
    built: Path, page: Page, axe: str, width: int, dark: bool
) -> None:
    page.addresses.clear()
    shown(page, built / "report" / "index.html", width, dark)
    assert page.addresses and all(one.startswith("file://") for one in page.addresses)
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.run(f"{axe}; 0")
    assert page.run(AXE) == []
    assert page.errors == []


def test_a_table_wider_than_a_phone_says_that_it_scrolls(built: Path, page: Page) -> None:
    said = "getComputedStyle(document.querySelector('#sources caption span'), '::after').content"
    shown(page, built / "report" / "index.html", 390)
    page.until(f"{said}.includes('Scroll sideways')")
    wide = "[...document.querySelectorAll('#pairs .table')].filter((t) => t.scrollWidth > 390)"
    assert page.run(f"{wide}.every((t) => t.classList.contains('scrolls'))")
    narrow = "document.querySelector('#pairs .narrow').classList.contains('scrolls')"
    assert page.run(narrow) is False


def test_tables_are_sorted_and_the_theme_is_switched(built: Path, page: Page) -> None:
    shown(page, built / "report" / "index.html")
    rows = "document.querySelectorAll('#pairs table')[0].tBodies[0].rows"
    cells = f"[...{rows}].map((row) => row.cells[COLUMN].textContent)"
    head = "document.querySelectorAll('#pairs table')[0].tHead.rows[0].cells"
    before = [int(one) for one in page.run(cells.replace("COLUMN", "1"))]
    assert before == sorted(before, reverse=True)
    page.run(f"{head}[1].querySelector('button').click()")
    assert [int(one) for one in page.run(cells.replace("COLUMN", "1"))] == sorted(before)
    page.run(f"{head}[0].querySelector('button').click()")
    names = page.run(cells.replace("COLUMN", "0"))
    assert names == sorted(names) and len(names) > 5
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    for theme in ("light", "dark", "system"):
        page.run("document.getElementById('theme').click()")
        assert page.run("document.getElementById('theme').textContent") == f"Theme: {theme}"
        assert (page.run(colour) == light) == (theme != "dark")


def test_100_000_pairs_are_searched_filtered_and_chosen(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    table = synthetic(ROWS, folder, s1=HOSTILE, doc=HOSTILE)
    shown(page, folder / "index.html")
    page.until(f"{COUNT}.startsWith('{ROWS:,} of')")
    rows = table.to_pylist()
    labels = Counter(row["label"] for row in rows)
    # A filter, a search, both, and an interval of confidence find what is in the rows.
    assert give(page, "[data-facet=marker]", 3).startswith(f"{labels[3]:,} of")
    both = sum(row["label"] == 3 and "w77o" in f"{row['s1']} {row['s2']}" for row in rows)
    assert give(page, "#query", "W77o").startswith(f"{both:,} of")
    word = sum("w77o" in f"{row['s1']} {row['s2']}" for row in rows)
    assert give(page, "[data-facet=marker]", -1).startswith(f"{word:,} of")
    give(page, "#query", "")
    sure = sum(round(row["confidence"], 3) >= 0.9 for row in rows)
    assert give(page, "#least", 0.9).startswith(f"{sure:,} of")
    give(page, "#least", 0)
    # However many rows there are, few are elements; keys choose one.
    assert page.run("document.querySelectorAll('.example').length") < 60
    press = "document.getElementById('list').dispatchEvent(new KeyboardEvent('keydown', \
        {key: 'KEY', bubbles: true, cancelable: true}))"
    page.run(press.replace("KEY", "End"))
    last = page.run("document.querySelector('#detail .passage').textContent")
    assert last.split() == [
        *rows[-1]["s1"].split(),
        MARKERS_ALL[rows[-1]["label"]],
        *rows[-1]["s2"].split(),
    ]
    for key, place in (("Home", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
        page.run(press.replace("KEY", key))
        chosen = page.run("document.querySelector('[aria-selected=true]').ariaPosInSet")
        assert int(chosen) == place
    # The texts of the first row stay texts.
    assert page.run("document.querySelector('#detail mark.s1').textContent") == HOSTILE
    assert give(page, "#query", "onerror=").startswith("1 of")
    assert page.run("[window.hit, document.querySelectorAll('main img').length]") == [None, 0]
    assert page.errors == []
