"""Where the texts of a picture lie, measured with matplotlib's font: is any of them cut off, or do two overlap?"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

SVG = "{http://www.w3.org/2000/svg}"
ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}


def rules_of(root):
    """The style sheet as a list of (what, properties)."""
    sheet = "".join(style.text or "" for style in root.iter(f"{SVG}style"))
    found = []
    for what, body in re.findall(r"\.wl-\w+ ([.\w]+) \{([^}]*)\}", sheet):
        look = dict(part.split(":", 1) for part in body.split(";") if ":" in part)
        found.append((what, {name.strip(): value.strip() for name, value in look.items()}))
    return found


def look_of(element, rules):
    look = {name: value for name, value in element.attrib.items() if name in ("text-anchor", "font-size")}
    kinds = element.get("class", "").split()
    for wanted in ("text", *(f".{kind}" for kind in kinds)):
        for what, properties in rules:
            look |= properties if what == wanted else {}
    if "font" in look:
        look["font-size"], look["font-family"] = re.match(r"([\d.]+px) (.*)", look["font"]).groups()
    return look


@cache
def width_of(words, size, weight, family):
    font = FontProperties(family=family, weight=weight, size=size)
    return TextToPath().get_text_width_height_descent(words, font, ismath=False)[0]


def corners(element, rules, origin):
    """The four corners of a text, around."""
    look = look_of(element, rules)
    words = "".join(element.itertext())
    size = float(look["font-size"].removesuffix("px"))
    family = "DejaVu Sans Mono" if "monospace" in look.get("font-family", "") else "DejaVu Sans"
    width = width_of(words, size, int(look.get("font-weight", 400)), family)
    x, y = float(element.get("x", 0)), float(element.get("y", 0))
    left = x - ANCHORS[look.get("text-anchor", "start")] * width
    box = np.array([[left, y - 0.74 * size], [left + width, y - 0.74 * size], [left + width, y + 0.2 * size]])
    box = np.vstack([box, [left, y + 0.2 * size]])
    if turned := re.match(r"rotate\((\S+) (\S+) (\S+)\)", element.get("transform", "")):
        angle, *pivot = map(float, turned.groups())
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        box = (box - pivot) @ np.array([[c, s], [-s, c]]) + pivot
    return words, box + origin


def texts_of(svg):
    """The words of a picture with their corners, and its extent."""
    root = ET.fromstring(svg if "xmlns=" in svg else svg.replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1))
    rules = rules_of(root)
    found = []

    def walk(element, origin):
        if moved := re.match(r"translate\((\S+) (\S+)\)", element.get("transform", "")):
            origin = origin + np.array([float(n) for n in moved.groups()])
        if element.tag == f"{SVG}text" and "".join(element.itertext()):
            found.append(corners(element, rules, origin))
        for child in element:
            walk(child, origin)

    walk(root, np.zeros(2))
    return found, np.array(root.get("viewBox").split(), float)


def apart(a, b):
    """Whether two convex shapes have a line between them, with a tolerance of half a pixel."""
    for shape in (a, b):
        for side in np.roll(shape, -1, axis=0) - shape:
            normal = np.array([-side[1], side[0]]) / np.linalg.norm(side)
            p, q = a @ normal, b @ normal
            if p.max() <= q.min() + 0.5 or q.max() <= p.min() + 0.5:
                return True
    return False


def faults(svg):
    """What is cut off, and what overlaps."""
    found, (left, top, width, height) = texts_of(svg)
    wrong = []
    for words, box in found:
        if (box < [left - 0.5, top - 0.5]).any() or (box > [left + width + 0.5, top + height + 0.5]).any():
            wrong.append(f"{words!r} is cut off: {box.round(1).tolist()} in {width:g} x {height:g}")
    boxes = np.array([box for _, box in found]).reshape(-1, 4, 2)
    low, high = boxes.min(axis=1), boxes.max(axis=1)
    close = ((low[:, None] <= high) & (low <= high[:, None])).all(axis=-1)
    for i, j in np.argwhere(np.triu(close, 1)):
        if not apart(boxes[i], boxes[j]):
            wrong.append(f"{found[i][0]!r} lies over {found[j][0]!r}")
    return wrong
