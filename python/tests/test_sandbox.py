"""Rows B1 to B34: sandboxes of a library, through asyncio."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import tarfile
import time
import warnings

import pytest
from conftest import (
    Greeter,
    bad_archive,
    connect,
    descriptors,
    free_ports,
    looped,
    make_tree,
    pack,
    px_program,
    running,
    until,
    word,
)

import px.sync
from px import CommandError, Sandbox, SandboxError, SandboxTimeout
from px._core import SandboxNetwork


async def said(sandbox, command, **more):
    process = await sandbox.run(command, timeout=60, **more)
    stdout, stderr = await process.communicate()
    return process.returncode, stdout, stderr


@looped
async def test_B1_echo():
    with Sandbox() as sandbox:
        process = await sandbox.run("echo hello")
        assert process.returncode is None
        assert await process.communicate() == (b"hello\n", b"")
        assert process.returncode == 0
        assert process.result["status"] == "ok"


@looped
async def test_B2_exit_codes():
    with Sandbox() as sandbox:
        process = await sandbox.run("exit 42")
        assert await process.wait() == 42
        process = await sandbox.run("exit 42")
        with pytest.raises(CommandError, match="42"):
            await process.wait(check=True)
        process = await sandbox.run("echo out; echo err >&2; exit 3")
        with pytest.raises(RuntimeError, match="Command failed with exit code 3") as caught:
            await process.communicate(check=True)
        assert caught.value.args[1:] == (b"out\n", b"err\n")
        assert (await said(sandbox, "no-such-command"))[0] == 127
        assert (await said(sandbox, "kill -9 $$"))[0] == 137


@looped
async def test_B3_B4_scripts():
    with Sandbox() as sandbox:
        process = await sandbox.run_script("import sys; print('hi'); print(sys.argv[0])")
        first, path, *_ = (await process.communicate())[0].decode().splitlines()
        assert first == "hi"
        assert re.fullmatch(r"/tmp/script_[0-9a-f]{32}\.py", path)
        process = await sandbox.run_script("echo $0; echo 'q\"$(id)'", run_command="bash", extension="sh")
        path, text = (await process.communicate())[0].decode().splitlines()
        assert re.fullmatch(r"/tmp/script_[0-9a-f]{32}\.sh", path)
        assert text.startswith('q"$(id)')


@looped
async def test_B5_streams():
    with Sandbox() as sandbox:
        process = await sandbox.run("printf out; printf err >&2")
        found = {"stdout": b"", "stderr": b""}
        async for name, data in process.stream(include_stream=True):
            found[name] += data
        assert found == {"stdout": b"out", "stderr": b"err"}
        assert await process.wait(check=True) == 0
        process = await sandbox.run("printf '\\303'; sleep 0.2; printf '\\244\\377'")
        assert "".join([text async for text in process.stream(decode=True, chunk_size=1)]) == "ä\ufffd"


@looped
async def test_B6_lines():
    with Sandbox() as sandbox:
        process = await sandbox.run("printf 'line1\\nline2\\n'")
        assert [line async for line in process.stream_lines()] == ["line1\n", "line2\n"]
        process = await sandbox.run("printf 'a\\r\\nb\\nrest'; printf 'e\\n' >&2")
        lines = [pair async for pair in process.stream_lines(include_stream=True, decode=False)]
        assert [line for name, line in lines if name == "stdout"] == [b"a\r\n", b"b\n", b"rest"]
        assert [line for name, line in lines if name == "stderr"] == [b"e\n"]


@looped
async def test_B7_input():
    with Sandbox() as sandbox:
        process = await sandbox.run("cat")
        await process.send_text("hello\n")
        process.close_stdin()
        assert await process.communicate() == (b"hello\n", b"")
        big = os.urandom(3_000_000)
        process = await sandbox.run("cat")
        assert await process.communicate(big) == (big, b"")
        process = await sandbox.run("cat; echo end")
        process.stdin.write(b"by hand\n")
        await process.stdin.drain()
        process.stdin.close()
        assert await process.stdout.read() == b"by hand\nend\n"
        assert await process.wait() == 0


@looped
async def test_B8_who_and_where():
    with Sandbox() as sandbox:
        assert await said(sandbox, "hostname; pwd; whoami; id -u") == (
            0,
            b"sandbox\n/home/sandbox\nsandbox\n1000\n",
            b"",
        )


@looped
async def test_B9_files_both_ways():
    with Sandbox() as sandbox:
        (sandbox.work_dir / "input.txt").write_text("data")
        process = await sandbox.run("cat input.txt; printf back > output.txt")
        assert await process.communicate() == (b"data", b"")
        assert (sandbox.work_dir / "output.txt").read_text() == "back"


@looped
async def test_B10_B11_work_dir(tmp_path):
    with Sandbox() as sandbox:
        work, tmp = sandbox.work_dir, sandbox.tmp_dir
        # A box must not be able to keep its directories by their modes.
        await said(sandbox, "mkdir -p a/b/c; touch a/b/c/d; chmod 000 a/b/c a/b a")
    assert not work.exists()
    assert not tmp.exists()
    mine = tmp_path / "mine"
    with Sandbox(work_dir=mine) as sandbox:
        await said(sandbox, "echo kept > file")
    assert (mine / "file").read_text() == "kept\n"
    with Sandbox(work_dir=str(mine)) as sandbox:
        assert await said(sandbox, "cat file") == (0, b"kept\n", b"")


@looped
async def test_B12_tmp():
    with Sandbox() as sandbox:
        await said(sandbox, "echo here > /tmp/x")
        assert (await said(sandbox, "cat /tmp/x"))[1] == b"here\n"
        assert (sandbox.tmp_dir / "x").read_text() == "here\n"
        place = sandbox.tmp_dir
    assert not place.exists()


@looped
async def test_B13_overlay(archive):
    with Sandbox(rootfs=archive) as sandbox:
        code, _, stderr = await said(sandbox, "touch /etc/x")
        assert code != 0
        assert b"Read-only" in stderr
        root = sandbox.rootfs_dir
    with Sandbox(rootfs=archive, rootfs_overlay=True) as sandbox:
        assert await said(sandbox, "echo new > /etc/x && echo changed > /etc/marker") == (0, b"", b"")
        assert (await said(sandbox, "cat /etc/x /etc/marker"))[1] == b"new\nchanged\n"
    assert not (root / "etc" / "x").exists()
    assert (root / "etc" / "marker").read_text() == "of the archive\n"
    with Sandbox() as sandbox:
        code, _, stderr = await said(sandbox, "touch /etc/x")
        assert code != 0
        assert b"Read-only" in stderr


@looped
async def test_B14_B15_persist(archive, tmp_path):
    place = tmp_path / "overlay"
    place.mkdir()
    options = {"rootfs": archive, "rootfs_overlay": True, "rootfs_overlay_path": place, "persist_overlayfs": True}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            sandbox = Sandbox(**options)
        except SandboxError as error:
            if error.code == 42:
                pytest.skip(f"overlays in a directory: {error.what}")
            raise
    assert [one.filename for one in told if "stays" in str(one.message)] == [__file__]  # whoever made it
    with sandbox:
        await said(sandbox, "echo kept > /etc/new")
    assert [path.read_text() for path in place.rglob("new")] == ["kept\n"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Sandbox(**options) as sandbox:
            assert (await said(sandbox, "cat /etc/new"))[1] == b"kept\n"
    with pytest.raises(ValueError, match="rootfs_overlay_path"):
        Sandbox(rootfs_overlay=True, persist_overlayfs=True)
    with pytest.raises(ValueError, match="rootfs_overlay"):
        Sandbox(persist_overlayfs=True, rootfs_overlay_path=place)


@looped
async def test_B14_export(archive, tmp_path):
    """The root with its changes is an archive that is a root again; nothing of the host's directories is in it."""
    place = tmp_path / "new.tar"
    with Sandbox(rootfs=archive, rootfs_overlay=True, policy={"tmpfs": "/a [b]*"}) as sandbox:
        assert sandbox.rootfs_dir is None
        line = "mkdir /home/other; echo 5 > /home/other/kept; echo kept > /etc/new; rm /etc/marker; echo 1 > /tmp/x; echo 2 > x; echo 3 > '/a [b]*/y'; echo 4 > '/etc/a\nb'"
        assert await said(sandbox, line) == (0, b"", b"")
        await sandbox.export(place, timeout=60)
        with pytest.raises(FileExistsError):
            await sandbox.export(place)
        with pytest.raises(SandboxError, match="1000 bytes"):
            await sandbox.export(tmp_path / "large.tar", max_bytes=1000)
        assert (await said(sandbox, "rm -f /bin/tar; echo '#!/bin/sh' > /bin/tar; echo 'exit 3' >> /bin/tar; chmod 755 /bin/tar"))[0] == 0
        with pytest.raises(SandboxError, match="cannot be exported"):
            await sandbox.export(tmp_path / "broken.tar", timeout=60)
    assert sorted(path.name for path in tmp_path.glob("*.tar")) == ["new.tar"]
    with tarfile.open(place) as tar:
        names = {name.removeprefix("./") for name in tar.getnames()}
    assert {"etc/new", "etc/a\nb", "bin/busybox", "home/other/kept"} <= names
    assert not {"etc/marker", "home/sandbox", "a [b]*"} & names
    assert not [name for name in names if name.split("/")[0] in ("tmp", "proc", "dev")]
    with px.sync.Sandbox(rootfs=place, rootfs_overlay=True) as again:
        assert again.run("cat /etc/new; ls /etc/marker", timeout=60).communicate()[0] == b"kept\n"
        again.export(tmp_path / "again.tar", timeout=60)
    with tarfile.open(tmp_path / "again.tar") as tar:
        assert {name.removeprefix("./") for name in tar.getnames()} == names
    with Sandbox() as sandbox, pytest.raises(SandboxError, match="nothing to export"):
        await sandbox.export(tmp_path / "host.tar")


