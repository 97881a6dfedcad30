"""Protectors on one's own table: what each keeps, what it gives away, what it promises and what it costs."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.checks import check_pandas
from oversafe._core.errors import InputError
from oversafe.attack import AttackResult, GroundHog
from oversafe.attack.membership.game import seeded_copy
from oversafe.attack.membership.statistics import check_numbers
from oversafe.attack.registry import own_attacks
from oversafe.auditing.certainty import with_certain_records
from oversafe.auditing.plan.attacked import AttackedRelease
from oversafe.data import Schema
from oversafe.data.io.files import read_table
from oversafe.data.labels import check_labels
from oversafe.data.rows import table_digest
from oversafe.data.rows.values import value_keys
from oversafe.experiment.grid import run_grid
from oversafe.experiment.memory import PeakMemory
from oversafe.experiment.source import source_digest
from oversafe.experiment.store import plain
from oversafe.measure.fidelity import FIGURES, fidelity
from oversafe.measure.scores import SCORES
from oversafe.measure.utility import folds, make_release, positive_class, summarize, train_on_release
from oversafe.privacy.guarantee import SEEDED, Guarantee
from oversafe.protect import (
    SMOTE,
    BayesianNetwork,
    GaussianCopula,
    HistogramSynthesizer,
    KAnonymizer,
    PrivateMixture,
    PrivateSMOTE,
    PrivBayes,
)

ORIGINAL = "original"
# Of every family one that needs no extra: oversampling, noisy oversampling, generalisation, models without and with
# differential privacy.
DEFAULT_METHODS = tuple(
    kind.method_name
    for kind in (
        SMOTE,
        PrivateSMOTE,
        KAnonymizer,
        GaussianCopula,
        BayesianNetwork,
        HistogramSynthesizer,
        PrivBayes,
        PrivateMixture,
    )
)
DEFAULT_EPSILONS = (1.0, 5.0)

# The game is played on so many rows, or every release of a large table would be made hundreds of times.
_GAME_ROWS = 400
_GAME = (6, 30, 30)
# What a cell measures: another number when it measures something else, so that older ones are not taken for it.
_MEASURED = 5


def compare(
    table: pd.DataFrame | str | Path,
    label: str,
    *,
    methods: str | Sequence[Any] | Mapping[str, Any] | None = None,
    epsilons: Sequence[float] = DEFAULT_EPSILONS,
    attacks: Sequence[Any] | None = None,
    schema: Schema | None = None,
    quasi_identifiers: Sequence[str] | None = None,
    classifiers: str = "quick",
    n_folds: int = 3,
    n_repeats: int = 2,
    membership: bool = True,
    store: str | Path | None = None,
    time_limit: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Run protectors on a table and return what each keeps, gives away, promises and costs.

    Each method and setting is one cell of a grid: stored as it ends, never run twice with the same store, and moved
    to a cluster by ``joblib.parallel_config``. Use :func:`oversafe.compare` for the page and the recommendation.

    Parameters
    ----------
    table : DataFrame or path
        The real table.
    label : str
        The column that holds the class.
    methods : str, sequence or mapping, optional
        Names as ``oversafe protect --method`` has them, those of plugins among them; or objects under names of your
        own, as a mapping; or both in one list, where an object is called by its class. An object is a protector of
        oversafe, or any estimator (it inherits from ``sklearn.base.BaseEstimator``) with ``fit_resample(X, y)``, or
        with ``fit(X, y)`` and ``sample()``, that returns a table and its labels; arrays have the columns of X. Its
        ``random_state`` is set if it has one, and a ``guarantee_`` that it states is shown. In a store it is
        known by its settings and its code: once it is edited it is run again.
    epsilons : sequence of float, default=(1.0, 5.0)
        For the named methods that take one.
    attacks : sequence of Attack, optional
        Attacks of your own beside the others; see :func:`oversafe.audit`.
    schema : Schema, optional
        What the columns are, and which of their domains are public: without it no guarantee is proven. One that says
        whose row each is (``person``) is refused for methods under differential privacy, because a comparison is about
        records; without such methods the column is left out.
    quasi_identifiers : sequence of str, optional
        Columns that outsiders may know, for the methods that ask.
    classifiers : {"quick", "paper"}, default="quick"
        See :func:`oversafe.measure.train_on_synthetic`.
    n_folds, n_repeats : int
        Of the utility; the attacks look at the release of the first fold, with its test rows as holdout.
    membership : bool, default=True
        Whether the membership game is played, on a sample of the rows; it makes hundreds of releases.
    store : path, optional
        A folder that keeps the finished cells, readable by its owner alone.
    time_limit : float, optional
        Seconds after which no further cell is started.
    random_state : int, default=0
        Of folds and releases.
    n_jobs : int, optional
        As in joblib.
    progress : bool, optional
        As in :func:`oversafe.experiment.run_grid`.

    Returns
    -------
    DataFrame
        One row per cell: "method", "epsilon", "status", "seconds", "error"; each score with its interval ("auc",
        "auc_low", "auc_high", ...); the figures of :func:`oversafe.measure.fidelity`; "attacks", a table of all
        attacks; "not_run", the reasons of those that were left out; "missing_classes", those without a released row;
        "guarantee" as :meth:`oversafe.privacy.Guarantee.to_dict` gives it for a release without a seed; "fit_seconds"
        and "fit_memory" (bytes) of one release. The first row, "original", is the real table, which nothing is made
        from.

    Raises
    ------
    InputError
        If the table, a method or an attack cannot be used, before anything is run. A method that fails while it
        runs is a row with its error.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.auditing.comparing.trials import compare
    >>> table = load_dataset("breast_cancer").frame
    >>> cells = compare(table, "diagnosis", methods=["random-over"], n_repeats=1, membership=False)
    >>> cells["method"].tolist()
    ['original', 'random-over']
    """
    from oversafe import __version__

    own = own_attacks(attacks)
    cells = _settings(methods, epsilons)
    if schema is not None and schema.person is not None:
        _check_records(schema.person, _named(methods))
    frame, described = _read(table, label, schema)
    if described.person is not None:
        frame, described = frame.drop(columns=described.person), described.drop([described.person])
        schema = described
    cell = CompareCell(frame, label, schema, own)
    shared = {
        "measured": _MEASURED,
        "table": table_digest(frame, ordered=True),
        "label": label,
        "schema": None if schema is None else hashlib.sha256(schema.to_toml().encode()).hexdigest(),
        "quasi_identifiers": list(quasi_identifiers or ()) or None,
        "classifiers": classifiers,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        # With its size, so that another game is another cell.
        "membership": [*_GAME, _GAME_ROWS] if membership else None,
        "random_state": random_state,
        "own_attacks": [_known_by(attack) for attack in own] or None,
    }
    for name in quasi_identifiers or ():
        if name not in described.names or name == label:
            raise InputError(f"the table has no feature column {name!r}; give quasi-identifiers it has")
    # Told before anything is run.
    next(folds(frame[label], n_folds, n_repeats, random_state))
    found = run_grid(
        cell,
        [{**entry, **shared} for entry in cells],
        store=store,
        version=__version__,
        time_limit=time_limit,
        n_jobs=n_jobs,
        progress=progress,
    )
    return found.drop(columns=[*shared, "protector", "code"], errors="ignore")


