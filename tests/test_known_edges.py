from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rescore as rs
from rescore.known_edges import edge_masks

NAMES = ["a", "b", "c", "d", "e"]
TEXT = st.text(
    st.characters(exclude_characters='*/"', exclude_categories=("C", "Z")), min_size=1, max_size=6
)


@st.composite
def knowledge(draw, text=TEXT):
    names = draw(st.lists(text, min_size=2, max_size=6, unique=True))
    cuts = draw(st.sets(st.integers(1, len(names) - 1)))
    places = [0, *sorted(cuts), len(names)]
    tiers = [names[i:j] for i, j in pairwise(places)]
    tiers = tiers if draw(st.booleans()) else []
    within = draw(st.sets(st.sampled_from(range(len(tiers))))) if tiers else set()
    free = not within
    pairs = [(names[i], names[j]) for i in range(len(names)) for j in range(i + 1, len(names))]
    required = draw(st.lists(st.sampled_from(pairs), unique=True)) if free else []
    back = [(j, i) for i, j in pairs]
    forbidden = draw(st.lists(st.sampled_from(back), unique=True))
    return rs.Knowledge(forbidden, required, tiers, within)


@given(known=knowledge())
@settings(max_examples=60, deadline=None)
def test_both_formats_give_back_what_was_written(known, tmp_path_factory):
    folder = tmp_path_factory.mktemp("known")
    for name in ("known.json", "known.txt"):
        known.write(folder / name)
        assert rs.Knowledge.read(folder / name) == known


