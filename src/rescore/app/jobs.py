"""What a process of the workbench does: it reads tables, fits, resamples, draws; one job at a time.

Jobs come as lines of JSON on stdin, what is found goes back as lines of JSON: ``progress`` now and
then, and one ``done`` or ``failed``.  A line ``stop`` ends a job between two of its steps.

What only fits need is imported by the jobs that fit: the columns of a table are there before.
"""

import ctypes
import json
import os
import select
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rescore.app.looks import (
    apart,
    columns_of,
    doubts_told,
    edges_told,
    fit_told,
    json_of,
    likelihood_of,
    listed,
    refuse_wide,
    selected,
)
from rescore.app.recipe import Recipe, learners, recipe_of
from rescore.app.session import Shelf
from rescore.graph.dag import topological_order
from rescore.known_edges import Knowledge
from rescore.learners import load_learner
from rescore.moments import Cells, Weights
from rescore.studies.table_input import Input, asked_for, examined
from rescore.text import printable

__all__ = ["Bench", "main"]

Progress = Callable[[Mapping[str, Any]], None]
SLOW, VERY_SLOW = 2.0, 60.0  # seconds of a fit, from which its model is kept for exports
EVERY = 0.8  # seconds between two tellings of resamples
FEW = 30  # variables whose orders are searched from every start in a first answer too
MOST_CHECKED = 100_000  # rows that a check looks at, evenly spaced
LARGE = 1 << 26  # bytes of a table, from which a model is kept only if it took very long
MOST_OTHERS = 20_000  # rows that those shown are chosen from
MOST_COSTS = 24  # constraints whose cost is looked for
PRICED = ("Linear",)  # learners whose objective is minus log-likelihood plus the price of edges
FAULTS = (ValueError, TypeError, OSError, ImportError, np.linalg.LinAlgError)


class StoppedError(Exception):
    """Nobody waits for this job any more."""


