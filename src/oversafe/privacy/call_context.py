"""What is done to the data around a private fit: searches, earlier steps of a pipeline, wrappers, workers.

Whoever calls a fit may fit it many times, choose by what comes out, or hand over rows that it made of others. A fit is
private by itself only where every call below it on the stack is this package's, the standard library's, a known
runner's, a plain function of the user's own code, or a pipeline of which it is the first step. Anything else makes the
guarantee nominal, unless the user vouches for it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args
from weakref import WeakSet

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
_MADE = (
    "the rows were made by an earlier step of the pipeline, whose guarantee is the one that real records have; this "
    "figure speaks of made rows: "
)
_STEPS = (
    "earlier steps of the pipeline may look at all rows, which nobody paid for; make the private step the first, or "
    "say call_context='vouched' if each treats every row by itself and refuses none: "
)
_HIDDEN = (
    "fitted in a worker process or thread, or a greenlet, where what was done around it cannot be seen; fit with "
    "n_jobs=1, or say call_context='vouched'"
)
_UNKNOWN = (
    "fitted inside of what may look at the data or fit to them several times; fit the method itself, outside of it, or "
    "say call_context='vouched' if it does neither: "
)
# What the user says of all but searches and made rows, with the names of what is around the fit.
VOUCHED = (
    "whoever made the fit vouches that nothing around it looks at the data or fits to them several times: "
)
_WARNINGS = {
    TUNED: "a search over settings or columns fits a private model many times, and every fit costs privacy; the "
    "guarantee of the result counts only the last of them",
    CALIBRATED: "a threshold or a calibration is fitted to the data around a private model without privacy, and every "
    "fit of the model costs privacy; the guarantee covers one model alone",
}
# Classes of scikit-learn that are known to cost privacy, whatever the user says, and so those derived from them.
_COSTLY = {
    "BaseSearchCV": TUNED,
    "RFE": TUNED,
    "SequentialFeatureSelector": TUNED,
    "TunedThresholdClassifierCV": CALIBRATED,
    "CalibratedClassifierCV": CALIBRATED,
}
# Packages that run a user's code and see nothing of the data: test runners, shells, notebooks, pages, command lines.
_TESTERS = frozenset(("pytest", "_pytest", "pluggy", "xdist", "execnet", "hypothesis", "coverage"))
_RUNNERS = _TESTERS | frozenset(
    (
        *("IPython", "ipykernel", "ipykernel_launcher", "traitlets", "tornado", "nbclient", "debugpy"),
        *("sphinx", "sphinx_gallery", "streamlit", "typer", "click"),
    )
)
# Modules in which a pipeline calls its steps.
_PLUMBING = ("sklearn.pipeline", "imblearn.pipeline", "sklearn.base", "joblib.memory")
_INSTALLED = {"site-packages", "dist-packages"}
_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
# At the beginning, since a program may go elsewhere later.
_FOLDER = Path(os.curdir).resolve()

Owner = Literal["oversafe", "python", "tester", "runner", "user", "unknown"]
# The searches that were warned of; in another process or thread than theirs, TuningWarning stands for all of them.
_warned: WeakSet[Any] = WeakSet()


class TuningWarning(UserWarning):
    """A private model is fitted many times, or something around it is fitted without privacy: both cost privacy."""


def context_of(word: CallContext) -> tuple[list[str], tuple[str, ...]]:
    """Return what limits the guarantee of a fit because of where it is called from, and what the user vouches for.

    The user's word is for what cannot be known; what is known to cost privacy stays nominal.
    """
    check_choice("call_context", word, get_args(CallContext))
    around = _look_around()
    caveats = [caveat for caveat in _WARNINGS if caveat in around.costly]
    if around.paid:
        caveats.append(_MADE + _listed(around.paid))
    # Where something is known to be wrong, the calls that belong to it are no news.
    unknown = [] if caveats or around.hidden else around.unknown
    doubts = [
        caveat + _listed(names) for caveat, names in ((_STEPS, around.steps), (_UNKNOWN, unknown)) if names
    ]
    vouched = [*around.steps, *unknown]
    if around.hidden:
        doubts.append(_HIDDEN)
        vouched.append("a worker or greenlet")
    if recording():
        caveats.append(RECORDED)
    if word == "vouched":
        return caveats, (VOUCHED + _listed(vouched),) if vouched else ()
    return caveats + doubts, ()


def warn_if_tuned(caveats: list[str] | tuple[str, ...]) -> None:
    """Warn, once for each search, if it is fitting a model that promises something."""
    if (caveat := next((each for each in caveats if each in _WARNINGS), None)) is None:
        return
    searches = list(_look_around().costly.values())
    search = searches[-1] if searches else TuningWarning
    if search not in _warned:
        _warned.add(search)
        warnings.warn(_WARNINGS[caveat], TuningWarning, stacklevel=3)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


@dataclass
class _Around:
    """What is on the stack below a fit: by name, or as an object where it is known to cost privacy."""

    costly: dict[str, Any] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    paid: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    hidden: bool = False


def _look_around() -> _Around:
    frames = list(_frames())
    owners = _owners(frames)
    found, own_worker = _Around(), False
    # The objects that are fitted, from the method itself outwards.
    fitted: list[Any] = []
    # The outermost call of an unknown package is the one that the user knows.
    outermost: str | None = None
    for place, (frame, owner) in enumerate(zip(frames, owners, strict=True)):
        first, *_ = arguments = _arguments(frame) or [None]
        unknown: list[str] = []
        if owner == "oversafe":
            if _is_estimator(first):
                fitted.append(first)
            if _is_handed_out(frame):
                own_worker = True
                break
        elif owner == "unknown" and not _is_own_parallel(frames[place:], owners[place:]):
            if _is_plumbing(frame, first, fitted):
                _add_steps(first, fitted, found)
            else:
                outermost = _name(frame, first) or outermost or _package(frame)
                _add_costly(first, found)
                fitted += [first] if _is_estimator(first) else []
                continue
        elif owner == "user":
            known = {type(each) for each in fitted}
            unknown = [
                type(each).__name__
                for each in arguments
                if _is_estimator(each) and type(each) not in known and not _is_own_type(type(each))
            ]
            _add_costly(first, found)
            fitted += [first] if unknown and _is_estimator(first) else []
        found.unknown += [outermost] if outermost is not None else []
        found.unknown += unknown
        outermost = None
    found.unknown += [outermost] if outermost is not None else []
    found.hidden = not own_worker and not _has_known_beginning(frames)
    return found


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _arguments(frame: Any) -> list[Any]:
    """Return what a call was given, one by one, also by ``*`` and ``**``."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    # A name that was deleted is no longer there.
    values = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    for name in code.co_varnames[count : count + stars]:
        more = frame.f_locals.get(name)
        values += more.values() if isinstance(more, dict) else more if isinstance(more, tuple) else [more]
    return values


