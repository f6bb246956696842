"""Terminals as they are: encodings without Greek letters, output that nobody reads any more, no output at all.

- What the encoding of the output cannot say is written in letters that it can (`PLAIN`: τ is "tau", × is "x"), never an error.
- A reader that has gone (`oldlight list | head -1`) ends the command quietly, with the code that the shell gives to a program which
  the signal SIGPIPE ends: 141.
- Where standard output or standard error is closed, what goes there is dropped.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys

NOBODY_READS = 141
PLAIN = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "eps", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "µ": "u", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "χ": "chi", "ω": "omega", "Δ": "Delta", "Θ": "Theta", "Π": "Pi", "Σ": "sum", "∑": "sum",
    "×": "x", "·": "*", "±": "+/-", "−": "-", "–": "-", "—": "--", "…": "...", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=",
    "≈": "~", "∞": "inf", "√": "sqrt", "∈": "in", "∧": "min", "∨": "max", "½": "1/2", "¼": "1/4", "¾": "3/4", "°": " deg",
    "‘": "'", "’": "'", "“": '"', "”": '"', "«": '"', "»": '"', "\u00a0": " ", "\u2009": " ", "\u202f": " ", "‖": "||", "∣": "|", "⌈": "ceil(", "⌉": ")",
    "⌊": "floor(", "⌋": ")", "é": "e", "ö": "o", "ä": "a", "ü": "u", "ś": "s", "̂": "^", "•": "*", "█": "#", "━": "-", "╸": "-", "╺": "-",
    "⁺": "^+", "↦": "->", "，": ",", "φ": "phi", "ℓ": "l", "∅": "none", "∝": "proportional to", "̃": "~", "⁻": "^-", "₋": "_-",
    **{sign: f"^{n}" for n, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}, **{sign: f"_{n}" for n, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}  # fmt: skip


def plain(error: UnicodeError) -> tuple[str, int]:
    """An error handler of `codecs`: the characters that cannot be encoded, in letters that can."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign, "?") for sign in found), error.end


def prepare() -> None:
    """Make standard output and standard error safe to write to."""
    codecs.register_error("oldlight.plain", plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (for as long as the process lives)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="oldlight.plain")


def finish() -> bool:
    """Write out what is still held back; False if nobody reads it any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop()
        return False
    return True


def drop() -> None:
    """Let the rest of the output go nowhere, so that Python does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
