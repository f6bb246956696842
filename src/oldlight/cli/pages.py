"""Which page a folder of results gets: the paper's study and that of the deep learners have pages of their own."""

from __future__ import annotations

import os
from pathlib import Path

from oldlight.report.page import Page


def page_of(folder: str | os.PathLike[str]) -> Page:
    """The page of the results in `folder`."""
    from oldlight.paper.section6 import NAME
    from oldlight.studies.store import read_study

    study = read_study(Path(folder))["study"]
    if study["name"].startswith(NAME):
        from oldlight.paper.paper_page import paper_page

        return paper_page(folder)
    if any("oldlight.deep:train" in str(block.get("tasks")) for block in study["blocks"]):
        from oldlight.report.deep_page import deep_page

        return deep_page(folder)
    from oldlight.report.study_page import study_page

    return study_page(folder)
