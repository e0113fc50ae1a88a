"""Speed on a card: sweeps beside our CPU, pomegranate and gmmx; whole fits and predictions.

    python -m benchmarks.gpu [sweeps] [kernels] [peers] [methods] [--out docs/gpu.csv]
    python -m benchmarks.gpu picture

The second draws docs/_static/gpu.png from the numbers of the first and needs no card. The first
needs torch with CUDA; peers that cannot be imported are left out. A sweep is timed between
synchronizations, the M-step on the host included, after sweeps that compile kernels; medians. The
CPU is that of the same machine, all cores, on a tenth of the rows, its time taken tenfold. Float32
throughout, except where the table says float64.
"""

import argparse
import csv
import time
import warnings

import numpy as np
import torch

from benchmarks.shared_kernel import start
from kernelpool import (
    EMLogClassifier,
    ParzenClassifier,
    RBFNetworkClassifier,
    SharedKernelClassifier,
)
from kernelpool.arrays import fused_sums, match_array
from kernelpool.kernels import FAMILIES
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import Frame, as_rows, one_blas_thread

SIZES = [(1_000_000, 16, 32), (2_000_000, 32, 64), (4_000_000, 8, 256)]
CPU_SHARE = 10
RESULTS: list[dict] = []


def note(what, n, d, m, family, dtype, where, ms, detail=""):
    row = {
        "what": what,
        "rows": n,
        "features": d,
        "kernels": m,
        "family": family,
        "dtype": dtype,
        "where": where,
    }
    RESULTS.append(row | {"ms": round(ms, 3), "note": detail})
    print(
        f"{what:12}{n:>11}{d:4}{m:5}  {family:10}{dtype:8}{where:14}{ms:12.3f} ms  {detail}",
        flush=True,
    )


def clusters(n, d, m, dtype=torch.float32, out=None):
    """Rows of as many Gaussian clusters as there are kernels, made on the card, into `out` if
    given.
    """
    generator = torch.Generator(device="cuda").manual_seed(0)
    center = 2 * torch.randn(m, d, device="cuda", generator=generator)
    out = torch.empty(n, d, device="cuda", dtype=dtype) if out is None else out
    for i in range(0, n, 10_000_000):
        size = min(10_000_000, n - i)
        some = torch.randn(size, d, device="cuda", generator=generator)
        out[i : i + size] = (
            some + center[torch.randint(m, (size,), device="cuda", generator=generator)]
        )
    return out


class Mixture:
    """One mixture, as the estimators drive it, wherever the rows live."""

    def __init__(self, x, m, family, n_classes=1):
        host = (
            x[:20_000].cpu().double().numpy()
            if isinstance(x, torch.Tensor)
            else x[:20_000].astype(float)
        )
        kernels, floor = start(host, m, family)
        frame = Frame(host.mean(axis=0), np.full(x.shape[1], host.std()))
        kernel = FAMILIES[family](floor / host.var())
        codes = np.arange(len(x)) % n_classes
        codes = torch.as_tensor(codes, device=x.device) if isinstance(x, torch.Tensor) else codes
        self.network = SharedKernel(kernel, np.ones((m, n_classes)))
        self.rows = as_rows(x, codes).framed(
            frame, kernel.n_features(x.shape[1]) + n_classes + 1 + m
        )
        mixing = np.full((m, n_classes), 1 / m)
        self.params = Params(kernel.into(kernels, frame), mixing, np.full(n_classes, 1 / n_classes))

    def sweeps(self, n):
        for _ in range(n):
            self.params, self.objective = self.network.sweep(self.rows, self.params)
        return self

    def ms(self, repeats=9, step=None):
        step = (lambda: self.sweeps(1)) if step is None else step
        with one_blas_thread():
            return median_ms(step, repeats)


def median_ms(work, repeats, warm_up=3):
    for _ in range(warm_up):
        work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begun))
    return float(np.median(times))


def difference(a, b):
    """Largest difference of means and covariances beside the largest value."""
    pairs = [
        (getattr(a.params.kernels, name), getattr(b.params.kernels, name))
        for name in ("mean", "covariance")
    ]
    return max(np.abs(p - q).max() / np.abs(q).max() for p, q in pairs)


