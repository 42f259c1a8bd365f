#!/usr/bin/python3
"""generate.py PX OUTDIR - the man pages, from the templates beside this file and from what the built px says of itself.
generate.py --check PX - fails if a field or result key of px is not documented, or if what is documented is not there.

Markers in the templates (*.scd.in), each alone on its line:

    @OPTIONS@   the options of `px exec --help`, for px-exec(1)
    @OPTION --tag@
                the letter, the name and the argument of an option of the page's command, or of several; what it does stands below
    @FIELDS@    the same as fields of a policy, with the longer text of fields.txt, for px-policy(5)
    @PRESETS@   data/presets.def
    @ERRORS@    `px explain`, every code with its cause and what to do
    @REFUSED@   refused.txt: what is known but answered with PX003

@VERSION@ may stand anywhere. Needs scdoc; nothing but Python's standard library.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PRESETS = HERE.parent / "data" / "presets.def"
# Options about px itself: in the help of px exec, but no fields of a policy.
OWN_OPTIONS = ("command", "preset", "plan", "report", "help")


class Wrong(Exception):
    """Something does not fit together; the text says what."""


# ---- what px says ---------------------------------------------------------------------------------------------------


def ask(px, *words):
    """Standard output of a px command that must succeed."""
    done = subprocess.run([px, *words], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise Wrong(f"px {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


OPTION = re.compile(r"^  (?:    )?(?:-(?P<letter>\w), |    )--(?P<name>[a-z-]+)(?P<arg>(?:\[=| )?\S*)(?:\s+(?P<help>\S.*))?$")


def options(px, command="exec"):
    """[(letter, name, arg, help)] in the order of `px COMMAND --help`."""
    found = []
    lines = iter(ask(px, command, "--help").splitlines())
    for line in lines:
        match = OPTION.match(line)
        if not match:
            continue
        text = match["help"] or next(lines, "").strip()
        found.append((match["letter"], match["name"], match["arg"].strip(), text))
    if command == "exec" and len(found) < 20:
        raise Wrong(f"px exec --help shows {len(found)} options; its form has changed and generate.py must follow")
    return found


def errors(px):
    """[(code, what, [why], [fix])] of every row that px explain knows."""
    codes = [line.split()[0] for line in ask(px, "explain").splitlines() if line.startswith("PX")]
    if not codes:
        raise Wrong("px explain lists no codes")
    rows = [(code, json.loads(ask(px, "--json", "explain", code))) for code in codes]
    return [(code, row["message"], row["details"]["why"], row["details"]["fix"]) for code, row in rows]


def presets():
    """[(name, help, [(field, value)])] of data/presets.def."""
    found = []
    for kind, first, second in re.findall(r'^PX_(PRESET|SET)\("([^"]*)", "([^"]*)"\)$', PRESETS.read_text(), re.M):
        if kind == "PRESET":
            found.append((first, second, []))
        else:
            found[-1][2].append((first, second))
    if not found:
        raise Wrong("data/presets.def has no rows")
    return found


# ---- what we add ----------------------------------------------------------------------------------------------------


def long_texts():
    """{field: text} of fields.txt: '== NAME' starts a block of scdoc text."""
    blocks = re.split(r"^== (\S+)\n", (HERE / "fields.txt").read_text(), flags=re.M)
    return {name: text.strip() for name, text in zip(blocks[1::2], blocks[2::2])}


def refused():
    """([option], [command]) of refused.txt: '--NAME[=ARG] text' and 'NAME text' lines."""
    lines = [line for line in (HERE / "refused.txt").read_text().splitlines() if line and not line.startswith("#")]
    rows = [line.split(None, 1) for line in lines]
    return [row for row in rows if row[0].startswith("--")], [row for row in rows if not row[0].startswith("--")]


# ---- scdoc ----------------------------------------------------------------------------------------------------------


def plain(text):
    """Text that scdoc prints as it is."""
    return re.sub(r"([\\_*#~<])", r"\\\1", text)


def entry(head, paragraphs):
    """A term and what it means, indented as scdoc wants it."""
    body = "\n\n".join(paragraphs)
    return head + "\n" + "\n".join("\t" + line if line else "" for line in body.splitlines())


def argument(arg):
    if not arg:
        return ""
    return "[=_" + arg[2:-1] + "_]" if arg.startswith("[=") else " _" + plain(arg) + "_"


def bullets(lines):
    return "\n".join("- " + line for line in lines)


def sentence(text):
    return plain(text) + ("" if text.endswith(".") else ".")


def head(letter, name, arg):
    return (f"*-{letter}*, " if letter else "") + f"*--{name}*{argument(arg)}"


def options_text(px):
    return "\n\n".join(entry(head(letter, name, arg), [sentence(text)]) for letter, name, arg, text in options(px))


def heads(px, command, words):
    """The heads of these options of a command, as its help has them."""
    known = {name: head(letter, name, arg) for letter, name, arg, _ in reversed(options(px, command))}
    missing = [word for word in words if word.removeprefix("--") not in known]
    if missing:
        raise Wrong(f"px {command} has no option {missing[0]}, which its man page describes")
    return ", ".join(known[word.removeprefix("--")] for word in words)


def fields_text(px):
    texts = long_texts()
    parts = []
    for letter, name, arg, text in options(px):
        if name in OWN_OPTIONS:
            continue
        head = f"*{name}*{argument(arg)}" + (f" (*-{letter}*)" if letter else "")
        parts.append(entry(head, [sentence(text), *([texts[name]] if name in texts else [])]))
    return "\n\n".join(parts)


def presets_text(_px):
    return "\n\n".join(
        entry(f"*{name}*", [sentence(text), bullets(f"*{field}* {plain(value)}" for field, value in rows)])
        for name, text, rows in presets())


def errors_text(px):
    return "\n\n".join(
        entry(f"*{code}*", [plain(what), *(["Why: " + plain(" ".join(why))] if any(why) else []), "Fix:", bullets(plain(line) for line in fix)])
        for code, what, why, fix in errors(px))


def refused_text(_px):
    flags, commands = refused()
    both = [entry("*" + plain(name) + "*", [sentence(text)]) for name, text in flags]
    both += [entry("*px " + plain(name) + "*", [sentence(text)]) for name, text in commands]
    return "\n\n".join(both)


MARKERS = {"@OPTIONS@": options_text, "@FIELDS@": fields_text, "@PRESETS@": presets_text, "@ERRORS@": errors_text,
           "@REFUSED@": refused_text}


def command_of(template):
    return template.name.removeprefix("px-").split(".")[0]


def fill_line(line, template, px):
    option = re.fullmatch(r"@OPTION (--.*)@", line)
    if option:
        return heads(px, command_of(template), option[1].split())
    return MARKERS[line](px) if line in MARKERS else line


def fill(template, px):
    lines = template.read_text().replace("@VERSION@", ask(px, "--version").split()[1]).splitlines()
    return "\n".join(fill_line(line, template, px) for line in lines) + "\n"


def generate(px, out):
    out.mkdir(parents=True, exist_ok=True)
    for template in sorted(HERE.glob("*.scd.in")):
        name = template.name.removesuffix(".scd.in")
        source = out / (name + ".scd")
        source.write_text(fill(template, px))
        done = subprocess.run(["scdoc"], stdin=source.open(), capture_output=True, check=False)
        if done.returncode != 0:
            raise Wrong(f"scdoc refuses {source.name}: {done.stderr.decode().strip()}")
        (out / name).write_bytes(done.stdout)


# ---- checking -------------------------------------------------------------------------------------------------------


def check_fields(px):
    there = {name for _, name, _, _ in options(px)} - set(OWN_OPTIONS)
    written = set(long_texts())
    return ([f"field {name} is not documented in man/fields.txt" for name in sorted(there - written)] +
            [f"man/fields.txt documents {name}, which px exec does not have" for name in sorted(written - there)])


def check_options(px):
    """A command's page names every option of it but those of a policy, which px-exec(1) has."""
    policy = {name for _, name, _, _ in options(px)}
    wrong = []
    for template in sorted(HERE.glob("px-*.1.scd.in")):
        page = template.read_text()
        wrong += [f"{template.name} does not describe --{name}" for _, name, _, _ in options(px, command_of(template))
                  if name not in policy and f"--{name}" not in page]
    return wrong


