"""JSON Schema of a settings file, for editors: generated from the tables that read one. Pure.

It describes what Hookline knows and allows everything else, because the same file holds other programs' settings.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hookline.events import CATALOG
from hookline.settings.parse import COMMON, KINDS, REQUIRED, KeySpec

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ADDRESS = "urn:hookline:settings"
"""The schema's name; the wheel holds it as `hookline/settings/settings.schema.json`."""


def settings_schema() -> dict[str, Any]:
    """The whole document."""
    events = {name: {"$ref": "#/$defs/groups", "description": row.about} for name, row in CATALOG.items()}
    return {
        "$schema": DRAFT,
        "$id": ADDRESS,
        "title": "Hook settings",
        "type": "object",
        "properties": {
            "hooks": {
                "description": "Hooks by event.",
                "type": "object",
                "properties": events,
                "additionalProperties": False,
            },
            "disableAllHooks": {"description": "Switch all hooks off.", "type": "boolean"},
            "sink": {"description": "Where the audit log is pushed to.", "type": ["string", "object", "array"]},
            "permissions": {"$ref": "#/$defs/permissions"},
            "env": {"description": "Variables for hooks and tools.", "type": "object"},
        },
        "$defs": {
            "groups": {"type": "array", "items": {"$ref": "#/$defs/group"}},
            "group": {
                "type": "object",
                "properties": {
                    "matcher": {
                        "description": "Names joined by `|`, a glob or a regular expression.",
                        "type": "string",
                    },
                    "hooks": {"type": "array", "items": {"anyOf": [_kind_ref(kind) for kind in KINDS]}},
                },
                "required": ["hooks"],
            },
            "permissions": _permissions(),
            **{f"hook_{kind}": _hook(kind) for kind in KINDS},
        },
    }


def _kind_ref(kind: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/hook_{kind}"}


def _hook(kind: str) -> dict[str, Any]:
    """One kind of hook entry: its own keys, and those of every kind."""
    keys = {**COMMON, **KINDS[kind]}
    return {
        "type": "object",
        "properties": {"type": {"const": kind}, **{key: _key(field) for key, field in keys.items()}},
        "required": ["type", *REQUIRED.get(kind, ())],
    }


def _key(field: KeySpec) -> dict[str, Any]:
    """What an editor may offer and check: the type of the example, and what to write."""
    example = json.loads(field.write)
    kind = "number" if isinstance(example, int) and not isinstance(example, bool) else _JSON_TYPES[type(example)]
    choices = re.findall(r'`"?(\w+)"?`', field.want)
    limits = {"enum": choices} if kind == "string" and len(choices) > 1 else {"type": kind}
    return {"description": field.want, "examples": [example], **limits}


_JSON_TYPES = {bool: "boolean", str: "string", list: "array", dict: "object", float: "number"}


def _permissions() -> dict[str, Any]:
    rules = {"type": "array", "items": {"type": "string", "examples": ["Bash(git *)", "Read(./.env)"]}}
    return {
        "description": "Which tools need no question, which need one, which are forbidden.",
        "type": "object",
        "properties": {"allow": rules, "ask": rules, "deny": rules, "defaultMode": {"type": "string"}},
    }
