"""The pages, one file for each group of them. A view takes a `Visit` and returns a reply."""
