"""The pages of a server: one more door, which people use with a browser.

    door       adds the pages to an application: routes, static files, errors as pages
    visitor    who is logged in, and whether a form came from a page of this server
    rendering  templates, in which every word is escaped, and the one style sheet
    words      prices, parts and times as people read them
    answers    an answer as a table, with its error bars drawn
    copies     a question as Python, SQL and curl, to be copied
    views      one file for each group of pages

Views call the gate and nothing else: they decide nothing, and what a page shows is what the gate told this caller.
Every form works without a script; the script ("static/page.js") prices a question while it is written and puts
answers in place.
"""
