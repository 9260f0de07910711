"""The matrix mechanism: whole combinations of counts are measured with noise, and answers are made from them.

`one_marginal`        `Strategy`: a product of matrices on one marginal, with Laplace or Gaussian noise.
`many_marginals`      `JointStrategy`: products on many cliques, each with its own Gaussian noise, priced jointly.
`ranges`              Which combinations of one ordered attribute answer all its ranges, or prefixes, best.
`bases`               What is measured of one attribute, and how its cells and ranges come out of it.
`residual_plan`       The residuals below a workload of marginals, each as precise as the workload needs.
`residuals_of_order`  The residuals of all marginals up to an order, with one noise and whole weights.
"""