@looped
async def test_an_overlay_without_a_root(tree):
    """It is laid over the base that px builds, if that is there; the error says how to get one, in Python's names."""
    with pytest.raises(SandboxError) as caught:
        Sandbox(rootfs_overlay=True)
    assert caught.value.name == "PX034"
    assert caught.value.what == "rootfs_overlay=True needs a root of its own"
    assert 'base="debian-12"' in caught.value.fix
    assert "px sandbox base build debian-12" in caught.value.fix
    assert "rootfs=DIR" in caught.value.fix
    px_program("sandbox", "base", "import", "debian-12", str(tree))
    with Sandbox(rootfs_overlay=True) as sandbox:
        assert await said(sandbox, "echo new > /etc/x && cat /etc/x /etc/marker") == (0, b"new\nof the archive\n", b"")


@looped
async def test_B16_cache(archive, tmp_path):
    other = pack(make_tree(tmp_path / "tree2", "of another\n"), tmp_path / "other.tar.xz", "w:xz")
    with Sandbox(rootfs=archive) as one, Sandbox(rootfs=archive) as two, Sandbox(rootfs=other) as three:
        assert one.rootfs_dir == two.rootfs_dir
        assert one.rootfs_dir != three.rootfs_dir
        assert (await said(three, "cat /etc/marker"))[1] == b"of another\n"
    place = tmp_path / "unpacked"
    with Sandbox(rootfs=archive, rootfs_path=place) as sandbox:
        assert sandbox.rootfs_dir == place
        assert (await said(sandbox, "cat /etc/marker"))[1] == b"of the archive\n"
    (place / "etc" / "marker").write_text("mine now\n")
    with Sandbox(rootfs_path=place) as sandbox:
        assert (await said(sandbox, "cat /etc/marker"))[1] == b"mine now\n"


