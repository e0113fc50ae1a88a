"""What a summary says, against scikit-learn, SciPy and arithmetic by hand."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import mahalanobis
from scipy.stats import binomtest, multivariate_normal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    mean_squared_error,
    precision_score,
    r2_score,
    recall_score,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    EMLogRegressor,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from kernelpool.app.report import data, evaluation, render_html, summarize
from kernelpool.app.report import summary as summary_module
from kernelpool.errors import KernelpoolError
from kernelpool.text import text_of

SEED = {"random_state": 0}


# -- the data -----------------------------------------------------------------------------------------------------


def test_columns_are_told_with_ranges_constants_repeats_and_gaps():
    frame = pd.DataFrame(
        {
            "a": [1.0, 2.0, 6.0, 7.0],
            "same": [1, 2, 6, 7],
            "flat": [3.0, 3.0, 3.0, 3.0],
            "word": ["u", "v", "u", None],
            "word again": ["u", "v", "u", None],
            "gap": [0.0, np.nan, 2.0, 4.0],
            "shuffled": [7.0, 6.0, 2.0, 1.0],
        }
    )
    steps = make_column_transformer(
        (OneHotEncoder(), ["word"]), ("passthrough", ["a", "flat"]), sparse_threshold=0
    )
    model = make_pipeline(steps, SharedKernelClassifier.prbf(2, covariance_floor=1e-2, **SEED)).fit(
        frame, ["p", "q", "p", "q"]
    )
    data = summarize(model, frame, ["p", "q", "p", "q"], frame, ["p", "p", "p", "q"]).data
    a, same, flat, word, again, gap, shuffled = data.columns
    assert (a.low, a.mean, a.high) == (1.0, 4.0, 7.0)
    assert a.deviation == pytest.approx(np.sqrt((9 + 4 + 4 + 9) / 4))
    assert (same.same_as, again.same_as, shuffled.same_as) == ("a", "word", None)
    assert (flat.constant, a.constant) == (True, False)
    assert (word.kind, word.n_distinct, word.common, word.n_missing) == ("text", 2, "u", 1)
    assert (gap.low, gap.mean, gap.high, gap.n_missing) == (0.0, 2.0, 4.0, 1)
    assert data.constant == ("flat",)
    assert data.duplicates == (("same", "a"), ("word again", "word"))
    assert data.n_missing == 3
    assert [(c.name, c.n_rows, c.n_test) for c in data.classes] == [("p", 2, 3), ("q", 2, 1)]


def test_names_come_from_the_frame_from_the_user_or_by_number(fitted, two_clouds):
    x, y = two_clouds[:2]
    assert [c.name for c in summarize(fitted, x, y).data.columns] == ["x0", "x1"]
    assert [c.name for c in summarize(fitted, x, y, feature_names=["u", "v"]).data.columns] == [
        "u",
        "v",
    ]
    frame = pd.DataFrame(x, columns=["width", "height"])
    framed = SharedKernelClassifier.prbf(4, **SEED).fit(frame, y)
    assert summarize(framed, frame, y).kernels.features == ("width", "height")


def test_names_of_a_pyarrow_table_are_its_names_and_not_its_data(two_clouds):
    """Its `columns` are arrays: reports of the command line showed data in place of names."""
    pa = pytest.importorskip(
        "pyarrow", reason="tables of the command line need pyarrow: pip install '.[cli]'"
    )
    x, y, x_test, y_test = two_clouds
    table, test = (pa.table({"length": part[:, 0], "width": part[:, 1]}) for part in (x, x_test))
    model = SharedKernelClassifier.prbf(4, **SEED).fit(table, y)
    found = summarize(model, table, y, test, y_test)
    assert [column.name for column in found.data.columns] == ["length", "width"]
    assert (found.kernels.features, found.map.axes) == (("length", "width"), ("length", "width"))
    whole, plain = (
        found.to_dict(),
        summarize(SharedKernelClassifier.prbf(4, **SEED).fit(x, y), x, y, x_test, y_test).to_dict(),
    )
    assert whole["evaluation"] == plain["evaluation"]
    assert whole["outliers"]["bound"] == plain["outliers"]["bound"]


def test_rows_have_the_numbers_that_are_given(fitted, two_clouds):
    plain = summarize(fitted, *two_clouds)
    numbers, test_numbers = 7 * np.arange(300) + 1, 7 * np.arange(200) + 3
    named = summarize(fitted, *two_clouds, row_numbers=numbers, test_row_numbers=test_numbers)
    assert [(n.row, n.distance) for row in named.kernels.rows for n in row.near] == [
        (numbers[n.row], n.distance) for row in plain.kernels.rows for n in row.near
    ]
    where = {"training": numbers, "held out": test_numbers}
    assert [row.row for row in named.outliers.rows] == [
        where[row.where][row.row] for row in plain.outliers.rows
    ]
    assert "Rows are counted from 0." in render_html(plain)
    assert "Rows are counted from 0." not in render_html(named)
    with pytest.raises(
        KernelpoolError, match="row_numbers must be whole numbers, one for each of the 300 rows"
    ):
        summarize(fitted, *two_clouds, row_numbers=numbers[1:])


# -- how good it is -----------------------------------------------------------------------------------------------


def test_error_and_interval_are_those_of_scipys_binomial_test(fitted, two_clouds):
    x, y, x_test, y_test = two_clouds
    n_errors = int((fitted.predict(x_test) != y_test).sum())
    for doubt in (0.05, 0.2):
        rate = summarize(fitted, x, y, x_test, y_test, doubt=doubt).evaluation.rate
        expected = binomtest(n_errors, len(y_test)).proportion_ci(1 - doubt, "exact")
        assert (rate.n_errors, rate.n_rows, rate.error) == (n_errors, 200, n_errors / 200)
        assert (rate.low, rate.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_confusion_recall_precision_and_log_loss_are_scikit_learns(fitted, two_clouds):
    x, y, x_test, y_test = two_clouds
    found = summarize(fitted, x, y, x_test, y_test).evaluation
    named = fitted.predict(x_test)
    assert np.array_equal(found.confusion.counts, confusion_matrix(y_test, named))
    assert [s.recall for s in found.confusion.scores] == pytest.approx(
        recall_score(y_test, named, average=None)
    )
    assert [s.precision for s in found.confusion.scores] == pytest.approx(
        precision_score(y_test, named, average=None)
    )
    assert found.log_loss == pytest.approx(log_loss(y_test, fitted.predict_proba(x_test)))
    assert found.guessing == pytest.approx(1 - max(np.mean(y_test), 1 - np.mean(y_test)))
    assert found.held_out


def test_calibration_and_reject_curve_are_those_of_a_loop(fitted, two_clouds):
    x, y, x_test, y_test = two_clouds
    found = summarize(fitted, x, y, x_test, y_test).evaluation
    probability = fitted.predict_proba(x_test)
    sure, right = probability.max(axis=1), fitted.classes_[probability.argmax(axis=1)] == y_test
    gap = 0.0
    for b in found.calibration:
        mine = (sure >= b.low) & (sure < b.high if b.high < 1 else sure <= 1)
        assert (b.n_rows, b.confidence, b.accuracy) == (
            mine.sum(),
            pytest.approx(sure[mine].mean()),
            right[mine].mean(),
        )
        gap += mine.sum() * abs(right[mine].mean() - sure[mine].mean()) / len(sure)
    assert sum(b.n_rows for b in found.calibration) == 200
    assert found.calibration_error == pytest.approx(gap)
    for point in found.curve:
        kept = sure >= point.threshold - 1e-12
        assert point.coverage == pytest.approx(kept.mean())
        assert point.rate.error == pytest.approx(1 - right[kept].mean())
    assert found.curve[-1].coverage == 1
    assert len(found.curve) == 100
    assert [round(p.coverage, 2) for p in found.choices] == [1.0, 0.99, 0.95, 0.9, 0.8, 0.5]


def test_rows_of_one_probability_are_accepted_together():
    model = SharedKernelClassifier.from_parameters(
        [[0.0], [4.0]], [1.0, 1.0], np.eye(2), [0.5, 0.5], [0, 1]
    )
    x, y = np.repeat([[0.0], [2.0], [4.0]], 10, axis=0), np.repeat([0, 1, 1], 10)
    curve = summarize(model, x, y, x, y).evaluation.curve
    assert [(p.coverage, p.rate.n_rows) for p in curve] == [(pytest.approx(2 / 3), 20), (1.0, 30)]


def test_unlabeled_rows_are_counted_and_judge_nothing(two_clouds):
    x, y = two_clouds[:2]
    part = np.where(np.arange(300) % 3 == 0, -1, y)
    model = SharedKernelClassifier.prbf(4, unlabeled=-1, **SEED).fit(x, part)
    summary = summarize(model, x, part)
    assert summary.data.n_unlabeled == 100
    assert summary.evaluation.rate.n_rows == 200
    assert not summary.evaluation.held_out
    assert any("too low an estimate" in note for note in summary.notes)
    assert any("100 training rows without a label" in note for note in summary.notes)


def test_classes_that_were_never_seen_are_errors(fitted, two_clouds):
    x, y, x_test, y_test = two_clouds
    unknown = np.where(np.arange(200) < 10, 7, y_test)
    found = summarize(fitted, x, y, x_test, unknown).evaluation
    assert found.unseen == ("7",)
    assert found.rate.n_errors == (fitted.predict(x_test) != unknown).sum()
    assert found.confusion.true == ("0", "1", "7")
    assert found.log_loss > -0.05 * np.log(
        np.finfo(float).tiny
    )  # a class that cannot be named has no probability
    assert sum(found.confusion.counts[2]) == 10


def test_a_classifier_that_refuses_is_judged_by_what_it_accepts(two_clouds):
    x, y, x_test, y_test = two_clouds
    x_test = np.concatenate([x_test, [[500.0, 500.0]] * 3])
    y_test = np.concatenate([y_test, [0] * 3])
    reject_classifier = RejectClassifier(
        SharedKernelClassifier.prbf(4, **SEED), ambiguity=0.2, novelty=0.01
    ).fit(x, y)
    for model in (
        reject_classifier,
        make_pipeline(StandardScaler(), clone(reject_classifier)).fit(x, y),
    ):
        summary = summarize(model, x, y, x_test, y_test)
        refused, decision = summary.evaluation.refused, model.predict(x_test)
        assert refused.n_novel == (decision == -1).sum() >= 3
        assert refused.n_ambiguous == (decision == -2).sum() > 0
        kept = decision >= 0
        assert refused.accepted.error == pytest.approx((decision != y_test)[kept].mean())
        sure = model.classes_[model.predict_proba(x_test).argmax(axis=1)]
        assert summary.evaluation.rate.n_errors == (sure != y_test).sum()
        assert "refuses a row as ambiguous" in summary.sentence


@pytest.fixture(scope="module")
def far_off(two_clouds):
    """Test rows of which five are unlike anything seen."""
    x, y, x_test, y_test = two_clouds
    return x, y, np.concatenate([x_test, [[500.0, 500.0]] * 5]), np.concatenate([y_test, [0] * 5])


def test_thresholds_of_a_classifier_that_refuses_are_told(far_off):
    x, y, x_test, y_test = far_off
    model = RejectClassifier(
        SharedKernelClassifier.prbf(4, **SEED), ambiguity=0.2, novelty=0.05
    ).fit(x, y)
    summary = summarize(model, x, y, x_test, y_test)
    refused, decision = summary.evaluation.refused, model.decide(x_test)
    assert (refused.ambiguity, refused.novelty) == (0.2, model.novelty_threshold_)
    assert refused.coverage == np.mean(decision == 0)
    assert not refused.one_label
    assert summary.outliers.novelty == model.novelty_threshold_
    for part, rows in zip(summary.outliers.scores, (x, x_test), strict=True):
        assert part.n_novel == (model.decide(rows) == 2).sum() > 0
    shown = {row.row: row.named for row in summary.outliers.rows if row.where == "held out"}
    for row, named in shown.items():
        assert (
            named
            == {0: str(model.predict(x_test[[row]])[0]), 1: "ambiguous", 2: "novel"}[decision[row]]
        )
    assert "novel" in shown.values()


def test_the_reject_curve_leaves_novel_rows_out_as_the_classifier_does(far_off):
    x, y, x_test, y_test = far_off
    model = RejectClassifier(
        SharedKernelClassifier.prbf(4, **SEED), ambiguity=0.2, novelty=0.05
    ).fit(x, y)
    found = summarize(model, x, y, x_test, y_test).evaluation
    coverage, error, thresholds = model.coverage_curve(x_test, y_test)
    for point in found.curve:
        at = np.argmin(np.abs(coverage - point.coverage))
        expected = (coverage[at], error[at], 1 - thresholds[at])
        assert (point.coverage, point.rate.error, point.threshold) == pytest.approx(expected)
    assert found.curve[-1].coverage == np.mean(model.decide(x_test) != 2) < 1
    at = np.searchsorted(thresholds, 0.2, side="right") - 1  # the point in use lies on it
    assert (found.refused.coverage, found.refused.accepted.error) == pytest.approx(
        (coverage[at], error[at])
    )


def test_one_label_for_both_refusals_a_classifier_without_thresholds_and_one_that_accepts_nothing(
    far_off,
):
    x, y, x_test, y_test = far_off
    inner = SharedKernelClassifier.prbf(4, **SEED)
    same = RejectClassifier(
        inner, ambiguity=0.2, novelty=0.05, ambiguous_label=-9, novel_label=-9
    ).fit(x, y)
    refused = summarize(same, x, y, x_test, y_test).evaluation.refused
    assert (refused.one_label, refused.n_ambiguous) == (True, (same.decide(x_test) > 0).sum())
    free = summarize(
        RejectClassifier(inner, ambiguity=None, novelty=None).fit(x, y), x, y, x_test, y_test
    )
    assert (
        free.evaluation.refused.ambiguity,
        free.evaluation.refused.novelty,
        free.outliers.novelty,
    ) == (None, None, None)
    assert free.evaluation.refused.coverage == 1
    nothing = RejectClassifier(inner, novelty=1e6, novelty_rule="threshold").fit(x, y)
    summary = summarize(nothing, x, y, x_test, y_test)
    assert (
        summary.evaluation.refused.accepted,
        summary.evaluation.curve,
        summary.evaluation.choices,
    ) == (None, (), ())
    assert summary.outliers.scores[1].n_novel == 205
    for each in (free, summary, summarize(same, x, y, x_test, y_test)):
        render_html(each)


def test_a_classifier_without_a_density_has_a_histogram_of_its_kernels_and_no_threshold_there(
    far_off,
):
    x, y, x_test, y_test = far_off
    model = RejectClassifier(EMLogClassifier(4, **SEED), ambiguity=0.2).fit(x, y)
    summary = summarize(model, x, y, x_test, y_test)
    assert summary.outliers.novelty is None
    assert summary.outliers.scores[0].n_novel is None


def test_regression_errors_are_scikit_learns(two_clouds):
    x, _, x_test, _ = two_clouds
    target, target_test = x[:, :1] ** 2 + [[0, 1]], x_test[:, :1] ** 2 + [[0, 1]]
    model = EMLogRegressor(6, **SEED).fit(x, target)
    first, second = summarize(model, x, target, x_test, target_test).regression
    mean, std = model.predict(x_test, return_std=True)
    assert first.rmse == pytest.approx(mean_squared_error(target_test[:, 0], mean[:, 0]) ** 0.5)
    assert second.r2 == pytest.approx(r2_score(target_test[:, 1], mean[:, 1]))
    assert first.within == pytest.approx((np.abs(mean - target_test) <= 2 * std)[:, 0].mean())
    assert first.rmse_low < first.rmse < first.rmse_high


# -- kernels ------------------------------------------------------------------------------------------------------


def test_kernels_have_their_share_classes_and_nearest_rows(fitted, two_clouds):
    x, y = two_clouds[:2]
    table = summarize(fitted, x, y).kernels
    share = fitted.mixing_ @ fitted.class_prior_
    assert [row.index for row in table.rows] == np.argsort(-share).tolist()
    for row in table.rows:
        j = row.index
        assert row.share == pytest.approx(share[j])
        assert row.n_rows == pytest.approx(300 * share[j])
        posterior = fitted.mixing_[j] * fitted.class_prior_ / share[j]
        assert row.classes[0] == (str(posterior.argmax()), pytest.approx(posterior.max()))
        assert [t.mean for t in row.traits] == pytest.approx(fitted.means_[j])
        assert [t.width for t in row.traits] == pytest.approx(
            np.diag(fitted.covariances_[j]) ** 0.5
        )
        inverse = np.linalg.inv(fitted.covariances_[j])
        distance = np.array([mahalanobis(r, fitted.means_[j], inverse) for r in x])
        assert [near.row for near in row.near] == np.argsort(distance)[:3].tolist()
        assert [near.distance for near in row.near] == pytest.approx(np.sort(distance)[:3])
        assert [near.label for near in row.near] == [str(y[near.row]) for near in row.near]


def test_kernels_say_how_far_their_classes_lie_apart(two_clouds):
    """(11)-(16) of the regularized PRBF, kernel by kernel."""
    x = two_clouds[0]
    y = (np.arange(len(x)) % 3 == 0).astype(int)
    x = x + np.outer(y, [0.0, 0.7])  # classes that lie half apart, in either cloud
    labels = np.array(["few", "many"])[y].astype(object)
    model = SharedKernelClassifier(
        2, sharing=1.0, covariance_type="full", training="em", kernel_prior=None, **SEED
    ).fit(x, labels)
    density = np.stack(
        [
            multivariate_normal(m, c).pdf(x)
            for m, c in zip(model.means_, model.covariances_, strict=True)
        ],
        1,
    )
    joint = density * model.mixing_.T[y]
    responsibility = joint / joint.sum(axis=1, keepdims=True)
    rows = {row.index: row.apart for row in summarize(model, x, labels).kernels.rows}
    for j, (mean, covariance) in enumerate(zip(model.means_, model.covariances_, strict=True)):
        posterior = model.mixing_[j] * model.class_prior_ / (model.mixing_[j] @ model.class_prior_)
        expected = 0.0
        for k in (0, 1):
            weight = responsibility[y == k, j]
            sub_mean = weight @ x[y == k] / weight.sum()
            sub = np.cov(x[y == k].T, aweights=weight, ddof=0)
            middle, away = (covariance + sub) / 2, mean - sub_mean
            logs = (
                np.log(np.linalg.det(middle))
                - np.log(np.linalg.det(covariance) * np.linalg.det(sub)) / 2
            )
            expected += posterior[k] * (away @ np.linalg.solve(middle, away) / 8 + logs / 2)
        assert rows[j] == pytest.approx(expected, rel=1e-5)
    assert ">apart</th>" in render_html(summarize(model, x, labels))
    assert summarize(RBFNetworkClassifier(4, **SEED).fit(x, y), x, y).kernels.rows[0].apart is None


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        RobustScaler(),
        MinMaxScaler((-1, 3)),
        MaxAbsScaler(),
    ],
)
def test_kernels_behind_scalers_are_told_in_the_units_of_the_input(two_clouds, scaler):
    x, y = two_clouds[:2]
    pipeline = make_pipeline(
        scaler, StandardScaler(), SharedKernelClassifier.prbf(4, covariance_type="diag", **SEED)
    ).fit(x, y)
    inner = pipeline[-1]
    back = pipeline[:-1].inverse_transform
    for row in summarize(pipeline, x, y).kernels.rows:
        mean, width = inner.means_[[row.index]], inner.covariances_[[row.index]] ** 0.5
        assert [t.mean for t in row.traits] == pytest.approx(back(mean)[0])
        assert [t.width for t in row.traits] == pytest.approx((back(mean + width) - back(mean))[0])
        assert [t.away for t in row.traits] == pytest.approx(
            (back(mean)[0] - x.mean(axis=0)) / x.std(axis=0)
        )


def test_columns_that_are_passed_through_keep_their_units(two_clouds):
    x, y = two_clouds[:2]
    swap = make_column_transformer(("passthrough", [1, 0]))
    pipeline = make_pipeline(StandardScaler(), swap, SharedKernelClassifier.prbf(2, **SEED)).fit(
        x, y
    )
    summary = summarize(pipeline, x, y)
    assert summary.kernels.features == ("x1", "x0")
    for row in summary.kernels.rows:
        mean = pipeline[-1].means_[row.index, ::-1] * pipeline[0].scale_ + pipeline[0].mean_
        assert [t.mean for t in row.traits] == pytest.approx(mean[::-1])
    assert summary.notes == (
        "No held-out rows were given: the error is that of the training rows, which is too low an estimate.",
    )


def test_encoded_columns_keep_their_names_and_scaled_ones_their_units():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"town": rng.choice(["A", "B"], 200), "idle": 0.0, "age": rng.normal(40, 10, 200)}
    )
    y = np.where(frame.age > 40, "old", "young")
    steps = make_column_transformer(
        (StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["town"])
    )
    pipeline = make_pipeline(steps, SharedKernelClassifier.prbf(4, **SEED)).fit(frame, y)
    summary = summarize(pipeline, frame, y)
    assert summary.kernels.features == ("age", "town_A", "town_B")
    scaler = pipeline[0].named_transformers_["standardscaler"]
    for row in summary.kernels.rows:
        mean = pipeline[-1].means_[row.index]
        assert row.traits[0].mean == pytest.approx(mean[0] * scaler.scale_[0] + scaler.mean_[0])
        assert row.traits[1].mean == pytest.approx(mean[1])
    assert any("steps before the model make" in note for note in summary.notes)
    assert "Rows first go through ColumnTransformer" in summary.sentence


def test_kernels_that_know_no_class_are_told_by_their_rows(two_clouds):
    x, y = two_clouds[:2]
    model = EMLogClassifier(5, **SEED).fit(x, y)
    activation = model.activations(x)
    for row in summarize(model, x, y).kernels.rows:
        column = activation[:, row.index]
        ones = column[y == 1].sum() / column.sum()
        assert dict(row.classes).get("1", 0.0) == pytest.approx(ones, abs=0.005)


def test_kernels_of_an_average_carry_its_weights(two_clouds):
    x, y = two_clouds[:2]
    model = SharingAverageClassifier(4, sharing=(0, 1), **SEED).fit(x, y)
    rows = summarize(model, x, y).kernels.rows
    assert len(rows) == 8
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert sum(row.share for row in rows if row.group == "sharing 0") == pytest.approx(0.5)


def test_kernels_that_are_rows_lie_nearest_to_themselves(two_clouds):
    x, y = two_clouds[:2]
    model = ParzenClassifier("hypersphere", standardize=False, radius=1.0).fit(x, y)
    table = summarize(model, x, y, max_kernels=10).kernels
    assert table.n_more == 290
    for row in table.rows:
        assert (row.near[0].row, row.near[0].distance) == (model.kept_indices_[row.index], 0)
    assert {row.classes[0][0] for row in table.rows} == {"0", "1"}  # some from everywhere


def test_the_variance_of_a_ball_is_that_of_rows_drawn_from_it():
    model = ParzenClassifier("hypersphere", standardize=False, radius=2.0).fit(
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0, 1]
    )
    drawn = model.sample(20_000, random_state=0)[0]
    width = (
        summarize(model, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0, 1]).kernels.rows[0].traits[0].width
    )
    assert width == pytest.approx(drawn.std(axis=0).mean(), rel=0.01)


# -- outliers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["spherical", "diag", "full", "tied"])
def test_a_planted_outlier_is_found_with_its_odd_feature(family):
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=400)
    x = rng.normal(size=(400, 4)) + 3 * y[:, None]
    model = SharedKernelClassifier.prbf(2, covariance_type=family, **SEED).fit(x, y)
    x[123, 2] = 60.0
    found = summarize(model, x, y, feature_names=list("abcd")).outliers
    assert found.rows[0].row == 123
    assert found.rows[0].score == pytest.approx(model.score_samples(x[[123]])[0])
    assert found.rows[0].odd[0].feature == "c"
    assert found.rows[0].odd[0].value == pytest.approx(60.0)
    assert [row.score for row in found.rows] == sorted(row.score for row in found.rows)
    assert found.scores[0].n_below == (model.score_samples(x) < found.bound).sum() >= 1
    assert sum(found.scores[0].counts) == 400


def test_oddness_within_a_full_kernel_is_judged_given_the_other_features():
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])
    model = SharedKernelClassifier.from_parameters(
        [[0.0, 0.0], [50.0, 50.0]], [covariance, covariance], np.eye(2), [0.5, 0.5], [0, 1], "full"
    )
    x = np.array([[1.5, -1.5], [50.0, 50.0], [0.0, 0.0]])  # each value is common, the pair is not
    row = summarize(model, x, [0, 1, 0]).outliers.rows[0]
    assert row.row == 0
    odd = {o.feature: o for o in row.odd}
    # x0 | x1 is normal with mean 0.9 x1 and variance 1 - 0.81
    assert odd["x0"].expected == pytest.approx(0.9 * -1.5)
    assert odd["x0"].away == pytest.approx((1.5 + 0.9 * 1.5) / np.sqrt(0.19))
    assert odd["x1"].away == pytest.approx(-odd["x0"].away)


def test_the_bound_is_the_quantile_of_the_models_own_rows(two_clouds):
    """A standard normal in one dimension: log p has its 0.001 quantile where |z| = 3.29."""
    model = SharedKernelClassifier.from_parameters(
        [[0.0], [0.0]], [1.0, 1.0], np.eye(2), [0.5, 0.5], [0, 1]
    )
    found = summarize(model, np.linspace(-3, 3, 50)[:, None], np.arange(50) % 2).outliers
    assert found.bound == pytest.approx(-0.5 * 3.2905**2 - 0.5 * np.log(2 * np.pi), abs=0.4)
    assert found.one_in == 1000


# -- many rows, strange columns -----------------------------------------------------------------------------------


def test_where_rows_are_too_many_a_sample_is_taken_and_said(two_clouds, monkeypatch):
    x, y, x_test, y_test = two_clouds
    model = SharedKernelClassifier.prbf(4, **SEED).fit(x, y)
    monkeypatch.setattr(summary_module, "LEAST_ROWS", 10)
    monkeypatch.setattr(summary_module, "PAIRS", 4 * 50)
    summary = summarize(model, x, y, x_test, y_test)
    assert summary.notes == (
        "Of the 300 training rows a random 50 were passed through the model.",
        "Of the 200 held-out rows a random 50 were passed through the model.",
    )
    found = summary.evaluation
    assert (found.rate.n_rows, found.n_given) == (50, 200)
    assert [part.n_rows for part in summary.outliers.scores] == [50, 50]
    assert (summary.data.n_rows, summary.data.classes[0].n_rows) == (300, max(np.bincount(y)))
    assert sum(row.n_rows for row in summary.kernels.rows) == pytest.approx(300)
    for row in summary.kernels.rows:
        for near in row.near:  # numbers among all rows, not among the sample
            distance = (
                np.linalg.norm(x[near.row] - model.means_[row.index])
                / model.covariances_[row.index] ** 0.5
            )
            assert near.distance == pytest.approx(distance)


def numbers_in(record):
    """Every number of a record, in its order."""
    parts = dataclasses.asdict(record) if dataclasses.is_dataclass(record) else record
    parts = list(parts.values()) if isinstance(parts, dict) else parts
    return (
        [n for part in parts for n in numbers_in(part)]
        if isinstance(parts, list | tuple)
        else [parts]
        if isinstance(parts, int | float)
        else []
    )


def test_blocks_change_nothing(two_clouds, monkeypatch):
    whole = summarize(SharedKernelClassifier.prbf(4, **SEED).fit(*two_clouds[:2]), *two_clouds)
    for module in (summary_module, evaluation):
        monkeypatch.setattr(module, "blocks", lambda n, size=0: data.blocks(n, 17))
    parts = summarize(SharedKernelClassifier.prbf(4, **SEED).fit(*two_clouds[:2]), *two_clouds)
    np.testing.assert_allclose(
        numbers_in(parts.evaluation), numbers_in(whole.evaluation), rtol=1e-12
    )  # sums in another order
    assert parts.kernels == whole.kernels
    assert parts.outliers.rows == whole.outliers.rows


def test_frames_of_every_kind_of_column_are_told():
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1.5, None] * 30, dtype="Float64"),
            "flag": [True, False, True] * 20,
            "kind": pd.Categorical(["u", "v", "v"] * 20),
            "day": pd.date_range("2020-01-01", periods=60),
            "count": np.arange(60),
        }
    )
    root = FunctionTransformer(np.sqrt, feature_names_out="one-to-one")
    steps = make_column_transformer(
        (root, ["count"]),
        ("passthrough", ["flag"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["nullable"]),
    )
    y = np.arange(60) % 2
    model = make_pipeline(steps, SharedKernelClassifier.prbf(2, **SEED)).fit(frame, y)
    summary = summarize(model, frame, y)
    assert [c.kind for c in summary.data.columns] == ["number", "number", "text", "text", "number"]
    assert [c.n_missing for c in summary.data.columns] == [30, 0, 0, 0, 0]
    assert summary.data.columns[2].common == "v"
    assert summary.kernels.features == ("count", "flag", "nullable")
    assert [row.traits[2].mean for row in summary.kernels.rows] == [
        1.5,
        1.5,
    ]  # all that is known is 1.5


def test_text_is_cut_and_cleaned_and_keeps_every_language():
    odd = "\N{REPLACEMENT CHARACTER}"
    assert text_of("a\nb\u2028c\u202ed\x00") == f"a{odd}b{odd}c{odd}d{odd}"
    assert text_of("क्\u200dष 日本 é") == "क्\u200dष 日本 é"
    assert text_of("\ud800") == "?"
    assert text_of("x" * 500) == "x" * 199 + "…"
    assert text_of(b"caf\xc3\xa9") == "café"
    assert (text_of(np.int64(3)), text_of(np.float64(0.1)), text_of(1 / 3), text_of(True)) == (
        "3",
        "0.1",
        "0.33333",
        "True",
    )


# -- every model --------------------------------------------------------------------------------------------------

MODELS = {
    "average": SharingAverageClassifier(4, sharing=(0, 1), covariance_type="tied", **SEED),
    "grid": GridSearchCV(SharedKernelClassifier.prbf(**SEED), {"n_kernels": [2, 4]}, cv=2),
    "neurons": CompetitiveNeuronsClassifier(3, **SEED),
    "neurons with places": CompetitiveNeuronsClassifier(3, local=True, **SEED),
    "parzen": ParzenClassifier(**SEED),
    "hyperspheres": ParzenClassifier("hypersphere", "loo", standardize=False, **SEED),
    "pca": make_pipeline(StandardScaler(), PCA(1), SharedKernelClassifier.prbf(4, **SEED)),
    "rbf": EMLogClassifier(4, readout="least_squares", activation="density", **SEED),
    "rbf path": RBFNetworkClassifier(20, **SEED),
    "reduced": ReducedParzenClassifier(8, **SEED),
    "reject": RejectClassifier(
        make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(4, **SEED)), ambiguity=0.2
    ),
    "scikit-learn": LogisticRegression(),
    "shared": SharedKernelClassifier.prbf(4, sharing=0.5, **SEED),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_has_a_summary_that_is_plain_data_and_a_page(name, two_clouds):
    x, y, x_test, y_test = two_clouds
    labels, labels_test = np.array(["no", "yes"])[y], np.array(["no", "yes"])[y_test]
    model = MODELS[name].fit(x, labels)
    summary = summarize(model, x, labels, x_test, labels_test)
    assert json.loads(summary.to_json())["evaluation"]["rate"]["n_rows"] == 200
    assert summary.evaluation.rate.error < 0.5
    page = render_html(summary)
    assert summary.sentence.split(".")[0] in page
    has_kernels, has_places = name != "scikit-learn", name not in ("scikit-learn", "neurons")
    assert (summary.kernels is not None, summary.outliers is not None) == (has_kernels, has_places)
    assert ('id="kernels"' in page, 'id="outliers"' in page) == (has_kernels, has_places)
    if has_kernels:
        assert set(dict(summary.kernels.rows[0].classes)) <= {"no", "yes"}


def test_a_regressor_is_told_without_what_needs_classes(two_clouds):
    x, _, x_test, _ = two_clouds
    summary = summarize(EMLogRegressor(4, **SEED).fit(x, x[:, 0]), x, x[:, 0], x_test, x_test[:, 0])
    page = render_html(summary)
    assert summary.task == "regression"
    assert summary.evaluation is None
    assert len(summary.kernels.rows[0].weight) == 1
    assert "root mean squared error" in page
    assert "Which classes are taken for which" not in page


def test_a_summary_needs_neither_jinja2_nor_matplotlib():
    code = """
