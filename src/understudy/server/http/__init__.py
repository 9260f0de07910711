"""The HTTP door: requests translated into calls of the gate, and what these return or refuse into replies.

    app                       the applications of the two ports, and problems in one shape
    protocol, security        how long a connection may take and how much it may send; headers, hosts, sizes
    who, bodies, replying     who calls; what a body says; how replies and refusals are written
    tables, asks, sessions,   the addresses for analysts; questions have a lane of their own before all routes
    history, releases, boards
    ledger                    the addresses for auditors
    admin                     the addresses for custodians, on a port of their own

A route decides nothing: it finds out who calls, and calls `server.gate` or what stands behind it.
"""
