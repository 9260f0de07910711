"""The demo: an invented town of people, its declaration, and answers with the truth beside every one of them.

`town` invents the people and is used in tests and examples as well; `demo` questions the town privately and
`trials` releases it, puts a thousand questions to a session and attacks a holdout. The town is public fiction,
so showing the truth costs nobody anything.

It is a guest: it may import the whole library below the command line, and nothing but `understudy demo` imports
it. Start with `understudy_demo.demo.run`.
"""