def sweeps():
    for n, d, m in SIZES:
        x = clusters(n, d, m)
        few = x[: n // CPU_SHARE]
        for family in FAMILIES:
            note("sweep", n, d, m, family, "float32", "H200", Mixture(x, m, family).ms())
            here, there, exact = (
                Mixture(a, m, family).sweeps(5) for a in (few.cpu().numpy(), few, few.double())
            )
            wide = Mixture(few.double().cpu().numpy(), m, family).sweeps(5)
            note("sweep", n, d, m, family, "float64", "H200", Mixture(x.double(), m, family).ms(5))
            found = f"5 sweeps differ by {difference(there, wide):.1e} (card), {difference(here, wide):.1e} (CPU) from float64"
            note("sweep", n, d, m, family, "float32", "CPU", CPU_SHARE * here.ms(3), found)
            found = f"5 sweeps differ by {difference(exact, wide):.1e} from the card"
            note("sweep", n, d, m, family, "float64", "CPU", CPU_SHARE * wide.ms(3), found)
        for family in ("full", "diag"):
            three = Mixture(x, m, family, 3)
            ms = three.ms(5, lambda three=three: three.network.gradient(three.rows, three.params))
            note(
                "gradient",
                n,
                d,
                m,
                family,
                "float32",
                "H200",
                ms,
                "of the conditional likelihood, three classes",
            )


def kernels():
    """The part of a float32 sweep that runs on the card, and the rate of its two products."""
    for n, d, m in SIZES:
        x = clusters(n, d, m)
        for family in FAMILIES:
            mixture = Mixture(x, m, family).sweeps(3)
            given = mixture.network.e_step_params(mixture.params, mixture.rows.eps)
            block = mixture.rows._block(0)
            columns, features, indicators = mixture.network.e_step._factors(block, given)
            natural = match_array(given.weight, like=x)
            ms = median_ms(
                lambda c=columns, p=indicators + features, w=natural: fused_sums(c, p, None, w), 15
            )
            rate = 4e-9 * columns.shape[1] * natural.shape[0] * natural.shape[1] / ms
            n_rows = columns.shape[1]
            note(
                "fused_sums",
                n_rows,
                d,
                m,
                family,
                "float32",
                "H200",
                ms,
                f"{rate:.0f} TFLOP/s of products, float32's limit is 67",
            )


def gmmx_ms(x, m, family):
    import jax
    from gmmx import EMFitter, GaussianMixtureModelJax

    kernels, _ = start(x[:20_000].cpu().double().numpy(), m, family)
    there = jax.dlpack.from_dlpack(x)
    weights = np.full(m, 1 / m, np.float32)
    given = (weights, kernels.mean.astype(np.float32), kernels.covariance.astype(np.float32))
    model = GaussianMixtureModelJax.from_squeezed(
        weights=given[0], means=given[1], covariances=given[2], covariance_type=family
    )
    times = {}
    for sweeps in (2, 12):
        fitter = EMFitter(max_iter=sweeps, tol=-1.0)
        fitter.fit(there, model)
        begun = time.perf_counter()
        jax.block_until_ready(fitter.fit(there, model).log_likelihood)
        times[sweeps] = time.perf_counter() - begun
    return 1e3 * (times[12] - times[2]) / 10


def pomegranate_ms(x, m, family):
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel

    kernels, _ = start(x[:20_000].cpu().double().numpy(), m, family)
    parts = [
        Normal(
            kernels.mean[j].astype(np.float32),
            kernels.covariance[j].astype(np.float32),
            covariance_type=family,
        )
        for j in range(m)
    ]
    model = GeneralMixtureModel(parts).cuda()

    def sweep():
        model.summarize(x)
        model.from_summaries()

    return median_ms(sweep, 3, warm_up=1)


def peers():
    for n, d, m in SIZES:
        for family in ("full", "diag"):
            for name, run in (("gmmx", gmmx_ms), ("pomegranate", pomegranate_ms)):
                try:
                    note(
                        "sweep", n, d, m, family, "float32", name, run(clusters(n, d, m), m, family)
                    )
                except ImportError as error:
                    print(f"{name} is not here: {error}")
                except Exception as error:
                    detail = (
                        "out of memory"
                        if "memory" in str(error).lower()
                        else f"{type(error).__name__}: {str(error)[:80]}"
                    )
                    note("sweep", n, d, m, family, "float32", name, float("nan"), detail)
                torch.cuda.empty_cache()


def seconds(work, *given):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    result = work(*given)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begun), result


