// How each hook has done: runs, denials, failures, run times over time, and which never had anything to do.
import { count, day, h, ms, plainText, replace, share, time, untrusted } from "./dom.js";
import { card, empty, figure, heading, rowKeys, sparkline } from "./parts.js";

export async function hooksView({ source, root, path, onKey, onLeave }) {
  const [hooks, coverage] = await Promise.all([source.get("hooks"), source.get("coverage")]);
  root.append(heading("Hooks"));
  if (!hooks.length) {
    root.append(empty("No hook has run yet", "Hooks appear here with their first event."));
    if (coverage.never.length) root.append(neverCard(coverage));
    return;
  }
  const chosen = hooks.find((hook) => hook.name === path[0]) ?? null;
  const totals = hooks.reduce((sums, hook) => ({ runs: sums.runs + hook.runs, denied: sums.denied + hook.denied, failed: sums.failed + hook.failed }), { runs: 0, denied: 0, failed: 0 });
  const slowest = hooks.reduce((worst, hook) => (hook.p95 > worst.p95 ? hook : worst), hooks[0]);
  root.append(
    h("div", { class: "figures" }, figure("hooks", count(hooks.length)), figure("runs", count(totals.runs)), figure("denials", count(totals.denied), totals.denied ? "bad" : ""), figure("failures", count(totals.failed), totals.failed ? "bad" : ""), figure("slowest at p95", untrusted(slowest.name)), figure("its p95", ms(slowest.p95))),
  );
  if (chosen) root.append(await one(source, chosen, onLeave));
  root.append(table(hooks, chosen));
  if (coverage.never.length) root.append(neverCard(coverage));
  onKey((event) => rowKeys(event, root));
}

function table(hooks, chosen) {
  const columns = ["Hook", "Runs over time", "Runs", "Denials", "Failures", "Skipped", "p50", "p95", "p99"];
  const worst = Math.max(...hooks.map((hook) => hook.p99), 0.001);
  const rows = hooks.map((hook) =>
    h(
      "tr",
      { class: hook === chosen ? "chosen" : "" },
      h("td", { class: "c-what" }, h("a", { class: "row-link", href: `#/hooks/${encodeURIComponent(hook.name)}` }, untrusted(hook.name))),
      h("td", { class: "c-spark" }, sparkline(hook.spark, `runs of ${plainText(hook.name)} over time`)),
      h("td", { class: "num" }, count(hook.runs)),
      h("td", { class: `num ${hook.denied ? "bad" : "dim"}` }, hook.denied ? h("a", { href: `#/live?verdict=deny&hook=${encodeURIComponent(hook.name)}` }, count(hook.denied)) : "0"),
      h("td", { class: `num ${hook.failed ? "bad" : "dim"}` }, hook.failed ? h("a", { href: `#/live?failed=1&hook=${encodeURIComponent(hook.name)}` }, count(hook.failed)) : "0"),
      h("td", { class: "num dim" }, count(hook.skipped)),
      [hook.p50, hook.p95, hook.p99].map((value) => h("td", { class: "num c-ms" }, h("span", { class: "ms-bar", style: { width: `${Math.max((100 * Math.log1p(value)) / Math.log1p(worst), 2)}%` } }), h("span", {}, ms(value)))),
    ),
  );
  return h("div", { class: "scroll" }, h("table", { class: "hooks", "aria-label": "Hooks, the busiest first" }, h("thead", {}, h("tr", {}, columns.map((name, place) => h("th", { scope: "col", class: place > 1 ? "num" : "" }, name)))), h("tbody", {}, rows)));
}

