"""What is published once: a stand-in or synthetic table made under one price, with an error for every answer.

`releases.making` is the call and `releases.release` the value it returns; `releases.methods` lists the methods and
`releases.method_choice` picks one; there is one file or folder for each method, under its name in the literature.
`releases.evidence` holds what a method that goes by rounds has bought, and the intervals that are proved by it.
`releases.folder` writes and reads what `release.save` publishes: tables, answers, certificate and report.

A method is a client of a Curator: it proposes a look, pays for it, and learns the noisy result. Everything
after that is post-processing of released numbers and costs nothing. The room may import `standin`, `mechanism`
and `curator`, never the truth or a sampler. Start with `releases.making.release`.
"""
