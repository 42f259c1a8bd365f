#!/usr/bin/env python3
"""The names of hosted sandboxes, without an event loop; with one the same calls are awaited."""

from px.sync import Sandbox

SERVER = "python3 -u -m http.server --bind 127.0.0.1 8000"

with Sandbox() as sandbox:
    sandbox.files.write("site/index.html", "hello\n")
    print([entry.path for entry in sandbox.files.list("site")])
    server = sandbox.commands.run(SERVER, background=True, cwd="/home/sandbox/site", timeout=None)
    asked = sandbox.commands.run(
        """for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/8000 && break || sleep 0.1; done 2>/dev/null
        printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3 | tail -n 1"""
    )
    print(asked.stdout, end="")
    server.kill()
    print(server.wait().exit_code)
