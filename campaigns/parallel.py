"""Fits side by side, in threads, forks and workers, with caches that are gone or damaged."""

import json
import multiprocessing
import os
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

COUNT, SECONDS, TESTED = 48, 500, 2
CPU_SECONDS, WALL_SECONDS = 120, 1000
NUMBA = (".nbi", ".nbc")  # these are run unseen if they can be unpickled: no bit is turned in them
LEARNERS = ["Notears", "Linear", "ReScore", "NotearsMLP"]

Case = tuple[str, str, int]


def cases(seed: int) -> Iterator[Case]:
    """Every way with every learner."""
    while True:
        for k, learner in enumerate(LEARNERS):
            ways = sorted(WAYS) if k else [*FIRST, *sorted(set(WAYS) - set(FIRST))]
            yield from ((way, learner, seed) for way in ways)
        seed += 1


def try_one(case: Case) -> str:
    """A process of its own for every case, whose caches and home are nobody else's."""
    way, learner, seed = case
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"RESCORE_CACHE": f"{folder}/jax", "NUMBA_CACHE_DIR": f"{folder}/numba"}
        if way not in CACHES:  # compiling is not what these are about
            env |= {"RESCORE_CACHE": f"{tempfile.gettempdir()}/rescore-campaign"}
            env.pop("NUMBA_CACHE_DIR")
        env |= {"JAX_COMPILATION_CACHE_DIR": "", "CAMPAIGN_FOLDER": folder}
        command = [sys.executable, "-m", "campaigns.parallel", way, learner, str(seed)]
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=WALL_SECONDS, check=False
        )
    if done.returncode:
        return f"BROKEN: {done.stderr.strip()[-400:]}"
    return str(json.loads(done.stdout.splitlines()[-1]))


def main(way: str, learner: str, seed: int) -> str:
    """In the process of the case: fit in that way, and compare with a fit alone."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # JAX's word to who forks
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    return WAYS[way](learner, seed)


def fit(learner: str, seed: int) -> Any:
    """The coefficients and weights of a fit, (d·d + n,)."""
    import numpy as np

    model = made(learner).fit(rows(seed))
    return np.r_[model.adjacency_matrix_.to_numpy().ravel(), model.sample_weight_.to_numpy()]


def made(learner: str) -> Any:
    import rescore as rs

    return getattr(rs, learner)(*([rs.Notears()] if learner == "ReScore" else []))


def rows(seed: int) -> Any:
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4))
    for j in range(1, 4):
        X[:, j] += 1.5 * X[:, j - 1]
    return X


def same(found: list[Any], learner: str, seeds: list[int]) -> str:
    import numpy as np

    for each, seed in zip(found, seeds, strict=True):
        np.testing.assert_allclose(each, fit(learner, seed), atol=1e-8)
    return "the same"


def in_threads(learner: str, seed: int) -> str:
    """Four fits at once, before anything is compiled; the filters of warnings stay as they are."""
    seeds, found = [seed + k % 2 for k in range(4)], {}
    filters = list(warnings.filters)

    def one(k: int) -> None:
        found[k] = fit(learner, seeds[k])

    threads = [threading.Thread(target=one, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    added = [f for f in filters if f not in warnings.filters]  # modules may add theirs on import
    assert not added, f"filters of warnings were lost: {added}"
    return same([found[k] for k in range(4)], learner, seeds)


def in_processes(method: str, before: bool) -> Callable[[str, int], str]:
    """Two workers, started by this method, after a fit in the parent or without one."""

    def way(learner: str, seed: int) -> str:
        if before:
            fit(learner, seed)
        seeds = [seed, seed + 1]
        try:
            with multiprocessing.get_context(method).Pool(2) as pool:
                found = pool.starmap_async(fit, [(learner, s) for s in seeds]).get(WALL_SECONDS / 2)
        except RuntimeError as error:
            if before and method == "fork" and "spawn" in str(error):
                return "refused"
            raise
        return same(found, learner, seeds)

    return way


def in_joblib(backend: str) -> Callable[[str, int], str]:
    def way(learner: str, seed: int) -> str:
        from joblib import Parallel, delayed

        seeds = [seed, seed + 1, seed]
        jobs = (delayed(fit)(learner, s) for s in seeds)
        return same(Parallel(2, backend=backend)(jobs), learner, seeds)

    return way


def in_dask(learner: str, seed: int) -> str:
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")  # its own
    seeds = [seed, seed + 1]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        found = client.gather([client.submit(fit, learner, s) for s in seeds])
    return same(found, learner, seeds)


def pickled(learner: str, seed: int) -> str:
    import numpy as np

    X, model = rows(seed), made(learner)
    fitted = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model)).fit(X)))
    np.testing.assert_array_equal(fitted.predict(X), model.fit(X).predict(X))
    return same([fit(learner, seed)], learner, [seed])


def searched(learner: str, seed: int) -> str:
    """scikit-learn's search and pipeline, in workers of their own."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    word = "estimator__max_steps" if learner == "ReScore" else "max_steps"
    search = GridSearchCV(made(learner), {word: [40, 50]}, cv=2, n_jobs=2).fit(rows(seed))
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    pipe = make_pipeline(StandardScaler(), made(learner)).fit(rows(seed))
    assert pipe[-1].adjacency_matrix_.shape == (4, 4)
    return "the same"


def without_a_home(learner: str, seed: int) -> str:
    """No home, and nowhere that numba or JAX could keep anything."""
    blocked = Path(os.environ["CAMPAIGN_FOLDER"], "file")
    blocked.write_text("")
    for word in ("RESCORE_CACHE", "NUMBA_CACHE_DIR"):
        os.environ[word] = str(blocked / "below")
    os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = str(blocked)
    return same([fit(learner, seed)], learner, [seed])


def on_a_full_disk(learner: str, seed: int) -> str:
    """No file may grow beyond a few bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    return same([fit(learner, seed)], learner, [seed])


def with_a_damaged_cache(learner: str, seed: int) -> str:
    """All that a first process kept is damaged, in one way or another, before the next one fits."""
    rng, spawn = random.Random(seed), multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:
        pool.apply(fit, (learner, seed))
    kept = [p for p in Path(os.environ["CAMPAIGN_FOLDER"]).rglob("*") if p.is_file()]
    assert kept, "nothing was kept"
    for path in kept:
        content = bytearray(path.read_bytes())
        damage = rng.choice(["cut", "emptied", "changed"])
        if damage == "changed" and path.suffix not in NUMBA:
            content[rng.randrange(len(content))] ^= 0xFF
        path.write_bytes(content[: {"cut": len(content) // 2, "emptied": 0}.get(damage)])
    with spawn.Pool(1) as pool:
        found = pool.apply(fit, (learner, seed))
    return same([found], learner, [seed])


WAYS: dict[str, Callable[[str, int], str]] = {
    "threads": in_threads,
    "fork": in_processes("fork", before=False),
    "fork after a fit": in_processes("fork", before=True),
    "spawn after a fit": in_processes("spawn", before=True),
    "joblib": in_joblib("loky"),
    "joblib threads": in_joblib("threading"),
    "dask": in_dask,
    "pickle": pickled,
    "grid search and pipeline": searched,
    "no home": without_a_home,
    "full disk": on_a_full_disk,
    "damaged cache": with_a_damaged_cache,
}
FIRST = ["threads", "fork after a fit"]  # what the tests try; the others compile for long
CACHES = {"no home", "full disk", "damaged cache"}

if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
