"""Blind ratings of a dataset's rows: draw rows, write them for raters, read answers, score them.

`rubrics` has what raters are told, `draw` the drawn rows and the files for raters, `endpoint` sends
the items to a language model, `answers` reads and scores what raters say, `card` puts the scores on
the card of the dataset.
"""
