// The table of edges that can be sorted and searched, and what is known of the one that is chosen.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("graph-data").textContent);
  const at = (id) => document.getElementById(id);
  const choose = (id) => document.dispatchEvent(new CustomEvent("choose", { detail: id }));
  const edges = Object.fromEntries(data.edges.map((edge) => [edge.id, edge]));
  const lines = [...document.querySelectorAll("#edge-table tbody tr")];
  const { made } = edgeDetails;
  const { ofEdge, ofNode, names } = edgeDetails(data, choose);

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
