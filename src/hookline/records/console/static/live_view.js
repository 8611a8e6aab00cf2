// Events as they happen, and all that happened before; filters by verdict, tool, event, hook and session.
import { count, h, icon, moment, ms, plainText, replace, share, untrusted } from "./dom.js";
import { VERDICTS, card, empty, eventRow, eventTable, figure, heading, rowKeys, timeline } from "./parts.js";
import { detail } from "./decision_view.js";

const PAGE = 100;
const MOST_SHOWN = 1000;
const RECENT = 600_000;
const BURST = 5;
const FILTERS = ["verdict", "event", "tool", "hook", "session", "text", "failed", "unseen", "since", "until"];

export async function liveView(context) {
  return new LiveView(context).open();
}

class LiveView {
  constructor({ source, root, asked, go, onLeave, onKey }) {
    Object.assign(this, { source, root, go });
    this.asked = Object.fromEntries(FILTERS.filter((name) => asked[name]).map((name) => [name, asked[name]]));
    this.opened = Number(asked.open) || 0;
    this.paused = false;
    this.waiting = [];
    this.shown = 0;
    onLeave(() => this.stop?.());
    onKey((event) => this.key(event));
  }

  async open() {
    const { table, body } = eventTable("Events, newest first");
    this.body = body;
    this.figures = h("div", { class: "figures" });
    this.alerts = h("div", { class: "alerts", role: "status" });
    this.chart = h("div");
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Verdicts" });
    this.selects = h("div", { class: "selects" });
    this.note = h("p", { class: "list-note", role: "status" });
    this.more = h("button", { type: "button", class: "more", onclick: () => this.older() }, "Show older events");
    this.panel = h("aside", { class: "panel", "aria-label": "The chosen event", hidden: true });
    this.pulse = h("button", { type: "button", class: "pulse", "aria-pressed": "false", onclick: () => this.pause() }, h("span", { class: "dot" }), h("span", { class: "pulse-text" }, "Live"));
    this.search = h("input", { type: "search", placeholder: "Search commands, paths, prompts, reasons", "aria-label": "Search", value: this.asked.text ?? "", oninput: () => this.typed() });
    replace(
      this.root,
      heading(this.source.live ? "Live" : "Events", this.source.live ? this.pulse : null),
      this.alerts,
      this.figures,
      card(null, this.chart),
      h("div", { class: "filters" }, this.chips, h("label", { class: "search" }, icon("search"), this.search), this.selects),
      h("div", { class: "split" }, h("div", { class: "list" }, this.note, h("div", { class: "scroll" }, table), this.more), this.panel),
    );
    await Promise.all([this.load(), this.refreshCounts()]);
    if (this.opened) await this.choose({ id: this.opened });
    if (this.source.live) {
      this.stop = this.source.follow({ ...this.asked, after: this.lastId ?? 0 }, (data) => this.arrived(data), (state) => this.connection(state));
    }
  }

  // -- the list ----------------------------------------------------------------------------------------------------------

  async load() {
    const asked = this.asked;
    const status = await this.source.get("status");
    this.lastId = status.last_id;
    const page = await this.source.get("events", { ...asked, limit: PAGE });
    if (asked !== this.asked) return; // the search changed meanwhile, and its answer may have come first
    this.next = page.next;
    this.body.replaceChildren(...page.rows.map((row) => this.row(row)));
    this.shown = page.rows.length;
    this.tell();
  }

  row(row) {
    return eventRow(row, { onOpen: (chosen) => this.choose(chosen) });
  }

  async older() {
    this.more.disabled = true;
    const page = await this.source.get("events", { ...this.asked, limit: PAGE, cursor: this.next });
    this.body.append(...page.rows.map((row) => this.row(row)));
    this.shown += page.rows.length;
    this.next = page.next;
    this.more.disabled = false;
    this.tell();
  }

  tell() {
    this.more.hidden = !this.next;
    this.more.textContent = this.asked.text ? "Search further back" : "Show older events";
    if (this.shown) replace(this.note);
    else replace(this.note, Object.keys(this.asked).length ? ["Nothing matches these filters", this.next ? " so far. " : ". ", this.clearButton()] : "No events yet. They appear here as agents work.");
  }

  clearButton() {
    return h("button", { type: "button", class: "link", onclick: () => this.clear() }, "Clear all filters");
  }

