"""What missing cells cost: the same tables complete, with gaps filled in by EM, and without rows.

Gaps are made in two ways: completely at random; and at random given the first column, which has no
gaps, twice as often where it is above its median and never below it.  Linear data of 10 variables,
20 edges and 1,000 rows, fitted by `Linear`, which needs moments, and `Additive`, which needs rows.

    python benchmarks/missing_values.py [--seeds 10] [--records FILE]
"""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import rescore as rs

SHARES = (0.1, 0.3)
KINDS = ("anywhere", "where x0 is large")
LEARNERS = {"Linear": rs.Linear, "Additive": rs.Additive}
RECORDS = Path(__file__).parent / "results" / "missing_values.csv"


def with_gaps(X: pd.DataFrame, share: float, kind: str, seed: int) -> pd.DataFrame:
    """The table with so many of its cells missing, but for its first column."""
    rng = np.random.default_rng([seed, int(100 * share), KINDS.index(kind)])
    likely = np.full(X.shape, share)
    if kind == KINDS[1]:
        above = X.iloc[:, 0] > X.iloc[:, 0].median()
        likely = np.where(above.to_numpy()[:, None], 2 * share, 0.0) * np.ones(X.shape)
    gaps = rng.random(X.shape) < likely
    gaps[:, 0] = False
    return X.mask(gaps)


def runs(seed: int) -> list[dict]:
    """Every learner on one table, complete and with gaps."""
    data = rs.simulate(nodes=10, degree=2, samples=1000, random_state=seed)
    found = []
    for name, kind in LEARNERS.items():
        tables = [("none", 0.0, "complete", data.X)]
        for share in SHARES:
            for where in KINDS:
                gaps = with_gaps(data.X, share, where, seed)
                tables += [(where, share, how, gaps) for how in ("em", "drop")]
        for where, share, how, X in tables:
            settings = {} if how == "complete" else {"missing": how}
            record = {"learner": name, "seed": seed, "gaps": where, "share": share, "method": how}
            try:
                model = kind(**settings).fit(X)
                scores = rs.evaluate(data.truth, model)
                rows = int((model.sample_weight_ > 0).sum())
                record |= {"rows": rows, "shd": scores.shd, "cpdag_shd": scores.cpdag_shd}
            except ValueError:  # too few rows are left
                record |= {"rows": 0, "shd": np.nan, "cpdag_shd": np.nan}
            found.append(record)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--records", type=Path, default=RECORDS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    done = pd.read_csv(asked.records) if asked.records.exists() else pd.DataFrame({"seed": []})
    for seed in range(100, 100 + asked.seeds):
        if seed not in set(done["seed"]):
            done = pd.concat([done, pd.DataFrame(runs(seed))])
            done.astype({"seed": int}).to_csv(asked.records, index=False, lineterminator="\n")
    shown = done.groupby(["learner", "gaps", "share", "method"], sort=False)
    print(shown[["rows", "shd", "cpdag_shd"]].mean().round(1))


if __name__ == "__main__":
    main()
