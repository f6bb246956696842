"""Learners for delayed and lost observations, and the loop that measures their regret. One learner per file."""

from oldlight.learners.augmented_q_learning import AugmentedQLearning
from oldlight.learners.augmented_ucbvi import AugmentedUCBVI
from oldlight.learners.base import Learner, Setting
from oldlight.learners.default_learner import default
from oldlight.learners.delayed_ucbvi import DelayedUCBVI
from oldlight.learners.link_learner import LinkLearner
from oldlight.learners.loop import learn, learn_seeds
from oldlight.learners.loss_ucbvi import LossUCBVI
from oldlight.learners.memoryless import MemorylessQLearning, MemorylessUCBVI
from oldlight.learners.optimistic_planning import OptimisticPlanning
from oldlight.learners.posterior_sampling import PosteriorSampling
from oldlight.learners.run import LearningRun, compare
from oldlight.learners.stopping import Certificate, WithinEpsilon, learn_offline, recorded_episodes
from oldlight.learners.uniform import UniformRandom
from oldlight.model.episode import Episode

__all__ = [
    "AugmentedQLearning",
    "AugmentedUCBVI",
    "Certificate",
    "DelayedUCBVI",
    "Episode",
    "Learner",
    "LearningRun",
    "LinkLearner",
    "LossUCBVI",
    "MemorylessQLearning",
    "MemorylessUCBVI",
    "OptimisticPlanning",
    "PosteriorSampling",
    "Setting",
    "UniformRandom",
    "WithinEpsilon",
    "compare",
    "default",
    "learn",
    "learn_offline",
    "learn_seeds",
    "recorded_episodes",
]
