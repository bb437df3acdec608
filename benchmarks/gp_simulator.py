"""CPU seconds to simulate Gaussian-process data of 2,000 rows and 50 nodes, one BLAS thread.

Run with: OMP_NUM_THREADS=1 .venv/bin/python benchmarks/gp_simulator.py
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rescore.data.simulate import simulate  # after the thread counts: BLAS reads them once

SAMPLES, NODES = 2000, 50


def seconds(graph: str, degree: int, mechanism: str) -> float:
    start = time.process_time()
    simulate(graph, degree=degree, nodes=NODES, samples=SAMPLES, mechanism=mechanism)
    return time.process_time() - start


def main() -> None:
    simulate(nodes=5, samples=50, mechanism="gp")  # imports happen outside the measurement
    print(f"{SAMPLES} rows x {NODES} nodes, CPU seconds")
    print(f"{'graph':<6} {'gp':>8} {'gp-add':>8}")
    for graph in ("ER", "SF"):
        for degree in (2, 4):
            cost = [seconds(graph, degree, mechanism) for mechanism in ("gp", "gp-add")]
            print(f"{graph}{degree:<4} {cost[0]:8.2f} {cost[1]:8.2f}")


if __name__ == "__main__":
    main()
