#!/usr/bin/python3
"""docs.py REPO - what the documents name is there.

    rows      every attack that docs/threat-model.md names is in data/attacks.def or tests/security, and the other way round
    links     every relative link in a document leads to a file

Prints one line for each check (`ok NAME`, `FAIL NAME: details`) and last "N passed, N failed, N skipped".
"""

import re
import sys
from pathlib import Path

# Halves of a test of tests/security, which is named instead.
HALVES = {"F9_hold", "H13_starve_init", "H_wait"}
ROW = r"[A-I]\d*_\w+"


def rows(repo):
    """Names in the threat model that nothing has, and attacks that it does not name."""
    there = set(re.findall(rf"^PX_(?:ATTACK|TWIN)\(({ROW}),", (repo / "data/attacks.def").read_text(), re.M))
    for path in sorted((repo / "tests/security").glob("*.py")):
        there.update(re.findall(rf'(?:^def |self\.attempt\(")({ROW})', path.read_text(), re.M))
    named = set(re.findall(rf"`({ROW})`", (repo / "docs/threat-model.md").read_text()))
    attacks = {name for name in there if "_twin_" not in name} - HALVES
    return ([f"docs/threat-model.md names {name}, which is no attack" for name in sorted(named - there)] +
            [f"docs/threat-model.md does not name {name}" for name in sorted(attacks - named)])


def links(repo):
    wrong = []
    for path in sorted([*repo.glob("*.md"), *repo.glob("docs/*.md"), *repo.glob("tests/**/*.md"), *repo.glob("bench/*.md")]):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            if "://" not in target and not (path.parent / target).exists():
                wrong.append(f"{path.relative_to(repo)}: {target} is not there")
    return wrong


def main(words):
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__.split("\n\n")[0], file=sys.stderr)
        return 2
    repo, failed = Path(words[0]).resolve(), 0
    for check in (rows, links):
        wrong = check(repo)
        failed += bool(wrong)
        print(f"FAIL {check.__name__}: " + "\n    ".join(wrong) if wrong else f"ok {check.__name__}")
    print(f"{2 - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
