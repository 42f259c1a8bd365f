#!/usr/bin/python3
"""guards.py REPO BUILD_DIR - rules of the source tree that a compiler does not check.

    layers    every #include in src/ and the front ends obeys src/layers.txt
    banned    nothing in tools/banned.txt is called in src/ and cli/
    child     the child's objects need only the symbols in tests/guards/child-symbols.txt
    globals   libpx.so and libpx.a have no mutable globals
    headers   every header in src/ opens with a comment and has #pragma once
    printing  the command prints words by functions that quote what comes in by %s, and by conversions that these know
    init      px-init makes no call that a filter of the box refuses: it answers for those itself, and would wait for ever

Prints one line for each check (`ok NAME`, `FAIL NAME: details`, `skip NAME: reason`) and last "N passed, N failed, N skipped".
`guards.py --self-test` runs every check on good and bad samples in a temporary directory.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FRONTS = ("cli", "serve", "python", "helpers")


class Failed(Exception):
    """The check does not hold: one line of details for each finding."""


class Skipped(Exception):
    """The check cannot be made here."""


# ---- reading -------------------------------------------------------------------------------------------------------


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failed(f"cannot read {path.name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failed(f"{path.name} is not UTF-8") from error


def entries(path):
    """The lines of a table without comments and blanks."""
    lines = (line.split("#", 1)[0].strip() for line in read(path).splitlines())
    return [line for line in lines if line]


def sources(repo, folders, suffixes):
    found = [path for folder in folders for path in sorted((repo / folder).rglob("*")) if path.suffix in suffixes]
    return [path for path in found if path.is_file()]


def report(findings):
    if findings:
        raise Failed("\n".join(findings))


# Comments, strings and characters of C in one pass, so that a quote in a comment and a slash in a string do no harm.
TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*) | (?P<text>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')""", re.DOTALL | re.VERBOSE
)


def blank(match):
    """As many lines as before, but no text."""
    newlines = "\n" * match.group(0).count("\n")
    return newlines if match.group("comment") else '""' + newlines


def strip(code):
    """Code without its comments, and with every string empty; line numbers stay."""
    return TOKEN.sub(blank, code)


def strip_comments(code):
    return TOKEN.sub(lambda m: blank(m) if m.group("comment") else m.group(0), code)


# ---- (a) layers ----------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r"""^[ \t]*\#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)""", re.MULTILINE | re.VERBOSE)


def read_layers(path):
    layers = {}
    for line in entries(path):
        name, colon, rest = line.partition(":")
        if not colon or not re.fullmatch(r"[a-z0-9_]+", name.strip()):
            raise Failed(f"layers.txt: not `layer: layers`: {line}")
        if name.strip() in layers:
            raise Failed(f"layers.txt: {name.strip()} has two lines")
        layers[name.strip()] = rest.split()
    for name, below in layers.items():
        for other in below:
            if other not in layers:
                raise Failed(f"layers.txt: {name} names {other}, which has no line")
    return layers


def check_acyclic(layers):
    done, open_layers = set(), []

    def visit(name):
        if name in done:
            return
        if name in open_layers:
            raise Failed("layers.txt has a circle: " + " -> ".join(open_layers[open_layers.index(name):] + [name]))
        open_layers.append(name)
        for other in layers[name]:
            visit(other)
        open_layers.pop()
        done.add(name)

    for layer in layers:
        visit(layer)


def include_problem(layers, layer, name):
    """Why this file of `layer` must not include `name`, or None."""
    parts = name.split("/")
    if ".." in parts or name.startswith("/"):
        return "includes are written from src/, without .."
    if len(parts) == 1 or parts[0] not in layers:
        return None
    if parts[0] != layer and parts[0] not in layers[layer]:
        allowed = " ".join(layers[layer]) or "nothing but include/px"
        return f"{layer} may include {allowed}"
    return None


