// Which rows count: their weights, what sets some of them apart, the fit without them.
import { anew, post, step, store } from "./api.js";
const { made, drawn, number, percent } = edgeDetails;

const page = document.getElementById("page-rows");
const HEIGHT = 250, LEFT = 34, BOTTOM = 26;
let WIDTH = 720;  // of the picture, as wide as the page lets it be
let built = false, seen = "", choice = { heaviest: 0.05 }, why = "the heaviest 5 %", found = null;
let by = "row", brush = null, pair = null;
const at = (name) => page.querySelector(`[data-at="${name}"]`);

function place(tag, name, text, className) {
  const element = made(tag, text, className);
  element.dataset.at = name;
  return element;
}

function button(text, action, className) {
  const element = made("button", text, className);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

function build() {
  built = true;
  const picture = made("figure"), canvas = place("canvas", "picture");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "The weight of every row. Drag across it to choose rows; the buttons above choose some without it.");
  canvas.tabIndex = -1;
  const axis = made("label", "across "), select = place("select", "axis");
  for (const [value, text] of [["row", "the order of the table"], ["loss", "how badly a row fits"]]) {
    const option = made("option", text);
    option.value = value;
    select.append(option);
  }
  select.addEventListener("change", () => { by = select.value; paint(); });
  axis.append(select);
  const top = made("div", undefined, "controls slim");
  top.append(axis);
  picture.append(top, canvas, place("ul", "legend", undefined, "legend dots"));
  const two = made("div", undefined, "two rows-two");
  const bars = made("div"), values = made("div");
  bars.append(made("h2", "What sets them apart"), place("p", "apart", "", "soft small"), place("div", "bars", undefined, "bars"));
  values.append(made("h2", "In two variables"), place("div", "pair", undefined, "controls slim"), place("div", "scatter"));
  two.append(bars, values);
  const table = made("div", undefined, "scroll");
  table.tabIndex = 0;
  table.setAttribute("role", "region");
  table.setAttribute("aria-label", "The chosen rows");
  table.append(place("table", "table"));
  page.replaceChildren(place("p", "told"), place("div", "out"), place("div", "choices", undefined, "buttons choices"),
    picture, place("div", "acts", undefined, "buttons acts"), place("p", "changed", "", "changes"), two,
    made("h2", "The rows themselves"), place("p", "listed", "", "soft small"), table);
  page.querySelector("[data-at=changed]").setAttribute("role", "status");
  brushing(canvas);
}

const share = (word, part) => ({ [word]: part });

function choices(fit) {
  const rows = fit.rows, list = [
    ["by weight and fit"],
    ["Heaviest 5 %", share("heaviest", 0.05), "the heaviest 5 %"],
    ["Heaviest 20 %", share("heaviest", 0.2), "the heaviest 20 %"],
    ["Lightest 5 %", share("lightest", 0.05), "the lightest 5 %"],
    ["Worst fitting 5 %", share("worst", 0.05), "the worst fitting 5 %"],
  ];
  const groups = fit.weighting.groups ?? 1, counts = {};
  for (const group of rows.group ?? []) { counts[group] = (counts[group] ?? 0) + 1; }
  if (groups > 1 && rows.group) {
    list.push(["hidden groups that the fit found"]);
    for (let k = 0; k < groups; k += 1) {
      if (counts[k]) {
        const size = fit.weighting.share_before[k], part = size < 0.005 ? "under 1 %" : percent(size);
        const aside = fit.weighting.noise?.[k] ? ", set aside" : "";
        list.push([`Group ${k}: ${part}${aside}`, { group: k }, `latent group ${k} of ${groups}`]);
      }
    }
  }
  if (fit.labels) { list.push([store.state.recipe.groups]); }
  for (const label of fit.labels ?? []) { list.push([label, { label }, `label ${label}`]); }
  anew(at("choices"), ...list.map(([text, what, words]) => {
    if (!what) { return made("span", text, "kind"); }
    const one = button(text, () => pick(what, words));
    one.setAttribute("aria-pressed", JSON.stringify(what) === JSON.stringify(choice));
    return one;
  }));
}

async function pick(what, words) {
  choice = what;
  why = words;
  choices(store.fit);
  await ask();
}

