"""Folders on disk: documents and datasets as Parquet, manifests, cards, everything atomic."""
