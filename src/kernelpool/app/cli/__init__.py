"""The command line: one file a command, and what they share.

::

    app.py         the commands together, and how errors become exit codes
    fit.py  predict.py  evaluate.py  report.py  check.py  export.py  info.py  demo.py

    job.py         one fit: rows held out, the fit, its evaluation, what the file records
    large.py       the same for files larger than memory
    models.py      which estimator `--model` and `--set` ask for
    loaded.py      a model file together with what was written down when it was fitted
    output.py      text, tables and progress for people, JSON for programs; files that are written
    options.py     options that several commands have

Data are read and written by `app.readers`. No command evaluates text as code or unpickles anything:
data are read by Arrow, settings as JSON, models by `kernelpool.load`.
"""
