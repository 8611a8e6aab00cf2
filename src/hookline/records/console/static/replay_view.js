// Today's hooks over the recorded past: how each call was decided, how it would be now, and every call that flips.
import { count, h, replace, untrusted } from "./dom.js";
import { badge, card, empty, figure, heading } from "./parts.js";

const WORDS = ["allow", "ask", "deny"];
const STRICTNESS = { allow: 0, ask: 1, deny: 2 };

export async function replayView({ source, root, onLeave }) {
  let left = false;
  onLeave(() => (left = true));
  const look = async (start) => {
    const found = await source.post("replay", start ? "start" : "");
    if (left) return;
    draw(root, found, () => look(true));
    if (found.state === "running") setTimeout(() => look(false), 500);
  };
  await look(false);
}

function draw(root, found, start) {
  const run = h("button", { type: "button", class: "primary", onclick: start, disabled: found.state === "running" }, found.state === "running" ? "Running…" : found.report ? "Run again" : "Run the replay");
  replace(root, heading("Replay", ["ready", "running", "done", "failed"].includes(found.state) && !found.embedded ? run : null), h("p", { class: "lead" }, "What today's hooks would decide about every call on record. No tool is run."), body(found));
}

function body(found) {
  if (found.state === "off") return empty("Replay is switched off", "It runs your hooks, so you have to ask for it: start ", h("code", {}, "hookline console --replay …"), ", with ", h("code", {}, "--hooks hooks.py"), " or ", h("code", {}, "--project DIR"), " to say whose.");
  if (found.state === "failed") return h("pre", { class: "notice bad", role: "alert" }, untrusted(found.problem, { lines: true }));
  if (found.state === "running") return h("p", { class: "notice", role: "status" }, "Today's hooks are judging the past…");
  if (!found.report) return empty("Not run yet", "The replay asks the hooks of ", h("code", {}, untrusted(found.hooks ?? "")), " about every call in these logs.");
  return report(found.report);
}

function report(found) {
  const number = (was, now) => found.counts.find((cell) => cell.was === was && cell.now === now)?.calls ?? 0;
  const loosened = found.counts.filter((cell) => STRICTNESS[cell.now] < STRICTNESS[cell.was]).reduce((sum, cell) => sum + cell.calls, 0);
  return [
    h("div", { class: "figures" }, figure("calls", count(found.calls)), figure("would flip", count(found.flipped), found.flipped ? "warn" : "good"), figure("loosened", count(loosened), loosened ? "bad" : ""), figure("hook failures", count(found.failures), found.failures ? "bad" : "")),
    card("Was × now", matrix(number)),
    found.flips.length ? card(h("span", {}, "Flips ", h("span", { class: "dim" }, `${count(found.flips.length)} of ${count(found.flipped)}, loosened ones first`)), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Flips" }, h("table", { class: "flips", "aria-label": "Calls that would be decided differently" }, h("thead", {}, h("tr", {}, ["Was", "Now", "What", "Why now", "Where"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, found.flips.map(flip))))) : h("p", { class: "notice good" }, "Nothing would be decided differently."),
  ];
}

function matrix(number) {
  const cell = (was, now) => {
    const calls = number(was, now);
    const kind = was === now ? "same" : STRICTNESS[now] < STRICTNESS[was] ? "loosened" : "tightened";
    return h("td", { class: `cell ${calls ? kind : "none"}` }, h("span", { class: "cell-count" }, count(calls)), calls && was !== now ? h("span", { class: "cell-word" }, kind) : null);
  };
  return h("table", { class: "matrix" }, h("caption", { class: "hidden" }, "Rows: how it was decided then. Columns: how it would be decided now."), h("thead", {}, h("tr", {}, h("td", { class: "corner" }, "was ↓ now →"), WORDS.map((now) => h("th", { scope: "col" }, badge(now))))), h("tbody", {}, WORDS.map((was) => h("tr", {}, h("th", { scope: "row" }, badge(was)), WORDS.map((now) => cell(was, now))))));
}

function flip(one) {
  const loosened = STRICTNESS[one.now] < STRICTNESS[one.was];
  return h("tr", { class: loosened ? "loosened" : "" }, h("td", {}, badge(one.was)), h("td", {}, badge(one.now)), h("td", { class: "c-what" }, h("span", { class: "tool" }, untrusted(one.tool || one.event)), " ", h("span", { class: "about" }, untrusted(one.what)), one.partial ? h("span", { class: "dim" }, " (recorded in part)") : null), h("td", { class: "c-by" }, one.by ? h("span", { class: "by" }, untrusted(one.by)) : null, h("span", { class: "reason" }, untrusted(one.reason))), h("td", { class: "dim" }, h("code", {}, untrusted(`${one.file.split("/").pop()}:${one.line}`))));
}
