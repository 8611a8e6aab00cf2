"""`install --mcp`: the gateway in front of each MCP server in a host's own files, and out again, to the byte.

What was written before is kept with each entry: it is put back where it stood, also in a file that the host has
written since. An entry that is no longer ours stays as it is.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hookline.core.files import private_folder
from hookline.core.interpreter import entry_argv
from hookline.errors import HooklineError
from hookline.hosts import judged_calls
from hookline.hosts.host import Host, ServerFile
from hookline.hosts.install import apply as files
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.entries import HookSource, Scope, user_path

_LOGIN = ("oauth", "auth", "authProviderType", "oauth_resource", "scopes")
_TOKENS = ("bearer_token_env_var", "bearerTokenEnvVar", "api_key_env", "env_http_headers", "headersHelper")
_HEADERS = ("headers", "http_headers")
_VARIABLE = "HOOKLINE_HEADER_"
_BETWEEN = "\0"
Wrap = Callable[[str, Any], dict[str, Any] | str]
"""An entry's new value, from its name and its old one; why, if it stays as it is."""


def servers_path(host: Host, scope: Scope, project: Path | None = None) -> Path | None:
    """The file that holds a host's MCP servers; `None` if there is none in that scope."""
    form = host.servers
    if form is None or (scope != "user" and not form.project):
        return None
    path = user_path(host, form.user) if scope == "user" else (project or Path.cwd()) / form.project
    with_comments = path.with_suffix(".jsonc")
    return with_comments if with_comments.is_file() and not path.is_file() else path


def put_in(host: Host, source: HookSource, scope: Scope, project: Path | None = None) -> list[str]:
    """Put the gateway in front of a host's servers; what to tell the user of each, also of those that stay."""
    path, form = servers_path(host, scope, project), host.servers
    if path is None or form is None or not path.is_file():
        where = "" if path is None else f" in {path}"
        return [f"{host.title} has no MCP servers{where}: nothing is behind the gateway"]
    lost: dict[str, str] = {}
    saved: dict[str, str] = {}
    new = partial(wrap, form, program=entry_argv(), flags=["--agent", host.name, *source.flags])
    old = files.load_record(f"{host.name}-mcp", scope, files.place(scope, project))
    kept = old.trust if old else {}
    change = files.plan_edit(
        path, old, lambda text: _restored(form, text, kept), lambda text: _edited(form, text, new, saved, lost)
    )
    private_folder(judged_calls.folder())
    if saved or old:
        where = files.place(scope, project)
        files.apply(files.InstallRecord(host=f"{host.name}-mcp", scope=scope, project=where, trust=saved), [change])
    beyond = [f"not behind the gateway: {form.beyond}"] if form.beyond else []
    here = [f"{path} names folders of this machine now: do not share it"] if scope != "user" and saved else []
    names = dict.fromkeys(key.rpartition(_BETWEEN)[2] for key in saved)
    notes = [f"MCP server `{name}` is behind the gateway" for name in names]
    notes += [f"MCP server `{name}` is not behind the gateway: {why}" for name, why in lost.items()]
    return [*notes, *beyond, *here]


def take_out(host: Host, scope: Scope, project: Path | None = None) -> list[Path]:
    """Take the gateway out of a host's files; the files that changed."""
    form, old = host.servers, files.load_record(f"{host.name}-mcp", scope, files.place(scope, project))
    if form is None or old is None:
        return []
    return files.take_out(old, {Path(one.path): lambda text: _restored(form, text, old.trust) for one in old.files})


def _edited(form: ServerFile, text: str, new: Wrap, saved: dict[str, str], lost: dict[str, str]) -> str:
    """The text with new entries; `saved` gets what stood there before, `lost` why an entry stays as it is."""
    root = jsonc.parse(text) if form.kind == "json" else None
    found = list(_entries(form, root)) if root else list(_items(toml_edit.checked(text).get(form.key)))
    names = [path for path, _ in found]
    for path, entry in found:
        made = new(path[-1], entry) if names.count(path) == 1 and path[-1] else "its name is not its own"
        try:
            if not isinstance(made, str):
                node = jsonc.lookup(jsonc.parse(text), path) if root else None
                before = text[node.start : node.end] if node else toml_edit.literal(entry)
                text = _put(form, text, path, entry, made)
                saved[_BETWEEN.join(path)] = before
        except HooklineError as problem:
            made = str(problem)
        if isinstance(made, str):
            lost[path[-1]] = made
    return text


