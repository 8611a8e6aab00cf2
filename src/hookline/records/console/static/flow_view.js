// Where each destination of a session's calls came from, as the flow guard saw it.
import { h, time, untrusted } from "./dom.js";
import { badge, card } from "./parts.js";

const LABELS = { user: "you", field: "a record", third: "a field others fill in", delegated: "a text you named", text: "a text", unknown: "not known" };

export function flowCard(rows) {
  if (!rows.length) return null;
  const head = h("tr", {}, ["Time", "Call", "Destination", "Vouched for by", "Said"].map((name) => h("th", { scope: "col" }, name)));
  const table = h("table", { class: "flow", "aria-label": "Where each destination came from" }, h("thead", {}, head), h("tbody", {}, rows.flatMap(callRows)));
  return card("Where destinations came from", h("div", { class: "scroll" }, table));
}

function callRows(row) {
  const values = row.values.length ? row.values : [{ value: "", label: "", source: "" }];
  return values.map((one, place) => h("tr", {}, h("td", { class: "c-time" }, place ? "" : time(row.time)), h("td", {}, place ? "" : h("code", {}, untrusted(row.tool))), h("td", {}, one.value ? untrusted(one.value) : "–"), h("td", {}, LABELS[one.label] ?? "–", one.source ? [" · ", untrusted(one.source)] : null), h("td", {}, place ? null : badge(row.level), " ", place ? "" : untrusted(row.why))));
}
