"""Zip archives: what Python's zipfile writes is unpacked as Python unpacks it; what two readers could read differently is refused."""

import hashlib
import io
import os
import stat
import struct
import zipfile
import zlib

from ground import check, outside, test

LOCAL, LISTED, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"


def member(name, data=b"", mode=0o100644, method=zipfile.ZIP_DEFLATED, **more):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr, info.compress_type = 3, mode << 16, method
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def zipped(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for info, data in members:
            archive.writestr(info, data)
    return out.getvalue()


class Raw:
    """One entry by its fields, each of which can be made to lie: `here` in its own header, `there` in the list."""

    def __init__(self, name, data=b"x", method=8, here=(), there=(), packed=None, extra=b"", listed_extra=None, behind=b""):
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        self.body = packed if packed is not None else deflate.compress(data) + deflate.flush() if method else data
        fields = {
            "name": name, "flags": 0, "method": method, "crc": zlib.crc32(data), "packed": len(self.body), "size": len(data),
            "mode": 0o100644 << 16, "at": None,
        }
        self.here, self.there = {**fields, **dict(here)}, {**fields, **dict(there)}
        self.extra, self.behind = extra, behind
        self.listed_extra = extra if listed_extra is None else listed_extra

    def local(self):
        f = self.here
        name = f["name"].encode("utf-8", "surrogateescape")
        head = struct.pack("<HHHHHIIIHH", 20, f["flags"], f["method"], 0, 0x21, f["crc"], f["packed"], f["size"], len(name), len(self.extra))
        return LOCAL + head + name + self.extra + self.body + self.behind

    def listed(self, at):
        f = self.there
        name = f["name"].encode("utf-8", "surrogateescape")
        where = at if f["at"] is None else f["at"]
        head = struct.pack("<HHHHHHIIIHHHHHII", 0x314, 20, f["flags"], f["method"], 0, 0x21, f["crc"], f["packed"], f["size"],
                           len(name), len(self.listed_extra), 0, 0, 0, f["mode"], where)
        return LISTED + head + name + self.listed_extra


def built(*entries, front=b"", gap=b"", comment=b"", count=None, behind=b"", list_at=None):
    body, places = front, []
    for entry in entries:
        places.append(len(body))
        body += entry.local() + gap
    listing = b"".join(entry.listed(at) for entry, at in zip(entries, places))
    count = len(entries) if count is None else count
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(listing), len(body) if list_at is None else list_at, len(comment))
    return body + listing + END + end + comment + behind


def descriptor(data, packed, signed=True, wide=False):
    lengths = struct.pack("<QQ" if wide else "<II", packed, len(data))
    return (b"PK\7\10" if signed else b"") + struct.pack("<I", zlib.crc32(data)) + lengths


def large(*numbers):
    return struct.pack("<HH", 1, 8 * len(numbers)) + b"".join(struct.pack("<Q", number) for number in numbers)


BIG = 0xFFFFFFFF
LAZY = {"flags": 8, "crc": 0, "packed": 0, "size": 0}
STORED = {"method": 0}

