"""px: commands in sandboxes, from Python.

    from px import Sandbox

    with Sandbox() as sandbox:
        process = await sandbox.run("echo hello")
        stdout, stderr = await process.communicate()

px.sync has the same without an event loop, px.executor one call for one command, px.files a file sandbox for a model.
"""

from ._async import Sandbox, SandboxedProcess
from ._core import SandboxNetwork
from ._errors import CommandError, SandboxError, SandboxTimeout
from ._px import version as _version

__version__ = _version()
__all__ = [
    "CommandError",
    "Sandbox",
    "SandboxError",
    "SandboxNetwork",
    "SandboxTimeout",
    "SandboxedProcess",
    "__version__",
]
