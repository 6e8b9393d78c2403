"""The recipe of the embedded parser: a compact UD English pipeline trained from CoNLL-U files.

`python -m zoo.parser.train` trains the pipeline, `python -m zoo.parser.evaluate` scores one.
The trained pipeline is part of the package, in `extract/embedded/`.
"""
