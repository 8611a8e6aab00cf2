"""From a tool's `Input` struct: the schema the model is given, and the check that its arguments fit.

The check reports every problem at once, in words the model can act on, the same words Claude Code uses.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from hookline.errors import ToolInputInvalid

JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "number"),
    (float, "number"),
    (dict, "object"),
    (list, "array"),
    (type(None), "null"),
)


@cache
def schema_of(struct: type[Struct]) -> dict[str, Any]:
    """The struct's JSON Schema with its references written out, closed against unknown names."""
    (schema,), definitions = msgspec.json.schema_components([struct], ref_template="{name}")
    whole = _inline(schema, definitions)
    whole.pop("title", None)
    return {**whole, "additionalProperties": False}


def validate(tool: str, struct: type[Struct], given: Any) -> dict[str, Any]:
    """The arguments with the struct's defaults filled in; raises `ToolInputInvalid` with every issue."""
    if not isinstance(given, dict):
        raise ToolInputInvalid(tool, [f"The input is expected as `object` but provided as `{json_type(given)}`"])
    known = {field.encode_name: field for field in fields(struct)}
    issues = [
        f"The required parameter `{name}` is missing"
        for name, field in known.items()
        if field.required and name not in given
    ]
    issues += [issue for name, field in known.items() if name in given and (issue := _issue(field, given[name]))]
    issues += [f"An unexpected parameter `{name}` was provided" for name in given if name not in known]
    if issues:
        raise ToolInputInvalid(tool, issues)
    defaults = {name: field.default for name, field in known.items() if _has_default(field)}
    return {**given, **{name: value for name, value in defaults.items() if name not in given}}


def json_type(value: Any) -> str:
    """What JSON calls the value's type."""
    return next((word for kind, word in JSON_TYPES if isinstance(value, kind)), "unknown")


def _has_default(field: FieldInfo) -> bool:
    return field.default not in (msgspec.NODEFAULT, msgspec.UNSET)


def _issue(field: FieldInfo, value: Any) -> str | None:
    try:
        msgspec.convert(value, field.type)
    except msgspec.ValidationError as problem:
        expected = _expected(field)
        if expected and json_type(value) != expected:
            kinds = f"`{expected}` but provided as `{json_type(value)}`"
            return f"The parameter `{field.encode_name}` type is expected as {kinds}"
        return f"The parameter `{field.encode_name}` is invalid: {problem}"
    return None


def _expected(field: FieldInfo) -> str | None:
    (schema,), definitions = msgspec.json.schema_components([field.type], ref_template="{name}")
    kind = _inline(schema, definitions).get("type")
    return "number" if kind == "integer" else kind


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inline(definitions[schema["$ref"]], definitions)
    return {key: _inline(value, definitions) for key, value in schema.items()}
