"""The reasons of the errors: one list for Rust, Java and Python, and a page for each."""

import json

from harness import paths

ERRORS = json.loads((paths.ROOT / "tests" / "golden" / "errors.json").read_text())
PAGES = paths.ROOT / "docs" / "errors"


def test_each_reason_has_a_page_and_each_page_a_reason():
    reasons = [error["reason"] for error in ERRORS]
    assert sorted(reasons) == sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "README")


def test_the_list_of_the_pages_says_code_and_retry_of_each_reason():
    index = (PAGES / "README.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in index if line.startswith("| [")]
    assert rows == [[f"[{e['reason']}]({e['reason']}.md)", e["code"], e["retry"]] for e in ERRORS]
