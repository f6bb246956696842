"""Named processes: the paper's chains, the chain where sensing matters, the dichotomy, the lower bound's tree, formulas
as processes, classics, and ICU-Sepsis, a process of real size. Each a TabularMDP."""

from oldlight.instances.chains import center_chain, sensing_chain
from oldlight.instances.classics import forest, inventory
from oldlight.instances.dichotomy import dichotomy
from oldlight.instances.hard_tree import hard_tree, hard_tree_epsilon, hard_tree_value
from oldlight.instances.icu import icu_sepsis
from oldlight.instances.sat import sat, satisfied_share

__all__ = [
    "center_chain",
    "dichotomy",
    "forest",
    "hard_tree",
    "hard_tree_epsilon",
    "hard_tree_value",
    "icu_sepsis",
    "inventory",
    "sat",
    "satisfied_share",
    "sensing_chain",
]
