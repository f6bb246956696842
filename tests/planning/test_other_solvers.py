"""Other people's solvers, on an augmented MDP written out without oldlight's planner, find the same optimal values.

`benchmarks/augmented.py` writes the model of a constant delay and a warm start as sparse matrices; quantecon and
pymdptoolbox solve it by their own backward induction.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from augmented import Augmented, augment, open_loop

PAPER = (5.374514, 4.945562, 4.516146, 4.114572, 3.740674, 3.399082)  # math.md §7: Env1, d = 0..5, six digits


def quantecon(model: Augmented, steps: int) -> Any:
    """v_0 of `steps` backward steps, per augmented state."""
    markov = pytest.importorskip("quantecon.markov")
    with pytest.warns(UserWarning, match="infinite horizon"):
        process = markov.DiscreteDP(beta=1.0, **model.quantecon())
    return markov.backward_induction(process, steps, model.after)[0][0]


def mdptoolbox(model: Augmented, steps: int) -> Any:
    toolbox = pytest.importorskip("mdptoolbox.mdp")
    transitions, reward = model.mdptoolbox()
    plan = toolbox.FiniteHorizon(transitions, reward, 1.0, steps, h=model.after)
    plan.run()
    return plan.V[:, 0]


SOLVERS = [pytest.param(quantecon, id="quantecon"), pytest.param(mdptoolbox, id="mdptoolbox")]


def random_process(seed: int) -> tuple[ol.TabularMDP, int]:
    """A stationary process, dense or with few successors, rewards of either sign, and a delay (longer than H, too)."""
    rng = np.random.default_rng([20261115, seed])
    S, A, H, d = (int(rng.integers(low, high)) for low, high in ((2, 7), (1, 4), (1, 7), (0, 5)))
    P = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    if seed % 2:
        few = np.argsort(rng.random((S, A, S)), axis=-1) < min(2, S)
        P = np.where(few, P + 1e-3, 0.0)
    P /= P.sum(axis=-1, keepdims=True)
    return ol.TabularMDP(P, rng.normal(size=(S, A)), horizon=H), d


def warm(mdp: ol.TabularMDP, d: int) -> ol.Solution:
    return ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start=ol.WarmStart()))


@pytest.mark.filterwarnings("ignore:.*inefficient")  # pymdptoolbox compares a sparse matrix with 0
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(16))
def test_random_processes(solver: Any, seed: int) -> None:
    mdp, d = random_process(seed)
    model = augment(mdp, d)
    theirs = model.warm(solver(model, mdp.horizon))  # [s, queue]
    ours = warm(mdp, d)
    np.testing.assert_allclose(ours.value_by_start, theirs.mean(axis=1), rtol=0, atol=1e-10)
    assert ours.value == pytest.approx(theirs.mean(), abs=1e-10)


@pytest.mark.filterwarnings("ignore:.*inefficient")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("chain", [ol.instances.center_chain(0.99), ol.instances.sensing_chain(0.8)])
@pytest.mark.parametrize("d", [0, 1, 2])
def test_chains(solver: Any, chain: ol.TabularMDP, d: int) -> None:
    model = augment(chain, d)
    theirs = model.warm(solver(model, chain.horizon))
    np.testing.assert_allclose(warm(chain, d).value_by_start, theirs.mean(axis=1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_every_queue(seed: int) -> None:
    """Not only the mean: the value at each (s, queue) of time 0."""
    mdp, d = random_process(seed)
    model = augment(mdp, d)
    theirs = model.warm(quantecon(model, mdp.horizon))
    ours = warm(mdp, d)
    for s in range(mdp.n_states):
        for code, queue in enumerate(product(range(mdp.n_actions), repeat=d)):  # oldest action most significant
            info = ol.Information.seen(-d, s, queue)
            assert ours.value_at(info) == pytest.approx(theirs[s, code], abs=1e-10)


@pytest.mark.parametrize("d", range(6))
def test_the_papers_chain_rewarded_from_the_first_step(d: int) -> None:
    """Env1, d given uniform actions and then H = 10 chosen ones, and all of the H + d steps earn: math.md §7.

    quantecon counts like that by itself. oldlight's warm start earns nothing before step 0; what the given actions earn is
    the same for every policy, so it may as well be paid as a constant at step 0.
    """
    chain = ol.instances.center_chain(0.99)
    model = augment(chain, d)
    theirs = quantecon(model, chain.horizon)
    assert theirs.mean() == pytest.approx(PAPER[d], abs=5e-7)
    rewards = np.array(chain.rewards)
    rewards[0] += open_loop(chain.transitions[0], chain.rewards[0], d).mean()
    assert warm(chain.replace(rewards=rewards), d).value == pytest.approx(theirs.mean(), abs=1e-10)


@pytest.mark.parametrize("d", [1, 2])
def test_the_papers_chain_as_a_longer_episode(d: int) -> None:
    """The same numbers without a warm start: an episode of H + d steps whose first state is seen at once and every later
    one d late, entered at time d by any queue. What it has earned by then plus what is left is v_0 of that queue."""
    chain = ol.instances.center_chain(0.99, horizon=10 + d)
    law = np.zeros((chain.horizon, 1, 1, d + 1))
    law[1:, ..., 0] = law[0, ..., d] = 1.0
    plan = ol.solve(ol.ImpairedMDP(chain, ol.StochasticDelay(law)))
    model = augment(chain, d)
    theirs = quantecon(model, 10).reshape(chain.n_states, -1)
    before = model.after.reshape(theirs.shape)
    for s in range(chain.n_states):
        for code, queue in enumerate(product(range(chain.n_actions), repeat=d)):
            left = plan.value_at(ol.Information.seen(0, s, queue, waited=d))
            assert before[s, code] + left == pytest.approx(theirs[s, code], abs=1e-10)
    assert theirs.mean() == pytest.approx(PAPER[d], abs=5e-7)
