"""Rows A32 to A50: commands of strangers."""

from __future__ import annotations

import asyncio
import os
import time

import pytest
from conftest import Greeter, NameServer, looped, make_tree, px_program, running, until, word

from px import _px
from px._errors import from_engine
from px._words import EXECUTOR, spoken
from px.executor import ExecutionResult, SandboxConfig, SandboxError, SandboxExecutor

# An ordinary user has no cgroup to hold memory and processors, unless one was delegated.
LIMITS = "require" if os.geteuid() == 0 else "try"


def executor(environment=None, **config):
    config.setdefault("limits", LIMITS)
    return SandboxExecutor(SandboxConfig(**config), environment)


async def needs_limit(box, name):
    """Skips where this host cannot hold the limit."""
    missing = (await box.execute("true")).details["isolation"]["missing"]
    if any(line.startswith(name) for line in missing):
        pytest.skip(f"no cgroup here: {missing}")


@looped
async def test_A32_echo():
    async with executor() as box:
        result = await box.execute("echo hello")
        assert (result.exit_code, result.stdout, result.stderr, result.timed_out) == (0, "hello\n", "", False)
        assert result.success
        assert result.output == "hello\n"
        result = await box.execute("echo out; echo err >&2; exit 42")
        assert (result.exit_code, result.output, result.success) == (42, "out\n\nerr\n", False)
        assert ExecutionResult(0, "", "", True).success is False


@looped
async def test_A33_A34_timeout():
    mark = word()
    async with executor() as box:
        begin = time.monotonic()
        result = await box.execute(f"echo part; sleep {mark}", timeout=1)
        assert time.monotonic() - begin >= 0.9
        assert result.timed_out
        assert result.stdout == "part\n"
        assert (result.exit_code, result.stderr) == (-1, "Command timed out after 1 seconds\n")
        assert (await box.execute("printf x >&2; sleep 60", timeout=1)).stderr == "x\nCommand timed out after 1 seconds\n"
        until(lambda: running(mark) == 0, "the end of what ran too long")
        assert (await box.execute("echo 'timed out' >&2; exit 1")).timed_out is False


@looped
async def test_A35_environment():
    async with executor({"K": "v", "L": "w"}) as box:
        assert (await box.execute("echo $K $L")).stdout == "v w\n"
        assert (await box.execute("echo $K $L", environment={"K": "mine"})).stdout == "mine w\n"
        assert (await box.execute("echo $K $L")).stdout == "v w\n"


@looped
async def test_A36_proxy():
    async with executor(http_proxy="http://proxy:3128") as box:
        lines = (await box.execute("env | grep -i _proxy | sort")).stdout.splitlines()
    assert sorted(lines) == sorted(
        f"{name}=http://proxy:3128" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    )
    async with executor() as box:
        assert (await box.execute("env | grep -ci _proxy")).stdout == "0\n"


@looped
async def test_A37_workspace(tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "f").write_text("host")
    for access, code in (("rw", 0), ("ro", 1)):
        async with executor(workspace_path=tmp_path / "w", workspace_access=access) as box:
            result = await box.execute(f"pwd; cat f; echo {access} > made")
            assert result.stdout == "/workspace\nhost"
            assert result.exit_code == code
    assert (tmp_path / "w" / "made").read_text() == "rw\n"
    async with executor(workspace_path=tmp_path / "w", workspace_access="none") as box:
        assert (await box.execute("cat /workspace/f")).exit_code != 0


@looped
async def test_a_workspace_of_its_own():
    async with executor() as box:
        assert (await box.execute("ls -A /workspace; echo 1 > /workspace/a")).stdout == ""
        assert (await box.execute("cat /workspace/a; stat -f -c %T /workspace")).stdout == "1\ntmpfs\n"
    async with executor(workspace_access="none") as box:
        assert (await box.execute("ls /workspace")).exit_code != 0


FORKS = """
import os, time
count = 0
try:
    while count < 300:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count)
"""


