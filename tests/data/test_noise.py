import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rescore.data.noise import group_members, group_scales, group_sizes, standard_noise

THEORY = {
    "gauss": stats.norm(),
    "exp": stats.expon(loc=-1),
    "gumbel": stats.gumbel_r(loc=-np.euler_gamma),
    "uniform": stats.uniform(-1, 2),
}


@pytest.mark.parametrize("kind", THEORY)
def test_noise_follows_its_centred_distribution(kind):
    E = standard_noise(kind, 20_000, 2, np.random.default_rng(0))
    law = THEORY[kind]
    assert abs(law.mean()) < 1e-12
    assert stats.kstest(E.ravel(), law.cdf).pvalue > 1e-3
    assert np.abs(E.mean(axis=0)).max() < 5 * law.std() / np.sqrt(len(E))
    assert E.var() == pytest.approx(law.var(), rel=0.05)
    assert abs(np.corrcoef(E.T)[0, 1]) < 5 / np.sqrt(len(E))


@pytest.mark.parametrize("kind", THEORY)
def test_a_longer_sample_begins_with_the_shorter_one(kind):
    short, long = (standard_noise(kind, n, 3, np.random.default_rng(5)) for n in (10, 40))
    np.testing.assert_array_equal(short, long[:10])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(300, 1000))
def test_group_sizes_are_the_shares_to_within_one_row(parts, samples):
    shares = np.array(parts) / sum(parts)
    sizes = np.array(group_sizes(tuple(shares), samples))
    assert sizes.sum() == samples
    assert np.abs(sizes - shares * samples).max() < 1


@pytest.mark.parametrize("share", np.arange(1, 10) / 10)
def test_round_shares_lose_no_row_to_floating_point(share):
    assert group_sizes((share, 1 - share), 10) == [round(10 * share), round(10 * (1 - share))]


def test_members_are_mixed_and_not_in_blocks():
    member = group_members((0.5, 0.5), 1000, np.random.default_rng(0))
    assert np.bincount(member).tolist() == [500, 500]
    assert abs(np.corrcoef(member, np.arange(1000))[0, 1]) < 0.15
    assert 400 < np.count_nonzero(np.diff(member)) < 600


@given(st.integers(1, 5), st.integers(1, 21), st.integers(0, 2**32))
def test_half_of_the_variables_is_quiet_and_the_second_group_is_flipped(groups, nodes, seed):
    scales = group_scales(groups, nodes, 0.1, np.random.default_rng(seed))
    assert scales.shape == (groups, nodes)
    quiet = scales == 0.1
    assert ((scales == 1) | quiet).all()
    assert quiet[0].sum() == nodes // 2
    if groups > 1:
        assert (quiet[1] == ~quiet[0]).all()
    assert (quiet[2:].sum(axis=1) == nodes // 2).all()


def test_a_further_group_keeps_the_halves_of_the_earlier_ones():
    two, four = (group_scales(k, 10, 0.1, np.random.default_rng(0)) for k in (2, 4))
    np.testing.assert_array_equal(two, four[:2])
    assert not (four[2] == four[3]).all()


@pytest.mark.parametrize(
    ("shares", "error", "words"),
    [
        ((0.9, 0.2), ValueError, "sum to 1"),
        ((), ValueError, "sum to 1"),
        ((1.1, -0.1), ValueError, "above 0"),
        ((1.0, 0.0), ValueError, "above 0"),
        ((np.nan, 0.5), ValueError, "above 0"),
        ((0.999, 0.001), ValueError, "without a row"),
        ((True,), TypeError, "number"),
        (("0.5", "0.5"), TypeError, "number"),
        ("0.9", TypeError, "shares such as"),
        (0.9, TypeError, "shares such as"),
    ],
)
def test_bad_shares_are_refused(shares, error, words):
    with pytest.raises(error, match=words):
        group_sizes(shares, 100)


def test_unknown_noise_is_refused_with_the_known_kinds():
    with pytest.raises(ValueError, match="gauss, exp, gumbel, uniform"):
        standard_noise("cauchy", 10, 2, np.random.default_rng(0))
