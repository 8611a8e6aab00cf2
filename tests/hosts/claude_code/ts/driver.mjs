// Plays one scenario with the official TypeScript SDK: the scenario on stdin, what the host saw on stdout, both JSON.
// The argument is the folder the SDK was installed in (`make node_modules`).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const installed = createRequire(join(resolve(process.argv[2]), "package.json"));
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { createSdkMcpServer, query, tool } = await load("@anthropic-ai/claude-agent-sdk");
const { z } = await load("zod");

const scenario = JSON.parse(readFileSync(0, "utf8"));
const seen = { hooks: [], results: [], asked: [], mcp_calls: [], cancelled: 0 };
let whenHanging;
const hanging = new Promise((resolve) => (whenHanging = resolve));

function callback(spec) {
  return async (input, toolUseId, { signal }) => {
    const calls = seen.hooks.filter((name) => name === spec.event).length;
    seen.hooks.push(spec.event);
    const reply = spec.replies[Math.min(calls, spec.replies.length - 1)];
    if (reply !== "hang") return reply;
    whenHanging();
    return new Promise((resolve) =>
      signal.addEventListener("abort", () => {
        seen.cancelled += 1;
        resolve({});
      }),
    );
  };
}

const hooks = {};
for (const spec of scenario.hooks) {
  const entry = { hooks: [callback(spec)] };
  if (spec.matcher !== null) entry.matcher = spec.matcher;
  if (spec.timeout !== null) entry.timeout = spec.timeout;
  (hooks[spec.event] ??= []).push(entry);
}

const tools = Object.entries(scenario.mcp_tools).map(([name, prefix]) =>
  tool(name, "Say it loud.", { text: z.string() }, async ({ text }) => {
    seen.mcp_calls.push(text);
    return { content: [{ type: "text", text: prefix + text }] };
  }),
);

const options = {
  hooks,
  allowedTools: scenario.allowed_tools,
  cwd: scenario.stage.cwd,
  env: scenario.stage.env,
  pathToClaudeCodeExecutable: scenario.stage.cli,
};
if (scenario.permission !== null)
  options.canUseTool = async (name, input) => {
    seen.asked.push(name);
    return scenario.permission.behavior === "allow" ? { behavior: "allow", updatedInput: input } : scenario.permission;
  };
if (tools.length) options.mcpServers = { srv: createSdkMcpServer({ name: "srv", tools }) };

// Streaming input: the next prompt is sent once the turn before it is over.
let turnOver;
async function* prompts() {
  for (const content of scenario.prompts) {
    const over = new Promise((resolve) => (turnOver = resolve));
    yield { type: "user", session_id: "", parent_tool_use_id: null, message: { role: "user", content } };
    await over;
  }
}

const run = query({ prompt: prompts(), options });
if (scenario.interrupt_on_hang) hanging.then(() => run.interrupt());
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
process.stdout.write(JSON.stringify(seen));
