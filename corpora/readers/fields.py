"""Typed fields of records from outside: what a reader takes of a JSON object or of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)

from corpora.readers.files import Refused

Record = Mapping[str, Any]

_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    str: "a string",
    Mapping: "an object",
    list: "an empty list",
    tuple: "an empty list",
}
_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "list_type": "a list",
    "tuple_type": "a list",
    "model_type": "an object",
    "dict_type": "an object",
}
"""The expected value, by pydantic's type of an error."""


def json_type(value: object) -> str:
    """Return the JSON type of a value for a message: `a string`, `a list that holds null`."""
    if isinstance(value, list | tuple) and value:
        types = ("a list" if isinstance(v, list | tuple) else json_type(v) for v in value[:100])
        return f"a list that holds {' and '.join(sorted(set(types)))}"
    names = (name for kind, name in _TYPES.items() if isinstance(value, kind))
    return next(names, "a number")


class Fields(BaseModel):
    """The fields that a reader takes of a record, with their types; others are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    @classmethod
    def of(cls, record: object) -> Self:
        """Return the fields of a record.

        Messages name a field by `record.names`, which maps roles to field names, if there are any.
        Raises `Refused` for a missing field and for a value of another type.
        """
        try:
            return cls.model_validate(record)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        kind, value, keys = first["type"], first["input"], list(map(str, first["loc"]))
        keys[:1] = [getattr(record, "names", {}).get(role, role) for role in keys[:1]]
        field = f"field {'.'.join(keys)!r}" if keys else "the record"
        if kind == "missing":
            raise Refused(f"no {keys[-1]}: expected the {field}")
        if kind == "string_unicode":
            raise Refused(f"not text: {field} holds half a surrogate pair")
        expected = _EXPECTED.get(kind) or first["msg"].removeprefix("Input should be ")
        right_type = isinstance(value, str) and not kind.endswith("_type")
        value_text = repr(value[:40]) if right_type else json_type(value)
        raise Refused(f"wrong type: {field} is {value_text}, expected {expected}")


def _as_text(value: Any) -> Any:
    """Return a number as a string, null and NaN as "", any other value unchanged."""
    if value is None or value != value:  # only NaN differs from itself
        return ""
    return str(value) if type(value) in (int, float) else value


def _as_list(value: Any) -> Any:
    """Return a string as a list of one, null as an empty list, any other value unchanged."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def _check_not_empty(text: str, field: ValidationInfo) -> str:
    """Return the text without white space around it; `Refused` if nothing is left."""
    if text := text.strip():
        return text
    raise Refused(f"no text: {field.field_name!r} is empty")


Text = Annotated[str, BeforeValidator(_as_text)]
"""A string; numbers are read as strings, null and NaN (a gap in a table) as an empty one."""
Filled = Annotated[str, AfterValidator(_check_not_empty)]
"""A string with text, without white space around it."""
Strings = Annotated[list[str], Field(fail_fast=True)]
NONE: Any = ()
"""The default of a list: pydantic would copy an empty list for each record."""
Texts = Annotated[Strings, BeforeValidator(_as_list)]
"""A list of strings, or one string as a list of one; null as an empty list."""
