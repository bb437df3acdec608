// Learners side by side: which edges they agree on.
import { get, post, store } from "./api.js";
const { made, drawn } = edgeDetails;

const page = document.getElementById("page-compare");
const WORDS = { uniform: "rows alike" };
let built = false, seen = "", running = [];

async function build() {
  built = true;
  const learners = await get("learners");
  const form = made("form", undefined, "choices-form"), list = made("fieldset");
  list.append(made("legend", "Fit these to the same rows, with what you know"));
  const usual = new Set(["Linear", "Linear uniform", "GES", "Notears"]);
  const every = learners.flatMap((one) => (one.groups && !store.state.recipe.groups ? []
    : one.name === "Linear" ? [[one, ""], [one, "uniform"]] : [[one, ""]]));
  for (const [one, weighting] of every) {
    const label = made("label"), box = made("input"), value = `${one.name}${weighting ? ` ${weighting}` : ""}`;
    box.type = "checkbox";
    box.value = value;
    box.checked = usual.has(value);
    label.append(box, ` ${one.name}${weighting ? `, ${WORDS[weighting]}` : ""}`);
    label.title = one.told;
    list.append(label);
  }
  const go = made("button", "Compare", "primary");
  go.type = "submit";
  form.append(list, go);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    running = [...form.querySelectorAll("input:checked")].map((box) => {
      const [name, weighting] = box.value.split(" ");
      return { name, around: weighting ? { weighting } : {} };
    });
    if (running.length) { post("compare", { learners: running }).catch(() => {}); }
  });
  const results = made("div");
  results.dataset.at = "results";
  page.replaceChildren(form, results);
}

const titled = (one) => one.name + (one.around?.weighting ? `, ${WORDS[one.around.weighting] ?? one.around.weighting}` : "");
const id = (edge) => `${edge[0]}\u0000${edge[1]}`;
const pair = (edge) => [edge[0], edge[1]].sort().join("\u0000");

// A small drawing with the variables where the page of the graph has them.
function small(one, places, agreed, all) {
  const xs = Object.values(places).map((p) => p[0]), ys = Object.values(places).map((p) => p[1]);
  const [left, top] = [Math.min(...xs) - 50, Math.min(...ys) - 24];
  const [wide, tall] = [Math.max(...xs) - left + 50, Math.max(...ys) - top + 24];
  const svg = drawn("svg", { viewBox: `${left} ${top} ${wide} ${tall}`, class: "small-graph", role: "img",
    "aria-label": `The graph of ${titled(one)}: ${one.edges.length} edges` });
  for (const edge of one.edges) {
    const [[x1, y1], [x2, y2]] = [places[edge[0]], places[edge[1]]];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / length, uy = (y2 - y1) / length;
    const [ex, ey] = [x2 - ux * 20, y2 - uy * 20];
    const count = agreed.get(pair(edge));
    const name = count === all ? "all" : count === 1 ? "alone" : "some";
    svg.append(drawn("line", { x1, y1, x2: ex, y2: ey, class: name }));
    if (edge[3]) {
      const [px, py] = [-uy, ux];
      svg.append(drawn("path", { class: name, d: `M${ex + ux * 6} ${ey + uy * 6}L${ex - ux * 7 + px * 6} ${ey - uy * 7 + py * 6}L${ex - ux * 7 - px * 6} ${ey - uy * 7 - py * 6}Z` }));
    }
  }
  for (const [name, [x, y]] of Object.entries(places)) {
    svg.append(drawn("text", { x, y: y + 5, "text-anchor": "middle" }, name.length > 12 ? `${name.slice(0, 11)}…` : name));
  }
  return svg;
}

function results(compared) {
  const good = compared.filter((one) => one.edges), all = good.length;
  const agreed = new Map(), directed = new Map();
  for (const one of good) {
    for (const edge of one.edges) {
      agreed.set(pair(edge), (agreed.get(pair(edge)) ?? 0) + 1);
      directed.set(id(edge), (directed.get(id(edge)) ?? 0) + 1);
    }
  }
  const places = Object.fromEntries(store.fit.graph.nodes.map((node) => [node.name, store.state.places[node.name] ?? [node.x, node.y]]));
  const grid = made("div", undefined, "multiples");
  for (const one of compared) {
    const figure = made("figure"), caption = made("figcaption", `${titled(one)}: ${one.edges ? `${one.edges.length} edges, ${one.seconds} s` : one.error}`);
    if (one.edges) { figure.append(small(one, places, agreed, all)); }
    figure.append(caption);
    grid.append(figure);
  }
  const joined = [...agreed.values()].filter((count) => count === all).length;
  const told = made("p", all > 1 ? `${joined} of ${agreed.size} joined pairs are joined by all ${all} learners.` : "");
  const legend = made("ul", undefined, "legend");
  for (const [name, text] of [["firm", "all learners join the two"], ["common", "some do"], ["fragile", "one alone"]]) {
    const item = made("li", undefined, name);
    item.append(made("i"), text);
    legend.append(item);
  }
  return [told, legend, grid, table(good, agreed, directed, all)];
}

function table(good, agreed, directed, all) {
  const box = made("div", undefined, "scroll"), inner = made("table"), head = made("thead"), row = made("tr"), body = made("tbody");
  row.append(made("th", "edge"), ...good.map((one) => made("th", titled(one))), made("th", "agree", "num"));
  head.append(row);
  const rank = (key) => -1000 * agreed.get(key.split("\u0000").sort().join("\u0000")) - directed.get(key);
  const told = new Set();  // every pair once, in the direction that more learners find
  for (const key of [...directed.keys()].sort((a, b) => rank(a) - rank(b))) {
    if (told.has(pair(key.split("\u0000")))) { continue; }
    told.add(pair(key.split("\u0000")));
    const [cause, effect] = key.split("\u0000"), line = made("tr");
    line.append(made("th", `${cause} → ${effect}`, "name"));
    for (const one of good) {
      const edge = one.edges.find((each) => id(each) === key);
      const back = one.edges.find((each) => each[0] === effect && each[1] === cause);
      line.append(made("td", edge ? (edge[3] ? "→" : "—") : back ? "←" : "", edge ? "yes" : "soft"));
    }
    line.append(made("td", `${directed.get(key)} of ${all}`, "num"));
    body.append(line);
  }
  inner.append(head, body);
  box.append(inner);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Edges by learner");
  return box;
}

export function render({ state, fit }) {
  if (!fit) {
    built = false;
    page.replaceChildren(made("p", "Fit once first; then other learners can be put beside that graph.", "status neutral"));
    return;
  }
  if (!built) { seen = ""; build().catch(() => { built = false; }).then(() => render({ state: store.state, fit: store.fit })); return; }
  const box = page.querySelector("[data-at=results]"), key = JSON.stringify([state.compared, state.errors.compare, Boolean(state.busy.compare), store.fitId]);
  if (!box || key === seen) { return; }
  seen = key;
  const parts = state.errors.compare ? [made("p", state.errors.compare, "status bad")] : [];
  if (state.busy.compare) { parts.push(made("p", `${state.compared?.length ?? 0} of ${running.length || "…"} learners done …`, "status neutral")); }
  if (state.compared?.length) { parts.push(...results(state.compared)); }
  box.replaceChildren(...parts);
}