REFUSED = {
    "dotdot": built(Raw("a/../../x")),
    "absolute": built(Raw("/px-evil")),
    "backslash": built(Raw("a\\..\\x")),
    "empty part": built(Raw("a//b")),
    "dot part": built(Raw("./a")),
    "control": built(Raw("a\nb")),
    "not utf-8": built(Raw("a\udcff")),
    "utf-8 not marked": built(Raw("ä")),
    "no name": built(Raw("")),
    "twice": built(Raw("a"), Raw("a")),
    "file and directory": built(Raw("a"), Raw("a/", b"", 0)),
    "file and below": built(Raw("a"), Raw("a/b")),
    "below and file": built(Raw("a/b"), Raw("a.b"), Raw("a")),
    "link": built(Raw("a", b"/etc/passwd", there={"mode": 0o120777 << 16})),
    "device": built(Raw("a", b"", 0, there={"mode": 0o020666 << 16})),
    "directory without slash": built(Raw("a", b"", 0, there={"mode": 0o040755 << 16})),
    "directory with data": built(Raw("a/", b"data", 0, there={"mode": 0o040755 << 16})),
    "encrypted": built(Raw("a", here={"flags": 1}, there={"flags": 1})),
    "strange flag": built(Raw("a", here={"flags": 0x20}, there={"flags": 0x20})),
    "strange method": built(Raw("a", here={"method": 12}, there={"method": 12})),
    "names differ": built(Raw("a", here={"name": "b"})),
    "sizes differ": built(Raw("a", here={"size": 2})),
    "sums differ": built(Raw("a", here={"crc": 7})),
    "methods differ": built(Raw("a", here={"method": 0})),
    "flags differ": built(Raw("a", here={"flags": 0x800})),
    "wrong sum": built(Raw("a", here={"crc": 7}, there={"crc": 7})),
    "longer than said": built(Raw("a", b"xyz", here={"size": 2}, there={"size": 2})),
    "shorter than said": built(Raw("a", b"xyz", here={"size": 4}, there={"size": 4})),
    "stored, other length": built(Raw("a", b"xyz", 0, here={"size": 2}, there={"size": 2})),
    "damaged data": built(Raw("a", b"xyz", packed=b"\xff\xff\xff")),
    "cut data": built(Raw("a", b"x" * 1000, packed=b"\x4b")),
    "data behind data": built(Raw("a", b"x", packed=b"\xab\x00\x00junk")),
    "front": built(Raw("a"), front=b"#!/bin/sh\n"),
    "front, places shifted": b"#!/bin/sh\n" + built(Raw("a")),
    "gap": built(Raw("a"), Raw("b"), gap=b"hidden"),
    "overlap": built(Raw("a", b"abc", 0), Raw("b", b"abc", 0, there={"at": 0})),
    "one place twice": built(Raw("a"), Raw("b", there={"at": 0})),
    "behind": built(Raw("a"), behind=b"junk"),
    "another archive behind": built(Raw("a")) + built(Raw("b")),
    "two ends": built(Raw("a"), comment=END + struct.pack("<HHHHIIH", 0, 0, 0, 0, 0, 0, 0)),
    "more than listed": built(Raw("a"), count=2),
    "fewer than listed": built(Raw("a"), Raw("b"), count=1),
    "list elsewhere": built(Raw("a"), list_at=1),
    "second name": built(Raw("a", extra=struct.pack("<HHBI", 0x7075, 6, 1, 0) + b"b")),
    "extra cut": built(Raw("a", extra=b"\1\0\xff\0")),
    "extra odd": built(Raw("a", extra=b"\1\0\0")),
    "large lengths missing": built(Raw("a", there={"size": BIG})),
    "large lengths not needed": built(Raw("a", extra=large(1))),
    "large lengths differ": built(Raw("a", b"x", 0, here={"size": BIG, "packed": BIG}, extra=large(2, 2), listed_extra=b"")),
    "descriptor differs": built(Raw("a", b"x", 0, here=LAZY, there={"flags": 8}, behind=descriptor(b"y", 1))),
    "descriptor missing": built(Raw("a", b"x", 0, here=LAZY, there={"flags": 8})),
    "descriptor too long": built(Raw("a", b"x", 0, here=LAZY, there={"flags": 8}, behind=descriptor(b"x", 1) + b"hidden")),
    "empty file": b"",
    "no zip": b"x" * 100,
    "only an end, cut": built()[:-1],
}
PERMITTED = {
    "plain": built(Raw("a"), Raw("b/c")),
    "stored": built(Raw("a", b"abc", 0)),
    "empty": built(),
    "utf-8": built(Raw("ä", here={"flags": 0x800}, there={"flags": 0x800})),
    "comment": built(Raw("a"), comment=b"made by a test"),
    "directory first": built(Raw("a/", b"", 0, there={"mode": 0o040755 << 16}), Raw("a/b")),
    "directory last": built(Raw("a/b"), Raw("a/", b"", 0, there={"mode": 0o040755 << 16})),
    "alike, not below": built(Raw("a"), Raw("a.b"), Raw("a-b/c"), Raw("ab/c")),
    "level": built(Raw("a", here={"flags": 2}, there={"flags": 0})),
    "other extras": built(Raw("a", extra=struct.pack("<HHI", 0x5455, 4, 7))),
    "descriptor": built(Raw("a", b"x", 0, here=LAZY, there={"flags": 8}, behind=descriptor(b"x", 1))),
    "descriptor without sign": built(Raw("a", b"x", 0, here=LAZY, there={"flags": 8}, behind=descriptor(b"x", 1, False))),
    "descriptor, wide": built(Raw("a", b"x", 0, here=LAZY, there={"flags": 8}, behind=descriptor(b"x", 1, True, True))),
    "large lengths": built(Raw("a", b"x", 0, here={"size": BIG, "packed": BIG}, extra=large(1, 1), listed_extra=b"")),
    "large in the list": built(Raw("a", b"x", 0, there={"size": BIG, "packed": BIG}, extra=b"", listed_extra=large(1, 1))),
}


@test
def zips_that_mean_harm(site):
    site.write("victim", b"victim")
    before = outside(site)
    for name, data in REFUSED.items():
        _, answer = site.unzip(data)
        check(answer.startswith("PX814"), f"{name}: {answer}")
        check(outside(site) == before, f"{name}: something outside changed")
    check("a/../../x" in site.unzip(REFUSED["dotdot"])[1], "the entry is not named")


