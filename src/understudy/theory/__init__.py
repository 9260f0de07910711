"""Every bound as a pure function: what it states, when it holds, and a refusal where it does not.

One file per lecture or paper. Nothing here looks at data or draws noise.
"""
