"""The package's own agents in Gymnasium environments: `learn_in` drives a learner, `play` a policy.

Both read what the agent knows from the flat Dict of the environment (`information`), so they see nothing else: the environment may
be `oldlight/...-v0` with a channel, or any environment with Discrete observations and actions inside `ImpairedObservation`.

Learners are told the sizes, the rewards and the link (`oldlight.learners.Setting`), which is why a table is needed: that of the
process, Gymnasium's own (`env.unwrapped.P`, as in FrozenLake), or `problem=...`. An environment that can end early is run to the
horizon in `FixedLength`: the state where it ended absorbs, as in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.control.controller import Controller
from oldlight.envs.action_link import mixed_process
from oldlight.envs.drawn_link import LinkPerEpisode
from oldlight.envs.fixed_length import FixedLength
from oldlight.envs.grid import GridProcess
from oldlight.envs.grid_play import play_controller
from oldlight.envs.impaired_action import ImpairedAction
from oldlight.envs.impaired_observation import ImpairedObservation
from oldlight.envs.tabular import TabularEnv
from oldlight.learners.base import LearnerLike, Setting, current_policy
from oldlight.model.channels import Loss
from oldlight.model.episode import Episode
from oldlight.model.information import Information, Layout
from oldlight.model.link_information import LinkInformation, NodeFollower
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import Policy, as_probabilities
from oldlight.model.policy_check import not_a_policy
from oldlight.model.problem import ImpairedMDP
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation.link_episodes import by_automaton


def information(shown: Mapping[str, Any], time: int) -> Information:
    """τ_h from the Dict that an environment behind a link shows.

    Parameters
    ----------
    shown : mapping
        The observation. All actions since the newest visible step must be in it.
    time : int
        h, the step that the next action will act on.

    Returns
    -------
    Information
        What the agent knows.

    Examples
    --------
    >>> import oldlight as ol
    >>> env = ol.envs.TabularEnv("sensing_chain:0.8", channel="constant:1")
    >>> shown, _ = env.reset(seed=0)
    >>> ol.envs.information(shown, 0)
    Information(h=0, t=None, state=None, queue=(), waited=1)
    """
    age = int(shown["age"][0])
    queue = [] if age == 0 else [int(a) for a in shown["actions"][-age:]] if "actions" in shown else None
    if queue is None or len(queue) < age:
        raise ValueError(
            f"{age} actions lie between the newest observation and now, and {len(queue or [])} are shown: make the environment "
            f"with queue={age} or more"
        )
    if not shown["seen"]:
        return Information.nothing_seen(tuple(queue))
    return Information.seen(time - age, int(shown["observation"]), tuple(queue), int(shown["waited"][0]))


class _Stage:
    """An environment with a tabular process behind it: episodes of the same length, and how to read them."""

    def __init__(self, env: gym.Env[Any, Any], problem: ImpairedMDP | None) -> None:
        base = env.unwrapped
        if isinstance(base, TabularEnv) and not isinstance(env, ImpairedObservation):
            self.env, self.problem = env, base.problem if problem is None else problem
            shown: spaces.Space[Any] = env.observation_space
            if not isinstance(shown, spaces.Dict):
                raise ValueError(
                    'the environment has no link; make it with one, e.g. channel="constant:2" or channel="none"'
                )
        elif isinstance(env, ImpairedObservation):
            self.problem = _table(env) if problem is None else problem
            H = self.problem.horizon
            pending, lossy = _late_actions(env)
            # a policy of the table needs all actions since
            every: dict[str, Any] = {"horizon": H, "queue": H + len(pending)}
            every |= {"actuation": len(pending), "pending": pending}
            inside: gym.Env[Any, Any] = FixedLength(env.env.env if isinstance(env.env, ImpairedAction) else env.env, H)
            if lossy is not None:  # its delay is among the pending actions
                inside = ImpairedAction(inside, Loss(rate=lossy.rate), missing="default", default=lossy.default)
            self.env = ImpairedObservation(inside, **env._saved_kwargs | every)
        else:
            raise TypeError(
                f"{env} shows nothing that an agent of oldlight can read: wrap it, ImpairedObservation(env, channel), as the "
                "outermost wrapper"
            )
        S, A = self.problem.n_states, self.problem.n_actions
        sizes = (S, A)
        entries = self.env.observation_space
        assert isinstance(entries, spaces.Dict)
        seen, done = entries.spaces.get("observation"), self.env.action_space
        discrete = isinstance(seen, spaces.Discrete) and isinstance(done, spaces.Discrete)
        if not discrete or (int(seen.n) - 1, int(done.n)) != sizes or int(seen.start) or int(done.start):  # type: ignore[union-attr, attr-defined]
            raise ValueError(
                f"the environment shows {seen} and takes {done}; expected Discrete states 0..{S - 1} (and one more for nothing "
                f"seen) and Discrete actions 0..{A - 1}, as the table has"
            )

    def play(self, policy: Policy, rng: np.random.Generator, seed: int | None) -> tuple[float, Mapping[str, Any]]:
        """One episode: its return, and its hindsight."""
        problem = self.problem
        H, A, ahead = problem.horizon, problem.n_actions, problem.actuation
        shown, info = self.env.reset(seed=seed)
        earned = 0.0
        link = getattr(policy, "automaton", problem.automaton)  # of a plan for merged laws: the merged one
        follower = NodeFollower(link, ahead) if by_automaton(problem, policy) else None
        for now in range(H):
            a = 0  # chosen too late to act: any will do
            if now + ahead < H:
                known: Any = information(shown, now + ahead)
                if follower is not None:
                    node = link.nodes[follower.hear(*_heard(info, shown, now))]
                    known = LinkInformation(now + ahead, node, known.t, known.state, known.queue)
                p = as_probabilities(policy.probabilities(known), A, f"the policy at {tuple(known)}")
                a = int(p.argmax()) if p.max() == 1.0 else int(rng.choice(A, p=p / p.sum()))
            shown, reward, terminated, truncated, info = self.env.step(a)
            earned += float(reward)
            if (terminated or truncated) and now + 1 < H:
                raise ValueError(f"the episode ended after {now + 1} steps, expected {H}: the process of the table")
        revealed: Mapping[str, Any] = info["hindsight"]
        return earned, revealed

    def episode(self, revealed: Mapping[str, Any]) -> Episode:
        """The hindsight as learners read it: in the time of the step that an action acts on, late at most by the law's cap."""
        problem = self.problem
        warmup, n = problem.warmup, problem.warmup + problem.horizon
        arrivals = np.array(revealed["arrivals"][:n], dtype=np.int64)
        lost = arrivals < 0
        steps = np.arange(n) - warmup
        longest = steps + (warmup if warmup else problem.law.longest_delay)
        arrivals = np.where(lost, -1, np.minimum(arrivals + problem.actuation, longest))
        states = np.array([-1 if s is None else int(s) for s in revealed["observations"][:n]], dtype=np.int64)
        rewards = np.array(revealed["rewards"][:n], dtype=np.float64)
        rewards[lost] = np.nan
        return Episode(states, np.array(revealed["actions"][:n], dtype=np.int64), arrivals, rewards, warmup)


