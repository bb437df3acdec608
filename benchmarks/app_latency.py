"""How fast the workbench answers, measured in the browser, and how much memory it takes.

    python benchmarks/app_latency.py [--rounds 5] [--record]

`start`: from the command to a page with the table's columns.  `forbid`: from the click to the frame
that shows the new graph, the first answer (weights kept) and the whole fit.  `drag`: frames while a
variable of 200 is dragged.  `memory`: what the server and its two processes hold together (`Pss`,
so that what they share counts once, files that are mapped included), less what they hold with a
table of 200 rows, in copies of the table's numbers (8 bytes each): after a fit and a refit, and the
most that was seen every few hundredths of a second from the command on.  The text of the file is
2.4 copies by itself.  Needs chromium, its driver and selenium.

    python benchmarks/app_latency.py --only memory

measures one of start, forbid, drag and memory, and with `--record` keeps the others' lines.
"""

import argparse
import csv
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from selenium import webdriver

import rescore as rs

RESULTS = Path(__file__).parent / "results" / "app_latency.csv"
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--no-first-run", "--disable-background-networking")  # fmt: skip
START = [sys.executable, "-c", "from rescore.cli import run; run()", "app", "--no-browser"]
SETTLED = "document.body.dataset.graph && !document.body.dataset.graph.endsWith('~')"
WATCH = """
window.answers = []; window.begun = performance.now(); const before = document.body.dataset.graph;
new MutationObserver(() => {
  const name = document.body.dataset.graph;
  if (name !== before && !window.answers.some(([other]) => other === name)) {
    window.answers.push([name, 0]);
    const line = window.answers.at(-1);
    const told = () => { line[1] = performance.now() - window.begun; };
    requestAnimationFrame(() => requestAnimationFrame(told));
  }
}).observe(document.body, { attributes: true });
document.querySelector('#edges tbody tr').click();
window.begun = performance.now();
document.querySelector('#details .acts button[title="It must not be there"]').click();
"""
FRAMES = """
window.frames_ = []; let last = performance.now();
const tick = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(tick); };
requestAnimationFrame(tick);
"""


class Bench:
    """A workbench of its own process, and a browser that looks at it."""

    def __init__(self, browser, table):
        self.browser, self.begun, self.most = browser, time.monotonic(), 0
        self.process = subprocess.Popen([*START, str(table)], stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"http://\S+", self.process.stdout.readline())[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def open(self, where="load"):
        """Show a page."""
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}#{where}")
        self.until("document.body.dataset.ready")

    def until(self, condition, seconds=300):
        """Wait for something in the page."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.browser.execute_script(f"return {condition}"):
                return found
            time.sleep(0.01)
        raise TimeoutError(condition)

    def fit(self):
        """Fit, and wait for the whole of it."""
        self.open("graph")
        self.until("document.getElementById('learner').options.length")
        self.browser.execute_script("document.getElementById('fit').click()")
        self.until(SETTLED)

    def memory(self):
        """Bytes of the server and its processes, what they share counted once."""
        pids = [self.process.pid]
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(path.read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if parent == self.process.pid:
                pids.append(int(path.parent.name))
        total = 0
        for pid in pids:
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:  # has just ended
                continue
            total += 1024 * int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1])
        return total

    def watch(self):
        """Begin to look, every few hundredths of a second, for the most memory."""

        def look():
            while self.process.poll() is None:
                self.most = max(self.most, self.memory())
                time.sleep(0.02)

        threading.Thread(target=look, daemon=True).start()


def table_of(folder, nodes, rows, groups=False):
    more = {"groups": (0.8, 0.2), "noise_scale": 0.4} if groups else {}
    path = folder / f"{nodes}x{rows}.csv"
    rs.simulate("ER", degree=2, nodes=nodes, samples=rows, random_state=1, **more).X.to_csv(
        path, index=False
    )
    return path


def started(browser, table):
    with Bench(browser, table) as bench:
        bench.open()
        bench.until("document.querySelectorAll('.card').length > 1")
        return time.monotonic() - bench.begun


def forbidden(browser, table, rounds):
    """Milliseconds to the first answer and to the whole fit, for so many edges in turn."""
    first, whole = [], []
    with Bench(browser, table) as bench:
        bench.fit()
        for _ in range(rounds):
            browser.execute_script(WATCH)
            bench.until("window.answers.length && window.answers[0][1]")
            first.append(browser.execute_script("return window.answers[0][1]"))
            bench.until(f"window.answers.length > 1 && {SETTLED} && window.answers.at(-1)[1]")
            whole.append(browser.execute_script("return window.answers.at(-1)[1]"))
    return first, whole


def dragged(browser, table):
    """Milliseconds of every frame while a variable is dragged across the picture."""
    with Bench(browser, table) as bench:
        bench.open("graph")
        bench.until("document.getElementById('learner').options.length")
        browser.execute_script("document.getElementById('fit').click()")
        bench.until("document.body.dataset.graph")
        browser.execute_script("document.getElementById('cancel').click()")
        box = browser.find_element("id", "drawing")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
        time.sleep(1)
        spot = browser.execute_script(
            "const cy = document.getElementById('drawing')._cyreg.cy;"
            "return cy.nodes().max((n) => n.degree()).ele.renderedPosition()"
        )
        x, y = spot["x"] - box.size["width"] / 2, spot["y"] - box.size["height"] / 2
        chain = webdriver.ActionChains(browser, duration=15)
        chain.move_to_element_with_offset(box, round(x), round(y)).click_and_hold().perform()
        browser.execute_script(FRAMES)
        chain = webdriver.ActionChains(browser, duration=15)
        for k in range(80):
            chain.move_by_offset(*((6, 4) if k % 20 < 10 else (-6, -4)))
        chain.perform()
        frames = browser.execute_script("return window.frames_")[2:]
        webdriver.ActionChains(browser).release().perform()
        return frames


def copies(browser, folder, rows, nodes=12):
    """Copies of the table's numbers that are held after a fit and a refit, and at the peak."""
    found = {}
    for many in (200, 200, rows):  # the first one compiles, which takes more than a table
        with Bench(browser, table_of(folder, nodes, many)) as bench:
            bench.watch()
            bench.open("graph")
            idle(bench)
            browser.execute_script("document.getElementById('fit').click()")
            bench.until(SETTLED)
            browser.execute_script(WATCH)
            bench.until(f"window.answers.length && {SETTLED}")
            idle(bench)
            found[many] = bench.memory(), bench.most
    size = 8 * rows * nodes
    return [(found[rows][k] - found[200][k]) / size for k in (0, 1)]


