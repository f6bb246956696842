"""`policy_of`: a trained model as an executable policy that `evaluate`, `simulate`, `Controller`, `play` and the testbed take.

A model of stable-baselines3 (or anything with `predict(observation, deterministic=..)`) answers to what the environment shows it; a policy of this package
answers to an information state. The two are the same thing in other words: (h, t, s_t, actions since, waited) fills the Dict of the link, and
the Dict is made the vector that `AugmentedObservation` makes of it. So the model's exact value behind the link can be computed, and put beside the optimum.

Behind a link that is planned by its automaton the information has no wait. Train with keys that leave out `waited` and `fresh` there; else it is refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from oldlight.envs.augmented_observation import AugmentedObservation, Flattening
from oldlight.envs.impaired_observation import ImpairedObservation
from oldlight.envs.observation_view import ObservationView
from oldlight.envs.tabular import TabularEnv
from oldlight.model.link_information import LinkInformation
from oldlight.model.policies import FunctionPolicy


def policy_of(model: Any, env: gym.Env[Any, Any], *, deterministic: bool = True) -> FunctionPolicy:
    """A trained model as a policy of what is known behind the link.

    Parameters
    ----------
    model : object with predict(observation, deterministic=...)
        For example a model of stable-baselines3 that was trained on `env`.
    env : gymnasium.Env
        What it was trained on: an environment with Discrete states and actions behind a link, as it is or inside `AugmentedObservation`.
    deterministic : bool
        The model's most likely action; False asks its policy network for the probabilities of all actions (stable-baselines3's PPO and A2C).

    Returns
    -------
    FunctionPolicy
        Each information state is asked once.

    Examples
    --------
    >>> import oldlight as ol
    >>> class Right:
    ...     def predict(self, observation, deterministic=True):
    ...         return 0, None
    >>> env = ol.envs.AugmentedObservation(ol.envs.TabularEnv("sensing_chain:0.8", channel="constant:2"))
    >>> round(ol.evaluate(env.unwrapped.problem, ol.envs.policy_of(Right(), env)).value, 4)
    1.0
    """
    if not callable(getattr(model, "predict", None)):
        raise TypeError(f"{model!r} is no trained model: it has no predict(observation, deterministic=...)")
    flat, view, inside = _shown_by(env)
    states, actions = inside.observation_space, env.action_space
    if not isinstance(actions, spaces.Discrete) or int(actions.start):
        raise TypeError(f"the environment takes {actions}, and a policy chooses among Discrete actions 0, 1, ..")
    waits = flat is None or any(part.key in ("waited", "fresh") for part in flat._parts)
    if states is None or int(getattr(view._observation, "start", 0)):
        raise TypeError("the states are numbered from another number than 0; policies know them from 0 on")
    answer = partial(_answer, model, flat, view, waits, int(actions.n), bool(deterministic))
    return FunctionPolicy(answer, int(actions.n))


def _shown_by(env: gym.Env[Any, Any]) -> tuple[Flattening | None, ObservationView, Any]:
    """(how the Dict is made a vector, the Dict, the environment that shows it)."""
    flat: Flattening | None = None
    inner: Any = env
    while True:
        if isinstance(inner, AugmentedObservation):
            flat = inner._flattening
        elif isinstance(inner, ImpairedObservation):
            if not isinstance(inner.env.observation_space, spaces.Discrete):
                break
            return flat, inner._view, inner
        elif isinstance(inner, TabularEnv) and not inner._setup.plain:
            setup = inner._setup
            problem = setup.problem
            sizes = spaces.Discrete(problem.n_states), spaces.Discrete(problem.n_actions)
            ages = setup.observation_space.ages  # type: ignore[attr-defined]
            view = ObservationView(*sizes, places=setup.places, ages=ages, horizon=problem.horizon, ahead=problem.actuation, clock=True)  # fmt: skip
            return flat, view, inner
        if not isinstance(inner, gym.Wrapper):
            break
        inner = inner.env
    raise TypeError(
        f"{env} shows no Discrete states behind a link, and a policy answers to those; for a continuous environment play the model itself, "
        "or a plan on a grid: oldlight.envs.GridProcess"
    )


def _answer(model: Any, flat: Any, view: ObservationView, waits: bool, n: int, certain: bool, info: Any) -> Any:
    """The action at an information state, or the probabilities of all."""
    seen, age = info.t is not None, len(info.queue)
    if isinstance(info, LinkInformation):
        if waits:
            raise ValueError(
                'behind this link the information has no wait, and the model looks at it: train on AugmentedObservation(env, keys=["observation", "age", '
                '"seen", "actions", "time"])'
            )
        waited = 0
    else:
        waited = info.waited
    shown: Any = view.show(info.state if seen else None, seen, age, waited, info.h, list(info.queue))
    row = shown if flat is None else flat.row(shown)
    if certain:
        return int(np.asarray(model.predict(row, deterministic=True)[0]).item())
    import torch

    with torch.no_grad():
        law = model.policy.get_distribution(model.policy.obs_to_tensor(row)[0]).distribution.probs
    p = law.cpu().numpy().reshape(-1)[:n].astype(np.float64)
    return p / p.sum()
