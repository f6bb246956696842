"""Learners for delayed and lost observations, and the loop that measures their regret. One learner per file."""

from oldlight.learners.delayed_ucbvi import DelayedUCBVI
from oldlight.learners.loop import learn, learn_seeds
from oldlight.learners.posterior_sampling import PosteriorSampling
from oldlight.learners.protocol import Episode, Learner, Setting
from oldlight.learners.run import LearningRun, compare
from oldlight.learners.uniform import UniformRandom

__all__ = [
    "DelayedUCBVI",
    "Episode",
    "Learner",
    "LearningRun",
    "PosteriorSampling",
    "Setting",
    "UniformRandom",
    "compare",
    "learn",
    "learn_seeds",
]
