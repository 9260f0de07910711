"""The door for agents: the Model Context Protocol over HTTP at `/mcp`, and over standard input and output.

    door       `/mcp` on the port of HTTP: who calls, from where, and the first request that loads the protocol
    protocol   the protocol's own server, by the package `mcp`: what is listed, called, read and prompted
    tools      what an agent can do, each a call of the gate; schemas, what goes in and what comes out
    published  parts of a release as an agent reads them
    guide      what an agent is told about asking
    local      one project for one agent on this machine, without a port

A tool decides nothing: it calls the gate, as every door does, so that rates, limits, approvals, the history and
the grid of times are those of HTTP. The package `mcp` takes most of a second to load: only `protocol` imports
it, with the first request that carries a valid token.
"""