@looped
async def test_B17_bad_archives(tmp_path, archive):
    nonsense = tmp_path / "nonsense.tar.gz"
    nonsense.write_bytes(b"this is no archive at all" * 100)
    for path in (
        nonsense,
        tmp_path / "missing.tar",
        bad_archive(tmp_path / "up.tar", "../escaped"),
        bad_archive(tmp_path / "absolute.tar", "/escaped-px-test"),
    ):
        before = descriptors()
        for _ in range(2):  # the second one must not find half of the first
            with pytest.raises(SandboxError) as caught:
                Sandbox(rootfs=path)
            assert caught.value.code
            assert caught.value.fix
        assert descriptors() == before
    assert not (tmp_path / "escaped").exists()
    assert not os.path.exists("/escaped-px-test")
    with Sandbox(rootfs=archive) as sandbox:
        assert (await said(sandbox, "cat /etc/marker"))[0] == 0


@pytest.mark.parametrize(
    ("suffix", "mode"),
    [("tgz", "w:gz"), ("tar.gz", "w:gz"), ("tar.bz2", "w:bz2"), ("tar.xz", "w:xz"), ("tar.zst", "zst")],
)
@looped
async def test_B18_kinds_of_archives(tmp_path, tree, suffix, mode):
    target = tmp_path / f"root.{suffix}"
    if mode == "zst":
        if not shutil.which("zstd"):
            pytest.skip("zstd is not installed")
        plain = pack(tree, tmp_path / "plain.tar", "w")
        subprocess.run(["zstd", "-q", str(plain), "-o", str(target)], check=True)
    else:
        pack(tree, target, mode)
    with Sandbox(rootfs=target) as sandbox:
        assert (await said(sandbox, "cat /etc/marker"))[1] == b"of the archive\n"


