"""`LinkLearner` behind every link that can be planned: the contract, its counts by hand, and the plan it comes to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from link_cases import BY_NODES, guessing, names, plan_link
from oldlight.learners import Episode, LinkLearner, Setting, learn
from oldlight.learners.base import Learner
from oldlight.learners.learnt_plan import LearntPlan
from oldlight.learners.optimistic_model import Estimated
from oldlight.model.channels.later_link import LaterLink
from oldlight.planning.group_walk import group_value
from oldlight.simulation.link_episodes import decide
from oldlight.testing import check_learner
from repeats import is_thorough, repeats

H = 4
KINDS = ("prior", "bernstein", "hoeffding", "posterior")


def process() -> ol.TabularMDP:
    mdp = guessing(H)
    return mdp.replace(rewards=mdp.rewards / 1.2)


PROBLEMS = [ol.ImpairedMDP(process(), channel) for channel in BY_NODES]
LATE = ol.ImpairedMDP(process(), "packets:0=0.5,1=0.5", actuation=1, pending=(1,))


class Fixed(Learner):
    """Always the same policy; keeps what it is shown."""

    def __init__(self, policy: Any) -> None:
        self.given, self.shown = policy, []  # type: Any, list[Episode]

    def start(self, setting: Any, rng: Any) -> None: ...

    def acts_on_nodes(self, problem: Any) -> bool:
        return True

    def policy(self) -> Any:
        return self.given

    def see(self, episode: Episode) -> None:
        self.shown.append(episode)


def at_random(problem: ol.ImpairedMDP) -> ol.FunctionPolicy:
    """Probabilities that depend on everything that is known."""

    def answer(info: Any) -> Any:
        rng = np.random.default_rng([info.h, 9 if info.t is None else info.t, len(info.queue), *info.queue])
        return rng.dirichlet(np.ones(problem.n_actions))

    return ol.FunctionPolicy(answer, problem.n_actions)


@pytest.mark.parametrize("problem", [*PROBLEMS, LATE], ids=lambda p: names(p.channel))
def test_walk_over_groups_is_the_walk_over_information_states(problem: ol.ImpairedMDP) -> None:
    from node_walk import walk

    for policy in (ol.solve(problem).policy, at_random(problem)):

        def choose(info: Any, policy: Any = policy) -> Any:
            return decide(problem, policy, info)

        exact = walk(problem.mdp, problem.automaton, choose, initial=problem.initial)
        found = group_value(problem, policy)
        assert exact is not None
        assert found is not None
        assert found[0] == pytest.approx(exact[0], abs=1e-12)
        assert found[1] == exact[1]
        assert group_value(problem, policy, max_states=found[1] - 1) is None


@pytest.mark.parametrize("problem", [*PROBLEMS, LATE], ids=lambda p: names(p.channel))
def test_episodes_of_a_run_are_those_of_simulate(problem: ol.ImpairedMDP) -> None:
    """One seed, the same episodes; what is lost is hidden, everything else is shown with its arrival time."""
    policy = ol.solve(problem).policy
    learner = Fixed(policy)
    run = learn(problem, learner, 40, seed=5)
    played = ol.simulate(problem, policy, 40, seed=5, record=True)
    assert np.array_equal(run.returns, played.returns)
    assert run.values == pytest.approx(np.full(40, run.best), abs=1e-9)
    assert played.arrivals is not None
    assert played.states is not None
    for k, episode in enumerate(learner.shown):
        assert np.array_equal(episode.arrivals, played.arrivals[k])
        lost = episode.arrivals < 0
        assert np.array_equal(episode.states, np.where(lost, -1, played.states[k]))
        assert np.array_equal(np.isnan(episode.rewards), lost)


@pytest.mark.parametrize(
    ("problem", "law"),
    [(p, "known") for p in [*PROBLEMS, LATE]]
    + [(p, "estimated") for p in [PROBLEMS[0], *PROBLEMS[6 : 9 if is_thorough() else 7], LATE]],
    ids=lambda x: names(x.channel) if hasattr(x, "channel") else x,
)
def test_contract_behind_every_link(problem: ol.ImpairedMDP, law: Any, fewer_episodes: None) -> None:
    """One policy between two episodes, one seed one run, a checkpoint that goes on to the identical run, nothing above the best."""
    check_learner(LinkLearner(law=law, pooled=True, hidden_steps=3), problem)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("problem", PROBLEMS[::2], ids=lambda p: names(p.channel))
def test_a_known_process_is_planned_for(problem: ol.ImpairedMDP, kind: Any) -> None:
    """With as many counts as one likes the policy is worth the optimum within the tolerance, whatever makes it explore."""
    learner = LinkLearner(optimism=kind, pooled=True, tolerance=1e-6)
    learner.start(Setting.of(problem, 100, 0.1, None), np.random.default_rng(0))
    learner.counts.number[0] = 1e13 * problem.mdp.transitions[0]
    learner._plan()
    best = ol.solve(problem).value
    found = group_value(problem, learner.policy())
    assert found is not None
    assert found[0] == pytest.approx(best, abs=2e-5)
    assert learner.estimate == pytest.approx(best, abs=2e-4)


def swim(horizon: int) -> ol.TabularMDP:
    """Six places of a river: left is sure, right fights the current and pays at the last one. Long blackouts have many laws."""
    P, r = np.zeros((6, 2, 6)), np.zeros((6, 2))
    for s in range(6):
        P[s, 0, max(s - 1, 0)] = 1.0
        for move, p in ((1, 0.35), (0, 0.6), (-1, 0.05)):
            P[s, 1, min(max(s + move, 0), 5)] += p
    r[0, 0], r[5, 1] = 0.05, 1.0
    return ol.TabularMDP(P, r, horizon=horizon, initial=np.eye(6)[0])


@pytest.mark.parametrize("room", [2**25, 2**17, 2**14])
@pytest.mark.parametrize(
    "channel", ["loss:0.3", "constant:1+loss:0.3", "bursty:0.2,0.4", "packets:0=0.7,1=0.3+loss:0.2"]
)
def test_a_plan_within_its_room_earns_what_it_says(channel: str, room: int) -> None:
    """Whether the search of a plan found room for all its laws or not."""
    problem = ol.ImpairedMDP(swim(12), channel)
    planner = LearntPlan(Setting.of(problem, 100, 0.1, None), "known", 1e-3, room)
    policy, upper, lower = planner.bounds(Estimated(problem.mdp.transitions[:1], np.asarray(problem.mdp.rewards)))
    found = group_value(problem, policy)
    assert found is not None
    assert lower - 1e-9 <= found[0] <= upper + 1e-9
    if room > 2**20:
        assert upper - lower <= planner.tolerance


@pytest.mark.parametrize(
    ("channel", "law"),
    [
        ("packets:0=0.5,1=0.3,2=0.2+loss:0.1", "known"),
        ("packets:0=0.6,1=0.4", "estimated"),
        ("fifo:0=0.5,1=0.3,2=0.2", "estimated"),
    ],
)
def test_it_comes_to_the_optimum(channel: str, law: Any) -> None:
    problem = ol.ImpairedMDP(process(), channel)
    run = learn(problem, LinkLearner(pooled=True, law=law), 300, seed=2, every=10)
    uniform = learn(problem, ol.learners.UniformRandom(), 1, seed=0).shortfalls[0]
    assert run.exact or run.sampled == 0
    assert run.shortfalls[-100:].mean() < 0.02 * uniform


def test_hidden_steps_count_what_is_only_done_while_the_state_is_hidden() -> None:
    """Under loss a pair whose action is wanted only while its state is hidden is never counted (docs/statements.md on Proposition 6); stretches
    between two observations count it."""
    problem = ol.ImpairedMDP(process(), "loss:0.3")
    visits = []
    for steps in (0, 3):
        learner = LinkLearner(pooled=True, hidden_steps=steps)
        learn(problem, learner, 100, seed=1, every=100)
        visits.append(learner.counts.visits[0])
    off = ~np.eye(3, dtype=bool)
    assert (visits[0][off] == 0).all()
    assert (visits[1][off] > 1).any()


@pytest.mark.parametrize("channel", ["none", "constant:2", "packets:0=0.5,1=0.5+loss:0.1", "loss:0.2"])
def test_the_default_learns_behind_every_kind_of_link(channel: str) -> None:
    """A step that changes its law, too: the counts of its pairs are taken apart."""
    P = np.stack(
        [np.eye(2)[[[0, 1], [0, 1]]], np.eye(2)[[[1, 0], [1, 0]]]] * 3
    )  # the actions change their places at every step
    P = 0.9 * P + 0.05
    problem = ol.ImpairedMDP(ol.TabularMDP(P, np.array([[0.0, 0.0], [1.0, 1.0]]), horizon=6), channel)
    learner: Any = ol.learners.default()
    assert learner.pooled == "auto"
    assert "pooled=True" in repr(ol.learners.default(pooled=True))
    run = learn(problem, learner, 150, seed=3, every=10)
    assert learner.counts.split.any()
    assert run.shortfalls[-30:].mean() < 0.03 * learn(problem, ol.learners.UniformRandom(), 1).shortfalls[0]


# -- counts ----------------------------------------------------------------------------------------------------------


def setting(channel: str = "packets:0=0.5,1=0.3,2=0.2+loss:0.1") -> Setting:
    return Setting.of(ol.ImpairedMDP(process(), channel), 100, 0.1, None)


def episode(states: list[int], actions: list[int], arrivals: list[int]) -> Episode:
    lost = np.array(arrivals) < 0
    rewards = np.where(lost, np.nan, 0.1 * np.arange(len(states)))
    return Episode(np.where(lost, -1, states), np.array(actions), np.array(arrivals), rewards, 0)


def test_counts_of_an_episode_by_hand() -> None:
    from oldlight.learners.link_counts import AgeCounts, LinkCounts

    counts = LinkCounts(setting(), False)
    counts.add(episode([0, 1, 2, 1], [2, 0, 1, 1], [1, 2, -1, 7]))  # step 2 is lost, step 3 comes after the end
    assert counts.number.sum() == 1  # only (0, 2) -> 1 has both of its states
    assert counts.number[0, 0, 2, 1] == 1
    assert counts.paid[1, 1, 0] == pytest.approx(0.1)
    assert counts.paid_times.sum() == 3
    ages = AgeCounts(ol.ImpairedMDP(process(), "packets:0=0.5,1=0.3,2=0.2+loss:0.1").automaton)
    ages.add(episode([0, 1, 2, 1], [2, 0, 1, 1], [1, 2, -1, 7]))
    # time 0: nothing; 1: step 0, age 1; 2: step 1, age 1; 3: nothing newer
    assert ages.roots[0, -1] == 1
    assert ages.roots[1, 1] == 1
    assert ages.rows[1].tolist() == [0, 1, 0, 0, 0, 1]
    assert ages.roots.sum() + ages.rows.sum() == H
    ages.add(episode([0, 1, 2, 1], [0] * 4, [0, 3, 3, 3]))  # three at once
    assert ages.rows[2].tolist() == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("problem", PROBLEMS[:5], ids=lambda p: names(p.channel))
def test_counted_ages_make_the_link(problem: ol.ImpairedMDP) -> None:
    """An age chain is counted as it is: the value of a plan behind the counted link tends to that behind the true one."""
    from oldlight.learners.link_counts import AgeCounts

    played = ol.simulate(problem, ol.solve(problem).policy, 4000, seed=3, record=True)
    assert played.arrivals is not None
    ages, no = AgeCounts(problem.automaton), np.zeros(H)
    for row in played.arrivals:
        ages.add(Episode(np.zeros(H, int), np.zeros(H, int), row, no, 0))
    found = plan_link(problem.mdp, ages.automaton()).lower
    # a probability is off by 4 standard deviations of 4,000 draws at most; H of them, each worth at most the span of H rewards
    assert found == pytest.approx(ol.solve(problem).value, abs=4 * H * H / np.sqrt(4000))


def test_pairs_are_split_when_their_steps_differ() -> None:
    from oldlight.learners.link_counts import log_evidence

    number = np.zeros((3, 1, 1, 2))
    number[:, 0, 0] = [[3, 1], [0, 2], [1, 1]]

    def mixture(n: Any) -> float:
        """The probability of the draws in order under a Dirichlet law with parameters ½, one after the other."""
        p, seen = 1.0, np.zeros(2)
        for s, times in enumerate(n):
            for _ in range(int(times)):
                p *= (seen[s] + 0.5) / (seen.sum() + 1.0)
                seen[s] += 1
        return p

    by_hand = np.prod([mixture(n) for n in number[:, 0, 0]]) / mixture(number[:, 0, 0].sum(axis=0))
    assert log_evidence(number)[0, 0] == pytest.approx(np.log(by_hand), abs=1e-12)


def test_a_sequential_test_seldom_splits_what_is_one_law_and_soon_what_is_not() -> None:
    from oldlight.learners.link_counts import LinkCounts

    rng, same, other = np.random.default_rng(1), 0, 0
    P = rng.dirichlet(np.ones(3), size=(H, 3, 3))
    mdp = process().replace(transitions=P)
    by_step = Setting.of(ol.ImpairedMDP(mdp, "none"), 100, 0.1, None)
    for _ in range(40):
        for p, changes in ((np.full(H, 0.4), False), (np.array([0.1, 0.9, 0.1, 0.9]), True)):
            counts = LinkCounts(by_step, "auto")
            for _ in range(60):
                s = (rng.random(H) < p).astype(float)
                counts.number[np.arange(H), 0, 0, s.astype(int)] += 1
                counts.test(0.1)
            if changes:
                other += bool(counts.split[0, 0])
            else:
                same += bool(counts.split.any())
    assert same <= 4  # each run with probability 0.1/9 at most
    assert other == 40


def test_nothing_is_split_where_one_law_is_promised() -> None:
    from oldlight.learners.link_counts import LinkCounts

    counts = LinkCounts(setting(), "auto")
    counts.number[0, 0, 0, 0] = counts.number[1, 0, 0, 1] = 100.0
    assert not counts.test(0.1)
    assert not counts.split.any()


def test_auto_is_pooled_until_it_splits() -> None:
    from oldlight.learners.link_counts import LinkCounts

    auto, pooled = LinkCounts(setting(), "auto"), LinkCounts(setting(), True)
    for counts in (auto, pooled):
        counts.add(episode([0, 1, 2, 1], [0, 0, 0, 0], [0, 1, 2, 3]))
    assert np.array_equal(auto.by_step(), pooled.by_step())
    auto.split[1, 0] = True
    now = auto.by_step()
    assert len(now) == H
    assert now[1, 1, 0, 2] == 1
    assert now[0, 1, 0, 2] == 0
    assert (now[:, 0, 0, 1] == 1).all()


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"optimism": "hope"}, "optimism"),
        ({"pooled": "sometimes"}, 'expected True, False or "auto"'),
        ({"hidden_steps": 1}, "hidden_steps"),
        ({"hidden_steps": "often"}, 'hidden_steps is .often., expected "auto", 0 or a whole number ≥ 2'),
        ({"visits": 0.0}, "visits"),
        ({"visits": "many"}, "visits"),
        ({"looks": -1}, "looks is -1, expected a whole number ≥ 0"),
        ({"looks": 8, "optimism": "bernstein"}, "looks is 8, expected 0 with optimism='bernstein'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        LinkLearner(**options)


@pytest.mark.parametrize(
    "name", ["DelayedUCBVI", "AugmentedUCBVI", "PosteriorSampling", "LossUCBVI", "MemorylessUCBVI"]
)
def test_learners_of_the_in_order_law_refuse_other_links(name: str) -> None:
    with pytest.raises(ValueError, match=r"no delay law|learns behind Loss|has a table for delay alone"):
        learn(PROBLEMS[0], getattr(ol.learners, name)(), 5, best=0.0)


def test_a_slow_sensor_is_learnt_by_its_period() -> None:
    """It never shows two states that are one step apart: stretches of its period are counted, and what could count nothing is refused."""
    problem = ol.ImpairedMDP(swim(12), "periodic:2")
    best = ol.solve(problem).value
    n = repeats(260, 400)
    runs = [learn(problem, ol.learners.default(), n, seed=s, best=best, every=20) for s in range(4)]
    assert all(run.shortfalls[0] > 0.3 * best for run in runs)
    assert sum(run.shortfalls[-1] < 0.05 * best for run in runs) >= 3  # the likelihood has other maxima
    for steps in (0, 2):
        with pytest.raises(ValueError, match=f"hidden_steps is {steps}, expected at least 3 behind Periodic"):
            learn(ol.ImpairedMDP(process(), "periodic:3"), LinkLearner(hidden_steps=steps), 5, best=0.0)
    assert LaterLink(ol.Periodic(3), 1).spacing == 3
    assert ol.RenewalLoss({1: 0.5, 2: 0.5}).spacing == 2
    assert ol.PacketChannel({0: 0.5, 1: 0.5}).spacing == 1


def test_what_cannot_be_estimated_is_refused() -> None:
    warm = ol.ImpairedMDP(process(), "constant:1", start="warm")
    with pytest.raises(ValueError, match="warm start"):
        learn(warm, LinkLearner(law="estimated"), 5, best=0.0)
    drifting = ol.TabularMDP(
        np.full((H, 3, 3, 3), 1 / 3) + 0.0 * np.arange(H)[:, None, None, None], np.zeros((3, 3)), horizon=H
    )
    P = np.array(drifting.transitions)
    P[1, 0, 0] = [1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="one law per step"):
        learn(ol.ImpairedMDP(drifting.replace(transitions=P), "none"), LinkLearner(pooled=True), 5, best=0.0)


@pytest.mark.parametrize("channel", ["constant:1", "loss:0.3"])
def test_a_posterior_is_drawn_again_though_nothing_new_is_seen(channel: str) -> None:
    """One pair alone: no count ever doubles after a while, and every draw is another process."""
    mdp = ol.TabularMDP(np.full((2, 1, 2), 0.5), np.array([[0.0], [1.0]]), horizon=3)
    learner, drawn = LinkLearner(optimism="posterior", pooled=True), []
    plan = learner._plan
    learner._plan = lambda: (plan(), drawn.append(learner.counts.episodes))[0]  # type: ignore[method-assign]
    learner.see = lambda episode: LinkLearner.see(learner, episode)  # type: ignore[method-assign]  # by its three methods
    learn(ol.ImpairedMDP(mdp, channel), learner, 400, progress=False)
    gaps = np.diff(drawn)
    assert (gaps <= np.sqrt(2 * np.array(drawn[:-1])) + 1).all()
    assert 28 <= len(drawn) <= 50  # about √(2·400), and the doublings


@pytest.mark.parametrize(("kept", "once"), [(2**14, True), (3, False)])
def test_a_policy_that_stays_is_asked_once(kept: int, once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each information state, as long as there is room for the answers; the episodes are those of `simulate`."""
    problem, asked = ol.ImpairedMDP(process(), "packets:0=0.5,1=0.5"), []

    class Even:
        def probabilities(self, info: Any) -> Any:
            asked.append(info)
            return np.full(problem.n_actions, 1.0 / problem.n_actions)

    monkeypatch.setattr("oldlight.simulation.link_world.KEPT", kept)
    monkeypatch.setattr("oldlight.learners.loop.PolicyEvaluator.value", lambda *given: (0.0, 0.0))
    run = learn(problem, Fixed(Even()), 300, seed=5, best=9.0, progress=False)
    assert len(set(asked)) > 20
    assert (len(asked) == len(set(asked))) == once
    np.testing.assert_array_equal(run.returns, ol.simulate(problem, Even(), 300, seed=5).returns)
