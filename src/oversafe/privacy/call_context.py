"""What else is done to the data around a private fit: searches, calibrations, and earlier steps of a pipeline.

Whoever calls a fit may fit it many times, choose by what comes out, or hand over rows that it made of others. So a
fit is private by itself only where everything on the stack is known to do none of that; anything else makes the
guarantee nominal, unless the user vouches for it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Literal, get_args
from weakref import WeakSet

import numpy as np

from oversafe._core.checks import check_choice
from oversafe.privacy.answers import RECORDED, recording

CallContext = Literal["checked", "vouched"]

TUNED = (
    "the settings or columns were chosen by a search over fits to the same data, each of which costs privacy that this "
    "figure leaves out"
)
CALIBRATED = (
    "a threshold or a calibration around the model is fitted to the same data, which nobody pays for, and so is every "
    "further fit to a part of them"
)
_REPEATED = "the rows were drawn with repetition, and this figure counts a record once"
_CHOSEN = "the rows were chosen by their labels, so that their number, which counts as public, tells of them"
_STEPS = "earlier steps of the pipeline were fitted to the data, which nobody paid for: "
_MADE = (
    "the rows were made by an earlier step of the pipeline, whose guarantee is the one that real records have; this "
    "figure speaks of made rows: "
)
_STACKED = (
    "the columns are what other models, fitted to the same data, say; this figure leaves their costs out"
)
_ENCODED = (
    "the labels were written as numbers by the set of those that occur, at which nobody paid for a look, so that one "
    "record of another label changes those of all"
)
_FED_BACK = "labels, columns or weights are what earlier fits to the same data say; this figure leaves their costs out"
_FOLDED = (
    "the folds were not made from the places of the rows alone, so that one record may move others between them; use "
    "KFold or ShuffleSplit"
)
_HIDDEN = (
    "fitted in a worker process or thread, where what was done around it cannot be seen; fit with n_jobs=1, or say "
    "call_context='vouched'"
)
_UNKNOWN = (
    "fitted inside of what is not known, which may look at the data or fit to them several times; if it does neither, "
    "say call_context='vouched': "
)
# What the user says of both.
VOUCHED = (
    "whoever made the fit vouches that nothing around it looks at the data or fits to them several times"
)
_WARNINGS = {
    TUNED: "a search over settings or columns fits a private model many times, and every fit costs privacy; the "
    "guarantee of the result counts only the last of them",
    CALIBRATED: "a threshold or a calibration is fitted to the data around a private model without privacy, and every "
    "fit of the model costs privacy; the guarantee covers one model alone",
}
# Calls of scikit-learn and imbalanced-learn that fit a model among other things, by their qualified names.
_CALLS = {
    "BaseSearchCV.fit": TUNED,
    "RFE._fit": TUNED,
    "RFECV.fit": TUNED,
    "_rfe_single_fit": TUNED,
    "SequentialFeatureSelector.fit": TUNED,
    "TunedThresholdClassifierCV._fit": CALIBRATED,
    "_fit_and_score_over_thresholds": CALIBRATED,
    "CalibratedClassifierCV.fit": CALIBRATED,
    "_fit_classifier_calibrator_pair": CALIBRATED,
    "_fit_ovo_binary": _CHOSEN,
    # Of voting and stacking, and of one class against the rest.
    "_fit_single_estimator": _ENCODED,
    "_fit_binary": _ENCODED,
    "SelfTrainingClassifier.fit": _FED_BACK,
    "IterativeImputer.fit_transform": _FED_BACK,
    "BaseWeightBoosting.fit": _FED_BACK,
    "RUSBoostClassifier.fit": _FED_BACK,
}
# Calls that fit a model to each of several parts of the rows, and the ways to part them that look at no value.
_BY_FOLDS = {
    "cross_validate",
    "cross_val_score",
    "cross_val_predict",
    "learning_curve",
    "permutation_test_score",
}
_BY_PLACE = {"KFold", "RepeatedKFold", "ShuffleSplit", "LeaveOneOut", "LeavePOut", "TimeSeriesSplit"}
# Where joblib runs work that was handed out; with Dask it has a call of its own.
_BATCHES = {"BatchedCalls.__call__", "Batch.__call__"}
# Where a thread or a process begins, so that what started it is not on the stack.
_BEGINNINGS = {
    ("threading", "Thread._bootstrap"),
    ("multiprocessing.process", "BaseProcess._bootstrap"),
    ("concurrent.futures.process", "_process_worker"),
    ("joblib.externals.loky.process_executor", "_process_worker"),
}
# Packages that run a user's code and see nothing of the data: shells, notebooks, test runners, command lines.
_RUNNERS = frozenset(
    (
        *(
            "IPython",
            "ipykernel",
            "traitlets",
            "tornado",
            "nbclient",
            "debugpy",
            "streamlit",
            "typer",
            "click",
        ),
        *(
            "pytest",
            "_pytest",
            "pluggy",
            "xdist",
            "execnet",
            "hypothesis",
            "coverage",
            "sphinx",
            "sphinx_gallery",
        ),
    )
)
# Calls that fit what they are given, as often as the guarantees count; of pipelines, folds and chains more is asked.
_PIPELINE = {f"Pipeline.{name}" for name in ("fit", "_fit", "fit_transform", "fit_predict", "fit_resample")}
_HARMLESS = {
    "sklearn.base": {"_fit_context.<locals>.decorator.<locals>.wrapper", "TransformerMixin.fit_transform"},
    "sklearn.utils._set_output": {"_wrap_method_output.<locals>.wrapped"},
    "sklearn.utils._param_validation": {"validate_params.<locals>.decorator.<locals>.wrapper"},
    "sklearn.utils.parallel": {"_FuncWrapper.__call__", "Parallel.__call__"},
    "sklearn.pipeline": {*_PIPELINE, "_fit_transform_one", "_fit_transform_one_with_callbacks"},
    "imblearn.pipeline": {*_PIPELINE, "_fit_transform_one", "_fit_resample_one"},
    "sklearn.model_selection._validation": {*_BY_FOLDS, "_fit_and_score", "_fit_and_predict"},
    "sklearn.model_selection._classification_threshold": {
        *("BaseThresholdClassifier.fit", "FixedThresholdClassifier._fit"),
    },
    "sklearn.multioutput": {
        *("MultiOutputClassifier.fit", "_MultiOutputEstimator.fit", "_fit_estimator"),
        *("ClassifierChain.fit", "_BaseChain.fit"),
    },
    "sklearn.feature_selection._from_model": {"SelectFromModel.fit"},
}
# Work that this package hands out: what it fits in order to measure, and the parts of a bag, for which the bag speaks.
_OWN_WORK = (
    "oversafe.attack.",
    "oversafe.measure.",
    "oversafe.experiment.",
    "oversafe.auditing.comparing.",
    "oversafe.papers.",
    "oversafe.learn.bagging._fitted",
)
# Steps of scikit-learn that treat every row by itself. That a step need not be fitted does not say so.
_ROW_BY_ROW = {"AdditiveChi2Sampler", "Binarizer", "FeatureHasher", "HashingVectorizer", "Normalizer"}
# The searches that were warned of; in another process or thread than theirs, TuningWarning stands for all of them.
_warned: WeakSet[Any] = WeakSet()


class TuningWarning(UserWarning):
    """A private model is fitted many times, or something around it is fitted without privacy: both cost privacy."""


def context_of(word: CallContext) -> tuple[list[str], tuple[str, ...]]:
    """Return what limits the guarantee of a fit because of where it is called from, and what the user vouches for.

    The user's word is for what cannot be known; what is known to cost privacy stays nominal.
    """
    check_choice("call_context", word, get_args(CallContext))
    found = dict.fromkeys(caveat for frame in _frames() if (caveat := _limit(frame)) is not None)
    caveats = sorted(found, key=lambda caveat: caveat not in _WARNINGS)
    steps = _earlier_steps()
    if learning := list(dict.fromkeys(name for step in steps for name in _learning(step))):
        caveats.append(_STEPS + ", ".join(learning))
    if making := list(dict.fromkeys(type(step).__name__ for step in steps if _is_proven(step))):
        caveats.append(_MADE + ", ".join(making))
    doubts = [_HIDDEN] if _in_worker() else []
    # Where something is known to be wrong, the calls that belong to it are no news.
    if not caveats and (unknown := list(dict.fromkeys(filter(None, map(_unknown, _own_frames()))))):
        doubts.append(_UNKNOWN + ", ".join(unknown))
    if recording():
        caveats.append(RECORDED)
    if word == "vouched":
        return caveats, (VOUCHED,) if doubts else ()
    return caveats + doubts, ()


def warn_if_tuned(caveats: list[str] | tuple[str, ...]) -> None:
    """Warn, once for each search, if it is fitting a model that promises something."""
    if (caveat := next((each for each in caveats if each in _WARNINGS), None)) is None:
        return
    around = [frame.f_locals.get("self") for frame in _frames() if _limit(frame) in _WARNINGS]
    search = TuningWarning if not around or around[-1] is None else around[-1]
    if search not in _warned:
        _warned.add(search)
        warnings.warn(_WARNINGS[caveat], TuningWarning, stacklevel=3)


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _own_frames() -> Iterator[Any]:
    """Return the stack up to where this package handed the work out, whichever cluster ran it."""
    work = ""
    for frame in _frames():
        module, name = frame.f_globals.get("__name__") or "", frame.f_code.co_qualname
        if module.startswith("joblib.") and name in _BATCHES and work.startswith(_OWN_WORK):
            return
        if not module.startswith("joblib."):
            work = f"{module}.{name}"
        yield frame


def _in_worker() -> bool:
    """Return whether the stack begins in a worker of joblib, so that it lacks whatever started the work.

    Nothing on the stack of a worker says that nothing hidden matters: cross-validation alone looks the same there as
    the rounds of a ``SequentialFeatureSelector``, and either may be a step behind a scaler.
    """
    hidden, work = False, ""
    for frame in _own_frames():
        module, name = frame.f_globals.get("__name__") or "", frame.f_code.co_qualname
        if (module, name) in _BEGINNINGS:
            hidden = hidden or work.partition(".")[0] not in _RUNNERS
        elif module.startswith("joblib."):
            if name in _BATCHES:
                hidden = True
            elif name == "Parallel.__call__":
                # The work is done on the spot, or the worker began a further round of it.
                hidden = False
        elif module.partition(".")[0] not in ("threading", "multiprocessing", "concurrent"):
            work = f"{module}.{name}"
    return hidden


def _unknown(frame: Any) -> str | None:
    """Return the name of a call that may do anything with what it fits; None if it is the user's, or does not.

    A function of the user's own file is read by the user alone. What has a method ``fit`` is a wrapper, whosever it is.
    """
    module, name = frame.f_globals.get("__name__") or "", frame.f_code.co_qualname
    package = module.partition(".")[0]
    if package in ("oversafe", "joblib") or package in _RUNNERS or package in sys.stdlib_module_names:
        return None
    first = frame.f_locals.get(frame.f_code.co_varnames[0]) if frame.f_code.co_argcount else None
    bases = type(first).__mro__
    # A function that takes a model is no wrapper, a method of one is; whoever derives from ours answers for it.
    wraps = hasattr(type(first), "fit") and name.rpartition(".")[0] in (c.__qualname__ for c in bases)
    wraps = wraps and not any(c.__module__.startswith("oversafe.") for c in bases)
    if package in ("sklearn", "imblearn"):
        known = name in _HARMLESS.get(module, ())
    else:
        installed = {"site-packages", "dist-packages"} & set(PurePath(frame.f_code.co_filename).parts)
        # Programs have names such as __main__, wherever they are installed.
        known = not wraps and (package.startswith("__") or not installed)
    return None if known else type(first).__name__ if wraps else package


def _limit(frame: Any) -> str | None:
    """Return how a call of scikit-learn or imbalanced-learn limits what it fits, None where it does not."""
    if not any(package in frame.f_code.co_filename for package in ("sklearn", "imblearn")):
        return None
    name, local = frame.f_code.co_qualname, frame.f_locals
    if name in _BY_FOLDS and type(local.get("cv")).__name__ not in _BY_PLACE:
        return _FOLDED
    # Cross-validation alone fits with no settings; a search gives some.
    if name == "_fit_and_score" and local.get("parameters") is not None:
        return TUNED
    if name == "_parallel_build_estimators":
        return _REPEATED if getattr(local.get("ensemble"), "bootstrap", False) else _ENCODED
    # What the first models say is there when the last one is fitted.
    if name == "_BaseStacking.fit" and "X_meta" in local:
        return _STACKED
    # Without cross-validation the further columns are the labels, which are part of the record.
    if name == "_BaseChain.fit" and getattr(local.get("self"), "cv", None) is not None:
        return _FED_BACK
    return _CALLS.get(name)


def _earlier_steps() -> list[Any]:
    """Return the steps of the pipelines that are being fitted which come before this fit."""
    found: list[Any] = []
    seen: set[int] = set()
    for frame in _frames():
        if frame.f_code.co_name not in ("_fit", "fit", "fit_transform", "fit_resample", "fit_predict"):
            continue
        pipeline = frame.f_locals.get("self")
        if (
            "pipeline" not in frame.f_code.co_filename
            or not hasattr(pipeline, "steps")
            or id(pipeline) in seen
        ):
            continue
        seen.add(id(pipeline))
        # The earlier steps are fitted one after the other in `_fit`, the last one in the caller.
        place = (
            frame.f_locals.get("step_idx", 0) if frame.f_code.co_name == "_fit" else len(pipeline.steps) - 1
        )
        found += [step for _, step in pipeline.steps[:place]]
    return found


def _is_proven(step: Any) -> bool:
    return getattr(getattr(step, "guarantee_", None), "status", "") == "proven"


def _learning(step: Any) -> list[str]:
    """Return a step's name, or those of the steps in it, where they may look at more than one row at a time."""
    if step is None or isinstance(step, str) or _is_proven(step):
        return []
    name = type(step).__name__
    if not type(step).__module__.startswith("sklearn."):
        return [name]
    if name == "Pipeline":
        return [each for _, inner in step.steps for each in _learning(inner)]
    if name == "FeatureUnion":
        return [each for _, inner in step.transformer_list for each in _learning(inner)]
    if name == "ColumnTransformer":
        # A function may choose columns by their values.
        chosen = [name] if any(callable(columns) for _, _, columns in step.transformers) else []
        inside = [inner for _, inner, _ in step.transformers] + [step.remainder]
        return chosen + [each for inner in inside for each in _learning(inner)]
    if name == "FunctionTransformer":
        func = step.func
        alone = func is None or (isinstance(func, np.ufunc) and func.signature is None and not step.kw_args)
    elif name == "SimpleImputer":
        # An indicator, or leaving out what is empty, makes the number of columns depend on the rows.
        alone = step.strategy == "constant" and step.keep_empty_features and not step.add_indicator
    else:
        alone = name in _ROW_BY_ROW
    return [] if alone else [name]