import sys
for name in ("jinja2", "matplotlib", "typer"):
    sys.modules[name] = None
from kernelpool import SharedKernelClassifier
from kernelpool.app.report import render_html, summarize
x = [[float(i), float(i % 3)] for i in range(20)]
summary = summarize(SharedKernelClassifier.prbf(2, random_state=0).fit(x, [0, 1] * 10), x, [0, 1] * 10)
print(summary.data.n_rows)
try:
    render_html(summary)
except ImportError as error:
    print(error)
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert out == ["20", "Reports need jinja2: pip install '.[report]' in kernelpool's folder."]


# -- how it was made ----------------------------------------------------------------------------------------------


def test_training_is_told_as_the_model_has_it(fitted, two_clouds):
    training = summarize(fitted, *two_clouds[:2], duration=1.25).training
    assert (training.n_sweeps, training.converged) == (fitted.n_iter_, fitted.converged_)
    assert training.runs[0].values == tuple(fitted.history_.tolist())
    assert (training.seed, training.duration) == ("0", 1.25)
    told = {p.name: (p.value, p.default) for p in training.parameters}
    assert told["n_kernels"] == ("4", False)
    assert told["covariance_type"] == ("'full'", True)
    assert told["sharing"] == ("1.0", False)
    assert told["tol"] == ("1e-05", True)
    assert set(told) == set(fitted.get_params())
    assert dict(training.versions)["NumPy"] == np.__version__