class Bench:
    """The table of a session and what was fitted to it last.

    A job is a method that takes the steps of a session, more of what it needs, and a function to
    call with progress.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.shelf = folder, Shelf(folder)
        self._input: tuple[str, Input] | None = None  # one table at a time
        self._model: tuple[str, Any] | None = None  # one that took long
        self._last: tuple[str, dict[str, Any]] | None = None  # the fit that others start from

    def table(self, recipe: Recipe, path: Path) -> Input:
        """What the fit starts from, read again only where the recipe of the rows changed."""
        key = recipe.rows_key(recipe.excluded, str(path.stat().st_mtime_ns))
        if self._input is None or self._input[0] != key:
            self._input = None  # make room first
            needs = bool(recipe.model().needs_groups)
            found = self.shelf.table(key)
            if found is None:
                found = self.shelf.put_table(key, asked_for(recipe.params(path), needs))
            self._input = key, found
        return self._input[1]

    def columns(self, recipe: Recipe, path: Path, tell: Progress) -> dict[str, Any]:
        """Every column of the file."""
        return columns_of(recipe.params(path) | {"drop": [], "groups": None, "transform": []})

    def findings(self, recipe: Recipe, path: Path, tell: Progress) -> dict[str, Any]:
        """All that a check finds, each with what would mend it; and all of that together."""
        params = recipe.params(path)

        def read(asked: Mapping[str, Any]) -> Input:
            return self.table(recipe, path) if asked == params else asked_for(asked)

        found, settings = examined(params, read=read, most_rows=MOST_CHECKED)
        told = [
            {"code": one.code, "severity": one.severity, "seen": one.seen, "remedy": one.remedy,
             "columns": [str(name) for name in one.columns], "fix": dict(one.fix)}
            for one in found.findings
        ]  # fmt: skip
        errors = [one.fix for one in found.findings if one.severity == "error"]
        return {"ok": found.ok, "findings": told, "mends": all(errors), "settings": settings}

    def fit(self, recipe: Recipe, path: Path, tell: Progress, key: str) -> dict[str, Any]:
        """The whole fit, as the script and the command make it."""
        from rescore.reports.run import some_rows

        self._model = None  # make room first
        table, model, begun = self.table(recipe, path), recipe.model(), time.monotonic()

        def on_step(record: Mapping[str, Any]) -> None:
            tell({"step": int(record["step"]), "edges": int(record["edges"])})

        model.fit(table.X, on_step=on_step, **table.known_to(model))
        seconds = time.monotonic() - begun
        slow = SLOW if table.X.values.nbytes < LARGE else VERY_SLOW
        self._model = (key, model) if seconds > slow else None
        self._keep(key, model)
        told = fit_told(recipe, model, table, seconds, some_rows(table.X.values))
        self.shelf.put_fit(key, json_of(told | {"quick": False}))
        return told | {"quick": False}

    def quick(
        self, recipe: Recipe, path: Path, tell: Progress, key: str, before: str
    ) -> dict[str, Any] | None:
        """The graph with the weights of an earlier fit, or equal ones, from one search.

        None where even that takes long.  What noise there is was decided by the earlier fit too,
        and the search starts from the order that it ended with, of few variables from others too.
        """
        begun = time.monotonic()
        table = self.table(recipe, path)
        model = self._quick_model(recipe, table, before)
        if model is None:
            return None
        model.fit(table.X, sample_weight=table.sample_weight)
        earlier = self._told(before)
        told = fit_told(recipe, model, table, time.monotonic() - begun, before=earlier)
        return told | {"quick": True, "kept": bool(before)}

    def costs(
        self, recipe: Recipe, path: Path, tell: Progress, key: str
    ) -> list[dict[str, Any]] | None:
        """What the fit would gain without each constraint, all others and the weights kept.

        In nats: the log-likelihood less the price of the edges, where the learner is one of those
        that price them, otherwise the log-likelihood.
        """
        table = self.table(recipe, path)
        here = self._worth(recipe, table, key)
        if here is None:
            return None
        found = []
        for what, without in recipe.without_each()[:MOST_COSTS]:
            there = self._worth(without, table, key)
            if there is not None:
                found.append(what | {"cost": there - here})
                tell({"costs": found})
        return found

    def bootstrap(
        self, recipe: Recipe, path: Path, tell: Progress, key: str, resamples: int
    ) -> dict[str, Any]:
        """Shares of resamples with every edge, told as they come, and the verdicts that follow."""
        from rescore.reports.run import Run
        from rescore.scanning.sources import scan
        from rescore.studies import Refits
        from rescore.studies.bootstrap import bootstrap, outcomes, study_of
        from rescore.studies.edge_shares import summarised

        table, model = self.table(recipe, path), self._fitted(recipe, path, key)
        run, told = Run(model), table.known_to(model)
        if "passes" in model.diagnostics_ and recipe.learner in PRICED:  # many rows: one more pass

            def on_resample(done: int) -> None:
                tell({"done": done, "of": resamples})

            X: Any = scan(table.X, jobs=1)
            shares = bootstrap(model, X, resamples=int(resamples), on_resample=on_resample)
            return doubts_told(run.with_stability(shares), resamples, resamples)
        study = study_of(model, table.X, **told)
        found, last = [], time.monotonic()
        for outcome in outcomes(study, int(resamples), 0, Refits(1, None)):
            found.append(replace(outcome, weight=None))
            if time.monotonic() - last > EVERY:
                so_far = run.with_stability(summarised(found, study.given.X, study.scheme, False))
                tell(doubts_told(so_far, len(found), resamples))
                last = time.monotonic()
        whole = run.with_stability(summarised(found, study.given.X, study.scheme, False))
        return doubts_told(whole, len(found), resamples)

    def compare(
        self, recipe: Recipe, path: Path, tell: Progress, learners: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """The edges that other learners find in the same rows, one learner after the other."""
        table = self.table(recipe, path)
        found: list[dict[str, Any]] = []
        for each in learners:
            begun = time.monotonic()
            try:
                model = replace(recipe, learner=str(each["name"]), options={},
                                around=dict(each.get("around") or {})).model()  # fmt: skip
                model.fit(table.X, **table.known_to(model))
                told: dict[str, Any] = {"edges": edges_told(model)}
            except FAULTS as error:
                told = {"error": str(error)}
            seconds = round(time.monotonic() - begun, 2)
            found.append({"name": each["name"], "around": each.get("around"), "seconds": seconds,
                          **told})  # fmt: skip
            tell({"compared": found})
        return found

    def rows(
        self, recipe: Recipe, path: Path, tell: Progress, key: str, choice: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Some rows with their values, and what sets them apart."""
        from rescore.reports.run import some_rows

        table, kept = self.table(recipe, path), self.shelf.rows(key)
        if kept is None:
            raise ValueError("The rows of this fit are not known yet. Wait for the fit to end.")
        w, used = kept["weight"], ~np.isnan(kept["loss"])
        losses = self.shelf.mapped(key, "losses.npy")
        labels = None if table.groups is None else np.asarray(table.groups, dtype=object)
        group = kept["membership"].argmax(axis=1) if "membership" in kept else None
        chosen = selected(choice, w, kept["loss"], group, labels, used)
        names, others = table.X.names, np.flatnonzero(used & ~chosen)
        return {
            "names": [str(name) for name in names],
            "bars": apart(table.X.values, names, losses, chosen, used),
            **listed(table.X.values, w, kept["loss"], chosen, int(used.sum())),
            "others": some_rows(table.X.values[others[:: 1 + len(others) // MOST_OTHERS]]).values,
        }

    def export(
        self, recipe: Recipe, path: Path, tell: Progress, key: str, source: str, command: str
    ) -> str:
        """All files of a run, the report among them, in a folder of the session; its path."""
        from rescore.reports.folder import write_run
        from rescore.reports.run import Run, some_rows
        from rescore.studies.check import check

        table, model = self.table(recipe, path), self._fitted(recipe, path, key)
        found = check(table.X, table.sample_weight, table.groups).findings
        run = Run(
            model, table.groups, command=command, source=source, findings=found,
            rows=some_rows(table.X.values),
        )  # fmt: skip
        target = self.shelf.place(key, "run")
        write_run(target, run)
        return str(target)

    def _fitted(self, recipe: Recipe, path: Path, key: str) -> Any:
        """The model of a fit: the one that was kept, or fitted once more."""
        if self._model is not None and self._model[0] == key:
            return self._model[1]
        table, model = self.table(recipe, path), recipe.model()
        return model.fit(table.X, **table.known_to(model))

    def _worth(self, recipe: Recipe, table: Input, key: str) -> float | None:
        model = self._quick_model(recipe, table, key)
        if model is None:
            return None
        model.fit(table.X, sample_weight=table.sample_weight)
        if recipe.learner in PRICED:
            return -float(model.history_["objective"].iloc[-1])
        return likelihood_of(model, table)

    def _quick_model(self, recipe: Recipe, table: Input, before: str) -> Any:
        """The learner around the weights that an earlier fit ended with, or around equal ones.

        None if some rows had none then, and where a fit is slow even so.
        """
        from rescore.learners.rescore import ReScore
        from rescore.solvers.noise import EQUAL, SHAPED, UNEQUAL
        from rescore.weightings import Kept, Uniform

        kind, kept = load_learner(recipe.learner), self.shelf.rows(before)
        n, d = table.X.values.shape
        used = np.ones(n, bool) if table.sample_weight is None else table.sample_weight > 0
        if not kind.linear or not kind.weighs_rows or used.sum() <= 2 * d or table.X.levels:
            return None  # of few rows some may be merged, categories have places of their own
        weights = np.ones(1) if kept is None else _cut(kept, used, d)
        if weights is None:
            return None
        given, earlier = recipe.learner_settings(), self._told(before)
        if "n_starts" in kind._get_param_names() and (recipe.learner not in PRICED or d > FEW):
            given["n_starts"] = 1
        known = {} if recipe.knowledge == Knowledge() else {"knowledge": recipe.knowledge}
        learner = kind(**given, **known)
        if earlier and recipe.learner in PRICED:
            learner.first = _order(earlier["graph"])
            if learner.noise == "auto" and earlier["hypothesis"] in (EQUAL, UNEQUAL, SHAPED):
                learner.noise = earlier["hypothesis"]
        why = {} if kept is None else json.loads(str(kept["why"]))
        alike = isinstance(weights, np.ndarray) and np.ptp(weights) == 0
        return ReScore(learner, weighting=Uniform() if alike else Kept(weights, why))

    def _told(self, key: str) -> dict[str, Any] | None:
        """What a page shows of a fit; read once as long as others start from it."""
        if self._last is None or self._last[0] != key:
            found = self.shelf.fit(key)
            self._last = None if found is None else (key, found)
        return None if self._last is None else self._last[1]

    def _keep(self, key: str, model: Any) -> None:
        """What later jobs ask of this fit: weights, groups and losses of the rows."""
        w, cells = model.sample_weight_.to_numpy(), model._cell_weight
        weighting = model.diagnostics_["weighting"].items()  # its sentence tells the interventions
        told = {k: v for k, v in weighting if k not in ("membership", "interventions")}
        found = {"weight": w, "loss": model.row_losses_.to_numpy(), "why": np.array(json_of(told))}
        if isinstance(cells, Cells):
            found |= {"membership": cells.membership, "precision": cells.precision}
        elif cells is not None:
            found["cells"] = np.asarray(cells)
        self.shelf.put_rows(key, model.losses_.to_numpy(), found)


def _cut(kept: Mapping[str, Any], used: Any, d: int) -> Weights | None:
    """The weights of the rows that are left; None if some of them were left out then."""
    w = kept["weight"]
    if len(w) != len(used) or np.isnan(kept["loss"][used]).any():
        return None
    if "membership" in kept:
        M, precision = kept["membership"][used], kept["precision"]
        if precision.shape[1] != d:
            return None
        M = M / M.sum()
        return Cells(M, precision * d / (M.sum(axis=0) @ precision).sum())
    if "cells" in kept:
        cells = kept["cells"][used]
        return np.asarray(cells * d / cells.sum()) if cells.shape[1] == d else None
    return np.asarray(w[used] / w[used].sum())


def _order(graph: Mapping[str, Any]) -> tuple[int, ...]:
    """An order of the columns that a graph on a page obeys."""
    place = {node["id"]: k for k, node in enumerate(graph["nodes"])}
    W = np.zeros((len(place),) * 2, dtype=np.bool_)
    for edge in graph["edges"]:
        W[place[edge["source"]], place[edge["target"]]] = True
    return tuple(topological_order(W))


def _stop_asked() -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready)


def give_back() -> None:
    """Give the system what a job took and no longer needs; the C library would keep it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # there is none but on Linux
        trim(0)


def warm_up() -> None:
    """Load what the first fit would load, so that no click waits for it."""
    from rescore.learners.rescore import ReScore
    from rescore.reports.page import graph_data
    from rescore.reports.run import Run

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) @ np.triu(np.ones((3, 3)))
    for noise in ("auto", "unequal"):
        graph_data(Run(ReScore(load_learner("Linear")(noise)).fit(X)))


def example(folder: Path) -> str:
    """The proteins of Sachs et al. (2005) as a table of the session; its name."""
    from rescore.data import load_sachs

    data = load_sachs()
    data.X.assign(condition=data.groups).to_csv(folder / "table.csv", index=False)
    return "sachs.csv"


ALONE: dict[str, Callable[[], Any]] = {"warm_up": warm_up, "learners": learners}


def end_with(parent: int, every: float = 1.0) -> None:
    """Let this process end with the one that started it, also in the middle of a job.

    Examples
    --------
    >>> end_with(os.getppid())
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Answer one line after the other until there are no more."""
    end_with(int(sys.argv[2]))
    if hasattr(os, "nice"):
        os.nice(int(sys.argv[3]))  # what may take long makes way
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print is no answer
    bench = Bench(Path(sys.argv[1]))

    def say(kind: str, value: Any) -> None:
        out.write(json_of({kind: value}) + "\n")
        out.flush()

    def tell(value: Mapping[str, Any]) -> None:
        if _stop_asked():
            raise StoppedError
        say("progress", value)

    warnings.simplefilter("ignore")
    say("progress", {"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        if "stop" in asked:
            continue  # of a job that has ended by itself
        try:
            say("done", _answer(bench, asked, tell))
        except StoppedError:
            say("failed", {"stopped": True})
        except FAULTS as error:
            say("failed", {"sentence": str(error) or type(error).__name__})
        except Exception as error:
            what = f"{type(error).__name__}: {error} (unexpected)"
            say("failed", {"sentence": printable(what, 1000)})
        give_back()


def _answer(bench: Bench, asked: dict[str, Any], tell: Progress) -> Any:
    if asked["job"] == "example":
        return example(bench.folder)
    if asked["job"] in ALONE:
        return ALONE[asked["job"]]()
    recipe = recipe_of(asked.pop("steps"))
    path = bench.folder / asked.pop("table")
    if asked["job"] in ("columns", "findings"):
        refuse_wide(recipe.params(path))
    return getattr(bench, asked.pop("job"))(recipe, path, tell, **asked)


if __name__ == "__main__":
    main()
