"""Rows of a process from a Dirichlet posterior, compiled: what posterior sampling and `LinkLearner` draw.

A row with prior parameters α, .., α and counts n_s is Dirichlet(α + n_1, .., α + n_S): gamma variates with these parameters, divided by their sum. A
gamma variate of α + n is the sum of two, of α and of n; so the counts take one variate for each successor that was seen, and what is left is the
prior's part, G·D with G of parameter c = S·α and D Dirichlet(α, .., α).

With the usual prior, α = 1/S and c = 1, D is drawn by breaking a stick (Sethuraman 1994), which takes some 37 uniform numbers, however many states
there are, where S gamma variates of a small parameter take ten times as long each:

    D = Σ_j w_j·e_{s_j},   w_j = v_j·Π_{i<j} (1 − v_i),   s_j uniform over the states, v_j uniform on [0, 1].

One uniform number gives both: of S·u the whole part is s_j and the rest is v_j. The stick ends where less than 2^−53 of it is left, which is less than the
rounding of a row's sum; as much is shared among all states, so that none is impossible.
"""

from oldlight.kernels.cache import borrowing, compiled

_inner = borrowing(error_model="numpy")
END = 2.0**-53


@_inner
def draw_prior(alpha, rng, row):
    """row = G·D: the prior's part, before it is divided by the sum."""
    S = len(row)
    if abs(S * alpha - 1.0) > 1e-12:
        for s in range(S):
            row[s] = rng.standard_gamma(alpha)
        return
    left = rng.standard_exponential()
    least = END * left
    for s in range(S):
        row[s] = least / S
    while left > least:
        u = S * rng.random()
        s = min(int(u), S - 1)
        row[s] += left * (u - s)
        left -= left * (u - s)


@_inner
def share_out(row):
    """Divide by the sum; uniform where the variates are all too small."""
    total = 0.0
    for s in range(len(row)):
        total += row[s]
    for s in range(len(row)):
        row[s] = row[s] / total if total > 0.0 else 1.0 / len(row)


@compiled(error_model="numpy")
def draw_rows(number, alpha, rng, rows):
    """rows[i] ~ Dirichlet(alpha + number[i, 0], alpha + number[i, 1], ..), as many as `number` has."""
    for i in range(len(number)):
        draw_prior(alpha, rng, rows[i])
        for s in range(rows.shape[1]):
            if number[i, s] > 0.0:
                rows[i, s] += rng.standard_gamma(number[i, s])
        share_out(rows[i])