@looped
async def test_B19_timeout():
    mark = word()
    with Sandbox() as sandbox:
        process = await sandbox.run(f"echo part; sleep {mark} & sleep {mark}", timeout=0.5)
        begin = time.monotonic()
        with pytest.raises(TimeoutError, match="exceeded 0.5 seconds") as caught:
            await process.communicate()
        assert time.monotonic() - begin >= 0.4
        assert isinstance(caught.value, SandboxTimeout)
        assert caught.value.stdout == b"part\n"
        assert process.returncode == -9
        until(lambda: running(mark) == 0, "the end of what was killed")
        for how in ("stream", "stream_lines"):
            process = await sandbox.run(f"sleep {mark}", timeout=0.3)
            with pytest.raises(TimeoutError):
                async for _ in getattr(process, how)():
                    pass
            assert process.returncode == -9
            until(lambda: running(mark) == 0, "the end of what was killed")
        process = await sandbox.run(f"sleep {mark}", timeout=None)
        with pytest.raises(TimeoutError):
            await process.wait(timeout=0.2)
        assert (await said(sandbox, "echo alive"))[1] == b"alive\n"


@looped
async def test_B20_kill_and_terminate():
    with Sandbox() as sandbox:
        process = await sandbox.run("sleep 100")
        assert os.path.exists(f"/proc/{process.pid}/cmdline")
        process.kill()
        assert await process.wait(timeout=60) == -9
        process.kill()  # of one that has ended: nothing
        process = await sandbox.run("sleep 100")
        process.terminate()
        assert await process.wait(timeout=60) == -15
        process = await sandbox.run(
            "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.05; done", timeout=60
        )
        assert await process.stdout.readline() == b"ready\n"
        process.terminate()
        assert (await process.communicate())[0] == b"caught\n"
        assert process.returncode == 7


@looped
async def test_B21_B22_terminal():
    with Sandbox() as sandbox:
        process = await sandbox.run("stty size; read -r x; stty size; tty; echo got $x", timeout=60, use_pty=True)
        assert (process.stdin, process.stdout, process.stderr) == (None, None, None)
        assert process.master_fd >= 0
        text, names, asked = "", set(), False
        async for name, piece in process.stream(include_stream=True, decode=True):
            text += piece
            names.add(name)
            if not asked and "24 80\r\n" in text:
                asked = True
                process.set_terminal_size(40, 120)
                await process.send(b"abc\n")
        assert names == {"stdout"}
        assert "40 120\r\n" in text
        assert text.endswith("got abc\r\n")
        assert await process.wait() == 0
        process.close_pty()


@looped
async def test_B23_B24_not_a_terminal():
    with Sandbox() as sandbox:
        process = await sandbox.run("sleep 0.1")
        assert process.master_fd is None
        with pytest.raises(SandboxError, match="PTY mode is not enabled"):
            process.set_terminal_size(40, 120)
        process.close_pty()
        await process.wait()
        process = await sandbox.run("true", use_pty=True, timeout=60)
        await process.communicate()
        process.close_pty()
        process.close_pty()
        assert process.master_fd is None


@looped
async def test_B25_ctrl_c():
    with Sandbox() as sandbox:
        process = await sandbox.run("bash --norc -i", use_pty=True, timeout=60)
        text, step = "", 0
        async for piece in process.stream(decode=True):
            text += piece
            if step == 0 and "$ " in text:
                await process.send(b"echo be'gun'; sleep 1000\n")
                step = 1
            elif step == 1 and "begun\r\n" in text:
                await asyncio.sleep(0.2)
                await process.send(b"\x03")
                await process.send(b"echo still $((40 + 2)); exit 9\n")
                step = 2
        assert "still 42" in text
        assert await process.wait() == 9
        process.close_pty()


@looped
async def test_a_program_on_the_terminal():
    with Sandbox() as sandbox:
        process = await sandbox.run("python3 -q", use_pty=True, timeout=60)
        text, step = "", 0
        async for piece in process.stream(decode=True):
            text += piece
            if step == 0 and ">>> " in text:
                await process.send(b"6 * 7\n")
                step = 1
            elif step == 1 and "42\r\n" in text:
                await process.send(b"print('\\x1b[31mred\\x1b[0m')\n")
                step = 2
            elif step == 2 and "\x1b[31mred" in text:
                process.close_stdin()
                step = 3
        assert step == 3
        assert await process.wait() == 0
        process.close_pty()


