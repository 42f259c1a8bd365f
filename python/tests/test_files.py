"""Rows F1 to F25: files for a model."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from px import SandboxError
from px.files import (
    EditError,
    FileSandbox,
    FileSandboxConfig,
    FileSandboxError,
    FileSandboxProtocol,
    FileSandboxToolset,
    FileTooLargeError,
    NotAFileError,
    NotTextError,
    PathConfig,
    PathNotInSandboxError,
    PathNotWritableError,
    PatternError,
    SandboxFileExistsError,
    SandboxFileNotFoundError,
    SuffixNotAllowedError,
)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "portfolio" / "sub").mkdir(parents=True)
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("secret")
    (tmp_path / "portfolio" / "a.md").write_text("hello")
    (tmp_path / "portfolio" / "B.MD").write_text("upper")
    (tmp_path / "portfolio" / "x.txt").write_text("text")
    (tmp_path / "portfolio" / "sub" / "c.md").write_text("sub")
    (tmp_path / "pipeline" / "b.txt").write_text("b")
    return tmp_path


@pytest.fixture
def sandbox(place):
    return FileSandbox(
        FileSandboxConfig(
            paths={
                "portfolio": PathConfig(root="portfolio", mode="rw", suffixes=[".md", ".pdf"], max_file_bytes=20),
                "pipeline": PathConfig(root=place / "pipeline"),
            }
        ),
        base_path=place,
    )


def refused(kind, function, *words, place=None, **more):
    with pytest.raises(kind) as caught:
        function(*words, **more)
    error = caught.value
    assert isinstance(error, FileSandboxError)
    assert isinstance(error, SandboxError)
    assert error.code
    assert error.what
    if place is not None:
        assert str(place) not in str(error) + error.what + error.why + error.fix, "a path of the host is shown"  # F20
    return error


def test_F1_F5_read(sandbox):
    assert sandbox.read("portfolio/a.md") == "hello"
    assert sandbox.read("portfolio:a.md") == "hello"
    assert sandbox.read("./portfolio/a.md") == "hello"
    assert sandbox.list_files("./portfolio") == sandbox.list_files("portfolio")
    assert sandbox.resolve("portfolio") == sandbox.resolve("portfolio/")
    with pytest.raises(NotAFileError):
        sandbox.read("portfolio")
    assert sandbox.read("portfolio/B.MD") == "upper"
    assert sandbox.readable_roots == ["portfolio", "pipeline"]
    assert sandbox.writable_roots == ["portfolio"]


@pytest.mark.parametrize(
    "path",
    [
        "portfolio/../pipeline/b.txt",
        "portfolio/../../secret",
        "../secret",
        "./../secret",
        "/etc/passwd",
        "nope/x",
        "",
        "~/.x",
        "portfolio/\0",
        "portfolio/out.md",
        "portfolio/outdir/secret.md",
    ],
)
def test_F2_F13_F20_outside(sandbox, place, path):
    (place / "portfolio" / "out.md").symlink_to(place / "outside" / "secret.md")
    (place / "portfolio" / "outdir").symlink_to(place / "outside")
    error = refused(PathNotInSandboxError, sandbox.read, path, place=place)
    first, second = error.message.splitlines()
    assert first.startswith("Cannot access '")
    assert second == "Readable paths: portfolio, pipeline"
    assert not sandbox.can_read(path) or path.startswith("portfolio/out")
    refused(PathNotInSandboxError, sandbox.write, path, "x", place=place)
    assert (place / "outside" / "secret.md").read_text() == "secret"


def test_F3_read_only(sandbox, place):
    error = refused(PathNotWritableError, sandbox.write, "pipeline/new", "x", place=place)
    assert str(error) == "Cannot write to 'pipeline/new': path is read-only.\nWritable paths: portfolio"
    error = refused(PathNotWritableError, sandbox.derive(inherit=True, readonly=True).write, "portfolio/a.md", "x")
    assert error.message.endswith("Writable paths: none")


def test_F4_suffix(sandbox, place):
    error = refused(SuffixNotAllowedError, sandbox.read, "portfolio/x.txt", place=place)
    assert ".md, .pdf" in error.message
    refused(SuffixNotAllowedError, sandbox.write, "portfolio/none", "x", place=place)


def test_F6_F7_size(sandbox, place):
    (place / "portfolio" / "full.md").write_text("x" * 20)
    (place / "portfolio" / "over.md").write_text("x" * 21)
    assert sandbox.read("portfolio/full.md") == "x" * 20
    error = refused(FileTooLargeError, sandbox.read, "portfolio/over.md", place=place)
    assert "21" in error.message
    assert "20" in error.message
    error = refused(FileTooLargeError, sandbox.write, "portfolio/a.md", "y" * 21, place=place)
    assert error.message.startswith("Cannot write")
    assert sandbox.read("portfolio/a.md") == "hello"


def test_F8_nothing_to_read(sandbox, place):
    error = refused(SandboxFileNotFoundError, sandbox.read, "portfolio/none.md", place=place)
    assert error.message == "File not found: portfolio/none.md"
    assert isinstance(error, FileNotFoundError)
    refused(NotAFileError, sandbox.read, "portfolio/sub", place=place)


def test_F9_F10_F11_parts(sandbox, place):
    assert sandbox.read("portfolio/a.md", max_chars=3) == "hel"
    part = sandbox.read_part("portfolio/a.md", 3)
    assert (part.content, part.truncated, part.total_chars, part.offset, part.chars_read) == ("hel", True, 5, 0, 3)
    assert sandbox.read("portfolio/a.md", offset=3) == "lo"
    part = sandbox.read_part("portfolio/a.md", offset=99)
    assert (part.content, part.truncated) == ("", False)
    (place / "portfolio" / "u.md").write_text("äöü€", encoding="utf-8")
    assert sandbox.read("portfolio/u.md", max_chars=3) == "äöü"
    assert sandbox.read("portfolio/u.md", max_chars=1, offset=3) == "€"
    with pytest.raises(ValueError, match="counted"):
        sandbox.read("portfolio/a.md", max_chars=-1)


def test_F12_not_text(sandbox, place):
    (place / "portfolio" / "bin.md").write_bytes(b"\xff\xfe\x00")
    refused(NotTextError, sandbox.read, "portfolio/bin.md", place=place)
    fd = sandbox.open("portfolio/bin.md")
    assert os.read(fd, 10) == b"\xff\xfe\x00"
    os.close(fd)
    refused_open = pytest.raises(PathNotInSandboxError)
    with refused_open:
        sandbox.open("portfolio/\0")


def test_F13_a_directory_that_becomes_a_link(sandbox, place):
    """Swapped again and again while it is read: what is outside never comes out."""
    inside, link, stop = place / "portfolio" / "swap", place / "portfolio" / "link", threading.Event()
    inside.mkdir()
    (inside / "secret.md").write_text("mine")
    link.symlink_to(place / "outside")

    def swap():
        while not stop.is_set():
            os.rename(inside, place / "portfolio" / "aside")
            os.rename(link, inside)
            os.rename(inside, link)
            os.rename(place / "portfolio" / "aside", inside)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(500):
            try:
                assert sandbox.read("portfolio/swap/secret.md") == "mine"
            except FileSandboxError:
                pass
    finally:
        stop.set()
        thread.join()


def test_F14_F16_links(sandbox, place):
    (place / "portfolio" / "in.md").symlink_to("a.md")
    assert sandbox.read("portfolio/in.md") == "hello"
    assert sandbox.resolve("portfolio/in.md") == place / "portfolio" / "a.md"
    (place / "portfolio" / "out.md").symlink_to(place / "outside" / "secret.md")
    refused(PathNotInSandboxError, sandbox.write, "portfolio/out.md", "x", place=place)
    refused(PathNotInSandboxError, sandbox.resolve, "portfolio/out.md", place=place)
    assert (place / "outside" / "secret.md").read_text() == "secret"


def test_F15_new_directories(sandbox, place):
    sandbox.write("portfolio/new/deep/n.md", "n")
    assert (place / "portfolio" / "new" / "deep" / "n.md").read_text() == "n"
    sandbox.make_directory("portfolio/empty")
    assert (place / "portfolio" / "empty").is_dir()


def test_F17_F18_lists(sandbox, place):
    (place / "portfolio" / ".hidden.md").write_text("h")
    assert sandbox.list_files() == [
        "pipeline/b.txt",
        "portfolio/.hidden.md",
        "portfolio/B.MD",
        "portfolio/a.md",
        "portfolio/sub/c.md",
        "portfolio/x.txt",
    ]
    assert sandbox.list_files("portfolio", "*.md") == ["portfolio/.hidden.md", "portfolio/a.md"]
    assert sandbox.list_files("portfolio", "**/*.md") == [
        "portfolio/.hidden.md",
        "portfolio/a.md",
        "portfolio/sub/c.md",
    ]
    assert sandbox.list_files("portfolio/sub") == ["portfolio/sub/c.md"]
    for pattern in ("../*", "/x", "~/x", "a/../../*"):
        refused(PatternError, sandbox.list_files, "portfolio", pattern, place=place)


def test_F19_questions_never_raise(sandbox):
    for path in ("portfolio/a.md", "", "\0", "nope", "/", "portfolio", "\udcff", "portfolio/" + "x" * 100000, None, 7):
        assert sandbox.can_read(path) in (True, False)
        assert sandbox.can_write(path) in (True, False)
    assert sandbox.can_read("pipeline/b.txt")
    assert sandbox.can_write("portfolio/n.md")
    assert not sandbox.can_write("pipeline/b.txt")


def test_F21_edit(sandbox, place):
    assert "+hEllo" in sandbox.edit("portfolio/a.md", "e", "E")
    assert sandbox.read("portfolio/a.md") == "hEllo"
    assert "text not found" in refused(EditError, sandbox.edit, "portfolio/a.md", "zz", "y", place=place).message
    sandbox.write("portfolio/a.md", "a a a")
    assert "found 3 times" in refused(EditError, sandbox.edit, "portfolio/a.md", "a", "b", place=place).message
    sandbox.edit("portfolio/a.md", "a a a", "b", dry_run=True)
    assert sandbox.read("portfolio/a.md") == "a a a"
    assert "-a a a" in sandbox.diff("portfolio/a.md", "c")


def test_F22_move_copy_delete(sandbox, place):
    error = refused(SandboxFileExistsError, sandbox.move, "portfolio/a.md", "portfolio/B.MD", place=place)
    assert isinstance(error, FileExistsError)
    (place / "pipeline" / "d.md").write_text("d")
    sandbox.copy("pipeline/d.md", "portfolio/d.md")
    refused(PathNotWritableError, sandbox.copy, "portfolio/d.md", "pipeline/e.md", place=place)
    refused(PathNotWritableError, sandbox.move, "pipeline/d.md", "portfolio/e.md", place=place)
    sandbox.move("portfolio/d.md", "portfolio/m/e.md")
    assert sandbox.read("portfolio/m/e.md") == "d"
    sandbox.delete("portfolio/m/e.md")
    refused(SandboxFileNotFoundError, sandbox.delete, "portfolio/m/e.md", place=place)
    assert sandbox.stat("portfolio/a.md")["size"] == 5
    assert sandbox.search("hell") == [{"path": "portfolio/a.md", "line": 1, "text": "hello"}]
    assert sandbox.search("HELL", ignore_case=True)[0]["path"] == "portfolio/a.md"


def test_F23_nested_names(place):
    for name in ("deep", "top"):
        (place / name).mkdir()
    sandbox = FileSandbox(
        FileSandboxConfig(
            paths={"output": {"root": place / "top", "mode": "rw"}, "output/deep": {"root": place / "deep"}}
        )
    )
    sandbox.write("output/deepx", "in output")
    assert (place / "top" / "deepx").exists()
    refused(PathNotWritableError, sandbox.write, "output/deep/x", "no", place=place)
    assert sandbox.resolve("output/deep/x") == place / "deep" / "x"


def test_F24_configuration(place):
    for paths in (
        {},
        {"a": PathConfig(root=place), "b": PathConfig(root=place / "portfolio")},
        {"../a": PathConfig(root=place)},
        {"a": PathConfig(root=place / "pipeline" / "b.txt")},
    ):
        with pytest.raises(SandboxError):
            FileSandbox(FileSandboxConfig(paths=paths))
    for fields in ({"root": "x", "mode": "wx"}, {"root": "x", "max_file_bytes": 0}):
        with pytest.raises(ValueError, match="mode|max_file_bytes"):
            PathConfig(**fields)
    with pytest.raises(TypeError, match="number of bytes"):
        PathConfig("x", max_file_bytes="12")
    assert isinstance(FileSandbox(FileSandboxConfig({"p": PathConfig(place / "pipeline")})), FileSandboxProtocol)
    with pytest.raises(TypeError):
        FileSandboxConfig(paths={"a": {"root": "x", "unknown": 1}})


def test_F25_derive(sandbox, place):
    none = sandbox.derive()
    assert none.readable_roots == []
    assert "Readable paths: none" in refused(PathNotInSandboxError, none.read, "portfolio/a.md", place=place).message
    reader = sandbox.derive(allow_read=["portfolio/sub"])
    assert reader.read("portfolio/sub/c.md") == "sub"
    assert reader.resolve("portfolio/sub/c.md") == place / "portfolio" / "sub" / "c.md"
    refused(PathNotWritableError, reader.write, "portfolio/sub/c.md", "x", place=place)
    refused(PathNotInSandboxError, reader.read, "portfolio/a.md", place=place)
    writer = sandbox.derive(allow_write=["portfolio"])
    writer.write("portfolio/w.md", "w")
    assert writer.read("portfolio/w.md") == "w"
    task = sandbox.derive(allow_write=["portfolio/out/task42"])
    task.write("portfolio/out/task42/r.md", "r")
    assert (place / "portfolio" / "out" / "task42" / "r.md").read_text() == "r"
    for names in (
        {"allow_read": ["portfolio/none"]},
        {"allow_write": ["portfolio/none"], "readonly": True},
        {"allow_write": ["pipeline/none"]},
        {"allow_write": ["portfolio/a.md/none"]},
    ):
        with pytest.raises(FileSandboxError):
            sandbox.derive(**names)
    assert not (place / "portfolio" / "none").exists()
    with pytest.raises(FileSandboxError):
        reader.derive(allow_write=["portfolio/sub"])
    with pytest.raises(FileSandboxError):
        sandbox.derive(allow_write=["pipeline"])


def test_constructors_of_errors():
    """With the seed's arguments and texts, for whoever raises them himself."""
    assert (
        str(PathNotInSandboxError("x", ["a", "b"]))
        == "Cannot access 'x': path is outside sandbox.\nReadable paths: a, b"
    )
    assert str(PathNotWritableError("x", [])) == "Cannot write to 'x': path is read-only.\nWritable paths: none"
    assert str(SuffixNotAllowedError("x", [".md"])) == "Cannot access 'x': suffix not allowed.\nAllowed suffixes: .md"
    assert str(FileTooLargeError("x", 5, 3)) == "Cannot read 'x': file too large (5 bytes).\nMaximum allowed: 3 bytes"


