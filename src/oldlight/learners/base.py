"""What a learner is: three methods. Anything with them can be given to `oldlight.learn`; the class `Learner` declares them, and the
optional ones, for those who like to inherit.

Between two calls of `see` the answers of `act` must not change: they are the policy of that episode, whose exact value is
what regret counts. A learner may draw from `rng` in `start` and `see`.

    class AlwaysTheFirst:                       # the smallest learner
        def start(self, setting, rng): ...
        def act(self, info): return 0
        def see(self, episode): ...
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.channels import Channel
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.without_law import no_delay_law
from oldlight.model.episode import Episode
from oldlight.model.information import Information, Layout
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.model.problem import ImpairedMDP

if TYPE_CHECKING:
    from oldlight.learners.episode_blocks import EpisodeBlock
    from oldlight.simulation import Draws, World


@dataclass(frozen=True, eq=False)
class Setting:
    """What a learner knows beforehand: everything but the transitions (and it is up to the learner what else it uses).

    Parameters
    ----------
    horizon, n_states, n_actions : int
        H, S and A.
    rewards : ndarray, shape (H, S, A)
        r_h(s, a).
    initial : ndarray, shape (S,)
        Distribution of the first state.
    channel, law, arrival_probability
        Those of the problem; a channel without a delay law refuses whatever is asked of `law`, and the learner is asked with `LinkInformation`. A learner that estimates the delay law may use its support: which delays can occur at all.
    warmup, actuation, pending
        Those of the problem.
    stationary : bool
        Are the transitions the same at all steps?
    episodes : int
        K.
    failure : float
        γ, the failure probability of the bounds.
    layout : Layout or None
        Where each information state stands in a table; None under loss.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), "constant:1")
    >>> setting = ol.learners.Setting.of(problem, episodes=100, failure=0.1, layout=ol.Layout.of(problem))
    >>> setting.rewards.shape, round(setting.log_term, 3)
    ((10, 20, 5), 13.816)
    """

    horizon: int
    n_states: int
    n_actions: int
    rewards: Floats
    initial: Floats
    channel: Channel
    law: DelayLaw
    arrival_probability: Floats | None
    warmup: int
    actuation: int
    pending: tuple[int, ...]
    stationary: bool
    episodes: int
    failure: float
    layout: Layout | None  # where each information state stands in a table; None under loss

    lead = checks.renamed_property("lead", "warmup")
    seen = checks.renamed_property("seen", "arrival_probability")

    @classmethod
    def of(cls, problem: ImpairedMDP, episodes: int, failure: float, layout: Layout | None) -> Setting:
        """The setting of a run of `episodes` episodes on `problem`."""
        mdp = problem.mdp
        return cls(
            problem.horizon, problem.n_states, problem.n_actions, np.array(mdp.rewards), np.array(problem.initial),
            problem.channel, *_law_of(problem), problem.warmup, problem.actuation, problem.pending,
            mdp.stationary_transitions, episodes, failure, layout,
        )  # fmt: skip

    def __repr__(self) -> str:
        sizes = f"S={self.n_states}, A={self.n_actions}, H={self.horizon}"
        return f"Setting({sizes}, {self.channel!r}, {self.episodes:,} episodes, failure={self.failure:g})"

    @property
    def log_term(self) -> float:
        """ι = log(S·A·H·K/γ)."""
        return float(np.log(self.n_states * self.n_actions * self.horizon * self.episodes / self.failure))


class _NoLaw:
    """Stands for the delay law of a channel that has none: whatever needs it is refused by name."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise no_delay_law(self._channel)


def _law_of(problem: ImpairedMDP) -> tuple[Any, Floats | None]:
    """The delay law, or what refuses in its place, and the arrival probabilities."""
    if problem.has_delay_law:
        return problem.law, problem.arrival_probability
    return _NoLaw(problem.channel), None


