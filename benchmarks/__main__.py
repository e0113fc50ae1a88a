"""Run the benchmarks named on the command line; without names, those of the core."""

import importlib
import sys

if __name__ == "__main__":  # worker processes import this module too
    for name in sys.argv[1:] or ["shared_kernel"]:
        importlib.import_module(f"benchmarks.{name}").main()