def _heard(info: Mapping[str, Any], shown: Mapping[str, Any], now: int) -> tuple[list[int], list[int]]:
    """(arrived, lost): the steps of which something is heard at time `now`."""
    if "arrivals" not in info:  # a delay law behind a tabular environment: at most one step is settled
        step = int(info["arrival"])
        newest = int(shown["time"][0]) - int(shown["age"][0])
        settled = [step] if step >= 0 else []
        return (settled, []) if shown["fresh"] and newest == step else ([], settled)
    steps = info["arrivals"]
    if all(isinstance(step, int) for step in steps):
        return list(steps), []
    return [i for i, seen in steps if seen is not None or i < 0], [i for i, seen in steps if seen is None and i >= 0]


def learn_in(
    env: gym.Env[Any, Any],
    learner: LearnerLike,
    episodes: int,
    *,
    seed: Seed = 0,
    problem: ImpairedMDP | None = None,
    failure: float = 0.1,
) -> Floats:
    """Let a learner act and learn in an environment.

    Parameters
    ----------
    env : gymnasium.Env
        `oldlight/...-v0` with a channel, or an environment in `ImpairedObservation`.
    learner : learner
        As `oldlight.learn` takes it.
    episodes : int
        How many.
    seed : int, SeedSequence or Generator
        Random seed.
    problem : ImpairedMDP, optional
        What the learner knows about (but its transitions); by default that of the environment's own table.
    failure : float
        γ, the failure probability of the bonuses.

    Returns
    -------
    ndarray, shape (episodes,)
        The return of each episode.

    Examples
    --------
    >>> import oldlight as ol
    >>> env = ol.envs.TabularEnv("center_chain:0.8", channel="constant:1")
    >>> ol.envs.learn_in(env, ol.learners.DelayedUCBVI(), 5, seed=0).shape
    (5,)
    """
    K = checks.whole("episodes", episodes, least=1)
    stage = _Stage(env, problem)
    of = stage.problem
    number = seed_number(seed)
    streams = [np.random.default_rng([number, k]) for k in range(2)]
    layout = None if of.arrival_probability is not None else Layout.of(of)
    learner.start(Setting.of(of, K, checks.probability("failure", failure), layout), streams[0])
    returns = np.zeros(K)
    for k in range(K):
        returns[k], revealed = stage.play(current_policy(learner, of.n_actions), streams[1], number if k == 0 else None)
        learner.see(stage.episode(revealed))
    return returns


