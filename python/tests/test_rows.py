"""Every row of the five tables is shown: the name of a test begins with the rows that it shows, test_B3_B4_scripts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROWS = {"A": range(32, 51), "B": range(1, 35), "F": range(1, 26), "R": range(1, 25)}


def proves(function):
    """It can fail: it asserts or expects something, and no mark says that it need not."""
    marks = " ".join(ast.unparse(mark) for mark in function.decorator_list)
    body = ast.unparse(function)
    return ("assert " in body or "pytest.raises" in body) and not re.search(r"\b(skip|skipif|xfail)\b", marks)


def shown():
    """row -> the tests that show it, as they stand in the files beside this one."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and proves(node):
                for row in re.match(r"test_((?:[A-Z]\d+_)*)", node.name + "_")[1].split("_") if node.name.startswith("test_") else ():
                    found.setdefault(row, []).append(f"{file.name}:{node.name}")
    found.pop("", None)
    return found


def test_no_row_without_a_test():
    rows = {f"{letter}{number}" for letter, numbers in ROWS.items() for number in numbers}
    found = shown()
    assert rows - found.keys() == set(), "rows that no test shows"
    assert found.keys() - rows == set(), "rows that are in no table"