SERVER = """
import socket
s = socket.create_server(("127.0.0.1", 8099)); print("ready", flush=True)
c, _ = s.accept(); c.sendall(b"from the server"); c.close()
"""
CLIENT = "import socket; print(socket.create_connection(('127.0.0.1', 8099), 30).recv(100).decode())"


@looped
async def test_B26_one_network():
    with Sandbox() as sandbox, Sandbox() as stranger:
        server = await sandbox.run_script(SERVER, timeout=60)
        assert await server.stdout.readline() == b"ready\n"
        refused = await stranger.run_script(CLIENT)
        assert b"refused" in (await refused.communicate())[1]
        client = await sandbox.run_script(CLIENT)
        assert (await client.communicate())[0] == b"from the server\n"
        assert await server.wait() == 0


@looped
async def test_B27_B28_no_way_out():
    connect = "echo > /dev/tcp/192.0.2.1/80"
    with Sandbox() as sandbox:
        assert b"unreachable" in (await said(sandbox, connect))[2]
        assert sandbox.network.mode == "loopback"
        assert sandbox.network.namespace_pid() > 1
    with Sandbox(enable_network=False) as sandbox:
        assert sandbox.network is None
        _, stdout, _ = await said(sandbox, "tail -n +3 /proc/net/dev")
        assert [line.split(b":")[0].strip() for line in stdout.splitlines()] == [b"lo"]
        assert (await said(sandbox, connect))[0] != 0


def outbound(kind=Sandbox, **more):
    """A sandbox with the outbound network, where the kernel has what that needs."""
    try:
        return kind(enable_outbound=True, **more)
    except SandboxError as error:
        if error.name != "PX500":
            raise
        pytest.skip(error.what)


LISTENER = """python3 -c '
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    with server.accept()[0] as client: client.sendall(sys.argv[2].encode())
' """


@looped
async def test_B29_ports():
    with outbound() as sandbox:
        assert sandbox.network.mode == "outbound"
        first, second = free_ports(2)
        found = sandbox.forward_port(8080, first)
        assert found == {"proto": "tcp", "host_addr": "127.0.0.1", "host_port": first, "guest_port": 8080}
        assert connect(first) == ""
        servers = [await sandbox.run(LISTENER + f"{port} 'port {port}'", timeout=None) for port in (8080, 8081)]
        for server in servers:
            assert await server.stdout.readline() == b"ready\n"
        assert await asyncio.to_thread(connect, first) == "port 8080"
        sandbox.forward_port(8081, second)
        assert await asyncio.to_thread(connect, second) == "port 8081"
        assert await asyncio.to_thread(connect, first) == "port 8080"
        with pytest.raises(SandboxError, match=str(second)) as caught:
            sandbox.forward_port(8080, second)
        assert caught.value.what.startswith(f"forward_port(8080, {second}): cannot listen")
        assert caught.value.fix.startswith(f"Choose another port of the host: forward_port(8080, {second + 1}).\n")
    assert connect(first) == connect(second) == ""
    with pytest.raises(SandboxError, match="closed"):
        sandbox.forward_port(8080, first)


@looped
async def test_B29_without_outbound():
    """A port of a sandbox that has its loopback alone; the host's is chosen, and the network stays closed."""
    with Sandbox() as sandbox:
        servers = [await sandbox.run(LISTENER + f"{port} 'port {port}'", timeout=None) for port in (8080, 8081)]
        for server in servers:
            assert await server.stdout.readline() == b"ready\n"
        first, second = sandbox.forward_port(8080, 0), sandbox.forward_port(8081)
        assert first == {**first, "proto": "tcp", "host_addr": "127.0.0.1", "guest_port": 8080}
        assert 0 < first["host_port"] != second["host_port"] > 0
        assert await asyncio.to_thread(connect, first["host_port"]) == "port 8080"
        assert await asyncio.to_thread(connect, second["host_port"]) == "port 8081"
        client = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
        _, _, stderr = await said(sandbox, ["python3", "-c", client])
        assert b"unreachable" in stderr
    assert connect(first["host_port"]) == ""
    with Sandbox(policy={"net": "outbound"}) as sandbox:
        assert sandbox.network.mode == "outbound"
        assert sandbox.forward_port(8080)["host_port"] > 0
    with Sandbox(policy={"publish": ["0:8080"]}) as sandbox:
        server = await sandbox.run(LISTENER + "8080 given", timeout=None)
        assert await server.stdout.readline() == b"ready\n"
        assert await asyncio.to_thread(connect, sandbox.forward_port(8080)["host_port"]) == "given"


