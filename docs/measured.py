"""Writes measured tables into the pages that show them.

python docs/measured.py                 write every stored record into its page
python docs/measured.py sharing trouble measure these again first
python docs/measured.py --quick         measure all that take less than a minute or so (make numbers)

A record is a file of docs/records: a head with the command, the version, the date and whether it is
quick, and the Markdown tables that the command printed. A page shows the k-th table of a record
between two comments,

    <!-- measured: NAME k -->
    <!-- end -->

and a test compares pages and records, so that no figure of a page was typed by hand.
"""

import datetime
import re
import shlex
import subprocess
import sys
from pathlib import Path

import kernelpool

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "docs" / "records"
BLOCK = re.compile(r"(<!-- measured: (\S+) (\d+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def pages():
    """The pages that may show records."""
    docs = ROOT / "docs"
    return [ROOT / "README.md", *sorted(docs.glob("*.md")), *sorted(docs.glob("guide/*.md"))]


def read(name):
    """Head and tables of a record."""
    head, _, body = (RECORDS / f"{name}.md").read_text().partition("\n\n")
    return dict(line.split(": ", 1) for line in head.splitlines()), TABLE.findall(body)


def measure(name):
    """Run the command of a record and store what it prints."""
    head, before = read(name)
    words = shlex.split(head["command"])
    words[0] = sys.executable
    done = subprocess.run(words, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    tables = TABLE.findall(done.stdout)
    if not tables:
        raise SystemExit(f"{head['command']} printed no table")
    if sum(map(len, map(str.splitlines, tables))) < sum(map(len, map(str.splitlines, before))):
        raise SystemExit(f"{head['command']} printed fewer rows than are stored: is a set missing?")
    head |= {"version": kernelpool.__version__, "date": datetime.date.today().isoformat()}
    text = "".join(f"{key}: {value}\n" for key, value in head.items())
    (RECORDS / f"{name}.md").write_text(text + "\n" + "\n".join(tables))


def written(text):
    """The text of a page with the tables of its records."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{read(m[2])[1][int(m[3]) - 1]}\n{m[5]}", text)


def main(names):
    if names == ["--quick"]:
        every = sorted(path.stem for path in RECORDS.glob("*.md"))
        names = [name for name in every if read(name)[0]["quick"] == "yes"]
    for name in names:
        print(name, flush=True)
        measure(name)
    for page in pages():
        page.write_text(written(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
