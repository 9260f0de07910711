"""One process that holds declared tables and answers many analysts, each table from one budget.

It does no mathematics: doors call one gate, and the gate the calls of `project`, `sessions`, `releases` and
`validity`; only the ledger grants. What the server itself has to remember is `server.db`, a SQLite file beside
`server.yml`: losing it loses no budget.

    config, place, check       server.yml, where the state of its server is kept, and whether all is there to start
    store, schema, one_server  server.db: transactions, tables, and one server at a time
    tokens, logins,            who may enter by which door: tokens, one-time links, browser logins;
    secret, scram              what is kept of their secrets
    asked, approvals, pauses   questions asked, questions that wait for a custodian, tables that are paused
    served_tables              the declared tables, each with its session, opened anew where they fail
    gate                       the one way of a question, whatever door it came through; below it
    inquiry, answering,        a question with its terms; its steps on threads; answers that are sent again;
    answer_cache, prices,      what is said of prices, answers and tables
    replies, described
    queue, pace                whose turn it is, how fast each may ask, and when replies leave
    problems                   refusals as every door tells them
    auditing, served_boards,   what stands behind the gate beside questions: ledgers and the audit log,
    served_releases,           leaderboards, releases and the processes that make them, and answers from
    release_answers            releases, which cost nothing
    http                       the HTTP door, its two ports and what guards them
    mcp                        the door for agents, at /mcp of the HTTP door or for one project without a port
    run, logs, metrics         a running server from start to stop, its log, and what can be watched
    audit_log                  who did what, chained by hashes as the ledger is
    backup, restore,           copies of ledgers, server.db and witnesses, and the way back
    backup_folder
    pruning                    old questions that are forgotten

The server may import everything below the command line except `understudy.table` and `understudy.noise`: it can
waste budget or answer badly, and cannot leak. Start with `server.config.ServerConfig`.
"""
