"""The workbench without its pages: a session, the processes that work for it, what they found.

Two processes wait for jobs (`rescore.app.jobs`): the desk answers clicks, the bench takes what may
take long.  A job that nobody waits for any more is stopped, with its process if need be; a process
that dies is reported and replaced.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rescore.app.recipe import Recipe, recipe_of
from rescore.app.session import Session, Shelf
from rescore.text import printable

__all__ = ["DiedError", "Workbench", "Worker"]

LONGEST_LINE = 1 << 28  # bytes of an answer
PATIENCE = 1.5  # seconds that a job has to stop by itself: a new process takes longer to begin
MOST_KEPT = 80  # fits that are remembered, so that undoing one is at once
RESAMPLES = 50
QUICK = 1.5  # seconds of a fit, up to which it is resampled without being asked
BACKGROUND = ("fit", "costs", "bootstrap", "compare")
LOOKS = ("columns", "findings")


class DiedError(RuntimeError):
    """A process ended in the middle of a job."""


class Worker:
    """A process that does one job after the other, and is started when the first one comes."""

    def __init__(self, folder: Path, makes_way: int = 0) -> None:
        self.folder, self.makes_way = folder, makes_way  # to other processes, as `nice` counts
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The number of the process, while there is one."""
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if alive and self._process else None

    async def run(
        self, job: str, tell: Callable[[Any], None] | None = None, **arguments: Any
    ) -> Any:
        """What the job finds; ValueError with its sentence if it cannot be done."""
        async with self._turn:
            process = await self._started()
            line = json.dumps({"job": job, **arguments}) + "\n"
            try:
                return await self._answer(process, line, tell)
            except asyncio.CancelledError:
                await self._stop(process)
                raise
            except (BrokenPipeError, ConnectionResetError):
                raise DiedError(await self._epitaph(process)) from None

    async def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "rescore.app.jobs", str(self.folder), str(os.getpid()),
                str(self.makes_way), stdin=pipe, stdout=pipe, limit=LONGEST_LINE,
                start_new_session=True,
            )  # fmt: skip
        return self._process

    async def _answer(
        self, process: asyncio.subprocess.Process, line: str, tell: Callable[[Any], None] | None
    ) -> Any:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - pipes
        process.stdin.write(line.encode())
        await process.stdin.drain()
        while answer := await process.stdout.readline():
            found = json.loads(answer)
            if "done" in found:
                return found["done"]
            if "failed" in found:
                raise ValueError(found["failed"].get("sentence", "It was stopped."))
            if tell is not None:
                tell(found["progress"])
        raise DiedError(await self._epitaph(process))

    async def _epitaph(self, process: asyncio.subprocess.Process) -> str:
        code = await process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else "unexpectedly"
        return (
            f"The process that worked on this ended {how}; a new one has taken its place. Try "
            "again; if memory ran out, leave out rows or columns."
        )

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """Ask the job to stop; a process that does not is ended, the next job starts a new one."""
        try:
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - pipes
            process.stdin.write(b'{"stop": true}\n')
            async with asyncio.timeout(PATIENCE):
                while answer := await process.stdout.readline():
                    if b'{"failed"' in answer[:12] or b'{"done"' in answer[:12]:
                        return
        except (TimeoutError, ConnectionError):
            pass
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class Workbench:
    """A session with all that was found in it.  Whoever listens is told of every change."""

    def __init__(self, folder: Path) -> None:
        self.session = Session(folder)
        self.desk, self.bench = Worker(folder), Worker(folder, makes_way=5)
        self.asked = False  # whether a fit was asked for; from then on every step refits
        self.version = 0
        self.fits: OrderedDict[str, dict[str, Any]] = OrderedDict()  # by the name of the fit
        self.found: dict[str, dict[str, Any]] = {}  # kind -> name of the fit or table -> what
        self.errors: dict[str, str] = {}  # the last of each kind of job
        self.busy: dict[str, dict[str, Any]] = {}
        self._tasks: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self._full: list[tuple[str, str]] = []  # whole fits in their order, and their rows
        self._listeners: set[asyncio.Queue[str]] = set()
        self._recall()

    async def open(self) -> None:
        """Begin to look at the table, and let both processes load what they will need."""
        if self.session.source:
            self._look()
        self._start("warm up", "", self._warm)

    def _recall(self) -> None:
        """The fits of a session that was begun another day."""
        shelf, session = Shelf(self.session.folder), self.session
        for k in range(max(0, len(session.steps) - MOST_KEPT), len(session.steps) + 1):
            recipe = recipe_of(session.steps[:k])
            key = recipe.key(session.digest)
            found = shelf.fit(key)
            if found is not None:
                self._remember(key, found)
                self._full.append((key, self._weights(recipe)))
        self.asked = bool(self.fits)

    async def close(self) -> None:
        """End all that is running."""
        for _, task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in self._tasks.values()), return_exceptions=True)
        await asyncio.gather(self.desk.close(), self.bench.close())

    def listen(self) -> "asyncio.Queue[str]":
        """A queue of what changes; `leave` when nobody reads it any more."""
        queue: asyncio.Queue[str] = asyncio.Queue(100)
        self._listeners.add(queue)
        return queue

    def leave(self, queue: "asyncio.Queue[str]") -> None:
        """Nobody reads the queue any more."""
        self._listeners.discard(queue)

    def hang_up(self) -> None:
        """Tell whoever listens that nothing more will come."""
        for queue in self._listeners:
            with suppress(asyncio.QueueFull):
                queue.put_nowait("")

    def loaded(self, name: str) -> None:
        """A new table is in the session's folder."""
        self._forget((*BACKGROUND, *LOOKS))
        self.session.load(name)
        self.asked, self.errors = False, {}
        self.fits.clear()
        self.found.clear()
        self._full.clear()
        self._look()
        self._changed()

    async def take(self, step: Any) -> None:
        """Take a step, and refit."""
        if isinstance(step, Mapping) and step.get("do") == "learner":  # imported beside the pages
            await asyncio.to_thread(recipe_of, [step])
        self.session.take(step)
        await self._follow()

    async def go(self, at: int) -> None:
        """Back or forward in the history."""
        self.session.go(at)
        await self._follow()

    async def fit(self) -> None:
        """Fit now, and after every step from now on."""
        self.asked = True
        self.errors.pop("fit", None)
        await self._follow()

    def cancel(self) -> None:
        """Stop what may take long."""
        self._forget(BACKGROUND)
        self._changed()

    def resample(self, resamples: int) -> None:
        """Fit so many resamples in the background, in place of those begun before."""
        key = self.session.key
        self._forget(["bootstrap"])
        self._start("bootstrap", key, partial(self._bootstrap, key, resamples))

    def compare(self, learners: list[dict[str, Any]]) -> None:
        """Fit other learners to the same rows in the background."""
        key = self.session.key
        self._forget(["compare"])
        self._start("compare", key, partial(self._into, "compare", key, learners=learners))

    async def rows(self, choice: Mapping[str, Any]) -> Any:
        """Some rows of the fit, and what sets them apart."""
        return await self.desk.run("rows", **self._job(key=self.session.key), choice=choice)

    async def learners(self) -> Any:
        """What can be chosen."""
        if "learners" not in self.found:
            self.found["learners"] = await self.desk.run("learners")
        return self.found["learners"]

    def state(self, have: str = "") -> dict[str, Any]:
        """All that a page shows; the fit only if it is not the one that the page has."""
        session, key = self.session, self.session.key
        recipe = session.recipe
        fit, shown = self._shown(key)
        name = f"{shown}{'~' if fit and fit['quick'] else ''}"
        rows = self._rows(recipe)
        return {
            "version": self.version, "source": session.source, "at": session.at,
            "history": self._history(), "recipe": recipe.shown(), "places": session.places,
            "columns": self._of("columns", self._file()), "findings": self._of("findings", rows),
            "asked": self.asked, "busy": self._busy(), "errors": self.errors,
            "fit": None if have == name else fit, "fit_id": name if fit else "",
            "stale": bool(fit) and shown != key, "costs": self._of("costs", key),
            "stability": self._of("stability", key), "compared": self._of("compare", key),
        }  # fmt: skip

    def _of(self, kind: str, name: str) -> Any:
        return self.found.get(kind, {}).get(name)

    def _shown(self, key: str) -> tuple[dict[str, Any] | None, str]:
        """The fit of that name, or the last that there was, and its name."""
        if key in self.fits:
            return self.fits[key], key
        last = next(reversed(self.fits), None)
        return (None, "") if last is None else (self.fits[last], last)

    def _history(self) -> list[dict[str, Any]]:
        figures = ("likelihood", "edges", "seconds", "quick", "effective")
        lines = self.session.history()
        for line in lines:
            fit = self.fits.get(line.pop("key"))
            line["fit"] = None if fit is None else {name: fit[name] for name in figures}
        return lines

    def _busy(self) -> dict[str, Any]:
        now = time.monotonic()
        return {
            name: {"seconds": round(now - one["since"], 1), "progress": one["progress"]}
            for name, one in self.busy.items()
        }

    def _rows(self, recipe: Recipe) -> str:
        return recipe.rows_key(self.session.digest)

    def _file(self) -> str:
        """The name of the table as it is read, whatever is done to it then."""
        recipe = self.session.recipe
        return Recipe(reading=recipe.reading, na=recipe.na).key(self.session.digest)

    def _job(self, **more: Any) -> dict[str, Any]:
        session = self.session
        return {"steps": session.steps[: session.at], "table": session.table.name, **more}

    def _look(self) -> None:
        """Look at the columns, and check the table."""
        for kind, name in (
            ("columns", self._file()),
            ("findings", self._rows(self.session.recipe)),
        ):
            if self._of(kind, name) is None:
                self._start(kind, name, partial(self._into, kind, name, worker=self.desk))

    async def _follow(self) -> None:
        """After a step: a first graph at once where that can be, the whole fit, the checks."""
        key = self.session.key
        outdated = [name for name in BACKGROUND if self._tasks.get(name, (key,))[0] != key]
        self._forget(outdated)
        if key in self.fits:
            self.fits.move_to_end(key)
        if self.asked and key not in self.fits:
            await self._quick(key)
        if self.asked and (key not in self.fits or self.fits[key]["quick"]):
            self._start("fit", key, partial(self._fit, key))
        elif self.asked:
            self._doubt(key)
        self._look()
        self._changed()

    async def _quick(self, key: str) -> None:
        recipe = self.session.recipe
        weights = self._weights(recipe)
        before = next((k for k, rows in reversed(self._full) if rows == weights), "")
        with suppress(ValueError, DiedError):  # the whole fit will say what is wrong
            found = await self.desk.run("quick", **self._job(key=key, before=before))
            if found is not None and key == self.session.key:
                self._remember(key, found)

    def _weights(self, recipe: Recipe) -> str:
        """What the weights of rows depend on, but for what is known and which rows are left."""
        learner = [recipe.learner, dict(recipe.options), dict(recipe.around)]
        return self._rows(recipe) + json.dumps(learner, sort_keys=True)

    async def _fit(self, key: str) -> None:
        """The whole fit, then what each constraint costs, then resamples if they are quick."""
        recipe, job = self.session.recipe, self._job(key=key)
        self.errors.pop("fit", None)
        try:
            found = await self.bench.run("fit", self._teller("fit"), **job)
        except (ValueError, DiedError) as error:
            self.errors["fit"] = self._in_words(error)
            return
        self._remember(key, found)
        self._full.append((key, self._weights(recipe)))
        self.busy.pop("fit", None)
        self._changed()
        if recipe.forbidden or recipe.required or recipe.tiers:
            self._start("costs", key, partial(self._into, "costs", key, key=key))
        self._doubt(key)

    def _doubt(self, key: str) -> None:
        """Resample where that is quick and has not been done."""
        known = self._of("stability", key)
        if self.fits[key]["seconds"] < QUICK and (known is None or known["done"] < known["of"]):
            self._start("bootstrap", key, partial(self._bootstrap, key, RESAMPLES))

    async def _bootstrap(self, key: str, resamples: int) -> None:
        def tell(progress: Any) -> None:
            if "edges" in progress:
                self.found.setdefault("stability", {})[key] = progress
            self._teller("bootstrap")({"done": progress.get("done"), "of": progress.get("of")})

        job = self._job(key=key, resamples=resamples)
        try:
            found = await self.bench.run("bootstrap", tell, **job)
            self.found.setdefault("stability", {})[key] = found
        except (ValueError, DiedError) as error:
            self.errors["bootstrap"] = self._in_words(error)

    async def _into(self, kind: str, name: str, worker: Worker | None = None, **more: Any) -> None:
        """Do the job of that kind, and keep what it finds under that name."""
        self.errors.pop(kind, None)

        def tell(progress: Any) -> None:
            if isinstance(progress, dict) and "compared" in progress:
                self.found.setdefault(kind, {})[name] = progress["compared"]
            self._teller(kind)(progress)

        try:
            found = await (worker or self.bench).run(kind, tell, **self._job(**more))
            self.found.setdefault(kind, {})[name] = found
        except (ValueError, DiedError) as error:
            self.errors[kind] = self._in_words(error)

    def _in_words(self, error: Exception) -> str:
        """The sentence, with the table called as whoever loaded it does."""
        ours, theirs = (printable(name, 200) for name in (self.session.table, self.session.source))
        return str(error).replace(f"'{ours}'", f"'{theirs}'")

    async def _warm(self) -> None:
        """The bench first, which the first fit needs; but not before the table is shown."""
        if "columns" in self._tasks:
            await asyncio.wait([self._tasks["columns"][1]])
        for worker in (self.bench, self.desk):
            with suppress(ValueError, DiedError):
                await worker.run("warm_up")
        if self.asked:  # as a session was left another day
            await self._follow()

    def _remember(self, key: str, found: dict[str, Any]) -> None:
        self.fits[key] = found
        self.fits.move_to_end(key)
        while len(self.fits) > MOST_KEPT:
            self.fits.popitem(last=False)

    def _start(self, name: str, key: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do something in the background, unless it is being done; other work of that name ends."""
        if self._tasks.get(name, ("", None))[0] == key and name in self._tasks:
            return
        if name in BACKGROUND:
            self._forget([name])

        async def followed() -> None:
            try:
                await work()
            finally:
                if self._tasks.get(name, ("", None))[1] is asyncio.current_task():
                    self.busy.pop(name, None)
                    self._tasks.pop(name)
                self._changed()

        self.busy[name] = {"since": time.monotonic(), "progress": None}
        self._tasks[name] = key, asyncio.create_task(followed())

    def _forget(self, names: Any) -> None:
        for name in names:
            if name in self._tasks:
                task = self._tasks.pop(name)[1]
                self.busy.pop(name, None)
                if task is not asyncio.current_task():
                    task.cancel()

    def _teller(self, name: str) -> Callable[[Any], None]:
        def tell(progress: Any) -> None:
            if name in self.busy:
                self.busy[name]["progress"] = progress
                self._changed()

        return tell

    def _changed(self) -> None:
        self.version += 1
        for queue in self._listeners:
            with suppress(asyncio.QueueFull):  # who lags behind asks for the whole state anyway
                queue.put_nowait(str(self.version))
