"""Opening the folder of a model: no code in it runs, and an error names the damaged file.

Every `from_pretrained` of this project is called within `opening`, which first reads the JSON files
and the headers of the weights, and compares the sizes in `config.json` with those of the weights.
`checked` does so for models that are loaded without transformers (`zoo.packed`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from safetensors import SafetensorError, safe_open

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.outside import read_json, read_record
from zoo import file_of
from zoo.presets import shipped, trusts_code

log = logging.getLogger("zoo")

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt", "*.msgpack", "*.h5")
AGAIN = "copy or download the file again"
FOLDER = "give a folder with config.json (and its model_type), safetensors and a tokenizer, as "
FOLDER += "save_pretrained of transformers writes it, or a Hub id"

MOST_LABELS = 100_000
"""The most labels of a model: transformers stores a name for each when it reads `num_labels`."""
LARGEST = 1 << 24
"""The largest number in a configuration: Llama 4 has ten million positions."""
NO_LIMIT = 10**9
"""The maximum length for a tokenizer without one; the 1e30 of transformers is no 64-bit integer."""

_opening: set[str] = set()
"""The models inside `opening`: an Auto class calls `from_pretrained` of the model's own class."""


def check_exists(name: str) -> None:
    """Raise `ConfigError` unless `name` is an existing path or the id of a model on the Hub. The
    error for the name of a recipe says to train it first."""
    if Path(name).exists():
        return
    problem = "there is no such folder"
    hint = "give a folder with config.json and model.safetensors, or a Hub id such as "
    hint += "bert-base-uncased"
    if name in shipped():
        problem = "is a recipe, not a trained model"
        hint = f"train it first: discorpora train {name} --dataset DATASET --output FOLDER"
    # A Hub id has one slash at most.
    elif not name.startswith((".", "/", "~")) and name.count("/") < 2 and "\\" not in name:
        on_hub = _missing_on_hub(name)
        if not on_hub:
            return
        problem += f", and {on_hub}"
    raise ConfigError(problem, where=name, hint=hint)


@cache
def _missing_on_hub(name: str) -> str:
    """Return why the Hub cannot give the model `name`; "" if it can. The answer is cached."""
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        if not isinstance(try_to_load_from_cache(name, CONFIG), str):
            HfApi().model_info(name, timeout=10)
        return ""
    except HFValidationError:
        return "this is not a Hub id"
    except RepositoryNotFoundError:
        return "the Hub has no such model"
    except Exception as error:  # versions of huggingface_hub use different HTTP libraries
        return f"the Hub cannot be reached ({error})"


def config_of(name: str | PathLike[str]) -> dict[str, Any]:
    """Return the content of a model's `config.json`; `name` is a folder or Hub id.

    Raises `InputError` if there is none, if it is damaged, and for more than `MOST_LABELS` labels.
    """
    check_exists(str(name))
    hint = "give a model folder (with config.json) or a Hub id that can be reached"
    path = file_of(str(name), CONFIG)
    if path is None:
        raise InputError("no model here: no config.json", where=str(name), hint=hint)
    config = read_json(path, AGAIN)
    if not isinstance(config, dict) or not config:
        raise InputError("is not the configuration of a model", where=str(path), hint=hint)
    labels = config.get("num_labels")
    if isinstance(labels, int) and labels > MOST_LABELS:
        problem = f"num_labels = {labels:,}, expected {MOST_LABELS:,} at most"
        raise InputError(problem, where=str(path), hint=hint)
    return config


def model_type(name: str | PathLike[str]) -> str:
    """Return a model's `model_type`, "" if it has none; `name` is a folder or Hub id. Raises
    `InputError` if its `config.json` is missing or damaged."""
    return str(config_of(name).get("model_type", ""))


