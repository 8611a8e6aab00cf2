// A session as lanes over time: prompts, model turns, tool calls, subagents, hooks. And the list of sessions.
import { count, day, h, icon, moment, ms, plainText, replace, svg, time, untrusted } from "./dom.js";
import { badge, card, empty, eventRow, eventTable, figure, heading, rowKeys, sessionLink } from "./parts.js";
import { detail } from "./decision_view.js";
import { flowCard } from "./flow_view.js";

const MOST_EVENTS = 2000;

export async function sessionView(context) {
  return context.path[0] ? new Lanes(context).open() : list(context);
}

// -- the list -----------------------------------------------------------------------------------------------------------

async function list({ source, root, onKey }) {
  const body = h("tbody");
  const more = h("button", { type: "button", class: "more", hidden: true }, "Show older sessions");
  let cursor = "";
  let typing;
  const search = h("input", { type: "search", placeholder: "Search prompts, folders, users, sessions", "aria-label": "Search sessions", oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(async () => {
      cursor = "";
      replace(body);
      if (!(await load())) body.append(h("tr", {}, h("td", { colspan: "7", class: "dim" }, "No session matches.")));
    }, 250);
  } });
  const load = async () => {
    const page = await source.get("sessions", { cursor, limit: 100, text: search.value.trim() });
    body.append(...page.rows.map(sessionRow));
    cursor = page.next;
    more.hidden = !cursor;
    return page.rows.length;
  };
  more.addEventListener("click", load);
  root.append(heading("Sessions"));
  if (!(await load())) {
    root.append(empty("No sessions yet", "A session appears here with its first event."));
    return;
  }
  root.append(h("label", { class: "search" }, icon("search"), search), h("div", { class: "scroll" }, h("table", { class: "sessions", "aria-label": "Sessions, the latest first" }, h("thead", {}, h("tr", {}, ["Last seen", "Session", "Length", "Calls", "Denied", "Asked", "Failures"].map((name) => h("th", { scope: "col" }, name)))), body)), more);
  onKey((event) => {
    if (event.key === "/") {
      search.focus();
      event.preventDefault();
    } else rowKeys(event, root);
  });
}

function sessionRow(one) {
  const number = (value, tone) => h("td", { class: `num ${value ? tone : "dim"}` }, count(value));
  return h("tr", {}, h("td", { class: "c-time" }, `${day(one.last)} ${time(one.last)}`), h("td", { class: "c-what" }, h("a", { class: "row-link", href: `#/session/${encodeURIComponent(one.name)}` }, h("span", { class: "session-title" }, untrusted(one.title || "(no prompt recorded)")), h("span", { class: "session-sub" }, h("code", {}, untrusted(one.name.slice(0, 8))), one.user ? [" · ", untrusted(one.user)] : null, one.cwd ? [" · ", untrusted(one.cwd)] : null))), h("td", { class: "num" }, ms(one.last - one.first)), number(one.tools, ""), number(one.denied, "bad"), number(one.asked, "warn"), number(one.failed, "bad"));
}

// -- lanes ----------------------------------------------------------------------------------------------------------------

const FROM_MODEL = new Set(["PreToolUse", "MessageDisplay", "Stop", "SubagentStop"]);
const TO_MODEL = new Set(["UserPromptSubmit", "PostToolBatch", "PostToolUse", "PostToolUseFailure", "SubagentStart"]);

export function lanes(rows) {
  const made = { Prompts: [], Model: [], Tools: [], Hooks: [] };
  const subagents = new Map();
  const open = new Map();
  const asked = new Map();
  for (const row of rows) {
    const own = row.agent ? subagentLane(subagents, row) : null;
    turn(row, asked, own ?? made.Model);
    if (row.event === "UserPromptSubmit") made.Prompts.push(bar(row, row.time, row.time, row.about, "prompt"));
    if (row.event === "PreToolUse") call(row, open, own ?? made.Tools);
    if (row.event.startsWith("PostToolUse") && open.has(row.call)) finish(open, row);
    if (row.hooks) made.Hooks.push(bar(row, row.time, row.time + row.ms, `${row.hooks} hook${row.hooks === 1 ? "" : "s"}, ${ms(row.ms)}`, row.failed ? "failed" : row.verdict));
  }
  const named = [...subagents.values()].map(({ name, bars }) => [name, bars]);
  return [["Prompts", made.Prompts], ["Model", made.Model], ["Tools", made.Tools], ...named, ["Hooks", made.Hooks]].filter(([, bars]) => bars.length);
}

