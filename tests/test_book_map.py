"""The map of the book: which markers it finds, what it refuses, and that it is the same every time."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import leaked_state
from tools import book_map

Project = Callable[..., Path]

ROWS = """\
id\tsource\titem
1.01\tbook ch. 1\tModels | primitives
1.02\tbook ch. 1\tA * b * c
1.03\tbook ch. 1\tThird
1.04\tbook ch. 1\tFourth
A.01\tbook app. A\tLottery
S-01\tslides\tTensors
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Makes a project of the given test files, and returns its folder."""

    def make(
        files: dict[str, str], rows: str = ROWS, no_code: str = "id\treason\n", partial: str = "id\tmissing\n"
    ) -> Path:
        files = {"docs/rows.tsv": rows, "docs/no_code.tsv": no_code, "docs/partial.tsv": partial, **files}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(dedent(text), encoding="utf-8")
        return tmp_path

    return make


def marks_of(root: Path) -> list[tuple[str, str]]:
    return [(mark.row, mark.test) for mark in book_map.read_marks(root)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(
            """
            @pytest.mark.book("1.01", "S-01")
            @pytest.mark.slow
            async def test_one(): ...
            """,
            [("1.01", "::test_one"), ("S-01", "::test_one")],
            id="function",
        ),
        pytest.param(
            """
            @pytest.mark.book("1.01")
            class TestAll:
                pytestmark = pytest.mark.book("1.02")

                @pytest.mark.book("1.03")
                def test_one(self): ...

                class TestInner:
                    @pytest.mark.book("1.04")
                    def test_two(self): ...
            """,
            [
                ("1.01", "::TestAll"),
                ("1.02", "::TestAll"),
                ("1.03", "::TestAll::test_one"),
                ("1.04", "::TestAll::TestInner::test_two"),
            ],
            id="class",
        ),
        pytest.param(
            """
            pytestmark = [pytest.mark.slow, pytest.mark.book("1.02")]
            def test_one(): ...
            """,
            [("1.02", "")],
            id="module",
        ),
        pytest.param(
            """
            @pytest.mark.parametrize("x", [
                pytest.param(1, marks=pytest.mark.book("1.01")),
                pytest.param(2, marks=[pytest.mark.slow, pytest.mark.book("1.02")]),
            ])
            def test_one(x): ...
            """,
            [("1.01", "::test_one"), ("1.02", "::test_one")],
            id="param",
        ),
        pytest.param(
            """
            CASES: list = [pytest.param(1, marks=pytest.mark.book("1.01"))]
            def more():
                return [pytest.param(2, marks=pytest.mark.book("1.02"))]
            @pytest.mark.parametrize("x", CASES + more())
            def test_one(x): ...
            """,
            [("1.01", "::test_one"), ("1.02", "::test_one")],
            id="param-in-a-variable",
        ),
        pytest.param(
            """
            book = pytest.mark.book
            chain_rule = book("1.03")
            @book("1.01")
            @chain_rule
            def test_one(): ...
            @chain_rule
            def test_two(): ...
            """,
            [("1.01", "::test_one"), ("1.03", "::test_one"), ("1.03", "::test_two")],
            id="alias",
        ),
        pytest.param(
            """
            if sys.platform == "linux":
                @pytest.mark.book("1.01")
                def test_one(): ...
            """,
            [("1.01", "::test_one")],
            id="inside-if",
        ),
        pytest.param("TEXT = '@pytest.mark.book(\"1.01\")'", [], id="text-is-no-marker"),
    ],
)
def test_finds_markers(project: Project, code: str, expected: list[tuple[str, str]]) -> None:
    path = "tests/nn/test_a.py"
    assert marks_of(project({path: code})) == [(row, path + test) for row, test in expected]


def test_reads_only_test_files(project: Project) -> None:
    marked = '@pytest.mark.book("1.01")\ndef test_one(): ...'
    root = project({"tests/test_b.py": marked, "tests/a/test_c.py": marked, "tests/made_up.py": marked,
                    "src/wonderland/test_d.py": marked})  # fmt: skip
    assert [test for _, test in marks_of(root)] == [
        "tests/a/test_c.py::test_one",
        "tests/test_b.py::test_one",
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = wl.sum(wl.exp(x)); wl.sum(y)", ["wl.sum", "wl.exp"]),
        ("wl.linalg.inv(wl.ones(3).T)", ["wl.linalg.inv", "wl.ones"]),
        ("nn.Linear(2, 3)(wl.tensor([1.0, 2.0]))", ["nn.Linear"]),
        ("wl.tensor(3.0)", ["wl.tensor"]),
        ("wl._private(x).sum(); np.sum(x)", []),
        ("wl.a; wl.b; wl.c; wl.d; wl.e", ["wl.a", "wl.b", "wl.c", "wl.d"]),
    ],
)
def test_public_names_come_from_the_body(project: Project, body: str, expected: list[str]) -> None:
    code = f'@pytest.mark.book("1.01")\ndef test_one(x):\n    {body}'
    assert book_map.public_names(book_map.read_marks(project({"tests/test_a.py": code}))) == expected


def test_names_in_parameters_follow_those_of_the_body(project: Project) -> None:
    code = """
    @pytest.mark.book("1.01")
    @pytest.mark.parametrize("f", [wl.sin, wl.cos])
    def test_one(f): wl.grad(f)
    """
    marks = book_map.read_marks(project({"tests/test_a.py": code}))
    assert book_map.public_names(marks) == ["wl.grad", "wl.sin", "wl.cos"]


def test_a_given_name_wins(project: Project) -> None:
    code = """
    @pytest.mark.book("1.01", name="wl.vjp")
    def test_one(): wl.jvp(f)
    @pytest.mark.book("1.01", name=("wl.vjp", "wl.grad"))
    def test_two(): wl.jvp(f)
    @pytest.mark.book("1.01")
    def test_three(): wl.jvp(f)
    """
    marks = book_map.read_marks(project({"tests/test_a.py": code}))
    assert book_map.public_names(marks) == ["wl.vjp", "wl.grad"]


def test_the_page(project: Project) -> None:
    code = """
    @pytest.mark.book("1.02", "S-01")
    def test_one(): wl.sum(x)
    @pytest.mark.book("1.02")
    def test_two(): wl.exp(x)
    """
    root = project({"tests/test_a.py": code}, no_code="id\treason\n1.01\tA word only.\n")
    page = book_map.build(root)
    one, two = "`tests/test_a.py::test_one`", "`tests/test_a.py::test_two`"
    assert page.partition("Of 6 rows, ")[2] == dedent(f"""\
        2 are shown by tests, 0 in part, 1 call for no
        code and 3 are still to come.

        ## Book, chapter 1

        | row | item | public names | tests |
        |---|---|---|---|
        | 1.02 | A \\* b \\* c | `wl.sum`, `wl.exp` | {one}<br>{two} |

        ## Slides

        | row | item | public names | tests |
        |---|---|---|---|
        | S-01 | Tensors | `wl.sum` | {one} |

        ## Rows that call for no code

        | row | item | reason |
        |---|---|---|
        | 1.01 | Models \\| primitives | A word only. |

        ## Rows still to come

        - Book, chapter 1: 1.03, 1.04
        - Book, appendix A: A.01
        """)
    assert book_map.build(root) == page


def test_rows_shown_in_part_are_counted_apart(project: Project) -> None:
    code = """
    @pytest.mark.book("1.01", "1.02")
    def test_one(): wl.sum(x)
    """
    page = book_map.build(project({"tests/test_a.py": code}, partial="id\tmissing\n1.02\tThe layer | `c`.\n"))
    assert "Of 6 rows, 1 are shown by tests, 1 in part, 0 call for no\ncode and 4 are still to come." in page
    whole, _, part = page.partition("## Rows that are shown in part")
    assert "| 1.01 |" in whole
    assert "1.02" not in whole
    row = "| 1.02 | A \\* b \\* c | The layer \\| `c`. | `wl.sum` | `tests/test_a.py::test_one` |"
    assert row in part


def test_neighbours_to_come_are_joined() -> None:
    position = {id: index for index, id in enumerate("abcdefgh")}
    assert list(book_map.ranges(list("abcegh"), position)) == ["a to c", "e", "g", "h"]


def test_check_tells_a_stale_page(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    root = project({"tests/test_a.py": '@pytest.mark.book("1.01")\ndef test_one(): ...'})
    page = root / "docs" / "book.md"
    assert book_map.main(["--check"], root) == 1
    assert not page.exists()
    assert book_map.main([], root) == 0
    assert book_map.main(["--check"], root) == 0
    assert capsys.readouterr().err.count("docs/book.md is stale: run `python -m tools.book_map`") == 1
    before = page.read_bytes()
    (root / "tests" / "test_a.py").write_text("def test_one(): ...")
    assert book_map.main(["--check"], root) == 1
    assert page.read_bytes() == before


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            '@pytest.mark.book("9.99")\ndef test_one(): ...',
            "tests/test_a.py:1: row 9.99 is not in docs/rows.tsv",
        ),
        ('@pytest.mark.book("1.04")\ndef test_one(): ...', "tests/test_a.py:1: row 1.04 has a test"),
        (
            '@pytest.mark.book("1.01")\ndef helper(): ...',
            "tests/test_a.py:1: this book marker is not called on",
        ),
        (
            "@pytest.mark.book\ndef test_one(): ...",
            "tests/test_a.py:1: this book marker is not called on a test",
        ),
        ("@pytest.mark.book()\ndef test_one(): ...", "tests/test_a.py:1: this book marker names no row"),
        ("@pytest.mark.book(*ALL)\ndef test_one(): ...", "tests/test_a.py:1: only literals, please"),
        ("@pytest.mark.book(1.01)\ndef test_one(): ...", "tests/test_a.py:1: only literals, please"),
        (
            '@pytest.mark.book("1.01", nam="wl.x")\ndef test_one(): ...',
            "tests/test_a.py:1: only literals, please",
        ),
        (
            'book = pytest.mark.book\nwith_row = book("1.01")',
            "tests/test_a.py:2: this book marker is not called",
        ),
        ("def test_one(:", "tests/test_a.py:1: "),
    ],
)
def test_refuses_wrong_markers(project: Project, capsys: pytest.CaptureFixture[str], code: str, message: str) -> None:
    root = project({"tests/test_a.py": code}, no_code="id\treason\n1.04\tA word only.\n")
    assert book_map.main([], root) == 1
    assert message in capsys.readouterr().err
    assert not (root / "docs" / "book.md").exists()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"rows": ROWS + "1.01\tslides\tAgain\n"}, "rows.tsv:8: row 1.01 is there twice"),
        ({"rows": ROWS + "1.05\tslides\n"}, "rows.tsv:8: a line needs 3 non-empty cells"),
        ({"rows": "id\titem\n"}, "rows.tsv: the columns are"),
        ({"rows": ""}, "rows.tsv: the columns are"),
        ({"no_code": "id\treason\n9.99\tNothing.\n"}, "no_code.tsv: row 9.99 is not in docs/rows.tsv"),
        ({"no_code": "id\treason\n1.01\t\n"}, "no_code.tsv:2: a line needs 2 non-empty cells"),
        ({"partial": "id\tmissing\n9.99\tAll.\n"}, "partial.tsv: row 9.99 is not in docs/rows.tsv"),
        ({"partial": "id\tmissing\n1.01\tAll.\n"}, "partial.tsv: row 1.01 has no test; take it out"),
    ],
)
def test_refuses_wrong_tables(
    project: Project, capsys: pytest.CaptureFixture[str], tables: dict[str, str], message: str
) -> None:
    assert book_map.main([], project({}, **tables)) == 1
    assert message in capsys.readouterr().err


def test_the_tables_of_this_project_are_sound() -> None:
    docs = book_map.ROOT / "docs"
    rows = [line[0] for line in book_map.read_table(docs / "rows.tsv", ("id", "source", "item"))]
    reasons = [line[0] for line in book_map.read_table(docs / "no_code.tsv", ("id", "reason"))]
    assert {"2.08", "6-35", "11.28", "A.14", "A3-08", "A3-43b", "C-01", "S-06"} <= set(rows)
    missing = [line[0] for line in book_map.read_table(docs / "partial.tsv", ("id", "missing"))]
    assert set(reasons) <= set(rows)
    assert set(missing) <= set(rows)


def test_leaked_state_is_what_differs_from_a_fresh_state() -> None:
    from wonderland.core.context import modules
    from wonderland.core.settings import set_from_now_on

    def leak() -> list[str]:
        assert leaked_state() == []
        set_from_now_on("strict_broadcast", False)
        assert leaked_state() == []
        set_from_now_on("strict_broadcast", True)
        modules.called.append("model")  # type: ignore[arg-type]
        leaked = leaked_state()
        modules.called.clear()
        return leaked

    assert contextvars.copy_context().run(leak) == ["modules = ('model',)", "plain = False", "strict_broadcast = True"]
    assert leaked_state() == []


def test_no_package_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wonderland.core.context", None)
    assert leaked_state() == []