async function one(source, hook, onLeave) {
  const series = await source.get("hook", { name: hook.name });
  const times = h("div", { class: "plot" });
  const runs = h("div", { class: "plot" });
  const made = card(
    h("span", {}, untrusted(hook.name), " ", h("span", { class: "dim" }, `${count(hook.runs)} runs, ${share(hook.denied, hook.runs)} denied`)),
    h("div", { class: "plots" }, h("figure", {}, h("figcaption", {}, "Run time in ms: p50, p95, p99"), times), h("figure", {}, h("figcaption", {}, "Runs, denials and failures"), runs)),
    hook.slowest.length ? h("p", { class: "slowest" }, "Slowest runs: ", hook.slowest.slice(0, 6).map(([took, event], place) => [place ? ", " : "", h("a", { href: `#/decision/${event}` }, ms(took))])) : null,
  );
  const draw = () => {
    plot(times, series.time, [["p50", series.p50, "--plot-1"], ["p95", series.p95, "--plot-2"], ["p99", series.p99, "--plot-3"]], { log: true });
    plot(runs, series.time, [["runs", series.runs, "--pass-bar"], ["denied", series.denied, "--deny"], ["failed", series.failed, "--ask"]], { bars: true });
  };
  requestAnimationFrame(draw);
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (made.clientWidth !== width) {
      width = made.clientWidth;
      draw();
    }
  });
  observer.observe(made);
  window.addEventListener("hookline-theme", draw);
  onLeave(() => {
    observer.disconnect();
    window.removeEventListener("hookline-theme", draw);
  });
  return made;
}

function plot(into, stamps, lines, { log, bars }) {
  const probe = h("span", { hidden: true });
  into.replaceChildren(probe);
  const colour = (name) => {
    probe.style.setProperty("color", `var(${name})`);
    return getComputedStyle(probe).color;
  };
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "11px system-ui" };
  const decades = (_, marks) => marks.map((mark) => (!log || Number.isInteger(Math.round(Math.log10(mark) * 1e6) / 1e6) ? mark : null));
  const options = {
    width: Math.max(into.clientWidth, 240),
    height: 190,
    cursor: { points: { size: 6 } },
    scales: { y: log ? { distr: 3 } : { range: (_, low, high) => [0, Math.max(high, 1)] } },
    axes: [{ ...axis, values: (_, marks) => marks.map((mark) => axisTime(mark * 1000, stamps)) }, { ...axis, grid: { ...axis.grid, filter: decades }, ticks: { ...axis.ticks, filter: decades }, size: 52, values: log ? (_, marks) => marks.map((mark) => (mark === null ? "" : mark >= 1 ? String(mark) : mark.toPrecision(1))) : undefined }],
    series: [{}, ...lines.map(([label, , name]) => ({ label, stroke: colour(name), fill: bars ? colour(name) : undefined, width: bars ? 0 : 1.75, spanGaps: true, paths: bars ? window.uPlot.paths.bars({ size: [0.8, 10, 3] }) : undefined, points: { show: !bars && stamps.length < 60, size: 4 } }))],
  };
  const at = stamps.map((stamp) => stamp / 1000);
  replace(into);
  new window.uPlot(options, [at, ...lines.map(([, values]) => values.map((value) => (log && value !== null ? Math.max(value, 0.001) : value)))], into);
}

function axisTime(stamp, stamps) {
  const span = stamps[stamps.length - 1] - stamps[0];
  return span > 2 * 86_400_000 ? day(stamp) : span < 900_000 ? time(stamp).slice(3) : time(stamp).slice(0, 5);
}

export function neverCard(coverage) {
  return card(
    h("span", {}, "Never fired ", h("span", { class: "dim" }, `${coverage.never.length} of ${coverage.configured} hooks that are configured today`)),
    h("div", { class: "scroll" }, h("table", { class: "never" }, h("thead", {}, h("tr", {}, ["Hook", "Events", "Matcher", "From"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, coverage.never.map((hook) => h("tr", {}, h("td", {}, untrusted(hook.name)), h("td", {}, untrusted(hook.events.join(", "))), h("td", {}, h("code", {}, untrusted(hook.matcher || "*"))), h("td", { class: "dim" }, untrusted(hook.source))))))),
  );
}
