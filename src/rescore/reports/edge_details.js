// What is known of an edge or a variable, in words and a picture, for any page that shows a graph.
"use strict";

globalThis.edgeDetails = (() => {
  const number = (value) => Number(value.toPrecision(3)).toString().replace("-", "−");
  const percent = (share) => `${Math.round(100 * share)} %`;
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

  // ``data`` is what the graph is drawn from; ``choose`` is called with the name of a neighbour.
  function edgeDetails(data, choose) {
    const names = Object.fromEntries(data.nodes.map((node) => [node.id, node.name]));

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

    return { ofEdge, ofNode, names, badge };
  }
  return Object.assign(edgeDetails, { made, drawn, number, percent });
})();
