// Which page is shown, undo and redo, and what is going on.
import { follow, go, onChange, post, refresh, store } from "./api.js";
import * as table from "./table.js";
import * as graph from "./graph_page.js";
import * as rows from "./rows.js";
import * as compare from "./compare.js";
import * as history from "./history.js";

const at = (id) => document.getElementById(id);
const pages = { load: table, graph, rows, compare, history };
const here = () => (location.hash.slice(1) in pages ? location.hash.slice(1) : "load");

function show() {
  for (const [name, page] of Object.entries(pages)) {
    at(`page-${name}`).hidden = name !== here();
    document.querySelector(`nav a[href="#${name}"]`)
      .setAttribute("aria-current", name === here() ? "page" : "false");
    if (name === here() && store.state) { page.render(store); }
  }
}

const NAMES = { columns: "reading the table", findings: "checking the table", fit: "fitting",
                costs: "what constraints cost", bootstrap: "resampling", compare: "comparing" };

function told([name, one]) {
  const p = one.progress ?? {};
  const more = p.step ? `, step ${p.step}, ${p.edges} edges`
    : p.of ? ` ${p.done} of ${p.of}`
    : p.compared ? `, ${p.compared.length} done` : "";
  return `${NAMES[name] ?? name}${more}${one.seconds >= 2 ? `, ${Math.round(one.seconds)} s` : ""}`;
}

function frame({ state }) {
  at("title").textContent = state.source || "Workbench";
  document.title = state.source ? `${state.source} – rescore` : "rescore workbench";
  at("undo").disabled = state.at === 0;
  at("redo").disabled = state.at === state.history.length;
  const going = Object.entries(state.busy).filter(([name]) => name in NAMES);
  at("busy").hidden = going.length === 0;
  at("busy-text").textContent = going.map(told).join(" · ");
  at("cancel").hidden = !going.some(([name]) => ["fit", "bootstrap", "compare", "costs"].includes(name));
}

at("undo").addEventListener("click", () => go(store.state.at - 1));
at("redo").addEventListener("click", () => go(store.state.at + 1));
at("cancel").addEventListener("click", () => post("cancel").catch(() => {}));
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") { return; }
  event.preventDefault();
  (event.shiftKey ? at("redo") : at("undo")).click();
});
addEventListener("hashchange", show);
onChange((now) => { frame(now); show(); });
setInterval(() => {  // seconds go on between two signs from the server
  if (!store.state) { return; }
  for (const one of Object.values(store.state.busy)) { one.seconds += 1; }
  frame(store);
}, 1000);
await refresh();
follow();
document.body.dataset.ready = "yes";
