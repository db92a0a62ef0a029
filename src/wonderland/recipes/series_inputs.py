"""Series as the data of a run: columns of a table in the order of time, and the dates after the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import series
from ..core.errors import InputError
from ..data.tables.dates import day_or_month_first, read_dates
from ..data.tables.kinds import guess_kind
from ..data.tables.reading import is_table_source, read_table
from ..data.tables.table import Column, Table
from .inputs import Options, kept, made_with, read, read_again, refuse_options, refuse_targets

SERIES: dict[str, Callable[..., np.ndarray]] = {
    "ar": series.make_ar,
    "lorenz": series.make_lorenz,
    "random_walk": series.make_random_walk,
    "seasonal": series.make_seasonal,
    "sines": series.make_sines,
}
OF_FILES = ("header", "delimiter", "encoding", "expect_size", "expect_sha256")


@dataclass(frozen=True)
class Series:
    """Values (time, channels) with the names of the channels, and the dates of the steps if there are any."""

    name: str
    values: np.ndarray
    inputs: dict[str, object]  # what a run keeps
    channels: tuple[str, ...] = ()
    dates: np.ndarray | None = None
    notes: tuple[str, ...] = ()


def is_series(run: Options) -> bool:
    """Whether a run keeps the columns of a series, as those of this version do."""
    return (run.get("inputs") or {}).get("kind") == "series"


def read_series(data: Options, run: Options | None = None) -> Series:
    """A series that is generated, or the columns of a table, or an array with a row for each step.

    >>> found = read_series({"name": {"day": ["2024-01-01", "2024-01-02", "2024-01-03"], "sold": [3, 5, 4]}})
    >>> found.channels, found.values[:, 0].tolist(), str(found.dates[-1])[:10]
    (('sold',), [3.0, 5.0, 4.0], '2024-01-03')

    A column of dates is the time: the rows are put into its order, and it is not forecast. With what a `run` keeps the
    columns are its channels, by their names.
    """
    name = data.get("name")
    options = {key: value for key, value in data.items() if key != "name"}
    if isinstance(name, str) and name in SERIES:
        made = made_with(name, SERIES[name], options)
        return _checked(Series(name, np.asarray(made), {"schema": None}))
    refuse_targets("every column is forecast", options)
    if is_table_source(name) and (run is None or is_series(run)):
        refuse_options("a series", options, (*OF_FILES, *(("columns", "time") if run is None else ())))
        how = {key: value for key, value in options.items() if key in OF_FILES}
        table = made_with(name, lambda **given: read_table(name, **given), how)
        if not len(table):
            raise InputError(f"{table.name}: there are no rows.", "a table with a row per step")
        return _checked(_of_table(table, options, run))
    if run is not None and is_series(run):
        record = read({**data, "name": name})  # an array, whose columns are the channels in their order
    else:
        record = read(data) if run is None else read_again(data, run, targets=False)
    channels = record.feature_names
    return _checked(Series(record.name, np.asarray(record.features), kept(record), channels))


def _of_table(table: Table, options: Options, run: Options | None) -> Series:
    notes: list[str] = []
    if run is None:
        time, chosen = _chosen(table, options, notes)
    else:
        time, chosen = run["inputs"]["time"], list(run["inputs"]["channels"])
        if missing := [name for name in chosen if name not in table.columns]:
            raise InputError(
                f"{table.name}: the column {missing[0]!r} is missing.", f"the columns {', '.join(map(repr, chosen))}"
            )
        if time is not None and time not in table.columns:
            notes.append(f"there is no column {time!r}, so the steps have no dates")
            time = None
        if extra := [name for name in table.names if name not in (*chosen, time)]:
            notes.append(f"{', '.join(map(repr, extra))}: not in the series of the run, ignored")
    dates = None
    if time is not None:
        dates = _dates(table, time)
        order = np.argsort(dates, kind="stable")
        if (order != np.arange(len(order))).any():
            notes.append(f"the rows are put into the order of {time!r}")
            table, dates = table.select(order), dates[order]
        if len(twice := np.flatnonzero(dates[1:] == dates[:-1])):
            raise InputError(
                f"{table.name}: {str(dates[twice[0]])[:19]} stands in {table.place(int(twice[0]))}"
                f" and in {table.place(int(twice[0]) + 1)}.",
                "one row per step; a file for each series",
            )
    values = np.stack([_numbers(table, table[name]) for name in chosen], -1)
    inputs: dict[str, object] = {"kind": "series", "channels": chosen, "time": time, "dtype": "float32"}
    return Series(table.name, values, inputs, tuple(chosen), dates, tuple(notes))


def _chosen(table: Table, options: Options, notes: list[str]) -> tuple[str | None, list[str]]:
    """The column of the time, if there is one, and the columns to forecast."""
    dates = [name for name, column in table.columns.items() if guess_kind(column).kind == "date"]
    time = options.get("time", dates[0] if dates else None)
    wanted = options.get("columns")
    if isinstance(wanted, (str, int)):
        wanted = [wanted]
    if wanted is not None and not isinstance(wanted, Sequence):
        raise InputError(f"data.columns = {wanted!r}.", "names of columns to forecast")
    if wanted is None:
        chosen = [name for name in table.names if name != time]
    else:
        chosen = [table.names[name] if isinstance(name, int) else str(name) for name in wanted]
    for name in (*chosen, *([] if time is None else [time])):
        table[str(name)]  # an error if there is none
    if not chosen:
        raise InputError(f"{table.name}: there is no column to forecast.", "a table with a column of numbers")
    if time is not None:
        notes.append(f"the time is the column {time!r}")
    return time, chosen


def _numbers(table: Table, column: Column) -> np.ndarray:
    if column.kind != "number":
        raise InputError(
            f"{table.name}: the column {column.name!r} has {column.kind}s, and a series has numbers.",
            'data.columns=["a", "b"] with the columns to forecast',
        )
    if (gaps := ~np.isfinite(column.values)).any():
        raise InputError(
            f"{table.name}: {np.count_nonzero(gaps)} values of {column.name!r} are missing or not finite, "
            f"the first in {table.place(int(np.argmax(gaps)))}; a series has finite numbers at every step.",
            "values that are filled in",
        )
    return column.values


def _dates(table: Table, name: str) -> np.ndarray:
    column = table[name]
    guess = guess_kind(column)
    moments, _ = read_dates(column, guess.source, day_or_month_first(column.texts or ())[0])
    if (gaps := np.isnat(moments)).any():
        raise InputError(
            f"{table.name}: {name!r} is the time, and is no date in {table.place(int(np.argmax(gaps)))}.",
            "a date in every row, as 2026-01-31",
        )
    return moments


def _checked(found: Series) -> Series:
    values = np.asarray(found.values, np.float32)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InputError(
            f"{found.name}: no series of finite numbers (shape {values.shape}).", "a table with a row per step"
        )
    return Series(found.name, values, found.inputs, found.channels, found.dates, found.notes)


# --- the dates after the last


def continued(dates: np.ndarray, steps: int) -> tuple[list[str], list[str]]:
    """The dates of the next steps, by the step that the last ones have, and a note if they have none.

    >>> continued(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], "datetime64[us]"), 2)
    (['2024-04-30', '2024-05-31'], [])
    >>> continued(np.array(["2024-01-01T00", "2024-01-01T06", "2024-01-01T12"], "datetime64[us]"), 2)
    (['2024-01-01T18:00:00', '2024-01-02T00:00:00'], [])

    Steps are equal, or are months, quarters or years, or the days from Monday to Friday; else the one in the middle of
    all is taken.
    """
    if len(dates) < 2:
        return [str(i + 1) for i in range(steps)], ["one date alone has no step; the rows count the steps ahead"]
    ahead = np.arange(1, steps + 1)
    days = dates.astype("datetime64[D]")
    whole = bool((dates == days).all())
    gaps = np.diff(dates)
    notes: list[str] = []
    if whole and (by_month := _months(days, ahead)) is not None:
        found = by_month
    elif (gaps == gaps[0]).all():
        found = dates[-1] + ahead * gaps[0]
    elif whole and np.is_busday(days).all() and np.median(between := np.busday_count(days[:-1], days[1:])) == 1:
        found = np.busday_offset(days[-1], ahead)
        if (between != 1).any():
            notes.append("some days between Monday and Friday are missing; those ahead are all of them")
    else:
        step = np.sort(gaps)[(len(gaps) - 1) // 2]
        notes.append(f"the dates have no equal steps; those ahead are {step.astype('timedelta64[s]')} apart")
        found = dates[-1] + ahead * step
        whole = whole and not (step % np.timedelta64(1, "D")).astype(bool)
    return found.astype("datetime64[D]" if whole else "datetime64[s]").astype(str).tolist(), notes


def _months(days: np.ndarray, ahead: np.ndarray) -> np.ndarray | None:
    """The same day of later months, or the last one; None if the dates are not some months apart."""
    months = days.astype("datetime64[M]")
    gaps = np.diff(months).astype(int)
    if (gaps != gaps[0]).any() or gaps[0] < 1:
        return None
    last = (months + 1).astype("datetime64[D]") - 1
    later = months[-1] + ahead * gaps[0]
    end = (later + 1).astype("datetime64[D]") - 1
    if (days == last).all():
        return end
    place = days - months.astype("datetime64[D]")
    if (days != np.minimum(months.astype("datetime64[D]") + place.max(), last)).any():
        return None
    return np.minimum(later.astype("datetime64[D]") + place.max(), end)
