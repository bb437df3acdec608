// The server's answers, and the state that all pages show.  Addresses are relative: the page's own
// begins with the token.

export const store = { state: null, fit: null, fitId: "" };
const listeners = [];

export function onChange(listener) { listeners.push(listener); }

function problem(text) {
  const line = document.getElementById("error");
  line.textContent = text ?? "";
  line.hidden = !text;
}

// What is the same stays the very element that it was, so that nobody loses the focus, a list that
// is open or a text half written; what is made anew gets back the focus that it had.
export function anew(box, ...parts) {
  const held = box.contains(document.activeElement) ? document.activeElement : null;
  const nodes = parts.map((part) => (typeof part === "string" ? new Text(part) : part));
  const before = [...box.childNodes];
  nodes.forEach((node, k) => {
    if (!before[k]) { box.append(node); return; }
    const typing = held?.matches("input") && before[k].contains(held);
    if (!typing && !before[k].isEqualNode(node)) { before[k].replaceWith(node); }
  });
  for (const node of before.slice(nodes.length)) { node.remove(); }
  if (!held || held.isConnected) { return; }
  const name = (one) => one.dataset.key ?? one.ariaLabel ?? one.textContent;
  [...box.querySelectorAll(held.tagName)].find((one) => name(one) === name(held))?.focus({ preventScroll: true });
}

async function answer(response) {
  const data = await response.json().catch(() => ({ error: "The workbench gave no answer." }));
  if (!response.ok) { throw new Error(data.error ?? `It failed (${response.status}).`); }
  return data;
}

export async function post(path, body = {}, quiet = false) {
  try {
    const data = await answer(await fetch(`api/${path}`, {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body) }));
    if (!quiet) { problem(null); }
    if (data.version !== undefined) { take(data); }
    return data;
  } catch (error) {
    problem(error.message);
    throw error;
  }
}

export async function get(path) { return answer(await fetch(`api/${path}`)); }

export const step = (what) => post("step", { step: what, have: store.fitId }).catch(() => {});
export const go = (at) => post("go", { at, have: store.fitId }).catch(() => {});

export async function upload(file) {
  document.getElementById("drop").classList.add("loading");
  try {
    take(await answer(await fetch("api/table", {
      method: "POST", headers: { "X-Name": encodeURIComponent(file.name) }, body: file })));
    problem(null);
  } catch (error) { problem(error.message); } finally {
    document.getElementById("drop").classList.remove("loading");
  }
}

function take(state) {
  if (store.state && state.version < store.state.version) { return; }  // an answer that was late
  if (state.fit) { store.fit = state.fit; }
  if (!state.fit_id) { store.fit = null; }
  store.fitId = state.fit_id;
  store.state = state;
  try {
    for (const listener of listeners) { listener(store); }
  } catch (error) {
    console.error(error);
    problem(`The page could not show this: ${error.message}`);
  }
}

export async function refresh() {
  take(await get(`state?have=${encodeURIComponent(store.fitId)}`));
}

// A line from the server says that something changed; several in a row are answered once.
export function follow() {
  let waiting = false, again = false;
  async function ask() {
    if (waiting) { again = true; return; }
    waiting = true;
    try { await refresh(); } catch { /* the next sign of life asks again */ }
    waiting = false;
    if (again) { again = false; ask(); }
  }
  const source = new EventSource("api/events");
  source.onmessage = (event) => {
    if (!store.state || Number(event.data) > store.state.version) { ask(); }
  };
  source.onerror = () => problem("The workbench does not answer. Is `rescore app` still running?");
  source.onopen = () => problem(null);
}
