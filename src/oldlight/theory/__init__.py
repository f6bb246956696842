"""The paper's statements as programs: each computes both sides for given inputs and says whether they agree.

`claims` has the propositions, `gap_bound` Proposition 4 for every optimal policy and a bound that holds, `lemmas` the
run lengths and counts of the appendix, `concentration` its inequalities, `counterexamples` the smallest failures found.
"""

from oldlight.theory.claims import (
    Claim,
    monotone_in_delay,
    monotone_in_loss,
    proposition1,
    proposition2,
    proposition3,
    proposition5_long,
    proposition5_short,
)
from oldlight.theory.concentration import (
    azuma_consequence,
    bernstein,
    bernstein_consequence,
    bernstein_for_runs,
    hoeffding_consequence,
    within_a_gap,
)
from oldlight.theory.counterexamples import proposition6
from oldlight.theory.gap_bound import proposition4, proposition4_repaired, proposition4_ties
from oldlight.theory.lemmas import event_no_long_run, longest_gap, pigeonhole, round_robin

__all__ = [
    "Claim",
    "azuma_consequence",
    "bernstein",
    "bernstein_consequence",
    "bernstein_for_runs",
    "event_no_long_run",
    "hoeffding_consequence",
    "longest_gap",
    "monotone_in_delay",
    "monotone_in_loss",
    "pigeonhole",
    "proposition1",
    "proposition2",
    "proposition3",
    "proposition4",
    "proposition4_repaired",
    "proposition4_ties",
    "proposition5_long",
    "proposition5_short",
    "proposition6",
    "round_robin",
    "within_a_gap",
]
