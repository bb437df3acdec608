"""The end of ``rescore fit``: files first, then what was found, then what takes longer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["finish"]


def finish(
    run: Any,
    output: Path | None,
    as_json: bool,
    compared: Callable[[], Any] | None = None,
    doubted: Callable[[], Any] | None = None,
) -> None:
    """Write the files, even if Ctrl-C is pressed meanwhile, and say what was found.

    ``compared`` and ``doubted`` take long, so they are called when the files are there; if Ctrl-C
    ends the latter, what it has found by then is told before the command stops.
    """
    from rescore.cli.bootstrap import print_stability, stability_as_data, written
    from rescore.cli.compare import comparison_as_data, print_comparison
    from rescore.cli.printing import print_json
    from rescore.cli.summary import print_run, run_as_data
    from rescore.cli.terminal import uninterrupted
    from rescore.report.files import write_run

    files = []
    if output is not None:
        with uninterrupted():
            files = write_run(output, run)
    if not as_json:
        print_run(run, output, files)
    stability, added = (None, []) if doubted is None else written(doubted(), run, output)
    stopped = stability is not None and stability.interrupted
    if not as_json and stability is not None:
        print_stability(stability, added, run, output)
    comparison = compared() if compared is not None and not stopped else None
    if as_json:
        data = run_as_data(run, output, sorted({*files, *added}))
        more = {} if stability is None else {"stability": stability_as_data(stability)}
        more |= {} if comparison is None else {"comparison": comparison_as_data(comparison)}
        print_json(data | more)
    elif comparison is not None:
        print_comparison(comparison)
    if stopped:
        raise KeyboardInterrupt
