#!/usr/bin/python3
"""mcp/run.py [--as UID] [--only NAME...] PX - `px mcp` against a client of this file's own, and against the official one where it is installed.

What a client may say and must not, what each tool does, what cannot be reached by any of them, what is left when somebody dies.
PX and px-main beside it are copied to where any user can reach them. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last
"N passed, N failed, N skipped".
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
from cases import TESTS, Problem, Skip, attempt, check, chosen, parser, publish, start_again, tell, test  # noqa: E402

LIMIT_S = 120
SECRET = "the secret of the host"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
READING = {"read_text_file", "read_multiple_files", "list_directory", "directory_tree", "search_files", "search_text", "get_file_info",
           "list_allowed_directories", "diff"}
WRITING = {"write_file", "edit_file", "create_directory", "move_file", "copy_file", "delete_file"}
SHELL = {"execute", "process_output", "process_kill"}
SDK = "mcp>=2,<3"                       # the official client; what is fetched once stays beside the build


def wait_for(what, why):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if what():
            return
        time.sleep(0.02)
    raise Problem(why)


class Client:
    """A server and the two ends of its streams."""

    def __init__(self, world, *options, roots=None, env=None):
        roots = (f"in={world.inside}:rw", f"ro={world.ro}") if roots is None else roots
        self.world, self.next, self.ended, self.own_words = world, 0, None, False
        self.process = subprocess.Popen([world.px, "mcp", *(f"--root={root}" for root in roots), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env=env or world.env)
        self.watch = threading.Timer(LIMIT_S, self.process.kill)
        self.watch.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.ended:
            return self.ended
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass
        status = self.process.wait(LIMIT_S)
        self.watch.cancel()
        said = self.process.stderr.read() if status >= 0 else b""
        self.process.stderr.close()
        self.ended = (status, said)
        return self.ended

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def line(self):
        line = self.process.stdout.readline()
        check(line.endswith(b"\n"), f"the server ended: {line[:200]!r}")
        check(SECRET.encode() not in line, "the secret got out")
        check(self.own_words or str(self.world.top).encode() not in line, f"a path of the host: {line[:300]!r}")
        return json.loads(line)

    def request(self, method, **params):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        return self.next

    def ask(self, method, **params):
        number = self.request(method, **params)
        answer = self.line()
        check(answer.get("id") == number and answer.get("jsonrpc") == "2.0", f"not an answer to {number}: {answer}")
        return answer

    def error(self, code, method, **params):
        answer = self.ask(method, **params)
        check(answer.get("error", {}).get("code") == code, f"{method}: {answer}, not error {code}")
        return answer["error"]

    def start(self, version="2025-11-25", capabilities=None):
        answer = self.ask("initialize", protocolVersion=version, capabilities=capabilities or {}, clientInfo={"name": "test", "version": "1"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def call(self, name, **arguments):
        answer = self.ask("tools/call", name=name, arguments=arguments)
        check("result" in answer, f"{name}: {answer}")
        result = answer["result"]
        check(result["content"][0]["type"] == "text" and isinstance(result["structuredContent"], dict), f"{name}: {result}")
        check(result["structuredContent"]["ok"] == (not result["isError"]), f"{name}: isError and ok disagree: {result}")
        return result

    def good(self, name, **arguments):
        result = self.call(name, **arguments)
        check(not result["isError"], f"{name} {arguments}: {result['content'][0]['text'][:300]}")
        return result["structuredContent"]

    def text(self, name, **arguments):
        result = self.call(name, **arguments)
        check(not result["isError"], f"{name} {arguments}: {result['content'][0]['text'][:300]}")
        return result["content"][0]["text"]

    def bad(self, name, **arguments):
        result = self.call(name, **arguments)
        check(result["isError"], f"{name} {arguments} was allowed: {result['content'][0]['text'][:300]}")
        return result["content"][0]["text"]

    def question(self, name, **arguments):
        """Calls a tool that needs approval: the number of the call and what the server asks."""
        number = self.request("tools/call", name=name, arguments=arguments)
        asked = self.line()
        check(asked.get("method") == "elicitation/create" and isinstance(asked.get("id"), int), f"no question: {asked}")
        schema = asked["params"]["requestedSchema"]
        check(schema["type"] == "object" and schema["required"] == list(schema["properties"]) == ["approve"], f"{schema}")
        check(schema["properties"]["approve"]["type"] == "boolean", f"{schema}")
        return number, asked

    def reply(self, asked, action, **content):
        self.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action, **({"content": content} if content else {})}})

    def result(self, number):
        answer = self.line()
        check(answer.get("id") == number and "result" in answer, f"not an answer to {number}: {answer}")
        return answer["result"]

    def status(self, pid=None):
        text = Path(f"/proc/{pid or self.server()}/status").read_text()
        return dict(line.split(":", 1) for line in text.splitlines())

    def server(self):
        return self.process.pid

    def runner(self):
        children = Path(f"/proc/{self.server()}/task/{self.server()}/children").read_text().split()
        check(len(children) == 1, f"the server has the children {children}")
        return int(children[0])


class World:
    """in/ is the root `in` (rw), ro/ the root `ro`, outside/ holds what nobody may touch."""

    def __init__(self, px, top):
        self.px, self.top = px, Path(top)
        self.inside, self.ro, self.outside = (self.top / name for name in ("in", "ro", "outside"))
        self.env = {**os.environ, "PX_HOME": str(self.top / "home"), "PX_TEST_SECRET": SECRET}
        for path in (self.inside, self.ro, self.outside):
            path.mkdir()
        (self.outside / "x.md").write_text(SECRET)
        (self.ro / "r.md").write_text("read me\n")

    def client(self, *options, **more):
        return Client(self, *options, **more)

    def worker(self, rules=""):
        """A client of the rules of a worker: echo is approved, touch and sleep are asked for, everything else is blocked."""
        path = self.top / "worker.yaml"
        path.write_text(f"sandbox:\n  paths:\n    in: {{root: {self.inside}, mode: rw}}\n    ro: {{root: {self.ro}}}\n"
                        "shell_rules:\n- {pattern: echo, approval_required: false}\n- {pattern: touch}\n- {pattern: sleep}\n" + rules)
        return f"--worker={path}"

    def marker(self):
        """A number of seconds that nobody else sleeps."""
        return f"{100000 + os.getpid() % 100000}.{time.monotonic_ns() % 1000000}"


def sleeping(marker):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:1] in ([b"sleep"], [b"/bin/sleep"]) and marker.encode() in words:
            found.append(int(path.parent.name))
    return found


# ---- versions and messages ------------------------------------------------------------------------------------------


@test
def versions_by_handshake(world):
    for version in LEGACY:
        with world.client("--no-execute") as client:
            result = client.start(version)
            check(result["protocolVersion"] == version and "tools" in result["capabilities"], f"{version}: {result}")
            check(result["serverInfo"]["name"] == "px" and "in (read and write)" in result["instructions"], f"{result}")
            check("resultType" not in client.ask("tools/list")["result"], "a result type in an old revision")
    for version in ("1999-01-01", MODERN, ""):
        with world.client("--no-execute") as client:
            check(client.start(version)["protocolVersion"] == LEGACY[0], f"{version!r} did not lead to the newest handshake")
            check(client.ask("ping")["result"] == {}, "ping")


@test
def versions_by_request(world):
    with world.client("--no-execute") as client:
        found = client.ask("server/discover", _meta=META)["result"]
        check(found["resultType"] == "complete" and found["supportedVersions"] == [MODERN, *LEGACY], f"{found}")
        check(found["ttlMs"] >= 0 and found["cacheScope"] == "private" and "tools" in found["capabilities"], f"{found}")
        listed = client.ask("tools/list", _meta=META)["result"]
        check(listed["resultType"] == "complete" and listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "px", "tools/list")
        called = client.ask("tools/call", _meta=META, name="get_file_info", arguments={"path": "ro/r.md"})["result"]
        check(called["resultType"] == "complete" and called["structuredContent"]["size"] == 8, f"{called}")
        wrong = client.error(-32022, "tools/list", _meta={**META, "io.modelcontextprotocol/protocolVersion": "1900-01-01"})
        check(wrong["data"] == {"supported": [MODERN, *LEGACY], "requested": "1900-01-01"}, f"{wrong}")
        client.error(-32602, "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": MODERN})
        client.error(-32602, "server/discover")
        client.error(-32601, "ping", _meta=META)
        client.error(-32600, "tools/list")      # nobody said which revision
        client.start()
        check("resultType" not in client.ask("tools/list")["result"], "both kinds at once")


@test
def odd_messages(world):
    """Each is refused by a word and the next request is answered."""
    rows = ((b"{", -32700), (b"nonsense", -32700), (b"\xff\xfe", -32700), (b'{"a":1,"a":2}', -32700), (b"\0", -32700), (b'"text"', -32600),
            (b"17", -32600), (b"{}", -32600), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602), (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601),
            (b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601), (b"[]", -32600), (b"[" * 100000, -32600),
            (b'{"a":' * 70 + b"1" + b"}" * 70, -32600), (b"[" + b"1," * 70000 + b"1]", -32600),
            (b'{"jsonrpc":"2.0","id":"' + b"x" * 2000 + b'","method":"ping"}', -32600))
    with world.client("--no-execute") as client:
        client.start()
        for data, code in rows:
            client.raw(data + b"\r\n")
            answer = client.line()
            check(answer.get("error", {}).get("code") == code, f"{data[:60]!r}: {answer}, not {code}")
            check(client.ask("ping")["result"] == {}, "ping")
        client.raw(b"\n  \r\n\t\n")             # nothing is said, nothing is answered
        client.send({"jsonrpc": "2.0", "method": "notifications/no-such"})
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}})
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []})
        client.send({"jsonrpc": "2.0", "id": 5, "result": {}})
        for name in ("a text", 0, -3, 2**53):
            client.send({"jsonrpc": "2.0", "id": name, "method": "ping"})
            check(client.line()["id"] == name, f"id {name!r}")
        check(client.close() == (0, b""), "an end without words")


@test
def a_line_without_end(world):
    with world.client("--no-execute") as client:
        client.start()
        block = b"x" * (1 << 20)
        for _ in range(100):
            client.raw(block)
        client.raw(b"\n")
        check(client.line()["error"]["code"] == -32600, "100 MiB in one line were taken")
        peak = int(client.status()["VmHWM"].split()[0])
        check(peak < 64 << 10, f"it took {peak} KiB of memory")
        check(client.ask("ping")["result"] == {}, "ping")
        big = "y" * 3_000_000                   # but a large one is fine
        client.good("write_file", path="in/big", content=big)
        check((world.inside / "big").read_text() == big, "3 MB were written")


@test
def batches(world):
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    with world.client() as client:
        client.start("2025-03-26")
        client.send([ping, note, {"jsonrpc": "2.0", "id": 8, "method": "no/such"}, 9,
                     {"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": {"name": "execute", "arguments": {"command": "echo $((6*7))"}}}])
        answers = {answer["id"]: answer for answer in client.line()}
        check(answers[7]["result"] == {} and answers[8]["error"]["code"] == -32601 and answers[None]["error"]["code"] == -32600, f"{answers}")
        check(answers[10]["result"]["content"][0]["text"].startswith("42\n"), f"{answers[10]}")
        client.send([note, note])               # not answered
        client.send([ping] * 65)
        check(client.line()["error"]["code"] == -32600, "65 at once")
    for version in ("2025-06-18", "2025-11-25"):
        with world.client("--no-execute") as client:
            client.start(version)
            client.send([ping])
            check(client.line()["error"]["code"] == -32600, f"an array in {version}")


# ---- tools ----------------------------------------------------------------------------------------------------------


@test
def the_list_of_tools(world):
    for options, names in (((), READING | WRITING | SHELL), (("--read-only",), READING | SHELL), (("--no-execute",), READING | WRITING),
                           (("--read-only", "--no-execute"), READING)):
        with world.client(*options) as client:
            client.start()
            tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
            check(set(tools) == names, f"{options}: {set(tools) ^ names}")
            for name, tool in tools.items():
                schema, hints = tool["inputSchema"], tool["annotations"]
                check(schema["type"] == "object" and not schema["additionalProperties"] and set(schema["required"]) <= set(schema["properties"]), name)
                check(all(row["description"] and row["type"] for row in schema["properties"].values()) and tool["description"], name)
                check(hints["readOnlyHint"] == (name in READING | {"process_output"}), f"{name}: {hints}")
                check(not (hints["readOnlyHint"] and hints["destructiveHint"]), f"{name}: {hints}")
                check("ok" in tool["outputSchema"]["properties"], name)
            for name in (READING | WRITING | SHELL) - names:
                client.error(-32602, "tools/call", name=name, arguments={})
            client.error(-32602, "tools/list", cursor="x")
            client.error(-32602, "tools/call", name="read_text_file", arguments=[])
            client.error(-32602, "tools/call", arguments={})
            check("needs 'path'" in client.bad("read_text_file"), "a missing argument")
            check(client.call("read_text_file")["structuredContent"]["error"]["retryable"], "which can be given")
            check("Its arguments are: path" in client.bad("get_file_info", path="ro/r.md", follow=True), "an unknown argument")
            check("whole number" in client.bad("read_text_file", path="ro/r.md", head="3"), "an argument of another type")


@test
def tools_on_files(world):
    with world.client("--no-execute") as client:
        client.start()
        client.good("write_file", path="in/a/b.txt", content="one\ntwo\nthree\n")
        check((world.inside / "a/b.txt").read_text() == "one\ntwo\nthree\n", "write_file")
        for more, text in (({}, "one\ntwo\nthree\n"), ({"head": 2}, "one\ntwo\n"), ({"tail": 2}, "two\nthree\n"), ({"head": 0}, ""), ({"tail": 9}, "one\ntwo\nthree\n"),
                           ({"offset": 4, "max_chars": 3}, "two")):
            check(client.text("read_text_file", path="in/a/b.txt", **more) == text, f"read_text_file {more}")
        client.bad("read_text_file", path="in/a/b.txt", head=1, tail=1)
        dry = client.good("edit_file", path="in/a/b.txt", edits=[{"oldText": "two", "newText": "2"}], dryRun=True)
        check("-two\n+2\n" in dry["diff"] and "two" in (world.inside / "a/b.txt").read_text(), "edit_file with dryRun")
        client.good("edit_file", path="in/a/b.txt", edits=[{"oldText": "two", "newText": "2"}, {"oldText": "one", "newText": "1"}])
        check((world.inside / "a/b.txt").read_text() == "1\n2\nthree\n", "edit_file")
        check("found 2 times" in client.bad("edit_file", path="in/a/b.txt", edits=[{"oldText": "e", "newText": "E"}]), "an edit that fits twice")
        many = client.good("read_multiple_files", paths=["ro/r.md", "in/none", "../x", "in/a/b.txt"])["files"]
        check([row["ok"] for row in many] == [True, False, False, True] and many[3]["content"] == "1\n2\nthree\n", f"{many}")
        client.good("create_directory", path="in/d/e")
        client.good("move_file", source="in/a/b.txt", destination="in/d/e/c.txt")
        client.good("copy_file", source="in/d/e/c.txt", destination="in/d/f.txt")
        for path in ("in/d", "./in/d"):
            check(client.text("list_directory", path=path) == "[DIR] e\n[FILE] f.txt\n", f"list_directory {path}")
        check(client.text("list_directory", path=".") == "[DIR] in\n[DIR] ro\n", "the roots")
        tree = json.loads(client.text("directory_tree", path="in/d"))
        check(tree == [{"name": "e", "type": "directory", "children": [{"name": "c.txt", "type": "file"}]}, {"name": "f.txt", "type": "file"}], f"{tree}")
        check(json.loads(client.text("directory_tree", path="in/d", excludePatterns=["e"])) == tree[1:], "excludePatterns")
        check(client.text("search_files", path="in", pattern="**/*.txt") == "in/d/e/c.txt\nin/d/f.txt\n", "search_files")
        check(client.text("search_files", path="in", pattern="*.none") == "No matches found.\n", "search_files without a match")
        check("in/d/f.txt:3:three" in client.text("search_text", text="THREE", ignoreCase=True), "search_text")
        check(client.good("get_file_info", path="in/d")["kind"] == "directory", "get_file_info")
        check(client.good("diff", path="in/d/f.txt", other="in/d/e/c.txt")["same"], "diff of a copy")
        check("+new\n" in client.text("diff", path="in/d/f.txt", content="1\n2\nthree\nnew\n"), "diff")
        client.bad("diff", content="x")
        client.good("delete_file", path="in/d/f.txt")
        check(not (world.inside / "d/f.txt").exists(), "delete_file")
        roots = client.good("list_allowed_directories")["roots"]
        check([(root["name"], root["mode"]) for root in roots] == [("in", "rw"), ("ro", "ro")], f"{roots}")
        (world.inside / "bytes").write_bytes(b"\xff\xfe")
        check("UTF-8" in client.bad("read_text_file", path="in/bytes"), "a file that is no text")
        os.mkdir(os.fsencode(world.inside) + b"/n\xffme")
        check(client.call("directory_tree", path="in")["isError"] is False, "a name that is no text")


@test
def what_a_session_changed(world):
    """By its tools and by its commands; not what was there before, and not what stayed the same."""
    files = {"kept": "kept\n", "edited": "one\ntwo\n", "gone": "old\n", "same": "same\n", "large": "x" * 300000, "d/moved": "moved\n"}
    (world.inside / "d").mkdir()
    for name, text in files.items():
        (world.inside / name).write_text(text)
    with world.client() as client:
        client.start()
        check(client.text("diff") == "Nothing was changed.\n" and client.good("diff")["same"], "before anything")
        (world.inside / "before").write_text("before the session did anything\n")
        client.good("edit_file", path="in/edited", edits=[{"oldText": "two", "newText": "2"}])
        client.good("write_file", path="in/same", content="same\n")
        client.good("execute", command="rm in/gone; echo fresh > in/new; mv in/d/moved in/d/there; printf '\\377\\000' > in/bytes; echo y >> in/large; touch in/kept")
        got = client.good("diff")
        wanted = {"in/edited": "changed", "in/gone": "removed", "in/new": "added", "in/d/moved": "removed", "in/d/there": "added", "in/bytes": "added", "in/large": "changed"}
        check({row["path"]: row["change"] for row in got["files"]} == wanted, f"{got['files']}")
        check(not got["same"] and not got["truncated"], f"{got}")
        for part in ("-two\n+2\n", "--- a/in/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n", "--- /dev/null\n+++ b/in/new\n@@ -0,0 +1 @@\n+fresh\n"):
            check(part in got["diff"], f"{part!r} is not in {got['diff']!r}")
        check("in/large was changed; its text is not shown\n" in client.text("diff"), "a large file")
        for path, names in (("in/d", ["in/d/moved", "in/d/there"]), ("in/d/", ["in/d/moved", "in/d/there"]), ("in/gone", ["in/gone"]), ("in", sorted(wanted)), (".", sorted(wanted)),
                            ("in/kept", []), ("ro", []), ("in/e", [])):
            check([row["path"] for row in client.good("diff", path=path)["files"]] == names, f"below {path}")
        for path in ("../outside", "/etc", "nope", "in/\0"):
            check("in, ro" in client.bad("diff", path=path), f"diff of {path!r}")
        client.good("execute", command="i=0; while [ $i -lt 12 ]; do head -c 200000 /dev/zero | tr '\\0' x > in/big$i; i=$((i+1)); done")
        got = client.good("diff")
        check(got["truncated_because"] == "the diff is too large" and len(got["diff"]) < 2 << 20 and len(got["files"]) == 19, f"{got['truncated_because']} {len(got['diff'])}")
    with world.client("--read-only") as client:
        client.start()
        client.call("execute", command="echo x > in/new; echo y > in/kept")
        check(client.good("diff")["same"], "a session that can write nothing")


@test
def very_many_files_do_not_hide_a_change(world):
    """More than the 100,000 files that are compared: what is not in the list is not known to be the same."""
    (world.inside / "app.py").write_text("1\n")
    with world.client() as client:
        client.start()
        client.good("write_file", path="in/app.py", content="1\n")
        for d in range(3):          # links of one file: the quickest to make, and a file system allows 65,000 of them at least
            (world.inside / f"d{d}").mkdir()
            (world.inside / f"d{d}" / "0").touch()
            for i in range(1, 33400):
                os.link(world.inside / f"d{d}" / "0", world.inside / f"d{d}" / str(i))
        (world.inside / "app.py").unlink()
        result = client.call("diff", path="in/app.py")
        got, words = result["structuredContent"], result["content"][0]["text"]
        check(not got["same"] and got["truncated"] and "too many files" in got["truncated_because"], f"{str(got)[:300]}")
        check("It is not known whether anything was changed.\n" in words, words[:300])


@test
def a_diff_has_a_budget(world):
    for i in range(8):
        (world.inside / f"f{i}").write_text("".join(f"{k}\n" for k in range(40000)))
    with world.client() as client:
        client.start()
        client.good("execute", command="for i in 0 1 2 3 4 5 6 7; do tac in/f$i > in/t && mv in/t in/f$i; done")
        result = client.call("diff")
        got, words = result["structuredContent"], result["content"][0]["text"]
        check(not got["same"] and got["truncated"] and len(got["files"]) == 8, f"{got['truncated_because']} {got['files']}")
        check("in/f7 was changed; its text is not shown\n" in words, "the last file")


@test
def a_very_deep_tree(world):
    where = os.open(world.inside, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=where)
        below = os.open("d", os.O_RDONLY, dir_fd=where)
        os.close(where)
        where = below
    os.close(where)
    with world.client("--no-execute") as client:
        client.start()
        text = client.text("directory_tree", path="in")
        check("deeper than 200 levels" in text and text.count('"directory"') == 199, text[-300:])
        check(len(client.good("directory_tree", path="in")["entries"]) == 1500, "the list of paths")
        check("d/d/d" in client.text("search_files", path="in", pattern="**/d") and client.ask("ping")["result"] == {}, "search_files")


@test
def answers_that_are_too_large(world):
    (world.inside / "one").write_bytes(b"\1" * (20 << 20))
    with world.client("--no-execute") as client:
        client.start("2025-03-26")
        check("larger than 64 MiB" in client.bad("read_text_file", path="in/one", tail=1), "an answer of 240 MiB")
        check(client.text("read_text_file", path="in/one", max_chars=3) == "\1\1\1", "a part of it")
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "read_text_file", "arguments": {"path": "in/one", "max_chars": 1000000}}}
        client.send([{**call, "id": n} for n in range(9)])
        answers = client.line()
        check([answer["id"] for answer in answers] == list(range(9)) and "result" in answers[0], "the answers of an array")
        check("too large together" in answers[8]["error"]["message"], f"{str(answers[8])[:200]}")
        check(client.ask("ping")["result"] == {}, "ping")


@test
def nothing_piles_up(world):
    """Descriptors of the server and of the runner after many calls of every kind."""
    def opened(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    def work():
        client.good("write_file", path="in/x", content="x")
        client.good("edit_file", path="in/x", edits=[{"oldText": "x", "newText": "y"}])
        client.bad("read_text_file", path="in/none")
        client.bad("copy_file", source="ro/r.md", destination="in/x")
        client.bad("move_file", source="in/x", destination="ro/x")
        client.good("search_text", text="y")
        client.good("diff")
        client.good("execute", command="true")
        client.bad("execute", command="touch ro/x")
        client.good("process_kill", process=client.good("execute", command="sleep 1000", background=True)["process"])
        slow = client.request("tools/call", name="execute", arguments={"command": "sleep 1000", "timeout": 300})
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}})
    with world.client() as client:
        client.start()
        runner = client.runner()
        for _ in range(2):
            work()
        client.good("execute", command="true")
        before = opened(runner), opened(client.server()) if os.geteuid() == 0 else 0
        for _ in range(10):
            work()
        client.good("execute", command="true")
        after = opened(runner), opened(client.server()) if os.geteuid() == 0 else 0
        check(before == after, f"(runner, server) had {before} descriptors open, then {after}")


@test
def nothing_outside(world):
    (world.inside / "link").symlink_to(world.outside / "x.md")
    (world.inside / "dir").symlink_to(world.outside)
    outside = ("../outside/x.md", "in/../../outside/x.md", str(world.outside / "x.md").replace(str(world.top), "/x"), "in/link", "in/dir/x.md", "~/x", "nope/x", "",
               "in/\0/x", "/etc/passwd", "/proc/self/environ")
    with world.client() as client:
        client.start()
        for path in outside:
            for name, more in (("read_text_file", {}), ("read_text_file", {"head": 3}), ("write_file", {"content": "x"}), ("get_file_info", {}), ("delete_file", {}),
                               ("edit_file", {"edits": [{"oldText": "a", "newText": "b"}]}), ("diff", {"content": ""}), ("create_directory", {})):
                if (name, path) in (("delete_file", "in/link"), ("get_file_info", "in/link")):
                    continue            # the link itself is inside
                words = client.bad(name, path=path, **more)
                check("in, ro" in words or "Writable paths: in" in words or "exist" in words, f"{name} {path!r} does not say what is allowed: {words}")
            if path != "in/link":
                client.bad("move_file", source=path, destination="in/new")
            client.bad("copy_file", source="ro/r.md", destination=path)
        for name, more in (("write_file", {"content": "x"}), ("delete_file", {}), ("create_directory", {})):
            check("Writable paths: in" in client.bad(name, path="ro/new", **more), f"{name} in a root that is read-only")
        client.bad("search_files", path="in", pattern="../*")
        check(SECRET not in client.text("search_text", text="secret"), "search_text")
    check((world.outside / "x.md").read_text() == SECRET and sorted(os.listdir(world.outside)) == ["x.md"], "outside was changed")


@test
def the_server_is_confined(world):
    with world.client() as client:
        client.start()
        status = client.status()
        check(status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1", f"{status['Seccomp']} {status['NoNewPrivs']}")
        check(int(status["CapEff"], 16) & ~0x1F == 0, f"it keeps the privileges {status['CapEff']}")
        check(client.status(client.runner())["Seccomp"].strip() == "0", "the twin: the runner can start boxes")


@test
def a_root_that_is_taken_away(world):
    """What the server held open is what everybody goes on with; no error says where it was."""
    with world.client() as client:
        client.start()
        world.ro.joinpath("r.md").unlink()
        world.ro.rmdir()
        world.ro.symlink_to(world.outside)
        check("root 'ro' cannot be had in a box" in client.bad("execute", command="cat ro/x.md"), "a root that is gone")
        client.bad("read_text_file", path="ro/x.md")
    world.ro.unlink()
    world.ro.mkdir()
    with world.client() as client:
        client.start()
        (world.inside / "mine").write_text("mine")
        world.inside.rename(world.top / "moved")
        world.inside.symlink_to(world.outside)
        check(client.text("execute", command="ls in").startswith("mine\n"), "a root that was renamed")
        check(client.text("list_directory", path="in") == "[FILE] mine\n", "the same for the tools")


# ---- commands -------------------------------------------------------------------------------------------------------


@test
def commands(world):
    with world.client() as client:
        client.start()
        client.good("write_file", path="in/x.txt", content="same file\n")
        check(client.text("execute", command="cat in/x.txt ro/r.md; echo new > in/y.txt; pwd").startswith("same file\nread me\n/workspace\n"), "paths of both")
        check(client.text("read_text_file", path="in/y.txt") == "new\n", "what a command wrote")
        result = client.call("execute", command="echo out; echo err >&2; exit 3")
        check(not result["isError"] and result["structuredContent"]["result"]["exit_code"] == 3, f"{result}")
        check("[stderr]\nerr\nexit status: 3" in result["content"][0]["text"], f"{result}")
        check("Note: This worker's writable paths are: in\n" in client.bad("execute", command="echo x > ro/new"), "a root that is read-only")
        check("Network access is disabled" in client.bad("execute", command="exec 2>&1; python3 -c 'import socket; socket.create_connection((\"198.51.100.1\", 80), 5)'"),
              "the network")
        check("timed out" in client.bad("execute", command="sleep 100", timeout=1), "a timeout")
        check("1 to 300" in client.bad("execute", command="true", timeout=301) and "1 to 300" in client.bad("execute", command="true", timeout=0), "its bounds")
        flood = client.good("execute", command="head -c 3000000 /dev/zero | tr '\\0' x")["result"]
        check(flood["truncated"]["stdout"] and len(flood["stdout"]) == 51200, "output has a bound")
        seen = client.text("execute", command="seq 1 100000; seq 1 100000 >&2")
        check(seen.count("\n[... 537695 bytes left out ...]\n") == 2 and "\n100000\n" in seen, "the text says what is missing")
        client.own_words = True                 # the command names a path of the host and is told that it is not there
        seen = client.text("execute", command=f"env; cat {world.outside}/x.md; ls {world.top} / /home 2>&1; {{ tr '\\0' '\\n' </proc/1/environ; }} 2>/dev/null; true")
        check("PX_TEST_SECRET" not in seen and "x.md" not in seen.replace(f"{world.outside}/x.md", ""), f"{seen}")
        check(client.text("execute", command="printf '\\377\\000\\033[31m'").startswith("\ufffd\0\x1b[31m"), "bytes")
        client.bad("execute", command="")
        client.bad("execute", command="x" * 200000)
        client.good("execute", command="touch /tmp/stays")
        client.good("execute", command="test -e /tmp/stays || kill -9 $$")
        check("Denied by the sandbox" in client.bad("execute", command="unshare -U true"), "what the engine stopped")
    check(not (world.ro / "new").exists(), "a root that is read-only was written")


@test
def what_the_host_s_git_obeys(world):
    if not shutil.which("git"):
        raise Skip("there is no git here")
    git = ["git", "-C", str(world.inside), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True, env={**world.env, "HOME": str(world.top)})
    config = (world.inside / ".git" / "config").read_text()
    attacks = ("echo x > in/.git/hooks/pre-commit", "echo x >> in/.git/config", "mv in/.git in/g", "rm -rf in/.git", "ln -sfn /tmp in/.git/hooks", "rmdir in/.git",
               "cp -r in/.git in/g && mv -T in/g in/.git", "mount --bind in/ro in/.git", "umount in/.git")
    with world.client() as client:
        client.start()
        for attack in attacks:
            client.call("execute", command=attack)
            check(client.call("execute", command=attack)["structuredContent"].get("result", {}).get("exit_code") != 0, f"{attack} worked")
        for name, more in (("write_file", {"path": "in/.git/hooks/pre-commit", "content": "x"}), ("move_file", {"source": "in/.git", "destination": "in/g"}),
                           ("create_directory", {"path": "in/sub/.git"}), ("edit_file", {"path": "in/.git/config", "edits": [{"oldText": "[core]", "newText": "[x]"}]})):
            check("path is read-only" in client.bad(name, **more), name)
        check("first" in client.text("execute", command="git -c safe.directory='*' -C in log --oneline"), "the twin: looking")
        client.good("execute", command="echo x > in/src && test -s in/src")
    check((world.inside / ".git" / "config").read_text() == config and not (world.inside / ".git" / "hooks" / "pre-commit").exists(), "it was changed")
    with world.client("--git-writable") as client:
        client.start()
        client.good("write_file", path="in/.git/note", content="x")
        check(client.good("execute", command="echo y > in/.git/note && cat in/.git/note")["result"]["stdout"] == "y\n", "the twin: --git-writable")


@test
def git_that_leads_elsewhere(world):
    for name in ("deep/real/hooks", "deep/real/objects", "sub"):
        (world.inside / name).mkdir(parents=True)
    (world.inside / "deep/real/HEAD").write_text("ref: refs/heads/main\n")
    (world.inside / ".git").write_text("gitdir: deep/real\n")
    (world.inside / "sub/.git").symlink_to("../deep/real")
    attacks = ("echo x > in/deep/real/hooks/pre-commit", "echo 'gitdir: /tmp' > in/.git", "rm in/.git", "ln -sfn sub in/.git",
               "mv in/deep/real in/deep/r", "mv in/deep in/d")
    with world.client() as client:
        client.start()
        for attack in attacks:
            answer = client.call("execute", command=attack)["structuredContent"]
            check(answer.get("result", {}).get("exit_code") != 0, f"{attack} worked")
        for path in (".git", "deep/real/hooks/x", "sub/.git/hooks/x", "sub/.git", "deep/real/config", "deep/real", "deep",
                     ".GIT/x"):
            for name, more in (("write_file", {"path": f"in/{path}", "content": "x"}),
                               ("move_file", {"source": f"in/{path}", "destination": "in/g"})):
                check("path is read-only" in client.bad(name, **more), f"{name} {path}")
        client.good("write_file", path="in/deep/x", content="x")
        client.good("execute", command="echo x > in/deep/y")
    check(not list((world.inside / "deep/real/hooks").iterdir()), "a hook was written")
    (world.inside / ".git").unlink()
    (world.inside / ".git").symlink_to("deep/real")
    done = subprocess.run([world.px, "mcp", f"--root=in={world.inside}:rw"], capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=LIMIT_S, check=False, env=world.env)
    check(done.returncode == 1 and b"leads elsewhere by a link" in done.stderr, f"a command could replace the link: {done}")
    with world.client("--no-execute") as client:
        client.start()
        for path in (".git", ".git/hooks/x", "deep/real/hooks/x"):
            check("path is read-only" in client.bad("write_file", path=f"in/{path}", content="x"), path)
    with world.client("--git-writable") as client:
        client.start()
        client.good("write_file", path="in/.git/hooks/x", content="x")
        client.good("execute", command="rm in/.git/hooks/x && rm in/.git")


@test
def options_of_the_box(world):
    with world.client("-e", "PX_TEST_SECRET_NAME", "-e", "B=2", "--pids", "64", "--read-only", env={**world.env, "PX_TEST_SECRET_NAME": "given"}) as client:
        client.start()
        check(client.text("execute", command="echo $PX_TEST_SECRET_NAME $B").startswith("given 2\n"), "-e")
        check("no writable paths" in client.bad("execute", command="touch in/x"), "--read-only")
    for words in (("--no-such",), ("--tty",), ("--", "true"), ("--root", "x"), ("--memory", "lots")):
        done = subprocess.run([world.px, "mcp", f"--root=in={world.inside}", *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, env=world.env)
        check(done.returncode in (1, 2) and done.stderr.startswith(b"PX") and not done.stdout, f"{words}: {done}")
    nested = (f"in={world.inside}", f"in/deep={world.ro}:rw")
    done = subprocess.run([world.px, "mcp", *(f"--root={root}" for root in nested)], capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, env=world.env)
    check(done.returncode == 1 and b"has no place in a box" in done.stderr, f"{done}")
    (world.inside / "deep").mkdir()
    with world.client(roots=nested) as client:
        client.start()
        client.good("execute", command="echo x > in/deep/new")
        check(client.text("read_text_file", path="in/deep/new") == "x\n", "a root in a root")
    done = subprocess.run([world.px, "mcp"], capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, env=world.env)
    check(done.returncode == 2 and b"--root" in done.stderr, f"{done}")


@test
def several_at_once(world):
    with world.client() as client:
        client.start()
        fifo = "rm -f in/fifo; mkfifo in/fifo; cat in/fifo"
        slow = client.request("tools/call", name="execute", arguments={"command": fifo})
        check(client.ask("ping")["result"] == {}, "ping while a command runs")
        check(client.text("list_directory", path="ro") == "[FILE] r.md\n", "a tool while a command runs")
        client.send({"jsonrpc": "2.0", "id": slow, "method": "tools/call", "params": {"name": "execute", "arguments": {"command": "true"}}})
        check(client.line()["error"]["code"] == -32600, "an id twice")
        quick = client.request("tools/call", name="execute", arguments={"command": "until [ -p in/fifo ]; do sleep 0.05; done; echo through > in/fifo"})
        answers = {answer["id"]: answer["result"]["content"][0]["text"] for answer in (client.line(), client.line())}
        check(answers[slow].startswith("through\n") and answers[quick].startswith("exit status: 0"), f"{answers}")
        numbers = [client.request("tools/call", name="execute", arguments={"command": "read x < in/fifo", "timeout": 300}) for _ in range(40)]
        refused = [client.line() for _ in range(8)]     # more than may be pending
        check({answer["id"] for answer in refused} == set(numbers[32:]), f"{refused}")
        check(all("32 commands are running" in answer["result"]["content"][0]["text"] for answer in refused), f"{refused}")
        for number in numbers[:32]:
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        check(client.text("execute", command="echo on").startswith("on\n"), "the next command")


@test
def cancelling(world):
    marker = world.marker()
    with world.client() as client:
        client.start()
        slow = client.request("tools/call", name="execute", arguments={"command": f"sleep {marker} & sleep {marker}", "timeout": 300})
        wait_for(lambda: len(sleeping(marker)) == 2, "the command did not start")
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow, "reason": "test"}})
        check(client.ask("ping")["result"] == {}, "a cancelled request was answered")
        wait_for(lambda: not sleeping(marker), "the cancelled command still runs")
        check(client.text("execute", command="echo on").startswith("on\n"), "the next command")


@test
def in_the_background(world):
    marker = world.marker()
    with world.client() as client:
        client.start()
        number = client.good("execute", command=f"echo first; echo wrong >&2; sleep {marker}", background=True)["process"]
        seen = {"stdout": "", "stderr": ""}

        def both():
            got = client.good("process_output", process=number)
            for name in seen:
                seen[name] += got[name]
            return seen == {"stdout": "first\n", "stderr": "wrong\n"} and got["running"]
        wait_for(both, f"output: {seen}")
        check(client.good("process_output", process=number)["stdout"] == "", "the same output twice")
        wait_for(lambda: sleeping(marker), "it does not run")
        killed = client.good("process_kill", process=number)
        check(not killed["running"] and killed["exit_code"] == 137, f"{killed}")
        wait_for(lambda: not sleeping(marker), "the killed process still runs")
        check(client.good("process_kill", process=number)["running"] is False, "twice")
        check("no process 999" in client.bad("process_output", process=999) and client.bad("process_kill", process=0), "no such process")
        ended = client.good("execute", command="echo done; exit 5", background=True)["process"]
        wait_for(lambda: not client.good("process_output", process=ended)["running"], "it does not end")
        check(client.good("process_output", process=ended)["exit_code"] == 5, "its status")
        short = client.good("execute", command="sleep 100", background=True, timeout=1)["process"]
        wait_for(lambda: client.good("process_output", process=short).get("status") == "timeout", "a timeout in the background")
        flood = client.good("execute", command="yes", background=True)["process"]
        lost = 0
        end = time.monotonic() + LIMIT_S
        while lost == 0 and time.monotonic() < end:
            time.sleep(0.1)
            got = client.good("process_output", process=flood)
            lost = got["stdout_lost"]
            check(len(got["stdout"]) <= 256 << 10, f"{len(got['stdout'])} bytes at once")
        check(lost > 0, "a flood was kept as a whole")
        check(int(client.status(client.runner())["VmRSS"].split()[0]) < 64 << 10, "the runner's memory")
        left = [client.good("execute", command=f"sleep {marker}", background=True)["process"] for _ in range(63)]
        check("64 processes" in client.bad("execute", command="true"), "more than 64 processes")
        client.good("process_kill", process=left[0])
        check(client.text("execute", command="echo room").startswith("room\n"), "room again")
    wait_for(lambda: not sleeping(marker), "a process outlived the server")


def everything_gone(pids, marker):
    wait_for(lambda: not sleeping(marker), "a command is still there")
    for pid in pids:
        wait_for(lambda p=pid: not Path(f"/proc/{p}").exists() or " Z " in Path(f"/proc/{p}/stat").read_text(), f"process {pid} is still there")


@test
def a_client_that_dies(world):
    """It is killed in the middle of a call; its server, the runner, the box and all commands go."""
    marker = world.marker()
    script = ("import subprocess, sys, json, time\n"
              "p = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
              "def ask(n, method, **params):\n"
              "    p.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': n, 'method': method, 'params': params}).encode() + b'\\n'); p.stdin.flush()\n"
              "ask(1, 'initialize', protocolVersion='2025-11-25'); p.stdout.readline()\n"
              "ask(2, 'tools/call', name='execute', arguments={'command': 'setsid sleep ' + sys.argv[1] + ' & sleep ' + sys.argv[1], 'timeout': 300})\n"
              "ask(3, 'tools/call', name='execute', arguments={'command': 'sleep ' + sys.argv[1], 'background': True}); p.stdout.readline()\n"
              "print(p.pid, flush=True); time.sleep(1000)\n")
    client = subprocess.Popen([sys.executable, "-c", script, marker, "--", world.px, "mcp", f"--root=in={world.inside}:rw"], stdout=subprocess.PIPE, env=world.env)
    try:
        server = int(client.stdout.readline())
        wait_for(lambda: len(sleeping(marker)) == 3, "the commands did not start")
        runner = int(Path(f"/proc/{server}/task/{server}/children").read_text().split()[0])
    finally:
        client.kill()
        client.wait()
        client.stdout.close()
    everything_gone((server, runner), marker)


@test
def a_client_that_does_not_listen(world):
    """It sends and never reads; the server waits in little memory, and goes with it."""
    (world.inside / "big").write_text("x" * 1_000_000)
    marker = world.marker()
    with world.client() as client:
        client.start()
        client.raw(b'{"jsonrpc":"2.0","method":"notifications/nothing"}\n' * 100000)
        check(client.ask("ping")["result"] == {}, "ping after a flood")
        client.good("execute", command=f"sleep {marker}", background=True)
        for _ in range(100):
            client.request("tools/call", name="read_text_file", arguments={"path": "in/big", "max_chars": 1000000})
        wait_for(lambda: "S (sleeping)" in client.status()["State"], "the server does not wait")
        peak = int(client.status()["VmHWM"].split()[0])
        check(peak < 128 << 10, f"it took {peak} KiB of memory")
        server, runner = client.server(), client.runner()
        client.process.stdout.close()
    everything_gone((server, runner), marker)


@test
def a_server_that_dies(world):
    marker = world.marker()
    for how in (signal.SIGKILL, signal.SIGTERM):
        client = world.client()
        client.start()
        client.good("execute", command=f"sleep {marker}", background=True)
        wait_for(lambda: sleeping(marker), "the command did not start")
        runner = client.runner()
        client.process.send_signal(how)
        client.close()
        everything_gone((runner,), marker)


@test
def a_runner_that_dies(world):
    marker = world.marker()
    with world.client() as client:
        client.start()
        slow = client.request("tools/call", name="execute", arguments={"command": f"sleep {marker}", "timeout": 300})
        wait_for(lambda: sleeping(marker), "the command did not start")
        os.kill(client.runner(), signal.SIGKILL)
        answer = client.line()
        check(answer["id"] == slow and answer["result"]["isError"], f"{answer}")
        check("has ended" in client.bad("execute", command="true"), "a command without a runner")
        check(client.text("list_directory", path="ro") == "[FILE] r.md\n", "files go on")
        wait_for(lambda: not sleeping(marker), "a command outlived its runner")


@test
def a_box_that_dies(world):
    with world.client() as client:
        client.start()
        client.good("execute", command="true")
        runner = client.runner()
        inits = Path(f"/proc/{runner}/task/{runner}/children").read_text().split()
        check(inits, "no box")
        for pid in inits:
            os.kill(int(pid), signal.SIGKILL)
        wait_for(lambda: not client.call("execute", command="echo again")["isError"], "no new box")


# ---- a worker's rules ------------------------------------------------------------------------------------------------


ASKS = {"elicitation": {}}


@test
def the_rules_of_a_worker(world):
    """Blocked tools are not there, blocked commands are refused, and a file is all that can be named."""
    rules = "tool_rules:\n  delete_file: {allowed: false}\n  list_files: {allowed: false}\n"
    with world.client(world.worker(rules), roots=()) as client:
        check("in (read and write), ro (read only)" in client.start()["instructions"], "the roots of the file")
        names = {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}
        check(names == (READING | WRITING | SHELL) - {"delete_file", "list_directory", "directory_tree", "search_files"}, f"{names}")
        client.error(-32602, "tools/call", name="delete_file", arguments={"path": "in/x"})
        check(client.text("execute", command="echo one && echo 'two  x' > in/two").startswith("one\n"), "what is approved")
        check(client.text("read_text_file", path="in/two") == "two  x\n", "what it wrote")
        for command in ("cat in/two", "echo a; rm in/two", "echo $(rm in/two)", "echo $HOME", "rm in/two # echo"):
            check("shell rule" in client.bad("execute", command=command), command)
        check((world.inside / "two").exists(), "a blocked command ran")
        client.bad("write_file", path="ro/x", content="x")
        number = client.good("execute", command="echo behind", background=True)["process"]
        wait_for(lambda: not client.good("process_output", process=number)["running"], "it does not end")
    with world.client(world.worker("tool_rules:\n  shell: {allowed: false}\n"), roots=()) as client:
        client.start(capabilities=ASKS)
        check({tool["name"] for tool in client.ask("tools/list")["result"]["tools"]} == READING | WRITING, "no shell tool")
        check(not Path(f"/proc/{client.server()}/task/{client.server()}/children").read_text(), "a second process for nothing")
    file = world.worker()
    for words in ((file, f"--root=in={world.inside}"), (file, "--read-only"), (file, "--git-writable"), (file, "--net=host"), (file, "-e", "A=1"), (file, "--preset=agent"),
                  (file, "--approval-timeout=0"), (file, "--approval-timeout=1x"), (file, "--approval-timeout", "3601"), ("--worker=/no/such",),
                  (f"--root=in={world.inside}", "--approval-timeout=5")):
        done = subprocess.run([world.px, "mcp", *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, env=world.env)
        check(done.returncode in (1, 2) and done.stderr.startswith(b"PX") and not done.stdout, f"{words}: {done}")


@test
def a_person_is_asked(world):
    """Only accept with a boolean that is true runs the command, once."""
    made = world.inside / "made"
    for version, capabilities in (("2025-06-18", ASKS), ("2025-11-25", ASKS), ("2025-11-25", {"elicitation": {"form": {}, "url": {}}})):
        with world.client(world.worker(), roots=()) as client:
            client.start(version, capabilities)
            number, asked = client.question("execute", command="touch in/made")
            check(asked["params"]["message"] == "The worker wants to run: touch in/made", f"{asked}")
            check(client.text("execute", command="echo meanwhile").startswith("meanwhile\n") and not made.exists(), "before the answer")
            client.send({"jsonrpc": "2.0", "id": str(asked["id"]), "result": {"action": "accept", "content": {"approve": True}}})
            client.send({"jsonrpc": "2.0", "id": asked["id"] + 1000, "result": {"action": "accept", "content": {"approve": True}}})
            client.send({"jsonrpc": "1.0", "id": asked["id"], "result": {"action": "accept", "content": {"approve": True}}})
            check(client.line()["error"]["code"] == -32600 and client.ask("ping")["result"] == {} and not made.exists(), "the id of nothing")
            client.reply(asked, "accept", approve=True)
            check(not client.result(number)["isError"] and made.exists(), "it was approved")
            made.unlink()
            client.reply(asked, "accept", approve=True)
            check(client.ask("ping")["result"] == {} and not made.exists(), "the same answer twice")


@test
def a_person_who_does_not_agree(world):
    made = world.inside / "made"
    answers = [{"result": {"action": "decline"}}, {"result": {"action": "cancel"}}, {"error": {"code": -32603, "message": "no"}},
               {"result": {"action": "accept", "content": {"approve": True}}, "error": {"code": 1, "message": "both"}}]
    answers += [{"result": {"action": "accept", "content": content}} for content in
                ({"approve": False}, {"approve": "true"}, {"approve": 1}, {"approve": [True]}, {"approve": None}, {}, [True], True, None, {"Approve": True})]
    answers += [{"result": result} for result in
                (None, [], "accept", 7, {}, {"action": True}, {"action": "accept"}, {"action": "Accept", "content": {"approve": True}},
                 {"action": "accept\0", "content": {"approve": True}}, {"action": "decline", "content": {"approve": True}}, {"approve": True})]
    with world.client(world.worker(), roots=()) as client:
        client.start(capabilities=ASKS)
        for answer in answers:
            number, asked = client.question("execute", command="touch in/made")
            client.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
            result = client.result(number)
            check(result["isError"] and "was not approved" in result["content"][0]["text"] and not made.exists(), f"{answer}: {result}")
        check(client.text("execute", command="echo on").startswith("on\n"), "the next command")


@test
def nobody_who_can_be_asked(world):
    made = world.inside / "made"
    rows = (("2025-11-25", {}), ("2025-06-18", {"elicitation": True}), ("2025-11-25", {"elicitation": {"url": {}}}), ("2025-03-26", ASKS), ("2024-11-05", ASKS))
    for version, capabilities in rows:
        with world.client(world.worker("tool_rules:\n  write_file: {approval_required: true}\n"), roots=()) as client:
            client.start(version, capabilities)
            for name, arguments in (("execute", {"command": "touch in/made"}), ("write_file", {"path": "in/made", "content": "x"})):
                text = client.bad(name, **arguments)
                check("did not declare the capability elicitation" in text and not made.exists(), f"{version} {capabilities}: {text}")
            result = client.ask("tools/call", _meta=META, name="execute", arguments={"command": "touch in/made"})["result"]
            check(result["isError"] and "did not declare" in result["content"][0]["text"] and not made.exists(), f"{result}")


@test
def a_person_is_asked_by_a_result(world):
    """In the revision without requests of the server the question is a result, and the call comes again with the answer."""
    made = world.inside / "made"
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": ASKS}
    yes = {"approve": {"action": "accept", "content": {"approve": True}}}

    def call(client, name="execute", command="touch in/made", **more):
        arguments = {"command": command} if name == "execute" else {"path": "in/made", "content": command}
        return client.ask("tools/call", _meta=meta, name=name, arguments=arguments, **more)["result"]

    def question(client, **more):
        result = call(client, **more)
        check(result["resultType"] == "input_required" and list(result["inputRequests"]) == ["approve"], f"{result}")
        asked = result["inputRequests"]["approve"]
        check(asked["method"] == "elicitation/create" and asked["params"]["requestedSchema"]["required"] == ["approve"], f"{asked}")
        return result["requestState"], asked["params"]["message"]
    with world.client(world.worker("tool_rules:\n  write_file: {approval_required: true}\n"), roots=()) as client:
        for name in ("execute", "write_file"):
            state, seen = question(client, name=name)
            check("touch in/made" in seen and not made.exists(), f"{seen}")
            client.send({"jsonrpc": "2.0", "id": int(state), "result": yes["approve"]})      # no answer to a request: there was none
            for wrong in ({"requestState": "99"}, {"requestState": 7}, {"requestState": state, "command": "touch in/other"}):
                result = call(client, **{"name": name, "inputResponses": yes, **wrong})
                check(result["isError"] and "no open question" in result["content"][0]["text"] and not made.exists(), f"{wrong}: {result}")
            result = call(client, name=name, requestState=state, inputResponses=yes)
            check(result["resultType"] == "complete" and not result["isError"] and made.exists(), f"{result}")
            made.unlink()
            check(call(client, name=name, requestState=state, inputResponses=yes)["isError"] and not made.exists(), "the same answer twice")
        for answer in (None, [], {}, {"approve": None}, {"approve": {"action": "decline"}}, {"approve": {"action": "accept", "content": {"approve": "true"}}}, {"other": yes["approve"]}):
            state, _ = question(client)
            check("was not approved" in call(client, requestState=state, inputResponses=answer)["content"][0]["text"] and not made.exists(), f"{answer}")
        state, _ = question(client)
        check(call(client, requestState=state)["isError"] and not made.exists(), "no answer at all")
        states = [question(client, command=f"touch in/made{i}")[0] for i in range(40)]    # who does not come back is forgotten
        check(call(client, command="touch in/made0", requestState=states[0], inputResponses=yes)["isError"], "the first is forgotten")
        check(not call(client, command="touch in/made39", requestState=states[39], inputResponses=yes)["isError"], "the last is not")
        check({path.name for path in world.inside.glob("made*")} == {"made39"}, "which ran")
    with world.client(world.worker(), "--approval-timeout=1", roots=()) as client:
        state, _ = question(client)
        time.sleep(1.1)
        check(call(client, requestState=state, inputResponses=yes)["isError"] and not made.exists(), "an answer that came too late")


@test
def what_a_person_sees(world):
    """Everything, in printable ASCII; what cannot be shown is refused."""
    with world.client(world.worker("tool_rules:\n  write_file: {approval_required: true}\n"), roots=()) as client:
        client.start(capabilities=ASKS)
        number, asked = client.question("execute", command="touch 'in/a\x1b[2K\r\u202e\x7f'\ntouch in/b", background=True)
        check(asked["params"]["message"] == "The worker wants to run in the background: touch 'in/a\\x1b[2K\\x0d\\xe2\\x80\\xae\\x7f'\\x0atouch in/b", f"{asked}")
        client.reply(asked, "decline")
        check(client.result(number)["isError"], "declined")
        long = "touch " + "\u00e9" * 40000
        number, asked = client.question("execute", command=long)
        check(asked["params"]["message"] == "The worker wants to run: touch " + "\\xc3\\xa9" * 40000, "all of a long command")
        client.reply(asked, "decline")
        check(client.result(number)["isError"], "declined")
        number, asked = client.question("write_file", path="in/w", content="a\x1b\x7f\u00e9\n")
        seen = asked["params"]["message"]
        check(seen.isascii() and seen.isprintable() and seen.startswith("The worker wants to use write_file: {") and '"in/w"' in seen, f"{seen}")
        check(not (world.inside / "w").exists(), "before the answer")
        client.reply(asked, "accept", approve=True)
        check(not client.result(number)["isError"] and (world.inside / "w").read_text() == "a\x1b\x7f\u00e9\n", "what was approved is what was written")
        check("too large to be shown" in client.bad("write_file", path="in/v", content="x" * 600000) and not (world.inside / "v").exists(), "too large")


@test
def many_questions(world):
    """Answered in any order, 32 at a time."""
    with world.client(world.worker(), roots=()) as client:
        client.start(capabilities=ASKS)
        asked = [client.question("execute", command=f"touch in/q{i}") for i in range(32)]
        check(len({question["id"] for _, question in asked}) == 32, "ids")
        check("32 commands" in client.bad("execute", command="touch in/more"), "one more")
        for i, (number, question) in reversed(list(enumerate(asked))):
            client.reply(question, *(("decline",) if i % 4 else ("accept",)), **({} if i % 4 else {"approve": True}))
            check(client.result(number)["isError"] == bool(i % 4), f"question {i}")
        check({path.name for path in world.inside.glob("q*")} == {f"q{i}" for i in range(0, 32, 4)}, "which ran")
        check(client.text("execute", command="echo on").startswith("on\n"), "the next command")


@test
def questions_without_an_answer(world):
    made, marker = world.inside / "made", world.marker()
    with world.client(world.worker(), "--approval-timeout=1", roots=()) as client:
        client.start(capabilities=ASKS)
        number, asked = client.question("execute", command="touch in/made")
        withdrawn = client.line()
        check(withdrawn["method"] == "notifications/cancelled" and withdrawn["params"]["requestId"] == asked["id"], f"{withdrawn}")
        check("in time" in client.result(number)["content"][0]["text"], "a timeout")
        client.reply(asked, "accept", approve=True)
        check(client.ask("ping")["result"] == {} and not made.exists(), "an answer that came too late")
    with world.client(world.worker(), roots=()) as client:
        client.start(capabilities=ASKS)
        number, asked = client.question("execute", command="touch in/made")
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        withdrawn = client.line()
        check(withdrawn["method"] == "notifications/cancelled" and withdrawn["params"]["requestId"] == asked["id"], f"{withdrawn}")
        client.reply(asked, "accept", approve=True)
        check(client.text("execute", command="echo on").startswith("on\n") and not made.exists(), "a call that was cancelled")
        number, asked = client.question("execute", command=f"sleep {marker}", timeout=300)
        client.reply(asked, "accept", approve=True)
        wait_for(lambda: sleeping(marker), "the approved command did not start")
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        wait_for(lambda: not sleeping(marker), "the cancelled command still runs")
        client.question("execute", command="touch in/made")
        runner = client.runner()
        os.kill(runner, signal.SIGKILL)
        check(client.line()["method"] == "notifications/cancelled" and client.line()["result"]["isError"], "the runner ended")
        check(not made.exists(), "nothing was run")
    with world.client(world.worker(), roots=()) as client:      # it ends with a question open
        client.start(capabilities=ASKS)
        client.question("execute", command="touch in/made")
        server, runner = client.server(), client.runner()
        check(client.close() == (0, b""), "an end without words")
    everything_gone((server, runner), marker)
    check(not made.exists(), "nobody agreed")


def is_error(result):
    return getattr(result, "isError", None) or getattr(result, "is_error", None)


async def work_with(world, session):
    """What an agent does: look, write, edit, run, be refused and learn from it."""
    names = {tool.name for tool in (await session.list_tools()).tools}
    check(names == READING | WRITING | SHELL, f"{names}")
    await session.call_tool("write_file", {"path": "in/x", "content": "hello"})
    read_back = await session.call_tool("read_text_file", {"path": "in/x"})
    check(read_back.content[0].text == "hello", f"{read_back}")
    await session.call_tool("edit_file", {"path": "in/x", "edits": [{"oldText": "hello", "newText": "hello again"}]})
    check((world.inside / "x").read_text() == "hello again", "edit_file")
    refused = await session.call_tool("read_text_file", {"path": "/etc/passwd"})
    words = refused.content[0].text
    check(is_error(refused) and "Readable paths: in" in words, f"{refused}")
    allowed = words.rpartition(": ")[2].split(", ")[0]          # what it names can be used
    ran = await session.call_tool("execute", {"command": f"cat {allowed}/x"})
    check(ran.content[0].text.startswith("hello again") and not is_error(ran), f"{ran}")
    changed = await session.call_tool("diff", {})
    check("+hello again" in changed.content[0].text, f"{changed}")
    (world.inside / "x").unlink()


@test
def the_official_client(world):
    if not os.environ.get("PX_TEST_SDK"):
        raise Skip(os.environ.get("PX_TEST_NO_SDK") or "the Python package mcp is not there")
    sys.path.insert(0, os.environ["PX_TEST_SDK"])
    from mcp import Client, ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.types import ElicitResult
    server = StdioServerParameters(command=str(world.px), args=["mcp", f"--root=in={world.inside}:rw"], env=world.env)

    async def with_handshake():
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            await work_with(world, session)

    async def without_handshake():
        async with Client(server) as client:
            await work_with(world, client)
            check(client.protocol_version == MODERN, f"it chose {client.protocol_version}")
    asyncio.run(asyncio.wait_for(with_handshake(), LIMIT_S))

    async def with_approval():
        seen = []

        async def agree(_context, params):
            seen.append(params.message)
            return ElicitResult(action="accept", content={"approve": True})
        guarded = StdioServerParameters(command=str(world.px), args=["mcp", world.worker()], env=world.env)
        async with stdio_client(guarded) as (read, write), ClientSession(read, write, elicitation_callback=agree) as session:
            await session.initialize()
            await agreed_to(session, seen)
        async with Client(guarded, elicitation_callback=agree) as client:
            await agreed_to(client, seen)
            check(client.protocol_version == MODERN, f"it chose {client.protocol_version}")

    async def agreed_to(session, seen):
        seen.clear()
        result = await session.call_tool("execute", {"command": "touch in/agreed"})
        check(not is_error(result) and seen == ["The worker wants to run: touch in/agreed"], f"{result} {seen}")
        (world.inside / "agreed").unlink()
    asyncio.run(asyncio.wait_for(without_handshake(), LIMIT_S))
    asyncio.run(asyncio.wait_for(with_approval(), LIMIT_S))


# ---- running --------------------------------------------------------------------------------------------------------


def fetch_sdk(place):
    """The directory of the official client's package, or None and why it cannot be had."""
    if (place / "mcp").is_dir():
        return place, ""
    with tempfile.TemporaryDirectory(dir=place.parent) as new:
        words = ["install", "--quiet", "--disable-pip-version-check", "--no-compile", "--retries", "0", "--timeout", "20", "--target", new + "/sdk", SDK]
        try:
            done = subprocess.run(["/usr/bin/python3", "-m", "pip", *words], capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            return None, "the package mcp did not arrive in time"
        if done.returncode:
            return None, f"the package mcp cannot be fetched: {done.stderr.strip().splitlines()[-1:]}"
        try:
            os.rename(new + "/sdk", place)
        except OSError:                 # somebody else was faster
            pass
    return place, ""


def main():
    options = parser("px").parse_args()
    if options.published:
        return tell((f"mcp/{f.__name__}", *attempt(f, World, str(options.px / "px"), options.px / "work")) for f in chosen(TESTS, options.only))
    px = options.px.resolve()
    sdk, why = fetch_sdk(options.px.absolute().parent / "mcp-sdk") if chosen([the_official_client], options.only) else (None, "")
    top = publish("mcp", [px.with_name("px"), px.with_name("px-main")], [TOP / "mcp/run.py"], options.uid)
    if sdk:
        shutil.copytree(sdk, top / "sdk")
    return start_again(top, "mcp/run.py", options, environment={**os.environ, "PX_TEST_SDK": str(top / "sdk") if sdk else "", "PX_TEST_NO_SDK": why})


if __name__ == "__main__":
    sys.exit(main())
