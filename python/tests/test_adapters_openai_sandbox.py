"""px.adapters.openai_sandbox with the SDK: sessions, snapshots, and an agent with the SDK's scripted model."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from conftest import looped, running, until, word

from px import Sandbox, SandboxError

pytest.importorskip("agents", reason="openai-agents is not installed")
pytest.importorskip("agents.sandbox", reason="this openai-agents has no sandboxes")
testing = pytest.importorskip("agents.testing", reason="this openai-agents has no scripted model")

from agents import RunConfig, Runner, set_tracing_disabled
from agents.sandbox import LocalSnapshotSpec, Manifest, SandboxAgent, SandboxPathGrant, SandboxRunConfig
from agents.sandbox.entries import File
from agents.sandbox.errors import ExecTimeoutError, InvalidManifestPathError, WorkspaceArchiveReadError, WorkspaceReadNotFoundError

from px.adapters.openai_sandbox import SandboxClient

HOME = "/home/sandbox"
set_tracing_disabled(True)


@looped
async def test_a_session():
    manifest = Manifest(entries={"given.txt": File(content=b"given\n")}, environment={"value": {"KEY": "v"}})
    client = SandboxClient()
    session = await client.create(manifest=manifest)
    async with session:
        assert await session.running()
        done = await session.exec("cat given.txt; pwd; echo $KEY; echo err >&2; exit 3")
        assert (done.stdout, done.stderr, done.exit_code) == (f"given\n{HOME}\nv\n".encode(), b"err\n", 3)
        assert b"Read-only" in (await session.exec("touch /usr/x")).stderr
        await session.write(Path("a/b.bin"), io.BytesIO(bytes(range(256))))
        assert (await session.read(Path("a/b.bin"))).read() == bytes(range(256))
        assert {Path(entry.path).name for entry in await session.ls(".")} >= {"a", "given.txt"}
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read(Path("none"))
        seconds = word()
        with pytest.raises(ExecTimeoutError):
            await session.exec(f"sleep {seconds}", timeout=1)
        until(lambda: not running(seconds), "the command goes on")
    await client.delete(session)
    assert not await session.running()


@looped
async def test_links_of_the_sandbox_lead_nowhere_else(tmp_path):
    (tmp_path / "secret").write_text("secret")
    client = SandboxClient()
    async with await client.create() as session:
        await session.exec(f"ln -s {tmp_path}/secret leak; ln -s {tmp_path} dir; truncate -s 1T large")
        for name in ("leak", "dir/secret"):
            with pytest.raises(WorkspaceReadNotFoundError):
                await session.read(Path(name))
        with pytest.raises(WorkspaceArchiveReadError):
            await session.read(Path("large"))
        with pytest.raises(InvalidManifestPathError):
            await session.read(Path("/etc/passwd"))
    assert (tmp_path / "secret").read_text() == "secret"


@looped
async def test_a_manifest_that_wants_the_host_is_refused(tmp_path):
    grant = SandboxPathGrant(path=str(tmp_path))
    with pytest.raises(SandboxError, match="extra_path_grants"):
        await SandboxClient().create(manifest=Manifest(extra_path_grants=(grant,)))


@looped
async def test_a_snapshot_is_resumed_in_another_sandbox(tmp_path):
    client = SandboxClient(lambda: Sandbox(pids=64))
    session = await client.create(snapshot=LocalSnapshotSpec(base_path=tmp_path / "snapshots"))
    async with session:
        await session.exec("mkdir d; echo kept > d/f; ln -s f d/link")
    payload = client.serialize_session_state(session.state)
    again = await client.resume(client.deserialize_session_state(payload))
    async with again:
        assert (await again.exec("cat d/link; readlink d/link")).stdout == b"kept\nf\n"


@looped
async def test_an_agent_in_the_sandbox():
    calls = [("exec_command", {"cmd": "echo $((6 * 7)) > n; cat n; touch /usr/x"}), ("exec_command", {"cmd": "cat n"})]
    steps = [[testing.function_call(name, args, call_id=str(number))] for number, (name, args) in enumerate(calls)]
    model = testing.ScriptedModel([*steps, [testing.assistant_message("done")]])
    config = RunConfig(sandbox=SandboxRunConfig(client=SandboxClient()))
    result = await Runner.run(SandboxAgent(name="a", model=model), "go", run_config=config, max_turns=10)
    said = [str(item.output) for item in result.new_items if item.type == "tool_call_output_item"]
    assert result.final_output == "done"
    assert "42" in said[0]
    assert "Read-only" in said[0]
    assert "42" in said[1]