@given(known=knowledge(st.text(min_size=1, max_size=6)))
@settings(max_examples=40, deadline=None)
def test_json_holds_any_text(known, tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "known.json"
    known.write(path)
    assert rs.Knowledge.read(path) == known


def test_a_file_as_tetrad_writes_it(tmp_path):
    path = tmp_path / "tetrad.txt"
    path.write_text(
        "/knowledge\r\n// a remark\r\naddtemporal\r\n\r\n2* c d\r\n1 a b\r\n3\r\n\r\n"
        "forbiddirect\r\n\r\na\tb\r\n\r\nrequiredirect\r\n\r\na c\r\n"
    )
    known = rs.Knowledge.read(path)
    assert known == rs.Knowledge([("a", "b")], [("a", "c")], [["a", "b"], ["c", "d"]], [1])


# The layout in which the editor of Tetrad saves: tiers from zero, two blanks, empty sections.
SAVED = """/knowledge
addtemporal

0*-  age:1 sex
1  dose
3  relapse death

tierstructure by place

0*  east west
1  dose

forbiddengroup

age:1 sex
east west

requiredgroup

dose
relapse death

forbiddirect
sex dose

requiredirect"""


def test_every_section_that_tetrad_saves_is_read(tmp_path):
    (tmp_path / "saved.txt").write_text(SAVED)
    known = rs.Knowledge.read(tmp_path / "saved.txt")
    assert known.tiers == (("age:1", "sex"), ("dose",), ("relapse", "death"))
    assert known.forbid_within == (0,)
    assert set(known.required) == {("dose", "relapse"), ("dose", "death")}
    places = {("east", "west"), ("west", "east"), ("dose", "east"), ("dose", "west")}
    groups = {(cause, effect) for cause in ("age:1", "sex") for effect in ("east", "west")}
    skipping = {(cause, effect) for cause in ("age:1", "sex") for effect in ("relapse", "death")}
    assert set(known.forbidden) == {("sex", "dose")} | places | groups | skipping


def test_the_next_tier_is_the_one_with_the_next_number(tmp_path):
    path = tmp_path / "k.txt"
    for tiers, forbidden in (
        ("1- a\n2 b\n3 c", {("a", "c")}),
        ("1- a\n3 b", {("a", "b")}),  # tier 2 is there, though nobody is in it
        ("0-* a b\n1 c", set()),
        ("2- a\n1 b\n4 c\n2 d", {("a", "c"), ("d", "c")}),  # the mark is of the tier
    ):
        path.write_text(f"/knowledge\naddtemporal\n{tiers}\n")
        assert set(rs.Knowledge.read(path).forbidden) == forbidden


def test_lines_with_the_same_number_are_one_tier(tmp_path):
    (tmp_path / "k.txt").write_text("/knowledge\naddtemporal\n1 a\n2 c\n1* b\n")
    assert rs.Knowledge.read(tmp_path / "k.txt") == rs.Knowledge(
        tiers=[["a", "b"], ["c"]], forbid_within=[0]
    )


def test_names_with_blanks_go_by_commas(tmp_path):
    path = tmp_path / "k.txt"
    path.write_text(
        '/knowledge comma\naddtemporal\n\n0  Exam 1, "Last, First"\n1*  Exam 2,Other\n\n'
        "forbiddengroup\nExam 1\nOther, Exam 2\n\nforbiddirect\n\nrequiredirect\n"
    )
    known = rs.Knowledge.read(path)
    assert known.tiers == (("Exam 1", "Last, First"), ("Exam 2", "Other"))
    assert known.forbidden == (("Exam 1", "Other"), ("Exam 1", "Exam 2"))
    known.write(path)
    assert path.read_text().startswith("/knowledge comma\n")
    assert '1 Exam 1, "Last, First"\n2* Exam 2, Other' in path.read_text()
    assert rs.Knowledge.read(path) == known


BLANKS = st.from_regex(r"[a-z0-9:,.\- ]{0,4}[a-z:,.]", fullmatch=True).filter(
    lambda name: name.strip() == name
)


@given(known=knowledge(BLANKS))
@settings(max_examples=60, deadline=None)
def test_blanks_and_commas_come_back(known, tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "known.txt"
    known.write(path)
    assert rs.Knowledge.read(path) == known


def test_the_example_of_tetrads_manual(tmp_path):
    path = tmp_path / "k.txt"
    path.write_text("/knowledge\naddtemporal\n1 x1 x2 \n2 x3\n3* x4 x5 \n\nforbiddirect\nx1\tx3\n\n"
                    "requiredirect\nx2  x4\n")  # fmt: skip
    tiers = [["x1", "x2"], ["x3"], ["x4", "x5"]]
    assert rs.Knowledge.read(path) == rs.Knowledge([("x1", "x3")], [("x2", "x4")], tiers, [2])


@given(known=knowledge(st.sampled_from(NAMES)))
@settings(max_examples=60, deadline=None)
def test_tiers_forbid_exactly_what_goes_back_in_time(known):
    place = {name: k for k, tier in enumerate(known.tiers) for name in tier}
    allowed, required = edge_masks(NAMES, known.edges()["forbidden"])
    for i, cause in enumerate(NAMES):
        for j, effect in enumerate(NAMES):
            back = place.get(cause, -1) > place.get(effect, 9)
            inside = place.get(cause, -1) == place.get(effect, 9) and (
                place[cause] in known.forbid_within
            )
            told = (cause, effect) in known.forbidden or i == j
            assert allowed[i, j] != (back or inside or told)
    assert not required.any()


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ({"forbidden": [("a", "b")], "required": [("a", "b")]}, ValueError, "both required and"),
        ({"required": [("a", "b"), ("b", "a")]}, ValueError, "cycle.*a -> b -> a"),
        ({"required": [("b", "a")], "tiers": [["a"], ["b"]]}, ValueError, "'b -> a'.*earlier"),
        (
            {"required": [("a", "b")], "tiers": [["a", "b"]], "forbid_within": [0]},
            ValueError,
            "within a tier",
        ),
        ({"tiers": [["a"], ["a"]]}, ValueError, "'a'.*more than once"),
        ({"tiers": [["a"], []]}, ValueError, "empty"),
        ({"tiers": ["ab"]}, TypeError, "list of column names"),
        ({"tiers": [["a"]], "forbid_within": [1]}, ValueError, "tier 1"),
        ({"tiers": [["a"]], "forbid_within": [True]}, TypeError, "whole number"),
        ({"forbidden": ["ab"]}, TypeError, "pair"),
    ],
)
def test_contradictions_and_misuse_are_sentences(parts, error, words):
    with pytest.raises(error, match=words):
        rs.Knowledge(**parts)


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_any_iterables_will_do(kind):
    known = rs.Knowledge(kind([("a", "b")]), tiers=kind([kind(["c"]), kind(["a"])]))
    assert known.edges()["forbidden"] == [("a", "b"), ("a", "c")]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("k.json", "{", "no knowledge file"),
        ("k.json", "[" * 100_000, "no knowledge file"),
        ("k.json", "[1]", "object with forbidden"),
        ("k.json", '{"forbid": []}', "'forbid'; known are"),
        ("k.json", '{"tiers": ["ab"]}', "list of lists"),
        ("k.json", '{"tiers": [[["a"]]]}', "name"),
        ("k.json", '{"tiers": [[null]]}', "name"),
        ("k.txt", "{}", "first line must be /knowledge"),
        ("k.txt", "", "first line must be /knowledge"),
        ("k.txt", "/knowledge\na b\n", "line 2"),
        ("k.txt", "/knowledge\nforbiddirect\na b c\n", "line 3.*'a b c'"),
        ("k.txt", "/knowledge\nforbidgroup\n", "line 2.*known are.*forbiddengroup"),
        (
            "k.txt",
            "/knowledge\nforbiddengroup\na b\n\nforbiddirect\n",
            "line 3.*no line of",
        ),
        ("k.txt", "/knowledge\naddtemporal\n-1 a\n", "line 3.*number of a tier.*'-1'"),
        ("k.txt", "/knowledge\naddtemporal\none a\n", "line 3.*number of a tier.*'one'"),
        ("k.txt", "/knowledge\naddtemporal\n0,a,b\n", "line 3.*'/knowledge comma'"),
        ("k.txt", "/knowledge\nforbiddirect\na,b\n", "line 3.*'/knowledge comma'"),
        ("k.txt", '/knowledge\nforbiddirect\n"wet grass" b\n', "line 3.*'wet grass'.*comma"),
        ("k.txt", "/knowledge comma\nrequiredirect\na, b, c\n", "line 3"),
        ("k.txt", "/knowledge\ntierstructure T\n0- a\n1 b\n", "line 3.*only under addtemporal"),
        ("k.txt", "/knowledge\naddtemporal\n0 a\n1 a\n", "more than once"),
        ("k.txt", "/knowledge\nforbiddirect\nx* b\n", "pattern"),
    ],
)
def test_files_that_cannot_be_read_are_sentences(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        rs.Knowledge.read(tmp_path / name)


@pytest.mark.parametrize(
    "name", ["/a", "x*", "", 7, 'q"', "two\nlines", " blank", "forbiddirect", "AddTemporal_1"]
)
def test_names_that_tetrad_cannot_hold_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="name"):
        rs.Knowledge(forbidden=[(name, "b")]).write(tmp_path / "k.txt")
    assert not (tmp_path / "k.txt").exists()


