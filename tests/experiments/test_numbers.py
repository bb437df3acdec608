"""Every number on README.md and results/README.md is what the records say."""

import re
import runpy
import sys
from functools import cache

import pytest

from tests.experiments import readme_numbers, results_numbers

PAGES = {"README.md": readme_numbers, "results/README.md": results_numbers}


def words(name):
    """The page as one line, without code, addresses of links and emphasis."""
    text = (readme_numbers.ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return " ".join(text.replace("**", "").split())


@cache
def pieces(part):
    return list(part())


@pytest.mark.parametrize(
    ("page", "part"),
    [(page, part) for page, told in PAGES.items() for part in told.SAID],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_a_page_says_is_what_the_records_say(page, part):
    text = words(page)
    assert pieces(part)
    missing = [piece for piece in pieces(part) if piece not in text]
    assert not missing, f"{page} does not say: {missing}"


@pytest.mark.parametrize("page", PAGES)
def test_no_number_stands_on_a_page_without_a_record(page):
    text = words(page)
    for piece in [piece for part in PAGES[page].SAID for piece in pieces(part)]:
        text = text.replace(piece, " ")
    text = re.sub(r"`[^`]*`", " ", text)
    for setting in PAGES[page].SETTINGS:
        text = re.sub(setting, " ", text)
    left = [text[max(0, m.start() - 40) : m.end() + 20] for m in re.finditer(r"\d+", text)]
    assert not left, f"{page} has numbers that no record stands for: {left}"


def test_the_pages_of_the_benchmarks_are_made_from_their_records_alone(tmp_path, monkeypatch):
    root = readme_numbers.ROOT
    monkeypatch.syspath_prepend(root / "benchmarks")
    monkeypatch.setattr(sys, "argv", ["pages.py", "-o", str(tmp_path)])
    runpy.run_path(str(root / "benchmarks" / "pages.py"), run_name="__main__")
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert len(made) == 5
    for name, text in made.items():
        there = (root / "results" / name).read_text(encoding="utf-8")
        headings = [re.findall(r"^#+ .*", page, flags=re.M) for page in (text, there)]
        assert headings[0] == headings[1]
        assert "nan" not in text
