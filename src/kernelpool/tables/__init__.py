"""Tables: words and labels coded, missing cells found; rows of files and iterables in batches.

::

    read.py        files, folders, stdin and data sets -> batches of Arrow tables
    batches.py     files, data sets and iterables -> tables, labels and weights, batch by batch
    words.py       the columns of a table, and the words of each
"""