@dataclass(frozen=True)
class CompareCell:
    """What is done for one method and setting; called by the grid, in whatever process.

    Parameters
    ----------
    frame : DataFrame
        The real table.
    label : str
        The column that holds the class.
    schema : Schema, optional
        As declared.
    attacks : tuple
        Somebody's own, beside the others.
    """

    frame: pd.DataFrame
    label: str
    schema: Schema | None
    attacks: tuple[Any, ...] = ()

    def __call__(
        self,
        *,
        method: str,
        epsilon: float | None,
        protector: Any,
        quasi_identifiers: list[str] | None,
        classifiers: Any,
        n_folds: int,
        n_repeats: int,
        membership: list[int] | None,
        random_state: int,
        **known_by: Any,
    ) -> dict[str, Any]:
        """Return the figures of one cell."""
        from joblib import parallel_config
        from threadpoolctl import threadpool_limits

        named = protector if isinstance(protector, str) else None if protector is not None else method
        if named is not None and named != ORIGINAL:
            from oversafe.protect.registry import make_protector, method_class

            asks = "quasi_identifiers" in method_class(named)._get_param_names()
            protector = make_protector(
                named,
                epsilon=epsilon,
                schema=self.schema,
                quasi_identifiers=quasi_identifiers if asks else None,
            )
        X, y = self.frame.drop(columns=self.label), self.frame[self.label]
        # The cells are the parallel work: whatever runs inside one stays in its process, on one core.
        with parallel_config(backend="sequential"), threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            positive = positive_class(y)
            parts: list[pd.DataFrame] = []
            result: dict[str, Any] = {}
            for number, (train, test) in enumerate(folds(y, n_folds, n_repeats, random_state)):
                rows = X.iloc[train].reset_index(drop=True), y.iloc[train].reset_index(drop=True)
                held = X.iloc[test].reset_index(drop=True), y.iloc[test].reset_index(drop=True)
                made = _Made.of(protector, rows, random_state + number)
                scores = train_on_release(
                    made.release,
                    held,
                    train=rows[0],
                    classifiers=classifiers,
                    positive=positive,
                    random_state=random_state,
                )
                parts.append(scores.assign(repeat=number // n_folds, fold=number % n_folds))
                if number == 0:
                    result = self._look_at(made, rows, held)
                    if membership is not None and protector is not None:
                        self._play(protector, rows, membership, random_state, result)
            utility = summarize(pd.concat(parts, ignore_index=True), n_folds)
        for name in SCORES:
            mean, low, high = utility.overall.loc[name]
            result |= {name: float(mean), f"{name}_low": float(low), f"{name}_high": float(high)}
        return {**result, "scores": utility.scores.drop(columns="seconds")}

    def _look_at(self, made: _Made, rows: Any, held: Any) -> dict[str, Any]:
        """Return fidelity, attacks, guarantee and cost of the first fold's release."""
        release, real, holdout = (self._joined(*part) for part in (made.release, rows, held))
        figures = fidelity(release, real).overall
        found: list[AttackResult] = []
        rows_found: list[dict[str, Any]] = []
        not_run: dict[str, str] = {}
        if made.guarantee is not None:
            columns = [name for name in real.columns if name != self.label]
            attacked = AttackedRelease(self.label, columns, (release, real, holdout))
            for step in attacked.steps(found, not_run, self.attacks):
                if (result := step.run()) is None:
                    continue
                if step.is_own:
                    rows_found.append(_row(result))
                    continue
                result, certain = with_certain_records(result, step.tables)
                found.append(result)
                rows_found.append(_row(result, certain))
        return {
            **{name: float(figures[name]) for name in FIGURES},
            "attacks": pd.DataFrame(rows_found, columns=ATTACK_COLUMNS),
            "not_run": not_run,
            "missing_classes": _absent(release[self.label], real[self.label]),
            "guarantee": None if made.guarantee is None else _unseeded(made.guarantee).to_dict(),
            "released_rows": len(release),
            "fit_seconds": made.seconds,
            "fit_memory": made.memory,
        }

    def _joined(self, X: Any, y: Any) -> pd.DataFrame:
        return X.reset_index(drop=True).assign(**{self.label: pd.Series(y).reset_index(drop=True)})

    def _play(
        self, protector: Any, rows: Any, game: list[int], random_state: int, result: dict[str, Any]
    ) -> None:
        """Add the membership game, on a sample in which the rarest class keeps its rows as far as it can."""
        *sizes, most = game
        X, y = _game_table(rows[0], rows[1], most, random_state)
        attack = GroundHog(*sizes, per_record=True, random_state=random_state)
        try:
            found = attack.run(protector, X, y)
        except (InputError, ValueError) as error:
            result["not_run"][attack.title()] = str(error)
            return
        label = str(y.value_counts().index[-1])
        row = _row(replace(found, details={"class": label, **found.details}))
        attacks = result["attacks"]
        result["attacks"] = pd.concat([attacks, pd.DataFrame([row])], ignore_index=True)


ATTACK_COLUMNS = ["attack", "class", "threat", "risk", "low", "high", "certain_records", "is_largest_class"]


def _row(result: AttackResult, certain: int = 0) -> dict[str, Any]:
    return {
        "attack": result.name,
        "class": str(result.details.get("class", "")),
        "threat": result.threat,
        "risk": float(result.risk),
        "low": float(result.interval[0]),
        "high": float(result.interval[1]),
        "certain_records": certain,
        "is_largest_class": bool(result.details.get("is_largest_class", False)),
    }


def _absent(released: pd.Series, real: pd.Series) -> list[str]:
    return sorted(set(value_keys(real)) - set(value_keys(released)))


def _known_by(attack: Any) -> Any:
    """Return what somebody's own attack is known by in a store: its class, its settings and its code."""
    kind = type(attack)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return [name, plain(dict(getattr(attack, "__dict__", {}))), source_digest(kind)]


@dataclass(frozen=True)
class _Made:
    """A release, and what it took."""

    release: Any
    guarantee: Guarantee | None
    seconds: float | None
    memory: int | None

    @classmethod
    def of(cls, protector: Any, rows: Any, seed: int) -> _Made:
        if protector is None:
            return cls(rows, None, None, None)
        fresh = seeded_copy(protector, seed)
        begin = time.perf_counter()
        with PeakMemory() as memory:
            release = make_release(fresh, rows[0], rows[1], None)
        seconds = time.perf_counter() - begin
        guarantee = getattr(fresh, "guarantee_", Guarantee.none("the method states none"))
        return cls(release, guarantee, seconds, memory.bytes)


def _settings(
    methods: str | Sequence[Any] | Mapping[str, Any] | None, epsilons: Sequence[float]
) -> list[dict[str, Any]]:
    """Return what is run: the original, and each method with each of its epsilons; all are checked before any is."""
    chosen: list[dict[str, Any]] = [{"method": ORIGINAL, "epsilon": None, "protector": None}]
    values = [float(epsilon) for epsilon in epsilons]
    named = _named(methods)
    if not named or not values:
        raise InputError("no method or no epsilon was given; give at least one of each")
    for name, given in named.items():
        chosen += _cells_of(name, given, values)
    return chosen


def _check_records(person: str, named: Mapping[str, Any]) -> None:
    """Refuse methods whose promise would be for records though the schema says whose row each is."""
    from oversafe.protect.registry import promises

    if private := [name for name, method in named.items() if promises(method)]:
        raise InputError(
            f"the schema says whose row each is ({person!r}), and a comparison is about records: the promise of "
            f"{private[0]!r} would be for every record; remove person from the schema to compare so, and protect with "
            "--rows-per-person N afterwards"
        )


def _named(methods: str | Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the methods under their names: a method's own, that of a mapping, or that of an object's class."""
    if isinstance(methods, Mapping):
        for name in methods:
            if not isinstance(name, str) or name == ORIGINAL or not name:
                raise InputError(
                    f"a method has the name {name!r}; use text, and not {ORIGINAL!r}, which is the table itself"
                )
        return dict(methods)
    if methods is None:
        methods = DEFAULT_METHODS
    elif isinstance(methods, str) or not isinstance(methods, Sequence):
        methods = [methods]
    named: dict[str, Any] = {}
    for given in methods:
        if isinstance(given, str):
            named[given] = given
            continue
        kind = given if hasattr(given, "__qualname__") else type(given)
        name, number = kind.__qualname__.rpartition(".")[2], 1
        while (name if number == 1 else f"{name} ({number})") in named:
            number += 1
        named[name if number == 1 else f"{name} ({number})"] = given
    return named


def _cells_of(name: str, given: Any, epsilons: list[float]) -> list[dict[str, Any]]:
    from oversafe.protect.external import own_method
    from oversafe.protect.registry import METHODS, method_class

    if not isinstance(given, str):
        protector = own_method(name, given)
        return [{"method": name, "epsilon": _epsilon_of(given), "protector": protector}]
    kind = method_class(given)
    takes = "epsilon" in kind._get_param_names()
    # The code of a plugin is not oversafe's, whose version is part of every cell.
    code = {} if given in METHODS else {"code": source_digest(kind)}
    under = {"method": name, "protector": None if name == given else given, **code}
    return [{**under, "epsilon": epsilon} for epsilon in (epsilons if takes else [None])]


def _epsilon_of(method: Any) -> float | None:
    epsilon = getattr(method, "epsilon", None)
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        return None
    return float(epsilon)


def _read(table: pd.DataFrame | str | Path, label: str, schema: Schema | None) -> tuple[pd.DataFrame, Schema]:
    check_pandas(table)
    frame = table if isinstance(table, pd.DataFrame) else read_table(table, schema=schema)
    described = Schema.infer(frame, label=label) if schema is None else replace(schema, label=label)
    described.check_releasable()
    frame = described.conform(frame).reset_index(drop=True)
    check_labels(frame[label])
    # Trees compute in single precision.
    check_numbers(frame.drop(columns=label), largest=1e37)
    return frame, described


def _unseeded(guarantee: Guarantee) -> Guarantee:
    """Return what the same fit promises without the seed, which only the experiment needs."""
    rest = tuple(caveat for caveat in guarantee.caveats if caveat != SEEDED)
    if guarantee.status == "nominal" and not rest:
        return replace(guarantee, status="proven", caveats=())
    return replace(guarantee, caveats=rest)


def _game_table(X: pd.DataFrame, y: pd.Series, most: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    if len(X) <= most:
        return X, y
    rng = np.random.default_rng(seed)
    rare = np.flatnonzero((y == y.value_counts().index[-1]).to_numpy())
    own = rng.choice(rare, min(len(rare), most // 4), replace=False)
    others = rng.choice(np.setdiff1d(np.arange(len(y)), rare), most - len(own), replace=False)
    kept = np.sort(np.concatenate([own, others]))
    return X.iloc[kept].reset_index(drop=True), y.iloc[kept].reset_index(drop=True)
