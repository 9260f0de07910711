"""The pages, one file for each group of them: a view takes a `Visit` and returns a reply.

`entrance` logs in and out; `ask`, `table` and `answers` (the history, and one answer) are an analyst's day;
`releases` and `boards` show what was published and scored; `ledger` and `audit` are for auditors, `admin` for
custodians, and `api` describes the server to programs. Start with `ask`.
"""