def idle(bench):
    """Wait until the table is checked and nothing is being done."""
    bench.browser.execute_script("window.idle = false")
    while not bench.browser.execute_script(
        "fetch('api/state').then((a) => a.json()).then((s) => { window.idle = s.findings"
        " && !Object.keys(s.busy).length; }); return window.idle"
    ):
        time.sleep(0.1)


def starts(browser, folder, rounds):
    seconds = [started(browser, table_of(folder, 12, 10_000)) for _ in range(rounds)]
    yield "start, 12 x 10,000", min(seconds), statistics.median(seconds), "s", 3


def forbids(browser, folder, rounds):
    for nodes, rows, most in ((12, 10_000, 300), (100, 5_000, 1000)):
        first, whole = forbidden(browser, table_of(folder, nodes, rows), rounds)
        what = f"forbid, {nodes} x {rows:,}"
        yield f"{what}, first answer", min(first), statistics.median(first), "ms", most
        yield f"{what}, whole fit", min(whole), statistics.median(whole), "ms", ""


def drags(browser, folder, rounds):
    frames = dragged(browser, table_of(folder, 200, 600))
    yield "drag 200 variables, frame", min(frames), statistics.median(frames), "ms", 34
    late = float(np.quantile(frames, 0.95))
    yield "drag 200 variables, 95 % of frames", late, late, "ms", 50


def memories(browser, folder, rounds):
    rows = 1_000_000  # of a smaller table a copy is less than what the processes vary by
    after, peak = copies(browser, folder, rows)
    yield f"memory held, 12 x {rows:,}", after, after, "copies", 3
    yield f"memory at its peak, 12 x {rows:,}", peak, peak, "copies", 3


PARTS = {"start": starts, "forbid": forbids, "drag": drags, "memory": memories}


def recorded(lines):
    """Write the lines in place of those of the same name; the others stay."""
    known = {}
    if RESULTS.is_file():
        with RESULTS.open(newline="") as file:
            known = {line[0]: line for line in list(csv.reader(file))[1:]}
    known |= {line[0]: line for line in lines}
    with RESULTS.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["what", "least", "median", "unit", "asked"], *known.values()]
        )


def main():
    parser = argparse.ArgumentParser(description="Latency and memory of the workbench.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", action="store_true", help="write the results")
    parser.add_argument("--only", choices=PARTS)
    asked = parser.parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in OPTIONS:
        options.add_argument(word)
    lines = []
    with (
        tempfile.TemporaryDirectory() as folder,
        webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver"))) as browser,
    ):
        for part in [asked.only] if asked.only else PARTS:
            for line in PARTS[part](browser, Path(folder), asked.rounds):
                name, least, middle, unit, most = line
                print(f"{name:<40}{least:9.2f}{middle:9.2f} {unit:<7}asked {most}", flush=True)
                lines.append([name, round(least, 3), round(middle, 3), unit, most])
                if asked.record:
                    recorded(lines)


if __name__ == "__main__":
    main()
