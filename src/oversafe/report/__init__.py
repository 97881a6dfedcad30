"""What a person reads: the audit and its verdict, as a page, as JSON and in the terminal."""

from oversafe.report.audit import Audit, audit
from oversafe.report.verdict import Finding, Verdict

__all__ = ["Audit", "Finding", "Verdict", "audit"]
