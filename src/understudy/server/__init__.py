"""One process that holds declared tables and answers many analysts, each table from one budget.

It does no mathematics: doors call one gate, and the gate the calls of `project`, `sessions`, `releases` and
`validity`; only the ledger grants. What the server itself has to remember is `server.db`, a SQLite file beside
`server.yml`: losing it loses no budget.

    config, place, check       server.yml, where the state of its server is kept, and whether all is there to start
    store, schema, one_server  server.db: transactions, tables, and one server at a time
    tokens, logins,            who may enter by which door: tokens, one-time links, browser logins;
    secret, scram              what is kept of their secrets
    asked, approvals, pauses   questions asked, questions that wait for a custodian, tables that are paused
    audit_log                  who did what, chained by hashes as the ledger is
    backup, restore,           copies of ledgers, server.db and witnesses, and the way back
    backup_folder

The server may import everything below the command line except `understudy.table` and `understudy.noise`: it can
waste budget or answer badly, and cannot leak. Start with `server.config.ServerConfig`.
"""