@looped
async def test_limits_of_one_call():
    async with executor() as box:
        await box.execute("echo 1 > /tmp/a")
        assert "No such file" in (await box.execute("cat /tmp/a", pids_limit=17)).stderr
        few = await box.execute(f"python3 -c '{FORKS}'", pids_limit=5)
        many = await box.execute(f"python3 -c '{FORKS}'", pids_limit=150)
        assert 0 < int(few.stdout) < int(many.stdout), (few, many)
        assert (await box.execute("cat /tmp/a")).stdout == "1\n"
        result = await box.execute("exit 3", memory_limit="64m", cpu_limit=0.5)
        assert result.exit_code == 3
        with pytest.raises(SandboxError):
            await box.execute("true", memory_limit="lots")


@looped
async def test_A38_A39_network():
    async with executor() as box:
        assert (await box.execute("tail -n +3 /proc/net/dev | cut -d: -f1")).stdout.split() == ["lo"]
        assert (await box.execute("getent hosts example.org")).exit_code != 0
    async with executor(dns_servers=["192.0.2.1"]) as box:
        assert (await box.execute("cat /etc/resolv.conf")).stdout == ""


# Connects, and says what it hears or why not.
CLIENT = """python3 -c '
import socket, sys
try: print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 60).recv(100).decode() or "closed")
except OSError as error: print("failed", error)
' """


@looped
async def test_A39_bridge():
    with Greeter(b"of the host") as server:
        try:
            async with executor(network_mode="bridge", dns_servers=["192.0.2.1", "192.0.2.2"]) as box:
                result = await box.execute("cat /etc/resolv.conf")
                assert result.stdout == "nameserver 192.0.2.1\nnameserver 192.0.2.2\n"
                result = await box.execute(CLIENT + f"10.0.2.2 {server.port}")
                assert result.stdout != "of the host\n"
                assert [row["rule"] for row in result.details["denials"]] == ["host loopback"]
        except SandboxError as error:
            if error.name != "PX500":
                raise
            pytest.skip(error.what)
        async with executor(network_mode="bridge", policy={"host-port": [str(server.port)]}) as box:
            for reuse in (True, False):
                result = await box.execute(CLIENT + f"10.0.2.2 {server.port}", reuse_container=reuse)
                assert result.stdout == "of the host\n"
                assert result.details["network"][0]["connections"] == 1
    with pytest.raises(SandboxError, match="runtime") as caught:
        await executor(network_mode="bridge", runtime="runc").execute("true")
    assert caught.value.name == "PX003"


@looped
async def test_A39_name_servers():
    """Names are asked for where the configuration says, and nowhere else."""
    try:
        server = NameServer(f"127.83.{os.getpid() % 250}.{time.time_ns() % 250 + 1}", "203.0.113.10")
    except PermissionError:
        pytest.skip("a name server's port is for root")
    with server:
        async with executor(network_mode="bridge", dns_servers=[server.address]) as box:
            result = await box.execute("getent ahostsv4 server.test")
            assert result.stdout.startswith("198.18."), result
        assert "server.test" in server.asked
        asked = len(server.asked)
        async with executor(
            network_mode="bridge", dns_servers=[server.address], policy={"allow-net": ["other.test"]}
        ) as box:
            result = await box.execute("getent ahostsv4 server.test")
            assert result.exit_code != 0
            assert [row["grant"] for row in result.details["denials"]] == ["--allow-net server.test"]
        assert len(server.asked) == asked


@looped
async def test_A40_fork_bomb():
    async with executor(timeout=20) as box:
        result = await box.execute("f() { f | f & }; f; sleep 1; echo reached >&2")
        assert "fork" in result.stderr or result.exit_code != 0 or result.timed_out
        assert (await box.execute("echo next")).stdout == "next\n"


@looped
async def test_A41_memory():
    async with executor(memory_limit="128m") as box:
        result = await box.execute("python3 -c 'x = bytearray(400 << 20)'")
        assert result.exit_code == 137 or "MemoryError" in result.stderr
        if LIMITS == "require":
            assert result.status == "memory"
        assert (await box.execute("echo next")).stdout == "next\n"


