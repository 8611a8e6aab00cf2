// Pieces that several views share.
import { count, day, h, icon, ms, plainText, stamp, svg, untrusted } from "./dom.js";

export const VERDICTS = ["deny", "stop", "ask", "defer", "allow", "keep going", "rewrite", "replace", "pass", "gap"];

export function badge(verdict) {
  return h("span", { class: `badge v-${verdict.replace(" ", "-")}` }, verdict);
}

export function heading(title, ...more) {
  return h("header", { class: "view-head" }, h("h1", { tabindex: "-1" }, title), more);
}

export function empty(title, ...text) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), text.length ? h("p", {}, text) : null);
}

export function card(title, ...children) {
  return h("section", { class: "card" }, title ? h("h2", {}, title) : null, children);
}

export function figure(label, value, tone) {
  return h("div", { class: `figure ${tone ?? ""}` }, h("span", { class: "figure-value" }, value), h("span", { class: "figure-label" }, label));
}

export function hookLink(name) {
  return h("a", { href: `#/hooks/${encodeURIComponent(name)}`, class: "plain" }, untrusted(name));
}

export function sessionLink(name, text) {
  return h("a", { href: `#/session/${encodeURIComponent(name)}`, class: "plain mono", title: plainText(name) }, untrusted(text ?? name.slice(0, 8)));
}

// -- a list of events -----------------------------------------------------------------------------------------------------

export function eventTable(label) {
  const body = h("tbody");
  const table = h(
    "table",
    { class: "events", "aria-label": label },
    h("thead", {}, h("tr", {}, ["Time", "Verdict", "Event", "What", "Decided by", "Hooks"].map((name) => h("th", { scope: "col" }, name)))),
    body,
  );
  return { table, body };
}

export function eventRow(row, { onOpen } = {}) {
  const subject = row.tool || "";
  const link = h("a", { href: `#/decision/${row.id}`, class: "what-link" }, subject ? h("span", { class: "tool" }, untrusted(subject)) : null, " ", h("span", { class: "about" }, untrusted(row.about || (subject ? "" : "–"))));
  const made = h(
    "tr",
    { class: `event v-row-${row.verdict.replace(" ", "-")}`, "data-id": row.id, onclick: (click) => openRow(click, row, onOpen) },
    h("td", { class: "c-time" }, stamp(row.time)),
    h("td", { class: "c-verdict" }, row.event === "PostToolUseFailure" && row.verdict === "pass" ? h("span", { class: "badge v-stop" }, "tool failed") : badge(row.verdict)),
    h("td", { class: "c-event" }, h("span", {}, untrusted(row.event)), row.agent ? h("span", { class: "sub", title: `in subagent ${plainText(row.agent)}` }, untrusted(row.agent_type || "subagent")) : null),
    h("td", { class: "c-what" }, link, row.session ? h("span", { class: "whose" }, sessionLink(row.session), row.user ? [" · ", untrusted(row.user)] : null) : null),
    h("td", { class: "c-by" }, row.by ? h("span", { class: "by" }, untrusted(row.by)) : null, row.reason ? h("span", { class: "reason" }, untrusted(row.reason)) : null),
    h("td", { class: "c-hooks" }, row.failed ? h("span", { class: "failed", title: "a hook failed" }, "✗ ") : null, row.hooks ? h("span", { title: `${row.hooks} hook${row.hooks === 1 ? "" : "s"}` }, ms(row.ms)) : h("span", { class: "dim", title: "no hook looked at this" }, "none")),
  );
  return made;
}

function openRow(click, row, onOpen) {
  if (click.metaKey || click.ctrlKey || click.button) return;
  if (window.getSelection()?.toString() || click.target.closest("a.plain")) return;
  click.preventDefault();
  if (onOpen) onOpen(row);
  else location.hash = `#/decision/${row.id}`;
}

