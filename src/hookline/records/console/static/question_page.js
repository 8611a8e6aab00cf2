// The page behind a link: one question. Opening it decides nothing; a button sends the answer.
import { h, replace, untrusted } from "./dom.js";
import { question } from "./question.js";

const SECONDS = 2;
const root = document.querySelector("#app");

async function answer(one, word) {
  const found = await fetch(location.href, { method: "POST", body: new URLSearchParams({ answer: word }) });
  const said = await found.json();
  setTimeout(show, 400);
  return said;
}

let before = "";
async function show() {
  const found = await fetch(`${location.pathname}.json${location.search}`);
  const text = await found.text();
  if (text === before) return;
  before = text;
  if (!found.ok) replace(root, h("p", { class: "empty" }, untrusted(text)));
  else replace(root, h("main", { class: "question-page" }, question(JSON.parse(text), answer)));
  document.documentElement.dataset.ready = "yes";
}

show();
setInterval(() => show().catch(() => {}), SECONDS * 1000);
