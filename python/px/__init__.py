"""px: commands in sandboxes, from Python.

    from px import Sandbox

    with Sandbox() as sandbox:
        process = await sandbox.run("echo hello")
        stdout, stderr = await process.communicate()

That is for asyncio, uvloop and trio. px.sync has the same without an event loop, px.executor one call for one command,
px.files a file sandbox for a model, px.tasks a directory for each task and what its actions change, px.worker the
boundaries of an agent and its shell tool.
"""

try:
    from . import _px
except ImportError as error:  # pragma: no cover - of machines that lack a library
    raise ImportError(
        f"{error}. px needs Linux on x86-64, Python 3.11 and the libraries jansson, libcrypto and libyaml "
        "(Debian: apt-get install libjansson4 libssl3 libyaml-0-2), and a package that was built: pip install ./python"
    ) from error

from ._async import Sandbox, SandboxedProcess
from ._core import SandboxNetwork
from ._errors import CommandError, SandboxError, SandboxTimeout
from ._hosted import CommandHandle, CommandResult, EntryInfo, PtySize

__version__ = _px.version()
__all__ = [
    "CommandError",
    "CommandHandle",
    "CommandResult",
    "EntryInfo",
    "PtySize",
    "Sandbox",
    "SandboxError",
    "SandboxNetwork",
    "SandboxTimeout",
    "SandboxedProcess",
    "__version__",
]
