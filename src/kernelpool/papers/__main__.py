"""Rerun the papers' tables: ``python -m kernelpool.papers --help``."""

import argparse
import sys
from pathlib import Path

from ..errors import KernelpoolError
from .reproduce import TABLES, run


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, and print how many cells agree."""
    parser = argparse.ArgumentParser(prog="python -m kernelpool.papers", description="Rerun every table of the papers.")
    parser.add_argument("tables", nargs="*", help=f"which tables, of {', '.join(TABLES)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="a sample, in about a minute")
    parser.add_argument(
        "--out", type=Path, default=Path("reproduction"), help="folder for what is written (default: %(default)s)"
    )
    parser.add_argument("--anew", action="store_true", help="do not go on where an earlier run stopped")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--no-figures", action="store_true", help="leave the papers' figures out of the page")
    args = parser.parse_args(arguments)
    try:
        results = run(args.tables or None, args.quick, args.out, not args.anew, args.jobs, figures=not args.no_figures)
    except KeyboardInterrupt:
        print(f"Stopped. What was finished is kept in {args.out}; the same command goes on from there.", file=sys.stderr)
        return 130
    except KernelpoolError as error:
        print(error, file=sys.stderr)
        return 2
    print(results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