def methods():
    """Fit and predict, on the card and on the CPU of the same machine, from the same rows."""
    d = 16
    rng = np.random.default_rng(0)
    cases = [
        (
            "shared_kernel",
            1_000_000,
            32,
            SharedKernelClassifier.prbf(32, covariance_type="full", max_iter=20, random_state=0),
        ),
        (
            "conditional",
            200_000,
            12,
            SharedKernelClassifier.prbf(12, training="conditional", random_state=0),
        ),
        ("rbf path", 20_000, 50, RBFNetworkClassifier(50, random_state=0)),
        (
            "rbf em_log",
            50_000,
            32,
            EMLogClassifier(32, training="em_log", max_iter=20, random_state=0),
        ),
        ("parzen", 20_000, 20_000, ParzenClassifier("gaussian", radius=1.5)),
    ]
    for name, n, m, model in cases:
        center = 1.5 * rng.normal(size=(12, d))
        part = rng.integers(12, size=n + 200_000)
        x = (center[part] + rng.normal(size=(len(part), d))).astype(np.float32)
        y = part % 3
        at = torch.as_tensor
        answers = {}
        for where, X, Y in (
            ("H200", at(x).cuda(), at(y).cuda()),
            ("H200", at(x).cuda(), at(y).cuda()),
            ("CPU", x, y),
        ):
            fit_ms, _ = seconds(model.fit, X[:n], Y[:n])
            predict_ms, found = seconds(model.predict_proba, X[n:])
            answers[where] = fit_ms, predict_ms, found.cpu().numpy() if where == "H200" else found
        gap = np.abs(answers["H200"][2] - answers["CPU"][2]).max()
        for where, (fit_ms, predict_ms, _) in answers.items():
            note(f"fit {name}", n, d, m, "", "float32", where, fit_ms)
            note(
                f"ask {name}",
                200_000,
                d,
                m,
                "",
                "float32",
                where,
                predict_ms,
                f"probabilities differ by {gap:.1e}",
            )


def picture(source="docs/gpu.csv", target="docs/_static/gpu.png"):
    import matplotlib.pyplot as plt

    with open(source) as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["what"] == "sweep" and row["dtype"] == "float32"
        ]
    names = {
        "H200": "kernelpool, H200",
        "gmmx": "gmmx, H200",
        "pomegranate": "pomegranate, H200",
        "CPU": "kernelpool, CPU",
    }
    colors = ("#1b6ca8", "#8fb8de", "#c9c9c9", "#e08e45")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, family in zip(axes, ("full", "diag"), strict=True):
        for i, (where, name) in enumerate(names.items()):
            mine = {
                (int(r["rows"]), int(r["features"]), int(r["kernels"])): float(r["ms"])
                for r in rows
                if r["where"] == where and r["family"] == family
            }
            heights = [mine.get(size, float("nan")) for size in SIZES]
            bars = axis.bar(
                np.arange(3) + 0.2 * (i - 1.5), heights, 0.19, label=name, color=colors[i]
            )
            labels = [
                "out of memory" if np.isnan(h) else f"{h:.1f}" if h < 100 else f"{h:.0f}"
                for h in heights
            ]
            for bar, label, height in zip(bars, labels, heights, strict=True):
                at = (bar.get_x() + bar.get_width() / 2, 1.1 if np.isnan(height) else height)
                axis.annotate(
                    label,
                    at,
                    (0, 2),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=6.5,
                    rotation=90 if np.isnan(height) else 0,
                )
        axis.set(yscale="log", title=f"{family} kernels", xticks=range(3))
        axis.set_xticklabels(
            [f"{n // 10**6} M rows\n{d} features\n{m} kernels" for n, d, m in SIZES], fontsize=8
        )
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("ms a sweep, float32")
    axes[0].legend(fontsize=7, frameon=False, loc="upper left")
    axes[0].set_ylim(0.8, 4e4)
    figure.savefig(target, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "parts",
        nargs="*",
        help="sweeps, kernels, peers, methods; all of them unless named; or picture",
    )
    parser.add_argument("--out", default="docs/gpu.csv")
    given = parser.parse_args()
    if given.parts == ["picture"]:
        return picture()
    warnings.simplefilter("ignore")
    print(torch.cuda.get_device_name(), torch.__version__)
    for part in given.parts or ["sweeps", "kernels", "methods", "peers"]:
        {
            "sweeps": sweeps,
            "kernels": kernels,
            "peers": peers,
            "methods": methods,
        }[part]()
        torch.cuda.empty_cache()
        with open(given.out, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(RESULTS[0]))
            writer.writeheader()
            writer.writerows(RESULTS)
    return None


if __name__ == "__main__":
    main()
