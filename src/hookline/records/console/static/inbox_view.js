// The questions that hooks ask people: the open ones to answer, the rest as they were answered.
import { h, replace, untrusted } from "./dom.js";
import { empty, heading } from "./parts.js";
import { question } from "./question.js";

const SECONDS = 2;

export async function inboxView({ source, root, onLeave }) {
  let before = "";
  const answer = async (one, word) => {
    const found = await source.post("inbox", JSON.stringify({ id: one.id, yes: word === "yes" }));
    setTimeout(step, 400);
    return found;
  };
  const step = async () => {
    const found = await source.get("inbox");
    const now = JSON.stringify(found);
    if (now === before) return;
    before = now;
    replace(root, draw(found, answer));
  };
  await step();
  const timer = setInterval(() => step().catch(() => {}), SECONDS * 1000);
  onLeave(() => clearInterval(timer));
}

function draw({ problem, questions }, answer) {
  const open = questions.filter((one) => one.state === "open");
  const rest = questions.filter((one) => one.state !== "open").reverse();
  return [
    heading("Inbox", h("span", { class: "sub-head" }, open.length ? `${open.length} open` : "nothing open")),
    problem ? h("p", { class: "notice bad", role: "status" }, untrusted(problem)) : null,
    questions.length ? null : empty("No questions", "What a hook asks where the agent cannot ask by itself comes here."),
    open.map((one) => h("section", { class: "card" }, question(one, answer))),
    rest.length ? h("section", {}, h("h2", {}, "Answered lately"), rest.map((one) => h("details", { class: "card fold" }, h("summary", {}, untrusted(`${one.tool || one.event}: ${one.told}`)), question(one, answer)))) : null,
  ];
}
