"""The command line.

::

    app.py         the commands together, and how errors become exit codes
    fit.py         kernelpool fit, and which estimator `--model` and `--set` ask for
    job.py         one fit: rows held out, the fit, its evaluation, what the file records
    predict.py     kernelpool predict
    evaluate.py    kernelpool evaluate, check and report: a model and rows
    model.py       a model file together with what was recorded at its fit; kernelpool info and export
    demo.py        kernelpool demo

    output.py      text, tables and progress for people, JSON for programs; files that are written
    options.py     options that several commands have

Data are read and written by `app.readers`. No command evaluates text as code or unpickles anything:
data are read by Arrow, settings as JSON, models by `kernelpool.load`.
"""
