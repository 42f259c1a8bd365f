"""words.py FILE - the words of a text, the most frequent first."""

import collections
import os
import re
import sys


def count(text):
    """(word, how often), by number and then by name."""
    found = collections.Counter(re.findall(r"[^\W\d_]+", text.lower()))
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        words = count(file.read())
    for word, number in words[:int(os.environ.get("WORDS_SHOWN", "10"))]:
        print(f"{number:4} {word}")


if __name__ == "__main__":
    main()
