"""Draws `_static/clouds.png`, the picture in the README: python docs/make_picture.py."""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

HERE = Path(__file__).parent


def main():
    example = runpy.run_path(str(HERE.parent / "examples" / "plot_shared_kernels.py"))
    rows = [example[name] for name in ("X", "y", "X_test", "y_test")]
    figure = example["figure_of"](example["networks"], *rows)
    figure.savefig(HERE / "_static" / "clouds.png", dpi=110)


if __name__ == "__main__":
    main()
