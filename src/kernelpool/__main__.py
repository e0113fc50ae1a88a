"""`python -m kernelpool` and the command `kernelpool`."""

import sys
from importlib.util import find_spec

NEEDED = ("typer", "pyarrow")
NOT_INSTALLED = 8
"""Exit code, as in `kernelpool.app.cli.console`, which cannot be asked without what is missing."""


def main(arguments: list[str] | None = None) -> int:
    """The command line; of a bare installation, the demo and what to install for the rest."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        from .app.cli.app import run

        return run(given)
    if given[:1] == ["demo"] and given[1:2] in ([], ["-o"], ["--output"]):
        from .app.cli import demo

        demo.run(given[-1] if len(given) > 1 else demo.FOLDER)
        return 0
    print(
        f"The command line needs {', '.join(missing)}: pip install '.[cli]' in kernelpool's "
        "folder.\n`kernelpool demo` runs without it.",
        file=sys.stderr,
    )
    return NOT_INSTALLED


if __name__ == "__main__":
    sys.exit(main())