def test_B29_refusals():
    with Sandbox(enable_network=False) as sandbox, pytest.raises(RuntimeError, match="network"):
        sandbox.forward_port(8080, 18080)
    with outbound() as sandbox:
        with pytest.raises(ValueError, match="sctp"):
            sandbox.forward_port(8080, 18080, proto="sctp")
        for ports in ((0, 18080), (8080, 70000), (8080, -1)):
            with pytest.raises(SandboxError, match="publish") as caught:
                sandbox.forward_port(*ports)
            assert caught.value.fix.startswith("Write HOST:BOX")


@looped
async def test_B30_the_hosts_loopback():
    client = "import socket; print(socket.create_connection(('10.0.2.2', {}), 60).recv(100).decode() or 1 / 0)"
    with pytest.raises(ValueError, match="enable_outbound"):
        Sandbox(allow_host_loopback=True)
    with pytest.raises(ValueError, match="enable_network"):
        Sandbox(enable_network=False, enable_outbound=True)
    with Greeter(b"of the host") as server:
        with outbound() as sandbox:
            process = await sandbox.run_script(client.format(server.port), timeout=60)
            await process.communicate()
            assert process.returncode == 1
            assert [row["grant"] for row in process.result["denials"]] == [f"--host-port {server.port}"]
        with outbound(allow_host_loopback=True) as sandbox:
            process = await sandbox.run_script(client.format(server.port), timeout=60)
            assert await process.communicate() == (b"of the host\n", b"")


def test_B29_plain():
    """The twin without a loop has the same ports."""
    with outbound(kind=px.sync.Sandbox) as sandbox:
        (port,) = free_ports(1)
        server = sandbox.run(LISTENER + "9000 plain", timeout=60)
        assert next(server.stream_lines()) == "ready\n"
        sandbox.forward_port(9000, port)
        assert connect(port) == "plain"


@looped
async def test_B31_another_namespace():
    """One command, or all of a sandbox, in the network of another; with the files of its own."""
    client = "import socket; server = socket.create_connection(('127.0.0.1', 9000), 30)\n"
    client += "print(open('/tmp/own').read(), server.recv(100).decode())"
    with Sandbox() as first, Sandbox() as second:
        server = await first.run(LISTENER + "9000 shared", timeout=None)
        assert await server.stdout.readline() == b"ready\n"
        (second.tmp_dir / "own").write_text("mine")
        (second.tmp_dir / "own").chmod(0o644)
        pid = first.network.namespace_pid()
        process = await second.run_script(client, timeout=60, ns_pid_override=pid)
        assert (await process.communicate())[0] == b"mine shared\n"
        alone = await second.run_script(client, timeout=60)
        await alone.communicate()
        assert alone.returncode == 1
        with Sandbox(ns_pid_override=pid) as third:
            (third.tmp_dir / "own").write_text("third")
            (third.tmp_dir / "own").chmod(0o644)
            process = await third.run_script(client, timeout=60)
            assert (await process.communicate())[0] == b"third shared\n"
            with pytest.raises(SandboxError, match="enable_outbound|network"):
                third.forward_port(9000, 19000)
        sleeper = await second.run("sleep 1000", timeout=None, ns_pid_override=pid)
        outliving = await second.run("cat; echo over", timeout=60, ns_pid_override=pid)
        first.close()
        outliving.close_stdin()
        assert (await outliving.communicate())[0] == b"over\n"
        second.close()
        assert sleeper.returncode == -9
        assert not second.tmp_dir.exists()


@looped
async def test_B31_refusals():
    with Sandbox() as first, Sandbox() as second:
        process = await first.run("sleep 1000", timeout=None)
        for pid in (1, os.getpid(), process.pid, 2**22 + 1):
            with pytest.raises(SandboxError, match=f"process {pid} ") as caught:
                await second.run("true", ns_pid_override=pid)
            assert caught.value.fix
        gone = first.network.namespace_pid()
        first.close()
        with pytest.raises(SandboxError, match=str(gone)):
            Sandbox(ns_pid_override=gone)
        with pytest.raises(SandboxError, match="name|no box"):
            Sandbox(policy={"net": "box:nobody-has-this"})
    with pytest.raises(ValueError, match="another sandbox"):
        Sandbox(enable_outbound=True, ns_pid_override=1)
    assert SandboxNetwork("loopback", lambda: 7).namespace_pid(42) == 42


