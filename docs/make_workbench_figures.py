"""Draw docs/workbench-*.png: a walk through the workbench; needs chromium, its driver and selenium.

The proteins of Sachs et al. (2005), every sixth row so that nobody waits, on a desk, and two of the
pages on a phone.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

import rescore as rs

HERE = Path(__file__).parent
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--hide-scrollbars")  # fmt: skip
DESK, PHONE = (1280, 900), (390, 844)
START = [sys.executable, "-c", "from rescore.cli import run; run()", "app", "--no-browser"]
SETTLED = "document.body.dataset.graph && !document.body.dataset.graph.endsWith('~')"


class Walk:
    """A browser that walks through the pages."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser, self.address = browser, address

    def size(self, size: tuple[int, int]) -> None:
        """A desk, or a phone."""
        screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    def run(self, code: str) -> Any:
        """Do something in the page."""
        return self.browser.execute_script(code)

    def until(self, condition: str, seconds: float = 300) -> None:
        """Wait for something in the page."""
        end = time.monotonic() + seconds
        while not self.run(f"return {condition}"):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.1)

    def go(self, name: str) -> None:
        """Show a page from its top."""
        self.run(f"location.hash = '#{name}'; scrollTo(0, 0)")
        time.sleep(1)

    def click(self, text: str, inside: str = "main") -> None:
        """Click the button with that text."""
        self.run(
            f"[...document.querySelectorAll('{inside} button')]"
            f".find((e) => e.textContent.startsWith('{text}')).click()"
        )

    def photograph(self, name: str, top: str = "") -> None:
        """A screenshot in few colours, so that it stays small; from a named element on."""
        if top:
            self.run(f"document.querySelector('{top}').scrollIntoView()")
        time.sleep(0.7)
        picture = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("RGB")
        picture.quantize(256).save(HERE / f"workbench-{name}.png", optimize=True)


def walked(walk: Walk) -> None:
    """From an empty page to the history."""
    walk.size(DESK)
    walk.browser.get(walk.address)
    walk.until("document.body.dataset.ready")
    walk.until("document.querySelectorAll('.card').length > 5")
    walk.click("Groups")
    walk.until("document.querySelector('.findings')")
    walk.photograph("table", "#columns-title")
    walk.go("graph")
    walk.until("document.getElementById('learner').options.length")
    walk.click("Fit")
    walk.until(SETTLED)
    walk.run("[...document.querySelectorAll('#edges tbody tr')]"
             ".find((e) => e.textContent.startsWith('PKC')).click()")  # fmt: skip
    walk.photograph("graph", "#tiles")
    walk.click("Forbid", "#details")
    walk.until("document.querySelector('#known').textContent.includes('costs')")
    walk.until(SETTLED)
    walk.photograph("forbidden", "#tiles")
    walk.go("rows")
    walk.until("document.querySelectorAll('.bars .bar').length > 3")
    walk.run("[...document.querySelectorAll('.choices button')]"
             ".find((e) => e.textContent.includes('set aside')).click()")  # fmt: skip
    walk.until("document.querySelector('[data-at=apart]').textContent.includes('latent')")
    walk.photograph("rows", ".choices")
    walk.photograph("apart", ".rows-two")
    walk.go("compare")
    walk.until("document.querySelector('.choices-form')")
    walk.click("Compare")
    walk.until("document.querySelectorAll('.multiples figure').length === 4")
    walk.photograph("compare")
    walk.go("history")
    walk.photograph("history")
    walk.size(PHONE)
    walk.go("graph")
    walk.photograph("graph-phone", "#tiles")
    walk.go("rows")
    walk.until("document.querySelectorAll('.bars .bar').length > 3")
    walk.photograph("rows-phone", ".choices")


def main() -> None:
    """Start a workbench, walk, end it."""
    data = rs.load_sachs()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "sachs.csv")
        data.X.assign(condition=list(data.groups))[::6].to_csv(table, index=False)
        show(table)


def show(table: Path) -> None:
    """Walk through the workbench with this table."""
    server = subprocess.Popen([*START, str(table)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found is not None
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for word in OPTIONS:
        options.add_argument(word)
    service = webdriver.ChromeService(str(shutil.which("chromedriver")))
    try:
        with webdriver.Chrome(options, service) as browser:
            walked(Walk(browser, found[0]))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
