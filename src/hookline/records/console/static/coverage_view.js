// Calls that no gate looked at, and gates that never matched anything.
import { count, h, share, untrusted } from "./dom.js";
import { card, empty, figure, heading, meter } from "./parts.js";
import { neverCard } from "./hooks_view.js";

export async function coverageView({ source, root }) {
  const coverage = await source.get("coverage");
  const calls = coverage.tools.reduce((sum, tool) => sum + tool.calls, 0);
  const seen = coverage.tools.reduce((sum, tool) => sum + tool.seen, 0);
  root.append(heading("Coverage"), h("p", { class: "lead" }, "What agents were about to do, and whether any hook looked at it first."));
  if (!calls) {
    root.append(empty("Nothing to cover yet", "No agent has asked to do anything so far."));
    return;
  }
  root.append(h("div", { class: "figures" }, figure("gated events", count(calls)), figure("looked at", share(seen, calls), seen === calls ? "good" : "warn"), figure("unseen", count(calls - seen), calls - seen ? "bad" : "good"), figure("hooks that never fired", coverage.configured ? count(coverage.never.length) : "–")));
  const rows = coverage.tools.toSorted((a, b) => b.calls - b.seen - (a.calls - a.seen)).map((tool) => {
    const unseen = tool.calls - tool.seen;
    const link = `#/live?unseen=1&event=${encodeURIComponent(tool.event)}${tool.tool ? `&tool=${encodeURIComponent(tool.tool)}` : ""}`;
    return h("tr", {}, h("td", {}, untrusted(tool.event)), h("td", { class: "c-what" }, tool.tool ? h("span", { class: "tool" }, untrusted(tool.tool)) : h("span", { class: "dim" }, "–")), h("td", { class: "num" }, count(tool.calls)), h("td", { class: "c-meter" }, meter(tool.seen, tool.calls, unseen ? "warn" : "good"), h("span", {}, share(tool.seen, tool.calls))), h("td", { class: `num ${unseen ? "bad" : "dim"}` }, unseen ? h("a", { href: link }, count(unseen)) : "0"));
  });
  root.append(card(null, h("div", { class: "scroll" }, h("table", { class: "coverage", "aria-label": "Coverage by event and tool" }, h("thead", {}, h("tr", {}, [["Event"], ["Tool"], ["Calls", "num"], ["Looked at"], ["Unseen", "num"]].map(([name, kind]) => h("th", { scope: "col", class: kind ?? "" }, name)))), h("tbody", {}, rows)))));
  if (coverage.never.length) root.append(neverCard(coverage));
  else if (coverage.configured) root.append(h("p", { class: "notice good" }, "Every hook that is configured today has fired at least once."));
}
