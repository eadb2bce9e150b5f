"""An update of your own system: read it, find out how it was made, and say what it gives away."""

from smelib.auditing.audit import audit
from smelib.auditing.report import Report

__all__ = ["Report", "audit"]
