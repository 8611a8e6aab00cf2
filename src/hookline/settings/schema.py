"""JSON Schema of a settings file, for editors: generated from the tables that read one. Pure.

It describes what Hookline knows and allows everything else, because the same file holds other programs' settings.
"""

from __future__ import annotations

from typing import Any

from hookline.events import CATALOG
from hookline.settings.fields import COMMON, KINDS, REQUIRED

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
        "properties": {"type": {"const": kind}, **{key: field.schema() for key, field in keys.items()}},
        "required": ["type", *REQUIRED.get(kind, ())],
    }


def _permissions() -> dict[str, Any]:
    rules = {"type": "array", "items": {"type": "string", "examples": ["Bash(git *)", "Read(./.env)"]}}
    return {
        "description": "Which tools need no question, which need one, which are forbidden.",
        "type": "object",
        "properties": {"allow": rules, "ask": rules, "deny": rules, "defaultMode": {"type": "string"}},
    }
