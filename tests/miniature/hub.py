"""Local Hub folders: BookCorpus (a line a row), Wikipedia and CC-News (an article a row)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.miniature.prose import Prose


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


def rows(folder: Path, config: str, columns: dict[str, list[str]]) -> None:
    """A dataset of one configuration, which its README names, as on the Hub."""
    path = folder / config / "train-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    files = f"  data_files:\n  - split: train\n    path: {config}/train-*\n"
    readme = f"---\nconfigs:\n- config_name: {config}\n{files}---\n"
    (folder / "README.md").write_text(readme, encoding="utf-8")
