"""The bounds that the product relies on, as pure functions: what each states, when it holds, and a refusal where
it does not.

One file per lecture or paper. Nothing here looks at data or draws noise. The statements that mechanisms, planner
and certificates do not call are in `understudy_textbook`, whose index lists both.
"""
