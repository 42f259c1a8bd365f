"""elf.py - the smallest shared library that needs others: a header, two segments and a dynamic table."""

import struct


def shared_library(*needed, soname=None, machine=62):
    """Bytes of an ELF64 file whose DT_NEEDED are these names."""
    strings, entries = b"\0", []
    for tag, name in [(1, n) for n in needed] + ([(14, soname)] if soname else []):
        entries.append((tag, len(strings)))
        strings += name.encode() + b"\0"
    start = 64 + 2 * 56
    table_size = (len(entries) + 3) * 16
    texts = start + table_size
    entries += [(5, texts), (10, len(strings)), (0, 0)]
    table = b"".join(struct.pack("<qQ", tag, value) for tag, value in entries)
    total = texts + len(strings)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + b"\0" * 9, 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, total, total, 0x1000)
    dynamic = struct.pack("<IIQQQQQQ", 2, 4, start, start, start, table_size, table_size, 8)
    return header + load + dynamic + table + strings