def check_refused(px):
    """Everything we call refused must be answered with PX003."""
    flags, commands = refused()
    tries = [["exec", name.split("[")[0], "--", "true"] for name, _ in flags] + [[name] for name, _ in commands]
    wrong = []
    for words in tries:
        done = subprocess.run([px, *words], capture_output=True, text=True, timeout=60, check=False)
        if not done.stderr.startswith("PX003"):
            wrong.append(f"man/refused.txt: `px {' '.join(words)}` is not refused with PX003")
    return wrong


def keys(value, prefix=""):
    """Names of all members of a JSON value, with the names above them: isolation.tier."""
    if not isinstance(value, dict):
        return set()
    below = [keys(member, prefix + name + ".") for name, member in value.items()]
    return {prefix + name for name in value}.union(*below)


def check_result(px):
    """Every key of a result is a term in px-exec(1). Where no box can be made there is no result to look at."""
    done = subprocess.run([px, "--json", "exec", "--", "true"], capture_output=True, text=True, timeout=60, check=False)
    result = json.loads(done.stdout)
    if "schema" not in result:
        print(f"not checked: the keys of a result ({result.get('message')})")
        return []
    page = (HERE / "px-exec.1.scd.in").read_text()
    terms = re.findall(r"^\*.*\*$", page.replace("\\", ""), re.M)
    written = {word for line in terms for word in re.findall(r"\*([a-z_.]+)\*", line)}
    return [f"px-exec(1) does not document the result's {name}" for name in sorted(keys(result) - written)]


def check(px):
    wrong = check_fields(px) + check_options(px) + check_refused(px) + check_result(px)
    for template in sorted(HERE.glob("*.scd.in")):
        if re.search(r"@[A-Z]+@", fill(template, px)):
            wrong.append(f"{template.name} has a marker that nobody fills")
    if wrong:
        raise Wrong("\n".join(wrong))


def main(words):
    try:
        if len(words) == 2 and words[0] == "--check":
            check(words[1])
        elif len(words) == 2 and not words[0].startswith("-"):
            generate(words[0], Path(words[1]))
        else:
            print(__doc__.split("\n\n")[0], file=sys.stderr)
            return 2
    except (Wrong, OSError, ValueError, subprocess.TimeoutExpired) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
