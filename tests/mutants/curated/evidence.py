"""Evidence that says more, or less, than it is: intervals, lower bounds, limits of the verdict, manifests."""

from tests.mutants.fault import Fault

_ENDS = "tests/measure/test_epsilon_ends.py"
_ONE_RUN = "tests/measure/test_claims.py"
_RATES = "tests/attack/test_rates.py"
_VERDICT = "tests/auditing/test_verdict.py"
_MANIFEST = "tests/privacy/test_manifest.py"
_BOUND = "a lower bound on epsilon holds at its confidence"
_COVERED = "an interval holds the truth as often as it says"
_EXPOSED = "a release that gives people away is exposed"
_PROTECTED = "only a proven guarantee that is strong enough protects"

FAULTS = (
    Fault("audit-tail", "measure.epsilon:_ends", "tail = (1 - confidence) / 2", "tail = 1 - confidence", _BOUND, ("tests/measure/test_epsilon_ends.py::test_the_bound_is_that_of_two_exact_ends_at_the_default_confidence",)),
    Fault("audit-lower-end", "measure.epsilon:_ends", "beta.ppf(tail, hits_p, trials - hits_p + 1)",
          "beta.ppf(tail, hits_p + 1, trials - hits_p)", _BOUND, (_ENDS,)),
    Fault("audit-upper-end", "measure.epsilon:_ends", "beta.ppf(1 - tail, hits_q + 1, trials - hits_q)",
          "beta.ppf(1 - tail, hits_q, trials - hits_q + 1)", _BOUND, (_ENDS,)),
    Fault("audit-delta", "measure.epsilon:_bound", "np.maximum(low - delta, 1e-300)", "np.maximum(low, 1e-300)", _BOUND, (_ENDS,)),
    Fault("audit-event-from-its-own-runs", "measure.epsilon:_measured",
          "int(np.sum(sign * p[half:] >= threshold)), int(np.sum(sign * q[half:] >= threshold))",
          "int(np.sum(sign * p[: len(p) - half] >= threshold)), int(np.sum(sign * q[: len(p) - half] >= threshold))",
          "an event is measured on other runs than it was chosen on", (_ENDS,)),
    Fault("audit-trials", "measure.epsilon:_measured", "measured = len(p) - half", "measured = len(p)", _BOUND, (_ENDS,)),
    Fault("audit-discriminant-sees-its-runs", "measure.epsilon:audit_epsilon", "_discriminant(first[:half], second[:half])",
          "_discriminant(first[half:], second[half:])", "an event is measured on other runs than it was chosen on", ("tests/measure/test_epsilon_ends.py::test_noise_in_many_coordinates_is_not_taken_for_a_difference",)),
    Fault("one-run-choice", "measure.one_run:audit_epsilon_one_run", "error = (1 - confidence) / len(wanted)", "error = 1 - confidence",
          _BOUND, ("tests/measure/test_epsilon_ends.py::test_one_run_pays_for_choosing_the_best_number_of_guesses",)),
    Fault("one-run-chance", "measure.one_run:chance_of_guesses", "binom.sf(correct - 1,", "binom.sf(correct,", _BOUND,
          ("tests/measure/test_claims.py::test_the_chance_of_right_guesses_by_hand",)),
    Fault("one-run-share", "measure.one_run:chance_of_guesses", "1 / (1 + math.exp(-epsilon))", "1 / (1 + math.exp(-epsilon / 2))",
          _BOUND, ("tests/measure/test_claims.py::test_the_chance_of_right_guesses_by_hand",)),
    Fault("one-run-delta", "measure.one_run:chance_of_guesses", "2 * n_canaries * delta", "delta", _BOUND, ("tests/measure/test_epsilon_ends.py::test_one_run_is_never_above_the_truth_of_a_mechanism_that_shows_some_with_delta",)),
    Fault("one-run-ties", "measure.one_run:audit_epsilon_one_run", "rng.random(n_canaries), scores", "included.astype(float), scores",
          "ties say nothing", ("tests/measure/test_epsilon_ends.py::test_one_run_learns_nothing_from_ties",)),
    Fault("wilson-confidence", "attack.base:wilson_interval", "0.5 + confidence / 2", "confidence", _COVERED, ("tests/measure/test_epsilon_ends.py::test_wilsons_ends_are_where_the_score_test_rejects",)),
    Fault("wilson-centre", "attack.base:wilson_interval", "share + z * z / (2 * trials)", "share", _COVERED, ("tests/measure/test_epsilon_ends.py::test_wilsons_ends_are_where_the_score_test_rejects",)),
    Fault("rates-people", "attack.linkage.rates:Rate.interval_for_others", "trials = min(self.people, self.attacks)", "trials = self.attacks",
          "a person who is attacked again counts once", (_RATES,)),
    Fault("rates-control", "attack.linkage.rates:risk_over", "reversed(other.interval_for_others)", "reversed((other.share, other.share))",
          _COVERED, (_RATES,)),
    Fault("rates-pairs", "attack.linkage.rates:paired_interval", "norm.ppf(0.975)", "norm.ppf(0.9)", _COVERED, ("tests/measure/test_epsilon_ends.py::test_intervals_of_pairs_hold_the_truth_nearly_as_often_as_they_say",)),
    Fault("rates-repeats", "attack.linkage.rates:paired_interval", "np.mean(rest**2) * repeats", "np.mean(rest**2)",
          "a person who is attacked again counts once", (_RATES, _ENDS)),
    # ---- the verdict
    Fault("verdict-exposed-from", "auditing.verdict:EXPOSED_FROM", "0.1", "0.2", _EXPOSED, (_VERDICT,)),
    Fault("verdict-protected-up-to", "auditing.verdict:PROTECTED_UP_TO", "0.05", "0.09", _PROTECTED, (_VERDICT,)),
    Fault("verdict-certain-records", "auditing.verdict:_judge", "if any(f.certain_records for f in findings):", "if False:", _EXPOSED,
          (_VERDICT,)),
    Fault("verdict-gravest", "auditing.verdict:_judge", "gravest = max(", "gravest = min(", _EXPOSED, (_VERDICT,)),
    Fault("verdict-edge", "auditing.verdict:_judge", "lower >= EXPOSED_FROM", "lower > EXPOSED_FROM", _EXPOSED, (_VERDICT,)),
    Fault("verdict-against-evidence", "auditing.verdict:_judge", "weak is None and lower <= PROTECTED_UP_TO", "weak is None", _PROTECTED,
          (_VERDICT,)),
    Fault("verdict-identifiers", "auditing.verdict:judge", "if identifiers:", "if False:", _EXPOSED, ("tests/auditing/test_audit.py::test_identifiers_of_real_people_expose_a_release",)),
    # ---- manifests
    Fault("manifest-left-beside", "privacy.signing.manifest:write_release", "lambda: _remove(manifest_path(path))", "lambda: None",
          "an old manifest never vouches for a new table", (_MANIFEST,)),
)  # fmt: skip