@pytest.mark.parametrize("name", ["shared", "reject", "pca", "reduced"])
def test_the_code_of_a_report_makes_the_same_model(name, two_clouds, tmp_path, monkeypatch):
    x, y, x_test, y_test = two_clouds
    model = MODELS[name].fit(x, y)
    summary = summarize(model, x, y, x_test, y_test, source="rows.csv\nimport os")
    monkeypatch.chdir(tmp_path)
    space = {"X": x, "y": y, "X_test": x_test, "y_test": y_test}
    exec(compile(summary.rerun.code, "report", "exec"), space)
    assert np.array_equal(space["model"].predict_proba(x_test), model.predict_proba(x_test))
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert summary.rerun.notes == ()
    assert "covariance_floor" not in summary.rerun.code  # defaults go without saying


def test_what_code_cannot_say_is_noted(two_clouds):
    x, y = two_clouds[:2]
    model = SharedKernelClassifier.prbf(
        2, random_state=np.random.RandomState(0), callback=print
    ).set_params(callback=lambda info: False)
    notes = " ".join(summarize(model.fit(x, y), x, y).rerun.notes)
    assert "cannot be written down" in notes
    assert "generator" in notes
    assert "No seed was set" in " ".join(
        summarize(SharedKernelClassifier.prbf(2).fit(x, y), x, y).rerun.notes
    )


