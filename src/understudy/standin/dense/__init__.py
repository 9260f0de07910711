"""Multiplicative weights over the whole universe, one number for each cell.

`weights` is the stand-in, and `layout` says where a clique's cells lie in the flat array. The passes over them are
made by `host`, with the compiled loops of `kernels` (numba, imported late), or by `device`, on a GPU (CuPy,
imported late). Fits where the universe has up to some hundred million cells, on a GPU some billions. Start with
`weights`.
"""
