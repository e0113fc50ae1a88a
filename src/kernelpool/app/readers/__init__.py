"""Tables in files: read in batches, with their classes, and written.

::

    sources.py     files, folders and stdin -> batches of columns: Parquet, Arrow, delimited text
    columns.py     cells -> numbers and categories; missing cells
    labels.py      the target column -> classes; a whole table with its classes, in memory
    large.py       tables larger than memory, with their classes
    writing.py     batches -> CSV, Parquet, Arrow or JSON lines

pyarrow is imported in the functions of this folder only. What cannot be read is a `TableError`:
file, row and column where it has them, and an advice that names the parameters of these functions.
"""
