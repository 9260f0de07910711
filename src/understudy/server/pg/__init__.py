"""The Postgres door: SQL programs at the same gate as everybody else.

    wire, frames     messages of protocol 3 as bytes, without input or output
    transport        one client's socket: whole frames in, bytes out, within limits of size and time
    exchange, start  who connects: TLS, SCRAM-SHA-256, the first settings
    door             the port: how many connections, who may cancel what, stopping
    connection       the messages of a client in order: simple and extended, portals, errors
    lexer, commands  statements apart, and those that are about the connection itself
    routing          a SELECT: to the gate, to the desk, or refused
    running          what a plan does when it is executed
    values, arrays, parameters, copying, notices, states   what is sent and received, in Postgres' types and codes

The door decides nothing about privacy: every SELECT on a served table is an `Inquiry` to the gate.
"""