def _restored(form: ServerFile, text: str, saved: dict[str, str]) -> str:
    """The text with what stood there before, where an entry is still ours."""
    for key, before in saved.items():
        path = tuple(key.split(_BETWEEN))
        if form.kind == "json":
            node = jsonc.lookup(jsonc.parse(text), path)
            text = text[: node.start] + before + text[node.end :] if node and is_wrapped(node.value) else text
        else:
            entry = dict(_items(toml_edit.checked(text).get(form.key))).get(path)
            text = _put(form, text, path, entry, toml_edit.checked(f"x = {before}")["x"]) if is_wrapped(entry) else text
    return text


def _entries(form: ServerFile, root: jsonc.Node) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each server's entry, with the keys that lead to it."""
    tables: list[tuple[str, ...]] = [(form.key,)]
    nested = root.members.get(form.nested)
    tables += [(form.nested, name, form.key) for name in (nested.members if nested else ())]
    for table in tables:
        found = jsonc.lookup(root, table)
        for name, node in found.members.items() if found else ():
            yield (*table, name), node.value


def _items(values: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The entries of a table, or of an array of tables that say their names."""
    yield from (((name,), entry) for name, entry in values.items()) if isinstance(values, dict) else ()
    yield from (((str(row.get("name", "")),), row) for row in values) if isinstance(values, list) else ()


def _put(form: ServerFile, text: str, path: tuple[str, ...], old: Any, new: dict[str, Any]) -> str:
    """The text with an entry in place of another one."""
    if form.kind == "json":
        return jsonc.put(text, path, new)
    if form.kind == "rows":
        rest = toml_edit.remove_rows(text, form.key, lambda row: row.get("name") == path[-1])
        return toml_edit.add_row(rest, form.key, new)
    for field in [field for field in old if field not in new]:
        text = toml_edit.remove_value(text, (form.key, *path, field))
    for field, value in new.items():
        if old.get(field) != value:
            text = toml_edit.set_value(text, (form.key, *path, field), value)
    return text


def wrap(
    form: ServerFile, name: str, entry: Any, *, program: Sequence[str], flags: Sequence[str]
) -> dict[str, Any] | str:
    """An entry that starts the gateway, which starts the server; why not, if that cannot be done."""
    if not isinstance(entry, dict):
        return "its entry is not an object"
    headers: dict[str, Any] = {}
    if words := _words(entry):
        kept = entry
    elif isinstance(address := entry.get(form.url), str) and entry.get("type") != "sse":
        if any(field in entry for field in _LOGIN):
            return "it wants a login by OAuth, which is between the host and the server"
        if found := next((field for field in _TOKENS if field in entry), ""):
            return f"its token comes by `{found}`; write the entry yourself, with `hookline mcp --header`"
        headers = next((entry[field] for field in _HEADERS if isinstance(entry.get(field), dict)), {})
        if not _are_texts(headers.values()):
            return "its headers are not texts"
        if not headers and urlsplit(address).hostname not in ("localhost", "127.0.0.1", "::1"):
            return "it may want a login by OAuth, which is between the host and the server"
        words, kept = [address], {key: entry[key] for key in entry if key not in (form.url, "type", *_HEADERS)}
    else:
        is_address = isinstance(entry.get("url"), str)
        return f"it is {'reached by server-sent events' if is_address else 'neither a program nor an address'}"
    named = {f"{_VARIABLE}{number}": header for number, header in enumerate(headers)}
    pins = f"{server_name(name)}-{hashlib.sha256(msgspec.json.encode(words)).hexdigest()[:8]}"
    sent = [word for variable, header in named.items() for word in ("--header", f"{header}={variable}")]
    argv = [*program, "mcp", "--name", server_name(name), "--pins", pins, *flags, *sent, "--", *words]
    made = {**kept, **form.marks, **({"command": argv} if form.as_list else {"command": argv[0], "args": argv[1:]})}
    if named:
        made[form.env] = {**(kept.get(form.env) or {}), **{variable: headers[name] for variable, name in named.items()}}
    return made


def is_wrapped(entry: Any) -> bool:
    """Whether an entry starts the gateway."""
    words = _words(entry) if isinstance(entry, dict) else []
    before = words[: words.index("--")] if "--" in words else []
    return "mcp" in before and "--pins" in before and any("hookline" in word for word in before)


def server_name(name: str) -> str:
    """A server's name as it stands in `mcp__NAME__TOOL`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name).strip("_-")[:48] or "server"


def _words(entry: Mapping[str, Any]) -> list[str]:
    """The command line of a program's entry; none if it is not one."""
    command, arguments = entry.get("command"), entry.get("args") or []
    words = command if isinstance(command, list) else [command, *(arguments if isinstance(arguments, list) else [None])]
    return words if all(isinstance(word, str) and word for word in words[:1]) and _are_texts(words) else []


def _are_texts(words: Iterable[Any]) -> bool:
    return all(isinstance(word, str) for word in words)
