"""Suite `discoeval`: tasks of discourse for frozen sentence vectors (Chen et al. 2019).

    from zoo.evaluate import discoeval
    result = discoeval.run(my_function, "path/to/DiscoEval/data")

`run` takes a model folder, an encoder, a function of a list of texts, or arrays; its options are
the fields of `discoeval.DiscoEval`.
"""

from __future__ import annotations

from zoo.evaluate.discoeval.protocol import DiscoEval, run, texts

__all__ = ["DiscoEval", "run", "texts"]
