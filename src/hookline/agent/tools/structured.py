"""StructuredOutput: how the model gives its answer when a schema was asked for (`--json-schema`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult
from hookline.errors import ConfigError, ToolInputInvalid
from hookline.hosts.gateway.messages import misfits


class StructuredOutput(Tool):
    """Takes the answer, if it fits the schema; `answer` holds it, and is `UNSET` until then."""

    name: ClassVar[str] = "StructuredOutput"
    description: ClassVar[str] = (
        "Gives your final answer in the form that was asked for. Call it exactly once, when everything else is done."
    )
    Input: ClassVar[type[Struct]] = Struct
    within_session: ClassVar[bool] = True

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)
        self.answer: Any = msgspec.UNSET

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema that was asked for."""
        return self._schema

    def validate(self, given: Any) -> dict[str, Any]:
        """The answer, if it fits; raises `ToolInputInvalid` with every misfit."""
        problems = misfits(given, self._schema)
        if problems or not isinstance(given, dict):
            raise ToolInputInvalid(self.name, problems or ["/: expected an object"])
        return given

    def rewritten(self, given: dict[str, Any]) -> dict[str, Any]:
        """What a hook wrote in its place fits the schema too, or is refused."""
        return self.validate(given)

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Take it."""
        self.answer = given
        return ToolResult("Structured output provided successfully", "Structured output provided successfully")


def read_schema(text: str) -> dict[str, Any]:
    """The schema of `--json-schema`, which describes an object; raises `ConfigError`."""
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise ConfigError("--json-schema", f'expected JSON such as {{"type": "object", …}}: {problem}') from None
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ConfigError("--json-schema", 'expected the schema of an object, such as `{"type": "object", …}`')
    return {"type": "object", **schema}
