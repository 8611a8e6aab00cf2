// hookline: `hookline uninstall opencode` takes this out
import { spawn } from "node:child_process";

const commands = new Map(/*commands*/[]/*end*/);
const patience = 0; // ms; hookline itself answers earlier

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
  // on tool.execute.before
  "tool.execute.before": async (input, output) => {
    const answer = await ask("tool.execute.before", directory, input, output);
    if (answer.deny) throw new Error(answer.deny);
    if (answer.args) {
      for (const name of Object.keys(output.args)) delete output.args[name];
      Object.assign(output.args, answer.args);
    }
  },
  // on tool.execute.after
  "tool.execute.after": async (input, output) => {
    const answer = await ask("tool.execute.after", directory, input, output);
    if (answer.output !== undefined) output.output = answer.output;
    if (answer.append) output.output = `${output.output}\n${answer.append}`;
  },
  // on chat.message
  "chat.message": async (input, output) => {
    const answer = await ask("chat.message", directory, input, output);
    if (answer.deny) throw new Error(answer.deny);
    const part = output.parts.find((one) => one.type === "text");
    if (answer.append && part) part.text = `${part.text}\n${answer.append}`;
  },
});
