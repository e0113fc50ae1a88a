"""The command line: one file a command, and what they share.

::

    app.py         the commands together, and how errors become exit codes
    fit.py  predict.py  evaluate.py  report.py  sample.py  certify.py  export.py  demo.py

    sources.py     files, folders and stdin -> batches of columns
    batches.py     what a batch is
    text.py        text files
    columns.py     columns -> numbers and categories; what cannot be one is named by file, row and column
    labels.py      the target column -> classes
    models.py      --model, --set and --encode -> an estimator
    saved.py       a model file together with what was written down when it was fitted
    work.py        one fit: judged, kept where interrupted, written down
    judging.py     errors, intervals, calibration
    writing.py     files that appear whole or not at all
    screen.py      words, tables and progress for people; JSON for machines
    options.py     options that several commands have

No command evaluates text as code or unpickles anything: data are read by Arrow, settings as JSON, models by `kernelpool.load`.
"""