@looped
async def test_A42_processors():
    async with executor(cpu_limit=0.5) as box:
        await needs_limit(box, "cpus")
        code = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
        used = float((await box.execute_script(code)).stdout)
        assert used < 1.6


@looped
async def test_A43_sizes():
    for text in ("512m", "1g", "262144k", "268435456"):
        async with executor(memory_limit=text) as box:
            assert (await box.execute("true")).success
    for config in ({"memory_limit": "lots"}, {"cpu_limit": -1}, {"workspace_access": "all"}, {"network_mode": "all"}):
        with pytest.raises(SandboxError):
            await executor(**config).execute("true")


@looped
async def test_A44_A45_places():
    async with executor() as box:
        result = await box.execute("head -c 70000000 /dev/zero > /tmp/big")
        assert "No space left" in result.stderr
        for place in ("/tmp", "/home/sandbox", "/var/tmp", "/run"):
            result = await box.execute(f"rm -f /tmp/big; echo true > {place}/s && chmod +x {place}/s && {place}/s")
            assert "Permission denied" in result.stderr, place


@looped
async def test_A46_reuse():
    async with executor() as box:
        assert (await box.execute("touch /tmp/a ~/b")).success
        assert (await box.execute("ls /tmp/a ~/b")).success
        assert (await box.execute("ls /tmp/a", reuse_container=False)).exit_code != 0
        await box.cleanup()
        assert (await box.execute("ls /tmp/a")).exit_code != 0
        await box.cleanup()
        await box.cleanup()


@looped
async def test_A47_missing():
    with pytest.raises(SandboxError) as caught:
        await executor(image="no-such-image").execute("true")
    assert caught.value.name == "PX900"
    assert "no-such-image" in caught.value.what
    with pytest.raises(SandboxError):
        await executor(runtime="runsc" if not os.path.exists("/usr/bin/runsc") else "youki").execute("true")


@looped
async def test_A48_images_come_and_go(tmp_path, tree):
    px_program("sandbox", "base", "import", "mine", str(tree))
    first = px_program("sandbox", "build", "--base", "mine", "--tag", "made")
    assert px_program("sandbox", "status")["images"] == 1
    async with executor(image="made") as box:
        assert (await box.execute("cat /etc/marker")).stdout == "of the archive\n"
    assert px_program("sandbox", "build", "--base", "mine", "--tag", "made")["cached"] is True
    again = px_program("sandbox", "build", "--base", "mine", "--tag", "made", "--force")
    assert (again["cached"], again["image_digest"]) == (False, first["image_digest"])
    px_program("sandbox", "base", "import", "other", str(make_tree(tmp_path / "tree2", "of another\n")))
    nameless = px_program("sandbox", "build", "--base", "other")
    assert px_program("sandbox", "status")["images"] == 2
    removed = px_program("sandbox", "clean")["removed"]
    assert [row["id"] for row in removed if row["kind"] in ("image", "base")] == [nameless["sbx_id"]]
    assert px_program("sandbox", "status")["images"] == 1
    async with executor(image="made") as box:
        assert (await box.execute("echo still")).stdout == "still\n"


@looped
async def test_A49_a_box_that_is_stale(tmp_path, tree):
    """Another image under the same name, another workspace: another box. As long as nothing changes it is the same one."""
    px_program("sandbox", "base", "import", "mine", str(tree))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    async with executor(image="mine", workspace_path=tmp_path / "a") as box:
        assert (await box.execute("cat /etc/marker f; echo > /tmp/here")).stdout == "of the archive\na"
        assert (await box.execute("echo /tmp/*")).stdout == "/tmp/here\n"
        px_program("sandbox", "base", "import", "mine", str(make_tree(tmp_path / "tree2", "of another\n")))
        assert (await box.execute("cat /etc/marker; echo /tmp/*; echo > /tmp/here")).stdout == "of another\n/tmp/*\n"
        box.config.workspace_path = tmp_path / "b"
        assert (await box.execute("cat f; echo /tmp/*")).stdout == "b/tmp/*\n"


