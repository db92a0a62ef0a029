"""A report read back: is it whole HTML, and what do its tables and headings say?"""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Reader(HTMLParser):
    """Headings, tables, links and all text of a page; complains of tags that do not match."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.headings, self.tables, self.captions = [], [], []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag in ("h1", "h2", "h3"):
            self.headings.append("")
        elif tag == "figcaption":
            self.captions.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> without a beginning"
        assert self.open[-1] == tag, f"</{tag}> inside <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        elif self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings[-1] += data
        elif self.open and self.open[-1] == "figcaption":
            self.captions[-1] += data

    def table(self, *head):
        """The rows below the head of the first table whose head starts so."""
        for found in self.tables:
            if tuple(found[0][: len(head)]) == head:
                return found[1:]
        raise AssertionError(f"no table with the head {head}; there are {[t[0] for t in self.tables]}")


def read(path):
    """A page on disk that loads nothing from elsewhere and runs nothing."""
    with open(path, encoding="utf-8") as file:
        html = file.read()
    page = Reader(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not {"script", "iframe", "object", "embed", "link"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("src", "href", "xlink:href", "action", "data"):
            assert value.startswith(("#", "data:image/png;base64,")), (tag, name, value)
    assert "@import" not in html
    assert [value for tag, name, value in page.attributes if tag == "img" and name == "alt"].count("") == 0
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)), "an id is used twice"
    return page
