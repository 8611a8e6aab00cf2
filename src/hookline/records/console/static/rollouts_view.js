// Rollouts: which policy goes to whom, and what became of it there.
import { count, h, moment, share, untrusted } from "./dom.js";
import { card, empty, heading, meter } from "./parts.js";
import { again, trouble } from "./machines_view.js";

export async function rolloutsView(context) {
  await again(context, "rollouts", draw);
}

function draw({ problem, rollouts }) {
  return [
    heading("Rollouts"),
    trouble(problem),
    rollouts.length
      ? card(null, h("div", { class: "scroll" }, h("table", { class: "rollouts", "aria-label": "Rollouts" }, h("thead", {}, h("tr", {}, ["Version", "Began", "Goes to", "In force", "The others keep", "Refused", "About"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rollouts.map(row)))))
      : empty("Nothing was pushed yet", h("code", {}, "hookline fleet push policy/"), " checks, replays, signs and rolls out."),
  ];
}

function row(one) {
  return h(
    "tr",
    {},
    h("td", {}, count(one.version), " ", one.current ? h("span", { class: "pill good" }, "now") : null),
    h("td", {}, one.started ? moment(Date.parse(one.started)) : "–"),
    h("td", {}, one.share >= 1 ? "all machines" : share(one.share, 1)),
    h("td", { class: "c-meter" }, one.current ? [meter(one.in_force, one.wanted, one.in_force < one.wanted ? "warn" : "good"), h("span", {}, `${count(one.in_force)} of ${count(one.wanted)}`)] : h("span", { class: "dim" }, `${count(one.in_force)} still`)),
    h("td", {}, one.share >= 1 || !one.stable ? h("span", { class: "dim" }, "–") : `version ${one.stable}`),
    h("td", {}, one.refused.map((text) => h("div", { class: "bad" }, untrusted(text)))),
    h("td", {}, untrusted(one.message)),
  );
}
