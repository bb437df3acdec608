// The graph: fitted, asked, told what is known; variables stay where they are.
import { anew, get, post, step, store } from "./api.js";
import { renderKnowledge } from "./knowledge.js";
const { made, number, percent } = edgeDetails;

const at = (id) => document.getElementById(id);
const WORDS = { firm: "firm", "direction open": "open", fragile: "fragile", "made by the units": "made" };
let view = null, shown = "", drawn = "", data = null, chosen = null, learners = null, wanted = null;
let wide = 0;  // the drawing, when it was last looked at
let routes = {}, last = null;  // how edges bend, and what changed since the graph before
let of = "", before = null;  // the fit that is drawn, its first answer or the whole, and the edges before it

// What resamples say joins in as they come.
function withStability(graph, stability) {
  if (!stability) { return graph; }
  const names = Object.fromEntries(graph.nodes.map((node) => [node.name, node.id]));
  const said = Object.fromEntries(stability.edges.map((line) =>
    [`${names[line.cause]}>${names[line.effect]}`, line]));
  const edges = graph.edges.map((edge) => {
    const line = said[`${edge.source}>${edge.target}`];
    return line ? { ...edge, stability: line.stability, direction: line.direction,
                    verdict: line.verdict, why: line.why } : edge;
  });
  return { ...graph, edges };
}

const pair = (edge) => [edge.source, edge.target].sort().join("~");

// Which edges are new, gone or turned round since the last graph.
function differences(before, now) {
  const was = new Map(before.map((edge) => [pair(edge), edge]));
  const is = new Map(now.map((edge) => [pair(edge), edge]));
  const added = now.filter((edge) => !was.has(pair(edge)));
  const gone = before.filter((edge) => !is.has(pair(edge)));
  const turned = now.filter((edge) => was.has(pair(edge)) && was.get(pair(edge)).source !== edge.source);
  return { added, gone, turned };
}

function sentence({ added, gone, turned }, names) {
  const arrow = (edge) => `${names[edge.source]} → ${names[edge.target]}`;
  const some = (edges, word) => (edges.length
    ? [`${edges.length} ${word}: ${edges.slice(0, 4).map(arrow).join(", ")}${edges.length > 4 ? " …" : ""}`]
    : []);
  const parts = [...some(added, "new"), ...some(gone, "gone"), ...some(turned, "turned round")];
  return parts.length ? `Since the graph before: ${parts.join("; ")}.`.replace(" ….", " …") : "The same edges as before.";
}

function strength(edge) {
  if (at("width-by").value === "stability" && edge.data("stability") !== null) {
    return edge.data("stability") ?? 0;
  }
  return Math.min(1, Math.abs(edge.data("weight")) / strength.strongest);
}

function choose(id) {
  chosen = id;
  details();
  if (view) { view.mark(id); view.rest(); }
  for (const line of at("edges").querySelectorAll("tbody tr")) {
    line.classList.toggle("chosen", line.dataset.edge === id);
  }
}

function start(graph, places) {
  const placed = { ...graph, nodes: graph.nodes.map((node) => (places[node.name]
    ? { ...node, x: places[node.name][0], y: places[node.name][1] } : node)) };
  routes = Object.fromEntries(graph.edges.map((edge) => [edge.id, edge]));
  if (view) { view.cy.destroy(); }
  view = graphView({ box: at("drawing"), tip: at("tooltip"), data: placed, choose,
                     strength, small: innerWidth < 640 });
  if (Object.keys(places).length) { straighten(); }
  view.cy.on("dragfree", "node", remember);
  view.cy.on("drag", "node", (event) => event.target.connectedEdges().addClass("near"));
}

function straighten() {
  const moved = view.cy.nodes().filter((node) => store.state.places[node.data("name")]);
  moved.connectedEdges().addClass("near");
}

function remember() {
  const places = Object.fromEntries(view.cy.nodes().map((node) =>
    [node.data("name"), [node.position("x"), node.position("y")]]));
  post("places", { places }, true).catch(() => {});
}

