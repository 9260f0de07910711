"""The only access to the data: charge the ledger first, then look at the table, then add noise.

A Curator holds the exact counts (`table.truth`) and the ledger of one table. It takes a description of a look,
works out its price from public values alone, has the ledger write the debit durably, and only then evaluates
the look and draws its noise. A request that was answered before is answered from the ledger again, and costs
nothing. A sparse vector is an open handle that a Curator returns: it is charged once and asked often.

It may import the rooms that describe, price, count and draw (`mechanism`, `ledger`, `table`, `noise`, `privacy`);
sessions, releases and the command line reach data through it and no other way. Start with
`curator.curator.Curator`, and `curator.charged_access`, the one order in which all of its looks are paid and made.
What can be said before a charge, without data, is in `curator.calibration`; a question that is read and priced is
a `curator.prepared_question.PreparedQuestion`.
"""
