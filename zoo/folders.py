"""How the folder of a trained model loads in other libraries: one row for each `model_type`.

The folder also has the files that sentence-transformers reads, and Python files with the classes
that transformers loads with `trust_remote_code=True`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from transformers import PretrainedConfig

from corpora import quotes
from corpora.sentences import rules
from corpora.sentences.words import LISTS
from corpora.store.atomic import read_json, write_json
from zoo import modeling_discorpora, modeling_links, tokenization_links, windows

MODULES = "sentence_transformers.base.modules.transformer.Transformer"
POOLING = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
POOLINGS = {"first": "cls", "last": "lasttoken", "mean": "mean"}
"""Our names of poolings, with those of sentence-transformers."""
POOLER = "pooler"
"""The vector is the model's `pooler_output`."""
BACKBONE = "backbone_config.json"
"""The backbone's configuration, so that sentence-transformers needs none of our code."""
UNPREFIXED = {r"^backbone\.": "(?!)"}
"""Removes `backbone.`: transformers drops lookaheads from what it inserts. It saves by the reversed
mapping, which `(?!)` never matches: sentence-transformers does not keep the mapping that would be
needed to load the names with `backbone.` again."""
SENTENCES = '["It rained all day.", "We stayed inside."]'
Lines = tuple[str, ...]
SENTENCE_TOKENIZER = {
    "auto_map": {"AutoTokenizer": [None, "tokenization_links.SentenceTokenizer"]},
    "sentence_words": LISTS["en"],
}
"""Settings in tokenizer_config.json with which AutoTokenizer loads the tokenizer of sentences."""
FOLDER = 'folder = "."  # this folder, or the id of the model on the Hub\n'
"""Publishing inserts the id there."""


@dataclass(frozen=True)
class Family:
    """How other libraries load the models of one `model_type`.

    `anywhere` has the lines of the card's example without discorpora, after `imports`;
    `with_discorpora` has the lines of the example with it, an import and then calls.
    """

    library: str = "discorpora"
    task: str | None = None
    """The Hub's name of their task (`pipeline_tag`)."""
    classes: tuple[str, ...] = ()
    """Names of the classes for `AutoConfig`, `AutoModel` and, if there is one,
    `AutoModelForSequenceClassification`, in the first module of `code`."""
    vector: Callable[[Any], str] | None = None
    """Gives for a model the source of a sentence's vector: `POOLER` or a key of `POOLINGS`."""
    imports: Lines = ()
    anywhere: Lines = ()
    with_discorpora: Lines = ()
    code: tuple[ModuleType, ...] = (modeling_discorpora,)
    """The modules that the folder has copies of."""
    tokenizer: Mapping[str, Any] = field(default_factory=dict)
    """More settings of tokenizer_config.json."""

    @property
    def standard(self) -> bool:
        """True if sentence-transformers loads the encoder without code from the folder."""
        return bool(self.vector) and self.vector is not _from_pooler


def _from_pooler(model: Any) -> str:
    """Return where the vector of a text comes from in models with their own encoder: the pooler."""
    return POOLER


def _from_pooling_setting(model: Any) -> str:
    """Return the source of the vector of models whose configuration has the setting `pooling`."""
    return str(model.config.pooling)


def _from_conpono(model: Any) -> str:
    """Return the source of a CONPONO model's vector: the mean, the pooler, or the first token."""
    if model.config.vector == "mean":
        return "mean"
    return "first" if getattr(model.backbone, "pooler", None) is None else POOLER


SENTENCE = "from sentence_transformers import SentenceTransformer"
STANDARD = "encoder = SentenceTransformer(folder)"
ENCODE = f"vectors = encoder.encode({SENTENCES})"
ENCODE_BY_CODE = ("encoder = SentenceTransformer(folder, trust_remote_code=True)", ENCODE)
PREDICT = (
    "from zoo.dissent import predict",
    'predict(folder, [("It rained all day.", "We stayed inside.")])  # a probability a label',
)
TEXTS = (
    "texts = [",
    '    "She opened the door. It was dark inside.",',
    '    "It was dark inside. She opened the door.",',
    "]",
)


def _vector_family(
    config: str, encoder: str, source: Callable[[Any], str] = _from_pooler, lines: Lines = ()
) -> Family:
    """Return the `Family` of a model type that gives vectors only, not scores or labels. `config`
    and `encoder` are class names in `modeling_discorpora`, `source` gives a model's source of
    vectors, and `lines` are the card's example with discorpora."""
    anywhere = ENCODE_BY_CODE if source is _from_pooler else (STANDARD, ENCODE)
    library, task = "sentence-transformers", "feature-extraction"
    return Family(library, task, (config, encoder), source, (SENTENCE,), anywhere, lines)


