"""Opening a model's folder, whoever it is from: nothing of it runs, and what is damaged is named.

Every `from_pretrained` of this project is called within `opening`, which reads the JSON files and
the headers of the weights first. Sizes are compared with these before anything is allocated.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch.nn.modules.module import (
    Module,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from transformers import CONFIG_MAPPING, AutoConfig, AutoTokenizer
from transformers.utils import logging as transformers_logging

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.outside import read_json
from zoo import file_of
from zoo.presets import shipped, trusts_code

log = logging.getLogger("zoo")

MOST_LABELS = 100_000

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt", "*.msgpack", "*.h5")
AGAIN = "copy or download the file again"
FOLDER = "give a folder with config.json (and its model_type), safetensors and a tokenizer, as "
FOLDER += "save_pretrained of transformers writes it, or a Hub id"

SIZE = 1 << 24
"""The largest number in a configuration: Llama 4 has ten million positions."""
SPARE, BUFFERS, PARTS = 4, 1 << 26, 10_000
"""How many times as many elements as its files hold a model may have: heads that are tied, or not
stored, and weights of four bits; elements of buffers, and modules, beside that."""

NO_LIMIT = 10**9
"""The longest text of a tokenizer that says none; transformers has 1e30, which fits no integer."""

_open: set[str] = set()


def check_there(name: str) -> None:
    """Reject a recipe's name, and a path that does not exist."""
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
    """Why the Hub gives no model `name`, "" if it does; one request, which is not repeated."""
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
    except Exception as error:  # of the HTTP library, which differs between versions of the Hub's
        return f"the Hub cannot be reached ({error})"


def config_of(name: str | PathLike[str]) -> dict[str, Any]:
    """The configuration of a model (folder or Hub id). Raises `InputError` where there is none."""
    check_there(str(name))
    hint = "give a model folder (with config.json) or a Hub id that can be reached"
    path = file_of(str(name), CONFIG)
    if path is None:
        raise InputError("no model here: no config.json", where=str(name), hint=hint)
    config = read_json(path, AGAIN)
    if not isinstance(config, dict) or not config:
        raise InputError("is not the configuration of a model", where=str(path), hint=hint)
    labels = config.get("num_labels")
    if isinstance(labels, int) and labels > MOST_LABELS:  # transformers names each of them
        problem = f"num_labels = {labels:,}, expected {MOST_LABELS:,} at most"
        raise InputError(problem, where=str(path), hint=hint)
    return config


def model_type(name: str | PathLike[str]) -> str:
    """The `model_type` of a model (folder or Hub id). Raises `InputError` where there is none."""
    return str(config_of(name).get("model_type", ""))


@contextmanager
def opening(name: str | PathLike[str], *, by: str = "transformers") -> Iterator[dict[str, Any]]:
    """The arguments for `from_pretrained` of a model (folder or Hub id) that was checked.

    Raises `InputError` for a file that is damaged, for weights in a pickle, for sizes that are not
    those of the weights, and for whatever `by` raises, in one message that names the file.
    """
    name = str(name)
    if name in _open:  # an Auto class calls the class of the model
        yield {}
        return
    config = config_of(name)
    place = file_of(name, CONFIG)
    assert place is not None
    _check_files(place.parent)
    shapes = _shapes(name, place.parent)
    _check_sizes(config, shapes, place)
    trusted = _trusted(name, config)
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # what it reports is asked and said here
    _open.add(name)
    try:
        with _bounded(shapes, place), _explained(f"{name}/{CONFIG}", by):
            yield {"trust_remote_code": trusted, "use_safetensors": True}
    finally:
        _open.remove(name)
        transformers_logging.set_verbosity(level)


def load_config(name: str) -> Any:
    """The configuration of a model (folder or Hub id) as its class; `InputError` as `opening`."""
    config = config_of(name)
    with _explained(f"{name}/{CONFIG}", "AutoConfig"):
        return AutoConfig.from_pretrained(name, trust_remote_code=_trusted(name, config))


