"""Rerun the papers' tables: ``python -m papers --help``."""

import argparse
import sys
from pathlib import Path

from kernelpool.errors import KernelpoolError

from .run import ALL, REPEATS, TABLES, run


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on; got {text!r}")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, and print how many cells agree."""
    parser = argparse.ArgumentParser(
        prog="python -m papers", description="Rerun every table of the papers."
    )
    parser.add_argument(
        "tables",
        nargs="*",
        choices=[*TABLES, ALL, []],
        metavar="TABLE",
        help=f"which tables, of {', '.join(TABLES)}; those that were published if none is named, {ALL} for all",
    )
    parser.add_argument("--quick", action="store_true", help="a sample")
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        default=Path("reproduction"),
        metavar="FOLDER",
        help="folder to write to (%(default)s)",
    )
    parser.add_argument(
        "--anew", action="store_true", help="do not resume an earlier run in the same folder"
    )
    parser.add_argument(
        "--repeats",
        "-r",
        type=_whole,
        default=REPEATS,
        help="splits and starts of the first two, at most 5 (%(default)s)",
    )
    parser.add_argument("--jobs", "-j", type=_whole, default=2, help="processes (%(default)s)")
    parser.add_argument(
        "--no-figures", action="store_true", help="do not redraw the papers' figures"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="print results and errors only")
    args = parser.parse_args(arguments)
    try:
        results = run(
            args.tables or None,
            args.quick,
            args.output,
            resume=not args.anew,
            n_jobs=args.jobs,
            progress=not args.quiet,
            figures=not args.no_figures,
            repeats=args.repeats,
        )
    except KeyboardInterrupt:
        print(
            f"Stopped. Finished units are kept in {args.output}; the same command resumes the run.",
            file=sys.stderr,
        )
        return 130
    except KernelpoolError as error:
        print(error, file=sys.stderr)
        return 2
    print(results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