async function ask() {
  try { found = await post("rows", { choice }, true); } catch { found = null; }
  paint();
  show();
}

const property = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (k) => property(`--group-${k % 12}`);

const within = (text) => {
  const ranges = (text || "").split(",").filter(Boolean).map((part) => part.split("-").map(Number));
  return (row) => ranges.some(([low, high]) => row >= low && row <= (high ?? low));
};

function scales() {
  const { rows } = store.fit, weights = rows.weight.filter((w) => w > 0);
  const top = Math.max(1.2, ...weights) * 1.06;
  const losses = rows.loss.map((x) => (x === null ? 0 : Math.log10(Math.max(x, 1e-3))));
  const low = Math.min(...losses), high = Math.max(...losses);
  const across = by === "row" ? rows.place.map((p) => p / Math.max(rows.of - 1, 1))
    : losses.map((x) => (high > low ? (x - low) / (high - low) : 0.5));
  return { x: (k) => LEFT + across[k] * (WIDTH - LEFT - 10), y: (k) => HEIGHT - BOTTOM - (rows.weight[k] / top) * (HEIGHT - BOTTOM - 8), top };
}

function paint() {
  const canvas = at("picture"), { rows, weighting } = store.fit, ratio = devicePixelRatio || 1;
  WIDTH = Math.max(280, canvas.clientWidth || 720);
  canvas.width = WIDTH * ratio;
  canvas.height = HEIGHT * ratio;
  const pen = canvas.getContext("2d"), css = getComputedStyle(document.documentElement);
  pen.scale(ratio, ratio);
  const { x, y, top } = scales(), inside = within(found?.rows);
  const ink = css.getPropertyValue("--soft").trim();
  pen.strokeStyle = css.getPropertyValue("--line").trim();
  pen.fillStyle = ink;
  pen.font = "11px system-ui, sans-serif";
  const one = HEIGHT - BOTTOM - (1 / top) * (HEIGHT - BOTTOM - 8);
  for (const [py, text] of [[HEIGHT - BOTTOM, "0"], [one, "1"]]) {
    pen.beginPath(); pen.moveTo(LEFT, py); pen.lineTo(WIDTH - 6, py); pen.stroke();
    pen.fillText(text, LEFT - 12, py + 4);
  }
  pen.fillText("weight × n", 2, 10);
  pen.fillText(by === "row" ? "rows, in the order of the table" : "how badly a row fits →", LEFT, HEIGHT - 8);
  const out = new Set(rows.out);
  const order = rows.place.map((_, k) => k).filter((k) => !out.has(k)).sort((a, b) => inside(rows.place[a]) - inside(rows.place[b]));
  const many = (weighting.groups ?? 1) > 1 && rows.group;
  for (const k of order) {
    const mine = inside(rows.place[k]);
    pen.globalAlpha = mine ? 0.95 : found?.count ? 0.28 : 0.55;
    pen.fillStyle = many ? colour(rows.group[k]) : property(mine ? "--negative" : "--common");
    pen.beginPath();
    pen.arc(x(k), y(k), mine ? 2.8 : 2.1, 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
  if (brush) {
    pen.strokeStyle = css.getPropertyValue("--accent").trim();
    pen.strokeRect(Math.min(brush[0], brush[2]), Math.min(brush[1], brush[3]), Math.abs(brush[2] - brush[0]), Math.abs(brush[3] - brush[1]));
  }
  at("legend").replaceChildren(...(many ? Array.from({ length: weighting.groups }, (_, k) => {
    const item = made("li"), dot = made("i");
    dot.style.background = colour(k);
    item.append(dot, `group ${k}`);
    return item;
  }) : []));
}

// A rectangle dragged across the picture chooses the rows inside.
function brushing(canvas) {
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * (WIDTH / box.width), (event.clientY - box.top) * (HEIGHT / box.height)];
  };
  canvas.addEventListener("pointerdown", (event) => {
    brush = [...spot(event), ...spot(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!brush) { return; }
    [brush[2], brush[3]] = spot(event);
    paint();
  });
  canvas.addEventListener("pointerup", () => {
    if (!brush) { return; }
    const [left, right] = [brush[0], brush[2]].sort((a, b) => a - b);
    const [high, low] = [brush[1], brush[3]].sort((a, b) => a - b);
    brush = null;
    const { x, y } = scales(), { rows } = store.fit;
    const chosen = rows.place.filter((_, k) => x(k) >= left && x(k) <= right && y(k) >= high && y(k) <= low);
    if (chosen.length) { pick({ rows: chosen.join(",") }, "rows chosen in the picture"); } else { paint(); }
  });
}

function sentence() {
  const [first] = found.bars;
  if (!first) { return "All rows are chosen: there is nothing to compare with."; }
  const noisy = [...found.bars].sort((a, b) => Math.abs(Math.log2(b.noise)) - Math.abs(Math.log2(a.noise)))[0];
  const level = [...found.bars].sort((a, b) => Math.abs(b.level) - Math.abs(a.level))[0];
  const far = Math.abs(level.level) >= 0.2
    ? `${level.name} is ${Math.abs(level.level).toFixed(1)} deviations ${level.level > 0 ? "higher" : "lower"}` : "no variable's level differs much";
  const times = noisy.noise >= 1 ? noisy.noise : 1 / noisy.noise;
  const wide = times >= 1.25 ? `what the graph leaves of ${noisy.name} is ${times.toFixed(1)} times as ${noisy.noise >= 1 ? "wide" : "narrow"}` : "the graph fits them like the others";
  return `${found.count.toLocaleString("en")} rows, ${why}: ${far}, and ${wide}.`;
}

function bar(value, most, text, className) {
  const track = made("div", undefined, `track ${className}`), fill = made("i");
  const part = Math.min(1, Math.abs(value) / most) * 50;
  fill.style.left = `${value < 0 ? 50 - part : 50}%`;
  fill.style.width = `${Math.max(part, 0.6)}%`;
  track.append(fill);
  track.title = text;
  return track;
}

function show() {
  if (!found || !found.count) {
    anew(at("acts"));
    at("apart").textContent = "No rows are chosen.";
    for (const name of ["bars", "table", "scatter", "pair"]) { at(name).replaceChildren(); }
    return;
  }
  anew(at("acts"),
    button(`Leave these ${found.count.toLocaleString("en")} rows out and refit`, () => step({ do: "exclude", rows: found.rows, why }), "primary"),
    button("Undo", () => document.getElementById("undo").click()));
  at("apart").textContent = sentence();
  const most = Math.max(0.5, ...found.bars.map((one) => Math.abs(one.level)));
  const wide = Math.max(1, ...found.bars.map((one) => Math.abs(Math.log2(one.noise))));
  const head = made("div", undefined, "bar head");
  head.append(made("span"), made("span", "level, in deviations"), made("span", "noise, as a multiple"));
  at("bars").replaceChildren(head, ...found.bars.slice(0, 40).map((one) => {
    const line = made("div", undefined, "bar");
    const level = made("span", undefined, "cell"), noise = made("span", undefined, "cell");
    level.append(bar(one.level, most, `mean ${number(one.mean)}, others ${number(one.others)}`, "level"), made("b", `${one.level > 0 ? "+" : "−"}${Math.abs(one.level).toFixed(2)}`, "num"));
    noise.append(bar(Math.log2(one.noise), wide, `${one.noise.toFixed(2)} times the others'`, "noise"), made("b", `×${one.noise.toFixed(2)}`, "num"));
    line.append(made("span", one.name, "name"), level, noise);
    return line;
  }));
  pairs();
  listed();
}

function pairs() {
  const names = found.names;
  if (!pair || !pair.every((name) => names.includes(name))) {
    const strongest = [...store.fit.graph.edges].sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))[0];
    const of = Object.fromEntries(store.fit.graph.nodes.map((node) => [node.id, node.name]));
    pair = strongest ? [of[strongest.source], of[strongest.target]] : [names[0], names[names.length - 1]];
  }
  anew(at("pair"), ...["across", "up"].map((word, k) => {
    const label = made("label", `${word} `), select = made("select");
    for (const name of names) {
      const option = made("option", name);
      option.value = name;
      option.toggleAttribute("selected", name === pair[k]);
      select.append(option);
    }
    select.addEventListener("change", () => { pair[k] = select.value; pairs(); });
    label.append(select);
    return label;
  }));
  const [i, j] = pair.map((name) => names.indexOf(name));
  const mine = found.listed.map((row) => [row.values[i], row.values[j]]);
  const others = found.others[i].map((value, k) => [value, found.others[j][k]]);
  const every = [...mine, ...others];
  const range = (k) => [Math.min(...every.map((p) => p[k])), Math.max(...every.map((p) => p[k]))];
  const scale = ([low, high], from, to) => (v) => (high > low ? from + ((to - from) * (v - low)) / (high - low) : (from + to) / 2);
  const [rx, ry] = [range(0), range(1)], x = scale(rx, 30, 392), y = scale(ry, 236, 8);
  const svg = drawn("svg", { viewBox: "0 0 400 262", class: "scatter", role: "img",
    "aria-label": `${pair[1]} against ${pair[0]}, the chosen rows in colour` });
  svg.append(drawn("path", { d: "M30 4V236H396", class: "axis" }));
  for (const [points, name] of [[others, "alike"], [mine, "less"]]) {
    for (const [px, py] of points) { svg.append(drawn("circle", { cx: x(px).toFixed(1), cy: y(py).toFixed(1), r: 2.4, class: name })); }
  }
  const text = (words, px, py, anchor, turn) => svg.append(drawn("text", { x: px, y: py, "text-anchor": anchor, ...(turn ? { transform: turn } : {}) }, words));
  text(pair[0], 211, 258, "middle");
  text(pair[1], 12, 122, "middle", "rotate(-90 12 122)");
  text(number(rx[0]), 30, 248, "start");
  text(number(rx[1]), 396, 248, "end");
  const legend = made("ul", undefined, "legend dots");
  for (const [name, words] of [["less", `chosen (${mine.length} shown)`], ["alike", `others (${others.length} shown)`]]) {
    const item = made("li", undefined, name);
    item.append(made("i"), words);
    legend.append(item);
  }
  at("scatter").replaceChildren(svg, legend);
}

