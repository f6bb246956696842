"""A plan tried on a real link: a plant, a relay and a controller as three processes that talk UDP on loopback."""

from oldlight.testbed.testbed import TestbedResult, relay_of, run_testbed

__all__ = ["TestbedResult", "relay_of", "run_testbed"]
