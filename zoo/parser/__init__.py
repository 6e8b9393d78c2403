"""The recipe of the embedded parser: a compact UD English pipeline trained from CoNLL-U files.

`python -m zoo.parser.train` makes the pipeline, `python -m zoo.parser.evaluate` scores one.
The trained product is package data of `extract` (`extract/embedded/`).
"""
