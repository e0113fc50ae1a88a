"""Run the benchmarks named on the command line; without names, those of the core."""

import importlib
import sys

for name in sys.argv[1:] or ["shared_kernel"]:
    importlib.import_module(f"benchmarks.{name}").main()
