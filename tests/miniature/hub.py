"""Local Hub folders: BookCorpus (a line a row), Wikipedia and CC-News (an article a row); and a
dump of Wikipedia."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.miniature.prose import WHAT, WHO, Prose


def write_hub(folder: Path, documents: int, seed: int = 7) -> None:
    prose = Prose(seed)
    lines = [s.tokenised.lower() for story in prose.stories(2 * documents) for s in story.sentences]
    rows(folder / "hub/bookcorpus", "plain_text", {"text": lines})
    articles = list(prose.stories(documents, paragraphs=3, length=11))
    about = {
        "id": [str(100 + k) for k in range(documents)],
        "url": [f"https://en.wikipedia.example/{k}" for k in range(documents)],
        "title": [f"Article {k}" for k in range(documents)],
    }
    rows(
        folder / "hub/wikipedia",
        "20231101.en",
        {**about, "text": [story.text for story in articles]},
    )
    news = list(prose.stories(documents, paragraphs=4, length=4))
    about = {"title": [f"News {k}" for k in range(documents)], "domain": ["example"] * documents}
    rows(
        folder / "hub/cc_news",
        "plain_text",
        {**about, "text": [story.text.replace("\n\n", "\n") for story in news]},
    )


PAGE = """<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>{number}</id>
<timestamp>2026-01-02T03:04:05Z</timestamp><text>{text}</text></revision></page>
"""
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="en"><siteinfo>
<sitename>Wikipedia</sitename><dbname>enwiki</dbname></siteinfo>
"""


def write_dump(folder: Path, documents: int, seed: int = 9) -> None:
    """A dump in MediaWiki's XML: a lead, and sections of three levels with headings."""
    prose, pages = Prose(seed), []
    for number, story in enumerate(prose.stories(documents, paragraphs=5, length=5), 1):
        paragraphs = story.text.split("\n\n")
        headings = [
            f"The {prose.random.choice(WHAT)} of the {prose.random.choice(WHO)}" for _ in "1234"
        ]
        marks = ("==", "===", "====", "==")
        parts = (
            f"{mark} {heading} {mark}\n{paragraph}"
            for mark, heading, paragraph in zip(marks, headings, paragraphs[1:], strict=True)
        )
        text = "\n\n".join([paragraphs[0], *parts])
        pages.append(PAGE.format(title=f"Article {number}", number=number, text=text))
    path = folder / "wikipedia/enwiki.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}{''.join(pages)}</mediawiki>\n", encoding="utf-8")


def rows(folder: Path, config: str, columns: dict[str, list[str]]) -> None:
    """A dataset of one configuration, which its README names, as on the Hub."""
    path = folder / config / "train-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    files = f"  data_files:\n  - split: train\n    path: {config}/train-*\n"
    readme = f"---\nconfigs:\n- config_name: {config}\n{files}---\n"
    (folder / "README.md").write_text(readme, encoding="utf-8")
