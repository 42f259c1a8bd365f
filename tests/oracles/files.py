#!/usr/bin/python3
"""files.py ASK-FILES - the file sandbox against a model of it that is slow and plain: 100,000 random paths and as many random patterns.

The model knows a tree as nested dictionaries and follows the words of the manual one by one; it shares no code with the library and asks
the kernel nothing. The same trees are made on disk for the library. Random questions from a fixed seed. Prints `ok NAME`, `not ok NAME:
why`, and last "N passed, N failed, N skipped".
"""

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ASK = sys.argv[1]
TREES, PATHS, LISTS, GLOBS = 20, 5000, 100, 100000
LINKS_MAX, BYTES_MAX = 16, 8
NAMES = ["a", "b", "a.md", "b.MD", "c.txt", ".md", "..a", "a:b", "~", "ä", "d"]
OUTSIDE, MISSING, NO_FILE = "PathNotInSandboxError", "FileNotFoundError", "NotAFileError"
THROUGH_A_FILE = "through a file"       # for a list that is no directory, for all else something that is not there
COUNTS = {"ok": 0, "not ok": 0, "skip": 0}


def tell(name, questions, wrong):
    verdict = "not ok" if wrong else "ok"
    COUNTS[verdict] += 1
    print(f"{verdict} {name}" + (f": {len(wrong)} of {questions} differ, such as {wrong[0]!r}" if wrong else f" ({questions} questions)"), flush=True)


def coded(text):
    return "".join(chr(b) if 32 < b < 127 and b != 37 else f"%{b:02x}" for b in text.encode())


class Refused(Exception):
    """The text is the class of the error."""


# ---- a tree: a dictionary is a directory, bytes are a file, Link and Pipe are themselves ----


class Link(str):
    """Where it leads."""


class Pipe:
    """What is neither file nor directory."""


def random_target(rng):
    if rng.random() < 0.1:
        return rng.choice(["/etc/passwd", "/", "../../outside", ".."])
    return "/".join(rng.choice([*NAMES, "..", "..", "."]) for _ in range(rng.randrange(1, 5)))


def random_tree(rng, depth=0):
    tree = {}
    for name in rng.sample(NAMES, rng.randrange(2, 7)):
        kind = rng.random()
        if kind < 0.35 and depth < 3:
            tree[name] = random_tree(rng, depth + 1)
        elif kind < 0.6:
            tree[name] = Link(random_target(rng))
        elif kind < 0.63:
            tree[name] = Pipe()
        else:
            tree[name] = b"x" * rng.randrange(BYTES_MAX + 3)
    return tree


def make(tree, place):
    place.mkdir()
    for name, node in tree.items():
        path = place / name
        if isinstance(node, dict):
            make(node, path)
        elif isinstance(node, Link):
            path.symlink_to(node)
        elif isinstance(node, Pipe):
            os.mkfifo(path)
        else:
            path.write_bytes(node)


def node_at(tree, parts):
    """What is there; None: nothing. Links are themselves."""
    for part in parts:
        if not isinstance(tree, dict):
            raise Refused(THROUGH_A_FILE)
        if part not in tree:
            return None
        tree = tree[part]
    return tree


# ---- the model ----


class Root:
    def __init__(self, name, tree, writable=False, suffixes=None, most=64 << 20):
        self.name, self.parts, self.tree, self.writable, self.suffixes, self.most = name, name.split("/"), tree, writable, suffixes, most

    def suffix_ok(self, parts):
        if self.suffixes is None:
            return True
        stem, dot, suffix = (parts[-1] if parts else "").rpartition(".")
        return bool(stem) and dot == "." and "." + suffix.lower() in self.suffixes


