"""JSON Schema of every event and every answer, generated from the types that decode them. Pure.

```python
from hookline.core.wire.schema import event_schema, reply_schema

event_schema("PreToolUse")["properties"]["tool_name"]  # {"type": "string"}
reply_schema("PreToolUse")["properties"]["decision"]  # {"enum": ["approve", "block"]}
```
"""

from typing import Any

import msgspec

from hookline.core.wire.output_types import fields_of, output_type
from hookline.events import CATALOG, spec_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_OURS = ("hookline.timestamp", "hookline.extra")


def event_schema(name: str) -> dict[str, Any]:
    """What a line that announces this event looks like; fields that are not listed may be there too."""
    spec = spec_of(name)
    _, shared = msgspec.json.schema_components([spec.cls], ref_template="#/$defs/{name}")
    body = shared[spec.cls.__name__]
    properties = {key: value for key, value in body["properties"].items() if key not in _OURS}
    properties["hook_event_name"] = {"const": name}
    required = ["hook_event_name", *(["tool_name"] if spec.subject == "tool_name" else [])]
    # without the defaults that only Python needs: the wire has no `""` for what was left out
    bare = {key: {word: v for word, v in kind.items() if word != "default"} for key, kind in properties.items()}
    described = {"description": spec.about, "type": "object", "properties": bare, "required": required}
    return {"$schema": DRAFT, "title": name, **described}


def reply_schema(name: str) -> dict[str, Any]:
    """What a hook may print to answer this event; what is not listed is ignored."""
    cls = output_type(spec_of(name).name)
    _, shared = msgspec.json.schema_components([cls], ref_template="#/$defs/{name}")
    body = shared.pop(cls.__name__)
    properties = {key: _inlined(value, shared) for key, value in body["properties"].items()}
    if not fields_of(name):
        properties["hookSpecificOutput"] = False
    about = f"What a hook may answer to {name}."
    return {"$schema": DRAFT, "title": f"Reply to {name}", "description": about, "type": "object",
            "properties": properties}  # fmt: skip


def schema() -> dict[str, Any]:
    """All of it in one document: it describes any event; answers are under `$defs`, as `ReplyTo…`."""
    events = {name: _part(event_schema(name)) for name in CATALOG}
    replies = {f"ReplyTo{name}": _part(reply_schema(name)) for name in CATALOG}
    choices = [{"$ref": f"#/$defs/{name}"} for name in CATALOG]
    return {"$schema": DRAFT, "title": "Hookline events and replies", "oneOf": choices, "$defs": {**events, **replies}}


def _part(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "$schema"}


def _inlined(kind: Any, shared: dict[str, Any]) -> Any:
    """The schema with every reference replaced by what it refers to, so that it can be embedded anywhere."""
    if isinstance(kind, list):
        return [_inlined(item, shared) for item in kind]
    if not isinstance(kind, dict):
        return kind
    if "$ref" in kind:
        return _inlined(shared[kind["$ref"].rpartition("/")[2]], shared)
    return {key: _inlined(value, shared) for key, value in kind.items() if key != "discriminator"}