function bar(row, start, end, label, kind) {
  return { row, start, end, label, kind };
}

function call(row, open, into) {
  const made = bar(row, row.time, row.time + (row.ms || 0), `${row.tool} ${row.about}`, row.verdict === "pass" || row.verdict === "allow" ? "tool" : row.verdict);
  into.push(made);
  if (row.call) open.set(row.call, made);
}

function finish(open, row) {
  const made = open.get(row.call);
  open.delete(row.call);
  made.end = Math.max(row.time, made.end);
  if (row.event === "PostToolUseFailure" && made.kind === "tool") made.kind = "tool-failed";
}

// From what the model was told to what it did next is its turn.
function turn(row, asked, into) {
  const agent = row.agent ?? "";
  if (FROM_MODEL.has(row.event) && asked.has(agent)) {
    const from = asked.get(agent);
    asked.delete(agent);
    if (row.time > from.time) into.push(bar(row, from.time, row.time, "model turn", "model"));
  }
  if (TO_MODEL.has(row.event)) asked.set(agent, row);
}

function subagentLane(subagents, row) {
  if (!subagents.has(row.agent)) subagents.set(row.agent, { name: `Subagent ${row.agent_type || ""}`.trim(), bars: [] });
  return subagents.get(row.agent).bars;
}

const LANE = 34;
const LABEL = 24;

class Lanes {
  constructor({ source, root, path, onKey }) {
    Object.assign(this, { source, root, name: path[0] });
    onKey((event) => this.key(event));
  }