BACKWARDS = rs.Knowledge(
    required=[("e", "a")], tiers=[["e"], ["d", "c"], ["b", "a"]], forbid_within=[1]
)
LINEAR = [rs.Linear, rs.Notears, rs.Dagma, rs.Golem, rs.GES, rs.SortNRegress]


@pytest.fixture(scope="module")
def frame(chain):
    return pd.DataFrame(chain, columns=NAMES)


@pytest.mark.parametrize("learner", LINEAR)
@pytest.mark.parametrize("wrapped", [False, True])
def test_every_linear_learner_obeys_tiers_against_the_data(learner, wrapped, frame):
    model = learner(**BACKWARDS.edges())
    model = rs.ReScore(model) if wrapped else model
    edges = set(model.fit(frame).causal_graph_.edges)
    assert ("e", "a") in edges
    assert not edges & set(BACKWARDS.edges()["forbidden"])
    receipts = model.diagnostics_["knowledge"]
    assert len(receipts) == len(BACKWARDS.edges()["forbidden"]) + 1
    assert all(receipt["holds"] for receipt in receipts)
    assert {"constraint": "e -> a required", "holds": True} in receipts


def test_without_knowledge_the_fit_is_the_same_and_has_no_receipt(frame):
    plain, told = rs.Linear().fit(frame), rs.Linear(**rs.Knowledge().edges()).fit(frame)
    assert plain.adjacency_matrix_.equals(told.adjacency_matrix_)
    assert told.diagnostics_["knowledge"] == []


