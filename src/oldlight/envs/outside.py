"""The wrappers around an environment, and what was set on them instead of on it.

`env.channel = ...`, and `VecEnv.set_attr` of stable-baselines3, set an attribute of the outermost wrapper (a Monitor, for instance), and
Gymnasium's wrappers do not pass it on. The environment behind the link cannot know who wraps it, but its `reset` is called
through them: the calls of `reset` that lead here, one inside the other, are theirs. That is the only trace of them that Python has,
so it is what is read: those calls and no others, at a reset and at no other time. Whoever can choose should say it plainly:
`reset(options={"channel": ...})`, `set_wrapper_attr("channel", ...)`, or `VecEnv.set_options({"channel": ...})` of stable-baselines3.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import gymnasium as gym

from oldlight.envs.drawn_link import LinkPerEpisode
from oldlight.model.channels import Channel

Wrapper = gym.Wrapper[Any, Any, Any, Any]
KINDS = (Channel, LinkPerEpisode, str, Mapping)  # a link is given as one of these


def wrappers_around(env: gym.Env[Any, Any]) -> list[Wrapper]:
    """The wrappers through which `env.reset`, which asks, was called; the innermost first."""
    found: list[Wrapper] = []
    inner: gym.Env[Any, Any] = env
    frame: FrameType | None = sys._getframe(2)  # what called `env.reset`
    while frame is not None and "reset" in frame.f_code.co_name:
        outer = frame.f_locals.get("self")
        if outer is not inner and isinstance(outer, gym.Wrapper) and vars(outer).get("env") is inner:
            found.append(outer)
            inner = outer
        frame = frame.f_back
    return found


def take_channel(wrappers: Sequence[Wrapper]) -> Any:
    """The channel that was set on one of the wrappers, the outermost first, and is taken from there; None if none was.

    Only a channel, its text or its data count: the attribute may be the wrapper's own.
    """
    given = [
        wrapper for wrapper in wrappers if "channel" in vars(wrapper) and isinstance(vars(wrapper)["channel"], KINDS)
    ]
    if not given:
        return None
    taken = [vars(wrapper).pop("channel") for wrapper in given]
    return taken[-1]
