"""The JavaScript plugin that lets opencode ask Hookline. Pure."""

from __future__ import annotations

import json

from hookline.hosts.install.entries import MARGIN, HookEntry

_HEAD = """// hookline: `hookline uninstall opencode` takes this out
import { spawn } from "node:child_process";

const commands = new Map(/*commands*/%s/*end*/);
const patience = %d; // ms; hookline itself answers earlier

const ask = (hook, cwd, input, output) =>
  new Promise((resolve) => {
    const refuse = (why) => resolve({ deny: `hookline ${why}; this fails closed` });
    const child = spawn("/bin/sh", ["-c", commands.get(hook)], { cwd, stdio: ["pipe", "pipe", "ignore"] });
    const timer = setTimeout(() => { refuse("gave no answer in time"); child.kill("SIGKILL"); }, patience);
    let said = "";
    child.stdout.on("data", (data) => { said += data; });
    child.on("error", (error) => { clearTimeout(timer); refuse(`could not be started: ${error.message}`); });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (said.trim() === "" && code === 0) return resolve({});
      try { resolve(JSON.parse(said)); } catch { refuse(`could not be asked (exit code ${code})`); }
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ hook, cwd, input, output, servers }));
  });

let servers = []; // whose tools are called SERVER_TOOL

export const Hookline = async ({ directory }) => ({
  config: async (config) => { servers = Object.keys(config.mcp ?? {}); },
"""

_PARTS = {
    "tool.execute.before": """  "tool.execute.before": async (input, output) => {
    const answer = await ask("tool.execute.before", directory, input, output);
    if (answer.deny) throw new Error(answer.deny);
    if (answer.args) {
      for (const name of Object.keys(output.args)) delete output.args[name];
      Object.assign(output.args, answer.args);
    }
  },
""",
    "tool.execute.after": """  "tool.execute.after": async (input, output) => {
    const answer = await ask("tool.execute.after", directory, input, output);
    if (answer.output !== undefined) output.output = answer.output;
    if (answer.append) output.output = `${output.output}\\n${answer.append}`;
  },
""",
    "chat.message": """  "chat.message": async (input, output) => {
    const answer = await ask("chat.message", directory, input, output);
    if (answer.deny) throw new Error(answer.deny);
    const part = output.parts.find((one) => one.type === "text");
    if (answer.append && part) part.text = `${part.text}\\n${answer.append}`;
  },
""",
}


def plugin(entries: list[HookEntry]) -> str:
    """The plugin for the events that the hooks listen to."""
    longest = max((entry.timeout for entry in entries), default=0) + MARGIN
    commands = json.dumps([[entry.event, entry.command] for entry in entries])
    parts = "".join(_PARTS[entry.event] for entry in entries if entry.event in _PARTS)
    return _HEAD % (commands, longest * 1000) + parts + "});\n"
