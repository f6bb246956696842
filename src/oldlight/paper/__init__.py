"""The paper's statements as programs: each computes both sides for given inputs and whether they agree.

`claims` has the propositions, `gap_bound` Proposition 4 for every optimal policy and a bound that holds, `lemmas` the
run lengths and counts of the appendix, `concentration` its inequalities, `estimates` how fast the learners' estimates come
to the truth, `optimism` the lemmas on Q^k ≥ Q*, `counterexamples` the smallest failures found.
"""

from oldlight.paper.claims import (
    Claim,
    monotone_in_delay,
    monotone_in_loss,
    proposition1,
    proposition2,
    proposition3,
    proposition5_long,
    proposition5_short,
)
from oldlight.paper.concentration import (
    azuma_consequence,
    bernstein,
    bernstein_consequence,
    bernstein_for_runs,
    hoeffding_consequence,
    lambda_hat,
    p_hat,
    theta_hat,
    total_variation,
    within_a_gap,
)
from oldlight.paper.counterexamples import optimism_missing_printed, proposition6
from oldlight.paper.estimates import estimates
from oldlight.paper.gap_bound import proposition4, proposition4_repaired, proposition4_ties
from oldlight.paper.lemmas import (
    event_no_long_run,
    hidden_only,
    long_runs,
    longest_gap,
    pattern_gap,
    pigeonhole,
    round_robin,
)
from oldlight.paper.optimism import optimism, optimism_missing, optimism_planning, rarely_rewarded

__all__ = [
    "Claim",
    "azuma_consequence",
    "bernstein",
    "bernstein_consequence",
    "bernstein_for_runs",
    "estimates",
    "event_no_long_run",
    "hidden_only",
    "hoeffding_consequence",
    "lambda_hat",
    "long_runs",
    "longest_gap",
    "monotone_in_delay",
    "monotone_in_loss",
    "optimism",
    "optimism_missing",
    "optimism_missing_printed",
    "optimism_planning",
    "p_hat",
    "pattern_gap",
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
    "rarely_rewarded",
    "round_robin",
    "theta_hat",
    "total_variation",
    "within_a_gap",
]
