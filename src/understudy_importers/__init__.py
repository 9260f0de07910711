"""Descriptions of tables that others have written, as drafts of a declaration.

A description is public text: nothing here opens the table it describes.
"""
