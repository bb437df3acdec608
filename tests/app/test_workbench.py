"""The workbench as a person uses it: Debian's chromium without a window, mouse, keyboard, phone."""

import shutil
import time

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.common.exceptions import (  # noqa: E402
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no browser found: apt-get install chromium chromium-driver"
)
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
MADE_ANEW = (  # what a touch meets while the page is being drawn again
    StaleElementReferenceException, NoSuchElementException,
    ElementClickInterceptedException, ElementNotInteractableException,
)  # fmt: skip
CY = "const cy = document.getElementById('drawing')._cyreg.cy;"
SETTLED = "document.body.dataset.graph && !document.body.dataset.graph.endsWith('~')"
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror="window.hit=1">', "=cmd()", "a,b"]
UNNAMED = """
return [...document.querySelectorAll('button, a, input, select, [role=img], [role=region]')]
  .filter((e) => e.checkVisibility() && !(e.ariaLabel || e.textContent.trim() || e.labels?.length))
  .map((e) => e.outerHTML.slice(0, 120))
"""


class Page:
    """A tab, and what a person does in it."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, running, where="load", width=1200, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get_log("browser")
        self.driver.get("about:blank")
        self.driver.get(f"{running.address}#{where}")
        self.until("document.body.dataset.ready")
        return self

    def run(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def until(self, condition, seconds=120):
        found = WebDriverWait(self.driver, seconds, 0.1).until
        return found(lambda _: self.run(f"return {condition}"), f"in vain: {condition}")

    def still(self, act, seconds=120):
        """Do it; if the page was drawn again meanwhile, as it is after every answer, once more."""
        end = time.monotonic() + seconds
        while True:
            try:
                return act()
            except MADE_ANEW:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def at(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def touch(self, css):
        self.still(lambda: self.at(css).click())

    def text(self, css):
        return self.still(lambda: self.at(css).text)

    def shows(self, css, text, seconds=120):
        """Wait until the text is seen there."""
        found = WebDriverWait(self.driver, seconds, 0.1).until
        found(lambda _: text in self.text(css), f"{css} never shows {text!r}")

    def button(self, text, inside="main"):
        """The button or link with that text, found at once: pages change while one looks."""
        found = self.run(
            "return [...document.querySelectorAll(`${arguments[1]} button, ${arguments[1]} a`)]"
            ".find((e) => e.checkVisibility() && e.textContent.startsWith(arguments[0]))",
            text, inside,
        )  # fmt: skip
        if found is None:
            raise NoSuchElementException(f"no button {text!r}")
        return found

    def click(self, text, inside="main"):
        self.still(lambda: self.button(text, inside).click())

    def go(self, name):
        self.touch(f'nav a[href="#{name}"]')

    def edges(self):
        names = "const n = (e) => e.data('name');"
        return {tuple(e) for e in self.run(
            f"{CY}{names} return cy.edges('[routed]').map((e) => [n(e.source()), n(e.target())])"
        )}  # fmt: skip

    def places(self):
        return self.run(f"{CY} return cy.nodes().map((n) => [n.data('name'), n.position()])")

    def click_edge(self, cause, effect):
        """As a person would: with the mouse, on the line; again if the page moved under it."""
        shown = f"document.querySelector('#details h3')?.textContent.includes({effect!r})"
        end = time.monotonic() + 120
        while True:
            self.still(lambda: self.point_at(cause, effect).click().perform())
            try:
                return self.until(shown, 5)
            except TimeoutException:
                if time.monotonic() > end:
                    raise

    def point_at(self, cause, effect):
        box = self.at("#drawing")
        self.run("arguments[0].scrollIntoView({block: 'center'})", box)
        spot = self.run(
            f"{CY} const at = (name) => cy.nodes().filter((n) => n.data('name') === name);"
            "return at(arguments[0]).edgesTo(at(arguments[1])).renderedMidpoint()", cause, effect,
        )  # fmt: skip
        x, y = spot["x"] - box.size["width"] / 2, spot["y"] - box.size["height"] / 2
        chain = webdriver.ActionChains(self.driver, duration=50)
        return chain.move_to_element_with_offset(box, round(x), round(y))

    def press(self, key):
        webdriver.ActionChains(self.driver).send_keys(key).perform()

    def undo(self):
        chain = webdriver.ActionChains(self.driver).key_down(Keys.CONTROL)
        chain.send_keys("z").key_up(Keys.CONTROL).perform()

    def until_edges(self, test):
        """Wait for a graph whose edges pass."""
        WebDriverWait(self.driver, 120, 0.1).until(lambda _: test(self.edges()))

    def tab_to(self, test, most=400):
        """Press the tab key until the focused element passes; ``e`` is the element."""
        for _ in range(most):
            if self.run(f"const e = document.activeElement; return Boolean({test})"):
                return
            self.press(Keys.TAB)
        raise AssertionError(f"the tab key does not lead to {test}")

    def enter(self, test, condition):
        """Tab to the element and press Enter; what is drawn again meanwhile keeps the focus."""
        self.tab_to(test)
        self.press(Keys.ENTER)
        self.until(condition)

    def log(self):
        return [line["message"] for line in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def page():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in QUIET:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(DRIVER)) as driver:
        yield Page(driver)


@pytest.fixture
def fitted(page, running, two_groups):
    """A page with the graph of the table; what a test before has fitted is not fitted again."""
    if running.state()["source"] == "two groups.csv":
        running.post("go", at=0)
    else:
        running.load("two groups.csv", two_groups.to_csv(index=False).encode())
    running.post("step", step={"do": "groups", "column": "batch"})
    running.post("fit")
    running.wait(lambda now: now["fit"] and not now["fit"]["quick"])
    page.open(running, "graph").until(SETTLED)
    return page


def test_a_file_is_repaired_and_fitted_by_clicks(page, running, two_groups, tmp_path):
    broken = two_groups.assign(id=[f"case {k}" for k in range(400)])
    broken.loc[::9, "beta"] = None
    broken.to_csv(tmp_path / "broken.csv", index=False)
    page.open(running)
    page.at("#file").send_keys(str(tmp_path / "broken.csv"))
    page.until("document.querySelectorAll('.card').length === 6")
    page.shows("#table-told", "400 rows, 6 columns.")
    page.until("document.querySelector('.findings li')")
    page.shows("#columns", "45 cell(s)")
    assert page.run(UNNAMED) == []
    page.click("Repair all")
    page.until("document.querySelectorAll('.card.out').length === 1")
    page.until("document.getElementById('findings').textContent.includes('Nothing') || "
               "!document.querySelector('.findings .error')")  # fmt: skip
    page.click("Bring back")
    page.until("document.querySelectorAll('.card.out').length === 0")
    page.touch("#undo")
    page.until("document.querySelectorAll('.card.out').length === 1")
    page.touch('select[aria-label="Change alpha"] option[value=asinh]')
    page.go("graph")
    page.click("Fit")
    page.until(SETTLED)
    assert page.edges()
    assert page.run("return performance.getEntriesByType('resource').every((r) => "
                    "new URL(r.name).host === location.host)")  # fmt: skip
    page.go("history")
    page.until("document.querySelector('.steps')")
    page.shows(".steps", "alpha: asinh")
    assert page.log() == []


def test_an_edge_is_forbidden_and_turned_with_the_mouse(fitted):
    page = fitted
    before, places = page.edges(), page.places()
    assert ("alpha", "beta") in before
    page.click_edge("alpha", "beta")
    page.click("Forbid", "#details")
    page.until("document.getElementById('changes').textContent.includes('Since')")
    page.until_edges(lambda now: ("alpha", "beta") not in now)
    assert page.places() == places
    page.until("document.getElementById('drawing')._cyreg.cy.edges('.gone, .turned').length")
    page.until("document.querySelector('#known').textContent.includes('costs')")
    page.shows("#known", "alpha → beta forbidden")
    page.undo()
    page.until_edges(lambda now: now == before)
    page.until("!document.getElementById('known').textContent.includes('forbidden')")
    page.click_edge("beta", "gamma")
    page.click("Turn round", "#details")
    page.until_edges(lambda now: ("gamma", "beta") in now)
    page.shows("#known", "gamma → beta required")
    page.shows("#changes", "turned round")
    assert page.log() == []


def test_tiers_by_dragging_and_by_the_keyboard(fitted):
    page = fitted

    def drag():
        chip = page.button("delta", "#tiers")
        page.run("arguments[0].scrollIntoView({block: 'center'})", chip)
        target = page.driver.find_elements(By.CSS_SELECTOR, ".tier")[-1]
        webdriver.ActionChains(page.driver, duration=60).drag_and_drop(chip, target).perform()

    page.still(drag)
    page.until("document.querySelectorAll('.tier').length === 3")
    page.shows(".tier[data-tier='1']", "delta")
    page.still(lambda: page.run("arguments[0].focus()", page.button("alpha", "#tiers")))
    page.press(Keys.ARROW_RIGHT)
    page.until("document.querySelector('.tier[data-tier=\"1\"]').textContent.includes('alpha')")
    page.until("document.activeElement.textContent === 'alpha'")
    page.press(Keys.ARROW_RIGHT)
    page.until("document.querySelector('.tier[data-tier=\"2\"]')?.textContent.includes('alpha')")
    page.until_edges(lambda now: ("alpha", "delta") not in now)
    page.shows("#known", "2 tiers")


def test_rows_are_chosen_told_apart_left_out_and_taken_back(fitted, running):
    page = fitted
    page.go("rows")
    page.until("document.querySelectorAll('.bars .bar').length === 5")

    def choose_smallest():
        groups = page.driver.find_elements(By.CSS_SELECTOR, ".choices button")
        named = [group for group in groups if group.text.startswith("Group")]
        min(named, key=lambda group: int(group.text.split()[2])).click()

    page.still(choose_smallest)
    page.until("document.querySelector('[data-at=apart]').textContent.includes('latent group')")
    page.shows("[data-at=apart]", "times as wide")
    assert page.run("return document.querySelectorAll('[data-at=table] tbody tr').length") > 20

    def draw_a_box():
        canvas = page.at("[data-at=picture]")
        page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
        wide = canvas.size["width"]
        chain = webdriver.ActionChains(page.driver, duration=60)
        chain.move_to_element_with_offset(canvas, round(wide * 0.42), -100).click_and_hold()
        chain.move_by_offset(round(wide * 0.07), 205).release().perform()

    page.still(draw_a_box)
    page.until("document.querySelector('[data-at=apart]').textContent.includes('in the picture')")
    before = page.edges()
    page.click("Leave these")
    page.until("document.querySelector('[data-at=out]').textContent.includes('left out')")
    page.until(SETTLED)
    running.wait(lambda now: now["fit"]["rows"]["used"] < 400)
    page.touch("#undo")
    page.until("!document.querySelector('[data-at=out]').textContent.includes('left out')")
    page.until_edges(lambda now: now == before)
    assert page.log() == []


def test_learners_side_by_side_and_the_way_back(fitted):
    page = fitted
    page.go("compare")
    page.until("document.querySelector('.choices-form')")

    def choose_two():
        for box in page.driver.find_elements(By.CSS_SELECTOR, ".choices-form input"):
            if box.is_selected() != (box.get_attribute("value") in ("Linear", "SortNRegress")):
                box.click()

    page.still(choose_two)
    page.click("Compare")
    page.until("document.querySelectorAll('.multiples figure').length === 2")
    page.shows("#page-compare", "joined by all 2 learners")
    page.go("history")
    page.until("document.querySelector('pre').textContent.includes('import rescore')")
    page.until("/groups/i.test(document.querySelector('.steps').textContent)")
    page.click("Open two groups.csv")
    page.until("document.querySelector('.steps .undone')")
    page.touch("#redo")
    page.until("!document.querySelector('.steps .undone')")
    assert page.run(UNNAMED) == []


def test_a_reload_and_a_second_tab_show_the_same(fitted, running):
    page = fitted
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.open(running, "graph").until(SETTLED)
    edges = page.edges()
    running.post("step", step={"do": "forbid", "edges": [["gamma", "delta"]]})
    page.until("document.querySelector('#known').textContent.includes('gamma → delta forbidden')")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.until("document.querySelector('#known').textContent.includes('gamma → delta forbidden')")
    page.until_edges(lambda now: now != edges)
    page.driver.refresh()
    page.until("document.body.dataset.ready")
    page.until("document.querySelector('#known').textContent.includes('gamma → delta forbidden')")
    page.until_edges(lambda now: now and now != edges)


def test_on_a_phone_nothing_is_cut_off(fitted, running):
    page = fitted.open(running, "load", 390, 844)
    for name in ("load", "graph", "rows", "compare", "history"):
        page.go(name)
        page.until(f"!document.getElementById('page-{name}').hidden")
        page.until("document.querySelectorAll('main section:not([hidden]) *').length > 5")
        wide = page.run("return document.documentElement.scrollWidth")
        assert wide <= 390, name
    page.go("graph")
    page.until(SETTLED)
    page.click_edge("alpha", "beta")
    assert page.button("Forbid", "#details").is_displayed()
    assert page.log() == []


def test_the_keyboard_alone_is_enough(page, running, two_groups):
    running.load("t.csv", two_groups.drop(columns="batch").to_csv(index=False).encode())
    page.open(running)
    page.until("document.querySelectorAll('.card').length === 4")
    page.enter("e.textContent === 'Graph'", "document.getElementById('learner').options.length")
    page.enter("e.id === 'fit'", SETTLED)
    before = page.edges()
    page.enter("e.matches('#edges tbody tr')", "document.querySelector('#details h3')")
    page.enter("e.textContent === 'Forbid' && e.closest('#details')",
               "document.getElementById('known').textContent.includes('forbidden')")  # fmt: skip
    page.until_edges(lambda now: now != before)
    page.shows("#known", "forbidden")
    page.undo()
    page.until_edges(lambda now: now == before)


def test_names_that_are_scripts_are_shown_and_not_run(page, running, two_groups):
    hostile = two_groups.drop(columns="batch").set_axis(HOSTILE, axis=1)
    running.load(HOSTILE[0] + ".csv", hostile.to_csv(index=False).encode())
    running.post("fit")
    page.open(running)
    page.until("document.querySelectorAll('.card').length === 4")
    page.shows("#title", HOSTILE[0])
    for name in ("graph", "rows", "compare", "history"):
        page.go(name)
        page.until(f"!document.getElementById('page-{name}').hidden")
    page.go("graph")
    page.until(SETTLED)
    page.shows("#tiers", HOSTILE[1])
    assert page.run(
        "return window.hit === undefined && document.querySelectorAll('main img').length === 0"
    )
    assert page.log() == []


DROP = """
const data = new DataTransfer(), drop = document.getElementById('drop');
data.items.add(new File([arguments[0]], 'dropped.csv'));
for (const name of ['dragenter', 'dragover', 'drop']) {
  const event = new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true });
  drop.dispatchEvent(event);
  if (!event.defaultPrevented) { throw new Error(`${name} would leave the page`); }
}
"""


def test_a_file_is_dropped_onto_the_page(page, running, two_groups):
    running.load("before.csv", two_groups.to_csv(index=False).encode())
    page.open(running)
    page.until("document.querySelectorAll('.card').length === 5")
    page.run(DROP, two_groups[["alpha", "beta"]].to_csv(index=False))
    page.shows("#title", "dropped.csv")
    page.until("document.querySelectorAll('.card').length === 2")
    assert not page.run("return document.querySelector('.drop.over, .drop.loading')")
    page.run(DROP.replace("dropped.csv", "dropped.exe"), "no table")
    page.shows("#error", "does not end in")
    page.shows("#title", "dropped.csv")


def test_what_somebody_uses_stays_while_the_page_is_drawn_again(page, running, two_groups):
    running.load("t.csv", two_groups.to_csv(index=False).encode())
    page.open(running)
    page.until("document.querySelectorAll('.card').length === 5")
    running.wait(lambda now: now["findings"])
    page.until("!document.getElementById('findings').textContent.includes('being checked')")
    held = "document.querySelector('select[aria-label=\"Change alpha\"]')"
    page.run(f"window.held = {held}; held.focus()")
    running.post("step", step={"do": "groups", "column": "batch"})
    page.until("document.getElementById('columns').textContent.includes('labels of groups')")
    assert page.run(f"return document.activeElement === window.held && {held} === window.held")
    running.post("step", step={"do": "transform", "column": "alpha", "by": "asinh"})
    page.until(f"{held}.value === 'asinh'")
    assert page.run(f"return document.activeElement === {held}")  # another one, made in its place
    running.post("fit")
    page.go("graph")
    page.until(SETTLED)
    page.run("window.cause = document.getElementById('cause').options[0]")
    page.run("document.querySelector('#edges tbody tr').focus()")
    focused = page.run("return document.activeElement.dataset.edge")
    running.post("bootstrap", resamples=3)
    page.until("document.getElementById('doubt').textContent.includes('3 resamples')")
    assert page.run("return document.activeElement.dataset.edge") == focused
    running.post("step", step={"do": "forbid", "edges": [["alpha", "delta"]]})
    page.until("document.querySelector('#known').textContent.includes('costs')")
    assert page.run("return document.getElementById('cause').options[0] === window.cause")
