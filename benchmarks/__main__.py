"""Run the benchmarks named on the command line; without names, those of the core."""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":  # worker processes import this module too
    names = sys.argv[1:] or ["shared_kernel"]
    known = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"There is no benchmark {unknown[0]!r}; there are {', '.join(known)}.")
    for name in names:
        importlib.import_module(f"benchmarks.{name}").main()
