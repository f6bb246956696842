"""Pages of the site that are written elsewhere, made when mkdocs builds it (`hooks` in mkdocs.yml).

- `index.md` is README.md, `changelog.md` CHANGELOG.md and `contributing.md` CONTRIBUTING.md, with their links turned to the site;
- `api/*.md` is the reference: every public name of `oldlight`, by concept, from its docstring. `GROUPS` says which page a name is
  on, by the module that defines it; a module that is in no group stops the build;
- KaTeX is taken from docs/assets/katex if `make docs` has put it there; without it formulas stay as they are written.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))  # the package of this folder, whatever is installed

from oldlight import _exports  # noqa: E402

GROUPS: dict[str, tuple[str, ...]] = {  # page -> the modules whose names it has, and those of packages with that name
    "Processes": ("model.mdp",),
    "Links": ("model.channels",),
    "Problems and policies": ("model",),
    "Planning and value": ("planning", "simulation"),
    "Learning": ("learners",),
    "Recordings and controllers": ("traces", "control", "testbed"),
    "Files, errors and your own code": ("files", "checks", "errors", "own_code"),
}
PACKAGES = {  # what stands in a package of its own: page -> the package, and its names
    "Instances": "instances",
    "Learners": "learners",
    "Environments": "envs",
    "Studies": "studies",
    "Checks for your own parts": "testing",
    "The paper": "paper",
}


class _ComputedExports(logging.Filter):
    """`oldlight.__all__` is computed, which the reader of the sources remarks on; `reference` takes the names from where they are kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "Unsupported item in oldlight.__all__" not in record.getMessage()


logging.getLogger("mkdocs.plugins.griffe").addFilter(_ComputedExports())


def on_config(config: Any) -> Any:
    """Put the reference into the navigation, and KaTeX on the pages if it is there."""
    listed = set(re.findall(r"[\w/]+\.md", str(config.nav)))
    written = {path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")}
    for section in config.nav:
        if "API" in section:
            section["API"] = [{title: path} for title, path in pages()]
        if "Concepts" in section:  # a new page stands here until somebody finds a better place
            section["Concepts"] += sorted(written - listed)
    if (Path(config.docs_dir) / "assets" / "katex").is_dir():
        config.extra_css.append("assets/katex/katex.min.css")
        config.extra_javascript.insert(0, "assets/katex/katex.min.js")
    else:
        print(
            "formulas are not typeset: docs/assets/katex is missing (`make docs` takes it from npm where npm is installed)"
        )
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of this module's text."""
    for name in ("README", "CHANGELOG", "CONTRIBUTING"):
        page = "index.md" if name == "README" else f"{name.lower()}.md"
        files.append(File.generated(config, page, content=turned((ROOT / f"{name}.md").read_text(encoding="utf-8"))))
    for page, text in reference():
        files.append(File.generated(config, page, content=text))
    for name in ("CITATION.cff", "LICENSE", "SECURITY.md", "CODE_OF_CONDUCT.md"):
        if (ROOT / name).exists():
            target = name if not name.endswith(".md") else name.lower()
            files.append(File.generated(config, target, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def turned(text: str) -> str:
    """A page of the project's root as one of the site: `docs/x.md` is `x.md` there."""
    text = re.sub(r"(\]\(|src=\")docs/", r"\1", text)
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"):
        text = text.replace(f"]({name}.md", f"]({name.lower()}.md")
    return text


def pages() -> list[tuple[str, str]]:
    """(title, file) of each page of the reference."""
    return [(title, f"api/{slug(title)}.md") for title in (*GROUPS, *PACKAGES)]


def slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower())


def reference() -> list[tuple[str, str]]:
    """(file, text) of each page of the reference."""
    names: dict[str, list[str]] = {title: [] for title in GROUPS}
    for module, exported in _exports.WHERE.items():
        names[group_of(module)] += [f"oldlight.{name}" for name in exported]
    out = [(f"api/{slug(title)}.md", page_of(title, names[title])) for title in GROUPS]
    for title, package in PACKAGES.items():
        out.append(
            (f"api/{slug(title)}.md", page_of(title, [f"oldlight.{package}.{name}" for name in names_of(package)]))
        )
    return out


def group_of(module: str) -> str:
    """The page of a module's names: that of the longest beginning of its path that `GROUPS` has."""
    found = [
        (len(start), title)
        for title, starts in GROUPS.items()
        for start in starts
        if f"{module}.".startswith(f"{start}.")
    ]
    if not found:
        raise PluginError(f"docs/scripts/site.py: oldlight.{module} has public names, and no page in GROUPS")
    return max(found)[1]


def names_of(package: str) -> list[str]:
    """The public names of a package, without those that stand on another page."""
    from importlib import import_module

    module = import_module(f"oldlight.{package}")
    every = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    taken = {name for names in _exports.WHERE.values() for name in names}
    own = [name for name in every if name not in taken]
    return [name for name in own if getattr(getattr(module, name), "__module__", "").startswith("oldlight")]


def page_of(title: str, names: list[str]) -> str:
    return f"# {title}\n\n" + "\n\n".join(f"::: {name}" for name in names) + "\n"