  async choose(row) {
    if (!window.matchMedia("(min-width: 1200px)").matches) {
      location.hash = `#/decision/${row.id}`;
      return;
    }
    for (const other of this.body.querySelectorAll(".chosen")) other.classList.remove("chosen");
    this.body.querySelector(`[data-id="${row.id}"]`)?.classList.add("chosen");
    const found = await this.source.get("event", { id: row.id });
    this.panel.hidden = false;
    replace(this.panel, h("div", { class: "panel-head" }, h("a", { href: `#/decision/${row.id}` }, "Open as a page"), h("button", { type: "button", class: "ghost", "aria-label": "Close", onclick: () => this.closePanel() }, icon("close"))), detail(found));
    this.panel.scrollTop = 0;
    this.opened = row.id;
    this.address();
  }

  closePanel() {
    this.panel.hidden = true;
    this.opened = 0;
    this.address();
    for (const other of this.body.querySelectorAll(".chosen")) other.classList.remove("chosen");
  }

  // What is chosen is in the address: it can be handed on, and is there again after a reload.
  address() {
    history.replaceState(null, "", `#/live?${new URLSearchParams({ ...this.asked, ...(this.opened ? { open: this.opened } : {}) })}`);
  }

  // -- what comes in -----------------------------------------------------------------------------------------------------

  arrived(data) {
    const rows = data.rows ?? [];
    if (data.status && data.status.last_id < this.lastId) {
      this.load();
      return;
    }
    if (data.status) this.lastId = data.status.last_id;
    if (!rows.length && !data.skipped) return;
    if (this.paused) {
      this.waiting = [...rows, ...this.waiting].slice(0, MOST_SHOWN);
      this.pulseText(`Paused, ${count((this.held = (this.held ?? 0) + rows.length + (data.skipped ?? 0)))} new`);
    } else this.show(rows);
    this.countSoon();
  }

  show(rows) {
    const made = rows.filter((row) => !this.body.querySelector(`[data-id="${row.id}"]`)).map((row) => {
      const element = this.row(row);
      element.classList.add("fresh");
      return element;
    });
    this.body.prepend(...made);
    this.shown += made.length;
    while (this.shown > MOST_SHOWN) {
      this.body.lastElementChild.remove();
      this.shown -= 1;
      this.next = this.cursor(this.body.lastElementChild);
    }
    this.tell();
  }

  cursor(last) {
    const at = Date.parse(last.querySelector("time").getAttribute("datetime"));
    return `${at}.${last.dataset.id}`;
  }

  pause() {
    this.paused = !this.paused;
    this.pulse.setAttribute("aria-pressed", String(this.paused));
    this.pulse.classList.toggle("paused", this.paused);
    if (!this.paused) {
      this.show(this.waiting);
      this.waiting = [];
      this.held = 0;
    }
    this.pulseText(this.paused ? "Paused" : "Live");
  }

  connection(state) {
    this.pulse.classList.toggle("off", state !== "on");
    this.pulseText({ on: this.paused ? "Paused" : "Live", off: "Reconnecting", out: "Signed out" }[state]);
  }

  pulseText(text) {
    this.pulse.querySelector(".pulse-text").textContent = text;
  }

  // -- counts and filters --------------------------------------------------------------------------------------------------

  countSoon() {
    if (this.counting) return;
    this.counting = setTimeout(() => {
      this.counting = null;
      this.refreshCounts();
    }, 1000);
  }

  async refreshCounts() {
    const within = { ...this.asked };
    const open = { ...within };
    delete open.verdict;
    delete open.failed;
    const [facets, all, line] = await Promise.all([this.source.get("facets", within), this.source.get("facets", open), this.source.get("timeline", within)]);
    if (!this.root.isConnected) return;
    const v = facets.verdict;
    replace(this.figures, figure("events", count(facets.total)), figure("denied", count(v.deny ?? 0), v.deny ? "bad" : ""), figure("asked", count((v.ask ?? 0) + (v.defer ?? 0)), v.ask ? "warn" : ""), figure("rewritten", count(v.rewrite ?? 0)), figure("hook failures", count(facets.failed), facets.failed ? "bad" : ""), figure("blocked", share((v.deny ?? 0) + (v.stop ?? 0), facets.total)));
    replace(this.chart, timeline(line, { onRange: (since, until) => this.set({ since, until }) }));
    this.drawChips(all);
    this.drawSelects(all);
    if (this.source.live) await this.watch();
  }

