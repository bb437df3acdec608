// The graph that can be moved, searched, filtered and asked.  Without this script its picture stays.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("graph-data").textContent);
  const at = (id) => document.getElementById(id);
  const box = at("drawing"), tip = at("tooltip");
  const number = (value) => value.toPrecision(3).replace("-", "−");
  const percent = (share) => `${Math.round(100 * share)} %`;
  const choose = (id) => document.dispatchEvent(new CustomEvent("choose", { detail: id }));
  const strengths = data.edges.map((edge) => Math.abs(edge.weight)).sort((a, b) => a - b);
  const strongest = strengths.at(-1) ?? 1;
  const small = innerWidth < 640;
  const many = data.nodes.length > (small ? 15 : 60);  // then a neighbourhood is shown first
  const words = { firm: "firm", open: "direction open", fragile: "fragile",
                  made: "made by the units" };
  let chosen = null, around = null;

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
    const classes = ["positive", "negative", "special", "new", "common", ...Object.keys(words)];
    const inked = classes.map((name) => ({
      selector: `edge.${name}`,
      style: { "line-color": colour(name), "target-arrow-color": colour(name),
               color: colour(name) },
    }));
    return [
      { selector: "node", style: {
        shape: "round-rectangle", width: "data(width)", height: data.height, label: "data(label)",
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
      { selector: "edge.gone", style: {
        "line-style": "dashed", "line-color": colour("negative"), color: colour("negative"),
        "target-arrow-color": colour("negative") } },
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

  box.closest(".interactive").hidden = false;  // before drawing: what is hidden has no size
  at("static-graph").hidden = true;
  const cy = cytoscape({ container: box, elements: elements(), style: look(), minZoom: 0.05,
                         maxZoom: 6, layout: { name: "preset" }, boxSelectionEnabled: false,
                         autounselectify: true, userZoomingEnabled: false });

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

  function filter() {
    const step = Number(at("strength").value), least = strengths[step] ?? 0;
    const share = at("stability") ? Number(at("stability").value) / 100 : 0;
    const colouring = at("colouring").value;
    const wanted = document.querySelector(".tile[aria-pressed=true]")?.dataset.verdict;
    const near = around && around.closedNeighborhood();
    const hidden = (edge) =>
      Math.abs(edge.data("weight")) < least || (edge.data("stability") ?? 1) < share ||
      (wanted && edge.data("verdict") !== wanted) ||
      (edge.hasClass("gone") && colouring !== "change") || (near && !near.contains(edge));
    cy.batch(() => {
      cy.nodes().forEach((node) => { node.toggleClass("out", Boolean(near && !near.contains(node))); });
      cy.edges().forEach((edge) => { edge.toggleClass("out", Boolean(hidden(edge))); });
    });
    const shown = cy.edges("[routed]").not(".out").length;
    at("strength").setAttribute("aria-valuetext", `at least ${number(least)}`);
    at("strength-shown").textContent = step ? `at least ${number(least)}` : "all";
    at("shown").textContent = `${shown} of ${data.edges.length} edges shown` +
      (around ? `, those of ${around.data("name")}` : "");
    if (at("stability")) { at("stability-shown").textContent = `at least ${percent(share)}`; }
  }

  function paint() {
    const { classOf, legend } = colourings[at("colouring").value];
    const numbered = data.labelled ? "numbered" : "";
    cy.batch(() => cy.edges("[routed]").forEach((edge) => {
      const kept = ["near", "chosen"].filter((name) => edge.hasClass(name)).join(" ");
      edge.classes(`${classOf(edge.data())} ${numbered} ${kept}`);
    }));
    const there = new Set(cy.edges().map((edge) => edge.classes()[0]));
    at("legend").replaceChildren(...Object.entries(legend).filter(([name]) => there.has(name))
      .map(([name, text]) => {
        const item = document.createElement("li");
        item.className = name;
        item.append(document.createElement("i"), text);
        return item;
      }));
    filter();
  }

  // Causes in rows above the variable, effects below, open neighbours beside it.
  function layNear(node) {
    const sides = { up: node.incomers("edge[?directed][routed]").sources(),
                    down: node.outgoers("edge[?directed][routed]").targets() };
    const beside = node.connectedEdges("[!directed][routed]").connectedNodes().difference(node);
    const across = small ? 3 : 6;
    node.position({ x: 0, y: 0 });
    for (const [side, nodes] of Object.entries(sides)) {
      nodes.forEach((other, k) => {
        const row = Math.floor(k / across), there = Math.min(across, nodes.length - row * across);
        const x = (k % across - (there - 1) / 2) * 150;
        other.position({ x, y: (side === "up" ? -1 : 1) * (130 + 70 * row) });
      });
    }
    beside.forEach((other, k) => {
      other.position({ x: (k % 2 ? -1 : 1) * (190 + 150 * Math.floor(k / 2)), y: 0 });
    });
  }

  function show(node) {  // the neighbourhood of a variable, or everything
    around = node;
    cy.batch(() => {
      cy.edges().toggleClass("near", Boolean(node));
      cy.nodes().positions((each) => ({ x: each.data("x"), y: each.data("y") }));
      if (node) { layNear(node); }
    });
    at("near").setAttribute("aria-pressed", Boolean(node));
    filter();
    fit();
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
    if (chosen) { light(chosen); }
  }

  document.addEventListener("choose", ({ detail }) => {
    cy.elements().removeClass("chosen");
    chosen = detail ? cy.getElementById(detail) : null;
    cy.resize();
    if (chosen?.nonempty()) {
      chosen.addClass("chosen");
      if (chosen.isNode() && (many || around)) { show(chosen); }
      else if (chosen.isEdge() && around && chosen.hasClass("out")) { show(chosen.target()); }
      else { cy.fit(cy.elements().not(".out"), 14); }
    } else { chosen = null; }
    rest();
  });

  function save(name, address) {
    const link = document.createElement("a");
    link.download = name;
    link.href = address;
    link.click();
  }

  cy.on("mouseover", "node, edge", (event) => ask(event.target, event.renderedPosition));
  cy.on("tap", "node, edge", (event) => {
    choose(event.target.id());
    ask(event.target, event.renderedPosition);
  });
  cy.on("mouseout drag", "node, edge", rest);
  cy.on("tap", (event) => { if (event.target === cy) { choose(null); } });
  cy.on("pan zoom", (event) => { if (event.target === cy) { tip.hidden = true; } });
  // The wheel scrolls the page until the drawing is clicked: nobody gets stuck on the way down.
  box.addEventListener("pointerdown", () => cy.userZoomingEnabled(true));
  box.addEventListener("pointerleave", () => { cy.userZoomingEnabled(false); rest(); });
  at("zoom-in").addEventListener("click", () => zoomBy(1.3));
  at("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  at("reset").addEventListener("click", () => { choose(null); show(null); });
  at("near").addEventListener("click", () => {
    show(around || !chosen ? null : chosen.isNode() ? chosen : chosen.target());
  });
  at("save-svg").addEventListener("click", () =>
    save("graph.svg", document.querySelector("#static-graph img").src));
  at("save-png").addEventListener("click", () => save("graph.png", cy.png({
    full: true, scale: 2, maxWidth: 8000, maxHeight: 8000,
    bg: getComputedStyle(box.closest("figure")).backgroundColor })));
  at("search").addEventListener("input", () => {
    const wanted = at("search").value.trim().toLowerCase();
    const found = cy.nodes().filter((node) => node.data("name").toLowerCase().includes(wanted));
    const exact = found.filter((node) => node.data("name").toLowerCase() === wanted);
    if (!wanted) { choose(null); }
    else if (exact.length || found.length === 1) { choose((exact.length ? exact : found)[0].id()); }
    else { cy.batch(() => cy.elements().removeClass("dim").not(found).addClass("dim")); }
  });
  at("strength").addEventListener("input", filter);
  at("stability")?.addEventListener("input", filter);
  at("colouring").addEventListener("change", paint);
  document.addEventListener("verdict", filter);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(look()));
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; fit(); } });
  paint();
  const busiest = cy.nodes().max((node) => node.degree()).ele;
  if (many && data.edges.length) { choose(busiest.id()); } else { fit(); }
})();
