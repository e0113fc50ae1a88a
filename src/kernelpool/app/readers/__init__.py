"""Tables in files: read in batches, with their classes, and written.

::

    table.py      cells -> numbers and categories; the target -> classes; tables in memory

pyarrow is imported in functions only. What cannot be read is a `TableError`: file, row and column
where they are known, and advice that names options of the command line.
"""
