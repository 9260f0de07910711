"""Multiplicative weights over the whole universe, one number for each cell.

`weights` is the stand-in, `layout` says where a clique's cells lie in the flat array, and `kernels` has the
compiled loops (numba, imported late). Fits where the universe has up to some tens of millions of cells. Start
with `weights`.
"""
