"""Draws ``docs/benchmarks.svg``: four works, a bar to each contestant, as long as its figure."""

from __future__ import annotations

from typing import Final

from bench.peers.results import LIMIT, OURS, is_part, row_of, rows_of
from bench.peers.rounds import Result

PANELS: Final = [
    ("Filling a cache with custom resources: CPU seconds", "sync", "Workloads", "cpu"),
    ("Memory for each cached object: bytes", "sync", "Workloads", "bytes_per_object"),
    ("Taking in a change of a custom resource: CPU µs", "watch", "Workloads", "cpu_microseconds"),
    ("Reconciling from cold, 10 workers: CPU seconds", "reconcile", "WebApps, 10 workers", "cpu"),
]
_NOTE: Final = "* measured on a part of the objects or events, and extrapolated"
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#444}.title{font-weight:bold}.ours{fill:#2f6fdd}.theirs{fill:#b9c0cc}"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}.theirs{fill:#59616e}}"
)
_WIDTH, _ROW, _LABEL = 760, 20, 270


def chart(results: list[Result]) -> str:
    """The longest bar of each work takes the whole width."""
    parts: list[str] = []
    y = 10
    for title, work, case, figure in PANELS:
        y += 24
        parts.append(f'<text x="10" y="{y}" class="title">{title}</text>')
        bars = _bars(results, work, case, figure)
        most = max((value for _, value in bars), default=0)
        for name, value in bars:
            y += _ROW
            length = max(1.0, (_WIDTH - _LABEL - 90) * value / most)
            kind = "ours" if name == OURS else "theirs"
            parts.append(f'<text x="{_LABEL - 8}" y="{y}" text-anchor="end">{name}</text>')
            parts.append(
                f'<rect x="{_LABEL}" y="{y - 12}" width="{length:.0f}" height="14" class="{kind}"/>'
                f'<text x="{_LABEL + length + 6:.0f}" y="{y}">{_short(value)}</text>'
            )
        if not bars:
            y += _ROW
            parts.append(f'<text x="{_LABEL}" y="{y}">not measured</text>')
        y += 12
    y += 16
    parts.append(f'<text x="10" y="{y}">{_NOTE}</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 10}" role="img" '
        f'aria-label="Setpoint and its peers">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )


def _bars(results: list[Result], work: str, case: str, figure: str) -> list[tuple[str, float]]:
    rows = rows_of(results, work, case)
    ours = row_of(rows, OURS)
    return [
        (f"{row['contestant']}{' *' if is_part(row, ours) else ''}", float(row[figure]))
        for row in rows
        if figure in row and row["contestant"] != LIMIT and "metadata" not in row["contestant"]
    ]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