def test_B31_plain():
    """The twin without a loop."""
    with px.sync.Sandbox() as first, px.sync.Sandbox() as second:
        server = first.run(LISTENER + "9000 plain", timeout=60)
        assert next(server.stream_lines()) == "ready\n"
        client = "exec 3<>/dev/tcp/127.0.0.1/9000; cat <&3"
        process = second.run(client, timeout=60, ns_pid_override=first.network.namespace_pid())
        assert process.communicate() == (b"plain", b"")
        sleeper = second.run("sleep 1000", timeout=None, ns_pid_override=first.network.namespace_pid())
        second.close()
        assert sleeper.returncode == -9


@looped
async def test_B29_udp():
    """A UDP port, added to a sandbox that runs: answers come back to who asked."""
    server = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 5300))\n"
    server += "print('ready', flush=True)\nwhile 1: data, to = s.recvfrom(999); s.sendto(data.upper(), to)"
    with outbound() as sandbox:
        process = await sandbox.run_script(server, timeout=None)
        assert await process.stdout.readline() == b"ready\n"
        (port,) = free_ports(1)
        found = sandbox.forward_port(5300, port, proto="udp")
        assert found == {"proto": "udp", "host_addr": "127.0.0.1", "host_port": port, "guest_port": 5300}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.settimeout(60)
            caller.connect(("127.0.0.1", port))
            caller.send(b"hello")
            assert await asyncio.to_thread(caller.recv, 99) == b"HELLO"
        with pytest.raises(SandboxError, match=str(port)):
            sandbox.forward_port(5301, port, proto="udp")


@looped
async def test_B32_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "of the host")
    with Sandbox(env={"ALL": "seen", "ONE": "of all"}) as sandbox:
        process = await sandbox.run("env", env={"ONE": "this"})
        lines = (await process.communicate())[0].decode().splitlines()
        assert not any("SECRET" in line for line in lines)
        assert {"HOME=/home/sandbox", "ALL=seen", "ONE=this", "PX_SANDBOX=1"} <= set(lines)
        assert (await said(sandbox, "echo $ONE; pwd", cwd="/tmp"))[1] == b"of all\n/tmp\n"


@looped
async def test_B33_after_close():
    sandbox = Sandbox()
    process = await sandbox.run("sleep 1000", timeout=None)
    flood = await sandbox.run("yes", timeout=None)
    sandbox.close()
    sandbox.close()
    assert process.returncode == -9
    assert flood.returncode == -9
    for use in (lambda: sandbox.run("true"), lambda: sandbox.run_script("1")):
        with pytest.raises(SandboxError, match="closed"):
            await use()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.__enter__()


@looped
async def test_one_expression():
    """The sandbox lives as long as its command, also if nobody else keeps it."""
    for number in range(50):  # descriptors are used again: none may be watched that is closed
        assert await (await Sandbox().run(f"echo {number}")).communicate() == (f"{number}\n".encode(), b"")


@looped
async def test_arguments_are_checked():
    for name in ("A=B", "", 7):
        with pytest.raises(ValueError, match="env"):
            Sandbox(env={name: "x"})
    with Sandbox() as sandbox:
        with pytest.raises(ValueError, match="A=B"):
            await sandbox.run("true", env={"A=B": "x"})
        for timeout in (0, -1, -0.5, float("nan")):
            with pytest.raises(ValueError, match="timeout"):
                await sandbox.run("true", timeout=timeout)
        process = await sandbox.run("true")
        with pytest.raises(ValueError, match="timeout"):
            await process.wait(timeout=-1)
        assert await process.wait(timeout=60) == 0


@looped
async def test_errors_have_pythons_names():
    for options, words in (
        ({"policy": {"allow-net": ["example.org"]}}, ('policy["allow-net"] needs enable_outbound=True', "enable_outbound=True")),
        ({"memory": "lots"}, ("memory: 'lots'", "512m")),
        ({"rootfs": "/", "rootfs_overlay": True, "policy": {"persist": True}}, ("persist_overlayfs=True", "rootfs_overlay_path=DIR")),
    ):
        with pytest.raises(SandboxError) as caught:
            Sandbox(**options)
        assert words[0] in caught.value.what
        assert words[1] in caught.value.fix
        assert "--" not in str(caught.value)


