"""What there is to say about a run: sentences, each with a remedy, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape

from .pictures import Section

# what cannot be used as it is; what should be looked at; what is good to know
SEVERITIES = ("serious", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Something to know about a model, and what can be done about it. `kind` is its name, for programs.

    >>> print(Finding("warning", "The model is over-confident.", "scale its logits.", "calibration"))
    warning: The model is over-confident. Remedy: scale its logits.
    """

    severity: str
    text: str
    remedy: str
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.text} Remedy: {self.remedy}"

    def to_dict(self) -> dict[str, str]:
        """As plain data."""
        return asdict(self)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by their severity; equals stay in their order.

    >>> [f.text for f in worst_first([Finding("note", "b", ""), Finding("serious", "a", "")])]
    ['a', 'b']
    """
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def findings_section(findings: Sequence[Finding]) -> Section:
    """The findings as the first part of a page."""
    if not findings:
        return Section("Findings", '<p class="soft">Nothing was found that should be looked at.</p>')
    items = "".join(
        f'<li class="{escape(f.severity)}"><span class="severity">{escape(f.severity)}</span> {escape(f.text)} '
        f'<span class="soft">{escape(f.remedy[:1].upper() + f.remedy[1:])}</span></li>'
        for f in findings
    )
    return Section("Findings", f'<ul class="findings">{items}</ul>')


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence.

    >>> listed(["a", "b"]), listed(["a", "b", "c"], most=2)
    ('a, b', 'a, b and 1 more')
    """
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def percent(share: float) -> str:
    """
    >>> percent(0.9333), percent(0.5)
    ('93.3 %', '50 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"