# -- bad input ----------------------------------------------------------------------------------------------------


def test_bad_input_is_named(fitted, two_clouds):
    from scipy.sparse import csr_matrix

    x, y, x_test, y_test = two_clouds
    with pytest.raises(KernelpoolError, match="X_test and y_test must be given together"):
        summarize(fitted, x, y, x_test)
    with pytest.raises(KernelpoolError, match="X has 300 rows and y 299"):
        summarize(fitted, x, y[:-1])
    with pytest.raises(KernelpoolError, match="X_test has 200 rows and y_test 199"):
        summarize(fitted, x, y, x_test, y_test[:-1])
    with pytest.raises(KernelpoolError, match="X_test has 1 columns, X 2"):
        summarize(fitted, x, y, x_test[:, :1], y_test)
    with pytest.raises(KernelpoolError, match="feature_names has 3 names for 2 columns"):
        summarize(fitted, x, y, feature_names=list("abc"))
    with pytest.raises(KernelpoolError, match=r"doubt must lie between 0 and 1; got 1\.5"):
        summarize(fitted, x, y, doubt=1.5)
    with pytest.raises(KernelpoolError, match=r"max_kernels must be at least 1 .* got 0 and 8"):
        summarize(fitted, x, y, max_kernels=0)
    with pytest.raises(KernelpoolError, match="n_outliers at least 0; got 40 and -1"):
        summarize(fitted, x, y, n_outliers=-1)
    with pytest.raises(
        KernelpoolError, match="needs a classifier or a regressor; got StandardScaler"
    ):
        summarize(StandardScaler().fit(x), x, y)
    with pytest.raises(KernelpoolError, match=r"two dimensions.*\(300,\)"):
        summarize(fitted, x[:, 0], y)
    with pytest.raises(KernelpoolError, match="sparse"):
        summarize(fitted, csr_matrix(x), y)
    with pytest.raises(KernelpoolError, match="X_test has no rows"):
        summarize(fitted, x, y, x_test[:0], y_test[:0])


