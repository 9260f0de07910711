"""Answers to an analyst who sees every answer before asking again: one promise for all of them together.

A session promises that all its answers are within alpha with probability 1 - beta, however the questions are
chosen. A question is answered from what is known already if that is precise enough (a repetition, or a
consequence of earlier answers); otherwise the session buys something: the answer alone, or a whole class of
answers when questions of that class keep coming (`policy`, `ski_rental`). When the budget is spent, answers go
on without a certificate, from a stand-in that is fitted to everything that was bought.

    opening, session, terms,          how one is opened, the session, what it promises, and what that says of the
    population                        population
    deduction, purchase_plans, buyer  answers from what is known, which wait for nobody; what questions would
                                      buy; purchases, one by one
    knowledge, table_bounds, one_way  intervals of counts that follow from what was released
    policy, ski_rental,               what is bought next, by what was bought so far
    marginals_rental, histogram_rent,
    purchase_record, forecast
    purchase, calibrator, funds       the interface of purchases, their prices, and whether they can be paid
    histogram, direct,                the kinds of purchases
    product_class, marginals_class
    families, family_product,         classes of questions, and bands that hold for all members of one at once
    class_band
    purchase_journal, answer_memory   the purchases in the ledger; answers that are given again
    asking                            one question: who pays for it, and under which request
    fitted_standin                    the stand-in that answers uncertified

A session is a client of a Curator, and its visible control flow depends on public values and released answers
alone. It may import `standin`, `mechanism`, `curator` and `project`, never the truth. Start with
`sessions.session.Session`.
"""
