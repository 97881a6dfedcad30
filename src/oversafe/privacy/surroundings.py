"""What else is done to the data around a private fit: searches over settings, and earlier steps of a pipeline."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

TUNED = (
    "the settings were chosen by a search over fits to the same data, each of which costs privacy that this figure "
    "leaves out"
)
_STEPS = "earlier steps of the pipeline were fitted to the data, which nobody paid for: "


class TuningWarning(UserWarning):
    """A search over settings fits a private model many times, and every fit costs privacy."""


def surrounding_caveats() -> list[str]:
    """Return what limits the guarantee of a fit because of where it is called from."""
    caveats = [TUNED] if any(_searches(frame) for frame in _frames()) else []
    if steps := _fitted_steps():
        caveats.append(_STEPS + ", ".join(steps))
    return caveats


def warn_if_tuned(caveats: list[str] | tuple[str, ...]) -> None:
    """Warn if a search over settings is fitting a model that promises something."""
    if TUNED in caveats:
        warnings.warn(
            "a search over settings fits a private model many times, and every fit costs privacy; the guarantee of "
            "the result counts only the last of them",
            TuningWarning,
            stacklevel=3,
        )


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _searches(frame: Any) -> bool:
    """Whether a call is a search of scikit-learn over settings."""
    name, file = frame.f_code.co_name, frame.f_code.co_filename
    if "sklearn" not in file or "model_selection" not in file:
        return False
    # Cross-validation alone fits with no settings; a search gives some, and refits in its own `fit`.
    return (name == "_fit_and_score" and frame.f_locals.get("parameters") is not None) or (
        name == "fit" and file.endswith("_search.py")
    )


def _fitted_steps() -> list[str]:
    """Return the steps of the pipelines that are being fitted which saw the data before, and prove nothing for it."""
    from sklearn.utils import get_tags

    found: dict[str, None] = {}
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
        for _, step in pipeline.steps[:place]:
            promised = getattr(getattr(step, "guarantee_", None), "status", "none")
            if step not in (None, "passthrough") and promised != "proven" and get_tags(step).requires_fit:
                found[type(step).__name__] = None
    return list(found)