@test
def zips_that_are_fine(site):
    for name, data in PERMITTED.items():
        path, answer = site.unzip(data)
        check(answer.startswith("ok " + hashlib.sha256(data).hexdigest()), f"{name}: {answer}")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    check((path / info.filename).read_bytes() == archive.read(info), f"{name}: {info.filename} differs")


def tree(path):
    found = {}
    for place, folders, names in os.walk(path):
        for name in folders + names:
            full = os.path.join(place, name)
            st = os.lstat(full)
            data = open(full, "rb").read() if stat.S_ISREG(st.st_mode) else None
            found[os.path.relpath(full, path)] = (stat.S_IFMT(st.st_mode), st.st_mode & 0o111 != 0, st.st_mtime, data)
    return found


@test
def zips_as_zipfile_writes_them(site):
    noise = bytes((i * i >> 3) & 0xFF for i in range(300000))
    members = (
        member("pkg/__init__.py", b"print(1)\n" * 1000),
        member("pkg/noise.bin", noise),
        member("pkg/stored.bin", noise, method=zipfile.ZIP_STORED),
        member("pkg/tool", b"#!/bin/sh\n", mode=0o100755),
        member("pkg/empty", b""),
        member("no mode", b"from elsewhere", mode=0),
        member("ünï/cödé", b"text"),
        member("dir/", b"", mode=0o040755, method=zipfile.ZIP_STORED),
    )
    data = zipped(*members)
    path, answer = site.unzip(data)
    check(answer.startswith("ok"), answer)
    got = tree(path)
    want = {info.filename.rstrip("/"): (data if not info.is_dir() else None) for info, data in members}
    for name, content in want.items():
        kind, executable, mtime, is_now = got[name]
        check(mtime == 0, f"{name}: its time is {mtime}")
        check(content is None or is_now == content, f"{name}: differs")
        check(content is None or executable == (name == "pkg/tool"), f"{name}: its mode")
    check(set(got) == set(want) | {"pkg", "ünï"}, f"{sorted(got)}")
    first = site.listing(path)
    path, answer = site.unzip(data)
    check(site.listing(path) == first, "twice the same archive, two trees")


@test
def zips_written_as_a_stream(site):
    class Stream(io.RawIOBase):
        def __init__(self):
            self.data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data)
            return len(data)

    stream = Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(zipfile.ZipInfo("large"), "w", force_zip64=True) as out:
            out.write(b"x" * 100000)
        archive.writestr("small", b"y")
    path, answer = site.unzip(stream.data)
    check(answer.startswith("ok"), answer)
    check((path / "large").read_bytes() == b"x" * 100000 and (path / "small").read_bytes() == b"y", "contents")


@test
def zips_larger_than_the_small_end_can_say(site):
    data = zipped(*(member(f"d{i % 100}/f{i}", b"") for i in range(66000)))
    path, answer = site.unzip(data)
    check(answer.startswith("ok") and answer.split()[3] == "66000", answer)
    _, answer = site.unzip(data, (1 << 30, 65999, 1000))
    check(answer.startswith("PX814") and "more entries" in answer, answer)
    broken = bytearray(data)
    broken[-22 - 20 - 56 + 32] ^= 1             # the larger end's count, of which it has two
    _, answer = site.unzip(bytes(broken))
    check(answer.startswith("PX814"), answer)


@test
def zips_that_grow(site):
    bomb = zipped(member("zeros", b"\0" * (80 << 20)))
    _, answer = site.unzip(bomb, (1 << 30, 100, 200))
    check(answer.startswith("PX814") and "grow" in answer, answer)
    _, answer = site.unzip(bomb, (1 << 20, 100, 0))
    check(answer.startswith("PX814") and "larger" in answer, answer)
    lie = built(Raw("zeros", b"\0" * (1 << 20), here={"size": 10}, there={"size": 10}))
    path, answer = site.unzip(lie)
    check(answer.startswith("PX814"), answer)
    check(sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) <= 10, "more was written than the archive said")


@test
def zips_damaged_anywhere(site):
    data = zipped(member("a/b", b"some text " * 20), member("c", b"more", method=zipfile.ZIP_STORED))
    want = {name: value[3] for name, value in tree(site.unzip(data)[0]).items()}
    accepted = 0
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x41
        path, answer = site.unzip(bytes(broken))
        check(answer.startswith(("ok", "PX814")), f"byte {at}: {answer}")
        if answer.startswith("ok"):             # a time, a version or an attribute: no content is behind those
            accepted += 1
            check({name: value[3] for name, value in tree(path).items()} == want, f"byte {at} changes what is unpacked")
    check(accepted < len(data) // 3, f"{accepted} of {len(data)} changes were not noticed")
    for length in range(0, len(data), 7):
        check(site.unzip(data[:length])[1].startswith("PX814"), f"cut at {length}")
