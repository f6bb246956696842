"""Shared by the tests of measured links."""

from __future__ import annotations

from typing import Any

import numpy as np

NAN = float("nan")


def same(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(np.asarray(found, dtype=float), np.asarray(wanted, dtype=float), equal_nan=True, atol=1e-6))
