"""wheels.py - tiny wheels, the same bytes every time; for tests that must not need a network."""

import base64
import hashlib
import zipfile


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def make_wheel(directory, name, version, requires=(), tag="py3-none-any"):
    """NAME.py with a variable `version`; returns the file's path."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)
    files = {f"{module}.py": f"version = {version!r}\n".encode(), f"{info}/METADATA": metadata.encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()}
    record = "".join(record_line(path, data) for path, data in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    path = directory / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, data in files.items():
            archive.writestr(zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0)), data)
    return path
