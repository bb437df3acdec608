"""The bundled file is the published one, and both graphs are those listed here."""

import gzip
import hashlib
from importlib.resources import files
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import rescore
from rescore.data import CONDITIONS, FILE_SHA256, VALUES_SHA256, load_sachs

BUNDLED = files("rescore.data") / "sachs.csv.gz"
SIZES = [853, 902, 911, 723, 810, 799, 848, 913, 707]


def edges(truth: str) -> set[tuple[str, str]]:
    A = load_sachs(truth).truth
    return {(i, j) for i in A.index for j in A.columns if A.loc[i, j]}


def test_the_file_is_the_one_in_the_wheel_of_cdt() -> None:
    content = gzip.decompress(BUNDLED.read_bytes())
    assert hashlib.sha256(content).hexdigest() == FILE_SHA256
    assert FILE_SHA256 == "fc331dcd0bc1d8765986b88cd1d23dd5a3f52e4ffc299fdf96de9d522ddf01aa"


def test_the_parsed_values_are_exact() -> None:
    values = load_sachs().X.to_numpy().astype("<f8", order="C")
    assert hashlib.sha256(values.tobytes()).hexdigest() == VALUES_SHA256
    assert VALUES_SHA256 == "9b3f895c1652f9230a3356d76d7a320c88494feee9c6df509b001ccef8eae484"


def test_the_compressed_file_carries_no_time_and_is_small() -> None:
    packed = BUNDLED.read_bytes()
    assert packed[4:8] == bytes(4)  # where gzip keeps the time of modification
    assert len(packed) < 160_000


def test_the_file_lies_inside_the_package_that_hatch_packs() -> None:
    assert Path(str(BUNDLED)).is_relative_to(Path(rescore.__file__).parent)


def test_shape_names_and_groups() -> None:
    data = load_sachs()
    assert (data.n, data.d) == (7466, 11)
    assert " ".join(data.names) == "Raf Mek Plcg PIP2 PIP3 Erk Akt PKA PKC P38 Jnk"
    assert list(CONDITIONS.values()) == SIZES
    assert data.groups.value_counts(sort=False).tolist() == SIZES
    assert data.groups.iloc[[0, 852, 853, 6758, 6759, 7465]].tolist() == [
        "cd3cd28",
        "cd3cd28",
        "cd3cd28 + ICAM-2",
        "PMA",
        "β2cAMP",
        "β2cAMP",
    ]
    assert "Science" in data.source
    assert "cdt 0.6.0" in data.source


def test_the_values_have_at_most_two_decimals() -> None:
    X = load_sachs().X.to_numpy()
    assert np.array_equal(X, X.round(2))
    assert (X > 0).all()


@pytest.mark.parametrize(("truth", "number"), [("consensus-17", 17), ("extended-20", 20)])
def test_both_truths_are_acyclic(truth: str, number: int) -> None:
    graph = nx.DiGraph(list(edges(truth)))
    assert graph.number_of_edges() == number
    assert nx.is_directed_acyclic_graph(graph)


def test_the_17_edges() -> None:
    listed = {("Raf", "Mek"), ("Mek", "Erk"), ("Erk", "Akt")}
    listed |= {("Plcg", "PIP2"), ("Plcg", "PIP3"), ("PIP3", "PIP2")}
    listed |= {("PKA", effect) for effect in ("Raf", "Mek", "Erk", "Akt", "P38", "Jnk")}
    listed |= {("PKC", effect) for effect in ("Raf", "Mek", "PKA", "P38", "Jnk")}
    assert edges("consensus-17") == listed


def test_the_20_edges_differ_from_the_17_as_documented() -> None:
    few, many = edges("consensus-17"), edges("extended-20")
    assert few - many == {("Plcg", "PIP3")}
    assert many - few == {("PIP3", "Plcg"), ("PIP2", "PKC"), ("Plcg", "PKC"), ("PIP3", "Akt")}


def test_an_unknown_truth_names_the_choices() -> None:
    with pytest.raises(ValueError, match="consensus-17, extended-20"):
        load_sachs("cdt-18")


def test_the_licence_of_the_file_ships_beside_it():
    from importlib.resources import files

    notice = (files("rescore.data") / "NOTICE").read_text()
    assert "MIT License" in notice
    assert "Copyright (c) 2018 Diviyan Kalainathan" in notice
