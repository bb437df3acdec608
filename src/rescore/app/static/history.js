// Every step with its fit, and what repeats all of it elsewhere.
import { anew, go, store } from "./api.js";
const { made } = edgeDetails;

const page = document.getElementById("page-history");
const FILES = { "report.html": "Report", "graph.svg": "Graph as SVG", "graph.png": "Graph as PNG",
  "knowledge.json": "Knowledge as JSON", "knowledge.txt": "Knowledge for Tetrad", "everything.zip": "Everything in one archive" };
let seen = "", trails = null;

function line(told, fit, before, holds, place) {
  const row = made("li", undefined, holds ? "" : "undone"), jump = made("button", told, "step name");
  jump.type = "button";
  jump.setAttribute("aria-current", place === store.state.at ? "step" : "false");
  jump.addEventListener("click", () => go(place));
  row.append(jump);
  if (fit) {
    // Likelihoods of rows that are weighed in another way cannot be compared.
    const alike = before && Math.abs(fit.effective - before.effective) < 1e-6 * fit.effective;
    const change = alike ? fit.likelihood - before.likelihood : null;
    const delta = change === null || Math.abs(change) < 0.05 ? "" : ` (${change > 0 ? "+" : "−"}${Math.abs(change).toFixed(1)})`;
    row.append(made("span", `${fit.edges} edges, log-likelihood ${Math.round(fit.likelihood).toLocaleString("en")}${delta}${before && !alike ? ", rows weighed anew" : ""}${fit.quick ? ", first answer" : ""}`, "soft small num"));
  }
  return row;
}

function copied(title, name) {
  const box = made("div"), head = made("h3", title), text = made("pre"), copy = made("button", "Copy"), save = made("a", "Save", "button");
  copy.type = "button";
  copy.addEventListener("click", () => navigator.clipboard.writeText(text.textContent));
  save.href = `api/export/${name}`;
  save.download = name;
  text.tabIndex = 0;
  const tools = made("div", undefined, "buttons");
  tools.append(copy, save);
  box.append(head, text, tools);
  const read = () => fetch(`api/export/${name}`).then((answer) => answer.text())
    .then((words) => { if (text.textContent !== words) { text.textContent = words; } }).catch(() => {});
  return { box, read };
}

export function render({ state }) {
  const key = JSON.stringify([state.history, state.at, state.source]);
  if (key === seen) { return; }
  seen = key;
  if (!state.source) {
    page.replaceChildren(made("p", "Load a table first.", "status neutral"));
    return;
  }
  const list = made("ol", undefined, "steps");
  list.start = 0;
  list.append(line(`Open ${state.source}`, null, null, true, 0));
  let before = null;
  state.history.forEach((one, k) => {
    list.append(line(one.told, one.fit, before, one.holds, k + 1));
    before = one.fit ?? before;
  });
  const files = made("div", undefined, "buttons");
  for (const [name, text] of Object.entries(FILES)) {
    const link = made("a", text, "button");
    link.href = `api/export/${name}`;
    link.download = name;
    files.append(link);
  }
  trails ??= [copied("In Python", "fit.py"), copied("On the command line", "command.txt")];
  for (const trail of trails) { trail.read(); }
  anew(page, made("h2", "Steps"), made("p", "Click a step to go there; later ones wait until you do something else.", "soft small"), list,
    made("h2", "Repeat it elsewhere"), ...trails.map((trail) => trail.box),
    made("h2", "Take it along"), files);
}