class Model:
    def __init__(self, roots):
        self.roots = roots

    def root_of(self, parts):
        fitting = [root for root in self.roots if parts[:len(root.parts)] == root.parts]
        return max(fitting, key=lambda root: len(root.parts), default=None)

    def words_to_parts(self, path):
        """By the text alone: `name/relative`, without . and .., which never leave the root they are in."""
        if path == "" or path[0] in "/~":
            raise Refused(OUTSIDE)
        for root in self.roots:
            if len(root.parts) == 1 and path.startswith(root.name + ":"):
                path = root.name + "/" + path[len(root.name) + 1:]
                break
        parts = []
        for word in path.split("/"):
            if word == "..":
                before = self.root_of(parts)
                parts = parts[:-1]
                if before is None or self.root_of(parts) is not before:
                    raise Refused(OUTSIDE)
            elif word not in ("", "."):
                parts.append(word)
        return parts

    def follow(self, root, parts):
        """The same place without links."""
        done, todo, links = [], list(parts), 0
        while todo:
            word = todo.pop(0)
            if word in ("", "."):
                continue
            here = node_at(root.tree, done)
            if word == "..":
                if not isinstance(here, dict):
                    raise Refused(MISSING if here is None else THROUGH_A_FILE)
                if not done:
                    raise Refused(OUTSIDE)
                done.pop()
                continue
            done.append(word)
            node = None if here is None else node_at(root.tree, done)
            if isinstance(node, Link):
                links += 1
                if links > LINKS_MAX or node.startswith("/"):
                    raise Refused(OUTSIDE)
                done.pop()
                todo = node.split("/") + todo
        return done

    def place(self, path):
        parts = self.words_to_parts(path)
        root = self.root_of(parts)
        if root is None:
            raise Refused(OUTSIDE)
        return root, self.follow(root, parts[len(root.parts):])

    def answer(self, path):
        try:
            root, parts = self.place(path)
            node = node_at(root.tree, parts)
        except Refused as error:
            why = str(error).replace(THROUGH_A_FILE, MISSING)
            return f"00\t!{why}\t!{why}"
        suffix = root.suffix_ok(parts)
        folder, other, size = isinstance(node, dict), isinstance(node, Pipe), len(node) if isinstance(node, bytes) else 0
        can_read = (folder or suffix) and not other and size <= root.most
        can_write = root.writable and suffix and not folder and not other
        if node is None:
            text = "!" + MISSING
        elif not isinstance(node, bytes):
            text = "!" + NO_FILE
        elif not suffix:
            text = "!SuffixNotAllowedError"
        else:
            text = "!FileTooLargeError" if size > root.most else node.decode()
        return f"{can_read:d}{can_write:d}\t{coded('/'.join([root.name, *parts]) if parts else root.name + '/')}\t{text}"

    def files_of(self, root, parts):
        """Every file below a directory, and every link that leads to one inside; no link to a directory is entered."""
        for name, node in node_at(root.tree, parts).items():
            below = [*parts, name]
            if self.root_of(root.parts + below) is not root:
                continue
            if isinstance(node, dict):
                yield from self.files_of(root, below)
            elif isinstance(node, bytes):
                yield below
            elif isinstance(node, Link):
                try:
                    if isinstance(node_at(root.tree, self.follow(root, below)), bytes):
                        yield below
                except Refused:
                    pass

    def listing(self, path, pattern):
        if not good_pattern(pattern):
            return "!PatternError"
        found = []
        if path in ("/", "") or set(path.split("/")) <= {"", "."} and path[0] != "/":          # all of them
            found = [(root, [], root.parts + rel, rel) for root in self.roots for rel in self.files_of(root, [])]
        else:
            try:
                root, parts = self.place(path)
                node = node_at(root.tree, parts)
            except Refused as error:
                return "!" + str(error).replace(THROUGH_A_FILE, NO_FILE)
            if not isinstance(node, dict):
                return "!" + (MISSING if node is None else NO_FILE)
            found = [(root, parts, root.parts + rel, rel[len(parts):]) for rel in self.files_of(root, parts)]
            inside = root.parts + parts
            found += [(other, [], other.parts + rel, (other.parts + rel)[len(inside):]) for other in self.roots
                      if len(other.parts) > len(inside) and other.parts[:len(inside)] == inside for rel in self.files_of(other, [])]
        names = ["/".join(full) for _, _, full, rel in found if matches(split_pattern(pattern), rel)]
        return " ".join(coded(name) for name in sorted(names, key=str.encode))


# ---- patterns, by definition ----


def split_pattern(pattern):
    return [part for part in pattern.split("/") if part not in ("", ".")]


def good_pattern(pattern):
    return pattern != "" and pattern[0] not in "/~" and ".." not in pattern.split("/") and split_pattern(pattern) != []


def matches(pattern, path):
    if not pattern:
        return not path
    if pattern[0] == "**":
        return matches(pattern[1:], path) or bool(path) and matches(pattern, path[1:])
    return bool(path) and part_matches(pattern[0], path[0]) and matches(pattern[1:], path[1:])


def class_end(part):
    """Where the class that part begins with ends, behind its ]; 0: it is none."""
    at = 2 if part[1:2] in ("!", "^") and part[1:2] else 1
    end = part.find("]", at + 1)
    return end + 1 if len(part) > at and end > 0 else 0


def in_class(text, char):
    """text is what stands between the brackets."""
    negated = text[:1] in ("!", "^") and text != ""
    text, found = text[negated:], False
    while text:
        low, high, used = text[0], text[0], 1
        if len(text) >= 3 and text[1] == "-":
            high, used = text[2], 3
        found = found or low <= char <= high
        text = text[used:]
    return found != negated


