"""The workbench as pages and answers on this machine alone.

Every address begins with a random token.  A request must name this host, and if it has an origin
this one: a page from elsewhere can neither read nor do anything.  Pages run their own scripts only.
"""

import asyncio
import hmac
import io
import json
import os
import secrets
import socket
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from rescore.app.session import (
    KNOWLEDGE_FILE,
    ROWS_FILE,
    command,
    ending_of,
    safe_name,
    script,
)
from rescore.app.workbench import DiedError, Workbench
from rescore.text import printable

__all__ = ["application", "listening", "run", "token_made"]

HOST = "127.0.0.1"
MOST_BYTES = 500 * 2**20  # of a table's file
MOST_JSON = 4 * 2**20  # of any other request
ALIVE = 15.0  # seconds between two signs of life to a page that listens
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css",
         ".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json",
         ".txt": "text/plain", ".py": "text/plain", ".zip": "application/zip"}  # fmt: skip
SHARED = {  # files of the report that the pages use too
    "style.css": "rescore",
    "drawing.css": "rescore.reports",
    "graph_view.js": "rescore.reports",
    "edge_details.js": "rescore.reports",
    "vendor/cytoscape.min.js": "rescore.reports",
}
Answer = Callable[[Request], Awaitable[Response]]


def token_made() -> str:
    """A new secret for the address."""
    return secrets.token_urlsafe(24)


def listening(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 is any that is free."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        raise ValueError(
            f"Port {port} cannot be used: {error.strerror}. Leave --port out, or give another one."
        ) from error
    return found


def run(sock: socket.socket, token: str, folder: Path, ready: Callable[[], Any]) -> None:
    """Serve until Ctrl-C; ``ready`` is called once pages can be opened."""
    app = application(folder, token, sock.getsockname()[1], ready)
    serving(app).run(sockets=[sock])


def serving(app: Any) -> Any:
    """The server of an application, not yet running."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=1, ws="none",
    )  # fmt: skip

    class Server(uvicorn.Server):
        """One that tells listening pages that it ends, rather than cutting them off."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.inner.state.pages.bench.hang_up()
            await super().shutdown(sockets)

    return Server(config)


