"""Learners for delayed and lost observations, and the loop that measures their regret."""

from oldlight.learners.loop import learn, learn_seeds
from oldlight.learners.protocol import Episode, Learner, Setting
from oldlight.learners.run import LearningRun, compare
from oldlight.learners.uniform import UniformRandom

__all__ = ["Episode", "Learner", "LearningRun", "Setting", "UniformRandom", "compare", "learn", "learn_seeds"]
