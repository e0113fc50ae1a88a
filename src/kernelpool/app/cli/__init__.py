"""The command line: one file a command, and what they share.

::

    app.py         the commands together, and how errors become exit codes
    fit.py  predict.py  evaluate.py  certify.py  report.py  sample.py  export.py  info.py  demo.py

    saved.py       a model file together with what was written down when it was fitted
    output.py      words, tables and progress for people, JSON for machines; files that appear whole or not at all
    options.py     options that several commands have

Data are read and written by `kernelpool.tables`. No command evaluates text as code or unpickles anything: data are read by
Arrow, settings as JSON, models by `kernelpool.load`.
"""
