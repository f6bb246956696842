"""What the link did in an episode, counted as it goes: the mean age, the share that was lost, the longest blackout.

mean_age            the mean over the Dicts of the episode of the age that the agent was shown (late actions count, as in `age`)
lost                of the observations that were sent, the share that had not come by the end and was not under way
longest_blackout    the most steps in a row, the end included, in which nothing newer came (from the start, if nothing had come yet)
"""

from __future__ import annotations


class LinkStatistics:
    """Counters of one episode."""

    def __init__(self) -> None:
        self.ages = self.decisions = self.came = self.longest = 0
        self.pending: set[int] = set()  # steps that have come and may come again

    def arrived(self, i: int) -> None:
        """The observation of step i has come, perhaps again."""
        if i not in self.pending:
            self.came += 1
            self.pending.add(i)

    def summary(self, sent: int, under_way: int) -> dict[str, float]:
        """The three numbers, after `sent` observations of which so many are under way."""
        return summary(self.ages, self.decisions, sent - self.came - under_way, sent, self.longest)


def summary(ages: int, decisions: int, lost: int, sent: int, longest: int) -> dict[str, float]:
    """The three numbers of these: the sum of the ages at so many decisions, how many were lost of those sent, the longest blackout."""
    return {
        "mean_age": ages / max(decisions, 1),
        "lost": max(lost, 0) / sent,
        "longest_blackout": float(longest),
    }
