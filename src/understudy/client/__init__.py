"""A served table from Python: `us.connect(url)`, over the standard library's HTTP and nothing else.

`client.connect` opens a `Connection`, `client.remote_table` asks one of its tables, `client.remote_session` asks
in a session of it, `client.transport` sends requests and sends them again, `client.address` and
`client.token_file` say where the server is and which token opens it. What comes back is made into the library's
own objects: `client.decode` makes answers, `client.refusals` errors, `client.told` prices and budgets,
`client.history` what was asked, and `client.published` releases. `client.agent_bridge` hands the messages of an
agent to a server and back.

A client holds no table, reads no declaration and does no mathematics. It imports neither the server nor anything
that opens a table: whoever has it has a token, and no more.
"""
