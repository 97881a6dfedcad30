"""A ledger that overlooks tampering or lets a budget be overspent."""

from tests.mutants.fault import Fault

_LEDGER = "tests/privacy/test_ledger.py"
_FIELDS = "tests/privacy/test_ledger_fields.py"
_CODE = f"{_FIELDS}::test_a_code_is_of_all_fields_of_the_ledger_and_of_its_key"
_BRANCH = f"{_FIELDS}::test_an_entry_of_another_branch_does_not_fit_in"
_BOTH = (_FIELDS, _LEDGER)
_CHANGED = "an entry that was changed is found"
_CHAIN = "an entry that was removed, added or moved is found"
_END = "an end that was cut off is found"
_BUDGET = "no budget is overspent"
_MAC = "privacy.ledger.chain:Key.mac"
_COMPARED = 'hmac.compare_digest(self.mac(row).encode(), row.mac.encode("utf-8", "surrogatepass"))'
_TYPES = f"{_FIELDS}::test_a_field_of_any_other_type_is_found"


def _without(field: str) -> Fault:
    left = [f for f in ("number", "dataset", "kind", "fingerprint", "body", "previous") if f != field]
    old = "[row.number, row.dataset, row.kind, row.fingerprint, row.body, row.previous]"
    new = f"[{', '.join(f'row.{f}' for f in left)}]"
    tests = (_BRANCH, _CODE) if field == "previous" else (_CODE,)
    return Fault(f"mac-without-{field}", _MAC, old, new, _CHANGED, tests)