def _is_estimator(value: Any) -> bool:
    return hasattr(type(value), "fit")


def _is_own_type(kind: type) -> bool:
    return kind.__module__.startswith("oversafe.")


def _module(frame: Any) -> str:
    return frame.f_globals.get("__name__") or ""


def _package(frame: Any) -> str:
    return _module(frame).partition(".")[0]


def _name(frame: Any, first: Any) -> str | None:
    """Return what a user would call a call of a package."""
    if _is_estimator(first) and "." in frame.f_code.co_qualname and not _is_own_type(type(first)):
        return type(first).__name__
    name = frame.f_code.co_qualname
    return None if name.startswith("_") or "<" in name else f"{_package(frame)}.{name}"


def _add_costly(first: Any, found: _Around) -> None:
    for base in type(first).__mro__:
        if base.__module__.startswith("sklearn.") and base.__name__ in _COSTLY:
            found.costly.pop(_COSTLY[base.__name__], None)
            found.costly[_COSTLY[base.__name__]] = first


# ------------------------------------------------------------------------------------------------- pipelines


def _is_plumbing(frame: Any, first: Any, fitted: list[Any]) -> bool:
    """Return whether a call is how a pipeline of scikit-learn's or imbalanced-learn's own class calls a step."""
    modules = [sys.modules.get(name) for name in _PLUMBING]
    if not any(module is not None and frame.f_globals is vars(module) for module in modules):
        return False
    kinds = [getattr(module, "Pipeline", None) for module in modules[:2]]
    kinds.append(getattr(modules[3], "NotMemorizedFunc", None))
    return type(first) in kinds or any(first is each for each in fitted)


def _add_steps(first: Any, fitted: list[Any], found: _Around) -> None:
    if any(first is each for each in fitted) or not hasattr(first, "steps"):
        return
    steps = [step for _, step in first.steps if step is not None and step != "passthrough"]
    places = [i for i, step in enumerate(steps) if any(step is each for each in fitted)]
    # A step that is nowhere was copied, and nobody knows what of.
    for step in steps[: places[-1]] if places else [first]:
        proven = getattr(getattr(step, "guarantee_", None), "status", "") == "proven"
        (found.paid if proven else found.steps).append(type(step).__name__)
    fitted.append(first)


