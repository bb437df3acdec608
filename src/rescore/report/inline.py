"""Scripts and styles inside a page, and a policy that lets exactly these in and nothing else."""

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["asset", "json_text", "policy"]


def asset(name: str) -> "Markup":
    """A file of this package, to go into the page as it is.

    Examples
    --------
    >>> "prefers-color-scheme: dark" in asset("style.css")
    True
    """
    from markupsafe import Markup

    text = files("rescore.report").joinpath(name).read_text(encoding="utf-8")
    if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
        raise ValueError(f"{name} would end the element that holds it; it cannot be put in a page.")
    return Markup(text)


def json_text(data: Any) -> "Markup":
    r"""JSON that no HTML parser mistakes for the end of its element, nor a script for a new line.

    Examples
    --------
    >>> print(json_text(["</script>", "\u2028", "&"]))
    ["\u003c/script\u003e", "\u2028", "\u0026"]
    """
    from markupsafe import Markup

    text = json.dumps(data, allow_nan=False)  # ASCII alone, so that U+2028 is an escape already
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """A Content-Security-Policy: these scripts and styles, pictures in the page, nothing else.

    Examples
    --------
    >>> policy([], ["p { margin: 0 }"])
    "default-src 'none'; script-src 'none'; style-src 'sha256-...'; img-src data:; ..."
    """
    return (
        f"default-src 'none'; script-src {_sources(scripts)}; style-src {_sources(styles)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sources(texts: Iterable[str]) -> str:
    sums = [hashlib.sha256(text.encode()).digest() for text in texts]
    return " ".join(f"'sha256-{base64.b64encode(s).decode()}'" for s in sums) or "'none'"
