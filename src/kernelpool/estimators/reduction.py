"""The stages of a reduced Parzen network: edit, choose the kernels, choose their radius; and choose their number."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..errors import KernelpoolError
from ..networks.parzen import network, wrong_rows
from ..networks.parzen_kernels import TILE
from ..networks.parzen_reduction import Reducer
from ..rows import ArrayRows
from ..training.validation import Labeled, apportion_kernels
from .multi_edit import MultiEdit
from .parzen import ParzenClassifier

HALVES = range(9)
"""Densities are compared at the full network's radius times 2^(h/2) for one of these h."""

TRY_ROWS, TRY_SWEEPS = 4096, 3
"""Rows, or eight times the kernels to be kept if that is more, and passes of exchanges with which a way is tried."""

EASE = 0.25
"""Standard errors by which a reduced network may err more, on the training rows, for the sake of a larger radius."""

THREAD_ROWS = 16384
"""Rows from which on an exchange is worth more than one thread."""

EM_SWEEPS = 50
"""Sweeps of EM that fit the votes of kept kernels; the criterion is concave in them."""


class Reduction:
    """One training set and the full network of it, from which networks of any size are made for an estimator."""

    def __init__(self, estimator: Any, data: Labeled, prior: np.ndarray | None, rng: np.random.RandomState) -> None:
        self.estimator, self.data, self.prior, self.rng = estimator, data, prior, rng
        self.full = ParzenClassifier(
            estimator.kernel, estimator.radius, class_prior=prior, random_state=rng, n_jobs=estimator.n_jobs
        )
        self.full.fit(data.x, data.classes[data.codes], data.weight)
        estimator._say(f"full network: {len(data.x)} kernels of radius {self.full.radius_:.4g}")
        self.pools = self._pools()
        self.best = (0, 2)
        """Pool and scale of the network made last, from which the next search sets out."""

    def full_wrong(self) -> np.ndarray:
        """One for each row that the full network misclassifies, the row left out of its own vote, zero for the others."""
        full, data = self.full, self.data
        own = np.empty(len(data.x), np.int64)
        own[np.argsort(data.codes, kind="stable")] = np.arange(len(own))
        rows = ArrayRows(data.x, np.arange(len(own)), n_jobs=self.estimator.n_jobs).framed(full._frame, TILE)
        return np.asarray(rows.each(wrong_rows, full._profile(data.x.shape[1]), full._network(), data.codes, own))

    # -- editing ----------------------------------------------------------------------------------------------------

    def _pools(self) -> list[np.ndarray]:
        """Sets of rows among which kernels may be chosen: what editing leaves, or all."""
        edit, everything = self.estimator.edit, np.arange(len(self.data.x))
        if edit is False or len(everything) < 3:  # too few to be dealt into parts
            return [everything]
        pools = self._edited() if edit is True or edit == "auto" else [self._edited_by(edit)]
        self.estimator._say("edited: " + " or ".join(str(len(pool)) for pool in pools) + " kernels left")
        return [*pools, everything] if edit == "auto" else pools

    def _edited(self) -> list[np.ndarray]:
        """What is left after the first round, and at the end.

        Round after round is judged by what the rounds before have left. A row near a bent boundary has more of the outer class
        around it, so boundaries creep inwards as long as there is something to drop: the first round may be the better one.
        """
        e, seed = self.estimator, self.rng.randint(2**31)
        judge = ParzenClassifier(e.kernel, self.full.radius_, n_jobs=e.n_jobs)
        editors = [
            MultiEdit(judge, max_rounds=1, random_state=seed),
            MultiEdit(judge, random_state=seed, verbose=max(0, e.verbose - 1)),
        ]
        once, ended = (self._rows_left(editor, np.arange(len(self.data.x))) for editor in editors)
        return [ended] if len(once) == len(ended) else [once, ended]

    def _edited_by(self, editor: Any) -> np.ndarray:
        """What the user's own resampler leaves of the rows, given in the order of X."""
        return self._rows_left(clone(editor) if isinstance(editor, BaseEstimator) else editor, np.argsort(self.data.index))

    def _rows_left(self, editor: Any, order: np.ndarray) -> np.ndarray:
        data = self.data
        editor.fit_resample(data.x[order], data.codes[order])
        if not hasattr(editor, "sample_indices_"):
            raise KernelpoolError(f"edit must tell which rows it kept in sample_indices_; {type(editor).__name__} does not.")
        kept = order[np.unique(editor.sample_indices_)]
        lost = np.setdiff1d(np.unique(data.codes), data.codes[kept])
        if len(lost):
            raise KernelpoolError(
                f"Editing left no row of class {data.classes[lost].tolist()[0]!r}. Use edit=False, or a smaller radius."
            )
        return np.sort(kept)

    # -- choosing kernels -------------------------------------------------------------------------------------------

    def reduce(self, size: int) -> float:
        """Keep `size` rows: of the pool, and at the scale, at which quick tries classify the training rows best; the error."""
        e, seed = self.estimator, self.rng.randint(2**31)
        e.full_radius_ = self.full.radius_
        self.best = self._best_way(size, seed)
        pool = self.pools[self.best[0]]
        error = self._keep(pool, size, self.best[1], e.max_sweeps, seed)
        e.edited_indices_ = np.sort(self.data.index[pool])
        e._plant_trees()
        e._say(
            f"reduced: {len(e.kernels_)} of {len(pool)} kernels, radius {e.radius_:.4g}, criterion {e.criterion_.mean():.4f}"
        )
        return error

    def keep_everything(self) -> None:
        """The full network itself."""
        e, data = self.estimator, self.data
        e._set_kernels(data, np.arange(len(data.x)), data.weight, self.prior)
        e.radius_ = e.full_radius_ = self.full.radius_
        e.criterion_, e.edited_indices_ = np.zeros(len(np.unique(data.codes))), np.sort(data.index)
        for name in ("radii_", "radius_errors_") if e.radius == "loo" else ():
            setattr(e, name, getattr(self.full, name))
        e._plant_trees()
        e._say(f"all {len(data.x)} kernels are needed")

    def _best_way(self, size: int, seed: int) -> tuple[int, int]:
        """Which pool, and which of `HALVES`: in each pool by octaves as long as the error falls, then one half step."""
        errors: dict[tuple[int, int], float] = {}

        def tried(way: tuple[int, int]) -> float:
            if way not in errors:
                pool, most = self.pools[way[0]], max(TRY_ROWS, 8 * size)
                some = pool if len(pool) <= most else np.random.RandomState(seed).permutation(pool)[:most]
                errors[way] = self._keep(some, size, way[1], min(TRY_SWEEPS, self.estimator.max_sweeps), seed)
            return errors[way]

        def best_near(way: tuple[int, int], step: int) -> tuple[int, int]:
            near = [(way[0], half) for half in (way[1], way[1] - step, way[1] + step) if half in HALVES]
            return min(near, key=tried)

        if self.estimator.radius != "loo":
            return min(((i, 0) for i in range(len(self.pools))), key=tried) if len(self.pools) > 1 else (0, 0)
        for i in range(len(self.pools)):
            way, last = (i, self.best[1]), None
            while way != last:
                way, last = best_near(way, 2), way
        return best_near(min(errors, key=tried), 1)

    def _keep(self, pool: np.ndarray, size: int, half: int, n_sweeps: int, seed: int) -> float:
        """Keep `size` rows of the pool, and the radius at which they classify the training rows best; its error."""
        e, data, rng = self.estimator, self.data, np.random.RandomState(seed)
        part = data.part(pool)
        codes = np.unique(part.codes)
        counts = apportion_kernels(np.bincount(part.codes, part.weight)[codes], np.bincount(part.codes)[codes], size)
        kept, weight, criterion = [], [], []
        for code, count in zip(codes, counts, strict=True):
            mine = np.flatnonzero(part.codes == code)
            chosen, vote, reached = self._reduced_class(part.part(mine), count, 2.0 ** (half / 2), n_sweeps, rng)
            kept.append(pool[mine[chosen]])
            weight.append(vote * count)
            criterion.append(reached)
        e.criterion_ = np.array(criterion)
        at = np.concatenate(kept)
        e._set_kernels(data, at, np.concatenate(weight), self.prior)
        own = np.full(len(data.x), -1)
        own[at[np.argsort(data.codes[at], kind="stable")]] = np.arange(len(at))
        judges = np.random.RandomState(seed)  # the same rows judge every way
        if e.radius == "loo":
            e.radius_ = e._best_radius(data, data, own, judges, EASE)
            return float(e.radius_errors_.min())
        e.radius_ = float(e.radius)
        errors = e._radius_errors(np.array([e.radius_]), data, own, judges)
        return float(errors.wrong[0] / errors.weight)

    def _reduced_class(
        self, part: Labeled, count: int, scale: float, n_sweeps: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Positions of the kept rows of one class, their votes, which sum to one, and the criterion."""
        e = self.estimator
        if count >= len(part.x):
            return np.arange(len(part.x)), np.full(count, 1 / count), 0.0
        frame, d = part.frame, part.x.shape[1]
        x = np.asarray(frame.inside(np.asarray(part.x, np.float64)))
        radius = scale * self.full.radius_ / float(frame.unit[0])
        n_jobs = e.n_jobs if len(x) >= THREAD_ROWS else 1
        rows = ArrayRows(x, np.arange(len(x)), width=max(e.n_candidates, d), n_jobs=n_jobs)
        narrow = network(x, part.weight, (0, len(x)), np.zeros(1), radius).narrow
        reducer = Reducer(rows, x, np.asarray(part.weight, np.float64), e._profile(d), radius, narrow)
        kept = reducer.herd(count)
        options = {"n_candidates": e.n_candidates, "max_sweeps": n_sweeps if e.method == "entropy" else 0}
        kept, history = reducer.exchange(kept, lambda n: rng.uniform(size=n), tol=e.tol, **options)
        votes = np.full(count, 1 / count) if e.weights == "equal" else reducer.weights(kept, n_sweeps=EM_SWEEPS)
        return np.array(kept), votes, history[-1]
