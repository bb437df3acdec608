import numpy as np
import pytest

from rescore.weightings.groups import rows_alike

NOISE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t5": lambda rng, shape: rng.standard_t(5, size=shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize(("n", "d"), [(100, 3), (500, 20)])
def test_rows_that_are_alike_seldom_raise_an_alarm_whatever_their_noise(noise, n, d):
    scale = np.linspace(0.1, 10, d)
    alarms = [
        not rows_alike(
            np.square(NOISE[noise](np.random.default_rng(seed), (n, d)) * scale), np.ones(n)
        )
        for seed in range(60)
    ]
    assert np.mean(alarms) < 0.2


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_group_with_other_noise_is_not_missed(seed, share):
    rng = np.random.default_rng(seed)
    member = np.arange(500)[:, None] < 500 * share
    scale = np.where(member, np.tile([0.5, 1.0], 10), np.tile([1.0, 0.5], 10))
    assert not rows_alike(np.square(rng.normal(size=(500, 20)) * scale), np.ones(500))


@pytest.mark.parametrize("seed", range(20))
def test_a_few_rows_of_plain_noise_are_not_missed(seed):
    rng = np.random.default_rng(seed)
    scale = np.where(np.arange(500)[:, None] < 10, 4.0, 1.0)
    assert not rows_alike(np.square(rng.normal(size=(500, 10)) * scale), np.ones(500))


def test_a_row_counted_k_times_is_the_row_repeated():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        losses, counts = rng.exponential(size=(60, 3)), rng.integers(1, 4, size=60)
        repeated = np.repeat(losses, counts, axis=0)
        assert rows_alike(losses, counts.astype(float)) == rows_alike(
            repeated, np.ones(len(repeated))
        )


def test_variables_without_any_loss_and_single_ones_say_nothing():
    losses = np.random.default_rng(0).exponential(size=(200, 3))
    assert rows_alike(losses * [1.0, 1.0, 0.0], np.ones(200))
    assert rows_alike(np.zeros((200, 3)), np.ones(200))
    assert rows_alike(losses[:, :1], np.ones(200))
