"""Which model a word means: `scripted:turns.json`, `anthropic:claude-…`, `openai:gpt-…`, or a bare Claude name.

The agent talks to anything that has the one method of the `Model` protocol.
"""

import os
from collections.abc import Callable, Mapping

from hookline.agent.models.base import TABLE, Model, ModelRequest, OnEvent, ToolSpec
from hookline.errors import ModelError

__all__ = ["Model", "ModelRequest", "OnEvent", "ToolSpec", "choose", "resolve"]

DEFAULT = "default"
OPENAI_HEADERS = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
WINDOW = "[1m]"  # a longer context window, which a model has or has not: the word is not part of its name


def choose(spec: str = "", environ: Mapping[str, str] = os.environ) -> Model:
    """The model `spec` names; raises `ModelError` that says what to set when its key is missing.

    Nothing is contacted and no SDK is imported before the first request.
    """
    wanted = spec or environ.get("ANTHROPIC_MODEL") or DEFAULT
    provider, _, name = wanted.partition(":")
    if provider in PROVIDERS:
        return PROVIDERS[provider](name, environ)
    if "claude" in wanted or wanted.removesuffix(WINDOW) in TABLE.aliases:  # `us.anthropic.claude-…-v1:0` is one name
        return _anthropic(wanted, environ)
    known = "`scripted:turns.json`, `anthropic:MODEL` or `openai:MODEL`"
    raise ModelError(f"unknown model `{spec}`; write {known}", "model_not_found")


def resolve(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """The name of the model that a word such as `sonnet` or `opus[1m]` means; other names stay as they are."""
    word = name.removesuffix(WINDOW) or DEFAULT
    return environ.get(TABLE.stated.get(word, "")) or TABLE.aliases.get(word, word)


def _scripted(name: str, _environ: Mapping[str, str]) -> Model:
    from hookline.agent.models.scripted import Scripted

    if not name:
        raise ModelError("model `scripted` needs a script; write `scripted:turns.json`", "invalid_request")
    return Scripted.load(name)


def _anthropic(name: str, environ: Mapping[str, str]) -> Model:
    from hookline.agent.models.anthropic import Anthropic

    key, token = environ.get("ANTHROPIC_API_KEY", ""), environ.get("ANTHROPIC_AUTH_TOKEN", "")
    if not key and not token:
        what = "set `ANTHROPIC_API_KEY`, or try `--model scripted:turns.json`"
        raise ModelError(f"model `{name or 'anthropic'}` needs a key; {what}", "authentication_failed")
    base_url = environ.get("ANTHROPIC_BASE_URL", "")
    return Anthropic(resolve(name, environ), api_key=key, auth_token=token, base_url=base_url)


def _openai(name: str, environ: Mapping[str, str]) -> Model:
    from hookline.agent.models.openai import OpenAI

    base_url = environ.get("OPENAI_BASE_URL", "")
    key = environ.get("OPENAI_API_KEY") or ("none" if base_url else None)  # local servers take any key
    if not key:
        what = "set `OPENAI_API_KEY` (or `OPENAI_BASE_URL`)"
        raise ModelError(f"model `{name or 'openai'}` needs a key; {what}", "authentication_failed")
    if not name:
        raise ModelError("model `openai` needs a name; write `openai:MODEL`", "model_not_found")
    # as the official SDKs have it: a line of `NAME: VALUE` for each header
    lines = [line.partition(":") for line in environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")]
    about = {name: environ.get(variable) for name, variable in OPENAI_HEADERS.items()}
    about |= {header.strip().lower(): value.strip() for header, _, value in lines if header.strip()}
    return OpenAI(name, api_key=key, base_url=base_url, headers={one: value for one, value in about.items() if value})


Provider = Callable[[str, Mapping[str, str]], Model]
PROVIDERS: dict[str, Provider] = {"scripted": _scripted, "anthropic": _anthropic, "openai": _openai}