@looped
async def test_streams_have_no_bound_of_their_own():
    """The timeout of a call that names none is for wait() and communicate(); a session is read as long as it says something."""
    with Sandbox() as sandbox:
        for options in ({}, {"use_pty": True}):
            process = await sandbox.run("echo begin; sleep 0.2; echo end", **options)
            assert process._end_of_stream() == (None, 0.0)
            assert process._end_of(None)[1] == 10.0
            assert [line.strip() async for line in process.stream_lines()] == ["begin", "end"]
            assert await process.wait(timeout=60) == 0
            process.close_pty()
        process = await sandbox.run("true", timeout=7)
        assert process._end_of_stream()[1] == 7
        assert await process.wait(timeout=60) == 0


@looped
async def test_words_instead_of_a_line():
    with Sandbox() as sandbox:
        assert (await said(sandbox, ["printf", "%s|", "a b", "$(id)"]))[1] == b"a b|$(id)|"
        with pytest.raises(SandboxError) as caught:
            await sandbox.run(["no-such-program"])
        assert caught.value.name == "PX031"
        assert 'policy={"bind": ["/path/to/tool:/opt/tool:ro"]}.' in caught.value.fix
        with pytest.raises(ValueError, match="command"):
            await sandbox.run([])
        with pytest.raises(ValueError, match="null"):
            await sandbox.run("a\0b")


@looped
async def test_limits():
    with Sandbox(pids=20, policy={"limits": "try", "file-size": "1m", "nofile": 32}) as sandbox:
        _, _, stderr = await said(sandbox, "for i in $(seq 40); do sleep 5 & done >/dev/null")
        assert b"fork" in stderr
        assert (await said(sandbox, "ulimit -n"))[1] == b"32\n"
        assert (await said(sandbox, "head -c 2000000 /dev/zero > big"))[0] != 0
    with pytest.raises(SandboxError) as caught:
        Sandbox(memory="lots")
    assert caught.value.name == "PX002"
    with pytest.raises(SandboxError) as caught:
        Sandbox(policy={"no-such-field": "x"})
    assert caught.value.fix


async def limits_of(sandbox, command):
    process = await sandbox.run(command, timeout=60)
    await process.communicate()
    return process.result["status"], [row["limit"] for row in process.result["limits_hit"]]


@looped
async def test_a_full_disk_is_told():
    """Of a directory in memory by the command that filled it alone; of the home by whoever runs when the box is ended for it."""
    with Sandbox(policy={"tmpfs": "/small:size=1m"}) as sandbox:
        assert await limits_of(sandbox, "head -c 2m /dev/zero >/small/a") == ("disk", ["tmpfs"])
        assert await limits_of(sandbox, "exit 1") == ("nonzero", [])
        assert await limits_of(sandbox, "rm /small/a") == ("ok", [])
    with Sandbox(disk="2m", policy={"tmpfs": "/small"}) as sandbox:
        assert await limits_of(sandbox, "head -c 3m /dev/zero >/small/a") == ("disk", ["disk"])
        assert await limits_of(sandbox, "head -c 8m /dev/zero >a; sleep 50") == ("disk", ["disk"])


@looped
async def test_a_missing_root(tmp_path):
    for options in ({"rootfs": tmp_path / "no.tar"}, {"rootfs": tmp_path / "no.tar", "rootfs_path": tmp_path / "root"}):
        with pytest.raises(FileNotFoundError) as caught:
            Sandbox(**options)
        assert isinstance(caught.value, SandboxError)
        assert caught.value.name == "PX034"
    assert not (tmp_path / "root").exists()


@looped
async def test_what_is_refused_is_told():
    with Sandbox() as sandbox:
        process = await sandbox.run("unshare -U true")
        await process.communicate()
        assert [row["target"] for row in process.result["denials"]] == ["unshare"]


@looped
async def test_an_end_nobody_reads():
    """A command that nobody listens to can be waited for, closed and forgotten."""
    with Sandbox() as sandbox:
        await sandbox.run("echo unread")
        process = await sandbox.run("echo unread; exit 4")
        assert await process.wait(timeout=60) == 4
        assert await process.stdout.read() == b"unread\n"
    until(lambda: not running("echo unread"), "the end of the commands")


def test_errors_are_explained():
    error = SandboxError("what", why="why", fix="one\ntwo")
    assert str(error) == "what\nWhy: why\nFix: one\nFix: two"
    assert error.name == ""
    assert px.__version__
