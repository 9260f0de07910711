"""The only place where random numbers are drawn: exact samplers on integers, and the laws that they follow.

`noise.law` has the discrete Laplace and Gaussian laws with their tails and quantiles, and nothing random in it.
`noise.samplers` draws from them, bit by bit, from a `NoiseSource`: the operating system's generator in the
product, a seeded one in tests and simulations, always passed explicitly. `noise.selection` draws one of many
candidates, `noise.normal` and `noise.cosine` numbers of continuous laws, rounded, and `noise.bounded` numbers that
never exceed a reach. There are no floating-point densities on the way, so the law of a released number is the
stated one and not an approximation of it.

It imports `errors` and `rational` only; mechanisms and the Curator draw from it, everybody else is forbidden
to. Start with `noise.samplers.NoiseSource`.
"""
