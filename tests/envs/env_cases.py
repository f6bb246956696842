"""Links for the tests of the registered environments."""

from __future__ import annotations

from typing import Any

LINKS: list[dict[str, Any]] = [
    {},
    {"channel": "constant:2"},
    {"channel": "geometric:0.6", "rewards": "delayed"},
    {"channel": "constant:1+loss:0.3"},
    {"channel": "bursty:0.2,0.5"},
    {"channel": "constant:2", "start": "warm"},
    {"channel": "constant:1", "actuation": 2, "pending": [1, 0]},
]
