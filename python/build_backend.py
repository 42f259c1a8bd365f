#!/usr/bin/python3
"""The build of the Python package: what pip calls (PEP 517), and `build_backend.py stage BUILD OUT` for `make`.

meson builds the engine and the C half, this file puts them into a wheel beside the Python files: one wheel for every
Python from 3.11 on. It needs no package but what the engine's own build needs, so that
`pip install ./python --no-build-isolation` works without a network. meson-python was not taken: its release in Debian
12 cannot make wheels of the limited API, and wants the engine below this directory.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# In an sdist the engine lies beside us, in the repository around us.
ENGINE = HERE / "engine" if (HERE / "engine").is_dir() else HERE.parent
PROGRAMS = ("px-layer", "px-net", "px-pasta")  # what the engine starts, and looks for beside the library that it is in
MODULE = "_px.abi3.so"
EPOCH = (1980, 1, 1, 0, 0, 0)


def project() -> dict[str, Any]:
    with open(HERE / "pyproject.toml", "rb") as file:
        found: dict[str, Any] = tomllib.load(file)["project"]
    return found


def name_and_version() -> tuple[str, str]:
    found = project()
    return str(found["name"]).replace("-", "_"), str(found["version"])


def metadata() -> str:
    found = project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {found['name']}",
        f"Version: {found['version']}",
        f"Summary: {found['description']}",
        f"Requires-Python: {found['requires-python']}",
        "License: Apache-2.0",
        "Description-Content-Type: text/markdown",
    ]
    for extra, needs in found.get("optional-dependencies", {}).items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    return "\n".join(lines) + "\n\n" + (HERE / "README.md").read_text(encoding="utf-8")


# ---- building ----


def run(*command: str | os.PathLike[str]) -> None:
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except FileNotFoundError as error:
        raise SystemExit(
            f"px: building needs the program {error.filename} (Debian: apt-get install meson ninja-build gcc)"
        ) from error


def build(folder: Path) -> Path:
    """The module and the programs, built in the folder."""
    run("meson", "setup", "-Dpython=enabled", "--prefix", "/usr/local", folder, ENGINE)
    run("ninja", "-C", folder, f"python/{MODULE}", *PROGRAMS)
    return folder


def package_files(built: Path) -> list[tuple[str, Path, int]]:
    """(name in the wheel, file, mode) of everything that is installed."""
    found = [
        (str(path.relative_to(HERE)), path, 0o644)
        for path in sorted((HERE / "px").rglob("*"))
        if path.suffix in (".py", ".pyi") or path.name == "py.typed"
    ]
    found.append((f"px/{MODULE}", built / "python" / MODULE, 0o755))
    return found + [(f"px/{name}", built / name, 0o755) for name in PROGRAMS]


def stage(built: Path, target: Path) -> None:
    """The package as it would be installed, for tests."""
    shutil.rmtree(target, ignore_errors=True)
    for name, source, mode in package_files(built):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target / name)
        (target / name).chmod(mode)


# ---- the wheel ----


class Wheel:
    """A zip with a record of what is in it. The same files make the same bytes."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._record: list[str] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        info = zipfile.ZipInfo(name, EPOCH)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, record: str) -> None:
        self._record.append(f"{record},,")
        self._zip.writestr(zipfile.ZipInfo(record, EPOCH), "\n".join(self._record) + "\n")
        self._zip.close()


def write_wheel(built: Path, folder: Path) -> str:
    name, version = name_and_version()
    tag = f"cp311-abi3-linux_{os.uname().machine}"
    file = f"{name}-{version}-{tag}.whl"
    wheel = Wheel(folder / file)
    for target, source, mode in package_files(built):
        wheel.add(target, source.read_bytes(), mode)
    info = f"{name}-{version}.dist-info"
    wheel.add(f"{info}/METADATA", metadata().encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: px\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{info}/LICENSE", (ENGINE / "LICENSE").read_bytes())
    wheel.close(f"{info}/RECORD")
    return file


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    with tempfile.TemporaryDirectory(prefix="px-build-") as folder:
        return write_wheel(build(Path(folder)), Path(wheel_directory))


# ---- the sdist ----


def engine_files() -> list[str]:
    """What of the repository belongs to the engine: what git knows, or in an sdist all there is."""
    wanted = (
        "src/",
        "include/",
        "data/",
        "cli/",
        "mcp/",
        "helpers/",
        "tools/",
        "attacks/",
        "python/",
        "tests/",
        "examples/",
        "fuzz/",
    )
    done = subprocess.run(["git", "-C", ENGINE, "ls-files", "-z"], capture_output=True, check=False)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(ENGINE)) for path in ENGINE.rglob("*") if path.is_file()]
    alone = ("meson.build", "meson_options.txt", "LICENSE")
    return sorted(name for name in names if name in alone or name.startswith(wanted))


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    name, version = name_and_version()
    top = f"{name}-{version}"
    own = [
        path
        for path in sorted(HERE.rglob("*"))
        if path.is_file()
        and path.suffix in (".py", ".pyi", ".typed", ".toml", ".md")
        and "engine" not in path.relative_to(HERE).parts
        and "__pycache__" not in path.parts
    ]
    files = [(f"{top}/{path.relative_to(HERE)}", path) for path in own]
    files += [(f"{top}/engine/{inner}", ENGINE / inner) for inner in engine_files()]
    target = Path(sdist_directory) / f"{top}.tar.gz"
    with (
        open(target, "wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for inner, path in files:
            add(tar, inner, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        add(tar, f"{top}/PKG-INFO", metadata().encode(), 0o644)
    return target.name


def add(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, 315532800
    tar.addfile(info, io.BytesIO(data))


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    return []


def get_requires_for_build_sdist(config_settings: object = None) -> list[str]:
    return []


def main() -> None:
    match sys.argv[1:]:
        case ["stage", built, target]:
            stage(Path(built), Path(target))
        case ["wheel", built, folder]:
            Path(folder).mkdir(parents=True, exist_ok=True)
            print(Path(folder) / write_wheel(Path(built), Path(folder)))
        case ["sdist", folder]:
            Path(folder).mkdir(parents=True, exist_ok=True)
            print(Path(folder) / build_sdist(folder))
        case _:
            raise SystemExit("usage: build_backend.py stage BUILD OUT | wheel BUILD FOLDER | sdist FOLDER")


if __name__ == "__main__":
    main()