def test_tools_of_a_model(sandbox, place):
    tools = FileSandboxToolset(sandbox)

    async def main():
        assert await tools.read_file(None, "portfolio/a.md") == "hello"
        assert await tools.write_file(None, "portfolio/t.md", "täxt") == "Written 4 characters to portfolio/t.md"
        assert await tools.list_files(None, "portfolio", "t*") == ["portfolio/t.md"]
        assert (await tools.call("edit_file", {"path": "portfolio/t.md", "old_text": "ä", "new_text": "e"}))["ok"]
        answer = await tools.call("read_file", {"path": "../secret"})
        assert answer["ok"] is False
        assert answer["error"]["class"] == "PathNotInSandboxError"
        assert answer["error"]["retryable"] is False
        assert str(place) not in str(answer)
        for name, words in (
            ("no_tool", {}),
            ("read_file", {}),
            ("read_file", {"path": 7}),
            ("read_file", {"path": "portfolio/none.md"}),
        ):
            assert (await tools.call(name, words))["ok"] is False

    asyncio.run(main())


def test_threads(sandbox):
    wrong = []

    def work(number):
        for turn in range(50):
            sandbox.write(f"portfolio/t{number}.md", f"{number}.{turn}")
            if sandbox.read(f"portfolio/t{number}.md") != f"{number}.{turn}":
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_git_directories(tmp_path):
    root = tmp_path / "r"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "linked" / "real").mkdir(parents=True)
    (root / "linked" / ".git").symlink_to("real")
    (root / "a").write_text("a")
    config = {"r": PathConfig(root, "rw")}
    sandbox = FileSandbox(FileSandboxConfig(config))
    tools = FileSandboxToolset(sandbox)
    for path in ("r/.git/config", "r/.git/hooks/x", "r/.GIT/x", "r/linked/.git/x", "r/linked/real/x", "r/x/.git/y"):
        assert not sandbox.can_write(path)
        answer = asyncio.run(tools.call("write_file", {"path": path, "content": "x"}))
        assert answer["error"]["class"] == "PathNotWritableError", path
        with pytest.raises(PathNotWritableError):
            sandbox.move("r/a", path)
    with pytest.raises(PathNotWritableError):
        sandbox.derive(allow_write=["r"]).write("r/.git/config", "x")
    for yes in (True, 1):
        loose = FileSandbox(FileSandboxConfig(config, git_writable=yes))
        assert loose.can_write("r/.git/config") is (yes is True)
    FileSandbox(FileSandboxConfig(config, git_writable=True)).write("r/.git/config", "x")
    sandbox.write("r/.gitignore", "x")


def test_a_root_that_is_not_there(tmp_path):
    """One to be written is made; one to be read is a name that somebody has misspelt."""
    FileSandbox(FileSandboxConfig(paths={"new": PathConfig(root=tmp_path / "new", mode="rw")})).write("new/a.md", "1")
    assert (tmp_path / "new" / "a.md").read_text() == "1"
    with pytest.raises(SandboxError) as caught:
        FileSandbox(FileSandboxConfig(paths={"typo": PathConfig(root=tmp_path / "typo")}))
    assert caught.value.name == "PX310"
    assert not (tmp_path / "typo").exists()
