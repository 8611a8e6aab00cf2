// One verdict, explained: every hook's answer and time, the input, what was rewritten, the line and its place in the chain.
import { count, h, icon, moment, ms, plainText, svg, untrusted } from "./dom.js";
import { badge, card, copyButton, empty, heading, hookLink, sessionLink } from "./parts.js";

const SENTENCES = {
  deny: "was denied",
  stop: "stopped the agent",
  ask: "needs a person's word",
  defer: "was deferred",
  "keep going": "sent the agent back to work",
  rewrite: "went ahead with a rewritten input",
  replace: "went ahead, and the model was given another output",
  allow: "was allowed without a prompt",
  pass: "passed: no hook objected",
  gap: "marks records that could not be written",
};
const KNOWN = new Set(["seq", "prev", "hash", "time", "run", "user", "agent", "agent_type", "cwd", "event", "subject", "tool", "tool_use_id", "decision", "blocked", "by", "reasons", "ms", "hooks", "stop", "keep_going", "input", "rewritten"]);

export async function decisionView({ source, path, root }) {
  const number = Number(path[0]);
  const found = await source.get("event", { id: number });
  root.append(
    heading("Decision", h("span", { class: "sub-head" }, `event ${count(number)}`), h("nav", { class: "head-actions", "aria-label": "Neighbouring events" }, neighbour(number - 1, "back", "Previous event"), neighbour(number + 1, "forward", "Next event"))),
    h("div", { class: "decision-page" }, detail(found)),
  );
}

function neighbour(number, name, label) {
  return number > 0 ? h("a", { class: "ghost", href: `#/decision/${number}`, "aria-label": label, title: label }, icon(name)) : null;
}

export function detail(found) {
  const { row, record } = found;
  return h(
    "article",
    { class: "decision" },
    summary(row, record),
    found.problem ? h("p", { class: "notice bad", role: "alert" }, untrusted(found.problem)) : null,
    waterfall(record),
    row.verdict === "rewrite" || record.rewritten !== undefined ? card("What was rewritten", diff(record.input ?? {}, record.rewritten ?? {})) : null,
    record.input !== undefined ? card("Input", values(record.input)) : null,
    rest(record),
    chain(found),
  );
}

function summary(row, record) {
  const reasons = Array.isArray(record.reasons) ? record.reasons : row.reason ? [row.reason] : [];
  return h(
    "section",
    { class: `summary v-edge-${row.verdict.replace(" ", "-")}` },
    h("p", { class: "summary-line" }, badge(row.verdict), " ", h("strong", {}, untrusted(row.event), row.tool ? [" of ", untrusted(row.tool)] : null), ` ${SENTENCES[row.verdict] ?? ""}`, row.by ? [" by ", h("span", { class: "by" }, untrusted(row.by))] : null),
    reasons.map((reason) => h("blockquote", {}, untrusted(reason, { lines: true }))),
    row.about ? h("pre", { class: "subject" }, untrusted(row.about, { lines: true })) : null,
    h("dl", { class: "facts" }, fact("When", moment(row.time)), row.session ? fact("Session", sessionLink(row.session)) : null, row.agent ? fact("Subagent", untrusted(`${row.agent_type || ""} ${row.agent}`)) : null, record.user ? fact("User", untrusted(record.user)) : null, record.cwd ? fact("Folder", h("code", {}, untrusted(record.cwd))) : null, row.duration ? fact("The tool took", ms(row.duration)) : null),
  );
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

// -- hooks --------------------------------------------------------------------------------------------------------------

function waterfall(record) {
  const runs = (Array.isArray(record.hooks) ? record.hooks : []).filter((run) => run && typeof run === "object");
  if (!runs.length) return card("Hooks", empty("No hook looked at this", "It happened without any hook being asked. Coverage lists what goes unseen."));
  const total = runs.reduce((sum, run) => sum + number(run.ms), 0) || 1;
  let before = 0;
  const rows = runs.map((run) => {
    const start = before;
    before += number(run.ms);
    return hookRow(run, start, total);
  });
  return card(h("span", {}, "Hooks ", h("span", { class: "dim" }, `${runs.length} asked, ${ms(number(record.ms) || total)} in all`)), h("ol", { class: "waterfall" }, rows));
}

const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);

function hookRow(run, start, total) {
  const status = String(run.status ?? "ok");
  const verdict = String(run.decision ?? "pass");
  const tone = ["failed", "timeout", "cancelled"].includes(status) ? "failed" : status === "skipped" ? "skipped" : verdict;
  const left = (100 * start) / total;
  const width = Math.max((100 * number(run.ms)) / total, 0.6);
  return h(
    "li",
    { class: `hook-run s-${tone.replace(/[^a-z]/g, "-")}` },
    h("div", { class: "hook-name" }, hookLink(String(run.hook ?? "")), h("span", { class: "hook-said" }, status === "ok" ? (verdict === "pass" ? "nothing to say" : badge(verdict)) : untrusted(status), run.exit_code !== undefined ? h("span", { class: "dim" }, ` exit ${untrusted(run.exit_code).textContent}`) : null)),
    h("div", { class: "hook-bar", "aria-hidden": "true" }, svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" }, svg("rect", { x: Math.min(left, 99.4), width: Math.min(width, 100 - left), y: 0, height: 10, rx: 0.4 }))),
    h("div", { class: "hook-ms" }, status === "skipped" ? "–" : ms(number(run.ms))),
    run.error || run.note ? h("p", { class: "hook-note" }, run.error ? h("span", { class: "failed" }, untrusted(run.error, { lines: true })) : null, run.note ? untrusted(run.note, { lines: true }) : null) : null,
  );
}

// -- values and differences ---------------------------------------------------------------------------------------------

function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? String(value);
}

