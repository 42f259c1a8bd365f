"""px in agent frameworks: one module for each, which needs its framework when it is imported and not before.

    px.adapters.pydantic_ai     toolsets
    px.adapters.langchain       tools
    px.adapters.deepagents      a backend
    px.adapters.smolagents      a Python executor
    px.adapters.openai_agents   tools, a shell, the entry of an MCP server
    px.adapters.openai_sandbox  a sandbox client
    px.adapters.mcp             entries of clients' configurations; needs no framework

What a model asks for runs in the sandbox, with an end in time and in size; what goes wrong is told to it as a value.
"""
