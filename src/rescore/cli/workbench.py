"""``rescore app``: the workbench in a browser, on this machine alone."""

import shutil
import tempfile
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from rescore.cli.options import DebugOption, folder_named

__all__ = ["app_command"]


def app_command(
    data: Annotated[
        Path | None, typer.Argument(help="A table to begin with; others can be dragged in.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="0 is any that is free.", show_default=True)
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page.")
    ] = True,
    folder: Annotated[
        Path | None,
        typer.Option(
            parser=folder_named, metavar="PATH",
            help="Where the session is kept, to go on with it another day.",
            show_default="one that is removed at the end",
        ),
    ] = None,
    debug: DebugOption = False,
) -> None:  # fmt: skip
    """Load, repair, fit, doubt, tell what you know and refit, in a browser.

    Nothing leaves this machine: the page is served to it alone, under an address with a secret.
    Ctrl-C ends it.
    """
    try:
        from rescore.app.server import listening, run, token_made
    except ImportError as error:
        raise ImportError(
            'The workbench needs starlette and uvicorn: pip install "rescore[app]"'
        ) from error
    with ExitStack() as stack:
        sock = stack.enter_context(listening(port))
        place = _session_folder(folder, stack)
        if data is not None:
            _begin_with(data, place)
        token = token_made()
        address = f"http://127.0.0.1:{sock.getsockname()[1]}/{token}/"
        print(f"The workbench is at {address}\nCtrl-C ends it.", flush=True)

        def ready() -> None:
            if browser:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        run(sock, token, place, ready)


def _session_folder(folder: Path | None, stack: ExitStack) -> Path:
    from rescore.staging import refuse_others_files

    if folder is None:
        made = tempfile.TemporaryDirectory(prefix="rescore-app-", ignore_cleanup_errors=True)
        return Path(stack.enter_context(made))
    place = refuse_others_files(folder, "session.json")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _begin_with(data: Path, folder: Path) -> None:
    """Copy the table into the session's folder; its own file is only read."""
    from rescore.app.session import Session, ending_of

    ending = ending_of(data.name)
    if not data.is_file():
        raise ValueError(f"There is no file '{data}'. Check the path and the folder.")
    shutil.copyfile(data, folder / f"table{ending}")
    Session(folder).load(data.name)