FAMILIES = {
    "discorpora-dissent-transformer": Family(
        "transformers",
        "text-classification",
        ("PairConfig", "PairEncoder", "PairClassifier"),
        _from_pooling_setting,
        (SENTENCE, "from transformers import pipeline"),
        (
            'classify = pipeline("text-classification", folder, trust_remote_code=True)',
            'pair = {"text": "It rained all day.", "text_pair": "We stayed inside."}',
            "label = classify(pair)",
            STANDARD,
            ENCODE,
        ),
        PREDICT,
    ),
    "discorpora-dissent-bilstm": _vector_family("BiLstmConfig", "BiLstmEncoder", lines=PREDICT),
    "discorpora-dissent-sif": _vector_family("SifConfig", "SifEncoder", lines=PREDICT),
    "discorpora-dissent-ngram": Family(with_discorpora=PREDICT),
    "discorpora-criteria": _vector_family("CriteriaConfig", "CriteriaEncoder"),
    "discorpora-conpono": _vector_family(
        "ConponoConfig",
        "ConponoEncoder",
        _from_conpono,
        (
            "from zoo.conpono import ConponoModel",
            "model = ConponoModel.from_pretrained(folder)  # W_k and the masked-word head included",
        ),
    ),
    "discorpora-coherence-scorer": Family(
        "sentence-transformers",
        "text-ranking",
        ("ScorerConfig", "ScorerEncoder", "Scorer"),
        _from_pooling_setting,
        ("from sentence_transformers import CrossEncoder, SentenceTransformer",),
        (
            *TEXTS,
            "scorer = CrossEncoder(folder, trust_remote_code=True)",
            'scores = scorer.predict([(text, "") for text in texts])  # it takes pairs',
            STANDARD,
            "vectors = encoder.encode(texts)",
        ),
        (
            "from zoo.coherence import CoherenceScorer",
            *TEXTS,
            "scorer = CoherenceScorer.from_pretrained(folder)",
            "scores = scorer.score(texts)  # long texts in windows, which CrossEncoder cuts",
        ),
    ),
    "discorpora-link-scorer": Family(
        "transformers",
        "text-classification",
        ("LinkConfig", "LinkScorer", "LinkScorer"),
        code=(modeling_links, modeling_discorpora, tokenization_links, windows, rules, quotes),
        tokenizer=SENTENCE_TOKENIZER,
    ),
    "discorpora-coherence-unc": Family(
        with_discorpora=(
            "from zoo.coherence.unc_modeling import UncModel",
            *TEXTS,
            "scorer = UncModel.from_pretrained(folder)",
            "scores = scorer.score(texts)",
        )
    ),
}


def family_of(config: PretrainedConfig) -> Family:
    """Return the `Family` of a configuration's `model_type`; an empty one for a plug-in's type."""
    return FAMILIES.get(config.model_type, Family())


def usage(config: PretrainedConfig) -> str:
    """Return the card's examples as Markdown; they run as printed in the model's folder."""
    family, parts = family_of(config), []
    if family.anywhere:
        lines = (*family.imports, "", FOLDER.rstrip(), *family.anywhere)
        parts.append("```python\n" + "\n".join(lines) + "\n```")
    if any("trust_remote_code" in line for line in family.anywhere):
        parts.append("`trust_remote_code=True` runs `modeling_discorpora.py` of this folder.")
    if family.with_discorpora:
        lines = (family.with_discorpora[0], "", FOLDER.rstrip(), *family.with_discorpora[1:])
        parts.append("With discorpora installed:\n\n```python\n" + "\n".join(lines) + "\n```")
    return "\n\n".join(parts)


def auto_map(config: PretrainedConfig) -> dict[str, str]:
    """Return the `auto_map` of config.json: the classes in the folder's Python files to load."""
    auto_classes = ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification")
    family = family_of(config)
    classes = [f"{Path(str(family.code[0].__file__)).stem}.{name}" for name in family.classes]
    return dict(zip(auto_classes, classes, strict=False))


def write_modules(model: Any, folder: Path, *, packed: bool = False) -> None:
    """Write the files with which other libraries load a model into its `folder`. They are Python
    files, for `trust_remote_code`, and for sentence-transformers `modules.json` with the
    configurations that it names. A `packed` model lacks the latter: without the code, nothing reads
    its weights."""
    family = family_of(model.config)
    for module in family.code if family.classes else ():
        source = Path(str(module.__file__))
        shutil.copyfile(source, folder / source.name)
    if family.tokenizer:
        settings_file = folder / "tokenizer_config.json"
        write_json(settings_file, {**read_json(settings_file), **family.tokenizer})
    if family.vector is None or packed:
        return
    # Settings by the vector of a text: one that the model gives, or a pooling of its tokens
    vector = family.vector(model)
    modules = [("", MODULES)]
    settings = dict[str, Any](transformer_task="feature-extraction")
    if family.standard:
        model.backbone.config.to_json_file(folder / BACKBONE, use_diff=False)
        settings["config_kwargs"] = {"_configuration_file": BACKBONE}
        settings["model_kwargs"] = {"key_mapping": UNPREFIXED}
    if vector == POOLER:
        method = {"method": "forward", "method_output_name": "pooler_output"}
        settings["modality_config"] = {"text": method}
        settings["module_output_name"] = "sentence_embedding"
    else:
        place = "1_Pooling"
        modules.append((place, POOLING))
        (folder / place).mkdir(exist_ok=True)
        size = model.backbone.config.hidden_size
        pooling = {"embedding_dimension": size, "pooling_mode": POOLINGS[vector]}
        write_json(folder / place / "config.json", pooling)
    entries = [
        {"idx": idx, "name": str(idx), "path": path, "type": kind}
        for idx, (path, kind) in enumerate(modules)
    ]
    write_json(folder / "modules.json", entries)
    write_json(folder / "sentence_bert_config.json", settings)
    write_json(folder / "config_sentence_transformers.json", {"model_type": "SentenceTransformer"})
