"""The link of the actions as keywords of the tabular environments: equal to late actions, to a mixed process, or to its law; else refused."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from scipy.stats import chi2

import oldlight as ol
from oldlight.envs import ImpairedAction, ImpairedObservation, TabularEnv, TabularVectorEnv, learn_in, play
from oldlight.envs.action_link import mixed_process
from repeats import repeats

CHAIN = "oldlight/SensingChain-v0"
RANDOM = "packets:0=.5,2=.5+loss:0.2"


def episode(env: Any, seed: int | None) -> list[Any]:
    """All that is shown, earned and told, with actions that do not depend on it."""
    rng = np.random.default_rng(3)
    told = [env.reset(seed=seed)]
    over = False
    while not over:
        *step, over, _, info = env.step(int(rng.integers(5)))
        told.append((*step, {key: value for key, value in info.items() if not key.startswith("acted")}))
    return told


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def test_a_constant_delay_of_actions_is_the_actuation() -> None:
    late = gym.make(CHAIN, channel="loss:0.3", action_channel="constant:2", default=1)
    known = gym.make(CHAIN, channel="loss:0.3", actuation=2, pending=[1, 1])
    assert same(episode(late, 5), episode(known, 5))
    assert ol.solve(late.unwrapped.problem).value == ol.solve(known.unwrapped.problem).value  # type: ignore[attr-defined]
    both = gym.make(CHAIN, channel="none", action_channel="constant:1", default=4, actuation=1, pending=[2])
    assert both.unwrapped.problem.pending == (4, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize("missing", ["hold", "default"])
def test_what_is_done_is_the_newest_that_has_arrived(missing: Any) -> None:
    """In every episode: the queue holds what was chosen, what is done was chosen when it says, and the process moved by what was done."""
    mdp = ol.instances.sensing_chain(1.0)  # every action succeeds: what was done can be seen
    env = TabularEnv(mdp, channel="none", action_channel=RANDOM, missing=missing, default=3, queue=4)
    rng, row = np.random.default_rng(0), mdp.transitions[0].argmax(axis=2)
    for k in range(40):
        shown, _ = env.reset(seed=k if k == 0 else None)
        chosen: list[int] = []
        newest, before, over = -1, 3, False
        while not over:
            state, a = int(shown["observation"]), int(rng.integers(5))
            shown, _, over, _, info = env.step(a)
            chosen.append(a)
            source = info["acted_from"]
            assert source >= newest if missing == "hold" else source == -1 or source > newest
            assert info["acted"] == (chosen[source] if source >= 0 else before if missing == "hold" else 3)
            assert mdp.transitions[0, state, info["acted"], int(shown["observation"])] > 0
            newest, before = max(source, newest), info["acted"]
        assert info["hindsight"]["actions"].tolist() == chosen
        assert row[int(info["hindsight"]["observations"][-1]), info["hindsight"]["acted"][-1]] >= 0
        assert info["hindsight"]["acted"][-1] == info["acted"]


def test_ages_of_what_is_done_have_their_law() -> None:
    """Delays 0 or 2, nothing lost, held: at step h the newest that has arrived is h with ½, else h − 1 with ½ of the rest, else h − 2. Independent
    losses of 30 %: it is h − m with 0.7·0.3^m."""
    n = repeats(800, 4000)
    laws: list[tuple[str, Any]] = [("packets:0=.5,2=.5", [0.5, 0.25, 0.25]), ("loss:0.3", [0.7, 0.21, 0.09])]
    for link, law in laws:
        envs = TabularVectorEnv("sensing_chain:0.8", num_envs=n, channel="none", action_channel=link)
        envs.reset(seed=1)
        for _ in range(6):
            infos = envs.step(np.zeros(n, dtype=np.int64))[4]
        ages = np.minimum(5 - infos["acted_from"], 2)
        seen, expected = np.bincount(ages, minlength=3), n * np.array(law)
        assert ((seen - expected) ** 2 / expected).sum() < chi2.ppf(0.999, 2)


def test_independent_losses_replaced_by_a_default_are_a_process_of_their_own() -> None:
    """Its rows by hand; the states that follow a choice, by χ²; its exact optimum, earned by playing."""
    mdp = ol.instances.sensing_chain(0.8)
    mixed = mixed_process(mdp, 2, 0.3)
    s, a, after = 7, 0, 8
    assert mixed.transitions[0, s, a, after] == pytest.approx(0.7 * 0.8 + 0.3 * mdp.transitions[0, s, 2, after])
    n = repeats(3000, 6000)
    envs = TabularVectorEnv(mdp, num_envs=n, channel="none", action_channel="loss:0.3", missing="default", default=2)
    envs.reset(seed=4)
    shown, *_ = envs.step(np.full(n, 1))
    before = shown["observation"]
    shown, *_ = envs.step(np.full(n, 0))
    total, freedom = 0.0, 0
    for state in range(mdp.n_states):
        law, seen = mixed.transitions[0, state, 0], np.bincount(shown["observation"][before == state], minlength=20)
        expected = law * seen.sum()
        assert (seen[law == 0] == 0).all()
        total += ((seen - expected)[law > 0] ** 2 / expected[law > 0]).sum() if seen.sum() else 0.0
        freedom += int((law > 0).sum()) - 1
    assert total < chi2.ppf(0.999, freedom)


@pytest.mark.parametrize("late", ["", "constant:1+"])
def test_the_optimum_behind_lost_actions_is_earned(late: str) -> None:
    """By our own environment and by the wrapper, within four standard errors; and learners learn there."""
    link = f"{late}loss:0.3"
    own = TabularEnv("sensing_chain:0.8", channel="constant:1", action_channel=link, missing="default", default=2)
    best = ol.solve(own.problem)
    around = ImpairedObservation(
        ImpairedAction(TabularEnv("sensing_chain:0.8"), link, missing="default", default=2), "constant:1"
    )
    for env in (own, around):
        returns = play(env, best.policy, repeats(250, 1200), seed=2)
        assert abs(returns.mean() - best.value) < 4 * returns.std(ddof=1) / np.sqrt(len(returns))
        assert learn_in(env, ol.learners.DelayedUCBVI(), 3).shape == (3,)
    without = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1"))
    assert best.value < without.value


def test_sparse_processes_and_processes_per_step_mix_alike() -> None:
    rng = np.random.default_rng(0)
    P, R = rng.dirichlet(np.ones(4), size=(3, 4, 2)), rng.random((3, 4, 2))
    dense = mixed_process(ol.TabularMDP(P, R, horizon=3), 1, 0.25)
    assert dense.transitions == pytest.approx(0.75 * P + 0.25 * P[:, :, 1:2])
    assert dense.rewards == pytest.approx(0.75 * R + 0.25 * R[:, :, 1:2])
    from scipy.sparse import csr_array

    sparse = mixed_process(ol.TabularMDP([csr_array(p.reshape(8, 4)) for p in P], R, horizon=3), 1, 0.25)
    assert sparse.sparse
    assert sparse.transitions == pytest.approx(dense.transitions)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_copy_does_what_a_single_environment_does(mode: AutoresetMode) -> None:
    how: dict[str, Any] = {"channel": "packets:0=.5,1=.5", "action_channel": RANDOM, "horizon": 4}
    envs = gym.make_vec(CHAIN, num_envs=3, autoreset_mode=mode, **how)
    one = gym.make(CHAIN, **how)
    shown, _ = envs.reset(seed=8)
    mine, _ = one.reset(seed=9)
    for k in range(4):
        assert all(np.array_equal(shown[name][1], mine[name]) for name in mine)
        shown, _, _, _, infos = envs.step(np.full(3, k))
        mine, _, _, _, info = one.step(k)
        last = infos["final_info"] if mode is AutoresetMode.SAME_STEP and k == 3 else infos
        assert (last["acted"][1], last["acted_from"][1]) == (info["acted"], info["acted_from"])
    final = infos["final_obs"][1] if mode is AutoresetMode.SAME_STEP else {name: shown[name][1] for name in shown}
    assert all(np.array_equal(final[name], mine[name]) for name in mine)
    if mode is AutoresetMode.NEXT_STEP:
        *_, infos = envs.step(np.zeros(3, dtype=np.int64))
        assert not infos["_acted"].any()  # reset, nothing was done


def test_what_cannot_be_planned_is_refused_with_the_reason() -> None:
    for link, missing in ((RANDOM, "hold"), ("loss:0.2", "hold"), ("bursty:0.1,0.5", "default")):
        env = gym.make(CHAIN, channel="none", action_channel=link, missing=missing)
        assert len(episode(env, 0)) == 11
        with pytest.raises(ValueError, match=r"does not know what was done.*simulated and not planned") as refused:
            _ = env.unwrapped.problem  # type: ignore[attr-defined]
        assert ('With missing="default" independent losses are planned' in str(refused.value)) == (link == "loss:0.2")
        with pytest.raises(ValueError, match="simulated and not planned"):
            learn_in(env, ol.learners.DelayedUCBVI(), 2)
    with pytest.raises(ValueError, match="put the delay into the link"):
        gym.make(CHAIN, channel="none", action_channel=RANDOM, actuation=1)
    with pytest.raises(ValueError, match="late or lost actions"):
        gym.make(CHAIN, action_channel="loss:0.1")
    with pytest.raises(ValueError, match="missing is 'wait'"):
        gym.make(CHAIN, channel="none", action_channel="loss:0.1", missing="wait")
    with pytest.raises(ValueError, match=r"default is 5, expected .*0 .* 4|default is 5"):
        gym.make(CHAIN, channel="none", action_channel="loss:0.1", default=5)


@pytest.mark.parametrize("outside", [False, True])
def test_the_two_links_are_never_mixed_up(outside: bool) -> None:
    """A reset looks for a channel that was set on the wrappers around: the link of the actions is none, on whichever side it is."""
    made: Any = gym.make("FrozenLake-v1") if outside else TabularEnv("sensing_chain:0.8")
    if outside:
        env: Any = ImpairedAction(ImpairedObservation(made, "constant:2"), "loss:0.5")
        observed, acting = env.env, env
    else:
        env = ImpairedObservation(ImpairedAction(made, "loss:0.5"), "constant:2")
        observed, acting = env, env.env
    for seed in range(2):
        env.reset(seed=seed)
        env.step(0)
        assert observed.channel == ol.ConstantDelay(2)
        assert acting.action_channel == ol.Loss(rate=0.5)


def test_the_classic_ids_take_it_too() -> None:
    env = gym.make("oldlight/CartPole-v1", channel="constant:1", action_channel="constant:2", default=1)
    env.reset(seed=0)
    assert [env.step(0)[4]["acted"] for _ in range(4)] == [1, 1, 0, 0]


def test_a_spec_keeps_the_link_of_the_actions() -> None:
    env = gym.make(CHAIN, channel="constant:1", action_channel=ol.Loss(rate=0.4), missing="default", default=2)
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert same(episode(env, 7), episode(again, 7))