def part_matches(part, name):
    if part == "":
        return name == ""
    if part[0] == "*":
        return part_matches(part[1:], name) or name != "" and part_matches(part, name[1:])
    if name == "":
        return False
    end = class_end(part) if part[0] == "[" else 0
    if end:
        return in_class(part[1:end - 1], name[0]) and part_matches(part[end:], name[1:])
    return part[0] in ("?", name[0]) and part_matches(part[1:], name[1:])


# ---- questions ----


def random_path(rng):
    begin = rng.choice(["r/", "r/", "r/", "r:", "s/", "r/n/", "r/a/", "r", "rr/", "", "./", "/", "~/", "r//", "s:", "r/n:", "../"])
    return begin + "/".join(rng.choice([*NAMES, *NAMES, "..", ".", "", "n", "zz"]) for _ in range(rng.randrange(6)))


def random_pattern(rng):
    def part():
        if rng.random() < 0.25:
            return "**"
        return "".join(rng.choice(["*", "*", "?", "a", "b", ".md", ".", "[a-c]", "[!a]", "[]a]", "[", "]", "ä", "[ä-ü]", "n", "[a-", "-", "^", "**"])
                       for _ in range(rng.randrange(1, 4)))
    text = "/".join(part() for _ in range(rng.randrange(1, 4)))
    return rng.choice(["../", "/", "~", "./", ""]) + text if rng.random() < 0.1 else text


def ask(roots, lines):
    done = subprocess.run([ASK, *roots], input="".join(line + "\n" for line in lines), capture_output=True, text=True, timeout=600, check=True)
    return done.stdout.splitlines()


def compare(lines, wanted, roots):
    answers = ask(roots, lines)
    if len(answers) != len(lines):
        return [f"{len(answers)} answers"]
    return [row for row in zip(lines, wanted, answers) if row[1] != row[2]]


def one_tree(rng, place):
    """Wrong answers about paths, and about lists."""
    trees = [random_tree(rng) for _ in range(3)]
    for tree, name in zip(trees, ("1", "2", "3")):
        make(tree, place / name)
    model = Model([Root("r", trees[0], True), Root("s", trees[1], suffixes=(".md", ".txt"), most=BYTES_MAX), Root("r/n", trees[2])])
    roots = [f"r={place}/1:rw", f"s={place}/2:suffixes=.md,.txt:max={BYTES_MAX}", f"r/n={place}/3"]
    paths = [random_path(rng) for _ in range(PATHS)]
    wrong_paths = compare([f"path\t{coded(path)}" for path in paths], [model.answer(path) for path in paths], roots)
    lists = [(rng.choice([".", "r", "r/n", "s", random_path(rng) or "."]), random_pattern(rng)) for _ in range(LISTS)]
    wanted = [model.listing(path, pattern) for path, pattern in lists]
    return wrong_paths, compare([f"list\t{coded(path)}\t{coded(pattern)}" for path, pattern in lists], wanted, roots)


def random_globs(rng):
    def name():
        return "".join(rng.choice(["a", "b", ".md", "ä", "z", "]", "-", "n", "^", "."]) for _ in range(rng.randrange(1, 4)))
    for _ in range(GLOBS):
        path = "/".join(name() for _ in range(rng.randrange(1, 4)))
        yield random_pattern(rng), path


def main():
    rng = random.Random(23)
    wrong_paths, wrong_lists = [], []
    for _ in range(TREES):
        with tempfile.TemporaryDirectory() as place:
            paths, lists = one_tree(rng, Path(place))
            wrong_paths += paths
            wrong_lists += lists
    tell("paths of the file sandbox and a model", TREES * PATHS, wrong_paths)
    tell("lists of the file sandbox and a model", TREES * LISTS, wrong_lists)
    globs = list(random_globs(rng))
    wanted = [("1" if matches(split_pattern(pattern), path.split("/")) else "0") if good_pattern(pattern) else "bad" for pattern, path in globs]
    tell("patterns and their definition", GLOBS, compare([f"glob\t{coded(pattern)}\t{coded(path)}" for pattern, path in globs], wanted, ["r=/"]))
    hits = wanted.count("1")
    tell("patterns that match, and that do not", GLOBS, [] if GLOBS * 0.1 < hits < GLOBS * 0.9 else [f"{hits} match"])
    print("{ok} passed, {not ok} failed, {skip} skipped".format(**COUNTS))
    return 1 if COUNTS["not ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