@looped
async def test_A50_files_of_the_box():
    text = 'quo\'te "double" $(id) `id` \\ \nASHEOF\n\0end'
    async with executor() as box:
        for path in ("/tmp/plain", "/tmp/d/e f", "/tmp/it's $(here)", "/tmp/-n"):
            await box.write_file(path, text)
            assert await box.read_file(path) == text.encode()
        with pytest.raises(SandboxError, match="cannot read"):
            await box.read_file("/tmp/none")
        with pytest.raises(SandboxError, match="cannot write"):
            await box.write_file("/usr/x", "no")


@looped
async def test_the_seeds_table():
    async with executor() as box:
        assert (await box.execute("exit 42")).exit_code == 42
        result = await box.execute("rm -rf --no-preserve-root /etc /usr/bin")
        assert result.exit_code != 0
        assert "Read-only" in result.stderr
        assert (await box.execute("sudo whoami")).exit_code != 0
        assert (await box.execute("whoami; id -u")).stdout == "sandbox\n1000\n"
        result = await box.execute("seq 1 1000000")
        assert result.details["truncated"]["stdout"]
        assert len(result.stdout) < 3 << 20
        assert result.truncated
        head, mark, tail = result.stdout.partition(f"\n[... {6888896 - (2 << 20)} bytes left out ...]\n")
        assert (head[:4], mark != "", tail[-9:]) == ("1\n2\n", True, "\n1000000\n")
        result = await box.execute("echo short; seq 1 1000000 >&2")
        assert (result.stdout, result.truncated) == ("short\n", True)
        assert "bytes left out ...]\n" in result.stderr
        assert not (await box.execute("echo '[... 1 bytes left out ...]'")).truncated


@looped
async def test_cancelling():
    mark = word()
    async with executor() as box:
        for reuse in (True, False):
            task = asyncio.ensure_future(box.execute(f"sleep {mark}", reuse_container=reuse))
            while running(mark) == 0:
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            until(lambda: running(mark) == 0, "the end of what was cancelled")
        assert (await box.execute("echo next")).stdout == "next\n"


@looped
async def test_many_at_once():
    async with executor() as box:
        results = await asyncio.gather(*(box.execute(f"echo {n}") for n in range(30)))
        assert [result.stdout for result in results] == [f"{n}\n" for n in range(30)]


@looped
async def test_a_runtime():
    box = executor(runtime="runc")
    try:
        result = await box.execute("id -u; exit 7")
    except SandboxError as error:
        pytest.skip(f"runc: {error.what}")
    assert (result.stdout, result.exit_code) == ("1000\n", 7)


@looped
async def test_a_timeout_is_no_less_than_nothing():
    with pytest.raises(ValueError, match="-5"):
        SandboxConfig(timeout=-5)
    async with executor() as box:
        with pytest.raises(ValueError, match="timeout"):
            await box.execute("true", timeout=-1)
        box.config.timeout = -1
        with pytest.raises(ValueError, match="timeout"):
            await box.execute("true")


@looped
async def test_errors_have_the_names_of_the_config():
    """PX013, which an ordinary user gets for the limits of the config, names the way to do without."""
    with pytest.raises(SandboxError, match="memory_limit: 'lots'"):
        await executor(memory_limit="lots").execute("true")
    engine = from_engine(13, 0, "--memory needs a cgroup", "", _px.explain(13)[3], "", None, None)
    with pytest.raises(SandboxError) as caught, spoken(EXECUTOR):
        raise engine
    assert caught.value.what == "memory_limit needs a cgroup"
    assert 'SandboxConfig(limits="try")' in caught.value.fix
    assert "systemd-run --user --scope -p Delegate=yes" in caught.value.fix
    assert 'policy["cpu-time"], pids_limit, policy["file-size"] and timeout need no cgroup' in caught.value.fix
