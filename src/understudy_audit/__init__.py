"""The audit harness: attacks on the promises that Understudy makes, and what the attacks prove.

The black-box audit draws from mechanisms on neighbouring tables, learns an event that tells the two apart from
one half of the draws, counts it on the other, and certifies a lower bound on the epsilon that was really spent.
`understudy_audit.composites` lists the runs that are audited; `understudy_audit.analysts` attack holdouts as
adaptively as they can. A finding above what was charged is a bug in the product.

It is a guest of the core and no part of it: it may import every room below the command line, and no room of the
core imports it. `understudy audit` is its command. Start with `understudy_audit.privacy`.
"""
