"""Private mechanisms: each a frozen value that knows its law, its event, its price and its error.

One file for each mechanism, under its name in the literature: Laplace, Gaussian, exponential, noisy maximum,
sparse vector, randomised response, SmallDB and the net mechanism, the matrix mechanism (`mechanism.matrix`:
ranges and residuals), and looks at many counts at once. A docstring states Privacy, Accuracy, Complexity and Gap;
every cited statement has a test of that name, and privacy is tested on the exact law of the output.

A mechanism draws from the `noise` it is handed and never fetches data: a Curator evaluates what the mechanism
asks for and passes it in. The room may import `noise`, `privacy`, `query` and `theory`. Start with
`mechanism.look` (what a Curator needs of a mechanism) and `mechanism.laplace`.
"""
