"""More rows than memory: Parquet files, a cluster on this machine, and a weight for every row."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from distributed import Client

import rescore as rs


def write_parts(folder: Path, rows: int = 60_000, parts: int = 3) -> None:
    """Stand-in for files of yours: two latent groups of rows whose noise differs."""
    rng = np.random.default_rng(0)
    for k in range(parts):
        n = rows // parts
        scale = np.where(rng.random((n, 1)) < 0.2, [0.3, 2.0, 1.0], [1.0, 0.4, 0.3])
        E = rng.normal(size=(n, 3)) * scale
        part = pd.DataFrame({"id": np.arange(n) + k * n, "dose": E[:, 0]})
        part["level"] = 2 * part["dose"] + E[:, 1]
        part["effect"] = part["level"] + E[:, 2]
        part.to_parquet(folder / f"part-{k}.parquet", index=False)


def main() -> None:
    # One command for a cluster on this machine.  For a real one give its address instead, as in
    # Client("tcp://scheduler:8786"): dask-kubernetes, dask-jobqueue (SLURM) and
    # dask-cloudprovider start one.  All workers must be able to read the files.
    with (
        tempfile.TemporaryDirectory() as place,
        Client(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as client,
    ):
        folder = Path(place)
        write_parts(folder)
        table = rs.scan(folder / "*.parquet", keys=["id"], client=client)
        model = rs.ReScore().fit(table)
        for cause, effect, weight in model.causal_graph_.edges(data="weight"):
            print(f"{cause} -> {effect}  {weight:+.2f}")
        print(model.diagnostics_["passes"]["summary"])
        rows = rs.write_weights(model, table, folder / "weights.parquet")
        print(f"{rows:,} rows have a weight beside their id.")


if __name__ == "__main__":
    main()