@contextmanager
def opening(name: str | PathLike[str], *, by: str = "transformers") -> Iterator[dict[str, Any]]:
    """Check the files of a model, then yield the keyword arguments for a safe `from_pretrained`.

    `name` is a folder or Hub id; `by` is the name in messages of the class that loads the model.
    Raises the errors of `checked`. A nested call for the same model checks nothing.
    """
    from transformers.utils import logging

    name = str(name)
    if name in _opening:
        yield {}
        return
    level = logging.get_verbosity()
    with checked(name, by) as config:
        trusted = _runs_code(name, config)
        logging.set_verbosity_error()  # callers check its report of missing weights
        _opening.add(name)
        try:
            yield {"trust_remote_code": trusted, "use_safetensors": True}
        finally:
            _opening.remove(name)
            logging.set_verbosity(level)


@contextmanager
def checked(name: str, by: str) -> Iterator[dict[str, Any]]:
    """Check the files of a model, and yield its configuration.

    Raises `InputError` for a damaged file, weights that are not in safetensors, and sizes that
    differ from those of the weights. Exceptions of libraries inside the block become `InputError`
    too.
    """
    config = config_of(name)
    path = file_of(name, CONFIG)
    assert path is not None
    _check_json(path.parent)
    _check_sizes(config, _largest_size(name, path.parent), path)
    with explained(f"{name}/{CONFIG}", by):
        yield config


def load_config(name: str) -> Any:
    """Return the configuration of a model (folder or Hub id) as an object of transformers.

    Raises `InputError` if it is damaged, and for a model that needs code of its folder.
    """
    from transformers import AutoConfig

    config = config_of(name)
    with explained(f"{name}/{CONFIG}", "AutoConfig"):
        return AutoConfig.from_pretrained(name, trust_remote_code=_runs_code(name, config))


