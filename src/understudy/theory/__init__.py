"""The bounds that the product relies on, as pure functions: what each states, when it holds, and a refusal where
it does not.

One file for each lecture or paper, under its name. A function takes public numbers (rows, queries, epsilon, …),
returns a bound, and cites the statement it carries out; a cited statement has a test of that name. Where the
printed statement is wrong, the corrected one stands here and ``docs/errata.md`` shows the counterexample. The
statements that mechanisms, planner and certificates do not call are in `understudy_textbook`, whose index lists
both.

Nothing here looks at data or draws noise. The room imports `privacy`, `query`, `rational` and `errors`;
mechanisms, stand-ins, the planner and the holdout take their widths from it. Start with the lecture or paper
you have in hand.
"""