// Arrow keys, j and k move through the rows of a table; Enter opens the link that has the focus.
export function rowKeys(event, root) {
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (!step) return false;
  const links = [...root.querySelectorAll("tbody a.what-link, tbody a.row-link")];
  if (!links.length) return false;
  const here = links.indexOf(document.activeElement);
  const next = links[Math.min(Math.max(here + step, 0), links.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  event.preventDefault();
  return true;
}

// -- small pictures ---------------------------------------------------------------------------------------------------------

export function sparkline(values, label) {
  const top = Math.max(...values, 1);
  const width = 120;
  const height = 24;
  const step = width / values.length;
  const bars = values.map((value, place) => value && svg("rect", { x: place * step, width: Math.max(step - 1, 1), y: height - Math.max((value / top) * height, 1.5), height: Math.max((value / top) * height, 1.5) }));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": label, preserveAspectRatio: "none" }, bars.filter(Boolean));
}

export function meter(part, whole, tone) {
  const width = whole ? Math.max((100 * part) / whole, part ? 1 : 0) : 0;
  return h("span", { class: "meter" }, h("span", { class: `meter-fill ${tone ?? ""}`, style: { width: `${width}%` } }));
}

// Events over time, as stacked bars; dragging across it chooses a stretch of time.
export function timeline(data, { onRange } = {}) {
  const { buckets, width } = data;
  if (!buckets.length) return h("div", { class: "timeline empty-line" });
  const first = buckets[0][0];
  const last = buckets[buckets.length - 1][0] + width;
  const slots = Math.max(Math.round((last - first) / width), 24);
  const top = Math.max(...buckets.map(([, counts]) => Object.values(counts).reduce((sum, n) => sum + n, 0)), 1);
  const height = 72;
  const bars = buckets.map(([start, counts]) => {
    let y = height;
    const x = Math.round((start - first) / width);
    const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
    const parts = [...VERDICTS].reverse().filter((verdict) => counts[verdict]).map((verdict) => {
      const tall = Math.max((counts[verdict] / top) * height, verdict === "pass" || verdict === "allow" ? 1 : 2.5);
      y -= tall;
      return svg("rect", { class: `fill-${verdict.replace(" ", "-")}`, x: x + 0.08, width: 0.84, y, height: tall });
    });
    const said = VERDICTS.filter((verdict) => counts[verdict]).map((verdict) => `${count(counts[verdict])} ${verdict}`).join(", ");
    return svg("g", {}, svg("title", {}, `${day(start)} ${new Date(start).toLocaleTimeString("en-GB")}: ${count(total)} events (${said})`), svg("rect", { class: "hit", x, width: 1, y: 0, height }), parts);
  });
  const brush = svg("rect", { class: "brush", y: 0, height, x: 0, width: 0 });
  const picture = svg("svg", { viewBox: `0 0 ${slots} ${height}`, preserveAspectRatio: "none", class: "timeline-svg", role: "img", "aria-label": `Events over time, from ${day(first)} ${time(first)} to ${day(last)} ${time(last)}` }, bars, brush);
  if (onRange) brushing(picture, brush, slots, (a, b) => onRange(first + a * width, first + b * width));
  return h("div", { class: "timeline" }, picture, h("div", { class: "axis" }, axis(first, first + slots * width)));
}

function time(stamp) {
  return new Date(stamp).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

function axis(first, last) {
  const days = last - first > 2 * 86_400_000;
  return [0, 0.25, 0.5, 0.75, 1].map((place) => {
    const at = first + place * (last - first);
    return h("span", {}, days ? day(at) : last - first < 600_000 ? new Date(at).toLocaleTimeString("en-GB") : time(at));
  });
}

function brushing(picture, brush, slots, onRange) {
  let from = null;
  const slot = (event) => {
    const box = picture.getBoundingClientRect();
    return Math.min(Math.max(((event.clientX - box.left) / box.width) * slots, 0), slots);
  };
  picture.addEventListener("pointerdown", (event) => {
    from = slot(event);
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = slot(event);
    brush.setAttribute("x", Math.min(from, to));
    brush.setAttribute("width", Math.abs(to - from));
  });
  picture.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [a, b] = [from, slot(event)].sort((one, other) => one - other);
    from = null;
    brush.setAttribute("width", 0);
    onRange(Math.floor(a), Math.max(Math.ceil(b), Math.floor(a) + 1));
  });
}

export function copyButton(text, label) {
  const button = h("button", { type: "button", class: "ghost", onclick: async () => {
    await navigator.clipboard.writeText(text());
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1200);
  } }, icon("copy"), label);
  return button;
}
