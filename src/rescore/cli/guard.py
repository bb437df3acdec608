"""How every command ends: an exit code, and one line instead of a traceback.

0 all went well; 1 something failed while running; 2 the input or the call was wrong; 130 stopped
by Ctrl-C.  ``--debug`` shows the traceback as well.
"""

import ast
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["GuardedGroup", "in_flags", "one_line"]

# typer carries click inside itself or beside itself, depending on its version.
UsageFault: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
BAD_INPUT = (ValueError, TypeError, OSError, ImportError)
LONGEST_LINE = 3000


class GuardedGroup(TyperGroup):
    """The commands; whatever they raise ends here.  ``ctx.obj`` is the command line as text."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code."""
        words = sys.argv[1:] if args is None else list(args)
        extra["obj"] = shlex.join(["rescore", *words])

        def command() -> Any:
            return super(GuardedGroup, self).main(words, "rescore", standalone_mode=False, **extra)

        code = _exit_code(command, debug="--debug" in words)
        if standalone_mode:
            sys.exit(code)
        return code


def one_line(text: object) -> str:
    r"""The text on one line, without anything a terminal would obey.

    Examples
    --------
    >>> print(one_line("two\nlines and \x1b[31m red"))
    two lines and \x1b[31m red
    """
    line = " ".join(str(text).split())[:LONGEST_LINE]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


ARGUMENTS = (
    "missing", "categories", "drop", "na", "decimal", "thousands", "delimiter", "encoding", "sheet",
    "header", "standardize", "weighting", "noise", "tau", "max_steps", "threshold", "lambda1",
)  # fmt: skip
VALUE = r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|True|False|[\d.]*\d"
WORDS = re.compile(rf"\b({'|'.join(ARGUMENTS)})=({VALUE})")
SPOKEN = {"header": "no-header", "sample_weight": "weights"}  # where a flag is called otherwise
ASKED = {"groups=...": "--groups COLUMN", "sample_weight=...": "--weights COLUMN"}


def in_flags(text: str) -> str:
    """A sentence about arguments in Python as one about flags on the command line.

    Examples
    --------
    >>> in_flags("Fit with standardize=True, or missing='em' and drop=['a', 'b c'].")
    "Fit with --standardize, or --missing em and --drop 'a,b c'."
    """
    for python, flag in ASKED.items():
        text = text.replace(f"fit(X, {python})", flag).replace(python, flag)
    return WORDS.sub(lambda found: as_flag(found[1], _literal(found[2])) or found[0], text)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def as_flag(name: str, value: Any) -> str:
    """The flag that says the same as an argument in Python.

    Examples
    --------
    >>> as_flag("header", False), as_flag("max_steps", 5), as_flag("delimiter", ";")
    ('--no-header', '--max-steps 5', "--delimiter ';'")
    """
    from rescore.text import in_commas

    flag = SPOKEN.get(name, name.replace("_", "-"))
    if isinstance(value, bool):
        plain = value or flag.startswith("no-")
        return f"--{flag}" if plain else f"--no-{flag}"
    if isinstance(value, list):
        return f"--{flag} {shlex.quote(in_commas(value))}"
    return f"--{flag} {shlex.quote('tab' if value == chr(9) else str(value))}"


def _exit_code(command: Callable[[], Any], debug: bool) -> int:
    try:
        code = command()
        sys.stdout.flush()
    except UsageFault as error:
        return _complain(f"error: {error.format_message()}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _complain(*_described(error))
    if code == 130:
        return _complain("interrupted: stopped by Ctrl-C.", 130)
    return code if isinstance(code, int) else 0


def _described(error: Exception) -> tuple[str, int]:
    """What to say about an exception, and the exit code."""
    text = str(error) or type(error).__name__
    if isinstance(error, ConnectionError):  # the call was right
        return f"error: {text}", 1
    if isinstance(error, BAD_INPUT):
        return f"error: {text}", 2
    return f"error: {type(error).__name__}: {text} (unexpected; run again with --debug)", 1


def _complain(text: str, code: int) -> int:
    print(one_line(in_flags(text)), file=sys.stderr)
    return code