// The new edges between the boxes that are there; those that are known keep their bends.
function update(graph, changes) {
  const cy = view.cy;
  const same = graph.nodes.length === cy.nodes().length &&
    graph.nodes.every((node) => cy.getElementById(node.id).data("name") === node.name);
  if (!same) { start(graph, {}); return; }
  cy.batch(() => {
    const stay = new Set(graph.edges.map((edge) => edge.id));
    cy.remove(cy.edges().filter((edge) => !stay.has(edge.id())));
    for (const edge of graph.edges) {
      const bend = routes[edge.id], there = cy.getElementById(edge.id);
      const way = bend ? { leaves: bend.leaves, enters: bend.enters, along: bend.along,
                           aside: bend.aside } : {};
      const data = { ...edge, ...way, routed: 1 };
      if (there.nonempty()) { there.data(data); } else { cy.add({ data, classes: bend ? "" : "near" }); }
    }
    cy.add(changes.gone.map((edge) => ({
      data: { ...edge, id: `gone ${edge.id}`, verdict: null }, classes: "gone" })));
    const joined = new Set(graph.edges.flatMap((edge) => [edge.source, edge.target]));
    cy.nodes().forEach((node) => { node.toggleClass("isolated", !joined.has(node.id())); });
  });
}

function paint(changes) {
  const { classOf, legend } = graphView.colourings[at("colouring").value];
  const mark = (edges, name) => Object.fromEntries(edges.map((edge) => [edge.id, name]));
  const marks = { ...mark(changes?.added ?? [], "added"), ...mark(changes?.turned ?? [], "turned") };
  view.cy.batch(() => view.cy.edges("[routed]").forEach((edge) => {
    const straight = edge.hasClass("near") ? "near" : "";
    const off = wanted && edge.data("verdict") !== wanted ? "out" : "";
    const names = [classOf(edge.data()), straight, marks[edge.id()], off].filter(Boolean);
    const now = edge.classes().filter((name) => name !== "dim" && name !== "chosen");
    if (now.sort().join() !== [...names].sort().join()) { edge.classes(names); }
  }));
  view.mark(chosen);
  view.rest();
  const entries = Object.entries(legend);
  const words = { added: "new since the graph before", turned: "turned round since", gone: "gone since" };
  entries.push(...Object.entries(words).filter(([name]) => changes?.[name].length));
  anew(at("legend"), ...entries.map(([name, text]) => {
    const item = made("li", undefined, name);
    item.append(made("i"), text);
    return item;
  }));
}

function tiles() {
  anew(at("tiles"), ...Object.entries(WORDS).map(([word, name]) => {
    const tile = made("button", undefined, `tile ${name}`);
    tile.type = "button";
    tile.dataset.key = word;
    tile.append(made("strong", String(data.edges.filter((edge) => edge.verdict === word).length)), ` ${word}`);
    tile.setAttribute("aria-pressed", wanted === word);
    tile.addEventListener("click", () => {
      wanted = wanted === word ? null : word;
      tiles(); paint(last); list();
    });
    return tile;
  }));
}

function list() {
  const head = made("thead"), row = made("tr"), body = at("edges").tBodies[0] ?? made("tbody");
  for (const [text, name] of [["cause"], [""], ["effect"], ["coefficient", "num"], ["told by"], ["resamples", "num"], ["verdict"]]) {
    row.append(made("th", text, name));
  }
  head.append(row);
  const { names, badge } = edgeDetails(data, choose);
  const edges = data.edges.filter((edge) => !wanted || edge.verdict === wanted)
    .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
  const lines = edges.map((edge) => {
    const line = made("tr"), last = made("td");
    line.dataset.edge = line.dataset.key = edge.id;
    line.tabIndex = 0;
    last.append(badge(edge));
    line.append(made("td", names[edge.source], "name"), made("td", edge.directed ? "→" : "—"),
      made("td", names[edge.target], "name"), made("td", number(edge.weight), "num"),
      made("td", edge.by || "nothing"), made("td", edge.stability === null ? "" : percent(edge.stability), "num"), last);
    line.classList.toggle("chosen", edge.id === chosen);
    line.addEventListener("click", () => choose(edge.id));
    line.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { choose(edge.id); at("details").focus(); }
    });
    return line;
  });
  anew(body, ...lines);
  anew(at("edges"), head, body);
}