def check_layers(repo, _build):
    layers = read_layers(repo / "src/layers.txt")
    check_acyclic(layers)
    paths = sources(repo, ("src",) + FRONTS, (".c", ".h", ".inc"))
    if not any(path.is_relative_to(repo / "src") for path in paths):
        raise Failed("src/ has no C file")
    findings = []
    for path in paths:
        parts = path.relative_to(repo).parts
        layer = parts[1] if parts[0] == "src" else parts[0]
        if layer not in layers or (parts[0] == "src" and len(parts) < 3):
            findings.append(f"{'/'.join(parts)}: its folder has no line in layers.txt")
            continue
        code = strip_comments(read(path))
        for match in INCLUDE.finditer(code):
            ours, system = match.groups()
            if system and not (repo / "src" / system).exists():
                continue        # <net/if.h> is the system's, although net is also a layer
            problem = include_problem(layers, layer, ours or system)
            if problem:
                line = code.count("\n", 0, match.start()) + 1
                findings.append(f"{'/'.join(parts)}:{line}: includes {ours or system}: {problem}")
    report(findings)


# ---- (b) banned functions ------------------------------------------------------------------------------------------

EXCEPTION = re.compile(r"banned:\s*\w")


def check_banned(repo, _build):
    names = entries(repo / "tools/banned.txt")
    for line in read(repo / "tools/banned.txt").splitlines():
        name, _, reason = line.partition("#")
        if name.strip() and not reason.strip():
            raise Failed(f"banned.txt: {name.strip()} has no reason")
    if not names:
        raise Failed("banned.txt is empty")
    # Not a member (x.signal(...), x->signal(...)): that is somebody's own function pointer.
    call = re.compile(r"(?<![\w.])(?<!->)(" + "|".join(map(re.escape, names)) + r")\s*\(")
    paths = [p for p in sources(repo, ("src", "cli"), (".c", ".h", ".inc")) if not p.name.startswith("test_")]
    if not paths:
        raise Failed("no C file in src/ and cli/")
    findings = []
    for path in paths:
        code = read(path)
        written = code.splitlines()
        stripped = strip(code)
        for match in call.finditer(stripped):
            line = stripped.count("\n", 0, match.start()) + 1
            if not EXCEPTION.search(written[line - 1]):
                findings.append(f"{path.relative_to(repo)}:{line}: calls {match.group(1)}")
    report(findings)


# ---- (c) symbols of the child --------------------------------------------------------------------------------------

SANITIZER = re.compile(r"__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm_profile)_")


