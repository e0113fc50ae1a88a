import itertools

import numpy as np
import pytest

from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from kernelpool.datasets import make_clouds
from kernelpool.em_log.network import EMLog
from kernelpool.errors import UnfinishedWarning
from kernelpool.neurons.network import Competitive

X, Y = make_clouds(400, random_state=0)


def test_a_callback_sees_every_sweep_and_may_stop():
    seen = []
    model = SharedKernelClassifier.prbf(4, random_state=0, callback=seen.append).fit(X, Y)
    assert [info.objective for info in seen] == model.history_.tolist()
    assert seen[0].sweep == 0
    assert seen[-1].start == 0
    np.testing.assert_array_equal(seen[-1].parameters["means_"], model.means_)
    stopped = SharedKernelClassifier.prbf(
        4, random_state=0, callback=lambda info: info.sweep >= 3
    ).fit(X, Y)
    assert stopped.n_iter_ == 3
    assert not stopped.converged_


def test_an_interrupted_fit_keeps_what_it_had():
    def interrupt(info):
        if info.sweep == 3:
            raise KeyboardInterrupt

    model = SharedKernelClassifier.prbf(4, random_state=0, callback=interrupt)
    with pytest.raises(
        KeyboardInterrupt, match="interrupted after 3 sweeps; the best parameters so far were kept"
    ):
        model.fit(X, Y)
    assert model.score(X, Y) > 0.7
    assert model.n_iter_ == 3
    seen = []

    def interrupt_second(info):
        seen.append(info.sweep)
        if seen.count(0) == 2:
            interrupt(info)

    network = SharedKernelClassifier.prbf(4, random_state=0, callback=interrupt_second)
    average = SharingAverageClassifier(network)
    with pytest.raises(KeyboardInterrupt, match="2 networks were kept"):
        average.fit(X, Y)
    assert len(average.estimators_) == 2
    assert average.score(X, Y) > 0.7


@pytest.mark.parametrize(
    ("network", "model", "call", "message"),
    [
        (
            Competitive,
            CompetitiveNeuronsClassifier(3, tol=0, n_init=2),
            5,
            "best parameters so far",
        ),
        (EMLog, EMLogClassifier(4), 5, "after 4 sweeps; the best network so far"),
        (EMLog, EMLogClassifier(4), 1, None),
    ],
)
def test_a_sweep_that_is_interrupted_leaves_the_best_network(
    network, model, call, message, monkeypatch
):
    sweep = network.sweep
    calls = itertools.count(1)

    def interrupted(*args):
        if next(calls) == call:
            raise KeyboardInterrupt
        return sweep(*args)

    monkeypatch.setattr(network, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt, match=message):
        model.set_params(random_state=0).fit(X, Y)
    assert hasattr(model, "classes_") == (call > 1)
    assert call == 1 or model.score(X, Y) > 0.6


class Recorder:
    """A callback in scikit-learn's protocol."""

    def __init__(self):
        self.sweeps = 0
        self.begun = 0
        self.ended = 0
        self.scores = []

    def setup(self, estimator, context):
        self.begun += 1

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        if context.task_name == "sweep":
            self.sweeps += 1
            self.scores.append(fitted_estimator.score(X, y))
            return self.sweeps == 5
        return False

    def teardown(self, estimator, context):
        self.ended += 1


def test_scikit_learns_callbacks_are_honored():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9")
    recorder = Recorder()
    model = SharedKernelClassifier.prbf(4, random_state=0)
    model.set_callbacks(recorder)
    model.fit(X, Y)
    assert (recorder.begun, recorder.ended, recorder.sweeps) == (1, 1, 5)
    assert recorder.scores[-1] == pytest.approx(model.score(X, Y))


@pytest.mark.parametrize(("verbose", "sweeps"), [(0, []), (1, [0, 10]), (2, range(12))])
def test_verbose_prints_lines(verbose, sweeps, capsys):
    model = SharedKernelClassifier.prbf(4, random_state=0, verbose=verbose, max_iter=11, tol=0)
    with pytest.warns(UnfinishedWarning):
        model.fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(sweeps)
    for line, sweep in zip(lines, sweeps, strict=True):
        assert line.startswith(f"SharedKernelClassifier 1/1: sweep {sweep}, objective -")
