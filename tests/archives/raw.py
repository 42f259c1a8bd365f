"""Archives byte by byte, so that a test can write what no tar program would."""

import bz2
import gzip
import lzma
import shutil
import subprocess

BLOCK = 512
END = bytes(2 * BLOCK)


def octal(value, width):
    return b"%0*o\0" % (width - 1, value)


def checksum(block):
    block = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def padded(data):
    return data + bytes(-len(data) % BLOCK)


def header(
    name, kind=b"0", size=0, *, link=b"", mode=0o644, prefix=b"", magic=b"ustar\x0000", size_field=None, sum_ok=True
):
    name, link = (text.encode() if isinstance(text, str) else text for text in (name, link))
    block = name[:100].ljust(100, b"\0") + octal(mode, 8) + octal(0, 8) + octal(0, 8)
    block += (
        (size_field or (octal(size, 12) if size < 8 << 30 else base256(size)))
        + octal(0, 12)
        + b" " * 8
        + kind
        + link[:100].ljust(100, b"\0")
    )
    block += magic + bytes(64) + octal(0, 8) + octal(0, 8) + prefix.ljust(155, b"\0") + bytes(12)
    assert len(block) == BLOCK
    block = checksum(block)
    return block if sum_ok else block[:148] + b"000000\0 " + block[156:]


def entry(name, data=b"", kind=b"0", **more):
    return header(name, kind, len(data), **more) + padded(data)


def folder(name, **more):
    return header(name, b"5", mode=0o755, **more)


def symlink(name, target):
    return header(name, b"2", link=target)


def hardlink(name, target):
    return header(name, b"1", link=target)


def record(key, value):
    value = value.encode() if isinstance(value, str) else value
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key.encode(), value)


def pax(*records, kind=b"x"):
    return entry("pax", b"".join(records), kind)


def long_name(name, kind=b"L"):
    name = name.encode() if isinstance(name, str) else name
    return entry("././@LongLink", name + b"\0", kind, magic=b"ustar  \0")


def base256(value):
    return b"\x80" + value.to_bytes(11, "big")


def tar(*parts):
    return b"".join(parts) + END


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, capture_output=True, check=True).stdout


COMPRESSORS = {
    "tar": lambda data: data,
    "tar.gz": lambda data: gzip.compress(data, 1, mtime=0),
    "tgz": lambda data: gzip.compress(data, 6, mtime=0),
    "tar.bz2": bz2.compress,
    "tar.xz": lambda data: lzma.compress(data, preset=1),
}
if shutil.which("zstd"):
    COMPRESSORS["tar.zst"] = zstd


def bomb(total, compress, step=64 << 20):
    """A file of `total` zeros as many members: small, and quickly made."""
    member = compress(bytes(step))
    return compress(header("zeros", size=total)) + member * (total // step) + compress(END)


def aligned_bomb(total, compress, step):
    """The same, but every member, the first one too, has exactly `step` bytes: none lies across the end of a reader's buffer."""
    head = header("zeros", size=total - BLOCK)
    return compress(head + bytes(step - BLOCK)) + compress(bytes(step)) * (total // step - 1) + compress(END)
