// What is known: a list with what each constraint costs, and tiers of variables.
import { anew, step } from "./api.js";
const { made } = edgeDetails;

const at = (id) => document.getElementById(id);
let seen = "", named = "", tierSeen = "", focused = null, spare = 0;

const arrow = ([a, b]) => `${a} → ${b}`;
const same = (a, b) => a[0] === b[0] && a[1] === b[1];

function cost(costs, kind, edge) {
  const found = costs?.find((one) => one.kind === kind && (!edge || same(one.edge, edge)));
  if (!found) { return ""; }
  const nats = found.cost;
  if (nats < 0.5) { return "costs nothing"; }
  return `costs ${nats < 10 ? nats.toFixed(1) : Math.round(nats).toLocaleString("en")} nats of fit`;
}

function line(text, told, forget) {
  const item = made("li"), button = made("button", "Forget");
  button.type = "button";
  button.setAttribute("aria-label", `Forget: ${text}`);
  button.addEventListener("click", forget);
  item.append(made("span", text, "name"), made("span", told, "soft small"), button);
  return item;
}

function list(recipe, costs) {
  const lines = ["required", "forbidden"].flatMap((kind) => recipe[kind].map((edge) =>
    line(`${arrow(edge)} ${kind}`, cost(costs, kind, edge),
         () => step({ do: "free", edges: [edge] }))));
  if (recipe.tiers.length) {
    lines.push(line(`${recipe.tiers.length} tier${recipe.tiers.length > 1 ? "s" : ""}`, cost(costs, "tiers"),
                    () => { spare = 0; step({ do: "tiers", tiers: [] }); }));
  }
  anew(at("known"), ...(lines.length ? lines
    : [made("li", "Nothing yet. Click an edge of the graph, or choose two variables here.", "soft")]));
}

function move(name, to, tiers) {
  const next = tiers.map((tier) => tier.filter((each) => each !== name));
  while (to > next.length) { next.push([]); }
  if (to > 0) { next[to - 1].push(name); }
  focused = name;
  spare = 0;
  const used = next.filter((tier) => tier.length);
  step({ do: "tiers", tiers: used });
}

// A variable that is dragged follows the pointer; where it is let go is its tier.
function draggable(chip, name, tiers) {
  chip.addEventListener("pointerdown", (event) => {
    const [x, y] = [event.clientX, event.clientY];
    let moved = false;
    const follow = (now) => {
      moved ||= Math.hypot(now.clientX - x, now.clientY - y) > 5;
      if (!moved) { return; }
      chip.classList.add("dragged");
      chip.style.transform = `translate(${now.clientX - x}px, ${now.clientY - y}px)`;
      const over = below(now);
      for (const tier of at("tiers").children) { tier.classList.toggle("over", tier === over); }
    };
    const below = (now) => document.elementsFromPoint(now.clientX, now.clientY)
      .find((element) => element.classList.contains("tier"));
    const drop = (now) => {
      chip.removeEventListener("pointermove", follow);
      chip.style.transform = "";
      chip.classList.remove("dragged");
      const over = moved ? below(now) : null;
      for (const tier of at("tiers").children) { tier.classList.remove("over"); }
      if (over && !over.contains(chip)) { move(name, Number(over.dataset.tier), tiers); }
    };
    chip.setPointerCapture(event.pointerId);
    chip.addEventListener("pointermove", follow);
    chip.addEventListener("pointerup", drop, { once: true });
    chip.addEventListener("pointercancel", drop, { once: true });
  });
}

function chipOf(name, place, tiers) {
  const chip = made("button", name, "chip name");
  chip.type = "button";
  chip.setAttribute("aria-label", `${name}, ${place ? `tier ${place}` : "in no tier"}; arrow keys move it`);
  chip.addEventListener("keydown", (event) => {
    const to = place + { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (Number.isNaN(to)) { return; }
    event.preventDefault();
    if (to >= 0 && to <= tiers.length + 1) { move(name, to, tiers); }
  });
  draggable(chip, name, tiers);
  return chip;
}

function ofTiers(recipe, names) {
  const key = JSON.stringify([recipe.tiers, names, spare]);
  if (key === tierSeen) { return; }
  tierSeen = key;
  const tiers = recipe.tiers, placed = new Set(tiers.flat());
  const boxes = [names.filter((name) => !placed.has(name)), ...tiers, []];
  at("tiers").replaceChildren(...boxes.map((members, place) => {
    const box = made("div", undefined, "tier");
    box.dataset.tier = place;
    const title = place === 0 ? "in no tier" : place <= tiers.length ? `tier ${place}` : "new tier";
    box.append(made("h4", title), ...members.filter((name) => names.includes(name))
      .map((name) => chipOf(name, place, tiers)));
    return box;
  }));
  if (focused) {
    [...at("tiers").querySelectorAll(".chip")].find((chip) => chip.textContent === focused)?.focus();
    focused = null;
  }
}

export function renderKnowledge(state, fit, data) {
  const names = data.nodes.map((node) => node.name);
  const key = JSON.stringify([state.recipe.forbidden, state.recipe.required, state.recipe.tiers, state.costs]);
  if (key !== seen) {
    seen = key;
    list(state.recipe, state.costs);
  }
  if (named !== JSON.stringify(names)) {
    named = JSON.stringify(names);
    for (const id of ["cause", "effect"]) {
      const select = at(id), now = select.value;
      select.replaceChildren(...names.map((name) => {
        const option = made("option", name);
        option.value = name;
        return option;
      }));
      select.value = names.includes(now) ? now : names[id === "cause" ? 0 : Math.min(1, names.length - 1)];
    }
  }
  ofTiers(state.recipe, names);
}

at("tell").addEventListener("submit", (event) => {
  event.preventDefault();
  const what = event.submitter?.value ?? "forbid";
  step({ do: what, edges: [[at("cause").value, at("effect").value]] });
});
