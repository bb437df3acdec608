"""The documentation agrees with the program: names, commands, options, links and navigation."""

import doctest
import importlib
import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rescore
from rescore.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = sorted(DOCS.rglob("*.md"))
PAGES = [ROOT / "README.md", *SITE]
COMMANDS = runpy.run_path(str(DOCS / "command_reference.py"))
LEARNERS = runpy.run_path(str(DOCS / "learner_reference.py"))
FENCE = re.compile(r"^(```+)([^\n`]*)\n(.*?)^\1 *$", flags=re.DOTALL | re.MULTILINE)
SHELL_WORDS = {"|", "&&", ";", ">", "2>"}


def fences(path: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return [(language.strip(), text) for _, language, text in FENCE.findall(path.read_text())]


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text())


def written_commands(path: Path) -> list[list[str]]:
    """Every `rescore ...` in a shell block, an indented block or a code span, as words."""
    blocks = [text for language, text in fences(path) if language == "sh"]
    blocks += re.findall(r"^ {4}(rescore .*)$", prose(path), flags=re.MULTILINE)
    blocks += re.findall(r"`(rescore [^`]+)`", prose(path))
    lines = (line for block in blocks for line in block.splitlines())
    words = (shlex.split(line, comments=True) for line in lines if line.startswith("rescore "))
    return [_first_command(line) for line in words]


def _first_command(words: list[str]) -> list[str]:
    ends = [place for place, word in enumerate(words) if word in SHELL_WORDS]
    return words[: min(ends, default=len(words))]


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_commands_and_options_that_are_written_exist(path):
    commands = COMMANDS["commands"]()
    for _, *words in written_commands(path):
        if words[0].startswith("-"):
            assert words[0] in ("--help", "-h", "--version"), words
            continue
        if words[0] == "COMMAND":  # a placeholder
            continue
        assert words[0] in commands, f"{path.name}: rescore has no command {words[0]}"
        known = COMMANDS["options_of"](commands[words[0]])
        given = {word.split("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert given <= known, f"{path.name}: rescore {words[0]} has no {given - known}"


def test_the_search_for_commands_finds_them():
    found = [words for path in PAGES for words in written_commands(path)]
    assert len(found) > 20
    assert {"check", "fit", "evaluate", "report", "reproduce"} <= {words[1] for words in found}


def test_the_command_reference_names_every_command_and_option():
    page = COMMANDS["commands_as_markdown"]()
    for name, command in COMMANDS["commands"]().items():
        section = page.split(f"## rescore {name}\n")[1].split("\n## ")[0]
        for option in COMMANDS["options_of"](command) - {"--help", "-h"}:
            assert f"`{option}`" in section
    assert "<!-- commands -->" in (DOCS / "reference/command-line.md").read_text()


def test_the_first_five_minutes_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in written_commands(DOCS / "five-minutes.md"):
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, (words, done.output, done.exception)
    assert Path("run/report.html").is_file()


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_no_block_hides_from_the_tests(path):
    """A block in Python starts with exactly what test_examples.py looks for."""
    known = {"python", "sh", "toml", "text", "{toctree}", "{eval-rst}"}
    assert {language for language, _ in fences(path)} <= known
    assert not re.search(r"^[ >]+```|^~~~", path.read_text(), flags=re.MULTILINE)
    for language, text in fences(path):
        parsed = doctest.DocTestParser().get_examples(text)
        assert language in ("python", "{eval-rst}") or not parsed
    assert ">>>" not in prose(path)


def toctree_entries(path: Path) -> list[Path]:
    trees = [text for language, text in fences(path) if language == "{toctree}"]
    lines = [line.strip() for tree in trees for line in tree.splitlines()]
    names = [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and line[0] != ":"]
    return [path.parent / f"{name}.md" for name in names]


def test_every_page_is_reached_from_the_index_once():
    reached = [DOCS / "index.md"]
    for path in reached:  # grows while it is read
        reached += toctree_entries(path)
    assert sorted(reached) == SITE


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub and MyST give to headings."""
    headings = re.findall(r"^#+ (.*)$", prose(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_relative_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file) if file else path
        assert there.exists(), f"{path.name} links to {target}"
        assert not anchor or anchor in anchors(there), f"{path.name}: no heading {target}"


@pytest.mark.parametrize("path", SITE, ids=ids)
def test_a_page_of_the_site_links_to_no_markdown_outside_it(path):
    """Sphinx makes pages of docs/ alone; of what lies elsewhere it can only hand over the file."""
    for target in re.findall(r"\]\(([^)\s#]+\.md)\)", prose(path)):
        assert (path.parent / target).resolve().is_relative_to(DOCS), f"{path.name}: {target}"


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_dotted_names_exist(path):
    for name in set(re.findall(r"`(rescore(?:\.\w+)+)`", path.read_text())):
        _resolve(name)


def _resolve(name: str) -> object:
    """The module, class or function of that name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        return getattr(_resolve(parent), last)


def test_the_reference_has_every_public_name_once():
    pages = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    assert "<!-- table of learners -->" in pages
    pages = pages.replace("<!-- learners -->", LEARNERS["learners_as_markdown"]())
    listed = re.findall(r"^\.\. auto(?:class|function):: (?:rescore\.)?(\w+)$", pages, re.MULTILINE)
    assert sorted(listed) == sorted(rescore.__all__)


def test_pages_read_without_a_network():
    """Nothing on a page is loaded from elsewhere; links that a reader clicks are another matter."""
    for path in SITE:
        assert not re.search(r"!\[[^\]]*\]\(https?:", path.read_text()), path
    settings = (DOCS / "conf.py").read_text()
    assert "http" not in settings
