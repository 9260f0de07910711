"""What an agent is told about asking: a few sentences when it connects, and a page when it wants to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_INSTRUCTIONS = (
    "Statistics of private tables, under differential privacy. No tool shows a row; every number comes with an "
    "error. Begin with list_tables and describe. `price` tells what a question would cost and spends nothing; "
    "`ask` may spend the budget of the table, which everybody shares and which does not grow back. What {whose} "
    "asked before, and what follows from it, is free. Report every number as value ± error, and do not read a "
    "difference that is smaller than the errors. A refusal says what to write instead. A question with the "
    "state `waiting` needs a custodian's approval: go on with other questions, and look for it later with "
    "history and its id."
)


def instructions(*, own: bool) -> str:
    """What an agent is told when it connects; `own` is whether each analyst has a session of their own."""
    return _INSTRUCTIONS.format(whose="you" if own else "anybody")


PROMPT = "how_to_ask"
PROMPT_TITLE = "How to ask"
PROMPT_DESCRIPTION = "How questions to a private table are written, priced and reported, with examples."

_PAGE = """\
You can ask about private tables through the tools of this server. You never see rows: answers are numbers with
errors, bought from a privacy budget that all analysts of a table share and that does not grow back.

How to work
1. `list_tables`, then `describe` for the attributes. Conditions may cut numbers and dates anywhere; groups are
   the declared cells.
2. `price` before you `ask`, with up to 50 questions at once: it costs nothing. `share` is the part of the whole
   budget; `free` means that the answer follows from what was bought before.
3. `ask` one question with several groups rather than many questions: `count by district` costs about as much as
   one count, because everybody is in one district only.
4. Then ask what follows: sums of groups, and any question again, are free.
5. `session_status` tells what is promised, what is left, and about how many more counts that pays for.

How to write a question
  count age < 30 and sex = F by district         people, in each group
  share smoker = true by education               parts of all rows of the table
  rate smoker = true within district             parts of each group's own rows
  SELECT district, count(*), avg(income) FROM town WHERE age >= 18 GROUP BY district
  values with spaces in single quotes, names with spaces in double quotes

How to report
- Always `value ± error`. All answers of a session hold at once with probability 1 - `beta`.
- Two numbers differ only if they differ by more than their errors together.
- `source`: `measured` was bought now; `repeat`, `implied` and `pinned` were free; `uncertified` means that
  nobody vouches for the number: say so, or leave it out.
- In an SQL answer each number has `low` and `high`; null means that there is no bound on that side.

When something is refused, the error says what to write instead. When `ask` returns the state `waiting`, a
custodian has to approve the question: do not ask it again under another request id, go on, and look later with
`history` and the `id`. Give `why` with a question that may need approval: the custodian reads it.

`list_releases` and `read_release` show what was published already, and `ask_release` answers questions from it:
those numbers are free, and often enough.
"""


def page(described: Mapping[str, Any] | None) -> str:
    """How to ask, as a page of text; with the attributes and examples of one table where it is described."""
    if described is None:
        return _PAGE
    lines = [f"  {one['name']}: {_cells(one)}" for one in described["attributes"]]
    examples = [f"  {question}" for question in described["examples"]]
    return "\n".join(
        [
            _PAGE,
            f"The table {described['name']} has these attributes",
            *lines,
            "",
            "Questions to begin with",
            *examples,
        ]
    )


def _cells(attribute: Mapping[str, Any], most: int = 8) -> str:
    labels = list(map(str, attribute["labels"]))
    shown = ", ".join(labels[:most])
    return f"{shown}, … ({attribute['cells']} cells)" if attribute["cells"] > most else shown
