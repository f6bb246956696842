"""What happened to a controller: counts of ticks and messages."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Report:
    """What happened since the controller was made: ticks decided; of them those at information states that the plan does not know
    (`nearest_wait`, `counted_along`, `held_back`); ticks skipped and repeated; and messages, by what they were."""

    ticks: int = 0
    nearest_wait: int = 0
    counted_along: int = 0
    held_back: int = 0
    skipped: int = 0
    repeated: int = 0
    observations: int = 0
    duplicates: int = 0
    out_of_order: int = 0
    lost: int = 0
    came_after_lost: int = 0
    forgotten: int = 0
    refused: int = 0

    @property
    def unplanned(self) -> int:
        """Decisions at information states that the plan does not know."""
        return self.nearest_wait + self.counted_along + self.held_back

    def to_dict(self) -> dict[str, int]:
        return asdict(self)

    def __str__(self) -> str:
        return ", ".join(
            f"{name.replace('_', ' ')} {n:,}" for name, n in self.to_dict().items() if n or name == "ticks"
        )
