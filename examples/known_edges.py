"""What you know enters the optimisation: an edge that must be there, one that cannot be."""

import rescore as rs


def main() -> None:
    data = rs.simulate(nodes=5, degree=1, samples=500, random_state=2)
    free = rs.Linear().fit(data.X)
    cause, effect = next(iter(free.causal_graph_.edges))
    told = rs.Linear(forbidden=[(cause, effect)], required=[("x0", "x4")]).fit(data.X)
    print("without knowledge:", sorted(free.causal_graph_.edges))
    print("with knowledge:   ", sorted(told.causal_graph_.edges))
    assert not told.causal_graph_.has_edge(cause, effect)
    assert told.causal_graph_.has_edge("x0", "x4")


if __name__ == "__main__":
    main()
