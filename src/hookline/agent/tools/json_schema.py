"""Whether a JSON value fits a JSON Schema, by the `jsonschema` package, which the MCP SDK brings along."""

from __future__ import annotations

from typing import Any

from hookline.errors import ConfigError


def misfits(value: Any, schema: Any) -> list[str]:
    """Why a value does not fit, each with where: `/words/0: 1 is not of type 'string'`."""
    try:
        from jsonschema import Draft202012Validator as Validator  # type: ignore[import-untyped]
        from jsonschema.exceptions import SchemaError, _WrappedReferencingError  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigError("a JSON Schema", "needs a package; run `pip install 'hookline[agent]'`") from None
    try:
        Validator.check_schema(schema)
        found = sorted(Validator(schema).iter_errors(value), key=lambda one: list(map(str, one.absolute_path)))
    except (SchemaError, _WrappedReferencingError, RecursionError) as problem:
        return [f"/: the schema is not one to judge by: {str(problem).partition(chr(10))[0] or 'it has no end'}"]
    return [f"/{'/'.join(map(str, one.absolute_path))}: {one.message}" for one in found]
