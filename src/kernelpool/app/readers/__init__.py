"""Tables in files: read in batches, with their classes, and written.

::

    files.py      files, folders and stdin -> batches of columns; tables -> CSV, Parquet, Arrow, JSON
    table.py      cells -> numbers and categories; the target -> classes; tables in memory

pyarrow is imported in functions only. What cannot be read is a `TableError`: file, row and column
where they are known, and advice that names options of the command line.
"""
