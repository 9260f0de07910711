"""The textbook: every definition, bound and theorem of the lecture notes and the papers beside them, as code.

Each file is one lecture or paper and complete for its reader: it defines the statements that the product does not
call, and imports those that it does from `understudy.theory`. Everything is a pure function with its conditions,
refused outside of them; nothing looks at data. docs/textbook.md lists each statement of the lectures with the
function that states it and the test that bears its name; docs/errata.md has what the notes print otherwise. The
algorithms, which do look at data, are in `understudy.lectures`.

| file | about |
|---|---|
| `stability`, `interactive_stability` | Lecture 4: the curve δ(ε) of any finite mechanism, exactly from its law |
| `lecture4` | small databases, MedianMechanism, Laplace noise, composition |
| `lecture7` | database update algorithms, Iterative Construction, distinguisher |
| `lectures9_10` | Chernoff bounds, SmallDB, nets |
| `vc`, `half_space` | Lectures 9-10: shattering, VC dimension, half-spaces and Radon's theorem |
| `lecture18` | exponential mechanism, indistinguishability, the Monitor, transfer |
| `composition` | basic, advanced, zCDP and Gaussian composition |
| `filters` | adaptive prices: when the next mechanism may run |
| `chords` | the theorem behind the price of a selection in Gaussian differential privacy |
| `sparse_vector` | AboveThreshold, Sparse, NumericSparse |
| `dual_query` | DualQuery |
| `compression` | short transcripts generalise |
| `drift` | posterior drift, for sessions of any length |
| `tilting`, `cosine_noise` | Theorem T, law by law, and bounded noise with it |
| `elementary` | its independent check, from textbook steps alone |
| `rogers20` | Gaussian answers through mutual information, as printed and with one β |
| `thresholdout` | the reusable holdout as published |
| `natural_analysts` | bounds that assume how analysts behave |
| `capacity` | how many queries, or rows, a width allows |

Wholly in `understudy.theory`, because the product calls all of it: `baseline` (fresh rows, Hoeffding), `cvar`
(CVaR transfer), `guess_and_check`, `ladder`, `normal_law` (Φ and its inverse), `normal_noise` (a theorem at
its best noise, or at a given one), `smoothing` (a discrete Gaussian as a randomised rounding of
normal noise), `transfer` (transfer theorems), `universe` (finite universes), and `table` (the certificates
side by side).

>>> from understudy_textbook.lecture4 import claim1_size, claim1_size_min
>>> claim1_size(100, 0.1), claim1_size_min(100, 0.1)
(300, 265)
"""
