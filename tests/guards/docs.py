#!/usr/bin/python3
"""docs.py REPO - what the documents name is there.

    rows      every attack that docs/threat-model.md names is in data/attacks.def or tests/security, and the other way round
    links     every relative link in a document leads to a file
    weaker    the table of SECURITY.md has what data/weaker.def says is missing in each tier, and no more

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


def weaker(repo):
    tiers = {"LANDLOCK": ("yes", ""), "RLIMITS": ("", "yes"), "BOTH": ("yes", "yes")}
    said = {}
    for names, until, text in re.findall(r'^PX_LACKS\((\w+),\s*(\d+),\s*"(.*)"\)$', (repo / "data/weaker.def").read_text(), re.M):
        landlock, rlimits = tiers[names]
        said[text] = (f"before ABI {until}" if int(until) else landlock, rlimits)
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \| ([^|]*) \|", (repo / "SECURITY.md").read_text().split("## The landlock tier")[1], re.M)
    table = {text: (landlock.strip(), rlimits.strip()) for text, landlock, rlimits in rows}
    return ([f"SECURITY.md: no row, or another, for '{text}'" for text in said if table.get(text) != said[text]] +
            [f"SECURITY.md: '{text}' is not in data/weaker.def" for text in table if text not in said] +
            [f"data/weaker.def: '{text}' is too long" for text in said if len(text) > 63])


def main(words):
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__.split("\n\n")[0], file=sys.stderr)
        return 2
    repo, failed = Path(words[0]).resolve(), 0
    for check in (rows, links, weaker):
        wrong = check(repo)
        failed += bool(wrong)
        print(f"FAIL {check.__name__}: " + "\n    ".join(wrong) if wrong else f"ok {check.__name__}")
    print(f"{3 - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
