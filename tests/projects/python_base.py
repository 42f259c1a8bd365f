"""python_base.py - the tiny distribution of bases/debs.py with this machine's Python in it: a base that environments run on."""

import subprocess
from pathlib import Path

import debs

PROGRAM = "/usr/bin/python3.11"
# What an interpreter needs to start, what tests in a sandbox import, and what builds of source archives do.
MODULES = ("encodings.idna, encodings.utf_8, encodings.latin_1, encodings.ascii, site, runpy, json, ctypes, re, importlib.metadata, platform, subprocess, "
           "socket, shutil, tarfile, gzip, zipfile, tomllib, traceback, base64, hashlib")
# The compiler and what comes with it, by name: what is built here needs none.
TOOLCHAIN = ("python3-pip", "python3-setuptools", "python3-wheel", "python3-dev", "gcc", "g++", "libc6-dev", "make", "pkg-config")
PQ_DEV = {"usr/include/postgresql/libpq-fe.h": b"of libpq-dev\n", "usr/bin/pg_config": (b"#!/bin/sh\necho 15.6\n", 0o755)}
LIST = f"import sys, {MODULES}\nprint('\\n'.join(m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)))"


def python_files():
    """The files of a package, or None where this machine has no such Python."""
    if not Path(PROGRAM).exists():
        return None
    found = subprocess.run([PROGRAM, "-I", "-B", "-c", LIST], capture_output=True, text=True, check=True).stdout.split()
    paths = {PROGRAM, *(path for path in found if path.startswith("/usr/lib/"))}
    files = {path.lstrip("/"): (Path(path).read_bytes(), 0o755 if path == PROGRAM else 0o644) for path in sorted(paths)}
    for path in sorted(paths):
        if path == PROGRAM or path.endswith(".so"):
            for library in debs.libraries(path):
                files[library.lstrip("/").removeprefix("usr/")] = (Path(library).read_bytes(), 0o755)
    return files | {"usr/bin/python3": ("link", "python3.11")}


def archive(top):
    """Published; None if this machine cannot have one."""
    made = debs.tiny(top)
    files = made and python_files()
    if not files:
        return None
    have = {name for name in debs.tiny_files()}
    made.put("python3", {name: value for name, value in files.items() if name not in have}, arch=debs.architecture())
    for name in TOOLCHAIN:
        made.put(name, {})
    made.put("libpq-dev", PQ_DEV, depends="libpq5")
    return made.publish()
