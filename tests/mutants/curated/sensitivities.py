"""A record that moves what is released by more than was said: sensitivities, clipping and the norms behind them."""

from tests.mutants.fault import Fault

_MOVED = "one record moves the counts by no more than is paid for"
_TABLES = "tests/privacy/test_accountant.py::test_no_neighbour_moves_counts_by_more_than_the_sensitivity"
_EXACT = "tests/privacy/test_exact_costs.py"
_LINEAR = ("tests/learn/test_linear_noise.py", "tests/learn/test_objective.py")
_SUMS = "tests/learn/test_threshold.py"
_NORM = "no record is longer than the norm"
_GEM = "tests/protect/test_gem.py::test_no_neighbour_moves_counts_and_choices_by_more_than_is_paid_for"
_MST = "tests/protect/test_graphical.py::test_no_neighbour_moves_the_counts_by_more_than_is_paid_for"
_VOTES = "tests/protect/test_adversarial.py::test_noisy_votes_survive_the_audit"
_NETWORK = "tests/protect/test_privbayes.py"
_HISTOGRAMS = (
    "tests/protect/test_histograms.py::test_no_neighbour_moves_the_counts_by_more_than_the_sensitivity"
)
_MIXTURE = "tests/protect/test_mixture.py::test_no_neighbour_moves_the_counts_by_more_than_is_paid_for"
_BOUNDS = ("tests/privacy/test_estimates.py", "tests/privacy/test_domains.py")
_SMOTE = "tests/protect/test_smote_dp.py::test_a_record_in_the_place_of_others_changes_no_row_of_theirs"
_PLACES = "a row that SMOTE makes follows from the places of its two ends"
_SENSITIVITY = "privacy.accountant:Accountant.sensitivity"