def play(
    env: gym.Env[Any, Any],
    policy: Policy | Controller,
    episodes: int,
    *,
    seed: Seed = 0,
    problem: ImpairedMDP | None = None,
    grid: GridProcess | None = None,
) -> Floats:
    """Play a policy or a controller in an environment.

    Parameters
    ----------
    env : gymnasium.Env
        As `learn_in` takes it.
    policy : Policy or Controller
        A function of what is known; or a controller, which hears what arrives and is asked at every step, in any environment inside
        `ImpairedObservation` and for as long as its episodes last.
    episodes : int
        How many.
    seed : int, SeedSequence or Generator
        Random seed.
    problem : ImpairedMDP, optional
        That of the environment's own table if None.
    grid : GridProcess, optional
        For a controller in a continuous environment: it makes states of observations and actions of choices.

    Returns
    -------
    ndarray, shape (episodes,)
        The return of each episode.

    Examples
    --------
    >>> import oldlight as ol
    >>> env = ol.envs.TabularEnv("dichotomy:2", channel="constant:2")
    >>> ol.envs.play(env, ol.solve(env.problem).policy, 4, seed=0).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    number, K = seed_number(seed), checks.whole("episodes", episodes, least=1)
    if isinstance(policy, Controller):
        return play_controller(env, policy, K, number, grid)
    if not hasattr(policy, "probabilities"):
        raise not_a_policy(policy)
    stage, rng = _Stage(env, problem), np.random.default_rng([number, 1])
    return np.array([stage.play(policy, rng, number if k == 0 else None)[0] for k in range(K)])


def _table(env: ImpairedObservation) -> ImpairedMDP:
    """The process behind the wrapper, from the environment's own table."""
    base: Any = env.unwrapped
    if isinstance(env.channel, LinkPerEpisode):
        raise ValueError(
            "the link is drawn for each episode, and the best policy behind it remembers all ages so far; plan and learn behind one of them: "
            f"env.channel = .. The links are {env.channel!r}"
        )
    if env.horizon is None:
        raise ValueError("the environment has no limit on its steps: ImpairedObservation(env, channel, horizon=...)")
    if isinstance(base, TabularEnv):
        mdp = base.problem.mdp
    elif hasattr(base, "P"):
        mdp = TabularMDP.from_gymnasium(base, env.horizon)
    else:
        raise ValueError(
            f"{base} has no transition table, and learners are told the rewards: give problem=ImpairedMDP(TabularMDP(...), channel)"
        )
    pending, lossy = _late_actions(env)
    mixed = mdp if lossy is None else mixed_process(mdp, lossy.default, lossy.rate)
    return ImpairedMDP(mixed, env.channel, actuation=len(pending), pending=pending)


class _LossyActions(NamedTuple):
    """How often an action is lost, and what is done then."""

    rate: float
    default: int


def _late_actions(env: ImpairedObservation) -> tuple[list[int], _LossyActions | None]:
    """The actions under way at the start: those of the wrapper and, acting first, the defaults of a delay of actions inside; and how that loses."""
    pending = [int(a) for a in env.pending]
    inside: Any = env.env
    if isinstance(inside, ImpairedAction):
        (late, rate), default = inside.planned, int(inside.default)
        return [default] * late + pending, _LossyActions(rate, default) if rate else None
    while isinstance(inside, gym.Wrapper):
        if isinstance(inside, ImpairedAction):
            raise ValueError(
                f"ImpairedAction is inside of other wrappers, {env.env}; put it directly inside ImpairedObservation"
            )
        inside = inside.env
    return pending, None
