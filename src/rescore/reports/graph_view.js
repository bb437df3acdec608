// A graph that can be moved and asked, in any page: the report's and the workbench's.
"use strict";

globalThis.graphView = (() => {
  const number = (value) => value.toPrecision(3).replace("-", "−");
  const words = { firm: "firm", open: "direction open", fragile: "fragile",
                  made: "made by the units" };

  // Each way to colour the edges: a class for every edge, and what the classes mean.
  const colourings = {
    verdict: {
      classOf: (edge) => Object.keys(words).find((name) => words[name] === edge.verdict),
      legend: words,
    },
    sign: {
      classOf: (edge) => (edge.weight < 0 ? "negative" : "positive"),
      legend: { positive: "positive coefficient", negative: "negative coefficient" },
    },
    constraint: {
      classOf: (edge) => (edge.known === "required" ? "special" : "common"),
      legend: { special: "required by you", common: "found in the data" },
    },
    change: {
      classOf: (edge) => ({ "in both fits": "common", "only with row weights": "new",
                            "turned round": "special" })[edge.change],
      legend: { common: "in both fits", new: "only with row weights", special: "turned round",
                gone: "only without row weights" },
    },
  };

  function elements(data) {
    const nodes = data.nodes.map((node) => ({
      data: node, position: { x: node.x, y: node.y }, classes: node.isolated ? "isolated" : "",
    }));
    const edges = data.edges.map((edge) => ({ data: { ...edge, routed: 1 } }));
    const gone = (data.gone ?? []).map((edge) => ({ data: edge, classes: "gone" }));
    return [...nodes, ...edges, ...gone.filter(({ data: { change } }) => change !== "turned round")];
  }

  // ``strength`` says how wide an edge is drawn, from 0 to 1.
  function look(height, strength) {
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(`--${name}`).trim();
    const classes = ["positive", "negative", "special", "new", "common", ...Object.keys(words)];
    const inked = classes.map((name) => ({
      selector: `edge.${name}`,
      style: { "line-color": colour(name), "target-arrow-color": colour(name),
               color: colour(name) },
    }));
    return [
      { selector: "node", style: {
        shape: "round-rectangle", width: "data(width)", height, label: "data(label)",
        "text-valign": "center", "text-halign": "center", "font-size": 13,
        "font-family": "system-ui, sans-serif", color: colour("ink"), "border-width": 1,
        "background-color": colour("box"), "border-color": colour("box-edge") } },
      { selector: "node.isolated", style: {
        "background-color": colour("card"), color: colour("soft"), "border-style": "dashed" } },
      { selector: "edge", style: {
        "curve-style": "straight", width: (edge) => 1.2 + 3 * strength(edge), "arrow-scale": 0.9,
        "line-opacity": (edge) => 0.65 + 0.35 * strength(edge),
        "target-arrow-shape": "triangle" } },
      { selector: "edge[!directed]", style: { "target-arrow-shape": "none" } },
      { selector: "edge[routed]", style: {
        "curve-style": "unbundled-bezier", "edge-distances": "endpoints",
        "source-endpoint": (edge) => edge.data("leaves").map((x) => `${x}px`).join(" "),
        "target-endpoint": (edge) => edge.data("enters").map((x) => `${x}px`).join(" "),
        "control-point-weights": (edge) => edge.data("along").join(" "),
        "control-point-distances": (edge) => edge.data("aside").join(" ") } },
      { selector: "edge.near", style: {
        "curve-style": "straight", "source-endpoint": "outside-to-node",
        "target-endpoint": "outside-to-node" } },
      ...inked,
      { selector: "edge.fragile", style: { "line-style": "dashed" } },
      { selector: "edge.made", style: { "line-style": "dotted" } },
      { selector: "edge.added", style: {
        "underlay-color": colour("new"), "underlay-opacity": 0.25, "underlay-padding": 4 } },
      { selector: "edge.turned", style: {
        "underlay-color": colour("special"), "underlay-opacity": 0.25, "underlay-padding": 4 } },
      { selector: "edge.gone", style: {
        "line-style": "dashed", "line-color": colour("common"), color: colour("common"),
        "target-arrow-color": colour("common") } },
      { selector: "edge.numbered", style: {
        label: (edge) => number(edge.data("weight")), "font-size": 10.5,
        "font-family": "system-ui, sans-serif", "text-background-color": colour("card"),
        "text-background-opacity": 1, "text-background-padding": 2 } },
      { selector: ".dim", style: { opacity: 0.18 } },
      { selector: ".out", style: { display: "none" } },
      { selector: "node.chosen", style: { "border-width": 3, "border-color": colour("accent") } },
      { selector: "edge.chosen", style: { "line-opacity": 1, width: 6 } },
    ];
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
    if (of.verdict) { lines.push(of.verdict); }
    if (of.known === "required") { lines.push("required by you"); }
    if (of.change) { lines.push(of.change); }
    return lines;
  }

  // ``box`` and ``tip`` are elements of the page; ``choose`` is called with the name of what is clicked.
  function graphView({ box, tip, data, strength, choose, small }) {
    const cy = cytoscape({ container: box, elements: elements(data), minZoom: 0.05, maxZoom: 6,
                           style: look(data.height, strength), layout: { name: "preset" },
                           boxSelectionEnabled: false, autounselectify: true,
                           userZoomingEnabled: false });
    let chosen = null;

    function fit() {
      const shape = cy.elements().not(".out").boundingBox();
      const wanted = (box.clientWidth * shape.h) / shape.w + 40;
      const height = Math.min(0.74 * innerHeight, shape.h * 1.3 + 40, wanted);
      box.style.height = `${Math.max(small ? 320 : 420, height)}px`;
      cy.resize();
      cy.fit(cy.elements().not(".out"), 14);
      if (cy.zoom() > 1.3) { cy.zoom(1.3); cy.center(cy.elements().not(".out")); }
    }

    function zoomBy(factor) {
      cy.zoom({ level: cy.zoom() * factor,
                renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
    }

    function light(element) {
      const near = element.isNode() ? element.closedNeighborhood()
                                    : element.union(element.connectedNodes());
      cy.batch(() => cy.elements().removeClass("dim").not(near).addClass("dim"));
    }

    function ask(element, { x, y }) {
      light(element);
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
      if (chosen?.inside()) { light(chosen); }
    }

    // The element of that name is the chosen one from now on; it is returned, or null.
    function mark(id) {
      cy.elements().removeClass("chosen");
      const found = id ? cy.getElementById(id) : cy.collection();
      chosen = found.nonempty() ? found : null;
      chosen?.addClass("chosen");
      return chosen;
    }

    cy.on("mouseover", "node, edge", (event) => ask(event.target, event.renderedPosition));
    cy.on("tap", "node, edge", (event) => {
      choose(event.target.id());
      if (event.target.inside()) { ask(event.target, event.renderedPosition); }
    });
    cy.on("mouseout drag", "node, edge", rest);
    cy.on("tap", (event) => { if (event.target === cy) { choose(null); } });
    cy.on("pan zoom", (event) => { if (event.target === cy) { tip.hidden = true; } });
    // The wheel scrolls the page until the drawing is clicked: nobody gets stuck on the way down.
    box.addEventListener("pointerdown", () => cy.userZoomingEnabled(true));
    box.addEventListener("pointerleave", () => { cy.userZoomingEnabled(false); rest(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      cy.style(look(data.height, strength)));
    let width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; fit(); } });

    return { cy, fit, zoomBy, light, rest, mark, chosen: () => chosen,
             restyle: () => cy.style(look(data.height, strength)) };
  }
  return Object.assign(graphView, { colourings, elements, number });
})();
