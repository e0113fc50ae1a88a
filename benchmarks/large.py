"""A folder of 4 GB of Parquet in 64 parts, 25 million rows of mixed columns, through Python and the
command line: rows used, seconds, processor time and peak of resident memory.

``KERNELPOOL_BENCH_ROWS`` sets another number of rows. Each command runs in a process of its own. The
folder is a temporary one, which is removed afterwards.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS = int(float(os.environ.get("KERNELPOOL_BENCH_ROWS", 25e6)))
PARTS = 64
NUMBERS = 16
CLASSES = ["common", "frequent", "rare"]
SHARES = [0.7, 0.2999, 0.0001]
"""Of the classes."""

WANTED_GB = 2.5
WANTED_SECONDS = 20
"""For predictions of a million rows."""

FIT = """
import sys, warnings
import kernelpool

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", kernelpool.errors.SampleWarning)
    model = kernelpool.PooledClassifier(time_limit=60, random_state=0).fit(sys.argv[1], "label")
kernelpool.save(model, sys.argv[2])
print(*dict.fromkeys(str(warning.message) for warning in caught), sep="\\n")
"""


def table(n, seed):
    """Numbers, some missing, categories, a boolean and a whole number, and the class."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    code = np.searchsorted(np.cumsum(SHARES)[:-1], rng.random(n))
    x = rng.normal(size=(n, NUMBERS)) + 0.4 * code[:, None] * (np.arange(NUMBERS) < 6)
    columns = {f"x{i}": pa.array(x[:, i]) for i in range(NUMBERS)}
    missing = rng.random(n) < 0.05
    columns["x0"] = pa.array(x[:, 0], mask=missing)
    towns = np.array(["Athens", "Berlin", "Lima", "Oslo", "Quito", "Rome"])
    at = np.where(rng.random(n) < 0.3, code, rng.integers(0, len(towns), n))
    columns["town"] = pa.DictionaryArray.from_arrays(at, towns).cast(pa.string())
    columns["active"] = pa.array(rng.random(n) < 0.3 + 0.2 * (code == 1))
    columns["count"] = pa.array(rng.poisson(3 + code))
    columns["label"] = pa.DictionaryArray.from_arrays(code, CLASSES).cast(pa.string())
    return pa.table(columns)


def write(folder, n):
    import pyarrow.parquet as pq

    sizes = np.diff(np.linspace(0, n, PARTS + 1).astype(int))
    for i, size in enumerate(sizes.tolist()):
        pq.write_table(table(size, i), folder / f"part-{i:02}.parquet", row_group_size=100_000)
    return sum(path.stat().st_size for path in folder.iterdir())


def run(*command):
    """Run a command: what it prints, seconds, processor seconds and peak of resident memory in GB."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([sys.executable, *map(str, command)], stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        out.seek(0)
        text = out.read()
    if status:
        raise SystemExit(text)
    return text, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024**2


def rows_used(text):
    """What a command says of its rows."""
    for pattern in (r"trained on ([\d,]+ of [\d,]+) rows", r"learns from ([\d,]+ of [\d,]+) rows"):
        found = re.search(pattern, text)
        if found:
            return found[1]
    return max(re.findall(r"([\d,]+) rows", text), key=lambda n: int(n.replace(",", "")))


def main():
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="kernelpool-bench-") as temporary:
        folder = Path(temporary, "rows")
        folder.mkdir()
        size = write(folder, ROWS)
        million = Path(temporary, "million.parquet")
        pq.write_table(table(1_000_000, PARTS), million)
        by_python = Path(temporary, "python.safetensors")
        model = Path(temporary, "model.safetensors")
        predict = "-m", "kernelpool", "predict", model
        out = "-o", Path(temporary, "out.parquet"), "--force"
        commands = {
            "`PooledClassifier(time_limit=60).fit`": ("-c", FIT, folder, by_python),
            "`kernelpool fit`": ("-m", "kernelpool", "fit", folder, "-t", "label", "-o", model),
            "`kernelpool predict` of a million": (*predict, million, *out),
            "`kernelpool predict`": (*predict, folder, *out),
            "`kernelpool evaluate`": ("-m", "kernelpool", "evaluate", model, folder),
        }
        print(
            f"\n| {size / 1e9:.1f} GB of Parquet in {PARTS} parts | rows used | seconds | ", end=""
        )
        print("of processor time | peak of memory |\n|---|---|---|---|---|")
        for name, command in commands.items():
            text, seconds, cpu, peak = run(*command)
            used = rows_used(text)
            print(f"| {name} | {used} | {seconds:.0f} | {cpu:.0f} | {peak:.2f} GB |", flush=True)
            if peak > WANTED_GB or ("million" in name and cpu > WANTED_SECONDS):
                print(f"wanted: {WANTED_GB} GB, {WANTED_SECONDS} s", file=sys.stderr)


if __name__ == "__main__":
    main()
