"""The house ceilings on size: a file is a room, a function fits on a screen."""

import ast
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("analytics", "webapp", "workers", "frontend")


def sources(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return [path for path in found if "migrations" not in path.parts]


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_file_is_longer_than_500_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines(path) for path in sources(*PACKAGES, "tests") if lines(path) > 500
    }
    assert not long


def test_most_files_are_short() -> None:
    sizes = [lines(path) for path in sources(*PACKAGES) if lines(path) > 0]
    assert median(sizes) <= 120
    assert quantiles(sizes, n=10)[-1] <= 350


@pytest.mark.parametrize("package", PACKAGES)
def test_most_functions_fit_on_a_screen(package: str) -> None:
    lengths = [
        node.end_lineno - node.lineno + 1
        for path in sources(package)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    ]
    assert lengths
    assert quantiles(lengths, n=10)[-1] <= 35


def test_every_module_and_every_public_function_of_analytics_says_what_it_means() -> None:
    silent = []
    for path in sources(*PACKAGES):
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree):
            silent.append(str(path.relative_to(ROOT)))
        if "analytics" in path.relative_to(ROOT).parts:
            silent += [
                f"{path.relative_to(ROOT)}:{node.name}"
                for node in tree.body
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
                and not node.name.startswith("_")
                and not ast.get_docstring(node)
            ]
    assert not silent


def test_the_top_level_holds_only_what_it_should() -> None:
    allowed = {"analytics", "webapp", "workers", "frontend", "docker", "tests"}
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(".")}
    assert folders - allowed - {"spark-warehouse"} == set()


def test_the_lock_names_no_package_registry() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert "--hash=sha256:" in lock
