"""Where the numbers of a column lie, found by noisy counts alone: bounds, bins of equal mass, and what is missing.

`grid` has the public grids that counts are made on, `density` what is estimated from noisy counts, and
`profile` the mechanism: a few rounds of counts on grids that follow the mass. Start with
`profile.ColumnProfiling`.
"""
