"""Run by the Python of a base in a box, with `-c`: every NAME.py below the directory argv[1] becomes argv[2]/.../NAME.pyc, with the hash of its
source instead of its time and never compared with it. One process, one order, one hash seed: the same bytes everywhere. What is no Python is
passed over, as an import of it would be an error with or without byte code."""
import importlib.util
import marshal
import os
import sys

top, out = sys.argv[1:]
for here, folders, files in os.walk(top):
    folders.sort()
    for name in sorted(files):
        path = here + "/" + name
        if not name.endswith(".py"):
            continue
        with open(path, "rb") as file:
            source = file.read()
        try:
            code = compile(source, path, "exec", dont_inherit=True, optimize=0)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            continue
        target = out + path[len(top):] + "c"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source) + marshal.dumps(code))
