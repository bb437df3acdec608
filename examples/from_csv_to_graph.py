"""A CSV becomes a graph, its row weights and a score."""

import tempfile
from pathlib import Path

import rescore as rs


def main() -> None:
    # Stand-in for a file of yours: 5 variables, a minority of rows whose noise differs.
    data = rs.simulate(
        nodes=5, degree=1, samples=500, groups=(0.9, 0.1), noise_scale=0.1, random_state=1
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "measurements.csv")
        data.X.to_csv(path, index=False)
        table = rs.Dataset.read(path)

    model = rs.ReScore().fit(table.X)  # around the recommended learner, rs.Linear()
    print(model.status_.value)
    for cause, effect, weight in model.causal_graph_.edges(data="weight"):
        print(f"{cause} -> {effect}  {weight:+.2f}")
    print(rs.evaluate(data.truth, model))

    share = model.sample_weight_.groupby(data.groups).sum()
    print(f"The minority is 10 % of the rows and got {share['g1']:.0%} of the weight.")


if __name__ == "__main__":
    main()
