"""The residual release: a whole workload of marginals measured at once, in an orthogonal basis of residuals.

`mechanism.matrix.residual_plan` divides the budget among residuals so that the errors of the workload are as
asked, `residual` carries it out, and `tables` puts the noisy residuals together into marginals whose error is
known in closed form. Start with `residual.residual`.
"""
