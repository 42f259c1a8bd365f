"""Tiny wheels, made by hand and always the same; with ways to make them wrong."""

import base64
import hashlib
import io
import zipfile


def record_hash(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class Wheel:
    """NAME-VERSION-TAG.whl with these files: {path: bytes}, or {path: (bytes, mode)}."""

    def __init__(self, name, version, files=None, tag="py3-none-any", scripts=None, pure=True, metadata="", spoil=None):
        self.name, self.version, self.tag = name, version, tag
        self.stem = f"{name.replace('-', '_')}-{version}"
        self.file = f"{self.stem}-{tag}.whl"
        info = f"{self.stem}.dist-info/"
        self.files = dict(files or {name.replace("-", "_") + ".py": f"name = {name!r}\n".encode()})
        self.files[info + "METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}\n".encode()
        tags = "".join(f"Tag: {p}-{a}-{s}\n" for p in tag.split("-")[0].split(".") for a in tag.split("-")[1].split(".") for s in tag.split("-")[2].split("."))
        self.files[info + "WHEEL"] = f"Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: {str(pure).lower()}\n{tags}".encode()
        if scripts:
            lines = "".join(f"{key} = {value}\n" for key, value in scripts.items())
            self.files[info + "entry_points.txt"] = f"[console_scripts]\n{lines}".encode()
        self.spoil = spoil or (lambda files: None)
        self.record = info + "RECORD"

    def bytes(self):
        out = io.BytesIO()
        contents = {path: item if isinstance(item, tuple) else (item, 0o100644) for path, item in self.files.items()}
        lines = [f'"{p}"' if "," in p else p for p in contents]
        record = "".join(f"{line},{record_hash(data)},{len(data)}\n" for line, (data, _) in zip(lines, contents.values()))
        contents[self.record] = (f"{record}{self.record},,\n".encode(), 0o100644)
        self.spoil(contents)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, (data, mode) in contents.items():
                info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
                info.create_system, info.external_attr, info.compress_type = 3, mode << 16, zipfile.ZIP_DEFLATED
                archive.writestr(info, data)
        return out.getvalue()

    def write(self, folder):
        path = folder / self.file
        path.write_bytes(self.bytes())
        return path

    def sha256(self):
        return hashlib.sha256(self.bytes()).hexdigest()


def lock(*wheels, url=lambda wheel: f"wheels/{wheel.file}", sha256=lambda wheel: wheel.sha256()):
    text = 'version = 1\n\n[metadata]\npx_version = "0.1.0"\nmode = "p0-pinned"\nmanifest_fingerprint = ""\n\n[project]\nname = "demo"\n\n[python]\nrequirement = ">=3.11"\n'
    for wheel in wheels:
        python, abi, platform = wheel.tag.split("-")
        place = url(wheel)
        text += f'\n[[dependencies]]\nname = "{wheel.name}"\nspecifier = "{wheel.name}=={wheel.version}"\n\n[dependencies.artifact]\n'
        text += f'filename = "{wheel.file}"\n' + (f'url = "{place}"\n' if place else "")
        text += f'sha256 = "{sha256(wheel)}"\nsize = {len(wheel.bytes())}\npython_tag = "{python}"\nabi_tag = "{abi}"\nplatform_tag = "{platform}"\n'
    return text