# --------------------------------------------------------------------------------------------------- workers


def _is_main() -> bool:
    process = sys.modules.get("multiprocessing.process")
    main = threading.get_ident() == threading.main_thread().ident
    return main and (process is None or process.parent_process() is None)


def _is_handed_out(frame: Any) -> bool:
    """Return whether a call of this package is work that it handed out itself, seen from the worker."""
    code, caller = frame.f_code, frame.f_back
    inner = code.co_name.startswith("_") or "<locals>" in code.co_qualname
    return inner and not _is_main() and caller is not None and _package(caller) == "joblib"


def _is_own_parallel(frames: list[Any], owners: list[Owner]) -> bool:
    """Return whether joblib runs work of this package on the spot."""
    for frame, owner in zip(frames, owners, strict=True):
        if _package(frame) != "joblib":
            return owner == "oversafe"
    return False


def _has_known_beginning(frames: list[Any]) -> bool:
    """Return whether all calls are on the stack: it begins with a program, or with a thread of the page's server."""
    if _is_main():
        return frames[-1].f_code.co_name == "<module>" or _module(frames[-1]) == "runpy"
    return next((name for name in map(_package, reversed(frames)) if name != "threading"), "") == "streamlit"


# ------------------------------------------------------------------------------------------------ whose code


def _owners(frames: list[Any]) -> list[Owner]:
    """Return whose code each call is; what cannot be told is unknown."""
    owners: list[Owner] = []
    roots = _own_roots()
    caller: Owner = "python"
    for frame in reversed(frames):
        caller = _owner(frame, caller, roots)
        owners.append(caller)
    return owners[::-1]


def _owner(frame: Any, caller: Owner, roots: set[Path]) -> Owner:
    name, file = _module(frame), frame.f_code.co_filename
    if file.startswith("<frozen "):
        return "python" if _package(frame) in sys.stdlib_module_names else "unknown"
    # Text that was run in a module has no file of its own.
    file = file if _owner_of_file(file) is not None else frame.f_globals.get("__file__") or ""
    owner = _owner_of_file(file)
    if owner not in ("user", None):
        return owner
    if name == "__main__":
        return "user"
    if owner is None:
        # A module in an archive, or frozen into a program; else text, which belongs to whoever runs it.
        in_module = name in sys.modules and frame.f_globals is vars(sys.modules[name])
        return "unknown" if in_module or caller in ("oversafe", "unknown") else "user"
    root = _import_root(file, name)
    if caller == "tester" and root is not None:
        # What a test runner calls is the user's, and so is what lies beside it.
        roots.add(root)
    return "user" if root in roots and not _holds_installed(root) else "unknown"


@cache
def _owner_of_file(file: str) -> Owner | None:
    """Return whose code a file is, "user" if it may be; None where there is no such file."""
    if not Path(file).is_absolute() or not Path(file).is_file():
        return None
    path = Path(file).resolve()
    if path.is_relative_to(_PACKAGE):
        return "oversafe"
    if below := [i for i, part in enumerate(path.parts) if part in _INSTALLED]:
        package = path.parts[below[-1] + 1].removesuffix(".py")
        return "tester" if package in _TESTERS else "runner" if package in _RUNNERS else "unknown"
    return "python" if path.is_relative_to(_LIBRARY) else "user"


@cache
def _import_root(file: str, name: str) -> Path | None:
    """Return the folder that a module was imported from."""
    path = Path(file).resolve().with_suffix("")
    path = path.parent if path.name == "__init__" else path
    parts = name.split(".")
    return path.parents[len(parts) - 1] if list(path.parts[-len(parts) :]) == parts else None


def _own_roots() -> set[Path]:
    """Return from where a user's own modules are imported: the program's folder, the current one, and usual ones."""
    main = sys.modules.get("__main__")
    program, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    folders = {_FOLDER, _FOLDER if program is None else Path(program).resolve().parent}
    if program is not None and spec is not None and (root := _import_root(program, spec.name)) is not None:
        # Of a program that was started as a module: python -m package.
        folders.add(root)
    return {folder / part for folder in folders for part in ("", "src", "tests")}


@cache
def _holds_installed(folder: Path) -> bool:
    """Return whether packages were installed into a folder, from which the user's own cannot be told."""
    return any(folder.glob("*.dist-info"))