  async open() {
    const found = await this.source.get("session", { name: this.name, limit: MOST_EVENTS });
    const flow = await this.source.get("flow", { name: this.name }).catch(() => []);
    const { session, rows } = found;
    this.rows = rows;
    this.lanes = lanes(rows);
    this.first = rows.length ? rows[0].time : 0;
    this.last = Math.max(...this.lanes.flatMap(([, bars]) => bars.map((one) => one.end)), this.first + 1);
    this.view = [this.first, this.last];
    this.panel = h("div", { class: "lane-detail", "aria-live": "polite" });
    this.picture = h("div", { class: "lanes" });
    const { table, body } = eventTable("The session's events, oldest first");
    body.append(...rows.map((row) => eventRow(row, { onOpen: (chosen) => this.choose(chosen) })));
    replace(
      this.root,
      heading("Session", h("code", { class: "sub-head" }, untrusted(this.name)), h("nav", { class: "head-actions" }, h("a", { class: "ghost", href: "#/session" }, icon("back"), "All sessions"), h("a", { class: "ghost", href: `#/live?session=${encodeURIComponent(this.name)}` }, "Filter Live by it"))),
      session.title ? h("p", { class: "lead" }, "“", untrusted(session.title), "”") : null,
      h("div", { class: "figures" }, figure("events", count(session.events)), figure("tool calls", count(session.tools)), figure("denied", count(session.denied), session.denied ? "bad" : ""), figure("asked", count(session.asked), session.asked ? "warn" : ""), figure("length", ms(session.last - session.first)), figure(`began ${day(session.first)}`, time(session.first))),
      found.next ? h("p", { class: "notice" }, `The first ${count(rows.length)} of ${count(session.events)} events are drawn.`) : null,
      card(h("span", {}, "Over time ", this.zoomButtons()), this.picture, h("p", { class: "hint" }, "Drag to move, Ctrl and the wheel or + and − to zoom, 0 to see all. Choose a bar for what happened.")),
      this.panel,
      flowCard(flow),
      h("div", { class: "scroll" }, table),
    );
    this.draw();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.picture);
    this.picture.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.dragging();
  }

  zoomButtons() {
    const button = (text, label, act) => h("button", { type: "button", class: "ghost", "aria-label": label, title: label, onclick: act }, text);
    return h("span", { class: "zoom" }, button("−", "Zoom out", () => this.zoom(2)), button("+", "Zoom in", () => this.zoom(0.5)), button("All", "All: see the whole session", () => this.all()));
  }

  draw() {
    const width = Math.max(this.picture.clientWidth, 280);
    const [from, to] = this.view;
    const scale = width / (to - from);
    const x = (at) => (at - from) * scale;
    const height = this.lanes.length * (LANE + LABEL) + 22;
    const groups = this.lanes.map(([name, bars], place) => this.lane(name, bars, place * (LANE + LABEL), x, width));
    const ticks = this.ticks(from, to).map((at) => svg("g", { class: "tick" }, svg("line", { x1: x(at), x2: x(at), y1: 0, y2: height - 18 }), svg("text", { x: x(at) + 4, y: height - 6 }, this.tickText(at, to - from))));
    replace(this.picture, svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "What happened, in lanes over time" }, ticks, groups));
  }

  lane(name, bars, y, x, width) {
    const shown = bars.filter((one) => x(one.end) >= -4 && x(one.start) <= width + 4);
    return svg("g", { class: "lane" }, svg("text", { class: "lane-name", x: 0, y: y + 15 }, `${plainText(name)}  ${count(bars.length)}`), svg("rect", { class: "lane-back", x: 0, y: y + LABEL - 2, width, height: LANE - 4, rx: 4 }), shown.map((one) => this.bar(one, y + LABEL, x)));
  }

  bar(one, y, x) {
    const left = x(one.start);
    const wide = Math.max(x(one.end) - left, 3);
    const label = plainText(one.label).slice(0, 200);
    const said = `${time(one.start)} ${label}, ${one.kind}, ${ms(one.end - one.start)}`;
    const room = Math.floor((wide - 10) / 6.6);
    const shown = label.length <= room ? label : label.slice(0, Math.max(label.lastIndexOf(" ", room), 0)); // whole words, as they are read out
    return svg(
      "g",
      { class: `bar k-${one.kind.replace(" ", "-")}`, tabindex: "0", role: "button", "aria-label": said, "data-id": one.row.id, onclick: () => this.moved || this.choose(one.row), onkeydown: (event) => event.key === "Enter" && this.choose(one.row) },
      svg("title", {}, said),
      svg("rect", { x: left, y: y + 1, width: wide, height: LANE - 10, rx: Math.min(4, wide / 2) }),
      room > 3 && shown ? svg("text", { x: left + 6, y: y + 16 }, shown) : null,
    );
  }

  ticks(from, to) {
    const rough = (to - from) / 6;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * size).find((n) => n >= rough) ?? rough;
    const made = [];
    for (let at = this.first + Math.ceil((from - this.first) / step) * step; at < to - step / 4; at += step) made.push(at);
    return made;
  }

  tickText(at, span) {
    return `+${ms(Math.max(at - this.first, 0))}`.replace("+0", span ? "0" : "");
  }

  zoom(factor, middle = (this.view[0] + this.view[1]) / 2) {
    const span = Math.min(Math.max((this.view[1] - this.view[0]) * factor, 2), this.last - this.first);
    const left = Math.min(Math.max(middle - ((middle - this.view[0]) / (this.view[1] - this.view[0])) * span, this.first), this.last - span);
    this.view = [left, left + span];
    this.draw();
  }

  move(share) {
    const span = this.view[1] - this.view[0];
    const left = Math.min(Math.max(this.view[0] + share * span, this.first), this.last - span);
    this.view = [left, left + span];
    this.draw();
  }

  all() {
    this.view = [this.first, this.last];
    this.draw();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.picture.getBoundingClientRect();
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.view[0] + ((event.clientX - box.left) / box.width) * (this.view[1] - this.view[0]));
  }

  dragging() {
    let from = null;
    this.picture.addEventListener("pointerdown", (event) => {
      from = event.clientX;
      this.moved = false;
    });
    this.picture.addEventListener("pointermove", (event) => {
      if (from === null || !event.buttons || Math.abs(event.clientX - from) < 4) return;
      this.moved = true;
      this.move((from - event.clientX) / this.picture.clientWidth);
      from = event.clientX;
    });
    this.picture.addEventListener("pointerup", () => (from = null));
  }

  async choose(row) {
    const found = await this.source.get("event", { id: row.id });
    replace(this.panel, h("div", { class: "panel-head" }, h("a", { href: `#/decision/${row.id}` }, "Open as a page"), h("button", { type: "button", class: "ghost", "aria-label": "Close", onclick: () => replace(this.panel) }, icon("close"))), detail(found));
    for (const other of this.root.querySelectorAll(".chosen")) other.classList.remove("chosen");
    for (const same of this.root.querySelectorAll(`[data-id="${row.id}"]`)) same.classList.add("chosen");
    this.panel.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  key(event) {
    const act = { "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.all(), ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), ...(this.panel.children.length ? { Escape: () => replace(this.panel) } : {}) }[event.key];
    if (act) {
      act();
      event.preventDefault();
    } else rowKeys(event, this.root);
  }
}