function action(text, what, told) {
  const button = made("button", text);
  button.type = "button";
  button.title = told;
  button.addEventListener("click", () => step(what));
  return button;
}

function details() {
  const panel = at("details");
  const edge = data?.edges.find((one) => one.id === chosen);
  const { ofEdge, ofNode, names } = edgeDetails(data, choose);
  panel.classList.toggle("quiet", !edge && !names[chosen]);
  if (!edge) {
    anew(panel, ...(names[chosen] ? ofNode(chosen)
      : [made("p", "Click an edge to forbid, require or turn it, a variable for its causes and effects.", "soft")]));
    return;
  }
  const ends = [names[edge.source], names[edge.target]];
  const tools = made("div", undefined, "buttons acts");
  tools.setAttribute("role", "group");
  tools.setAttribute("aria-label", "What you know of this edge");
  tools.append(action("Forbid", { do: "forbid", edges: [ends] }, "It must not be there"),
    action("Require", { do: "require", edges: [ends] }, "It must be there"),
    action("Turn round", { do: "turn", edges: [ends] }, "It must point the other way"));
  const known = (list) => list.some(([a, b]) => ends.includes(a) && ends.includes(b));
  if (known(store.state.recipe.required) || known(store.state.recipe.forbidden)) {
    tools.append(action("Forget", { do: "free", edges: [ends, [...ends].reverse()] },
                        "Nothing is known of it"));
  }
  const [title, ...rest] = ofEdge(edge);
  anew(panel, title, tools, ...rest);
}

function ofState(state, fit) {
  const line = at("fit-state"), wrong = state.errors.fit;
  const text = wrong ?? (!fit ? (state.busy.fit ? "The first graph is being learned …" : "")
    : state.stale ? "This graph is the one before: the new fit is on its way …"
    : fit.quick ? `A first answer, with ${fit.kept ? "the row weights kept" : "all rows alike"}; ` +
      (state.busy.fit ? "the whole search is on its way …" : "the whole search was stopped.")
    : fit.converged ? "" : fit.status);
  line.textContent = text;
  line.hidden = !text;
  line.className = `status ${wrong || (fit && !fit.converged) ? "bad" : "neutral"}`;
  at("trust").textContent = fit ? (state.stability?.trust ?? fit.trust) : "";
  const doubt = state.stability, parts = [];
  if (!fit) { anew(at("doubt")); return; }
  parts.push(doubt
    ? `${doubt.done} resamples fitted${doubt.done < doubt.of ? ` of ${doubt.of}` : ""}: wider lines come back more often where the width is stability. `
    : fit.quick ? "" : "Not resampled yet. ");
  if (!fit.quick && !state.busy.bootstrap) {
    const more = made("button", doubt ? "Resample 200 times" : "Resample 50 times");
    more.type = "button";
    more.addEventListener("click", () => post("bootstrap", { resamples: doubt ? 200 : 50 }).catch(() => {}));
    parts.push(more);
  }
  anew(at("doubt"), ...parts);
}

async function ofLearner(recipe) {
  learners ??= await get("learners");
  const select = at("learner");
  if (!select.options.length) {
    for (const one of learners) {
      const option = made("option", one.name);
      option.value = one.name;
      select.append(option);
    }
  }
  if (document.activeElement !== select) { select.value = recipe.learner; }
  if (document.activeElement !== at("weighting")) { at("weighting").value = recipe.around.weighting ?? ""; }
  const one = learners.find((each) => each.name === recipe.learner);
  at("learner-told").textContent = one.told + (one.groups && !recipe.groups
    ? " It needs groups of rows: choose a column of labels in the table." : "");
  const key = JSON.stringify([recipe.learner, recipe.options]);
  if (at("option-list").dataset.key === key) { return; }
  at("option-list").dataset.key = key;
  at("option-list").replaceChildren(...one.options.map((option) => field(option, recipe)));
}

