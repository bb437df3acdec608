// The table of edges that can be sorted and searched, and what is known of the one that is chosen.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("graph-data").textContent);
  const at = (id) => document.getElementById(id);
  const number = (value) => Number(value.toPrecision(3)).toString().replace("-", "−");
  const percent = (share) => `${Math.round(100 * share)} %`;
  const choose = (id) => document.dispatchEvent(new CustomEvent("choose", { detail: id }));
  const names = Object.fromEntries(data.nodes.map((node) => [node.id, node.name]));
  const edges = Object.fromEntries(data.edges.map((edge) => [edge.id, edge]));
  const lines = [...document.querySelectorAll("#edge-table tbody tr")];
  const SVG = "http://www.w3.org/2000/svg";  // a name, for which nobody asks the network
  const WIDTH = 300, HEIGHT = 220, EDGE = 26;

  function made(tag, text, name) {
    const element = document.createElement(tag);
    if (text !== undefined) { element.textContent = text; }
    if (name) { element.className = name; }
    return element;
  }

  function drawn(tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) { element.setAttribute(name, value); }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }

  // How much a row counts, as a class: half of what it does in the plain learner, or twice.
  const counts = (w) => (w < 0.75 ? "less" : w > 1.33 ? "more" : "alike");

  function scatter(edge) {
    const [i, j] = [edge.source, edge.target].map((id) => Number(id.slice(1)));
    const xs = data.rows.values[i], ys = data.rows.values[j];
    const weight = data.rows.cells ? data.rows.cells[j] : data.rows.weight;
    const range = (values) => [Math.min(...values), Math.max(...values)];
    const scale = ([low, high], from, to) => (v) =>
      high > low ? from + ((to - from) * (v - low)) / (high - low) : (from + to) / 2;
    const [rx, ry] = [range(xs), range(ys)];
    const x = scale(rx, EDGE, WIDTH - 8), y = scale(ry, HEIGHT - EDGE, 8);
    const title = `${names[edge.target]} against ${names[edge.source]}, ${xs.length} rows`;
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "scatter", role: "img",
                               "aria-label": title });
    svg.append(drawn("path", { d: `M${EDGE} 4V${HEIGHT - EDGE}H${WIDTH - 4}`, class: "axis" }));
    const order = xs.map((_, k) => k).sort((a, b) => weight[a] - weight[b]);
    for (const k of order) {
      svg.append(drawn("circle", { cx: x(xs[k]).toFixed(1), cy: y(ys[k]).toFixed(1), r: 2.4,
                                   class: counts(weight[k]) }));
    }
    const text = (words, px, py, anchor, turn) => svg.append(drawn("text", {
      x: px, y: py, "text-anchor": anchor, ...(turn ? { transform: turn } : {}) }, words));
    const short = (name) => (name.length > 22 ? `${name.slice(0, 21)}…` : name);
    text(short(names[edge.source]), WIDTH / 2, HEIGHT - 4, "middle");
    text(short(names[edge.target]), 12, HEIGHT / 2, "middle", `rotate(-90 12 ${HEIGHT / 2})`);
    text(number(rx[0]), EDGE, HEIGHT - 13, "start");
    text(number(rx[1]), WIDTH - 4, HEIGHT - 13, "end");
    const there = new Set(weight.map(counts));
    const words = { less: "counts less", alike: "counts as in the plain fit", more: "counts more" };
    const legend = made("ul", undefined, "legend dots");
    for (const [name, label] of Object.entries(words)) {
      if (there.has(name)) {
        const item = made("li", undefined, name);
        item.append(made("i"), label);
        legend.append(item);
      }
    }
    const note = xs.length < data.rows.of ? ` ${xs.length} of ${data.rows.of} rows.` : "";
    return [svg, legend, made("p", `The values as they are in the table.${note}`, "soft")];
  }

  function facts(pairs) {
    const list = made("dl", undefined, "about");
    for (const [name, value] of pairs.filter(([, v]) => v !== null && v !== undefined && v !== "")) {
      list.append(made("dt", name), made("dd", value));
    }
    return list;
  }

  function badge(edge) {
    const name = { firm: "firm", "direction open": "open", fragile: "fragile",
                   "made by the units": "made" }[edge.verdict];
    return made("span", edge.verdict, `verdict ${name}`);
  }

  const arrow = (edge) =>
    `${names[edge.source]} ${edge.directed ? "→" : "—"} ${names[edge.target]}`;

  function without(edge) {
    if (edge.explains === null) { return ""; }
    const share = edge.explains < 0.01 ? "less than 1 %" : percent(edge.explains);
    return `${share} of the variance of ${names[edge.target]} would be unexplained ` +
      "that no other cause takes over";
  }

  function ofEdge(edge) {
    const word = data.linear ? "coefficient" : "strength";
    const bounds = edge.low === null ? ""
      : ` [${number(edge.low)}, ${number(edge.high)}], 90 %`;
    const survives = { true: "survives every change tried", false: "does not survive" };
    const parts = [
      made("h3", arrow(edge), "name"), badge(edge), made("p", edge.why, "soft"),
      facts([
        [word, number(edge.weight) + bounds],
        ["without it", without(edge)],
        ["direction", !edge.directed ? "open: the data fit either way" : edge.by === "known" ? "known" : `told by ${edge.by}`],
        ["resamples", edge.stability === null ? "" : `in ${percent(edge.stability)}`],
        ["other units", survives[edge.survives] ?? ""],
        ["known", edge.known], ["row weights", edge.change],
      ]),
    ];
    return data.rows ? [...parts, ...scatter(edge)] : parts;
  }

  function ofNode(id) {
    const groups = [
      ["causes", data.edges.filter((e) => e.target === id && e.directed)],
      ["effects", data.edges.filter((e) => e.source === id && e.directed)],
      ["open direction", data.edges.filter((e) => !e.directed && [e.source, e.target].includes(id))],
    ];
    const parts = [made("h3", names[id], "name")];
    for (const [title, found] of groups.filter(([, found]) => found.length)) {
      parts.push(made("h4", `${title}: ${found.length}`));
      const list = made("ul", undefined, "neighbours");
      for (const edge of found.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))) {
        const item = made("li"), link = made("button", names[edge.source === id ? edge.target
                                                                               : edge.source]);
        link.type = "button";
        link.addEventListener("click", () => choose(edge.id));
        item.append(link, made("span", number(edge.weight), "num"), badge(edge));
        list.append(item);
      }
      parts.push(list);
    }
    return parts.length > 1 ? parts : [...parts, made("p", "No edge.")];
  }

  document.addEventListener("choose", ({ detail }) => {
    const panel = at("details");
    const parts = edges[detail] ? ofEdge(edges[detail]) : names[detail] ? ofNode(detail) : [];
    panel.hidden = parts.length === 0;
    panel.closest(".stage").classList.toggle("asked", parts.length > 0);
    const close = made("button", "×", "close");
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => choose(null));
    panel.replaceChildren(close, ...parts);
    for (const line of lines) {
      const here = line.dataset.edge === detail;
      line.classList.toggle("chosen", here);
      if (here) {  // within its own box: the page stays where the reader is
        const scroll = line.closest(".scroll");
        scroll.scrollTop = line.offsetTop - scroll.clientHeight / 2;
      }
    }
  });

  const wanted = () => document.querySelector(".tile[aria-pressed=true]")?.dataset.verdict;

  function filter() {
    const words = at("edge-search").value.trim().toLowerCase(), verdict = wanted();
    let shown = 0;
    for (const line of lines) {
      const there = line.textContent.toLowerCase().includes(words) &&
        (!verdict || line.dataset.verdict === verdict);
      line.hidden = !there;
      shown += there;
    }
    at("edges-listed").textContent = `${shown} of ${lines.length} edges listed`;
  }

  function sort(header) {
    const column = [...header.parentElement.children].indexOf(header);
    const up = header.getAttribute("aria-sort") !== "ascending";
    for (const other of header.parentElement.children) { other.removeAttribute("aria-sort"); }
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (line) => {
      const cell = line.children[column];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
    };
    const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
    lines.sort((a, b) => (up ? 1 : -1) * compare(key(a), key(b)));
    lines[0].parentElement.append(...lines);
  }

  for (const tool of document.querySelectorAll(".needs-script")) { tool.hidden = false; }
  for (const tile of document.querySelectorAll(".tile")) {
    tile.disabled = false;
    tile.addEventListener("click", () => {
      const pressed = tile.getAttribute("aria-pressed") === "true";
      for (const other of document.querySelectorAll(".tile")) {
        other.setAttribute("aria-pressed", other === tile && !pressed);
      }
      if (lines.length) { filter(); }
      document.dispatchEvent(new Event("verdict"));
    });
  }
  if (!lines.length) { return; }
  at("edge-search").addEventListener("input", filter);
  for (const line of lines) {
    line.addEventListener("click", () => choose(line.dataset.edge));
    line.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { choose(line.dataset.edge); }
    });
    line.tabIndex = 0;
  }
  for (const header of document.querySelectorAll("#edge-table thead th[data-sort]")) {
    const button = made("button", header.textContent, "sort");
    button.type = "button";
    button.addEventListener("click", () => sort(header));
    header.replaceChildren(button);
  }
  filter();
})();
