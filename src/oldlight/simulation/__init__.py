"""Playing episodes: `episodes` plays thousands at a time in compiled code, `link_sampler` plays a link one step at a time."""

from oldlight.simulation.episodes import Simulation, simulate
from oldlight.simulation.world import CHUNK, Draws, Player, World

__all__ = ["CHUNK", "Draws", "Player", "Simulation", "World", "simulate"]
