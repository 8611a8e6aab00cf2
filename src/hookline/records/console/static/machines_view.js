// The machines of a fleet: who reports, what is in force there, whether its records are whole.
import { count, h, moment, replace, untrusted } from "./dom.js";
import { card, empty, figure, heading } from "./parts.js";

const SECONDS = 2;

export async function machinesView(context) {
  await again(context, "machines", draw);
}

// Draws now, and every two seconds while the view is shown.
export async function again({ source, root, onLeave }, name, drawn) {
  const step = async () => replace(root, drawn(await source.get(name)));
  await step();
  const timer = setInterval(() => step().catch(() => {}), SECONDS * 1000);
  onLeave(() => clearInterval(timer));
}

export function trouble(problem) {
  return problem ? h("p", { class: "notice bad", role: "status" }, untrusted(problem)) : null;
}

function draw({ problem, machines }) {
  const wrong = machines.filter((one) => !one.ok).length;
  const proven = machines.reduce((sum, one) => sum + one.proven, 0);
  const hooked = machines.reduce((sum, one) => sum + one.hooked, 0);
  return [
    heading("Machines"),
    trouble(problem),
    machines.length
      ? [
          h("div", { class: "figures" }, figure("machines", count(machines.length)), figure("need attention", count(wrong), wrong ? "bad" : "good"), figure("silent", count(machines.filter((one) => one.silent).length)), figure("records", count(machines.reduce((sum, one) => sum + one.records, 0))), figure("agents hooked", count(hooked)), figure("agents proven", count(proven), proven < hooked ? "warn" : "")),
          card(null, h("div", { class: "scroll" }, h("table", { class: "machines", "aria-label": "Machines" }, h("thead", {}, h("tr", {}, ["Machine", "State", "Last seen", "Policy", "Agents", "Records", "What is wrong"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, machines.map(row))))),
        ]
      : empty("No machines yet", "Let one in with ", h("code", {}, "hookline fleet token"), "."),
  ];
}

function row(one) {
  const policy = one.policy === one.wanted ? `${one.policy || "none"}` : `${one.policy || "none"}, wants ${one.wanted}`;
  const agents = one.agents.map((agent) => h("div", {}, untrusted(agent.host), " ", h("span", { class: `pill ${agent.proven ? "good" : agent.hooked.length ? "unknown" : "bad"}` }, agent.proven ? "proven" : agent.hooked.length ? "hooked" : "not hooked")));
  return h(
    "tr",
    { "data-machine": one.machine },
    h("td", {}, untrusted(one.name), h("div", { class: "dim mono" }, one.machine)),
    h("td", {}, h("span", { class: `pill ${one.ok ? "good" : "bad"}` }, one.silent ? "silent" : one.ok ? "good" : "look here")),
    h("td", {}, one.seen ? moment(Date.parse(one.seen)) : "never"),
    h("td", {}, policy),
    h("td", {}, agents.length ? agents : h("span", { class: "dim" }, "–")),
    h("td", { class: "num" }, count(one.records)),
    h("td", {}, one.problems.map((problem) => h("div", { class: "bad" }, untrusted(problem)))),
  );
}
