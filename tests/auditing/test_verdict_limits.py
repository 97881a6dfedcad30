"""How large a delta a verdict rests on."""

import pandas as pd
import pytest

from oversafe.attack import AttackResult
from oversafe.auditing.verdict import Finding, judge
from oversafe.privacy import Guarantee
from oversafe.privacy.guarantee import approximate_event


@pytest.mark.parametrize(("delta", "level"), [(0.0, "protected"), (1e-5, "protected"), (1.01e-5, "unproven")])
def test_a_guarantee_that_may_fail_too_often_protects_nobody(delta, level):
    nothing = Finding(AttackResult("Some attack", "membership", 0.0, (0.0, 0.02), pd.DataFrame()), "nothing.")
    guarantee = Guarantee("proven", 1.0, delta, basis="a theorem", event=approximate_event(1.0, delta))
    verdict = judge([nothing], guarantee)
    assert verdict.level == level
    assert ("delta" in verdict.sentence) == (delta > 0)
