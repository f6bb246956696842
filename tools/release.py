"""Builds the wheel and the sdist for a release: python tools/release.py [OUT]

The project has no public address yet. When it has one, put it into ADDRESS, the only place that knows it: the release then names it in
`[project.urls]`, and the links and pictures of the README, which are relative in the repository, become absolute, because a
package index shows the README without the files beside it. Without an address nothing is rewritten.

The tracked files are copied to a temporary folder and rewritten there; the working tree is not touched.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ADDRESS = ""  # the project's public address, without a slash at the end; none yet
BRANCH = "main"
ROOT = Path(__file__).parents[1]
PICTURE = (".svg", ".png")


def project_urls(address: str) -> str:
    """The table [project.urls] of pyproject.toml."""
    pages = {
        "Homepage": address,
        "Documentation": f"{address}/tree/{BRANCH}/docs",
        "Source": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/{BRANCH}/CHANGELOG.md",
    }
    return "[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in pages.items())


def with_urls(pyproject: str, address: str) -> str:
    """pyproject.toml with the project's addresses; as it is where there are none."""
    if not address:
        return pyproject
    if "[project.urls]" in pyproject:
        raise ValueError("pyproject.toml has [project.urls] already; tools/release.py writes that table")
    return pyproject.replace("[project.scripts]", f"{project_urls(address)}\n[project.scripts]", 1)


def with_absolute_links(page: str, address: str) -> str:
    """A page whose relative links lead to the files of the project's address, and its pictures to the files themselves."""
    if not address:
        return page

    def absolute(found: re.Match[str]) -> str:
        target = found["target"]
        kind = "raw" if target.partition("#")[0].endswith(PICTURE) else "blob"
        return f"{found['before']}{address}/{kind}/{BRANCH}/{target}"

    return re.sub(r"(?P<before>\]\(|src=\")(?!#|[a-z]+:)(?P<target>[^)\"\s]+)", absolute, page)


def copied(folder: Path, address: str = ADDRESS) -> Path:
    """The files that git knows, in a folder of their own, rewritten for a release."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if not (ROOT / name).is_file():
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    for name, rewrite in (("pyproject.toml", with_urls), ("README.md", with_absolute_links)):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(rewrite(text, address), encoding="utf-8")
    return folder


def build(out: Path, address: str = ADDRESS) -> list[Path]:
    """The sdist and the wheel, in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        tree = copied(Path(temporary), address)
        command = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"
        found = []
        for what in ("build_sdist", "build_wheel"):
            done = subprocess.run(
                [sys.executable, "-c", command, what, str(out.resolve())],
                cwd=tree,
                check=True,
                capture_output=True,
                text=True,
            )
            found.append(out / done.stdout.split()[-1])
    return found


if __name__ == "__main__":
    for file in build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        print(file)
    if not ADDRESS:
        print("No public address yet (ADDRESS in tools/release.py): links of the README stay relative.")