def application(
    folder: Path, token: str, port: int, ready: Callable[[], Any] = lambda: None
) -> Any:
    """The ASGI application of one session."""
    pages = Pages(folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        pages.bench = Workbench(folder)
        await pages.bench.open()
        ready()
        try:
            yield
        finally:
            await pages.bench.close()

    get = {"": pages.index, "static/{name:path}": pages.static, "api/state": pages.state,
           "api/events": pages.events, "api/learners": pages.learners,
           "api/export/{name}": pages.export}  # fmt: skip
    post = {"api/table": pages.upload, "api/step": pages.step, "api/go": pages.go,
            "api/fit": pages.fit, "api/cancel": pages.cancel, "api/rows": pages.rows,
            "api/bootstrap": pages.bootstrap, "api/compare": pages.compare,
            "api/places": pages.places, "api/example": pages.example}  # fmt: skip
    routes = [Route(f"/{{token}}/{path}", _told(answer)) for path, answer in get.items()]
    routes += [
        Route(f"/{{token}}/{path}", _told(answer), methods=["POST"])
        for path, answer in post.items()
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.pages = pages
    return Guard(app, token, port)


class Guard:
    """Lets in who knows the token and speaks to this host, and puts the policy on every answer."""

    def __init__(self, inner: Any, token: str, port: int) -> None:
        self.inner, self.token = inner, token
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        refusal = self.refusal(scope)
        answer = self.inner if refusal is None else PlainTextResponse(refusal, 403)
        await answer(scope, receive, sent)

    def refusal(self, scope: Any) -> str | None:
        """Why a request is not let in, if it is not."""
        given = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if given.get("host", "").lower() not in self.hosts:
            return "This address is not one of the workbench."
        origin = given.get("origin")
        if origin is not None and origin.lower() not in {f"http://{host}" for host in self.hosts}:
            return "Pages from elsewhere cannot use the workbench."
        if given.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "Pages from elsewhere cannot use the workbench."
        said = scope["path"].lstrip("/").partition("/")[0]
        if not hmac.compare_digest(said.encode(), self.token.encode()):
            return (
                "Open the address that `rescore app` printed: it has a token that this one lacks."
            )
        return None


def _told(answer: Answer) -> Answer:
    """What a handler raises becomes a sentence for the page."""

    async def guarded(request: Request) -> Response:
        try:
            return await answer(request)
        except (ValueError, TypeError, KeyError, ImportError) as error:
            text = f"{error.args[0]!r} is missing." if isinstance(error, KeyError) else str(error)
            return JSONResponse({"error": printable(text, 2000)}, 400)
        except DiedError as error:
            return JSONResponse({"error": str(error)}, 503)
        except TooMuchError as error:
            return JSONResponse({"error": str(error)}, 413)

    return guarded


class TooMuchError(Exception):
    """More bytes than are taken."""


async def _pieces(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body piece by piece, up to so many bytes."""
    announced = request.headers.get("content-length", "0")
    left = most - (int(announced) if announced.isdecimal() and int(announced) > most else 0)
    sentence = f"That is more than {most / 2**20:.0f} MB, which is the most that is taken here."
    if left < 0:
        raise TooMuchError(sentence)
    async for piece in request.stream():
        left -= len(piece)
        if left < 0:
            raise TooMuchError(sentence)
        yield piece


async def _asked(request: Request) -> dict[str, Any]:
    """What a page asks for, as JSON."""
    body = b"".join([piece async for piece in _pieces(request, MOST_JSON)])
    try:
        data = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValueError("That is no JSON.") from error
    if not isinstance(data, dict):
        raise ValueError("That is no JSON object.")
    return data


class Pages:
    """What every address answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bench: Workbench

    async def index(self, request: Request) -> Response:
        """The page itself."""
        text = files("rescore.app").joinpath("static/index.html").read_bytes()
        return Response(text, media_type="text/html")

    async def static(self, request: Request) -> Response:
        """A file of the page: those that are there, and no others."""
        name = request.path_params["name"]
        own = files("rescore.app").joinpath("static")
        if name in SHARED:
            found = files(SHARED[name]).joinpath(name)
        elif name in {each.name for each in own.iterdir()}:
            found = own.joinpath(name)
        else:
            return PlainTextResponse("There is no such file.", 404)
        return Response(found.read_bytes(), media_type=_type(name))

    async def state(self, request: Request) -> Response:
        """All that there is to show."""
        return self._state(request.query_params.get("have", ""))

    def _state(self, have: str = "") -> Response:
        return JSONResponse(self.bench.state(have))

    async def events(self, request: Request) -> Response:
        """A line whenever something changes, as long as somebody listens."""

        async def lines() -> AsyncIterator[str]:
            queue = self.bench.listen()
            try:
                yield f"data: {self.bench.version}\n\n"
                version = "first"
                while version:
                    try:
                        version = await asyncio.wait_for(queue.get(), ALIVE)
                        while version and not queue.empty():
                            version = queue.get_nowait()
                        if version:
                            yield f"data: {version}\n\n"
                    except TimeoutError:
                        yield ": still here\n\n"
            finally:
                self.bench.leave(queue)

        return StreamingResponse(lines(), media_type="text/event-stream")

    async def upload(self, request: Request) -> Response:
        """A table, streamed into the session's folder; the name only tells its format."""
        name = unquote(request.headers.get("x-name", ""))[:300]
        ending = ending_of(name or "?")
        waiting = self.folder / f".coming-{secrets.token_hex(8)}"
        try:
            with waiting.open("wb") as file:
                async for piece in _pieces(request, MOST_BYTES):
                    file.write(piece)
            os.replace(waiting, self.folder / f"table{ending}")
        except ClientDisconnect:
            return PlainTextResponse("Gone.", 400)
        finally:
            with suppress(FileNotFoundError):
                waiting.unlink()
        self.bench.loaded(name)
        return self._state()

    async def example(self, request: Request) -> Response:
        """A table to try things on."""
        self.bench.loaded(await self.bench.desk.run("example"))
        await self.bench.take({"do": "groups", "column": "condition"})
        return self._state()

    async def step(self, request: Request) -> Response:
        """Take a step."""
        asked = await _asked(request)
        await self.bench.take(asked["step"])
        return self._state(str(asked.get("have", "")))

    async def go(self, request: Request) -> Response:
        """Back or forward."""
        asked = await _asked(request)
        await self.bench.go(int(asked["at"]))
        return self._state(str(asked.get("have", "")))

    async def fit(self, request: Request) -> Response:
        """Fit."""
        await self.bench.fit()
        return self._state()

    async def cancel(self, request: Request) -> Response:
        """Stop."""
        self.bench.cancel()
        return self._state()

    async def rows(self, request: Request) -> Response:
        """Some rows."""
        return JSONResponse(await self.bench.rows((await _asked(request))["choice"]))

    async def learners(self, request: Request) -> Response:
        """The learners and their options."""
        return JSONResponse(await self.bench.learners())

    async def bootstrap(self, request: Request) -> Response:
        """Resample."""
        many = int((await _asked(request)).get("resamples", 50))
        self.bench.resample(min(max(many, 1), 1000))
        return self._state()

    async def compare(self, request: Request) -> Response:
        """Compare learners."""
        learners = [dict(each) for each in (await _asked(request))["learners"]]
        self.bench.compare(learners[:12])
        return self._state()

    async def places(self, request: Request) -> Response:
        """Where variables were moved to."""
        self.bench.session.move((await _asked(request))["places"])
        return JSONResponse({})

    async def export(self, request: Request) -> Response:
        """A file to keep."""
        name = request.path_params["name"]
        session = self.bench.session
        table, recipe = safe_name(session.source), session.recipe
        small = {
            "fit.py": lambda: script(recipe, table).encode(),
            "command.txt": lambda: (command(recipe, table) + "\n").encode(),
            "knowledge.json": lambda: self._knowledge("knowledge.json"),
            "knowledge.txt": lambda: self._knowledge("knowledge.txt"),
        }
        if name in small:
            content = small[name]()
        elif name in ("report.html", "graph.svg", "graph.png", "everything.zip"):
            content = await self._drawn(name, table)
        else:
            return PlainTextResponse("There is no such file.", 404)
        return _download(name, content)

    def _knowledge(self, name: str) -> bytes:
        path = self.folder / name
        self.bench.session.recipe.knowledge.write(path)
        return path.read_bytes()

    async def _drawn(self, name: str, table: str) -> bytes:
        """A file of the run; all of them, with what repeats it, in one archive."""
        session = self.bench.session
        told = command(session.recipe, table)
        job = self.bench._job(key=session.key, source=session.source, command=told)
        folder = Path(await self.bench.bench.run("export", **job))
        if name != "everything.zip":
            return (folder / name).read_bytes()
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(session.table, table)
            archive.writestr("fit.py", script(session.recipe, table))
            archive.writestr("command.txt", told + "\n")
            archive.writestr(KNOWLEDGE_FILE, self._knowledge("knowledge.json"))
            archive.writestr(ROWS_FILE, session.recipe.excluded)
            for path in sorted(folder.iterdir()):
                archive.write(path, f"run/{path.name}")
        return content.getvalue()


def _type(name: str) -> str:
    return TYPES.get(Path(name).suffix, "application/octet-stream")


def _download(name: str, content: bytes) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=_type(name), headers=headers)
