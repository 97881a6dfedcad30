"""What labels must be to count as classes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oversafe.errors import InputError
from oversafe.text import counted


def check_labels(labels: pd.Series) -> None:
    """Refuse labels that are missing, continuous or all alike."""
    if labels.isna().any():
        row = int(np.argmax(labels.isna().to_numpy()))
        raise InputError(
            f"{counted(int(labels.isna().sum()), 'row has', 'rows have')} no label (first: row {row + 1}); "
            "drop or label them"
        )
    from sklearn.utils.multiclass import check_classification_targets

    try:
        check_classification_targets(labels)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the labels cannot be used as classes ({error}); give whole numbers, text or booleans"
        ) from error
    if labels.nunique() < 2:
        raise InputError(
            f"the labels need to have more than 1 class; got 1 class ({labels.iloc[0]!r}) instead"
        )