function listed() {
  at("listed").textContent = found.count > found.listed.length ? `The ${found.listed.length} heaviest of ${found.count.toLocaleString("en")}.` : "";
  const head = made("thead"), row = made("tr"), body = made("tbody");
  row.append(...["row", "weight × n", "misfit", ...found.names].map((name) => made("th", name, "num")));
  head.append(row);
  for (const one of found.listed) {
    const line = made("tr");
    line.append(made("th", String(one.row), "num"), made("td", number(one.weight), "num"), made("td", one.loss === null ? "" : number(one.loss), "num"),
      ...one.values.map((value) => made("td", number(value), "num")));
    body.append(line);
  }
  at("table").replaceChildren(head, body);
}

function resized() {
  if (built && at("picture").clientWidth && at("picture").clientWidth !== WIDTH) { paint(); }
}

addEventListener("resize", resized);

export function render({ state, fit }) {
  if (!fit) {
    built = false;
    page.replaceChildren(made("p", "Rows are weighed by a fit. Press Fit on the page of the graph first.", "status neutral"));
    return;
  }
  if (!built) { build(); seen = ""; }
  at("changed").textContent = document.getElementById("changes").textContent;
  const key = `${store.fitId} ${state.stale}`;
  if (key === seen) { resized(); return; }
  seen = key;
  at("told").textContent = fit.weighting.summary ?? "All rows count alike.";
  at("told").append(` They count as ${Math.round(fit.effective).toLocaleString("en")} of ${fit.rows.used.toLocaleString("en")} would with equal weights.`);
  const out = at("out");
  out.replaceChildren();
  if (state.recipe.excluded) {
    const line = made("p", `${(fit.rows.of - fit.rows.used).toLocaleString("en")} rows are left out. `, "status neutral");
    line.append(button("Take all back", () => step({ do: "include", rows: state.recipe.excluded })));
    out.append(line);
  }
  choices(fit);
  if (fit.quick || state.stale) { found = null; paint(); show(); at("apart").textContent = "The rows are weighed anew …"; return; }
  const gone = (choice.group ?? -1) >= (fit.weighting.groups ?? 1);
  if (choice.rows || gone) { choice = { heaviest: 0.05 }; why = "the heaviest 5 %"; choices(fit); }
  ask();
}
