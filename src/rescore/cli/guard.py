"""How every command ends: an exit code, and one line instead of a traceback.

0 all went well; 1 something failed while running; 2 the input or the call was wrong; 130 stopped
by Ctrl-C.  ``--debug`` shows the traceback as well.
"""

import os
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["GuardedGroup", "one_line"]

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
    if isinstance(error, BAD_INPUT):
        return f"error: {text}", 2
    return f"error: {type(error).__name__}: {text} (unexpected; run again with --debug)", 1


def _complain(text: str, code: int) -> int:
    print(one_line(text), file=sys.stderr)
    return code
