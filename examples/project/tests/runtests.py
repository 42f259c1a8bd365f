"""The tests of words.py; px test runs this file."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import words  # noqa: E402


class Counting(unittest.TestCase):
    def test_order(self):
        self.assertEqual(words.count("b a b, A c! a"), [("a", 3), ("b", 2), ("c", 1)])

    def test_nothing(self):
        self.assertEqual(words.count(" 1 2 _ "), [])


unittest.main()
