"""The report of a build: a page that opens from disk, its examples, and the same as Markdown.

`stages` finds what is built, `data` reads it into the blocks of `blocks`, `charts` draws, `browser`
writes the examples, `page` the folder.
"""
