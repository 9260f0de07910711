"""The median of all small databases that are still consistent with what was learnt.

`median` keeps the whole set exactly where it is small enough, `sampled` a sample of it, and `kernels` has the
compiled counting (numba, imported late). Start with `median`.
"""
