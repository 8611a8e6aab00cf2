"""Kimi Code: hooks in TOML; only gates are listened to, and a prompt is refused by exit code alone."""

from __future__ import annotations

from typing import Any

from hookline.hosts.host import read_row


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """A prompt is a list of parts; the texts of it are the prompt."""
    prompt = payload.get("prompt")
    if isinstance(prompt, list):
        texts = [part.get("text", "") for part in prompt if isinstance(part, dict)]
        payload["prompt"] = "\n".join(text for text in texts if isinstance(text, str))
    return payload


KIMI = read_row("kimi", unwrap=_unwrap)
