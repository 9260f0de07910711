"""The Postgres door: SQL programs at the same gate as everybody else.

    wire, frames     messages of protocol 3 as bytes, without input or output
    transport        one client's socket: whole frames in, bytes out, within limits of size and time
    exchange, start  who connects: TLS, SCRAM-SHA-256, the first settings
    door             the port: how many connections, who may cancel what, stopping
    connection       the messages of a client in order: simple and extended, errors
    session, portals, settings   what a connection remembers: its transaction, statements, cursors, settings
    lexer, commands, planning    statements apart, and those that are about the connection itself
    routing, naming  a SELECT: to the gate or to the desk, what its columns are called, or why it is refused
    asking, synthetic            what it does when it is executed
    catalog          what programs read before they ask
    values, arrays, numerics, parameters, copying, notices, states   what is sent, in Postgres' types and codes

The door decides nothing about privacy: every SELECT on a served table is an `Inquiry` to the gate.
"""
