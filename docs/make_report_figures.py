"""Draw docs/report*.png: reports as a browser shows them; needs chromium, its driver and selenium.

The proteins of Sachs et al. (2005) for the front page; 50 and 200 simulated variables, on a desk
and on a phone.
"""

import io
import shutil
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

import rescore as rs

HERE = Path(__file__).parent
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--hide-scrollbars")  # fmt: skip
DESK, PHONE = (1280, 860), (390, 844)
CHOOSE = (
    "const data = JSON.parse(document.getElementById('graph-data').textContent);"
    "const first = data.edges.find((edge) => edge.verdict === 'firm');"
    "document.dispatchEvent(new CustomEvent('choose', { detail: first.id }))"
)


def page_of(name: str, folder: Path) -> Path:
    """The report of the proteins, or of so many simulated variables in two hidden groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "sachs":
            X, resamples = rs.load_sachs().X, 0
        else:
            X = rs.simulate(
                "ER", degree=1, nodes=int(name), samples=1000, groups=(0.8, 0.2), noise_scale=0.4,
                random_state=3,
            ).X  # fmt: skip
            resamples = 20 if int(name) <= 50 else 0
        model = rs.ReScore(rs.Linear()).fit(X)
        found = rs.bootstrap(model, X, resamples=resamples) if resamples else None
    source = "Sachs et al. (2005)" if name == "sachs" else "a simulation"
    return rs.report(model, X, folder / f"{name}.html", stability=found, source=source)


def photograph(browser: Any, page: Path, size: tuple[int, int], path: Path, script: str) -> None:
    """A screenshot in few colours, so that it stays small."""
    screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(page.as_uri())
    time.sleep(1)
    if script:
        browser.execute_script(script)
        time.sleep(1)
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    picture.quantize(256).save(path, optimize=True)


def main() -> None:
    """All pictures."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in OPTIONS:
        options.add_argument(word)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as name, webdriver.Chrome(options, service) as browser:
        folder = Path(name)
        sachs = page_of("sachs", folder)
        photograph(browser, sachs, DESK, HERE / "report.png", CHOOSE)
        for count in ("50", "200"):
            page = page_of(count, folder)
            photograph(browser, page, DESK, HERE / f"report-{count}.png", "")
            photograph(browser, page, PHONE, HERE / f"report-{count}-phone.png", "")


if __name__ == "__main__":
    main()
