#!/usr/bin/env python3
"""A Python prompt on a terminal, without an event loop."""

from px.sync import Sandbox

with Sandbox() as sandbox:
    process = sandbox.run("python3 -q", use_pty=True, timeout=60)
    text, asked = "", False
    for piece in process.stream(decode=True):
        text += piece
        if not asked and ">>> " in text:
            asked = True
            process.set_terminal_size(40, 120)
            process.send(b"import os; os.get_terminal_size().columns\nexit()\n")
    assert "120" in text, text
    print("the prompt saw a terminal of 120 columns")
    process.close_pty()
