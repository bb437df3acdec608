import re

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.protocols import Problem
from rescore.studies.relations import Relations, costs, of_relations, process_gain, relations
from rescore.tables.table import as_table


def finding(X):
    return next(one for one in rs.check(X).findings if one.code == "relations")


@pytest.mark.parametrize(
    ("mechanism", "noise", "kind"),
    [
        ("linear", "gauss", "linear"),
        ("linear", "exp", "linear"),  # in the wrong direction such noise looks like a bend
        ("gp-add", "gauss", "additive"),
        ("gp-add", "exp", "additive"),
        ("gp", "gauss", "joint"),
        ("mim", "gauss", "joint"),
    ],
)
def test_it_says_what_the_relations_are(mechanism, noise, kind):
    data = rs.simulate(
        "ER", degree=2, nodes=10, samples=2000, mechanism=mechanism, noise=noise, random_state=256
    )
    X = data.X.to_numpy() * np.geomspace(0.01, 100, 10)  # in any units
    assert relations(Problem.unconstrained(X)).kind == kind


def test_the_check_says_so_with_a_remedy_and_costs():
    data = rs.simulate("ER", degree=2, nodes=8, samples=600, mechanism="gp-add", random_state=261)
    found = finding(data.X)
    assert found.severity == "note"
    assert re.match(r"Relations look additive: of \d variables with causes \d", found.seen)
    assert found.remedy.startswith("Begin with rs.Additive()")
    assert re.search(r"Linear \S+, Additive .*GranDAG \S+, GaussianProcess \S+\.$", found.remedy)
    assert finding(data.X) == found


def test_unrelated_small_and_constant_tables_are_passed_over():
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(300, 3)), rng.normal(size=(20, 3)), np.ones((100, 2))):
        assert list(of_relations(as_table(X), np.full(len(X), 1 / len(X)), len(X))) == []


def test_large_tables_are_looked_at_in_part():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30_000, 1))
    X = pd.DataFrame(np.hstack([x, np.sin(2 * x), *rng.normal(size=(48, 30_000, 1))])).add_prefix(
        "c"
    )
    X["c1"] += 0.5 * rng.normal(size=30_000)
    found = list(of_relations(as_table(X), np.full(30_000, 1 / 30_000), 30_000))
    assert len(found) <= 1


def test_a_gaussian_process_sees_products_and_nothing_in_noise():
    rng = np.random.default_rng(2)
    Z, e = rng.normal(size=(300, 3)), rng.normal(size=300)
    assert process_gain(Z, e) < 0
    assert process_gain(Z, Z[:, 0] * Z[:, 2] + e) > 10


def test_costs_grow_with_the_table():
    def seconds(*shape):
        return [float(each.replace(",", "")) for each in re.findall(r" ([\d.,]*\d)", costs(*shape))]

    small, large = seconds(2000, 20), seconds(20_000, 100)
    assert all(b > a for a, b in zip(small, large, strict=True))


def test_kinds_go_by_the_share_of_the_variables():
    assert Relations(20, 4, 0).kind == "linear"
    assert Relations(20, 5, 2).kind == "additive"
    assert Relations(20, 5, 3).kind == "joint"
