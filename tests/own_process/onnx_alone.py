"""Run by the tests of tests/export in a process of its own: a model file, rows and onnxruntime, and
nothing of this library.
"""

import sys

import numpy as np
import onnxruntime


def main(model: str, rows: str, answers: str) -> None:
    model, rows, answers = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    found: dict = {}
    given: dict = {}
    for key, x in np.load(rows).items():  # rows, or rows/column
        name, _, column = key.partition("/")
        given.setdefault(name, {})[column or "X"] = x
    for name, inputs in given.items():
        for output, value in zip(session.get_outputs(), session.run(None, inputs), strict=True):
            found[f"{name}/{output.name}"] = value.astype(str) if value.dtype == object else value
    metadata = session.get_modelmeta()
    found["about"] = np.array(
        [metadata.producer_name, metadata.custom_metadata_map.get("classes", "")]
    )
    assert not {"kernelpool", "sklearn", "onnx"} & set(sys.modules)
    np.savez(answers, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
