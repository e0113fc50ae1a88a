"""The command line.

::

    app.py         the commands together, and how errors become exit codes
    console.py     what commands share: options, text, progress, JSON, files that are written
    fit.py         kernelpool fit: the estimator, rows held out, the fit, what the file records
    predict.py     kernelpool predict
    evaluate.py    kernelpool evaluate, check and report: models and rows
    model.py       a model file together with what was recorded at its fit; kernelpool info, export
    output.py      tables that are written
    demo.py        kernelpool demo

Data are read by `tables.read`. No command evaluates text as code or unpickles anything:
data are read by Arrow, settings as JSON, models by `kernelpool.load`.
"""