function field(option, recipe) {
  const outer = made("label"), input = made("input"), now = recipe.options[option.name] ?? option.default;
  const flag = typeof option.default === "boolean", words = typeof option.default === "string";
  input.type = flag ? "checkbox" : words ? "text" : "number";
  if (flag) { input.checked = now; } else { input.value = now; input.step = "any"; }
  input.addEventListener("change", () => {
    const value = flag ? input.checked : words ? input.value : Number(input.value);
    const options = { ...recipe.options, [option.name]: value };
    if (value === option.default) { delete options[option.name]; }
    step({ do: "learner", name: recipe.learner, options, around: recipe.around });
  });
  outer.append(made("span", option.name.replaceAll("_", " ")), input, made("small", option.told, "soft"));
  return outer;
}

export function render({ state, fit }) {
  ofLearner(state.recipe).catch(() => {});
  ofState(state, fit);
  at("fit").textContent = state.asked ? "Fit again" : "Fit";
  at("fit").disabled = !state.source || Boolean(state.busy.fit);
  at("graph-there").hidden = !fit;
  if (!fit) { return; }
  const key = `${store.fitId} ${state.stability?.done ?? ""} ${JSON.stringify(state.places) === "{}"}`;
  if (key !== shown) {
    shown = key;
    draw(state, fit);
  }
  const now = at("drawing").clientWidth;  // none while the page is not the one that is shown
  if (now && wide && now !== wide) { view.fit(); }
  wide = now || wide;
  renderKnowledge(state, fit, data);
}

function draw(state, fit) {
  const graph = withStability(fit.graph, state.stability);
  if (!graph.rows && data?.rows) { graph.rows = data.rows; }
  const fitted = store.fitId.replace(/~$/, "");
  if (fitted !== of) { [of, before] = [fitted, data?.edges ?? null]; }
  data = graph;
  strength.strongest = Math.max(...graph.edges.map((edge) => Math.abs(edge.weight)), 1e-300);
  if (!view) {
    start(graph, state.places);
    last = null;
    view.fit();
  } else if (drawn !== store.fitId) {
    last = differences(before ?? graph.edges, graph.edges);
    update(graph, last);
    const names = Object.fromEntries(graph.nodes.map((node) => [node.id, node.name]));
    at("changes").textContent = before ? sentence(last, names) : "";
  } else {
    view.cy.batch(() => { for (const edge of graph.edges) { view.cy.getElementById(edge.id).data(edge); } });
  }
  if (!graph.edges.some((edge) => edge.id === chosen) && !graph.nodes.some((node) => node.id === chosen)) {
    chosen = null;
  }
  drawn = store.fitId;
  document.body.dataset.graph = store.fitId;
  anew(at("variables"), ...graph.nodes.map((node) => {
    const option = made("option");
    option.value = node.name;
    return option;
  }));
  paint(last);
  tiles();
  list();
  details();
}

at("fit").addEventListener("click", () => post("fit").catch(() => {}));
at("learner").addEventListener("change", () => step({ do: "learner", name: at("learner").value,
  around: store.state.recipe.around }));
at("weighting").addEventListener("change", () => {
  const { learner, options } = store.state.recipe, weighting = at("weighting").value;
  step({ do: "learner", name: learner, options, around: weighting ? { weighting } : {} });
});
at("colouring").addEventListener("change", () => paint(last));
at("width-by").addEventListener("change", () => view.restyle());
at("zoom-in").addEventListener("click", () => view.zoomBy(1.3));
at("zoom-out").addEventListener("click", () => view.zoomBy(1 / 1.3));
at("show-all").addEventListener("click", () => { choose(null); view.fit(); });
at("tidy").addEventListener("click", async () => {
  await post("places", { places: {} }, true);
  store.state.places = {};
  start(data, {});
  view.fit();
  paint(last);
});
at("search").addEventListener("input", () => {
  const words = at("search").value.trim().toLowerCase();
  const found = data?.nodes.find((node) => node.name.toLowerCase() === words);
  choose(found ? found.id : null);
});