def test_dask_rows_are_refused_with_advice(fitted, two_clouds):
    import dask.array as da

    with pytest.raises(KernelpoolError, match="got a Dask array"):
        summarize(fitted, da.from_array(two_clouds[0]), two_clouds[1])


def test_of_a_pool_it_is_told_who_was_asked_and_who_was_heard(two_clouds):
    candidates = [
        ("<b>four</b>", SharedKernelClassifier.prbf(4, random_state=0)),
        ("guessing", DummyClassifier(strategy="uniform")),
    ]
    model = PooledClassifier(candidates, pooling="log_linear", n_folds=2, random_state=0).fit(
        *two_clouds[:2]
    )
    summary = summarize(model, *two_clouds)
    asked = summary.members
    assert [member.name for member in asked] == ["<b>four</b>", "guessing"]
    assert asked[0].weight == model.weights_[0]
    assert asked[0].loss == pytest.approx(model.trials_["loss"][0])
    assert asked[0].outcome == "kept"
    assert asked[1].weight is None
    assert asked[1].outcome != "kept"
    page = render_html(summary)
    assert "Who was asked, and who was heard" in page
    assert "<b>four" not in page
    assert asked[1].outcome in page
    assert json.loads(summary.to_json())["members"][1]["name"] == "guessing"
    assert summarize(model.networks_[0], *two_clouds).members == ()


def test_a_pool_without_densities_has_a_report(two_clouds):
    model = PooledClassifier([RBFNetworkClassifier(9)], n_folds=2, random_state=0).fit(
        *two_clouds[:2]
    )
    summary = summarize(model, *two_clouds)
    assert summary.kernels is None
    assert [member.weight for member in summary.members] == model.weights_.tolist()
