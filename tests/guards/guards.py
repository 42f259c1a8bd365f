#!/usr/bin/python3
"""guards.py REPO BUILD_DIR - rules of the source tree that a compiler does not check.

    layers    every #include in src/ and the front ends obeys src/layers.txt, and a group of src/ uses none above it
    symbols   what the objects of a folder need is in folders that src/layers.txt gives it
    launcher  the small launcher has the objects of src/core and start/launcher.c
    names     an external function begins with its folder or a file of it, and no two folders share such a word
    folders   a folder has at most 6,000 lines in 45 files, and no family of more than five files with one prefix
    errors    a public function that takes an error begins with PX_ERR, and tests/null_error.c calls it without one; front ends name errors
    banned    nothing in tools/banned.txt is called in src/, cli/, helpers/ and mcp/
    child     the child's objects need only the symbols in tests/guards/child-symbols.txt
    globals   libpx.so and libpx.a have no mutable globals
    hardening the helpers and libpx.so end at an overrun of their stack, lie anywhere in memory, and bind their symbols at the start
    headers   every header in src/ opens with a comment and has #pragma once
    follow    the Python package changes files of the host through descriptors: a path can be a link that a box made
    address   IP addresses are compared in src/core/net/address.c alone, which knows all spellings of one
    state     no directory of px's on disk is reached but by the functions of state/state.h, or the line says why
    printing  the command prints words by functions that quote what comes in by %s, and by conversions that these know
    init      px-init makes no call that a filter of the box refuses: it answers for those itself, and would wait for ever
    reach     only the files that judge who named a host send requests, look for credentials or open the host's network to a box

Prints one line for each check (`ok NAME`, `FAIL NAME: details`, `skip NAME: reason`) and last "N passed, N failed, N skipped".
`guards.py --self-test` runs every check on good and bad samples in a temporary directory.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FRONTS = ("cli", "mcp", "python", "helpers")


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


def include_problem(layers, layer, name, tables):
    """Why this file of `layer` must not include `name`, or None. tables: names in data/; None: a front end, which has headers of its own."""
    parts = name.split("/")
    if ".." in parts or name.startswith("/"):
        return "includes are written FOLDER/FILE, without .."
    if len(parts) == 1 and tables is not None and name not in tables:
        return "this is no table in data/: write FOLDER/FILE"
    if len(parts) == 1 or parts[0] not in layers:
        return None
    if parts[0] != layer and parts[0] not in layers[layer]:
        allowed = " ".join(layers[layer]) or "nothing but include/px"
        return f"{layer} may include {allowed}"
    return None


GROUPS = ("core", "formats", "boxes", "features")       # of src/; each may use those before it


def folder_groups(repo):
    """FOLDER -> the place of its group in GROUPS."""
    found = {}
    for path in sorted((repo / "src").glob("*/*/")):
        if path.parent.name not in GROUPS:
            raise Failed(f"src/{path.parent.name} is no group: {', '.join(GROUPS)}")
        found[path.name] = GROUPS.index(path.parent.name)
    return found


def check_order(layers, groups):
    report([f"layers.txt: {name} ({GROUPS[groups[name]]}) names {other} of a higher group, {GROUPS[groups[other]]}"
            for name in layers for other in layers[name] if name in groups and groups.get(other, 0) > groups[name]])


def check_layers(repo, _build):
    layers = read_layers(repo / "src/layers.txt")
    check_acyclic(layers)
    check_order(layers, folder_groups(repo))
    tables = {path.name for path in (repo / "data").glob("*")}
    paths = sources(repo, ("src",) + FRONTS, (".c", ".h", ".inc"))
    if not any(path.is_relative_to(repo / "src") for path in paths):
        raise Failed("src/ has no C file")
    findings = []
    for path in paths:
        parts = path.relative_to(repo).parts
        layer = parts[2] if parts[0] == "src" and len(parts) == 4 else parts[0]
        if layer not in layers:
            findings.append(f"{'/'.join(parts)}: its folder has no line in layers.txt")
            continue
        code = strip_comments(read(path))
        for match in INCLUDE.finditer(code):
            ours, system = match.groups()
            if system and not any((repo / "src" / group / system).exists() for group in GROUPS):
                continue        # <net/if.h> is the system's, although net is also a layer
            problem = include_problem(layers, layer, ours or system, tables if parts[0] == "src" else None)
            if problem:
                line = code.count("\n", 0, match.start()) + 1
                findings.append(f"{'/'.join(parts)}:{line}: includes {ours or system}: {problem}")
    report(findings)


# ---- symbols obey the layers, and the launcher has the core alone --------------------------------------------------

OBJECT = re.compile(r"^(%s)_([a-z]+)_\w+\.c\.o$" % "|".join(GROUPS))
LAUNCHER_ALSO = ("src_boxes_start_launcher.c.o",)          # beside the objects of the core


def folder_objects(build):
    found = [(match.group(2), path) for path in sorted(build.glob("src/lib*.a.p/*.o")) if (match := OBJECT.match(path.name))]
    if not found:
        raise Skipped("the build directory has no objects of src/")
    return found


def symbol_lines(path, words):
    return [line.split()[-1] for line in nm([*words, str(path)]).splitlines() if line.strip()]


def functions_of(path):
    return {line.split()[-1] for line in nm(["--defined-only", "-g", str(path)]).splitlines() if line.split()[-2:-1] == ["T"]}


def check_symbols(repo, build):
    layers = read_layers(repo / "src/layers.txt")
    objects = folder_objects(build)
    home = {symbol: folder for folder, path in objects for symbol in symbol_lines(path, ["--defined-only", "-g"])}
    findings = {f"{folder} may not use {home[symbol]}: {path.name} needs {symbol}"
                for folder, path in objects for symbol in symbol_lines(path, ["-u"])
                if symbol in home and home[symbol] != folder and home[symbol] not in layers.get(folder, ())}
    report(sorted(findings))


def check_launcher(_repo, build):
    archive = build / "libpx_core.a"
    if not archive.exists():
        raise Skipped("the build directory has no libpx_core.a")
    members = [Path(line).name for line in subprocess.run(["ar", "t", str(archive)], capture_output=True, text=True, check=True).stdout.split()]
    report([f"the launcher has {name}" for name in members if not name.startswith("core_") and name not in LAUNCHER_ALSO])


# ---- names of functions --------------------------------------------------------------------------------------------

EVERYWHERE = ("base",)                  # its functions are words of the whole tree: px_fail, px_equal
ALSO = {"child": {"op"}}                # a function for each row of plan/ops.def


def public_functions(repo):
    return {name for path in sources(repo, ("include/px",), (".h",)) for name in re.findall(r"PX_API[^;]*?\b(px_\w+)\s*\(", read(path))}


def folder_words(repo, folder):
    """What functions of a folder may begin with: its name, and those of its files, whole or up to the first underscore."""
    stems = {path.stem for path in (repo / "src").glob(f"*/{folder}/*.c") if not path.name.startswith("test_")}
    return stems | {stem.split("_")[0] for stem in stems} | {folder} | ALSO.get(folder, set())


def check_names(repo, build):
    public, owner, findings = public_functions(repo), {}, []
    for folder, path in folder_objects(build):
        if folder in EVERYWHERE:
            continue
        words = folder_words(repo, folder)
        for name in functions_of(path) - public:
            word = name.split("_")[1]
            if not any(name == f"px_{w}" or name.startswith(f"px_{w}_") for w in words):
                findings.append(f"{path.name}: {name} begins with neither its folder nor a file of it")
            elif owner.setdefault(word, folder) != folder:
                findings.append(f"{path.name}: px_{word}_ is {owner[word]}'s, and {name} is in {folder}")
    report(sorted(findings))


# ---- NULL for the error --------------------------------------------------------------------------------------------


def functions_with_error(repo):
    declared = re.compile(r"PX_API[^;]*?\b(px_\w+)\s*\([^;]*\bstruct px_err \*e\)")
    return {name for path in sources(repo, ("include/px",), (".h",)) for name in declared.findall(strip(read(path)))}


NUMBERED = re.compile(r"\b(?:make_error|px_fail|fail)\([^,()]*, \d+")


def check_errors(repo, _build):
    public, begun, findings = functions_with_error(repo), set(), []
    for path in sources(repo, ("src",), (".c",)):
        for name, first in re.findall(r"^\w[^;{}()]*\b(px_\w+)\([^;{}]*\)\n\{\n(.*)\n", read(path), re.MULTILINE):
            if name in public and first.strip() != "PX_ERR(e);":
                findings.append(f"{path.name}: {name} does not begin with PX_ERR(e)")
            begun |= {name} & public
    called = set(re.findall(r"\b(?:(?:FAILS|MEMORY)\(|SAYS\(\w+, )(px_\w+)", read(repo / "tests/null_error.c")))
    findings += [f"{path.relative_to(repo)}: {match} has a number: px/errors.h names it" for path in sources(repo, FRONTS, (".c", ".h"))
                 for match in NUMBERED.findall(strip(read(path)))]
    findings += [f"{name} is not defined in src/" for name in public - begun]
    findings += [f"tests/null_error.c has no row for {name}" for name in public - called]
    findings += [f"tests/null_error.c: {name} is no public function with an error" for name in called - public]
    report(sorted(findings))


# ---- folders that can be read in one go ----------------------------------------------------------------------------

LINES_MAX, FILES_MAX, FAMILY_MAX = 6000, 45, 5


def check_folders(repo, _build):
    findings = []
    for folder in sorted((repo / "src").glob("*/*/")):
        product = [path for path in sources(repo, (folder.relative_to(repo),), (".c", ".h", ".def")) if not path.name.startswith("test_")]
        lines = sum(read(path).count("\n") for path in product)
        if lines > LINES_MAX or len(product) > FILES_MAX:
            findings.append(f"{folder.relative_to(repo)}: {lines} lines in {len(product)} files; at most {LINES_MAX} in {FILES_MAX}")
        families = {}
        for path in product:
            if path.suffix == ".c" and "_" in path.stem:
                families.setdefault(path.stem.split("_")[0], []).append(path.name)
        findings += [f"{folder.relative_to(repo)}: {len(names)} files begin with {word}_: that is a folder"
                     for word, names in families.items() if len(names) > FAMILY_MAX]
    report(findings)


# ---- (b) banned functions ------------------------------------------------------------------------------------------

EXCEPTION = re.compile(r"banned:\s*\w")


BANNED_IN = ("src", "cli", "helpers", "mcp")


def arguments(code, start):
    """What stands between `start` and the parenthesis that closes the call there."""
    depth = 1
    for at in range(start, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return code[start:at]
    return code[start:]


def check_banned(repo, _build):
    rows = [line.split() for line in entries(repo / "tools/banned.txt")]
    flags = {words[0]: words[1:] for words in rows}
    for line in read(repo / "tools/banned.txt").splitlines():
        name, _, reason = line.partition("#")
        if name.strip() and not reason.strip():
            raise Failed(f"banned.txt: {name.strip()} has no reason")
    if not flags:
        raise Failed("banned.txt is empty")
    # Not a member (x.signal(...), x->signal(...)): that is somebody's own function pointer. SYS_NAME: by px_sys.
    names = "|".join(re.escape(name) + (r"\s*," if name.startswith("SYS_") else r"\s*\(") for name in flags)
    call = re.compile(r"(?<![\w.])(?<!->)(" + names + ")")
    paths = [p for p in sources(repo, BANNED_IN, (".c", ".h", ".inc")) if not p.name.startswith("test_")]
    if not paths:
        raise Failed(f"no C file in {', '.join(BANNED_IN)}")
    findings = []
    for path in paths:
        code = read(path)
        written = code.splitlines()
        stripped = strip(code)
        for match in call.finditer(stripped):
            name = match.group(1).rstrip(" \n(,")
            line = stripped.count("\n", 0, match.start()) + 1
            given = re.findall(r"\w+", arguments(stripped, match.end()))
            if not EXCEPTION.search(written[line - 1]) and not set(given) & set(flags[name]):
                findings.append(f"{path.relative_to(repo)}:{line}: calls {name}")
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


# ---- hardening -----------------------------------------------------------------------------------------------------

HARDENED = ("px-layer", "px-fetch", "px-git", "libpx.so")


def hardening_problems(path):
    def readelf(option):
        return subprocess.run(["readelf", option, "-W", str(path)], capture_output=True, text=True, check=True).stdout

    if not re.search(r"Type:\s+DYN", readelf("-h")):
        yield "lies at a fixed address"
    if not re.search(r"\bNOW\b", readelf("-d")):
        yield "binds its symbols late"
    if "__stack_chk_fail" not in nm(["-D", str(path)]):
        yield "has no stack protector"


def check_hardening(_repo, build):
    if not shutil.which("readelf"):
        raise Skipped("readelf is not installed")
    found = [build / name for name in HARDENED if (build / name).exists()]
    if not found:
        raise Skipped("the build directory has no helper and no libpx.so")
    if any(SANITIZER.search(nm(["-D", str(path)])) for path in found):
        raise Skipped("this build has sanitizers or coverage in its objects")
    report([f"{path.name} {problem}" for path in found for problem in hardening_problems(path)])


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

INIT_ALSO = ("src/core/base/bare.h", "src/core/kernel/notify.c", "src/core/init/payload.h")


def check_init(repo, _build):
    rows = re.findall(r"^PX_SYSCALL\((\w+),\s*\d+,\s*(\w+),\s*(\w+),\s*(\w+)\)", read(repo / "data/syscalls.def"), re.MULTILINE)
    classes = {name: cells for name, *cells in rows}
    paths = [path for path in sources(repo, ("src/core/init",), (".c", ".h"))] + [repo / name for name in INIT_ALSO if (repo / name).exists()]
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
        raise Failed("src/core/init makes no call")


# ---- (g) paths in directories that a box can write -------------------------------------------------------------------

CHANGES = {"chmod", "chown", "lchmod", "lchown", "link", "makedirs", "mkdir", "mkfifo", "mknod", "remove", "removedirs", "removexattr", "rename",
           "renames", "replace", "rmdir", "setxattr", "symlink", "truncate", "unlink", "utime"}
BY_PATH = {"shutil": {"chown", "copy", "copy2", "copyfile", "copymode", "copystat", "copytree", "move", "rmtree"},
           "tempfile": {"TemporaryDirectory", "NamedTemporaryFile"}}
OF_A_PATH = (CHANGES - {"link", "remove", "replace", "truncate"}) | {"hardlink_to", "symlink_to", "touch", "write_bytes", "write_text"}
FOLLOWS = re.compile(r"# follow: \w")


def opens_to_write(call):
    """Whether open() is called with a path and a mode that writes."""
    mode = next((word.value for word in call.keywords if word.arg == "mode"), call.args[1] if len(call.args) > 1 else None)
    return isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") and not ast.unparse(call.args[0]).startswith(("os.open(", "fd"))


def follow_problem(call):
    """The name of a call that changes a file by a path alone, or None."""
    words = {word.arg for word in call.keywords}
    if isinstance(call.func, ast.Name):
        return "open" if call.func.id == "open" and opens_to_write(call) else None
    if not isinstance(call.func, ast.Attribute):
        return None
    base, name = ast.unparse(call.func.value), call.func.attr
    if base == "os" and name == "open":
        held = "dir_fd" in words or re.search(r"O_PATH|O_RDONLY", ast.unparse(call.args[1]))
    elif base == "os":
        held = name not in CHANGES or "dir_fd" in words or {"src_dir_fd", "dst_dir_fd"} <= words or (
            name == "chmod" and ast.unparse(call.args[0]).startswith("f'/proc/self/fd/"))
        held = held and (name != "chmod" or "dir_fd" not in words or "follow_symlinks" in words)
    else:
        held = name not in BY_PATH.get(base, OF_A_PATH)
    return None if held else f"{base}.{name}"


def check_follow(repo, _build):
    findings = []
    paths = sources(repo, ("python/px",), (".py",))
    if not paths:
        raise Failed("python/px has no Python file")
    for path in paths:
        code = read(path)
        lines = code.splitlines()
        for call in ast.walk(ast.parse(code)):
            problem = follow_problem(call) if isinstance(call, ast.Call) else None
            if problem and not FOLLOWS.search(lines[call.lineno - 1]):
                findings.append(f"{path.relative_to(repo)}:{call.lineno}: {problem} by a path, which can be a link of a box")
    report(findings)


# ---- (h) who goes out, and with what -------------------------------------------------------------------------------

# What leads px, its credentials or a box to a host, and the only files that use it. Each of them judges who named the host: a lock or a manifest
# may lead to the caller's own index (px_index_has) or to the open network (outward), and gets no credentials.
REACH = {
    r"\bpx_fetch\s*\(": ("src/formats/transfer/fetch.c", "src/formats/transfer/fetch.h", "src/formats/image/registry.c", "src/formats/image/credentials.c", "src/features/env/source.c"),
    r"\bpx_login_find\s*\(": ("src/formats/image/credentials.c", "src/formats/image/registry.c", "src/formats/image/registry.h"),
    r'"net",\s*"host"': ("src/boxes/start/buildbox.c",),
}


def check_reach(repo, _build):
    findings = []
    for path in sources(repo, ("src", "cli"), (".c", ".h")):
        code = strip_comments(read(path))
        name = str(path.relative_to(repo))
        if not path.name.startswith("test_"):
            findings += [f"{name}: {match.group(0)} is for {', '.join(files)}" for call, files in REACH.items() if name not in files
                         for match in re.finditer(call, code)]
    report(findings)


# ---- (g) addresses ---------------------------------------------------------------------------------------------------

ADDRESS_PART = r"(?:\bsin6?_addr\b|\bs6?_addr(?:16|32)?\b|(?:\.|->)bytes\b(?!\s*\.)|\bpx_address_get_v4\s*\([^()]*\))"
ADDRESS_COMPARISONS = (
    re.compile(r"\b(?:memcmp|bcmp|strn?cmp|timingsafe_bcmp)\s*\([^;{}]*?" + ADDRESS_PART),
    re.compile(r"\bIN6_(?:IS_ADDR|ARE_ADDR)_\w+\s*\("),
    re.compile(ADDRESS_PART + r"(?:\s*\[[^]]*\])?[\s)]*(?:(?:>>|&(?!&)|/|%)\s*\w+[\s)]*)?(?:[=!]=|[<>]=?(?![<>]))"),
    re.compile(r"(?:[=!]=|(?<![<>-])[<>]=?(?![<>]))\s*(?:\w+\s*\()*[\w.>-]*" + ADDRESS_PART),
    re.compile(ADDRESS_PART + r"(?:\s*\[[^]]*\])?\s*\^"),
)


def check_address(repo, _build):
    """A comparison of the bytes of an IP address outside src/core/net/address.c misses its other spellings: NAT64, 6to4, mapped."""
    paths = [path for path in sources(repo, ("src", "cli", "helpers", "mcp"), (".c", ".h")) if not path.name.startswith("test_")]
    findings = []
    for path in paths:
        code = read(path)
        names_addresses = "px_address" in code or re.search(r"\bs(?:in6?|6)?_addr\b", code)
        if path == repo / "src/core/net/address.c" or not names_addresses:
            continue            # `bytes` of others, such as hashes
        written, stripped = code.splitlines(), strip(code)
        lines = {stripped.count("\n", 0, match.start()) + 1 for comparison in ADDRESS_COMPARISONS for match in comparison.finditer(stripped)}
        findings += [f"{path.relative_to(repo)}:{line}: compares an address by itself; use px_address_equal, _within or _reaches"
                     for line in sorted(lines) if not re.search(r"/\* address: \w", written[line - 1])]
    report(findings)


# ---- (g) directories of px's on disk -------------------------------------------------------------------------------

# By these px would reach a directory that may have been put there by somebody else. state/state.h has the functions that look
# first; src/core/state itself is where they are. A line says why it may: `state: reason`.
STATE = (
    (re.compile(r"\b(mkdtemp|mkstemp|mkostemp|tmpnam|tempnam)\s*\("), "makes a directory or file that no later px knows again"),
    (re.compile(r'"(?:[^"]*/)?\.px(?:/[^"]*)?"'), "names .px itself: use px_state_open()"),
    (re.compile(r'"[^"]*\b(?:tasks|layers|unsettled|trash)/[^"]*"'), "goes through a part of .px by a path: use px_state_part()"),
    (re.compile(r'"[^"]*px-home[^"]*"'), "names the homes of boxes: use px_homes_make()"),
    (re.compile(r'PX_STATE_MARK|"\.px-mark"'), "touches the mark of a directory"),
)
STATE_REASON = re.compile(r"state: \w")


def check_state(repo, _build):
    paths = [p for p in sources(repo, ("src", "cli", "mcp"), (".c", ".h", ".inc")) if not p.name.startswith("test_")]
    if not paths:
        raise Failed("no C file in src/, cli/ and mcp/")
    findings = []
    for path in paths:
        if path.is_relative_to(repo / "src/core/state"):
            continue
        code = read(path)
        written = code.splitlines()
        for number, line in enumerate(strip_comments(code).splitlines(), 1):
            if line.lstrip().startswith("#include") or STATE_REASON.search(written[number - 1]):
                continue
            findings += [f"{path.relative_to(repo)}:{number}: {why}" for pattern, why in STATE if pattern.search(line)]
    report(findings)


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
    "follow": check_follow,
    "layers": check_layers,
    "symbols": check_symbols,
    "launcher": check_launcher,
    "names": check_names,
    "errors": check_errors,
    "folders": check_folders,
    "banned": check_banned,
    "child": check_child,
    "globals": check_globals,
    "hardening": check_hardening,
    "headers": check_headers,
    "init": check_init,
    "reach": check_reach,
    "address": check_address,
    "state": check_state,
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
    "src/core/base/buf.h": "/* base/buf.h - bytes. */\n#pragma once\n",
    "src/core/kernel/clone.c": '#include "base/buf.h"\n#include <sys/types.h>\n/* strcpy(a, b) */\nint f(void) { return g("exit(1)"); }\n',
    "cli/main.c": '#include <px/px.h>\n#include "render.h"\nint h(void) { return x->signal(1) + px_exit(2); }\n',
    "tools/banned.txt": "strcpy # no bound\nexit # a library never ends its caller\nsignal # process-wide\n"
                        "chown # follows\nfchownat AT_NOFOLLOW AT_EMPTY # follows\n"
                        "SYS_fchownat AT_NOFOLLOW # follows\n",
    "tests/guards/child-objects.txt": "child*.o\n",
    "tests/guards/child-symbols.txt": "memcpy # plain\n_GLOBAL_OFFSET_TABLE_\n",
}
CALLS = ("PX_SYSCALL(read, 0, ALLOW, ALLOW, ALLOW)\nPX_SYSCALL(mount,  165, DENY,  DENY, DENY)\n"
         "PX_SYSCALL(capset, 126, ALLOW, ALLOW, DENY)\n")
ERRORS = {
    "include/px/a.h": "/* PX_API int px_old(struct px_err *e); */\nPX_API int px_a(int x,\n    struct px_err *e);\nPX_API int px_b(void);\n",
    "src/core/base/a.c": "PX_API int px_a(int x, struct px_err *e)\n{\n    PX_ERR(e);\n}\nint px_b(void)\n{\n    return 0;\n}\n",
    "tests/null_error.c": "FAILS(px_a, 1);\n",
}
# check, verdict that must come, a word its details must hold, files that differ from GOOD (None: missing)
SAMPLES = [
    ("layers", "ok", "", {}),
    ("layers", "FAIL", "clone.h", {"src/core/base/buf.c": '\n#include "kernel/clone.h"\n'}),
    ("layers", "FAIL", "clone.h", {"src/core/base/buf.c": "#  include <kernel/clone.h>\n", "src/core/kernel/clone.h": "/* */\n"}),
    ("layers", "ok", "", {"src/core/base/buf.c": "#include <kernel/system.h>\n"}),
    ("layers", "FAIL", "include/px", {"cli/main.c": '#include "base/buf.h"\n'}),
    ("layers", "FAIL", "without ..", {"src/core/base/buf.c": '#include "../kernel/clone.h"\n'}),
    ("layers", "FAIL", "no line", {"src/core/other/x.c": "int x;\n"}),
    ("layers", "FAIL", "no line", {"src/stray.c": "int x;\n"}),
    ("layers", "FAIL", "no line", {"src/core/stray.c": "int x;\n"}),
    ("layers", "FAIL", "no group", {"src/engine/base/x.c": "int x;\n"}),
    ("layers", "FAIL", "higher group", {"src/features/base/buf.h": "/* */\n#pragma once\n", "src/core/base/buf.h": None}),
    ("layers", "FAIL", "no table in data/", {"src/core/base/buf.c": '#include "stray.h"\n'}),
    ("layers", "FAIL", "circle", {"src/layers.txt": "base: kernel\nkernel: base\ncli:\n"}),
    ("layers", "FAIL", "has no line", {"src/layers.txt": "base: nobody\nkernel: base\ncli:\n"}),
    ("layers", "FAIL", "two lines", {"src/layers.txt": "base:\nbase:\nkernel: base\ncli:\n"}),
    ("layers", "FAIL", "cannot read", {"src/layers.txt": None}),
    ("layers", "ok", "", {"src/core/base/buf.c": '/* #include "kernel/clone.h" */\n#include "base/buf.h"\n#include "errors.def"\n', "data/errors.def": ""}),
    ("banned", "ok", "", {}),
    ("banned", "FAIL", "buf.c:2: calls strcpy", {"src/core/base/buf.c": 'char *s = "/*";\nvoid f(void) { strcpy (a, b); }\n'}),
    ("banned", "FAIL", "calls exit", {"cli/main.c": "int main(void) { exit(1); }\n"}),
    ("banned", "FAIL", "calls exit", {"cli/main.c": "int main(void) { exit(1); } /* banned: */\n"}),
    ("banned", "ok", "", {"cli/main.c": "int main(void) { exit(1); } /* banned: main may */\n"}),
    ("banned", "ok", "", {"src/core/base/test_buf.c": "int f(void) { exit(1); }\n"}),
    ("banned", "ok", "", {"src/core/base/buf.c": "int f(void) { _exit(1); } // exit(1)\nchar c = '\"'; char *t = \"exit(\";\n"}),
    ("banned", "FAIL", "a.c:1: calls fchownat", {"helpers/x/a.c": "int f(void) { fchownat(d, g(1), 1, 1, 0); }\n"}),
    ("banned", "ok", "", {"mcp/a.c": "int f(void) { return fchownat(d, g(1),\n u, 1, X | AT_NOFOLLOW); }\n"}),
    ("banned", "FAIL", "calls SYS_fchownat", {"mcp/a.c": "int f(void) { return px_sys(SYS_fchownat, AT_EMPTY); }\n"}),
    ("banned", "FAIL", "calls fchownat", {"src/core/base/a.c": "int f(void) { g(fchownat(d, 0), AT_NOFOLLOW); }\n"}),
    ("banned", "ok", "", {"src/core/base/a.c": "int f(void) { fchown(d); A(SYS_fchownat) px_sys(SYS_fchownat, AT_NOFOLLOW); }\n"}),
    ("banned", "FAIL", "has no reason", {"tools/banned.txt": "strcpy\n"}),
    ("banned", "FAIL", "cannot read", {"tools/banned.txt": None}),
    ("banned", "FAIL", "is empty", {"tools/banned.txt": "# nothing\n"}),
    ("headers", "ok", "", {}),
    ("headers", "FAIL", "does not start", {"src/core/base/buf.h": "#pragma once\n/* late */\n"}),
    ("headers", "FAIL", "#pragma once", {"src/core/base/buf.h": "/* buf */\n#include <stddef.h>\n#pragma once\n"}),
    ("headers", "FAIL", "#pragma once", {"src/core/base/buf.h": "/* #pragma once */\nint x;\n"}),
    ("headers", "FAIL", "no header", {"src/core/base/buf.h": None}),
    ("init", "FAIL", "makes no call", {"data/syscalls.def": CALLS}),
    ("init", "ok", "", {"data/syscalls.def": CALLS, "src/core/init/x.c": "px_sys(SYS_read, 0);\n"}),
    ("init", "FAIL", "x.c:2: mount is refused", {"data/syscalls.def": CALLS, "src/core/init/x.c": "\npx_sys(SYS_mount);\n"}),
    ("init", "FAIL", "capset is refused", {"data/syscalls.def": CALLS, "src/core/init/x.c": "px_sys(SYS_capset); /* unfiltered: */\n"}),
    ("init", "ok", "", {"data/syscalls.def": CALLS, "src/core/init/x.c": "px_sys(SYS_capset); /* unfiltered: first of all */\n"}),
    ("init", "FAIL", "kill has no row", {"data/syscalls.def": CALLS, "src/core/init/x.c": "px_sys(SYS_kill);\n"}),
    ("follow", "FAIL", "no Python file", {}),
    *[("follow", "FAIL", f"x.py:2: {name} by a path", {"python/px/x.py": f"\n{code}\n"}) for name, code in (
        ("os.chmod", "os.chmod(path, 0o644)"), ("os.chmod", "os.chmod(name, 0o644, dir_fd=place)"), ("path.chmod", "path.chmod(0o644)"),
        ("os.rename", "os.rename(a, b)"), ("os.rename", "os.rename(a, b, src_dir_fd=place)"), ("os.unlink", "os.unlink(path)"),
        ("shutil.rmtree", "shutil.rmtree(path)"), ("shutil.copymode", "shutil.copymode(a, b)"), ("open", "open(path, 'x')"),
        ("open", "open(path, mode='r+b')"), ("os.open", "os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)"),
        ("tempfile.TemporaryDirectory", "with tempfile.TemporaryDirectory() as place: pass"), ("a / b.mkdir", "(a / b).mkdir()"),
        ("path.write_text", "path.write_text('')  # follow:"))],
    *[("follow", "ok", "", {"python/px/x.py": f"{code}\n"}) for code in (
        "os.fchmod(fd, 0o644)", "os.chmod(name, 0o644, dir_fd=place, follow_symlinks=False)", "os.chmod(f'/proc/self/fd/{fd}', 0o700)",
        "os.rename(a, b, src_dir_fd=p, dst_dir_fd=p)", "open(path)", "open(path, 'rb')", "open(fd, 'wb')", "open(os.open(a, F, dir_fd=d), 'w')",
        "os.open(path, os.O_PATH)", "os.open(name, NEW, 0o600, dir_fd=place)", "text.replace('a', 'b')", "set().remove(1)",
        "path.mkdir()  # follow: the caller's own path")],
    ("reach", "ok", "", {"src/formats/image/registry.c": "int f(void) { return px_fetch(a); }\n", "src/core/base/test_x.c": 'set("net", "host");\n'}),
    ("reach", "FAIL", "px_fetch(", {"src/features/project/x.c": "int f(void) { return px_fetch(a); }\n"}),
    ("reach", "FAIL", '"net", "host"', {"src/features/project/x.c": 'int f(void) { return set("net", "host"); }\n'}),
    ("address", "ok", "", {}),
    ("address", "FAIL", "x.c:2: compares", {"src/core/net/x.c": "struct px_address a;\nbool f(void) { return memcmp(a.bytes, b, 16) == 0; }\n"}),
    ("address", "FAIL", "x.c:3: compares", {"helpers/x.c": "\n\nint f(void) { return memcmp(&a->sin6_addr, &b, 16); }\n"}),
    ("address", "FAIL", "x.c:1: compares", {"helpers/x.c": "int f(void) { return at->sin_addr.s_addr == htonl(INADDR_LOOPBACK); }\n"}),
    ("address", "FAIL", "x.c:1: compares", {"helpers/x.c": "int f(void) { return ntohl(at->s_addr) >> 24 != 127; }\n"}),
    ("address", "FAIL", "x.c:1: compares", {"helpers/x.c": "int f(void) { return 5 == ntohl(at->s_addr); }\n"}),
    ("address", "FAIL", "x.c:1: compares", {"helpers/x.c": "int f(void) { return px_address_get_v4(&a) == 0x7f000001; }\n"}),
    ("address", "FAIL", "x.c:1: compares", {"src/core/net/x.c": "bool f(struct px_address *a) { return a->bytes[0] == 0xfe; }\n"}),
    ("address", "FAIL", "x.c:1: compares", {"cli/x.c": "int f(struct in6_addr *s6_addr) { return IN6_IS_ADDR_LOOPBACK(x); }\n"}),
    ("address", "FAIL", "x.c:1: compares", {"helpers/x.c": "int f(void) { return at->s_addr == 1; } /* address: */\n"}),
    ("address", "ok", "", {"helpers/x.c": "int f(void) { return at->s_addr == 1; } /* address: as written */\n"}),
    ("address", "ok", "", {"src/core/net/address.c": "bool f(struct px_address *a) { return memcmp(a->bytes, b, 16) == 0; }\n"}),
    ("address", "ok", "", {"src/core/net/test_x.c": "bool f(struct px_address *a) { return memcmp(a->bytes, b, 16) == 0; }\n"}),
    ("address", "ok", "", {"src/formats/store/x.c": "bool f(struct oid *a) { return memcmp(a->bytes, b, 32) == 0; }\n"}),
    ("address", "ok", "", {"src/core/net/x.c": "struct px_address a; memcpy(a.bytes, b, 16); to.sin_addr.s_addr = x; if (n == 4 && g(&a, a.bytes)) h(bytes.len == 3);\n"}),
    ("state", "ok", "", {}),
    ("state", "FAIL", "buf.c:2: names .px", {"src/core/base/buf.c": '\nint f(void) { return mkdirat(d, ".px", 0700); }\n'}),
    ("state", "FAIL", "names .px", {"src/core/base/buf.c": 'char *p = "%s/.px/tasks";\n'}),
    ("state", "FAIL", "by a path", {"src/core/base/buf.c": 'int f(void) { return unlinkat(own, "layers/x", 0); }\n'}),
    ("state", "FAIL", "no later px", {"cli/main.c": "int f(void) { return mkdtemp (x) != 0; }\n"}),
    ("state", "FAIL", "px_homes_make", {"src/core/base/buf.c": 'char *p = "%s/px-homes-%u";\n'}),
    ("state", "FAIL", "the mark", {"src/core/base/buf.c": "int f(void) { return unlinkat(d, PX_STATE_MARK, 0); }\n"}),
    ("state", "FAIL", "names .px", {"src/core/base/buf.c": 'char *p = ".px"; /* state: */\n'}),
    ("state", "ok", "", {"src/core/base/buf.c": 'char *p = ".px"; /* state: only shown */\n/* ".px" mkdtemp( */\nchar *q = ".px-overlay";\n'}),
    ("state", "ok", "", {"src/core/state/x.c": 'char *p = ".px"; int f(void) { return mkdtemp(x) != 0; }\n'}),
    ("state", "ok", "", {"src/core/base/test_buf.c": 'char *p = ".px";\n'}),
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
    ("hardening", "skip", "no helper", {}),
    ("hardening", "FAIL", "libpx.so binds its symbols late", {"libpx.c": "int f(void) { return 0; }"}),
    ("hardening", "FAIL", "libpx.so has no stack protector", {"libpx.c": "int f(void) { return 0; }"}),
    ("hardening", "ok", "", {"libpx.c": "void g(char *); void f(void) { char a[64]; g(a); }", "flags": "-fstack-protector-strong -Wl,-z,now"}),
    ("symbols", "skip", "no objects", {}),
    ("symbols", "ok", "", {"core_base_a.c": "int px_a(void) { return 1; }", "core_kernel_b.c": "int px_a(void); int px_b(void) { return px_a(); }"}),
    ("symbols", "FAIL", "base may not use kernel: core_base_a.c.o needs px_b",
     {"core_base_a.c": "int px_b(void); int px_a(void) { return px_b(); }", "core_kernel_b.c": "int px_b(void) { return 1; }"}),
    ("launcher", "skip", "libpx_core.a", {}),
    ("launcher", "ok", "", {"core_base_a.c": "int px_a(void) { return 1; }"}),
    ("launcher", "FAIL", "the launcher has formats_store_a.c.o", {"formats_store_a.c": "int px_a(void) { return 1; }"}),
    ("names", "ok", "", {"core_kernel_clone.c": "int px_clone_make(void) { return 1; } int px_kernel(void) { return 1; }"}),
    ("names", "ok", "", {"core_base_buf.c": "int px_fail(void) { return 1; }"}),
    ("names", "FAIL", "px_make_clone begins with neither", {"core_kernel_clone.c": "int px_make_clone(void) { return 1; }"}),
    ("names", "FAIL", "px_clone_ is kernel's", {"core_kernel_clone.c": "int px_clone_make(void) { return 1; }", "src/core/net/clone.c": "",
                                                "core_net_clone.c": "int px_clone_send(void) { return 1; }"}),
    ("names", "ok", "", {"core_kernel_clone.c": "int px_box_start(void) { return 1; }", "include/px/px.h": "PX_API int px_box_start(void);\n"}),
    ("folders", "ok", "", {}),
    ("folders", "FAIL", "6003 lines in", {"src/core/base/long.c": "\n" * 6001}),
    ("folders", "ok", "", {"src/core/base/test_long.c": "\n" * 6001}),
    ("folders", "FAIL", "6 files begin with keep_", {f"src/core/base/keep_{word}.c": "" for word in "abcdef"}),
    ("errors", "ok", "", ERRORS),
    ("errors", "FAIL", "px_a does not begin", {**ERRORS, "src/core/base/b.c": "int px_a(int x, struct px_err *e)\n{\n    return 0;\n}\n"}),
    ("errors", "FAIL", "fail(cli, 7 has a number", {**ERRORS, "cli/x.c": "int f(void) { return fail(cli, 7, 1); }\n"}),
    ("errors", "ok", "", {**ERRORS, "cli/x.c": "int f(void) { return fail(cli, PX_E_IO, 1); }\n"}),
    ("errors", "FAIL", "px_a is not defined", {**ERRORS, "src/core/base/a.c": ""}),
    ("errors", "FAIL", "no row for px_a", {**ERRORS, "tests/null_error.c": ""}),
    ("errors", "FAIL", "px_b is no public", {**ERRORS, "tests/null_error.c": "SAYS(PX_NO, px_b);\nMEMORY(px_a, 1);\n"}),
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


def compile_sample(repo, build, flags):
    """Objects of child*.c, both libraries of libpx.c, and of GROUP_FOLDER_FILE.c those of a folder, as the real build would place them."""
    for source in sorted(repo.glob("*.c")):
        target = build / (source.stem + ".o")
        if source.stem.split("_")[0] in GROUPS:
            target = build / "src/libgroup.a.p" / (source.name + ".o")
            target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O1", "-fPIC", "-fno-builtin", *flags, "-c", str(source), "-o", str(target)], check=True)
        if target.parent != build:
            subprocess.run(["ar", "rc", str(build / "libpx_core.a"), str(target)], check=True)
        if source.stem == "libpx":
            subprocess.run(["cc", "-shared", *flags, str(target), "-o", str(build / "libpx.so.0")], check=True)
            (build / "libpx.so").symlink_to("libpx.so.0")
            subprocess.run(["ar", "rc", str(build / "libpx.a"), str(target)], check=True)


def run_sample(name, changes, top):
    repo, build = top / "repo", top / "build"
    build.mkdir()
    for path, text in {**GOOD, **changes}.items():
        if text is None or path in ("remove", "flags"):
            continue
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text, encoding="utf-8")
    compile_sample(repo, build, changes.get("flags", "").split())
    if "remove" in changes:
        (build / changes["remove"]).unlink()
    return run_check(CHECKS[name], repo, build)


def main_self_test():
    verdicts = []
    tools = all(shutil.which(tool) for tool in ("cc", "ar", "nm"))
    for number, (name, expected, word, changes) in enumerate(SAMPLES, 1):
        if not tools and name in ("child", "globals", "hardening", "symbols", "launcher", "names"):
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