def load_tokenizer(name: str, config: Any = None) -> Any:
    """Return the tokenizer of a model; `name` is a folder or Hub id.

    Raises `InputError` if it is damaged, or has more tokens than the model with this `config`.
    """
    from transformers import AutoTokenizer

    check_exists(name)
    stored = config_of(name) if file_of(name, CONFIG) else {}
    with explained(f"{name}: its tokenizer (tokenizer.json)", "AutoTokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=_runs_code(name, stored))
        limit, largest = tokenizer.model_max_length, max(tokenizer.get_vocab().values())
        tokens = getattr(getattr(config, "backbone_config", None) or config, "vocab_size", None)
        if not isinstance(limit, int) or limit < 1:
            raise ValueError(f"model_max_length is {limit!r}")
        of_zoo = getattr(config, "model_type", "").startswith("discorpora-")
        if of_zoo and tokenizer.pad_token_id is None:
            raise ValueError("it has no pad token")
        if tokens and largest >= tokens:
            raise ValueError(f"it has a token {largest}, and the model {tokens} tokens")
        tokenizer("word")  # a damaged `post_processor` fails only here
        tokenizer.model_max_length = min(limit, NO_LIMIT)
        return tokenizer


@contextmanager
def explained(where: str, by: str) -> Iterator[None]:
    """Replace any exception of a library with an `InputError`: "`by` cannot load it: ..."."""
    try:
        yield
    except DiscorporaError:
        raise
    except BaseException as error:
        # A panic in Rust code is not an `Exception`.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason, hint = " ".join(str(error).split()), FOLDER
        reason = re.sub(r"(https?://\S+|Please pass the argument).*", "", reason)[:200].strip()
        if "ignore_mismatched_sizes" in reason:
            reason = "the sizes in it are not those of the weights"
        elif "custom code" in reason:
            reason = "it needs code that came with it, which is not run"
            hint = "read that code, then give --trust-remote-code to run it"
        problem = f"{by} cannot load it: {reason or type(error).__name__}"
        raise InputError(problem, where=where, hint=hint) from error


def _runs_code(name: str, config: Mapping[str, Any]) -> bool:
    """Return True, and log a warning, if the Python code in a model's folder is to run.
    It runs only if the user allows it (`--trust-remote-code`), and if transformers has no class for
    the model. `config` is the content of the model's config.json."""
    code = config.get("auto_map")
    if not trusts_code() or not code:
        return False
    from transformers import CONFIG_MAPPING

    if str(config.get("model_type")) in CONFIG_MAPPING:
        return False
    classes = sorted({str(each) for each in (code.values() if isinstance(code, dict) else [code])})
    log.warning("%s: running code that came with it: %s", name, ", ".join(classes))
    return True


def _check_json(folder: Path) -> None:
    """Raise `InputError` for a damaged JSON file, and for an adapter, which names another model."""
    for path in sorted(folder.glob("*.json")):
        if path.name != "tokenizer.json":  # may be large; the tokenizers library checks it
            read_json(path, AGAIN)
    if (folder / "adapter_config.json").is_file():
        raise InputError(
            "holds an adapter, which names another model to load",
            where=str(folder / "adapter_config.json"),
            hint="merge the adapter (peft: merge_and_unload) and save the whole model",
        )


class Index(BaseModel):
    """The content of `model.safetensors.index.json`: the file of each weight."""

    weight_map: dict[str, str]


def _weight_files(name: str, folder: Path) -> list[Path]:
    """Return the safetensors files of a model, one or several; `folder` is where its files are.

    Raises `InputError` if there are none, and for an index that names a file outside the folder.
    """
    index = file_of(name, INDEX)
    if index is None and (path := file_of(name, WEIGHTS)):
        return [path]
    file_names = set(read_record(Index, index, AGAIN).weight_map.values()) if index else set()
    files = []
    for file in sorted(file_names):
        path = file_of(name, file) if Path(file).name == file else None
        if path is None:
            problem = f"names a file outside the folder, or not there: {file!r}"[:200]
            raise InputError(problem, where=str(index), hint=AGAIN)
        files.append(path)
    if not files:
        pickles = sorted(file.name for kind in PICKLES for file in folder.glob(kind))
        problem = f"its weights are in {pickles[0]}" if pickles else "it holds no weights"
        raise InputError(
            f"{problem}; only model.safetensors is read",
            where=name,
            hint="convert it with safetensors.torch.save_file, or ask its author for safetensors",
        )
    return files


def _largest_size(name: str, folder: Path) -> int:
    """Return the largest dimension of a model's weights, or the number of weights if it is larger.

    It reads only the headers of the files. Raises `InputError` for a damaged file.
    """
    sizes, number = [1], 0
    for path in _weight_files(name, folder):
        try:
            with safe_open(path, "np") as weights:
                for key in weights.keys():  # noqa: SIM118 (it is no mapping)
                    sizes += weights.get_slice(key).get_shape()
                    number += 1
        except (SafetensorError, OSError) as error:
            problem = f"its weights are damaged or cut short: {error}"
            raise InputError(problem, where=str(path), hint=AGAIN) from error
    return max(*sizes, number)


def _check_sizes(config: Mapping[str, Any], largest: int, path: Path) -> None:
    """Raise `InputError` for a value in `config` that a model with these weights cannot have.

    Counts and sizes must not exceed `largest`, the largest dimension of the weights: otherwise
    transformers would allocate memory for them. Rates of dropout and switches of outputs are
    checked because wrong ones fail only when the model is used. Messages name the file `path`.
    """
    for key, value in config.items():
        problem = ""
        if isinstance(value, Mapping):
            _check_sizes(value, largest, path)
        elif re.search("dropout|pdrop", key) and isinstance(value, float) and not 0 <= value <= 1:
            problem = f"{key} = {value}: expected a rate between 0 and 1"
        elif key in ("output_attentions", "output_hidden_states") and value not in (True, False):
            problem = f"{key} = {str(value)[:40]!r}: expected true or false"
        elif isinstance(value, int):
            pattern = "layer|label|block|group|(?<!image)_size$"
            bounded = re.search(pattern, key) and not key.endswith("_id")
            most = largest if bounded else LARGEST
            least = 0 if key.startswith("num_") else -most
            if not least <= value <= most:
                problem = f"{key} = {value:.6g}: expected {least:,} to {most:,} for these weights"
        if problem:
            raise InputError(problem, where=str(path), hint=AGAIN)
