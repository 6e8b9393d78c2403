"""The stage `sentences`: shards of documents with a column of the splitter's sentences."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora.sentences import split_document
from corpora.store.atomic import replacing
from corpora.store.documents import (
    DOCUMENTS,
    SPLIT,
    SPLIT_SENTENCES,
    documents_of,
    layer_columns,
    row_groups,
    shards_of,
)
from corpora.store.rows import PARQUET


def split_documents(documents: Path, folder: Path, splitter: str = "rules") -> int:
    """Copy the shards of `documents` to `folder` with a column of the splitter's sentences.

    The source's own sentences are kept. `splitter` is a name of `corpora.sentences.SPLITTERS`,
    stored in the schema's metadata. Shards are made and kept as by `write_documents`. Returns the
    number of sentences.
    """
    schema = SPLIT.with_metadata({"splitter": splitter})
    for shard in shards_of(documents):
        path = folder / shard.name
        if path.exists():
            continue
        with replacing(path) as partial, pq.ParquetWriter(partial, schema, **PARQUET) as writer:
            for batch in row_groups(shard):
                split = [split_document(document, splitter) for document in documents_of(batch)]
                sentences = [layer_columns(document.sentences) for document in split]
                column = pa.array(sentences, SPLIT.field(SPLIT_SENTENCES).type)
                columns = [*(batch[name] for name in DOCUMENTS.names), column]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    lengths = (
        pc.sum(pc.list_value_length(batch[SPLIT_SENTENCES].field("start"))).as_py() or 0
        for shard in shards_of(folder)
        for batch in row_groups(shard, [SPLIT_SENTENCES])
    )
    return sum(lengths)
