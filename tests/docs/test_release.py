"""A release: what is in the wheel and the sdist, and how the addresses are written."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
release = pytest.importorskip("release")
ADDRESS = "https://example.org/people/oldlight"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(sdist, wheel) as they would be released from an address."""
    pytest.importorskip("hatchling")
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("not a git repository")
    sdist, wheel = release.build(tmp_path_factory.mktemp("dist"), ADDRESS)
    return sdist, wheel


def tracked() -> set[str]:
    return set(subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines())


def test_the_wheel_has_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    expected = {name.removeprefix("src/") for name in tracked() if name.startswith("src/oldlight/")}
    assert set(names) == expected
    assert "oldlight/py.typed" in names


def test_the_sdist_has_what_the_tests_and_pages_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "mkdocs.yml",
        "tests/oracle.py",
        "docs/links.md",
    ):
        assert name in names
    assert names - {"PKG-INFO"} <= tracked() | {".gitignore"}
    assert not [name for name in names if re.search(r"(^|/)(site|out|runs|\.venv|__pycache__)/", name)]


def test_the_metadata_name_the_address_and_the_pythons(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        said = email.message_from_bytes(wheel.read(name))
    assert f"Homepage, {ADDRESS}" in said.get_all("Project-URL")
    kinds = said.get_all("Classifier")
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in kinds
    readme = said.get_payload()
    assert not re.findall(r"\]\((?!#|https?:)", str(readme))


def test_addresses_are_written_in_one_place() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "[project.urls]" not in pyproject
    urls = tomllib.loads(release.with_urls(pyproject, ADDRESS))["project"]["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith(ADDRESS) for url in urls.values())
    with pytest.raises(ValueError, match="already"):
        release.with_urls(release.with_urls(pyproject, ADDRESS), ADDRESS)


def test_without_an_address_nothing_is_rewritten() -> None:
    page = "![A](docs/a.svg) [b](docs/b.md)"
    assert release.with_absolute_links(page, "") == page
    assert release.with_urls("[project.scripts]\n", "") == "[project.scripts]\n"


def test_links_become_absolute_and_pictures_raw() -> None:
    page = '![A](docs/a.svg) [b](docs/b.md#c) [d](#d) [e](https://example.org/e) <img src="docs/f.png">'
    assert release.with_absolute_links(page, ADDRESS) == (
        f"![A]({ADDRESS}/raw/main/docs/a.svg) [b]({ADDRESS}/blob/main/docs/b.md#c) [d](#d) [e](https://example.org/e) "
        f'<img src="{ADDRESS}/raw/main/docs/f.png">'
    )
