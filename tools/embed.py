"""embed.py NAME INPUT OUTPUT: a file's bytes as a C array."""
import sys

name, source, target = sys.argv[1:]
with open(source, "rb") as f:
    data = f.read()
with open(target, "w") as f:
    f.write(f"static const unsigned char {name}[] = {{\n")
    for i in range(0, len(data), 16):
        f.write("    " + " ".join(f"0x{b:02x}," for b in data[i:i + 16]) + "\n")
    f.write("};\n")
