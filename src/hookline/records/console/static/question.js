// One question of a hook to a person: what would run, why it is asked, what happened before, and the two answers.
import { h, moment, replace, untrusted } from "./dom.js";

export function question(one, answer) {
  return h(
    "article",
    { class: "question", "data-id": one.id, "data-state": one.state },
    h("h2", { class: "question-title" }, h("span", { class: "badge v-ask" }, one.state === "open" ? "asks" : untrusted(one.told)), " ", untrusted(one.tool || one.event), one.host ? h("span", { class: "dim" }, " in ", untrusted(one.host)) : null),
    one.why ? h("blockquote", { class: "question-why" }, untrusted(one.why, { lines: true })) : null,
    one.parts.map(part),
    h("dl", { class: "facts" }, facts(one).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, untrusted(value, { lines: true }))))),
    one.before.length ? h("details", { class: "fold", open: one.state === "open" }, h("summary", {}, "Before this"), h("ol", { class: "question-before" }, one.before.map((line) => h("li", {}, untrusted(line))))) : null,
    one.state === "open" ? buttons(one, answer) : null,
  );
}

function facts(one) {
  const sent = Object.entries(one.sent).map(([name, outcome]) => `${name}: ${outcome}`).join("\n");
  return [["Hook", one.hooks], ["Folder", one.cwd], ["Subagent", one.agent], ["Session", one.session], ["Asked", moment(one.made * 1000)], ["Open until", moment(one.until * 1000)], ["Question", `${one.id}, call ${one.call}`], ["Sent to", sent]].filter(([, value]) => value);
}

function part({ title, kind, text }) {
  const lines = kind === "diff" ? text.split("\n").map((line) => h("span", { class: { "+": "added", "-": "removed", "@": "place" }[line[0]] ?? "same" }, untrusted(line), "\n")) : untrusted(text, { lines: true });
  return h("section", { class: "question-part" }, h("h3", {}, untrusted(title)), h("pre", { class: kind, tabindex: "0" }, lines));
}

// The buttons are locked once one is pressed, and for a moment when they appear: a press that was meant for what stood
// here before must not answer this.
function buttons(one, answer) {
  const said = h("p", { role: "status" }, one.waiting ? "The agent waits for this." : "The agent no longer waits: a yes lets it make the call once.", one.person ? [" You answer as ", h("b", {}, untrusted(one.person)), "."] : null);
  const press = async (word) => {
    for (const each of both) each.disabled = true;
    try {
      const found = await answer(one, word);
      replace(said, untrusted(found.problem || `Your answer: ${word}.`));
    } catch (problem) {
      replace(said, untrusted(`It could not be answered: ${problem.message}`));
      for (const each of both) each.disabled = false;
    }
  };
  const both = [h("button", { disabled: true, type: "button", class: "answer no", onclick: () => press("no") }, "No"), h("button", { disabled: true, type: "button", class: "answer yes", onclick: () => press("yes") }, "Let it run once")];
  setTimeout(() => both.forEach((each) => (each.disabled = false)), 500);
  return h("footer", { class: "question-answer" }, said, h("div", {}, both));
}
