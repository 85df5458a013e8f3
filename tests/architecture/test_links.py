"""Links between the documents lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "webapp/docs").rglob("*.md")]
LINK = re.compile(r"\]\(([^)#\s]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_document_links_is_there(document) -> None:
    targets = [found for found in LINK.findall(document.read_text()) if "://" not in found]
    assert [found for found in targets if not (document.parent / found).exists()] == []


def test_the_readme_shows_pictures_that_are_pictures() -> None:
    pictures = [found for found in LINK.findall((ROOT / "README.md").read_text()) if found.endswith(".png")]
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")


def test_the_readme_has_the_measured_figures() -> None:
    table = (ROOT / "README.md").read_text().partition("## Performance")[2]
    assert table.count("\n| ") >= 20, "make bench prints the table"
