// Whether what the console shows can be believed: chains, gaps, writers, disk.
import { bytes, count, h, moment, replace, untrusted } from "./dom.js";
import { card, figure, heading } from "./parts.js";

export async function healthView(context) {
  const { source, root } = context;
  draw(root, await source.get("health"), source);
}

function draw(root, health, source) {
  const size = health.logs.reduce((sum, log) => sum + log.files.reduce((all, [, one]) => all + one, 0), 0);
  const unreadable = health.logs.reduce((sum, log) => sum + log.unreadable, 0);
  const button = h("button", { type: "button", class: "primary", onclick: () => verify(root, source, button) }, "Verify the chains now");
  replace(
    root,
    heading("Health", source.live ? button : null),
    h("div", { class: "figures" }, figure("events", count(health.events)), figure("logs", count(health.logs.length)), figure("on disk", bytes(size)), figure("unreadable lines", count(unreadable), unreadable ? "bad" : ""), figure("gaps", count(health.gaps.length), health.gaps.length ? "bad" : ""), figure("writers", count(health.writers.length))),
    health.logs.map(logCard),
    health.pushes.length ? card("Sent to", h("table", {}, h("tbody", {}, health.pushes.map(pushRow)))) : null,
    health.gaps.length ? card("Gaps", h("ul", { class: "plain-list" }, health.gaps.map((gap) => h("li", {}, h("a", { href: `#/decision/${gap.id}` }, moment(gap.time)), ": ", untrusted(gap.missing))))) : null,
    h("div", { class: "two" }, card("Writers", h("table", {}, h("tbody", {}, health.writers.map(([name, events]) => h("tr", {}, h("td", {}, untrusted(name)), h("td", { class: "num" }, `${count(events)} events`)))))), card("Index", h("p", {}, "Made from the logs; it can be deleted at any time."), h("p", { class: "dim" }, h("code", {}, untrusted(health.index_path)), ` ${bytes(health.index_bytes)}`))),
  );
}

function pushRow(one) {
  const state = one.problem ? ["bad", one.problem] : one.behind ? ["unknown", "on its way"] : ["good", "up to date"];
  const missing = one.missing ? `, ${count(one.missing)} deleted before` : "";
  return h("tr", {}, h("td", {}, untrusted(one.to)), h("td", { class: "num" }, `${count(one.sent)} sent, ${count(one.behind)} wait${missing}`), h("td", {}, h("span", { class: `pill ${state[0]}` }, untrusted(state[1]))));
}

async function verify(root, source, button) {
  button.disabled = true;
  button.textContent = "Verifying…";
  draw(root, await source.post("verify"), source);
}

function logCard(log) {
  const state = log.whole === null ? ["unknown", log.checking ? "being verified" : "not verified yet"] : log.whole ? ["good", "whole: nothing was changed, removed or re-ordered"] : ["bad", `${log.breaks.length} problem${log.breaks.length === 1 ? "" : "s"}`];
  return card(
    h("span", {}, untrusted(log.path.split("/").pop()), " ", h("span", { class: `pill ${state[0]}` }, state[1])),
    log.breaks.length ? h("ul", { class: "plain-list bad" }, log.breaks.map((one) => h("li", {}, untrusted(one)))) : null,
    h("dl", { class: "facts" }, [["Lines", count(log.lines)], ["Unreadable", count(log.unreadable)], ["Files", log.files.map(([path, size]) => h("div", {}, h("code", {}, untrusted(path)), ` ${bytes(size)}`))], ["First event", log.first ? moment(log.first) : "–"], ["Last event", log.last ? moment(log.last) : "–"], ["Free on this disk", bytes(log.free)], ["Key", log.keyed ? "written with a key" : "none"]].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
  );
}
