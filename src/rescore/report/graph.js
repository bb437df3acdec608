// The graph that can be moved, filtered and asked.  Without this script its picture stays.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("graph-data").textContent);
  const at = (id) => document.getElementById(id);
  const box = at("drawing"), tip = at("tooltip");
  const number = (value) => value.toPrecision(3).replace("-", "−");
  const percent = (share) => `${Math.round(100 * share)} %`;
  const strengths = data.edges.map((edge) => Math.abs(edge.weight)).sort((a, b) => a - b);
  const strongest = strengths.at(-1) ?? 1;

  // Each way to colour the edges: a class for every edge, and what the classes mean.
  const colourings = {
    sign: {
      classOf: (edge) => (edge.weight < 0 ? "negative" : "positive"),
      legend: { positive: "positive coefficient", negative: "negative coefficient" },
    },
    constraint: {
      classOf: (edge) => (edge.required ? "special" : "common"),
      legend: { special: "required by you", common: "found in the data" },
    },
    change: {
      classOf: (edge) => ({ "in both fits": "common", "only with row weights": "new",
                            "turned round": "special" })[edge.change],
      legend: { common: "in both fits", new: "only with row weights", special: "turned round",
                gone: "only without row weights" },
    },
  };

  function elements() {
    const nodes = data.nodes.map((node) => ({
      data: node, position: { x: node.x, y: node.y }, classes: node.isolated ? "isolated" : "",
    }));
    const edges = data.edges.map((edge) => ({ data: { ...edge, routed: 1 } }));
    const gone = data.gone.map((edge) => ({ data: edge, classes: "gone" }));
    return [...nodes, ...edges, ...gone.filter(({ data: { change } }) => change !== "turned round")];
  }

  function look() {
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(`--${name}`).trim();
    const strength = (edge) => Math.min(1, Math.abs(edge.data("weight")) / strongest);
    const inked = ["positive", "negative", "special", "new", "common"].map((name) => ({
      selector: `edge.${name}`,
      style: { "line-color": colour(name), "target-arrow-color": colour(name),
               color: colour(name) },
    }));
    return [
      { selector: "node", style: {
        shape: "round-rectangle", width: "data(width)", height: data.height, label: "data(label)",
        "text-valign": "center", "text-halign": "center", "font-size": 12,
        "font-family": "system-ui, sans-serif", color: colour("ink"), "border-width": 1,
        "background-color": colour("box"), "border-color": colour("box-edge") } },
      { selector: "node.isolated", style: {
        "background-color": colour("card"), color: colour("soft"), "border-style": "dashed" } },
      { selector: "edge", style: {
        "curve-style": "straight", width: (edge) => 1 + 3 * strength(edge), "arrow-scale": 0.9,
        "line-opacity": (edge) => 0.6 + 0.4 * strength(edge),
        "target-arrow-shape": "triangle" } },
      { selector: "edge[!directed]", style: { "target-arrow-shape": "none" } },
      { selector: "edge[routed]", style: {
        "curve-style": "unbundled-bezier", "edge-distances": "endpoints",
        "source-endpoint": (edge) => edge.data("leaves").map((x) => `${x}px`).join(" "),
        "target-endpoint": (edge) => edge.data("enters").map((x) => `${x}px`).join(" "),
        "control-point-weights": (edge) => edge.data("along").join(" "),
        "control-point-distances": (edge) => edge.data("aside").join(" ") } },
      ...inked,
      { selector: "edge.gone", style: {
        "line-style": "dashed", "line-color": colour("negative"), color: colour("negative"),
        "target-arrow-color": colour("negative") } },
      { selector: "edge.numbered", style: {
        label: (edge) => number(edge.data("weight")), "font-size": 10.5,
        "font-family": "system-ui, sans-serif", "text-background-color": colour("card"),
        "text-background-opacity": 1, "text-background-padding": 2 } },
      { selector: ".dim", style: { opacity: 0.22 } },
      { selector: ".out", style: { display: "none" } },
    ];
  }

  box.closest(".interactive").hidden = false;  // before drawing: what is hidden has no size
  at("static-graph").hidden = true;
  const cy = cytoscape({ container: box, elements: elements(), style: look(), minZoom: 0.1,
                         maxZoom: 6, layout: { name: "preset" }, boxSelectionEnabled: false,
                         autounselectify: true, userZoomingEnabled: false });
  const shape = cy.elements().boundingBox();

  function fit() {
    const wanted = (box.clientWidth * shape.h) / shape.w + 40;
    box.style.height = `${Math.max(260, Math.min(0.8 * innerHeight, shape.h * 1.3 + 40, wanted))}px`;
    cy.resize();
    cy.fit(undefined, 14);
    if (cy.zoom() > 1.3) { cy.zoom(1.3); cy.center(); }
  }

  function zoomBy(factor) {
    cy.zoom({ level: cy.zoom() * factor,
              renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  }

  function filter() {
    const step = Number(at("strength").value), least = strengths[step] ?? 0;
    const share = at("stability") ? Number(at("stability").value) / 100 : 0;
    const colouring = at("colouring").value;
    const hidden = (edge) =>
      Math.abs(edge.data("weight")) < least || (edge.data("stability") ?? 1) < share ||
      (edge.hasClass("gone") && colouring !== "change");
    cy.batch(() => cy.edges().forEach((edge) => { edge.toggleClass("out", hidden(edge)); }));
    const shown = cy.edges("[routed]").not(".out").length;
    at("strength").setAttribute("aria-valuetext", `at least ${number(least)}`);
    at("strength-shown").textContent = step ? `at least ${number(least)}` : "all";
    at("shown").textContent = `${shown} of ${data.edges.length} edges shown`;
    if (at("stability")) { at("stability-shown").textContent = `at least ${percent(share)}`; }
  }

  function paint() {
    const { classOf, legend } = colourings[at("colouring").value];
    cy.batch(() => cy.edges("[routed]").forEach((edge) => {
      edge.classes(`${classOf(edge.data())} ${data.labelled ? "numbered" : ""}`);
    }));
    const there = new Set(cy.edges().map((edge) => edge.classes()[0]));
    at("legend").replaceChildren(...Object.entries(legend).filter(([name]) => there.has(name))
      .map(([name, words]) => {
        const item = document.createElement("li");
        item.className = name;
        item.append(document.createElement("i"), words);
        return item;
      }));
    filter();
  }

  function described(element) {
    const of = element.data();
    if (element.isNode()) {
      const count = (edges) => edges.filter("[routed]").not(".out").length;
      const open = count(element.connectedEdges("[!directed]"));
      return [of.name, `causes shown: ${count(element.incomers("edge[?directed]"))}`,
              `effects shown: ${count(element.outgoers("edge[?directed]"))}`,
              ...(open ? [`shown with an open direction: ${open}`] : [])];
    }
    const [from, to] = [element.source().data("name"), element.target().data("name")];
    const lines = [of.directed ? `${from} → ${to}` : `${from} — ${to}: direction open`,
                   `coefficient ${number(of.weight)}`];
    if (of.stability !== null) { lines.push(`in ${percent(of.stability)} of the resamples`); }
    if (of.required) { lines.push("required by you"); }
    if (of.change !== null) { lines.push(of.change); }
    return lines;
  }

  function ask(element, { x, y }) {
    const near = element.isNode() ? element.closedNeighborhood()
                                  : element.union(element.connectedNodes());
    cy.batch(() => cy.elements().removeClass("dim").not(near).addClass("dim"));
    const [title, ...rest] = described(element);
    const strong = document.createElement("strong");
    strong.textContent = title;
    tip.replaceChildren(strong, ...rest.map((line) => {
      const row = document.createElement("div");
      row.textContent = line;
      return row;
    }));
    tip.hidden = false;
    tip.style.left = `${Math.max(4, Math.min(x + 14, box.clientWidth - tip.offsetWidth - 4))}px`;
    const below = y + 16 + tip.offsetHeight < box.clientHeight;
    tip.style.top = `${below ? y + 16 : Math.max(4, y - tip.offsetHeight - 12)}px`;
  }

  function rest() {
    tip.hidden = true;
    cy.elements().removeClass("dim");
  }

  cy.on("mouseover tap", "node, edge", (event) => ask(event.target, event.renderedPosition));
  cy.on("mouseout drag", "node, edge", rest);
  cy.on("tap pan zoom", (event) => { if (event.target === cy) { rest(); } });
  // The wheel scrolls the page until the drawing is clicked: nobody gets stuck on the way down.
  box.addEventListener("pointerdown", () => cy.userZoomingEnabled(true));
  box.addEventListener("pointerleave", () => { cy.userZoomingEnabled(false); rest(); });
  at("zoom-in").addEventListener("click", () => zoomBy(1.3));
  at("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  at("reset").addEventListener("click", () => {
    cy.nodes().positions((node) => ({ x: node.data("x"), y: node.data("y") }));
    fit();
  });
  at("strength").addEventListener("input", filter);
  at("stability")?.addEventListener("input", filter);
  at("colouring").addEventListener("change", paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(look()));
  let width = box.clientWidth;
  addEventListener("resize", () => {
    if (box.clientWidth !== width) { width = box.clientWidth; fit(); }
  });
  fit();
  paint();
})();
