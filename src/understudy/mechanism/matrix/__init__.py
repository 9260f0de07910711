"""The matrix mechanism: whole combinations of counts are measured with noise, and answers are made from them.

`one_marginal`        `Strategy`: a product of matrices on one marginal, with Laplace or Gaussian noise.
`many_marginals`      `JointStrategy`: products on many cliques, each with its own Gaussian noise, priced jointly.
`ranges`              Which combinations of one ordered attribute answer all its ranges, or prefixes, best.
`bases`               What is measured of one attribute, and how its cells and ranges come out of it.
`residual_plan`       The residuals below a workload of marginals, each as precise as the workload needs.
`residuals_of_order`  The residuals of all marginals up to an order, with one noise and whole weights.

The distance of the farthest two rows, and the search for precisions, stand here twice, in `many_marginals` with
`residual_plan` for releases and in `residuals_of_order` for classes of sessions. Neither can serve both:

- A release gives each clique noise of its own rational variance, of Gaussian kind alone, so it needs only the
  squared distance, which `worst_pair` finds in floats with a margin of 1e-9 on top. A class has one noise on whole
  weights, Laplace as well, so it needs exact whole numbers, and the L1 norm (`ResidualColumns`). A margin would
  change the variance of its noise, and with it what ledgers that hold such a class say was bought.
- A release has any cliques and any factor of an attribute, ranges among them, whose products may have two
  extremes. `worst_pair` lists all patterns, up to 2^22, and then splits by cliques. A class has every set up to an
  order and `Centred` factors; beyond 16 attributes its weights are equal for sets of equal sizes, and one set of
  differing attributes for each list of numbers is enough, which holds for no other workload.
- `Residuals.precisions` weighs marginals by the workload, at the price of an added row.
  `ResidualsOfOrder.precisions` makes the needed marginals equally precise, at the distance of replaced rows. The
  weights that come of it are in the class's key, by which a session that was stopped finds again what it paid for:
  another search would make it pay twice.

`tests/mechanism/test_residuals_of_many_attributes.py` holds the two distances equal where both apply.
"""
