"""Made-up corpora in the formats that the four papers' corpora are released in, and tiny backbones.

`python -m tests.miniature FOLDER` writes them all; the build files of the papers then find them
below `{data}`.
"""
