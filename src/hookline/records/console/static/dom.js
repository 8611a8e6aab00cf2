// Elements, text and numbers. Everything that came from an agent goes through `untrusted`, and only ever becomes text.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, said] of Object.entries(value)) element.style.setProperty(key, said);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Characters that steer what is shown rather than show something: controls, direction overrides, invisible marks.
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/u;
const LINE = /[\n\t]/;

export function untrusted(text, { lines = false } = {}) {
  const parts = [];
  let plain = "";
  for (const character of String(text ?? "")) {
    const code = character.codePointAt(0);
    const steering = STEERING.test(character) || (!lines && LINE.test(character));
    if (!steering) {
      plain += character;
      continue;
    }
    if (plain) parts.push(plain);
    plain = "";
    parts.push(mark(character, code));
  }
  if (plain) parts.push(plain);
  return h("bdi", {}, parts);
}

function mark(character, code) {
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const shown = character === "\n" ? "⏎" : character === "\t" ? "⇥" : code < 0x20 ? String.fromCharCode(0x2400 + code) : name;
  return h("span", { class: "steering", title: `${name}, shown instead of obeyed` }, shown);
}

export function plainText(text) {
  return untrusted(text).textContent;
}

// -- numbers and times ------------------------------------------------------------------------------------------------

export function count(number) {
  return Number(number ?? 0).toLocaleString("en-GB");
}

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 60_000) return `${(value / 60_000).toFixed(1)} min`;
  if (value >= 1000) return `${(value / 1000).toFixed(value >= 10_000 ? 1 : 2)} s`;
  if (value >= 10) return `${value.toFixed(0)} ms`;
  if (value >= 0.1) return `${value.toFixed(1)} ms`;
  return value > 0 ? `${(value * 1000).toFixed(0)} µs` : "0";
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let left = value;
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${left < 10 && unit ? left.toFixed(1) : Math.round(left)} ${units[unit]}`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayName = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const time = (stamp) => clock.format(stamp);
export const day = (stamp) => dayName.format(stamp);
export const moment = (stamp) => full.format(stamp);

export function stamp(value) {
  const part = String(value % 1000).padStart(3, "0");
  const today = new Date(value).toDateString() === new Date().toDateString();
  return h("time", { datetime: new Date(value).toISOString(), title: moment(value) }, today ? null : h("span", { class: "date" }, `${day(value)} `), time(value), h("span", { class: "part" }, `.${part}`));
}

export function share(part, whole) {
  if (!whole) return "0 %";
  const percent = (100 * part) / whole;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

// -- icons: one path each, drawn with the text's colour -----------------------------------------------------------------

const ICONS = {
  live: "M3 12h4l3-8 4 16 3-8h4",
  inbox: "M4 13v6h16v-6l-3-8H7l-3 8h5a3 3 0 0 0 6 0h5",
  session: "M3 6h10M7 12h12M3 18h8",
  hooks: "M14 4v9a4 4 0 1 1-8 0v-1l3 2M14 4a1 1 0 1 0 0-.01",
  replay: "M4 5v5h5M4.6 10A8 8 0 1 1 4 14",
  coverage: "M12 3l8 3v6c0 5-3.5 8-8 9-4.500-1-8-4-8-9V6zM9 12l2 2 4-4",
  health: "M12 20s-8-5-8-11a4.500 4.500 0 0 1 8-2.800A4.500 4.500 0 0 1 20 9c0 6-8 11-8 11z",
  machines: "M4 5h16v11H4zM2 20h20M9 16v4M15 16v4",
  rollouts: "M4 20V14h4v6zM10 20V9h4v11zM16 20V4h4v16z",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  help: "M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.200-1.500 2.400M12 17.500v.01",
  back: "M15 5l-7 7 7 7",
  forward: "M9 5l7 7-7 7",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  close: "M6 6l12 12M18 6L6 18",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.500 4.500",
};

export function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}