def nm(arguments):
    if not shutil.which("nm"):
        raise Skipped("nm is not installed")
    done = subprocess.run(["nm", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"nm: {done.stderr.strip()}")
    return done.stdout


def object_paths(build, patterns):
    found = {pattern: sorted(build.glob(pattern)) for pattern in patterns}
    missing = [pattern for pattern, paths in found.items() if not paths]
    if len(missing) == len(patterns):
        raise Skipped("the build directory has none of the objects in child-objects.txt")
    report([f"child-objects.txt: {pattern} matches nothing" for pattern in missing])
    return sorted({path for paths in found.values() for path in paths})


def check_child(repo, build):
    patterns = entries(repo / "tests/guards/child-objects.txt")
    allowed = set(entries(repo / "tests/guards/child-symbols.txt"))
    if not patterns:
        raise Failed("child-objects.txt lists nothing")
    paths = object_paths(build, patterns)
    defined, needed = set(), {}
    for path in paths:
        defined |= {line.split()[-1] for line in nm(["--defined-only", "-g", str(path)]).splitlines() if line.strip()}
        needed[path] = [line.split()[-1] for line in nm(["-u", str(path)]).splitlines() if line.strip()]
    if any(SANITIZER.match(symbol) for symbols in needed.values() for symbol in symbols):
        raise Skipped("this build has sanitizers or coverage in its objects")
    report([
        f"{path.relative_to(build)} needs {symbol}"
        for path, symbols in needed.items()
        for symbol in symbols
        if symbol not in allowed and symbol not in defined
    ])


# ---- (d) no mutable globals ----------------------------------------------------------------------------------------

MUTABLE = re.compile(r"\.(data|bss|tdata|tbss|ldata|lbss)\b|\*COM\*")
# Placed by the compiler's start files and the linker in every shared object.
ARTEFACTS = {"completed.0", "__dso_handle", "__TMC_END__", "_edata", "__bss_start", "_end", "__data_start", "data_start"}


def mutable_symbols(path):
    """Pairs of object and symbol that lie in writable sections. A const table with pointers lies in .data.rel.ro, which the
    loader makes read-only; nm's letters call it `d` like the rest, so the section's name decides."""
    place = path.name
    for line in nm(["-f", "sysv", str(path)]).splitlines():
        member = re.match(r"Symbols from .*\[(.*)\]:", line)
        if member:
            place = f"{path.name}({member.group(1)})"
        columns = [column.strip() for column in line.split("|")]
        if len(columns) != 7:
            continue
        name, kind, section = columns[0], columns[3], columns[6]
        if kind in ("SECTION", "FILE") or name in ARTEFACTS or section.startswith(".data.rel.ro"):
            continue
        if SANITIZER.match(name):
            raise Skipped("this build has sanitizers or coverage in its objects")
        if MUTABLE.match(section):
            yield place, name, section


def check_globals(_repo, build):
    found = {name: sorted(p for p in build.rglob(name) if p.is_file()) for name in ("libpx.so*", "libpx.a")}
    found = {name: [p for p in paths if not p.name.endswith((".symbols", ".p"))] for name, paths in found.items()}
    if not any(found.values()):
        raise Skipped("the build directory has no libpx.so and no libpx.a")
    report([f"{name} was not built" for name, paths in found.items() if not paths])
    libraries = sorted({path.resolve() for paths in found.values() for path in paths})
    report([f"{place}: {name} in {section}" for path in libraries for place, name, section in mutable_symbols(path)])


# ---- (e) headers ---------------------------------------------------------------------------------------------------


def check_headers(repo, _build):
    findings = []
    paths = sources(repo, ("src",), (".h",))
    if not paths:
        raise Failed("src/ has no header")
    for path in paths:
        code = read(path)
        first = re.search(r"^[ \t]*#.*$", strip(code), re.MULTILINE)
        if not code.startswith("/*"):
            findings.append(f"{path.relative_to(repo)}: does not start with a comment")
        if not first or first.group(0).split() != ["#pragma", "once"]:
            findings.append(f"{path.relative_to(repo)}: its first directive is not #pragma once")
    report(findings)


# ---- (f) the calls of px-init --------------------------------------------------------------------------------------

INIT_ALSO = ("src/base/bare.h", "src/kernel/notify.c", "src/kernel/payload.h")


def check_init(repo, _build):
    rows = re.findall(r"^PX_SYSCALL\((\w+),\s*\d+,\s*(\w+),\s*(\w+),\s*(\w+)\)", read(repo / "data/syscalls.def"), re.MULTILINE)
    classes = {name: cells for name, *cells in rows}
    paths = [path for path in sources(repo, ("src/init",), (".c", ".h"))] + [repo / name for name in INIT_ALSO if (repo / name).exists()]
    findings, seen = [], 0
    for path in paths:
        for number, line in enumerate(read(path).splitlines(), 1):
            for name in re.findall(r"\bSYS_(\w+)", line):
                seen += 1
                if name not in classes:
                    findings.append(f"{path.relative_to(repo)}:{number}: {name} has no row in data/syscalls.def")
                elif "DENY" in classes[name] and not re.search(r"/\* unfiltered: \w", line):
                    findings.append(f"{path.relative_to(repo)}:{number}: {name} is refused by a filter that px-init answers for")
    report(findings)
    if not seen:
        raise Failed("src/init makes no call")


# ---- (g) what the command prints -----------------------------------------------------------------------------------

PRINTER = "cli/render.c"        # the one file that may call them
STDIO = re.compile(r"(?<![\w.])(?<!->)(v?printf|v?fprintf|v?dprintf|puts|fputs|perror)\s*\(")
OWN = re.compile(r"(?<!void )\bprint_own\(((?:[^()]|\([^()]*\))*)\)")
CONVERSION = re.compile(r"%[-0]*\d*(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?(.?)")


def string_literals(code):
    for match in TOKEN.finditer(code):
        if match.group("text") and match.group("text")[0] == '"':
            yield code.count("\n", 0, match.start()) + 1, match.group("text")[1:-1]


def check_printing(repo, _build):
    paths = sources(repo, ("cli",), (".c",))
    if not paths:
        raise Failed("no C file in cli/")
    findings = []
    for path in paths:
        where, code = path.relative_to(repo), read(path)
        written, stripped = code.splitlines(), strip(code)
        for match in STDIO.finditer(stripped):
            if str(where) != PRINTER:
                findings.append(f"{where}:{stripped.count(chr(10), 0, match.start()) + 1}: calls {match.group(1)}: print or say quotes names")
        for match in OWN.finditer(stripped):
            line = stripped.count("\n", 0, match.start()) + 1
            constant = re.fullmatch(r'([^"]*\?\s*"")?\s*(:\s*)?""', match.group(1).strip())
            if not constant and not re.search(r"/\* own: \w", written[line - 1]):
                findings.append(f"{where}:{line}: print_own of what is not a constant")
        for line, text in string_literals(code):
            for match in CONVERSION.finditer(text):
                if match.group(1) not in tuple("scdiuxof%"):
                    findings.append(f"{where}:{line}: px_words does not know {match.group(0)}")
    report(findings)


CHECKS = {
    "layers": check_layers,
    "banned": check_banned,
    "child": check_child,
    "globals": check_globals,
    "headers": check_headers,
    "init": check_init,
    "printing": check_printing,
}


def run_check(check, repo, build):
    """('ok' | 'FAIL' | 'skip', details)"""
    try:
        check(repo, build)
    except Failed as error:
        return "FAIL", str(error)
    except Skipped as error:
        return "skip", str(error)
    return "ok", ""


def tell(name, verdict, details):
    lines = details.splitlines()
    print(f"{verdict} {name}" + (": " + lines[0] if lines else ""))
    for line in lines[1:]:
        print(f"    {line}")


def total(verdicts):
    counts = [verdicts.count(verdict) for verdict in ("ok", "FAIL", "skip")]
    print("{} passed, {} failed, {} skipped".format(*counts))
    return 1 if counts[1] or not sum(counts) else 0


def main_check(repo, build):
    verdicts = []
    for name, check in CHECKS.items():
        verdict, details = run_check(check, repo, build)
        tell(name, verdict, details)
        verdicts.append(verdict)
    return total(verdicts)


# ---- self test -----------------------------------------------------------------------------------------------------

GOOD = {
    "src/layers.txt": "# law\nbase:\nkernel: base\ncli:\n",
    "src/base/buf.h": "/* base/buf.h - bytes. */\n#pragma once\n",
    "src/kernel/clone.c": '#include "base/buf.h"\n#include <sys/types.h>\n/* strcpy(a, b) */\nint f(void) { return g("exit(1)"); }\n',
    "cli/main.c": '#include <px/px.h>\n#include "render.h"\nint h(void) { return x->signal(1) + px_exit(2); }\n',
    "tools/banned.txt": "strcpy # no bound\nexit # a library never ends its caller\nsignal # process-wide\n",
    "tests/guards/child-objects.txt": "child*.o\n",
    "tests/guards/child-symbols.txt": "memcpy # plain\n_GLOBAL_OFFSET_TABLE_\n",
}
CALLS = ("PX_SYSCALL(read, 0, ALLOW, ALLOW, ALLOW)\nPX_SYSCALL(mount,  165, DENY,  DENY, DENY)\n"
         "PX_SYSCALL(capset, 126, ALLOW, ALLOW, DENY)\n")
# check, verdict that must come, a word its details must hold, files that differ from GOOD (None: missing)
SAMPLES = [
    ("layers", "ok", "", {}),
    ("layers", "FAIL", "clone.h", {"src/base/buf.c": '\n#include "kernel/clone.h"\n'}),
    ("layers", "FAIL", "clone.h", {"src/base/buf.c": "#  include <kernel/clone.h>\n", "src/kernel/clone.h": "/* */\n"}),
    ("layers", "ok", "", {"src/base/buf.c": "#include <kernel/system.h>\n"}),
    ("layers", "FAIL", "include/px", {"cli/main.c": '#include "base/buf.h"\n'}),
    ("layers", "FAIL", "without ..", {"src/base/buf.c": '#include "../kernel/clone.h"\n'}),
    ("layers", "FAIL", "no line", {"src/other/x.c": "int x;\n"}),
    ("layers", "FAIL", "no line", {"src/stray.c": "int x;\n"}),
    ("layers", "FAIL", "circle", {"src/layers.txt": "base: kernel\nkernel: base\ncli:\n"}),
    ("layers", "FAIL", "has no line", {"src/layers.txt": "base: nobody\nkernel: base\ncli:\n"}),
    ("layers", "FAIL", "two lines", {"src/layers.txt": "base:\nbase:\nkernel: base\ncli:\n"}),
    ("layers", "FAIL", "cannot read", {"src/layers.txt": None}),
    ("layers", "ok", "", {"src/base/buf.c": '/* #include "kernel/clone.h" */\n#include "base/buf.h"\n#include "errors.def"\n'}),
    ("banned", "ok", "", {}),
    ("banned", "FAIL", "buf.c:2: calls strcpy", {"src/base/buf.c": 'char *s = "/*";\nvoid f(void) { strcpy (a, b); }\n'}),
    ("banned", "FAIL", "calls exit", {"cli/main.c": "int main(void) { exit(1); }\n"}),
    ("banned", "FAIL", "calls exit", {"cli/main.c": "int main(void) { exit(1); } /* banned: */\n"}),
    ("banned", "ok", "", {"cli/main.c": "int main(void) { exit(1); } /* banned: main may */\n"}),
    ("banned", "ok", "", {"src/base/test_buf.c": "int f(void) { exit(1); }\n"}),
    ("banned", "ok", "", {"src/base/buf.c": "int f(void) { _exit(1); } // exit(1)\nchar c = '\"'; char *t = \"exit(\";\n"}),
    ("banned", "FAIL", "has no reason", {"tools/banned.txt": "strcpy\n"}),
    ("banned", "FAIL", "cannot read", {"tools/banned.txt": None}),
    ("banned", "FAIL", "is empty", {"tools/banned.txt": "# nothing\n"}),
    ("headers", "ok", "", {}),
    ("headers", "FAIL", "does not start", {"src/base/buf.h": "#pragma once\n/* late */\n"}),
    ("headers", "FAIL", "#pragma once", {"src/base/buf.h": "/* buf */\n#include <stddef.h>\n#pragma once\n"}),
    ("headers", "FAIL", "#pragma once", {"src/base/buf.h": "/* #pragma once */\nint x;\n"}),
    ("headers", "FAIL", "no header", {"src/base/buf.h": None}),
    ("init", "FAIL", "makes no call", {"data/syscalls.def": CALLS}),
    ("init", "ok", "", {"data/syscalls.def": CALLS, "src/init/x.c": "px_sys(SYS_read, 0);\n"}),
    ("init", "FAIL", "x.c:2: mount is refused", {"data/syscalls.def": CALLS, "src/init/x.c": "\npx_sys(SYS_mount);\n"}),
    ("init", "FAIL", "capset is refused", {"data/syscalls.def": CALLS, "src/init/x.c": "px_sys(SYS_capset); /* unfiltered: */\n"}),
    ("init", "ok", "", {"data/syscalls.def": CALLS, "src/init/x.c": "px_sys(SYS_capset); /* unfiltered: first of all */\n"}),
    ("init", "FAIL", "kill has no row", {"data/syscalls.def": CALLS, "src/init/x.c": "px_sys(SYS_kill);\n"}),
    ("printing", "ok", "", {}),
    ("printing", "ok", "", {"cli/render.c": 'int f(void) { return fputs(text, stdout); }\n'}),
    ("printing", "FAIL", "main.c:2: calls printf", {"cli/main.c": '\nint f(void) { return printf("%s\\n", name); }\n'}),
    ("printing", "FAIL", "calls fprintf", {"cli/main.c": 'int f(void) { return fprintf(stderr, "x"); }\n'}),
    ("printing", "FAIL", "calls puts", {"cli/main.c": "int f(void) { return puts(name); }\n"}),
    ("printing", "ok", "", {"cli/main.c": 'int f(void) { snprintf(a, 2, "%s", b); return print("%-20s %5u %.3f%%\\n", name, n, d); }\n'}),
    ("printing", "FAIL", "does not know %g", {"cli/main.c": 'int f(void) { return print("%g", d); }\n'}),
    ("printing", "FAIL", "does not know %*", {"cli/main.c": 'int f(void) { return print("%*s", n, d); }\n'}),
    ("printing", "FAIL", "print_own", {"cli/main.c": "void f(void) { print_own(name); }\n"}),
    ("printing", "ok", "", {"cli/main.c": 'void f(void) { print_own("x"); print_own(colour ? "\\033[0m" : ""); }\n'}),
    ("printing", "ok", "", {"cli/main.c": "void f(void) { print_own(name); } /* own: a colour */\n"}),
    ("printing", "FAIL", "no C file", {"cli/main.c": None}),
    ("child", "skip", "none of the objects", {}),
    ("child", "ok", "", {"child.c": "int other(void); int f(void) { return other(); }", "child2.c": "int other(void) { return 1; }"}),
    ("child", "ok", "", {"child.c": "#include <string.h>\nvoid *f(void *a, void *b, unsigned long n) { return memcpy(a, b, n); }"}),
    ("child", "FAIL", "needs malloc", {"child.c": "#include <stdlib.h>\nvoid *f(unsigned long n) { return malloc(n); }"}),
    ("child", "FAIL", "needs __errno_location", {"child.c": "#include <errno.h>\nint f(void) { return errno; }"}),
    ("child", "FAIL", "needs weak", {"child.c": "int weak(void) __attribute__((weak)); int f(void) { return weak(); }"}),
    ("child", "FAIL", "matches nothing", {"child.c": "int f;", "tests/guards/child-objects.txt": "child.o\nnone.o\n"}),
    ("child", "FAIL", "lists nothing", {"child.c": "int f;", "tests/guards/child-objects.txt": "# none\n"}),
    ("child", "FAIL", "cannot read", {"child.c": "int f;", "tests/guards/child-symbols.txt": None}),
    ("globals", "skip", "no libpx.so", {}),
    ("globals", "ok", "", {"libpx.c": 'const char *const names[] = {"a", "b"}; int f(int i) { return names[i][0]; }'}),
    ("globals", "FAIL", "counter", {"libpx.c": "static int counter; int f(void) { return ++counter; }"}),
    ("globals", "FAIL", "table in .data", {"libpx.c": "int table[] = {1, 2};"}),
    ("globals", "FAIL", "mine in .tbss", {"libpx.c": "_Thread_local int mine;"}),
    ("globals", "FAIL", "names in .data", {"libpx.c": 'const char *names[] = {"a"};'}),
    ("globals", "FAIL", "libpx.a was not built", {"libpx.c": "int f(void) { return 0; }", "remove": "libpx.a"}),
]


def compile_sample(repo, build):
    """Objects of child*.c and both libraries of libpx.c, as the real build would place them."""
    for source in sorted(repo.glob("*.c")):
        target = build / (source.stem + ".o")
        subprocess.run(["cc", "-O1", "-fPIC", "-fno-builtin", "-c", str(source), "-o", str(target)], check=True)
        if source.stem == "libpx":
            subprocess.run(["cc", "-shared", str(target), "-o", str(build / "libpx.so.0")], check=True)
            (build / "libpx.so").symlink_to("libpx.so.0")
            subprocess.run(["ar", "rc", str(build / "libpx.a"), str(target)], check=True)


def run_sample(name, changes, top):
    repo, build = top / "repo", top / "build"
    build.mkdir()
    for path, text in {**GOOD, **changes}.items():
        if text is None or path == "remove":
            continue
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text, encoding="utf-8")
    compile_sample(repo, build)
    if "remove" in changes:
        (build / changes["remove"]).unlink()
    return run_check(CHECKS[name], repo, build)


def main_self_test():
    verdicts = []
    tools = all(shutil.which(tool) for tool in ("cc", "ar", "nm"))
    for number, (name, expected, word, changes) in enumerate(SAMPLES, 1):
        if not tools and name in ("child", "globals"):
            tell(f"{name} sample {number}", "skip", "cc, ar or nm is not installed")
            verdicts.append("skip")
            continue
        with tempfile.TemporaryDirectory() as top:
            verdict, details = run_sample(name, changes, Path(top))
        good = verdict == expected and word in details
        verdicts.append("ok" if good else "FAIL")
        if not good:
            tell(f"{name} sample {number}", "FAIL", f"gave {verdict} {details!r}, not {expected} with {word!r}")
    return total(verdicts)


def main(arguments):
    if arguments == ["--self-test"]:
        return main_self_test()
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return main_check(Path(arguments[0]).resolve(), Path(arguments[1]).resolve())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