FAULTS = (
    *(_without(field) for field in ("number", "dataset", "kind", "fingerprint", "body", "previous")),
    Fault("mac-not-compared", "privacy.ledger.chain:Key.fits", _COMPARED, "True", _CHANGED, (_LEDGER,)),
    Fault("mac-compared-in-part", "privacy.ledger.chain:Key.fits", _COMPARED,
          "self.mac(row)[:8] == row.mac[:8]", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_a_code_is_of_all_fields_of_the_ledger_and_of_its_key",)),
    Fault("mac-of-any-type", "privacy.ledger.chain:Key.fits", "type(row.number) is not int or not all(isinstance(text, str) for text in texts)",
          "False", "what is tampered with is told, whatever its type", (_TYPES,)),
    Fault("mac-of-any-number", "privacy.ledger.chain:Key.fits", "type(row.number) is not int or", "", _CHANGED, (_TYPES,)),
    Fault("verify-any-number", "privacy.ledger.check:check_entries", "if type(row.number) is not int:", "if False:",
          "what is tampered with is told, whatever its type", (_TYPES,)),
    Fault("text-that-is-none", "privacy.ledger.store:SQLiteStore._connection", "            connection.text_factory = _text\n", "",
          "what is tampered with is told, whatever its type", (_TYPES,)),
    Fault("names-not-authentic", "privacy.ledger.ledger:_names", "checked(key, row).dataset", "row.dataset", _CHANGED, (_TYPES,)),
    Fault("key-not-of-the-ledger", "privacy.ledger.chain:Key.__init__", 'f"oversafe ledger chain {ledger_id}"', '"oversafe ledger chain"',
          "entries of one ledger are none of another", ("tests/privacy/test_ledger_fields.py::test_a_code_is_of_all_fields_of_the_ledger_and_of_its_key",)),
    Fault("key-without-the-secret", "privacy.ledger.chain:Key.__init__", 'hmac.digest(secret, f"oversafe ledger chain',
          'hmac.digest(b"", f"oversafe ledger chain', "nobody without the key can write an entry", ("tests/privacy/test_ledger_fields.py::test_a_code_is_of_all_fields_of_the_ledger_and_of_its_key",)),
    Fault("fingerprint-without-the-secret", "privacy.ledger.chain:Key.__init__", 'hmac.digest(secret, f"oversafe ledger fingerprint',
          'hmac.digest(b"", f"oversafe ledger fingerprint', "a fingerprint tells nothing without the key", ("tests/privacy/test_ledger_fields.py::test_a_code_is_of_all_fields_of_the_ledger_and_of_its_key",)),
    Fault("fingerprint-the-same", "privacy.ledger.chain:Key.fingerprint", '{number} {digest}', '{digest}',
          "not even that two tables were equal shows", (_LEDGER,)),
    Fault("head-oldest", "privacy.ledger.chain:read_head", "max(found, default=None)", "min(found, default=None)", _END, ("tests/privacy/test_ledger_fields.py::test_the_highest_of_the_recorded_ends_counts",)),
    Fault("head-not-written", "privacy.ledger.chain:write_head", "os.write(handle, text)", "pass", _END, (_LEDGER,)),
    Fault("head-readable", "privacy.ledger.chain:KeyPlace.make", "os.O_EXCL, 0o600", "os.O_EXCL, 0o644", "the key is its owner's alone",
          (_LEDGER,)),
    Fault("end-not-checked", "privacy.ledger.ledger:Ledger._end", "if cut:", "if False:", _END, (_LEDGER,)),
    Fault("end-of-a-shorter-chain", "privacy.ledger.ledger:Ledger._end", "cut = head is not None", "cut = False", _END, (_LEDGER,)),
    Fault("end-of-another-chain", "privacy.ledger.ledger:Ledger._end", "seen is None or seen.mac != head[1]", "seen is None", _END, ("tests/privacy/test_ledger_fields.py::test_another_branch_is_not_the_one_that_this_machine_has_seen",)),
    Fault("end-not-authentic", "privacy.ledger.ledger:Ledger._end", "last = checked(key, last)", "pass", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("balance-not-authentic", "privacy.ledger.ledger:Ledger.remaining", "last_of(rows, key, created, self._end(rows, key, ledger_id))",
          "rows.last_of(name) or created", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("remaining-without-the-end", "privacy.ledger.ledger:Ledger.remaining", "self._end(rows, key, ledger_id))", "rows.last())", _END, ("tests/privacy/test_ledger_fields.py::test_another_branch_is_not_the_one_that_this_machine_has_seen", "tests/privacy/test_ledger.py",)),
    Fault("charge-not-authentic", "privacy.ledger.ledger:Ledger.charge", "last_of(rows, key, created, end)",
          "rows.last_of(name) or created", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("charge-without-the-end", "privacy.ledger.ledger:Ledger.charge", "end = self._end(rows, key, ledger_id)",
          "end = rows.last()", _END, ("tests/privacy/test_ledger_fields.py::test_another_branch_is_not_the_one_that_this_machine_has_seen", "tests/privacy/test_ledger.py",)),
    Fault("history-not-authentic", "privacy.ledger.ledger:Ledger.history", "[checked(key, row) for row", "[row for row", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_a_history_is_not_told_from_entries_that_were_changed",)),
    Fault("budget-not-authentic", "privacy.ledger.ledger:Ledger._budget", "return checked(key, created)", "return created", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("moved-to-another-data-set", "privacy.ledger.store:last_of", "checked(key, later).previous != row.mac", "False", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("moved-away", "privacy.ledger.store:last_of", "if row.number != end.number:", "if False:", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("last-of-a-data-set-not-authentic", "privacy.ledger.store:last_of", "checked(key, rows.last_of(created.dataset) or created)",
          "rows.last_of(created.dataset) or created", _CHANGED, ("tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("key-not-checked", "privacy.ledger.ledger:Ledger._identify", "if not key.fits(first):", "if False:",
          "a key of another ledger is refused", (_LEDGER,)),
    Fault("budget-twice", "privacy.ledger.ledger:Ledger.create", "if known.casefold() == name.casefold():", "if False:", _BUDGET, (_LEDGER,)),
    Fault("proven-not-asked", "privacy.ledger.ledger:Ledger.charge", 'if guarantee.status != "proven" and unproven == "refuse":', "if False:",
          "what is not proven is not charged as if it were", (_LEDGER,)),
    Fault("charge-after-the-lock", "privacy.ledger.ledger:Ledger.charge", "before = last_of(rows, key, created, end)",
          "before = checked(key, created)", _BUDGET, (_LEDGER,)),
    Fault("overdraft-allowed", "privacy.ledger.entries:next_body", "if after is None:\n        raise OverdraftError(_overdraft(name, keeper, spent, cost))",
          "if after is None:\n        after = spent.plus(cost, spent.rule)", _BUDGET, ("tests/privacy/test_ledger.py::test_an_overdraft_is_refused_and_spends_nothing",)),
    Fault("spent-forgotten", "privacy.ledger.entries:next_body", "spent = spent_of(before)", "spent = filter_of(budget).empty", _BUDGET, ("tests/privacy/test_ledger.py::test_an_overdraft_is_refused_and_spends_nothing",)),
    Fault("unaccounted-forgotten", "privacy.ledger.entries:next_body", 'before["unaccounted"] + 1', 'before["unaccounted"]',
          "releases that no budget covers are counted", (_LEDGER,)),
    Fault("unit-not-compared", "privacy.ledger.entries:_check_comparable", 'if guarantee.unit != budget["unit"]:', "if False:",
          "a budget for persons is not charged for records", (_LEDGER,)),
    Fault("rows-not-compared", "privacy.ledger.entries:_check_comparable", 'guarantee.rows_per_unit < budget["rows_per_unit"]', "False",
          "a budget for persons is not charged for fewer rows", (_LEDGER,)),
    Fault("relation-not-compared", "privacy.ledger.entries:_check_comparable", 'guarantee.relation != "add-remove"', "False",
          "a budget is not charged for neighbours that are not its own", (_LEDGER,)),
    Fault("ledger-id-unchecked", "privacy.ledger.entries:ledger_id_of", 're.fullmatch("[0-9a-f]{16}", facts["id"]) is not None', "True",
          "a ledger's first entry names no other files", ("tests/privacy/test_ledger_fields.py::test_a_ledgers_own_name_names_no_other_files",)),
    Fault("verify-numbers", "privacy.ledger.check:check_entries", "if row.number != expected:", "if False:", _CHAIN, (_LEDGER, _FIELDS)),
    Fault("verify-previous", "privacy.ledger.check:check_entries", "elif row.previous != previous:", "elif False:", _CHAIN, ("tests/privacy/test_ledger_fields.py::test_an_entry_of_another_branch_does_not_fit_in", "tests/privacy/test_ledger_fields.py::test_every_field_of_every_kind_of_entry",)),
    Fault("verify-macs", "privacy.ledger.check:check_entries",
          'problems.append(f"entry {row.number} was changed after it was written")', "pass", _CHANGED, (_LEDGER,)),
    Fault("verify-head", "privacy.ledger.check:check_entries", "if found is None or found.mac != head[1]:", "if found is None:", _END, ("tests/privacy/test_ledger_fields.py::test_another_branch_is_not_the_one_that_this_machine_has_seen",)),
    Fault("verify-head-missing", "privacy.ledger.check:check_entries", "if found is None or found.mac != head[1]:",
          "if found is not None and found.mac != head[1]:", _END, (_LEDGER,)),
    Fault("verify-sums", "privacy.ledger.check:_check_sums", "claimed != (spent.plus(cost, claimed[0].rule), unaccounted)", "False",
          "an entry's sums follow from those before it", ("tests/privacy/test_ledger_fields.py::test_sums_that_do_not_follow_are_found_even_if_they_are_authentic",)),
    Fault("verify-rule", "privacy.ledger.check:_check_sums", "spent.rule not in (\n        None,\n        claimed[0].rule,\n    )", "False",
          "the rule is fixed before any answer is seen", ("tests/privacy/test_ledger_fields.py::test_a_rule_that_changes_between_charges_is_found_even_if_it_is_authentic",)),
    Fault("verify-overspent", "privacy.ledger.check:_check_sums", "if not budgets[row.dataset].allows(claimed[0], _ROUNDING):", "if False:",
          _BUDGET, ("tests/privacy/test_ledger_fields.py::test_sums_that_do_not_follow_are_found_even_if_they_are_authentic",)),
    Fault("verify-unaccounted", "privacy.ledger.check:_check_sums", "claimed == (spent, unaccounted + 1)", "True",
          "an entry's sums follow from those before it", ("tests/privacy/test_ledger_fields.py::test_sums_that_do_not_follow_are_found_even_if_they_are_authentic",)),
    Fault("verify-made-twice", "privacy.ledger.check:_check_sums", "return None if known is None else", "return None if True else",
          _BUDGET, ("tests/privacy/test_ledger_fields.py::test_a_second_budget_of_one_name_is_found_even_if_it_is_authentic",)),
    Fault("file-grows", "privacy.ledger.store:SQLiteStore._make_table", '("UPDATE", "DELETE")', '("UPDATE",)',
          "a ledger's file only grows", (_LEDGER,)),
    Fault("file-locked", "privacy.ledger.store:SQLiteStore.writing", 'connection.execute("BEGIN IMMEDIATE")', 'connection.execute("BEGIN")',
          _BUDGET, (_LEDGER, "tests/privacy/test_ledger_processes.py")),
    Fault("file-of-the-owner", "privacy.ledger.store:SQLiteStore._make_file", "0o600", "0o644", "the file is its owner's alone", (_LEDGER,)),
    Fault("learner-pays", "learn.base:PrivateLearner._promise", "self.ledger_entry_ = pay(self.ledger, guarantee, what=type(self).__name__)",
          "self.ledger_entry_ = None", "a fit is charged", ("tests/learn/test_contract.py::test_the_ledger_is_charged_before_any_noise",)),
    Fault("bag-pays", "learn.bagging:PrivateBaggingClassifier._fit",
          "self.ledger_entry_ = pay(self.ledger, guarantee, what=type(self).__name__)", "self.ledger_entry_ = None", "a fit is charged",
          ("tests/learn/test_contract.py::test_the_ledger_is_charged_before_any_noise", "tests/learn/test_bagging.py")),
    Fault("synthesizer-pays", "protect.counting:CountingSynthesizer._budget", "self._pay_whole(accountant, data)", "pass",
          "a fit is charged", ("tests/protect/test_ledger.py",)),
)  # fmt: skip
