"""The page in a real browser: Debian's chromium with chromium-driver, without a window."""

import json
import re
import shutil
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.reports.page import render_page
from rescore.reports.run import Run, some_rows

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.common.exceptions import TimeoutException  # noqa: E402
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER),
    reason="no browser found: apt-get install chromium chromium-driver",
)

HOSTILE = ["<script>alert(1)</script>", '<img src=x onerror="window.hit=1">', "</script>&\u2028"]
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
PATIENCE = 120  # seconds for what must happen, on a machine that is slow or has more to do
CY = "const cy = document.getElementById('drawing')._cyreg.cy;"
TWO_FRAMES = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
CONTRASTS = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) =>
  c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const found = parse(getComputedStyle(node).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
};
return [...document.body.querySelectorAll('*')].filter((node) => node.checkVisibility() &&
  [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
  .map((node) => {
    const [a, b] = [parse(getComputedStyle(node).color), behind(node)].map(light);
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.textContent.slice(0, 40)];
  });
"""


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in QUIET:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(DRIVER)
    with webdriver.Chrome(options, service) as driver:
        yield driver


@pytest.fixture(scope="module")
def sachs(tmp_path_factory):
    whole = rs.load_sachs()
    # Of all 7,466 rows the groups would take longer to find than the page to look at.
    data = rs.Dataset.from_arrays(whole.X[::4], truth=whole.truth, groups=whole.groups[::4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # far-off cells, which the page reports
        plain = rs.Notears(standardize=True).fit(data.X)
        model = rs.ReScore(rs.Notears(standardize=True)).fit(data.X)
    run = Run(
        model, data.groups, rs.evaluate(data.truth, model), plain=plain.adjacency_matrix_,
        rows=some_rows(data.X),
    )  # fmt: skip
    return saved(tmp_path_factory, render_page(run))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)).cumsum(axis=1) * 1.3, columns=HOSTILE)
    model = rs.Notears(required=[(HOSTILE[0], HOSTILE[1])]).fit(X)
    W = model.adjacency_matrix_.to_numpy()
    stability = np.where(W != 0, 0.9, 0.0)
    stability[0, 1] = 0.4
    plain = np.where(np.abs(W) == np.abs(W).max(), 0.0, W)
    run = Run(
        model, [HOSTILE[0]] * 150, plain=plain, stability=stability, command=HOSTILE[0],
        rows=some_rows(X),
    )  # fmt: skip
    return saved(tmp_path_factory, render_page(run))


def saved(folders, text):
    path = folders.mktemp("page") / "report.html"
    path.write_bytes(text.encode())
    return path


@pytest.fixture
def show(browser):
    """Open a page in a window of this width, light or dark."""

    def show(path, width=1100, colours="light"):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        set_colours(browser, colours)
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(path.as_uri())
        return browser

    return show


def set_colours(browser, colours):
    scheme = {"name": "prefers-color-scheme", "value": colours}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def shown_edges(page):
    """The weights of the edges that are drawn; ``:visible`` would answer for the last frame."""
    shown = "cy.edges().filter((edge) => edge.style('display') !== 'none')"
    return page.execute_script(f"{CY} return {shown}.map((edge) => edge.data('weight'))")


def set_value(page, control, value, event="input"):
    page.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event(arguments[2]))",
        control, value, event,
    )  # fmt: skip


def point_at(page, expression):
    """Move the mouse to a place in the drawing, given by an expression in ``cy``.

    The drawing learns a frame after the fact that the page was scrolled: the mouse waits for it.
    """
    drawing = page.find_element("id", "drawing")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", drawing)
    page.execute_async_script(TWO_FRAMES)
    place = page.execute_script(f"{CY} return {expression}")
    size = drawing.size
    x, y = place["x"] - size["width"] / 2, place["y"] - size["height"] / 2
    chain = webdriver.ActionChains(page, duration=50)
    return chain.move_to_element_with_offset(drawing, round(x), round(y))


def tip_at(page, expression, pattern):
    """Point at a place, leaving and coming back, until the tooltip matches ``pattern``."""
    tip = page.find_element("id", "tooltip")

    def says(_):
        point_at(page, "({x: 2, y: 2})").perform()
        point_at(page, expression).perform()
        return re.search(pattern, tip.text)

    WebDriverWait(page, PATIENCE).until(says)


def click_at(page, expression, shows):
    """Click at a place until the page shows what follows; one click may come between two frames."""

    def clicked(_):
        point_at(page, expression).click().perform()
        with suppress(TimeoutException):
            return WebDriverWait(page, PATIENCE / 4).until(lambda _: shows())

    WebDriverWait(page, PATIENCE).until(clicked)


def test_it_is_small_and_says_nothing_to_the_console(sachs, show):
    assert sachs.stat().st_size < 3_000_000
    page = show(sachs)
    assert shown_edges(page)
    assert page.get_log("browser") == []


def test_it_asks_for_nothing_beyond_itself(sachs, show):
    page = show(sachs)
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert sachs.as_uri() in asked
    assert [url for url in asked if url != sachs.as_uri() and not url.startswith("data:")] == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_filters_hide_edges(hostile, show):
    page = show(hostile)
    weights = shown_edges(page)
    total = len(weights)
    assert total >= 2
    assert page.find_element("id", "shown").text == f"{total} of {total} edges shown"
    set_value(page, "strength", total - 1)
    assert shown_edges(page) == [max(weights, key=abs)]
    assert page.find_element("id", "shown").text == f"1 of {total} edges shown"
    set_value(page, "strength", 0)
    set_value(page, "stability", 50)
    assert len(shown_edges(page)) == total - 1
    set_value(page, "stability", 0)
    tile = page.find_element("css selector", ".tile.firm")
    firm = int(tile.text.split()[0])
    assert 0 < firm < total
    tile.click()
    assert len(shown_edges(page)) == firm
    assert page.find_element("id", "edges-listed").text.startswith(f"{firm} of {total} edges")
    tile.click()
    assert len(shown_edges(page)) == total


def test_colours_follow_the_choice(hostile, show):
    page = show(hostile)
    colour = CY + "return cy.getElementById('e0-1').style('line-color')"
    by_verdict = page.execute_script(colour)
    set_value(page, "colouring", "sign", "change")
    assert page.execute_script(colour) != by_verdict
    set_value(page, "colouring", "constraint", "change")
    assert "required by you" in page.find_element("id", "legend").text
    set_value(page, "colouring", "change", "change")
    assert "only with row weights" in page.find_element("id", "legend").text


def test_names_are_text_and_nothing_else(hostile, show):
    page = show(hostile)
    for name in ("n0", "n1"):
        place = f"cy.getElementById('{name}').renderedPosition()"
        tip_at(page, place, re.escape(HOSTILE[int(name[1])]))
    assert page.execute_script("return window.hit === undefined")
    assert page.execute_script("return document.querySelectorAll('img:not([alt])').length") == 0
    assert HOSTILE[0] in page.find_element("css selector", "td.name").text
    assert page.get_log("browser") == []
    assert page.title.startswith("Causal graph")  # an open alert would raise here


def test_an_edge_answers_to_the_mouse_and_to_a_tap(sachs, show):
    page = show(sachs)
    tip = page.find_element("id", "tooltip")
    assert not tip.is_displayed()
    tip_at(page, "cy.edges('[routed]')[0].renderedMidpoint()", r" [→—] \w+.*\ncoefficient [−\d.]+")
    click_at(page, "({x: 2, y: 2})", lambda: not tip.is_displayed())
    place = "cy.edges('[routed]')[1].renderedMidpoint()"
    click_at(page, place, lambda: "coefficient" in tip.text)


def lines_listed(page):
    rows = page.find_elements("css selector", "#edge-table tbody tr")
    return [row for row in rows if row.is_displayed()]


def test_the_table_sorts_and_searches(sachs, show):
    page = show(sachs)
    every = lines_listed(page)
    for _ in range(2):
        page.find_element("xpath", "//th[.='coefficient']/button").click()
        cells = [row.find_element("css selector", "td.num") for row in lines_listed(page)]
        numbers = [float(cell.get_attribute("data-value")) for cell in cells]
        way = page.find_element("css selector", "th[aria-sort]").get_attribute("aria-sort")
        assert numbers == sorted(numbers, reverse=way == "descending")
    name = every[0].find_element("css selector", "td.name").text
    set_value(page, "edge-search", name.lower())
    assert 0 < len(lines_listed(page)) < len(every)
    assert all(name in row.text for row in lines_listed(page))


def test_table_graph_and_details_choose_the_same_edge(sachs, show):
    page = show(sachs)
    row = page.find_elements("css selector", "#edge-table tbody tr")[2]
    page.execute_script("arguments[0].click()", row)
    name = row.get_attribute("data-edge")
    assert page.execute_script(CY + "return cy.$('.chosen').map((e) => e.id())") == [name]
    panel = page.find_element("id", "details")
    for words in ("coefficient", "without it", "of the variance of", "told by"):
        assert words in panel.text
    dots = len(panel.find_elements("css selector", ".scatter circle"))
    assert dots == 400
    place = "cy.nodes().max((node) => node.degree()).ele.renderedPosition()"
    click_at(page, place, lambda: "effects:" in panel.text or "causes:" in panel.text)
    assert not page.find_elements("css selector", "#edge-table tr.chosen")
    panel.find_element("css selector", ".neighbours button").click()
    chosen = page.execute_script(CY + "return cy.$('edge.chosen').map((e) => e.id())")
    listed = page.find_element("css selector", "#edge-table tr.chosen")
    assert chosen == [listed.get_attribute("data-edge")]
    panel.find_element("css selector", ".close").click()
    assert not panel.is_displayed()


def test_of_many_variables_a_neighbourhood_is_shown_and_the_others_are_found(
    show, tmp_path_factory
):
    W = np.zeros((70, 70))
    W[0, 1:8] = 1.0
    W[np.arange(8, 69), np.arange(9, 70)] = 1.0
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(99, 70))).add_prefix("gene ")
    model = rs.Custom(lambda X: W).fit(X)
    page = show(saved(tmp_path_factory, render_page(Run(model))))
    shown = CY + "return cy.nodes().filter((n) => n.style('display') !== 'none').length"
    assert page.execute_script(shown) == 8
    assert "7 of 68 edges shown, those of gene 0" in page.find_element("id", "shown").text
    set_value(page, "search", "gene 30")
    assert page.execute_script(shown) == 3
    page.find_element("id", "reset").click()
    assert page.execute_script(shown) == 70
    assert page.get_log("browser") == []


def test_pictures_are_handed_out(sachs, show):
    page = show(sachs)
    page.execute_script(
        "window.saved = []; HTMLAnchorElement.prototype.click = function () {"
        "window.saved.push([this.download, this.href.slice(0, 22)]) }"
    )
    for button in ("save-svg", "save-png"):
        page.find_element("id", button).click()
    assert page.execute_script("return window.saved") == [
        ["graph.svg", "data:image/svg+xml;bas"], ["graph.png", "data:image/png;base64,"],
    ]  # fmt: skip


def test_an_edge_of_open_direction_has_no_head_and_says_so(show, tmp_path_factory):
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    model = rs.GES().fit(pd.DataFrame({"a": a, "b": a + rng.normal(size=200)}))
    page = show(saved(tmp_path_factory, render_page(Run(model))))
    head = "return cy.edges('[routed]')[0].style('target-arrow-shape')"
    assert page.execute_script(CY + head) == "none"
    place = "cy.edges('[routed]')[0].renderedMidpoint()"
    tip_at(page, place, r"\w — \w: direction open\ncoefficient [−\d.]+\ndirection open")
    tip_at(page, "cy.nodes()[0].renderedPosition()", "shown with an open direction: 1")


def test_boxes_move_the_view_zooms_and_reset_undoes_both(sachs, show):
    page = show(sachs)
    state = CY + "return [cy.zoom(), ...Object.values(cy.nodes()[0].position())]"
    before = page.execute_script(state)

    def moved(_):
        grab = point_at(page, "cy.nodes()[0].renderedPosition()")
        grab.click_and_hold().move_by_offset(40, 30).release().perform()
        return abs(page.execute_script(state)[1] - before[1]) > 10

    wait = WebDriverWait(page, PATIENCE)
    wait.until(moved)
    page.find_element("id", "zoom-in").click()
    wait.until(lambda _: page.execute_script(state)[0] > before[0])
    page.find_element("id", "reset").click()
    wait.until(lambda _: page.execute_script(state) == pytest.approx(before))


def test_the_wheel_scrolls_the_page_until_the_drawing_is_clicked(sachs, show):
    page = show(sachs)
    point_at(page, "({x: 5, y: 5})").perform()
    drawing = page.find_element("id", "drawing")
    origin = ScrollOrigin.from_element(drawing)

    def zoom_after_turning(by):
        webdriver.ActionChains(page).scroll_from_origin(origin, 0, by).perform()
        return page.execute_script(CY + "return cy.zoom()")

    zoom = page.execute_script(CY + "return cy.zoom()")
    assert {zoom_after_turning(by) for by in (30, -30) * 5} == {zoom}
    point_at(page, "({x: 5, y: 5})").click().perform()
    # The library waits until the page has stopped scrolling, and a few turns to know the wheel.
    WebDriverWait(page, PATIENCE).until(lambda _: zoom_after_turning(30) != zoom)


def test_dark_and_light_even_while_open(sachs, show):
    page = show(sachs, colours="dark")
    colours = CY + (
        "return [getComputedStyle(document.body).backgroundColor, cy.nodes()[0].style('color')]"
    )
    dark = page.execute_script(colours)
    set_colours(page, "light")
    wait = WebDriverWait(page, PATIENCE)
    for place in (0, 1):  # the page, and the names in the drawing
        wait.until(lambda _, place=place: page.execute_script(colours)[place] != dark[place])


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_text_stands_out(hostile, show, colours):
    contrasts = show(hostile, colours=colours).execute_script(CONTRASTS)
    assert len(contrasts) > 30
    assert [pair for pair in contrasts if pair[0] < 4.5] == []


def test_everything_to_use_or_look_at_has_a_name(sachs, show):
    page = show(sachs)
    found = page.find_elements(
        "css selector", "button, input, select, img, [role=region], [role=img], [role=group]"
    )
    shown = [element for element in found if element.is_displayed()]
    assert len(shown) > 12
    assert all(element.accessible_name.strip() for element in shown)


@pytest.mark.parametrize("which", ["sachs", "hostile"])
def test_a_phone_scrolls_in_one_direction_only(which, show, request):
    page = show(request.getfixturevalue(which), width=375)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 375
    assert page.find_element("id", "drawing").size["width"] <= 375


def test_without_scripts_the_picture_stays(sachs, show):
    page = show(sachs)
    assert not page.find_element("id", "static-graph").is_displayed()
    blocked = re.sub(r"script-src [^;]*", "script-src 'none'", sachs.read_text(), count=1)
    still = sachs.with_name("still.html")
    still.write_text(blocked)
    page = show(still)
    picture = page.find_element("css selector", "#static-graph img")
    assert picture.is_displayed()
    assert page.execute_script("return arguments[0].naturalWidth", picture) > 100
    assert not page.find_element("id", "strength").is_displayed()


def test_a_script_that_is_not_ours_does_not_run(sachs, show):
    changed = sachs.with_name("changed.html")
    changed.write_text(sachs.read_text().replace("</main>", "</main><script>hit = 1</script>"))
    assert show(changed).execute_script("return window.hit === undefined")