  // A burst of denials, or a hook that fails, within the last ten minutes.
  async watch() {
    const since = Date.now() - RECENT;
    const recent = await this.source.get("facets", { since });
    const failing = recent.failed ? await this.source.get("facets", { since, failed: "1" }) : null;
    if (!this.root.isConnected) return;
    const denied = recent.verdict.deny ?? 0;
    replace(
      this.alerts,
      denied >= BURST ? h("p", { class: "notice bad" }, h("a", { class: "plain", href: `#/live?verdict=deny&since=${since}` }, `${count(denied)} calls were denied within ten minutes`)) : null,
      failing ? h("p", { class: "notice bad" }, h("a", { class: "plain", href: `#/live?failed=1&since=${since}` }, `A hook failed ${recent.failed === 1 ? "once" : `${count(recent.failed)} times`} within ten minutes`), ": ", untrusted(Object.keys(failing.hook).slice(0, 3).join(", "))) : null,
    );
  }

  drawChips(facets) {
    const chosen = new Set((this.asked.verdict ?? "").split(",").filter(Boolean));
    const chips = VERDICTS.filter((verdict) => facets.verdict[verdict] || chosen.has(verdict)).map((verdict) =>
      h("button", { type: "button", class: `chip v-${verdict.replace(" ", "-")}`, "aria-pressed": String(chosen.has(verdict)), onclick: () => this.toggle(verdict, chosen) }, verdict, h("span", { class: "chip-count" }, count(facets.verdict[verdict] ?? 0))),
    );
    if (facets.failed || this.asked.failed) chips.push(h("button", { type: "button", class: "chip v-failed", "aria-pressed": String(Boolean(this.asked.failed)), onclick: () => this.set({ failed: this.asked.failed ? "" : "1" }) }, "hook failed", h("span", { class: "chip-count" }, count(facets.failed))));
    this.keepFocus(this.chips, chips);
  }

  keepFocus(into, elements) {
    const place = [...into.children].indexOf(document.activeElement);
    replace(into, elements);
    if (place >= 0) into.children[Math.min(place, into.children.length - 1)]?.focus();
  }

  toggle(verdict, chosen) {
    if (chosen.has(verdict)) chosen.delete(verdict);
    else chosen.add(verdict);
    this.set({ verdict: [...chosen].join(",") });
  }

  drawSelects(facets) {
    if (this.selects.contains(document.activeElement)) return;
    const select = (name, label, counts) => {
      const names = Object.keys(counts);
      if (this.asked[name] && !names.includes(this.asked[name])) names.unshift(this.asked[name]);
      return h("label", { class: "select" }, h("span", { class: "hidden" }, label), h("select", { name, value: this.asked[name] ?? "", onchange: (event) => this.set({ [name]: event.target.value }) }, h("option", { value: "" }, label), names.map((one) => h("option", { value: one, selected: one === this.asked[name] }, `${plainText(one)}  ·  ${count(counts[one] ?? 0)}`))));
    };
    const tags = [];
    if (this.asked.session) tags.push(this.tag("session", ["session ", untrusted(this.asked.session.slice(0, 8))]));
    if (this.asked.unseen) tags.push(this.tag("unseen", "no hook looked"));
    if (this.asked.since || this.asked.until) tags.push(this.tag("since", `${this.asked.since ? moment(Number(this.asked.since)) : "start"} – ${this.asked.until ? moment(Number(this.asked.until)) : "now"}`));
    replace(this.selects, select("tool", "Any tool", facets.tool), select("event", "Any event", facets.event), select("hook", "Any hook", facets.hook), tags, Object.keys(this.asked).length ? this.clearButton() : null);
  }

  tag(name, text) {
    const cleared = name === "since" ? { since: "", until: "" } : { [name]: "" };
    return h("button", { type: "button", class: "tag", title: "Remove this filter", onclick: () => this.set(cleared) }, text, " ", icon("close"));
  }

  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.set({ text: this.search.value.trim() }, { keep: true }), 250);
  }

  clear() {
    this.asked = {};
    this.go("live", {});
  }

  async set(changed, { keep = false } = {}) {
    const asked = Object.fromEntries(Object.entries({ ...this.asked, ...changed }).filter(([, value]) => value !== "" && value !== undefined));
    this.asked = asked; // before the view is drawn again: the next filter may be chosen until then
    if (!keep) {
      this.go("live", asked);
      return;
    }
    this.address();
    this.stop?.();
    await Promise.all([this.load(), this.refreshCounts()]);
    if (this.source.live) this.stop = this.source.follow({ ...this.asked, after: this.lastId }, (data) => this.arrived(data), (state) => this.connection(state));
  }

  key(event) {
    if (event.key === "/") {
      this.search.focus();
      event.preventDefault();
    } else if (event.key === " " && event.target === document.body && this.source.live) {
      this.pause();
      event.preventDefault();
    } else if (event.key === "Escape" && !this.panel.hidden) {
      this.closePanel();
      event.preventDefault();
    }
    else rowKeys(event, this.body.parentElement);
  }
}
