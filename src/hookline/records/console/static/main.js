// The frame: navigation, theme, keys, and which view is shown.
import { count, h, icon, replace, untrusted } from "./dom.js";
import { ServerSource } from "./source.js";
import { ReportSource } from "./report_source.js";
import { empty } from "./parts.js";
import { liveView } from "./live_view.js";
import { sessionView } from "./session_view.js";
import { decisionView } from "./decision_view.js";
import { hooksView } from "./hooks_view.js";
import { replayView } from "./replay_view.js";
import { coverageView } from "./coverage_view.js";
import { healthView } from "./health_view.js";
import { inboxView } from "./inbox_view.js";
import { machinesView } from "./machines_view.js";
import { rolloutsView } from "./rollouts_view.js";

const VIEWS = [
  ["live", "Live", liveView],
  ["session", "Sessions", sessionView],
  ["hooks", "Hooks", hooksView],
  ["replay", "Replay", replayView],
  ["coverage", "Coverage", coverageView],
  ["health", "Health", healthView],
];
// Shown where the server has them: the inbox, and the views of a fleet.
const FURTHER = [
  ["inbox", "Inbox", inboxView],
  ["machines", "Machines", machinesView],
  ["rollouts", "Rollouts", rolloutsView],
];
const HIDDEN = { decision: decisionView };
const KEYS = [
  ["1 – 9", "switch between views"],
  ["j k or ↓ ↑", "next and previous row; Enter opens it"],
  ["/", "search"],
  ["Space", "pause and resume the live view"],
  ["+ − 0 ← →", "zoom and move in a session"],
  ["t", "dark or light"],
  ["Esc", "close what is open, or go back"],
  ["?", "this list"],
];

class Frame {
  constructor(source, further) {
    this.views = [...VIEWS, ...FURTHER.filter(([name]) => further.includes(name))];
    this.source = source;
    this.leaving = [];
    this.keys = [];
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.links = this.views.map(([name, label]) => h("a", { href: `#/${name}`, class: "nav-link" }, icon(name), h("span", {}, name === "live" && !source.live ? "Events" : label)));
    this.help = h("dialog", { class: "help", "aria-label": "Keys" }, h("h2", {}, "Keys"), h("dl", {}, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, key.split(" ").map((word) => (word.length < 8 && !/^(or|–)$/.test(word) ? [h("kbd", {}, word), " "] : `${word} `))), h("dd", {}, what)))), h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")));
    replace(
      document.querySelector("#app"),
      h("a", { class: "skip", href: "#main", onclick: (event) => this.skip(event) }, "Skip to the content"),
      h("header", { class: "rail" }, h("a", { class: "logo", href: "#/live", "aria-label": "Hookline console" }, icon("hooks"), h("span", {}, "Hookline")), h("nav", { "aria-label": "Views" }, this.links), h("div", { class: "rail-end" }, h("button", { type: "button", class: "ghost", title: "Dark or light (t)", "aria-label": "Theme: switch between dark and light", onclick: () => theme() }, icon("theme"), h("span", {}, "Theme")), h("button", { type: "button", class: "ghost", title: "Keys (?)", "aria-label": "Keys: show the list", onclick: () => this.help.showModal() }, icon("help"), h("span", {}, "Keys")))),
      source.note ? h("p", { class: "report-note", role: "note" }, untrusted(source.note)) : null,
      this.main,
      this.help,
    );
    window.addEventListener("hashchange", () => this.show());
    window.addEventListener("keydown", (event) => this.key(event));
    this.show();
  }

  go(name, asked) {
    const query = new URLSearchParams(asked).toString();
    const hash = `#/${name}${query ? `?${query}` : ""}`;
    if (location.hash === hash) this.show();
    else location.hash = hash;
  }

  async show() {
    const [name, path, asked] = route();
    const place = location.hash;
    const view = this.views.find(([one]) => one === name)?.[2] ?? HIDDEN[name] ?? liveView;
    for (const leave of this.leaving.splice(0)) leave();
    this.keys = [];
    this.links.forEach((link, number) => (this.views[number][0] === name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
    const same = this.shown === name;
    this.shown = name;
    const root = h("div", { class: `view view-${name}` });
    const turn = (this.turn = (this.turn ?? 0) + 1);
    try {
      await view({ source: this.source, root: this.stage(root, same), path, asked, go: (to, what) => this.go(to, what), onLeave: (act) => this.leaving.push(act), onKey: (act) => this.keys.push(act) });
    } catch (problem) {
      if (turn === this.turn) this.failed(root, problem);
    }
    if (turn === this.turn) {
      document.title = `${root.querySelector("h1")?.textContent ?? "Hookline"} · Hookline console`;
      document.documentElement.dataset.view = name;
      document.documentElement.dataset.ready = place;
    }
  }

  stage(root, same) {
    replace(this.main, root);
    if (!same) window.scrollTo(0, 0);
    return root;
  }

  failed(root, problem) {
    if (problem.status === 503) {
      this.indexing(root);
      return;
    }
    if (problem.status === 401 || problem.status === 403) replace(root, empty("This page is locked", "Open the address that ", h("code", {}, "hookline console"), " printed; each address works once."));
    else if (problem.status === 404) replace(root, empty("Not found", "There is no such thing in these logs."));
    else replace(root, empty("The console does not answer", untrusted(problem.message)));
  }

  async indexing(root) {
    const bar = h("progress", { "aria-label": "Indexing", max: "1" });
    const said = h("p", { role: "status" });
    replace(root, h("div", { class: "empty" }, h("p", { class: "empty-title" }, "Reading the logs"), bar, said));
    for (;;) {
      const status = await this.source.get("status");
      if (!root.isConnected) return;
      if (status.ready) break;
      if (status.total) bar.value = status.done / status.total;
      said.textContent = `${count(status.events)} events so far`;
      await new Promise((done) => setTimeout(done, 300));
    }
    this.show();
  }

  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (this.help.open) return;
    const number = Number(event.key);
    const inSession = this.shown === "session" && route()[1][0];
    if (number >= 1 && number <= this.views.length && !(inSession && number === 0)) this.go(this.views[number - 1][0], {});
    else if (event.key === "t") theme();
    else if (event.key === "?") this.help.showModal();
    else for (const act of this.keys) act(event);
    const below = this.shown === "decision" || route()[1].length > 0;
    if (event.key === "Escape" && !event.defaultPrevented && below) history.back();
  }

  skip(event) {
    event.preventDefault();
    this.main.focus();
  }
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return [name || "live", rest, Object.fromEntries(new URLSearchParams(query ?? ""))];
}

function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("hookline-theme", document.documentElement.dataset.theme);
  } catch {
    // storage may be closed to pages from disk: the choice lasts as long as the page
  }
  window.dispatchEvent(new Event("hookline-theme"));
}

async function start() {
  try {
    const data = document.querySelector("#hookline-data");
    const source = data ? new ReportSource(JSON.parse(data.textContent)) : await ServerSource.open();
    new Frame(source, source.live ? await source.get("views").catch(() => []) : []);
  } catch (problem) {
    replace(document.querySelector("#app"), h("main", {}, empty("This page is locked", untrusted(problem.message))));
  }
}

start();
