"""The commands of `rescore` as Markdown, read from the program so that none can be forgotten."""

import re
from typing import Any

from typer.main import get_command

from rescore.cli import app


def commands_as_markdown() -> str:
    """A section for every command: what it does, its arguments and its options."""
    return "\n\n".join(_section(name, command) for name, command in commands().items())


def commands() -> dict[str, Any]:
    """The commands by name."""
    return dict(get_command(app).commands)  # type: ignore[attr-defined]


def options_of(command: Any) -> set[str]:
    """All spellings of a command's options."""
    named = (p for p in command.params if p.param_type_name == "option")
    return {"--help", "-h", *(word for p in named for word in (*p.opts, *p.secondary_opts))}


def _section(name: str, command: Any) -> str:
    takes = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    words = " ".join(p.name.upper() if p.required else f"[{p.name.upper()}]" for p in takes)
    usage = f"```sh\nrescore {name} {words} [OPTIONS]\n```"
    table = ["| | |", "|---|---|"]
    table += [_row(f"`{p.name.upper()}`", p.help) for p in takes]
    table += [_row(_spellings(p), f"{p.help} {_default(p)}") for p in options]
    told = _with_code(command.help)
    return "\n\n".join([f"## rescore {name}", told, usage, "\n".join(table)])


def _row(name: str, told: str) -> str:
    return f"| {name} | {_with_code(told.strip()).replace('|', '&#124;')} |"


def _with_code(text: str) -> str:
    """Options that a text mentions as code, so that no typography touches their hyphens."""
    return re.sub(r"(?<!\w)(--[a-z][a-z-]*)", r"`\1`", text)


def _spellings(option: Any) -> str:
    return ", ".join(f"`{word}`" for word in (*option.opts, *option.secondary_opts))


def _default(option: Any) -> str:
    """What happens without the option, where that is more than nothing."""
    if option.required:
        return "Required."
    shown = option.show_default if isinstance(option.show_default, str) else option.default
    return "" if str(shown) in ("None", "False", "") else f"Default: `{shown}`."
