// Plays scenarios in one session with the official TypeScript SDK. Lines of JSON on stdin: the scenarios and their stage,
// then the name of each to play; on stdout, after each, what the host saw.
// The argument is the folder the SDK was installed in (`make node_modules`).
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const installed = createRequire(join(resolve(process.argv[2]), "package.json"));
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { createSdkMcpServer, query, tool } = await load("@anthropic-ai/claude-agent-sdk");
const { z } = await load("zod");

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { scenarios, stage } = JSON.parse((await lines.next()).value);
let playing, seen, whenHanging, hanging;

function begin(name) {
  playing = scenarios.find((one) => one.name === name);
  seen = { hooks: [], results: [], asked: [], mcp_calls: [], cancelled: 0 };
  hanging = new Promise((resolve) => (whenHanging = resolve));
}

function callback(scenario, spec) {
  return async (input, toolUseId, { signal }) => {
    if (scenario !== playing) return {};
    const noted = seen;
    const calls = noted.hooks.filter((name) => name === spec.event).length;
    noted.hooks.push(spec.event);
    const reply = spec.replies[Math.min(calls, spec.replies.length - 1)];
    if (reply !== "hang") return reply;
    whenHanging();
    return new Promise((resolve) =>
      signal.addEventListener("abort", () => {
        noted.cancelled += 1;
        resolve({});
      }),
    );
  };
}

const hooks = {};
const tools = [];
for (const scenario of scenarios) {
  for (const spec of scenario.hooks) {
    const entry = { hooks: [callback(scenario, spec)] };
    if (spec.matcher !== null) entry.matcher = spec.matcher;
    if (spec.timeout !== null) entry.timeout = spec.timeout;
    (hooks[spec.event] ??= []).push(entry);
  }
  for (const [name, prefix] of Object.entries(scenario.mcp_tools))
    tools.push(
      tool(name, "Say it loud.", { text: z.string() }, async ({ text }) => {
        seen.mcp_calls.push(text);
        return { content: [{ type: "text", text: prefix + text }] };
      }),
    );
}

const options = {
  hooks,
  allowedTools: [...new Set(scenarios.flatMap((one) => one.allowed_tools))],
  cwd: stage.cwd,
  env: stage.env,
  pathToClaudeCodeExecutable: stage.cli,
};
if (scenarios.some((one) => one.permission !== null))
  options.canUseTool = async (name, input) => {
    seen.asked.push(name);
    return playing.permission.behavior === "allow" ? { behavior: "allow", updatedInput: input } : playing.permission;
  };
if (tools.length) options.mcpServers = { srv: createSdkMcpServer({ name: "srv", tools }) };

// Streaming input: the next prompt is sent once the turn before it is over.
let turnOver;
async function* prompts() {
  for await (const line of lines) {
    begin(JSON.parse(line));
    if (playing.interrupt_on_hang) hanging.then(() => run.interrupt());
    for (const content of playing.prompts) {
      const over = new Promise((resolve) => (turnOver = resolve));
      yield { type: "user", session_id: "", parent_tool_use_id: null, message: { role: "user", content } };
      await over;
    }
    process.stdout.write(JSON.stringify(seen) + "\n");
  }
}

const run = query({ prompt: prompts(), options });
try {
  for await (const message of run) {
    if (message.type !== "result") continue;
    seen.results.push(message.subtype);
    turnOver();
  }
} catch (error) {
  // After an error result the CLI ends with exit code 1; the SDK reports that as an error of its own.
  if (!seen.results.at(-1)?.startsWith("error")) throw error;
}
