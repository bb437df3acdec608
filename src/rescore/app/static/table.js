// The table: its columns, what is wrong with it, repairs by a click.
import { anew, post, step, upload } from "./api.js";
const { made, drawn, number } = edgeDetails;

const at = (id) => document.getElementById(id);
let seen = "";

function histogram(column) {
  const high = Math.max(1, ...column.bars), wide = 100 / Math.max(column.bars.length, 1);
  const svg = drawn("svg", { viewBox: "0 0 100 34", class: "histogram", role: "img",
    preserveAspectRatio: "none", "aria-label": `Histogram of ${column.name}` });
  column.bars.forEach((count, k) => {
    const tall = Math.max(count ? 1 : 0, (32 * count) / high);
    const bar = drawn("rect", { x: k * wide + 0.4, y: 34 - tall, width: Math.max(wide - 0.8, 0.3),
                                height: tall });
    if (column.levels) { bar.append(drawn("title", {}, `${column.levels[k]}: ${count}`)); }
    svg.append(bar);
  });
  return svg;
}

function button(text, action, name) {
  const element = made("button", text, name);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

function choice(label, values, chosen, action) {
  const outer = made("label", label), select = made("select");
  for (const [value, text] of Object.entries(values)) {
    const option = made("option", text);
    option.value = value;
    option.toggleAttribute("selected", value === chosen);
    select.append(option);
  }
  select.addEventListener("change", () => action(select.value));
  outer.append(select);
  return outer;
}

const changes = (column) => ({ none: "as it is", ...(column.positive ? { log: "logarithm" } : {}),
  ...(column.low >= 0 ? { log1p: "log(1 + x)", sqrt: "square root" } : {}), asinh: "asinh",
  category: "a category", times: "times …" });

// A unit of measure is a number to multiply by, which is asked for in the card itself.
function changed(column, by, tools) {
  if (by !== "times") { step({ do: "transform", column: column.name, by }); return; }
  const factor = made("input");
  factor.type = "number";
  factor.step = "any";
  factor.value = "0.001";
  factor.setAttribute("aria-label", `Multiply ${column.name} by`);
  const apply = button("Multiply", () => {
    if (factor.value !== "") { step({ do: "transform", column: column.name, by: factor.value }); }
  });
  factor.addEventListener("keydown", (event) => { if (event.key === "Enter") { factor.blur(); apply.click(); } });
  tools.replaceChildren(factor, apply);
  factor.focus();
}

function described(column) {
  if (column.kind !== "numbers") { return `${column.kind}, ${column.different} different`; }
  if (column.low === undefined) { return "no numbers"; }
  const what = column.different <= 2 ? "two values" : column.whole ? "whole numbers" : "numbers";
  return `${what}, ${number(column.low)} to ${number(column.high)}${column.logarithmic ? ", drawn by their logarithm" : ""}`;
}

function card(column, recipe, findings) {
  const out = recipe.drop.includes(column.name), labels = recipe.groups === column.name;
  const box = made("article", undefined, `card${out ? " out" : ""}`);
  box.append(made("h3", column.name, "name"), histogram(column), made("p", described(column), "soft small"));
  if (column.missing || column.faulty) {
    box.append(made("p", `${column.missing + column.faulty} cell(s) missing or no numbers`, "flag small"));
  }
  for (const one of findings.filter((f) => f.columns.includes(column.name) && f.severity !== "note")) {
    box.append(made("p", one.code.replaceAll("_", " "), `flag small ${one.severity}`));
  }
  const tools = made("div", undefined, "buttons");
  if (labels) {
    box.append(made("p", "labels of groups, not a variable", "small"));
    tools.append(button("Make it a variable", () => step({ do: "groups", column: null })));
  } else if (out) {
    tools.append(button("Bring back", () => step({ do: "keep", columns: [column.name] })));
  } else {
    const now = recipe.transform[column.name];
    if (column.kind === "numbers") {
      const known = changes(column);
      if (now !== undefined && !(now in known)) { known[now] = `times ${now}`; }
      const select = choice("", known, now ?? "none", (by) => changed(column, by, tools)).querySelector("select");
      select.setAttribute("aria-label", `Change ${column.name}`);
      tools.append(select);
    } else {
      tools.append(button("Groups", () => step({ do: "groups", column: column.name })));
      tools.lastChild.title = "Its words are labels of rows, to compare with the weights";
    }
    tools.append(button("Leave out", () => step({ do: "settings", drop: [column.name] })));
  }
  for (const one of tools.querySelectorAll("button")) {
    one.setAttribute("aria-label", `${one.textContent}: ${column.name}`);
  }
  box.append(tools);
  return box;
}

function finding(one) {
  const line = made("li", undefined, one.severity), fix = Object.keys(one.fix).length > 0;
  line.append(made("b", one.severity), made("span", ` ${one.seen} `));
  line.append(made("span", one.remedy, "soft"));
  if (fix) {
    line.append(button("Repair", () => step({ do: "settings", ...one.fix, why: one.code })));
    line.lastChild.setAttribute("aria-label", `Repair: ${one.code}`);
  }
  return line;
}

function ofFindings(found, busy) {
  if (!found) { return busy.findings ? [made("p", "The table is being checked …", "soft")] : []; }
  const grave = found.findings.filter((one) => one.severity !== "note");
  const notes = found.findings.filter((one) => one.severity === "note");
  const parts = [];
  if (!found.ok) {
    const line = made("p", "The table cannot be fitted as it is. ", "status bad");
    if (found.mends) {
      line.append(button("Repair all", () => step({ do: "settings", ...found.settings,
                                                    why: "all findings" }), "primary"));
    }
    parts.push(line);
  } else if (!grave.length) { parts.push(made("p", "Nothing speaks against a fit.", "status")); }
  if (grave.length) {
    const list = made("ul", undefined, "findings");
    list.append(...grave.map(finding));
    parts.push(list);
  }
  if (notes.length) {
    const more = made("details"), list = made("ul", undefined, "findings");
    list.append(...notes.map(finding));
    more.append(made("summary", `${notes.length} more to know`), list);
    parts.push(more);
  }
  return parts;
}

function settings(recipe, found) {
  const usual = (word) => ({ ...(recipe[word] === "refuse" ? { refuse: "none wanted" } : {}) });
  const parts = [];
  const codes = new Set((found?.findings ?? []).map((one) => one.code));
  if (recipe.missing !== "refuse" || codes.has("missing") || codes.has("bad_cells")) {
    parts.push(choice("missing cells", { ...usual("missing"), em: "filled in from the others",
      drop: "rows with gaps left out" }, recipe.missing,
      (missing) => step({ do: "settings", missing })));
  }
  if (recipe.categories !== "refuse" || codes.has("categories") ||
      Object.values(recipe.transform).includes("category")) {
    parts.push(choice("columns of words", { ...usual("categories"),
      exogenous: "may cause, are not caused", drop: "left out" }, recipe.categories,
      (categories) => step({ do: "settings", categories })));
  }
  return parts;
}

export function render({ state }) {
  const { columns, findings, recipe, errors, busy } = state;
  at("table").hidden = !state.source;
  at("example-line").hidden = Boolean(state.source);
  at("drop").classList.toggle("slim", Boolean(state.source));
  const key = JSON.stringify([state.source, recipe, columns?.rows, findings, errors, busy.findings && 1]);
  if (key === seen) { return; }
  seen = key;
  const wrong = errors.columns ?? errors.findings;
  at("table-told").textContent = columns
    ? `${columns.rows.toLocaleString("en")} rows, ${columns.columns.length} columns.` +
      (recipe.excluded ? ` Rows left out: ${recipe.excluded.slice(0, 80)}.` : "")
    : wrong ?? "The table is being read …";
  anew(at("findings"), ...(wrong && columns ? [made("p", wrong, "status bad")] : []),
       ...ofFindings(findings, busy));
  anew(at("table-settings"), ...settings(recipe, findings));
  at("columns-title").hidden = !columns;
  anew(at("columns"), ...(columns?.columns ?? []).map((column) =>
    card(column, recipe, findings?.findings ?? [])));
}

at("file").addEventListener("change", () => {
  if (at("file").files.length) { upload(at("file").files[0]); at("file").value = ""; }
});
at("example").addEventListener("click", () => post("example").catch(() => {}));
for (const name of ["dragover", "dragenter"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    at("drop").classList.add("over");
  });
}
document.addEventListener("dragleave", () => at("drop").classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  at("drop").classList.remove("over");
  if (event.dataTransfer.files.length) { upload(event.dataTransfer.files[0]); }
});