FAULTS = (
    # ---- counts
    Fault("counts-l1-replaced", _SENSITIVITY, "return 2 * tables * m,", "return tables * m,", _MOVED, (_TABLES,)),
    Fault("counts-l2-replaced", _SENSITIVITY, "math.sqrt(2 * tables) * m", "math.sqrt(tables) * m", _MOVED, (_TABLES,)),
    Fault("counts-l1-added", _SENSITIVITY, "return tables * m,", "return m,", _MOVED, ("tests/privacy/test_accountant.py::test_no_neighbour_moves_counts_by_more_than_the_sensitivity", "tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    Fault("counts-l2-added", _SENSITIVITY, "math.sqrt(tables) * m", "1.0 * m", _MOVED, ("tests/privacy/test_accountant.py::test_no_neighbour_moves_counts_by_more_than_the_sensitivity", "tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    Fault("counts-l1-of-a-person", _SENSITIVITY, "return 2 * tables * m,", "return 2 * tables,", _MOVED, (_TABLES,)),
    Fault("counts-l2-of-a-person", _SENSITIVITY, "math.sqrt(2 * tables) * m", "math.sqrt(2 * tables * m)", _MOVED,
          (_TABLES,)),
    Fault("counts-relation", _SENSITIVITY, '== "add-remove"', '!= "add-remove"', _MOVED, (_TABLES,)),
    Fault("counts-of-one-table", "privacy.accountant:Accountant.counts", "self.sensitivity(tables)", "self.sensitivity()",
          _MOVED, ("tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    Fault("rows-changed-relation", "privacy.accountant:Accountant.rows_changed",
          '2 if self.relation == "replace-one" else 1', "1", "a replaced record is a row that leaves and one that enters", ("tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    Fault("rows-changed-of-a-person", "privacy.accountant:Accountant.rows_changed", "self.rows_per_unit * (",
          "1 * (", "a person has several rows", ("tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    Fault("found-values-of-a-person", "privacy.accountant:Accountant.frequent", "changed=self.rows_changed", "changed=1",
          "a value that only one unit has is named with probability at most delta", ("tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    Fault("found-values-largest", "privacy.accountant:Accountant.frequent", "largest=self.rows_per_unit", "largest=1",
          "a value that only one unit has is named with probability at most delta", ("tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    Fault("found-values-sensitivity", "privacy.accountant:Accountant.frequent", "self.sensitivity()[1]", "1.0", _MOVED, ("tests/privacy/test_exact_costs.py::test_what_is_handed_to_the_mechanisms_is_what_is_paid_for",)),
    # ---- linear models
    Fault("linear-gradient", "learn.objective:Risk.sensitivity", "self.weight * 2 *", "self.weight *",
          "the gradient of a replaced record moves by twice its norm", ("tests/learn/test_linear_noise.py::test_the_noise_in_the_coefficients_has_its_distribution",)),
    Fault("linear-gradient-softmax", "learn.objective:Risk.sensitivity", 'math.sqrt(2) if self.loss == "softmax" else 1.0',
          "1.0", "the gradient of several classes moves by a root of two more", ("tests/learn/test_objective.py::test_the_determinant_as_the_errata_state_it",)),
    Fault("linear-weight", "learn.objective:Risk.sensitivity", "self.weight * 2", "2",
          "the gradient of a weighted record moves by its weight", ("tests/learn/test_linear_noise.py::test_the_noise_in_the_coefficients_has_its_distribution",)),
    Fault("linear-largest-weight", "learn.linear:_PrivateLinear._largest_weight", "return max(weights)",
          "return min(weights)", "the sensitivity is of the record that weighs most", ("tests/learn/test_linear_noise.py::test_the_noise_in_the_coefficients_has_its_distribution",)),
    Fault("linear-norm-of-the-intercept", "learn.linear:_PrivateLinear._minimise", "math.hypot(self._norm(), constant)",
          "self._norm()", "the constant for the intercept is part of a record's norm", ("tests/learn/test_linear.py::test_the_intercept_counts_to_the_norm", "tests/learn/test_linear_noise.py::test_the_noise_in_the_coefficients_has_its_distribution",)),
    Fault("linear-determinant-fixed", "learn.objective:split", "return epsilon - math.log1p(risk.curvature * k)",
          "return epsilon", "the volume that a record bends is paid for", ("tests/learn/test_objective.py::test_the_determinant_as_the_errata_state_it",)),
    Fault("linear-determinant-logistic", "learn.objective:_logistic_loss", " + math.log1p(k * p * (1 - p))", "",
          "the volume that a record bends is paid for", ("tests/learn/test_objective.py::test_the_determinant_is_free_where_the_ridge_is_large_enough", "tests/learn/test_objective.py::test_the_exact_loss_never_exceeds_epsilon",)),
    Fault("linear-residuals-logistic", "learn.objective:_logistic_loss", "a * (1 + p)", "a * p",
          "both residuals of a replaced record count", ("tests/learn/test_objective.py::test_the_determinant_is_free_where_the_ridge_is_large_enough",)),
    Fault("linear-determinant-softmax", "learn.objective:split", "(risk.n_classes - 1) * math.log1p",
          "math.log1p", "the volume that a record bends is paid for", ("tests/learn/test_objective.py::test_the_softmax_loss_never_exceeds_epsilon",)),
    Fault("linear-free-ridge-softmax", "learn.objective:split", "8 * k <=", "1 * k <=",
          "the volume that a record bends is free only above the ridge that was proven", ("tests/learn/test_objective.py::test_the_softmax_loss_never_exceeds_epsilon",)),
    Fault("linear-determinant-moving", "learn.objective:split", "trace = 2 * risk.curvature * k",
          "trace = risk.curvature * k", "weights that move with the data bend the volume more", ("tests/learn/test_objective.py::test_the_determinant_as_the_errata_state_it",)),
    Fault("linear-free-ridge-moving", "learn.objective:split", "epsilon if 2 * k <= epsilon", "epsilon if k <= epsilon",
          "the volume that a record bends is free only above the ridge that was proven", ("tests/learn/test_objective.py::test_the_determinant_is_free_where_the_ridge_is_large_enough",)),
    Fault("linear-solver-weights", "learn.linear:_PrivateLinear._weights", "(counts[::-1] / counts.sum())[members]",
          "(counts.sum() / counts)[members]", "the weights are those of which the proof speaks", ("tests/learn/test_linear_noise.py::test_the_noise_in_the_coefficients_has_its_distribution",)),
    # ---- norms
    Fault("norm-not-shortened", "learn.features:shorten", "too_long = squares > norm**2", "too_long = squares > 4 * norm**2",
          _NORM, ("tests/privacy/test_exact_costs.py::test_no_record_is_longer_than_the_norm_whatever_it_holds",)),
    Fault("norm-too-long", "learn.features:shorten", "norm * (1 - 1e-12) / np.sqrt", "2 * norm / np.sqrt", _NORM, ("tests/privacy/test_exact_costs.py::test_no_record_is_longer_than_the_norm_whatever_it_holds",)),
    Fault("norm-of-a-schema", "learn.features:FeatureMap.apply",
          "for column in self.schema])\n            return shorten(matrix, self.norm, own=True)",
          "for column in self.schema])\n            return matrix", _NORM, ("tests/privacy/test_exact_costs.py::test_no_record_is_longer_than_the_norm_whatever_it_holds",)),
    Fault("range-without-a-schema", "learn.features:FeatureMap.apply", "np.clip(matrix, -self.limit, self.limit,",
          "np.clip(matrix, -9 * self.limit, 9 * self.limit,", "a scaled number is no larger than the limit", ("tests/privacy/test_exact_costs.py::test_no_record_is_longer_than_the_norm_whatever_it_holds",)),
    # ---- class sums
    Fault("sums-l1", "learn.threshold:noisy_totals", "l1=2 * (longest + weight)", "l1=longest + weight", _MOVED, ("tests/privacy/test_exact_costs.py::test_no_record_moves_sums_and_sizes_by_more_than_is_paid_for",)),
    Fault("sums-l1-sizes", "learn.threshold:noisy_totals", "l1=2 * (longest + weight)", "l1=2 * longest", _MOVED, ("tests/privacy/test_exact_costs.py::test_no_record_moves_sums_and_sizes_by_more_than_is_paid_for",)),
    Fault("sums-l2", "learn.threshold:noisy_totals", "l2=2 * _STEPS", "l2=_STEPS", _MOVED, ("tests/privacy/test_exact_costs.py::test_no_record_moves_sums_and_sizes_by_more_than_is_paid_for",)),
    Fault("sums-weight", "learn.threshold:noisy_totals", "if accountant.pure else _STEPS", "if accountant.pure else 2 * _STEPS",
          _MOVED, ("tests/privacy/test_exact_costs.py::test_no_record_moves_sums_and_sizes_by_more_than_is_paid_for",)),
    Fault("sums-grid-up", "learn.threshold:grid_steps", "np.trunc(", "np.ceil(", "no norm grows on the grid", ("tests/privacy/test_exact_costs.py::test_no_record_is_longer_than_the_norm_whatever_it_holds",)),
    Fault("sums-grid-slack", "learn.threshold:grid_steps", "(1 - _SLACK)", "(1 + 2.0**-10)", "no norm grows on the grid", ("tests/privacy/test_exact_costs.py::test_no_record_is_longer_than_the_norm_whatever_it_holds",)),
    Fault("sums-longest-cauchy", "learn.threshold:longest_l1", "math.sqrt(width)", "1.0", _MOVED, ("tests/privacy/test_exact_costs.py::test_the_largest_sum_of_a_record_is_bounded_where_it_is_largest",)),
    Fault("sums-longest-columns", "learn.threshold:longest_l1", "columns / features.norm)", "columns / (2 * features.norm))",
          _MOVED, ("tests/privacy/test_exact_costs.py::test_the_largest_sum_of_a_record_is_bounded_where_it_is_largest",)),
    # ---- class counts and features that are paid for
    Fault("class-counts-of-two", "learn.base:private_counts", "sensitivity=1, epsilon=epsilon", "sensitivity=1, epsilon=2 * epsilon",
          _MOVED, ("tests/privacy/test_exact_costs.py::test_class_counts_have_exactly_the_noise_that_a_replaced_record_asks_for",)),
    Fault("class-counts-of-several", "learn.base:private_counts", "sensitivity=2", "sensitivity=1", _MOVED, ("tests/privacy/test_exact_costs.py::test_class_counts_have_exactly_the_noise_that_a_replaced_record_asks_for",)),
    # ---- noisy gradients
    Fault("gradient-clip", "privacy.gradients:clipped_sum", "most = clip * (1 - _SLACK)", "most = 2 * clip",
          "no row's gradient is longer than the norm",
          ("tests/privacy/test_gradients.py::test_no_rows_steps_are_longer_than_the_norm",)),
    Fault("gradient-clip-slack", "privacy.gradients:clipped_sum", "(1 - _SLACK)", "(1 + 2.0**-20)",
          "no row's gradient is longer than the norm",
          ("tests/privacy/test_gradients.py::test_no_rows_steps_are_longer_than_the_norm",)),
    Fault("gradient-clip-by-layer", "privacy.gradients:clipped_sum",
          "sum((g.double().square().sum(dim=1) for g in flat), torch.zeros(()))", "flat[0].double().square().sum(dim=1)",
          "the norm is over all parameters together",
          ("tests/privacy/test_gradients.py::test_gradients_are_shortened_over_all_parameters_together",)),
    Fault("gradient-clip-of-a-step", "privacy.gradients:NoisyGradient.step", "for p in parameters], self.clip)",
          "for p in parameters], 2 * self.clip)", "no row's gradient is longer than the norm",
          ("tests/privacy/test_gradients.py::test_a_step_without_noise_is_the_mean_of_shortened_gradients",
           "tests/privacy/test_gradients.py::test_one_step_survives_the_audit")),
    # ---- methods
    Fault("votes-l1", "protect.deep.pategan:noisy_votes", "l1=len(votes)", "l1=1", "a teacher has a vote on each row", ("tests/privacy/test_exact_costs.py::test_votes_have_the_noise_of_a_vote_on_each_row",)),
    Fault("votes-l2", "protect.deep.pategan:noisy_votes", "l2=math.sqrt(len(votes))", "l2=math.sqrt(len(votes)) / 2",
          "a teacher has a vote on each row", (_VOTES,)),
    Fault("histograms-tables", "protect.marginals.histograms:HistogramSynthesizer._learn", "tables=len(tables)", "tables=1", _MOVED,
          (_HISTOGRAMS,)),
    Fault("privbayes-columns", "protect.marginals.private_network:PrivateNetwork.measure_columns", "tables=len(exact)", "tables=1",
          _MOVED, ("tests/protect/test_privbayes.py::test_every_record_is_in_one_cell_of_each_table", "tests/protect/test_privbayes.py",)),
    Fault("privbayes-tables", "protect.marginals.private_network:PrivateNetwork.measure_tables", "tables=len(exact)", "tables=1",
          _MOVED, ("tests/privacy/test_exact_costs.py::test_no_record_moves_the_tables_of_a_network_by_more_than_is_paid_for",)),
    Fault("privbayes-score-replaced", "protect.marginals.private_network:PrivateNetwork.choose_network", "3.0 if", "2.0 if",
          "one record moves the score of a network by no more than is paid for", ("tests/privacy/test_exact_costs.py::test_the_choice_of_a_network_is_paid_at_least_what_records_can_move_it",)),
    Fault("privbayes-score-added", "protect.marginals.private_network:PrivateNetwork.choose_network", "else 2.0", "else 1.0",
          "one record moves the score of a network by no more than is paid for", ("tests/privacy/test_exact_costs.py::test_the_choice_of_a_network_is_paid_at_least_what_records_can_move_it",)),
    Fault("privbayes-score-of-a-person", "protect.marginals.private_network:PrivateNetwork.choose_network",
          "self.accountant.rows_per_unit * (", "1 * (", "one person moves the score of a network by no more than is paid for", ("tests/privacy/test_exact_costs.py::test_the_choice_of_a_network_is_paid_at_least_what_records_can_move_it",)),
    Fault("gem-score", "protect.marginals.gem:_Learner.choose", "float(self.accountant.rows_per_unit)",
          "float(self.accountant.rows_per_unit) / 2", "one record moves a score by no more than is paid for", ("tests/protect/test_gem.py::test_the_choice_of_a_table_is_paid_at_least_what_a_unit_moves_it",)),
    Fault("gem-tables", "protect.marginals.gem:_Learner._noisy", "tables=len(tables)", "tables=1", _MOVED, (_GEM,)),
    Fault("mst-score", "protect.marginals.graphical:_Learner.add_tables", "float(self.accountant.rows_changed)",
          "float(self.accountant.rows_changed) / 2", "one record moves a score by no more than is paid for", (_MST,)),
    Fault("mst-columns", "protect.marginals.graphical:_Learner.measure_classes", "tables=len(exact)", "tables=1", _MOVED, (_MST,)),
    Fault("mst-tables", "protect.marginals.graphical:_Learner.add_tables", "tables=len(exact)", "tables=1", _MOVED, (_MST,)),
    Fault("mixture-columns", "protect.marginals.mixture:PrivateMixture._learn", 'what="columns", tables=len(names)',
          'what="columns", tables=1', _MOVED, (_MIXTURE,)),
    Fault("mixture-within", "protect.marginals.mixture:PrivateMixture._learn",
          'what="columns within classes",\n            tables=len(names)', 'what="columns within classes",\n            tables=1',
          _MOVED, (_MIXTURE,)),
    Fault("mixture-pairs", "protect.marginals.mixture:_measure_pairs", "tables=len(sets)", "tables=1", _MOVED, (_MIXTURE,)),
    Fault("mixture-rows", "protect.marginals.mixture:PrivateMixture._budget", "l1=m, l2=float(m)", "l1=1, l2=1.0",
          "one person changes the number of rows by as many as they have", ("tests/learn/test_promises.py::test_the_number_of_rows_of_persons_is_paid_for_all_rows_of_one",)),
    Fault("margins-tables", "protect.deep.adversarial:AdversarialSynthesizer._count_margins", "tables=len(tables)", "tables=1",
          _MOVED, ("tests/protect/test_adversarial.py::test_no_neighbour_moves_the_votes_by_more_than_is_paid_for",)),
    # ---- what is found out of the domains
    Fault("bounds-score", "privacy.estimates:_ends", "lower, share, what=what, sensitivity=m", "lower, share, what=what, sensitivity=m / 2",
          "one record moves a rank by no more than is paid for", ("tests/privacy/test_estimates.py::test_no_neighbour_moves_a_question_by_more_than_is_paid", "tests/privacy/test_domains.py::test_no_neighbour_moves_a_question_by_more_than_is_paid",)),
    Fault("bounds-score-upper", "privacy.estimates:_ends", "upper, share, what=what, sensitivity=m",
          "upper, share, what=what, sensitivity=m / 2", "one record moves a rank by no more than is paid for", ("tests/privacy/test_estimates.py::test_no_neighbour_moves_a_question_by_more_than_is_paid", "tests/privacy/test_domains.py::test_no_neighbour_moves_a_question_by_more_than_is_paid",)),
    Fault("quantiles-levels", "privacy.estimates:noisy_leaves", "tables=len(levels)", "tables=1", _MOVED, ("tests/privacy/test_estimates.py::test_no_neighbour_moves_a_question_by_more_than_is_paid", "tests/privacy/test_domains.py::test_no_neighbour_moves_a_question_by_more_than_is_paid",)),
    Fault("kinds-votes", "privacy.kinds:private_kinds", 'what="kinds of the columns", tables=len(names)',
          'what="kinds of the columns", tables=1', _MOVED, ("tests/privacy/test_domains.py::test_no_neighbour_moves_a_question_by_more_than_is_paid",)),
    # ---- rows that SMOTE makes
    Fault("smote-dp-digits", "protect.samplers.smote_dp:_located", "codes = _of_places(column, scaled)", "pass", _PLACES, (_SMOTE,)),
    Fault("smote-dp-gaps", "protect.samplers.smote_dp:_located", "codes = np.where(np.isnan(codes), stand_in, codes)", "pass", _PLACES,
          (_SMOTE,)),
)  # fmt: skip
