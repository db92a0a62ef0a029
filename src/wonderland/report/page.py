"""HTML: a page that needs nothing else, and the parts that sections are made of. All text given to it is escaped."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from ..data.transforms.preview import png_bytes
from ..graphs.drawing import NETWORK_LOOKS
from ..viz.graph import STYLE as GRAPH_STYLE
from ..viz.heatmap import HEAT_LOOKS
from ..viz.marks import PLOT_LOOKS, style_sheet
from .pictures import Image, Picture, Section

CSS = """
:root { color-scheme: light dark; --paper: #ffffff; --page: #f8fafc; --ink: #0f172a; --soft: #475569; --line: #e2e8f0;
  --accent: #0369a1; --mark: #f1f5f9; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 0 0 .8rem; } h3 { font-size: 1.05rem; margin: 1.4rem 0 .5rem; }
p { margin: .4rem 0 .8rem; } .soft, figcaption, caption { color: var(--soft); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; margin: .8rem 0 0; padding: 0; }
a { color: var(--accent); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 1.2rem;
  margin: 1.2rem 0; }
.figures { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  align-items: start; }
.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 14.5rem), 1fr)); gap: .9rem; }
.images { display: grid; gap: .9rem; grid-template-columns: repeat(auto-fill, minmax(7rem, 1fr)); }
figure { margin: 0; min-width: 0; } figcaption { font-size: .9rem; margin: .2rem 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } .figures + .scroll, .scroll + .scroll { margin-top: 1.2rem; }
svg.wl-plot { display: block; width: 100%; max-width: 34rem; height: auto; }
svg.wl-heat { width: auto; max-width: none; } svg.wl-network { max-width: 60rem; }
.images img { display: block; width: 100%; height: auto; image-rendering: pixelated; border: 1px solid var(--line);
  border-radius: 6px; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .28rem .8rem .28rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.long { min-width: 15rem; max-width: 40rem; overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2rem; margin: 0 0 1rem; }
.facts div { min-width: 6rem; } .facts dt { color: var(--soft); font-size: .85rem; }
.facts dd { margin: 0; font-size: 1.35rem; font-weight: 600; }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--accent); padding: .2rem 0; }
code { font: .92em ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.written { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--mark); border-radius: 8px; padding: .8rem;
  font: .92rem/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; margin: .4rem 0 1rem;
  max-height: 24rem; overflow-y: auto; }