function values(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return h("pre", {}, untrusted(text(value), { lines: true }));
  const entries = Object.entries(value);
  if (!entries.length) return h("p", { class: "dim" }, "empty");
  return h("dl", { class: "values" }, entries.map(([name, said]) => h("div", {}, h("dt", {}, untrusted(name)), h("dd", {}, h("pre", {}, untrusted(text(said), { lines: true }))))));
}

function rest(record) {
  const entries = Object.entries(record).filter(([name]) => !KNOWN.has(name));
  if (!entries.length) return null;
  return h("details", { class: "card fold" }, h("summary", {}, "Everything else that was recorded ", h("span", { class: "dim" }, entries.length)), values(Object.fromEntries(entries)));
}

function diff(before, after) {
  const names = [...new Set([...Object.keys(Object(before)), ...Object.keys(Object(after))])];
  return h("div", { class: "diffs" }, names.map((name) => {
    const was = before[name] === undefined ? null : text(before[name]);
    const now = after[name] === undefined ? null : text(after[name]);
    const same = was === now;
    return h("div", { class: "diff" }, h("div", { class: "diff-name" }, untrusted(name), same ? h("span", { class: "dim" }, " unchanged") : null), same ? h("pre", { class: "dim" }, untrusted(was ?? "", { lines: true })) : lineDiff(was, now));
  }));
}

function lineDiff(was, now) {
  const parts = changes((was ?? "").split(/(?<=\n)|(?<=\s)(?=\S)/).slice(0, 600), (now ?? "").split(/(?<=\n)|(?<=\s)(?=\S)/).slice(0, 600));
  const side = (kind, tag, label) => h("pre", { class: kind }, h("span", { class: "diff-sign", "aria-hidden": "true" }, kind === "was" ? "−" : "+"), h("span", { class: "hidden" }, label), parts.filter(([sign]) => sign === "=" || sign === kind).map(([sign, said]) => (sign === "=" ? untrusted(said, { lines: true }) : h(tag, {}, untrusted(said, { lines: true })))));
  return h("div", { class: "diff-sides" }, was === null ? null : side("was", "del", "before: "), now === null ? null : side("now", "ins", "after: "));
}

// The longest common subsequence of words, as runs of equal and changed ones.
export function changes(was, now) {
  const rows = was.length + 1;
  const columns = now.length + 1;
  const best = new Uint16Array(rows * columns);
  for (let i = rows - 2; i >= 0; i -= 1)
    for (let j = columns - 2; j >= 0; j -= 1)
      best[i * columns + j] = was[i] === now[j] ? best[(i + 1) * columns + j + 1] + 1 : Math.max(best[(i + 1) * columns + j], best[i * columns + j + 1]);
  const parts = [];
  const push = (sign, said) => (parts.length && parts[parts.length - 1][0] === sign ? (parts[parts.length - 1][1] += said) : parts.push([sign, said]));
  let i = 0;
  let j = 0;
  while (i < was.length || j < now.length) {
    if (i < was.length && j < now.length && was[i] === now[j]) {
      push("=", was[i]);
      i += 1;
      j += 1;
    } else if (j >= now.length || (i < was.length && best[(i + 1) * columns + j] >= best[i * columns + j + 1])) {
      push("was", was[i]);
      i += 1;
    } else {
      push("now", now[j]);
      j += 1;
    }
  }
  return parts;
}

// -- the audit line -----------------------------------------------------------------------------------------------------

function chain(found) {
  const place = found.chain;
  const short = (hash) => h("code", { title: plainText(hash) }, untrusted(`${String(hash).slice(0, 12)}…`));
  const state = !place ? ["none", "This line carries no hash"] : place.holds === null ? ["unknown", place.problem] : place.holds ? ["good", "The line matches its hash and follows the one before it"] : ["bad", place.problem];
  return card(
    "Audit line",
    h("ol", { class: "chain" }, place ? h("li", {}, h("span", { class: "dim" }, place.seq > 1 ? `record ${count(place.seq - 1)}` : "start"), short(place.prev)) : null, h("li", { class: `chain-here ${state[0]}` }, h("strong", {}, place ? `record ${count(place.seq)}` : "this line"), place ? short(place.hash) : null), place ? h("li", { class: "dim" }, `record ${count(place.seq + 1)} names this hash`) : null),
    h("p", { class: `chain-state ${state[0]}` }, state[0] === "good" ? "✓ " : state[0] === "bad" ? "✗ " : "", untrusted(state[1])),
    h("p", { class: "dim" }, h("code", {}, untrusted(found.file)), ` at byte ${count(found.offset)}`),
    found.line ? h("details", {}, h("summary", {}, "The line as it is in the log"), copyButton(() => found.line, "Copy"), h("pre", { class: "raw" }, untrusted(found.line, { lines: true }))) : null,
  );
}