def test_a_receipt_can_say_no():
    from rescore.known_edges import receipts

    W = np.array([[0.0, 1.0], [0.0, 0.0]])
    said = receipts(["a", "b"], W, forbidden=[("a", "b")], required=[("b", "a")])
    assert [each["holds"] for each in said] == [False, False]


def test_unknown_names_are_refused_at_the_fit(frame):
    with pytest.raises(ValueError, match="'z'"):
        rs.Linear(**rs.Knowledge(tiers=[["a"], ["z"]]).edges()).fit(frame)


def test_a_model_with_knowledge_is_saved_with_its_receipts(frame, tmp_path):
    known = rs.Knowledge(tiers=[["a"], ["b", "c"]])
    model = rs.ReScore(rs.Linear(**known.edges())).fit(frame)
    rs.save(model, tmp_path)
    again = rs.load(tmp_path)
    assert again.diagnostics_["knowledge"] == model.diagnostics_["knowledge"]
    assert again.fit(frame).adjacency_matrix_.equals(model.adjacency_matrix_)


def test_moments_give_receipts_too(frame):
    known = rs.Knowledge(forbidden=[("a", "b")])
    model = rs.Notears(**known.edges()).fit_moments(frame.cov(), n_rows=300)
    assert model.diagnostics_["knowledge"] == [{"constraint": "a -> b forbidden", "holds": True}]


@pytest.mark.parametrize("kind", [rs.Linear, rs.GES, rs.SortNRegress, rs.Empty])
def test_every_learner_takes_knowledge_or_its_file(kind, chain, tmp_path):
    known = rs.Knowledge(required=[("x4", "x0")], tiers=[["x4"], ["x1", "x2"]])
    known.write(tmp_path / "k.json")
    told = [kind(knowledge=each).fit(chain) for each in (known, tmp_path / "k.json")]
    told += [kind(knowledge=str(tmp_path / "k.json")).fit(chain), kind(**known.edges()).fit(chain)]
    for model in told:
        assert model.causal_graph_.has_edge("x4", "x0")
        assert set(model.causal_graph_.edges).isdisjoint(known.edges()["forbidden"])
        assert model.diagnostics_["knowledge"] == told[0].diagnostics_["knowledge"]
        assert len(model.diagnostics_["knowledge"]) == 3


def test_knowledge_is_joined_with_single_edges_and_contradictions_are_refused(chain):
    known = rs.Knowledge(forbidden=[("x0", "x1")])
    learner = rs.Linear(knowledge=known, forbidden=[("x1", "x2"), ("x0", "x1")])
    assert learner.known_edges()["forbidden"] == [("x0", "x1"), ("x1", "x2")]
    receipts = rs.ReScore(learner).fit(chain).diagnostics_["knowledge"]
    assert [each["constraint"] for each in receipts] == ["x0 -> x1 forbidden", "x1 -> x2 forbidden"]
    with pytest.raises(ValueError, match="x0 -> x1' is both required and forbidden"):
        rs.Linear(knowledge=known, required=[("x0", "x1")]).fit(chain)
    with pytest.raises(TypeError, match="knowledge must be a Knowledge or the path of a file"):
        rs.Linear(knowledge=[("x0", "x1")]).fit(chain)


def test_learners_that_cannot_obey_refuse_knowledge_in_the_same_words(chain):
    known = rs.Knowledge(forbidden=[("x0", "x1")])
    places = np.arange(len(chain)) % 2
    for told in ({"knowledge": known}, {"forbidden": [("x0", "x1")]}):
        with pytest.raises(ValueError, match="CD-NOD cannot honour forbidden or required edges"):
            rs.CDNOD(**told).fit(chain, groups=places)
        with pytest.raises(ValueError, match="A function has no way to obey"):
            rs.Custom(lambda X: X.T @ X, **told).fit(chain)
