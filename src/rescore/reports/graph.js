// The report's graph with its controls: searched, filtered, coloured; without this script its
// picture stays.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("graph-data").textContent);
  const at = (id) => document.getElementById(id);
  const box = at("drawing");
  const { colourings, number } = graphView;
  const percent = (share) => `${Math.round(100 * share)} %`;
  const choose = (id) => document.dispatchEvent(new CustomEvent("choose", { detail: id }));
  const strengths = data.edges.map((edge) => Math.abs(edge.weight)).sort((a, b) => a - b);
  const strongest = strengths.at(-1) ?? 1;
  const small = innerWidth < 640;
  const many = data.nodes.length > (small ? 15 : 60);  // then a neighbourhood is shown first
  let around = null;

  box.closest(".interactive").hidden = false;  // before drawing: what is hidden has no size
  at("static-graph").hidden = true;
  const { cy, fit, zoomBy, rest, mark, chosen } = graphView({
    box, tip: at("tooltip"), data, choose, small,
    strength: (edge) => Math.min(1, Math.abs(edge.data("weight")) / strongest) });

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

  document.addEventListener("choose", ({ detail }) => {
    const found = mark(detail);
    cy.resize();
    if (found) {
      if (found.isNode() && (many || around)) { show(found); }
      else if (found.isEdge() && around && found.hasClass("out")) { show(found.target()); }
      else { cy.fit(cy.elements().not(".out"), 14); }
    }
    rest();
  });

  function save(name, address) {
    const link = document.createElement("a");
    link.download = name;
    link.href = address;
    link.click();
  }

  at("zoom-in").addEventListener("click", () => zoomBy(1.3));
  at("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  at("reset").addEventListener("click", () => { choose(null); show(null); });
  at("near").addEventListener("click", () => {
    const here = chosen();
    show(around || !here ? null : here.isNode() ? here : here.target());
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
  paint();
  const busiest = cy.nodes().max((node) => node.degree()).ele;
  if (many && data.edges.length) { choose(busiest.id()); } else { fit(); }
})();