class LearnerLike(Protocol):
    """What `oldlight.learn` needs, inherited or not."""

    def start(self, setting: Setting, rng: np.random.Generator) -> None: ...

    def act(self, info: Information) -> Any: ...

    def see(self, episode: Episode) -> None: ...


class Learner:
    """Base class of the learners, and of yours if you like: three methods to write, and the optional ones with what they are for.

    An optional method counts only if a subclass (or a class that does not inherit) has it.

    Attributes
    ----------
    estimate : float
        The learner's own estimate of the optimal value, recorded after each episode; NaN if it has none.

    Examples
    --------
    >>> import oldlight as ol
    >>> class Always(ol.learners.Learner):
    ...     def __init__(self, action=0):
    ...         self.action = action
    ...     def start(self, setting, rng): ...
    ...     def act(self, info):
    ...         return self.action
    ...     def see(self, episode): ...
    >>> Always(1)
    Always(action=1)
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), ol.ConstantDelay(1))
    >>> ol.learn(problem, Always(1), 3, seed=0).done
    3
    """

    estimate: float = math.nan
    episodes_per_block: int = 0  # the most that `play_block` may be asked for; 0: none
    policies_expire: bool = False  # is what `policy()` returns valid until the next episode only?

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        """Once, before the first episode: what is known beforehand, and the generator to draw from."""
        raise NotImplementedError

    def act(self, info: Information) -> Any:
        """During an episode: an action, or the probabilities of the actions (shape (A,)), for what the agent knows now.

        Where the learner has `policy()`, that one is asked."""
        if has_hook(self, "policy"):
            return self.policy().probabilities(info)
        raise NotImplementedError

    def see(self, episode: Episode) -> None:
        """After each episode: everything that the protocol reveals."""
        raise NotImplementedError

    def policy(self) -> Policy:
        """Optional: the policy of the next episode as an object, the same one as long as nothing has changed. It is then played and
        valued in compiled code, and `act` is not called."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Optional, for checkpoints: everything that was learnt, as a dictionary of arrays (the generator is saved by `learn`)."""
        raise NotImplementedError

    def restore(self, state: dict[str, Any]) -> None:
        """Optional, for checkpoints: take over what `state` returned, after `start`."""
        raise NotImplementedError

    def play_episode(self, world: World, draws: Draws) -> tuple[Any, ...]:
        """Optional: play one episode in compiled code of its own: (returns, states, actions, arrivals), as `World.play` gives them.
        It must do what `policy()` would."""
        raise NotImplementedError

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        """Optional: play the episodes first, first + 1, .. of `draws`, one for each entry of `wanted`, and learn from them, in one compiled call;
        the policies of the wanted ones are valued afterwards. It must do what the three methods would (`learners.episode_blocks`)."""
        raise NotImplementedError

    def acts_on_nodes(self, problem: ImpairedMDP) -> bool:
        """Optional: True where the learner wants `LinkInformation`, nodes of the link's automaton, of a channel with a delay law too."""
        return False

    def __repr__(self) -> str:
        """The class with the options of its constructor, as far as they are attributes of the same name."""
        names = [name for name in inspect.signature(type(self)).parameters if hasattr(self, name)]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def has_hook(learner: Any, name: str) -> bool:
    """Does the learner have this optional method, by itself or from a class other than `Learner`?"""
    found: Any = getattr(learner, name, None)
    return found is not None and getattr(found, "__func__", None) is not getattr(Learner, name)


def acts_on_nodes(learner: Any, problem: ImpairedMDP) -> bool:
    """Is the learner asked with `LinkInformation`, nodes of the link's automaton? Always behind a channel without a delay law, else if it says so."""
    return not problem.has_delay_law or (hasattr(learner, "acts_on_nodes") and bool(learner.acts_on_nodes(problem)))


def current_policy(learner: Any, n_actions: int) -> Policy:
    """The policy of the next episode: the learner's own, or its answers."""
    if has_hook(learner, "policy"):
        found: Policy = learner.policy()
        return found
    answers: Callable[[Information], Any] = learner.act
    return FunctionPolicy(answers, n_actions)
