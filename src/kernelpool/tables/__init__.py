"""Tables: read from files, drawn from where they are too large, and coded.

::

    files.py      one file of any format -> names, types, pieces
    read.py       files, folders, stdin and data sets -> batches, or a table in memory
    draw.py       an even draw from rows that come in batches
    kinds.py      what text means: missing cells, numbers, categories, dates
    columns.py    the columns of a table, and the codes of their cells
"""