def load_tokenizer(name: str, config: Any = None) -> Any:
    """The tokenizer of a model (folder or Hub id).

    Raises `InputError` for one that is damaged, and for ids beyond the words of a model's `config`.
    """
    check_there(name)
    for file in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", CONFIG):
        if (path := file_of(name, file)) and not isinstance(read_json(path, AGAIN), dict):
            raise InputError("holds no table", where=str(path), hint=AGAIN)
    about = config_of(name) if file_of(name, CONFIG) else {}
    with _explained(f"{name}: its tokenizer (tokenizer.json)", "AutoTokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=_trusted(name, about))
        limit, largest = tokenizer.model_max_length, max(tokenizer.get_vocab().values())
        words = getattr(getattr(config, "backbone_config", None) or config, "vocab_size", None)
        own = getattr(config, "model_type", "").startswith("discorpora-")
        if not isinstance(limit, int) or limit < 1:
            raise ValueError(f"model_max_length is {limit!r}")
        if own and tokenizer.pad_token_id is None:
            raise ValueError("it has no pad token")
        if words and largest >= words:
            raise ValueError(f"it has a token {largest}, and the model {words} words")
        tokenizer.model_max_length = min(limit, NO_LIMIT)
        return tokenizer


@contextmanager
def _explained(where: str, by: str) -> Iterator[None]:
    """Turn whatever a library raises on reading a stranger's file into one message."""
    try:
        yield
    except BaseException as error:
        # Rust's panics are no `Exception`.
        foreign = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if isinstance(error, DiscorporaError) or not foreign:
            raise
        said = " ".join(str(error).split())
        said = re.sub(r"(https?://\S+|Please pass the argument).*", "", said)[:200].strip()
        hint = FOLDER
        if "ignore_mismatched_sizes" in said:
            said = "the sizes in it are not those of the weights"
        elif "custom code" in said:
            said, hint = (
                "it needs code that came with it, which is not run",
                ("read that code, then give --trust-remote-code to run it"),
            )
        problem = f"{by} cannot load it: {said or type(error).__name__}"
        raise InputError(problem, where=where, hint=hint) from error


def _trusted(name: str, config: Mapping[str, Any]) -> bool:
    """Whether code that came with a model runs: where the user said so, and transformers has none.

    It is said what runs.
    """
    code = config.get("auto_map")
    if not trusts_code() or str(config.get("model_type")) in CONFIG_MAPPING or not code:
        return False
    named = sorted({str(each) for each in (code.values() if isinstance(code, dict) else [code])})
    log.warning("%s: running code that came with it: %s", name, ", ".join(named))
    return True


def _check_files(folder: Path) -> None:
    """Refuse a folder whose files are no JSON, name others outside of it, or another model."""
    for path in sorted(folder.glob("*.json")):
        if path.name != "tokenizer.json":  # as large as its vocabulary; its own library checks it
            read_json(path, AGAIN)
    if (folder / "adapter_config.json").is_file():
        raise InputError(
            "holds an adapter, which names another model to load",
            where=str(folder / "adapter_config.json"),
            hint="merge the adapter (peft: merge_and_unload) and save the whole model",
        )


def _shapes(name: str, folder: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the stored weights by their names, read from the files' headers alone."""
    files = [path] if (path := file_of(name, WEIGHTS)) else []
    if index := file_of(name, INDEX):
        stored = read_json(index, AGAIN)
        named = stored.get("weight_map") if isinstance(stored, dict) else None
        shards = sorted(set(map(str, named.values()))) if isinstance(named, dict) else [""]
        files = []
        for shard in shards:
            path = file_of(name, shard) if Path(shard).name == shard else None
            if path is None:
                problem = f"names a file outside the folder, or not there: {shard!r}"[:200]
                raise InputError(problem, where=str(index), hint=AGAIN)
            files.append(path)
    if not files:
        found = sorted(file.name for kind in PICKLES for file in folder.glob(kind))
        problem = f"its weights are in {found[0]}" if found else "it holds no weights"
        raise InputError(
            f"{problem}; only model.safetensors is read",
            where=name,
            hint="convert it with safetensors.torch.save_file, or ask its author for safetensors",
        )
    shapes: dict[str, tuple[int, ...]] = {}
    for path in files:
        try:
            with safe_open(path, "pt") as opened:
                names = opened.keys()
                shapes |= {key: tuple(opened.get_slice(key).get_shape()) for key in names}
        except (SafetensorError, OSError) as error:
            raise InputError(
                f"its weights are damaged or cut short: {error}", where=str(path), hint=AGAIN
            ) from error
    return shapes


def _check_sizes(
    config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], path: Path
) -> None:
    """Refuse a number that no model has, and more layers or labels than the weights have rows.

    Also a rate of dropout, or a switch of transformers' outputs, that fails only when it is used.
    """
    rows = max((size for shape in shapes.values() for size in shape), default=1)
    for key, value in config.items():
        if isinstance(value, Mapping):
            _check_sizes(value, shapes, path)
        problem = ""
        if re.search("dropout|pdrop", key) and isinstance(value, float) and not 0 <= value <= 1:
            problem = f"{key} = {value}: expected a rate between 0 and 1"
        elif key in ("output_attentions", "output_hidden_states") and value not in (True, False):
            problem = f"{key} = {str(value)[:40]!r}: expected true or false"
        elif isinstance(value, int):
            counted = re.search("layer|label|block|group", key) and not key.endswith("_id")
            if abs(value) > (max(rows, len(shapes)) if counted else SIZE):
                there = f"{len(shapes)} parts of {rows} rows at most"
                problem = f"{key} = {value:.6g}, and the weights have {there}"
        if problem:
            raise InputError(problem, where=str(path), hint=AGAIN)


@contextmanager
def _bounded(shapes: Mapping[str, tuple[int, ...]], path: Path) -> Iterator[None]:
    """Refuse a model while it is made, on torch's device without memory, if it becomes too large.

    Its elements, and its modules, are counted as they are registered.
    """
    left = [SPARE * sum(map(prod, shapes.values())) + BUFFERS, 20 * len(shapes) + PARTS]

    def add(module: Any, key: str, part: Any) -> None:
        if isinstance(part, Module):
            left[1] -= 1
        elif part is not None:
            left[0] -= part.numel()
        if min(left) < 0:
            problem = "the model that it describes is larger than the weights"
            raise InputError(problem, where=str(path), hint=AGAIN)

    handles = [
        register_module_parameter_registration_hook(add),
        register_module_buffer_registration_hook(add),
        register_module_module_registration_hook(add),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