.prompt { color: var(--soft); } .token { border-radius: 3px; }
.right { color: #15803d; } .wrong { color: #b91c1c; }
.findings { list-style: none; margin: 0; padding: 0; } .findings li { padding: .5rem 0 .5rem .9rem; margin: .5rem 0;
  border-left: 4px solid var(--line); } .findings .severity { font-weight: 600; margin-right: .4rem; }
.findings .serious { border-color: #b91c1c; } .findings .warning { border-color: #d97706; }
.findings .note { border-color: #0284c7; }
footer { padding-bottom: 2rem; font-size: .9rem; }
"""
# after the styles of the pictures, which it changes
DARK = """
@media (prefers-color-scheme: dark) {
  :root { --paper: #111a2c; --page: #0b1120; --ink: #e2e8f0; --soft: #a3b1c6; --line: #2b3a52; --accent: #7dd3fc;
    --mark: #1e293b; }
  .wl-plot text { fill: #cbd5e1; } .wl-plot .title { fill: #e2e8f0; } .wl-plot .strong { fill: #ffffff; }
  .wl-plot .paper { fill: #111a2c; } .wl-plot .grid { stroke: #24324a; } .wl-plot .axis { stroke: #64748b; }
  .wl-plot .cell, .wl-plot .legend { stroke: #2b3a52; } .wl-plot .bar { stroke: #111a2c; }
  .right { color: #4ade80; } .wrong { color: #f87171; }
  .wl-plot .curve, .wl-plot circle, .wl-plot .bar { filter: brightness(1.35); }
}
@media print { section { border: 0; padding: 0; } nav { display: none; } }
"""
LONG = 20  # characters of a cell
# nothing is loaded and nothing runs, whatever a title or a class name says
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LOOKS = {"wl-plot": PLOT_LOOKS, "wl-heat": HEAT_LOOKS, "wl-network": NETWORK_LOOKS}
STYLES = CSS + "".join(style_sheet(name, looks) for name, looks in LOOKS.items()) + GRAPH_STYLE + DARK


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole document. `lead` is HTML below the title.

    >>> page("A & B", "", []).count("<h1>A &amp; B</h1>")
    1
    """
    links = "".join(f'<li><a href="#part-{i}">{escape(part.title)}</a></li>' for i, part in enumerate(sections))
    body = "\n".join(
        f'<section id="part-{i}" aria-labelledby="title-{i}">\n<h2 id="title-{i}">{escape(part.title)}</h2>\n'
        f"{part.html}\n</section>"
        for i, part in enumerate(sections)
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<style>{STYLES}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
{lead}
<nav aria-label="Contents"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
<footer><p class="soft">Written by Wonderland.</p></footer>
</body>
</html>
"""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "") -> str:
    """A table; numbers stand to the right, and the first cell of a row is its heading.

    >>> table(["class", "n"], [["<a>", 3]])[-86:]
    '<tr><th scope="row">&lt;a&gt;</th><td class="number">3</td></tr></tbody></table></div>'
    """
    lines = [list(row) for row in rows]
    right = [
        any(is_number(row[i]) for row in lines) and all(is_number(row[i]) or row[i] in (None, "", "–") for row in lines)
        for i in range(len(head))
    ]
    kind = [' class="number"' if is_right else "" for is_right in right]
    titles = "".join(f'<th scope="col"{k}>{escape(text)}</th>' for text, k in zip(head, kind, strict=True))
    body = []
    for row in lines:
        texts = [shown(cell) for cell in row]
        # long texts have a width of their own, so that a narrow screen scrolls instead of breaking every word
        marks = [' class="long"' if len(text) > LONG else k for text, k in zip(texts, kind, strict=True)]
        cells = "".join(f"<td{k}>{escape(text)}</td>" for text, k in zip(texts[1:], marks[1:], strict=True))
        body.append(f'<tr><th scope="row"{marks[0]}>{escape(texts[0])}</th>{cells}</tr>')
    name = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{name}<thead><tr>{titles}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """A few numbers that matter most, large."""
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(shown(v))}</dd></div>" for k, v in pairs)
        + "</dl>"
    )


def figure(picture: Picture, caption: str = "") -> str:
    """A picture with a line beside it: the caption, or its title."""
    text = escape(caption or picture.title)
    if isinstance(picture, Image):
        data = base64.b64encode(png_bytes(picture.pixels)).decode()
        h, w = picture.pixels.shape[:2]
        place = f'width="{w}" height="{h}" alt="{escape(picture.title)}"'
        return f'<figure><img src="data:image/png;base64,{data}" {place}><figcaption>{text}</figcaption></figure>'
    return (
        f'<figure><figcaption>{text}</figcaption><div class="scroll">{inline(picture.drawing().svg())}</div></figure>'
    )


def figures(pictures: Iterable[Picture], kind: str = "") -> str:
    """Pictures side by side as far as there is room. Kinds: "small"."""
    return f'<div class="{f"figures {kind}".strip()}">{"".join(figure(picture) for picture in pictures)}</div>'


def details(summary: str, html: str, *, opened: bool = False) -> str:
    """Something that can be folded."""
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{html}</details>"


def paragraph(text: str) -> str:
    return f'<p class="soft">{escape(text)}</p>'


def inline(svg: str) -> str:
    """An SVG picture inside HTML: the page has its style already, and the namespace is implied."""
    svg = re.sub(r"<style>.*?</style>", "", svg, count=1, flags=re.DOTALL)
    return svg.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1).strip()


def shown(value: object) -> str:
    """A number with four digits that matter, any other thing as text.

    >>> shown(0.123456), shown(1234567), shown(float("nan")), shown(None)
    ('0.1235', '1,234,567', 'nan', '–')
    """
    if value is None:
        return "–"
    if not is_number(value):
        return str(value)
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return f"{value:,.0f}" if math.isfinite(value) and 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return f"{value:,}"


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
