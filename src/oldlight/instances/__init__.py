"""Named processes: the paper's chains, the chain where sensing matters, the dichotomy, and classics. Each a TabularMDP."""

from oldlight.instances.chains import center_chain, sensing_chain
from oldlight.instances.classics import forest, inventory
from oldlight.instances.dichotomy import dichotomy

__all__ = ["center_chain", "dichotomy", "forest", "inventory", "sensing_chain"]
