"""Which model a word means: `scripted:turns.json`, `anthropic:claude-…`, `openai:gpt-…`, or a bare Claude name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from hookline.agent.models.base import Model
from hookline.errors import ModelError

__all__ = ["ALIASES", "choose"]

ALIASES = {
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-4-5",
    "haiku": "claude-haiku-4-5",
}
DEFAULT = "anthropic:opus"


def choose(spec: str = "", environ: Mapping[str, str] = os.environ) -> Model:
    """The model `spec` names; raises `ModelError` that says what to set when its key is missing.

    Nothing is contacted and no SDK is imported before the first request.
    """
    provider, _, name = (spec or environ.get("ANTHROPIC_MODEL") or DEFAULT).partition(":")
    if provider in PROVIDERS:
        return PROVIDERS[provider](name, environ)
    if provider.startswith("claude-") or provider in ALIASES:
        return _anthropic(provider, environ)
    known = "`scripted:turns.json`, `anthropic:MODEL` or `openai:MODEL`"
    raise ModelError(f"unknown model `{spec}`; write {known}", "model_not_found")


def _scripted(name: str, _environ: Mapping[str, str]) -> Model:
    from hookline.agent.models.scripted import Scripted

    if not name:
        raise ModelError("model `scripted` needs a script; write `scripted:turns.json`", "invalid_request")
    return Scripted.load(name)


def _anthropic(name: str, environ: Mapping[str, str]) -> Model:
    from hookline.agent.models.anthropic import Anthropic

    key, token = environ.get("ANTHROPIC_API_KEY"), environ.get("ANTHROPIC_AUTH_TOKEN")
    if not key and not token:
        raise ModelError(
            f"model `{name or 'anthropic'}` needs a key; set `ANTHROPIC_API_KEY`, or try `--model scripted:turns.json`",
            "authentication_failed",
        )
    model = ALIASES.get(name, name) or ALIASES["opus"]
    return Anthropic(model, api_key=key, auth_token=token, base_url=environ.get("ANTHROPIC_BASE_URL") or None)


def _openai(name: str, environ: Mapping[str, str]) -> Model:
    from hookline.agent.models.openai import OpenAI

    base_url = environ.get("OPENAI_BASE_URL") or None
    key = environ.get("OPENAI_API_KEY") or ("none" if base_url else None)  # local servers take any key
    if not key:
        raise ModelError(
            f"model `{name or 'openai'}` needs a key; set `OPENAI_API_KEY` (or `OPENAI_BASE_URL`)",
            "authentication_failed",
        )
    if not name:
        raise ModelError("model `openai` needs a name; write `openai:MODEL`", "model_not_found")
    return OpenAI(name, api_key=key, base_url=base_url)


PROVIDERS: dict[str, Callable[[str, Mapping[str, str]], Model]] = {
    "scripted": _scripted,
    "anthropic": _anthropic,
    "openai": _openai,
}
