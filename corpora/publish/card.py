"""The card as it goes to the Hub: ours, merged with what people wrote there.

The rule, in two parts:

- *Text*: ours stands between two markers. What stands before and after them on the Hub stays,
  byte for byte; a card without markers stays whole, and ours follows it.
- *Metadata*: the keys of ours replace the remote's, other keys stay; `tags` are united. An empty
  value of ours replaces nothing. The licence keys go together: `license` of ours takes the
  remote's `license_name` and `license_link` away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpora.errors import InputError
from corpora.publish.folder import CARD, Publication

BEGIN = "<!-- discorpora:begin -->"
END = "<!-- discorpora:end -->"
UNFINISHED = "being-published"
NOTICE = """\
> **Not whole: a new version is being published.** Come back later, or load an older revision.
> If this stays, the publication broke off and has to be run again.
"""
LICENCE_KEYS = ("license", "license_name", "license_link")


def published_card(plan: Publication, theirs: str | None) -> str:
    """The folder's card merged into the remote's, with the repository's id in its examples."""
    ours = (plan.folder / CARD).read_text(encoding="utf-8")
    name = plan.manifest.get("name")
    ours = ours.replace(f'load_dataset("{name}"', f'load_dataset("{plan.repo_id}"')
    ours = ours.replace("from_pretrained(FOLDER)", f'from_pretrained("{plan.repo_id}")')
    licence = {"license": plan.licence.hub}
    if plan.licence.hub == "other":
        licence["license_name"] = plan.licence.id.lower()
    return merge(ours, theirs, licence, where=f"the card of {plan.repo_id} on the Hub")


def unfinished_card(plan: Publication, card: str) -> str:
    """The card for as long as the repository holds a part of `plan` only: nothing loads.

    `datasets` reads what the metadata's configurations name, and without any whatever lies there:
    so the only one is of files that never are.
    """
    data, text = split(card, where="the card to publish")
    data = {key: value for key, value in data.items() if key not in ("configs", "dataset_info")}
    if plan.kind == "dataset":
        data["configs"] = [{"config_name": UNFINISHED, "data_files": f"{UNFINISHED}.parquet"}]
    return _join(data, text.replace(BEGIN, f"{BEGIN}\n{NOTICE}", 1))


def merge(ours: str, theirs: str | None, overrides: Mapping[str, Any], *, where: str) -> str:
    """The card to publish, from ours and the one on the Hub (None if there is none).

    `overrides` replace metadata of ours. Raises `InputError` naming `where` (the remote card) if
    its metadata cannot be read or its markers do not pair up.
    """
    data, body = split(ours, where="the card of this folder")
    data = _without_licence(data) | dict(overrides) if "license" in overrides else data
    if theirs is None:
        return _join(data, _marked(body))
    remote, text = split(theirs, where=where)
    return _join(merge_metadata(data, remote), _insert(body, text, where))


def merge_metadata(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of both, by the rule above; the remote's order of keys is kept."""
    filled = {key: value for key, value in ours.items() if value not in (None, "", [], {})}
    kept = _without_licence(theirs) if "license" in filled else dict(theirs)
    merged = {key: filled.get(key, kept.get(key)) for key in theirs if key in {*kept, *filled}}
    merged |= {key: value for key, value in filled.items() if key not in merged}
    tags = [*_strings(theirs.get("tags")), *_strings(ours.get("tags"))]
    return merged | ({"tags": list(dict.fromkeys(tags))} if tags else {})


def split(card: str, *, where: str) -> tuple[dict[str, Any], str]:
    """A card's metadata and its text. Raises `InputError` if the metadata cannot be read."""
    import yaml  # type: ignore[import-untyped]
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    found = REGEX_YAML_BLOCK.search(card.removeprefix("\ufeff"))
    if not found:
        return {}, card
    try:
        data = yaml.safe_load(found.group(2))
    except yaml.YAMLError as error:
        raise _unreadable(where, f"its metadata is not YAML: {error}") from error
    if data is not None and not isinstance(data, dict):
        raise _unreadable(where, "its metadata is no mapping of keys to values")
    return data or {}, card.removeprefix("\ufeff")[found.end() :]


def _insert(body: str, text: str, where: str) -> str:
    """The remote's `text` with `body` in place of what stands between the markers."""
    counts = text.count(BEGIN), text.count(END)
    if counts == (0, 0):
        return (text if text.endswith("\n") else f"{text}\n") + _marked(body)
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if counts != (1, 1) or not found:
        raise _unreadable(where, f"it needs one {BEGIN!r} and after it one {END!r}, or neither")
    return f"{before}{BEGIN}\n{body.strip()}\n{END}{after}"


def _marked(body: str) -> str:
    return f"\n{BEGIN}\n{body.strip()}\n{END}\n"


def _join(data: Mapping[str, Any], text: str) -> str:
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    return f"---\n{yaml_dump(dict(data), sort_keys=False).strip()}\n---\n{text}"


def _without_licence(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in LICENCE_KEYS}


def _strings(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value or ()]


def _unreadable(where: str, why: str) -> InputError:
    return InputError(why, where=where, hint="mend the card on the Hub, then publish again")
