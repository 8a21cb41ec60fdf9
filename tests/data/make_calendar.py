#!/usr/bin/env python3
"""Writes calendar_steps.csv: dates of pandas' offsets, the reference of test_series_calendar.c (pandas 3.1.1)."""
import pathlib

import pandas as pd

STARTS = {"ME": "2019-11-30", "MS": "2019-11-01", "QE": "2019-06-30", "QS": "2019-04-01", "2QE": "2018-12-31",
          "YE": "2011-12-31", "YS": "2012-01-01", "YE-FEB": "2012-02-29", "B": "2019-12-26", "W-SUN": "2019-12-01",
          "W-WED": "2019-12-04", "D": "2020-02-20", "h": "2020-02-28 20:00", "15min": "2020-02-28 23:00"}
with open(pathlib.Path(__file__).with_name("calendar_steps.csv"), "w") as out:
    for name, start in STARTS.items():
        out.write(f"{name},{','.join(str(t) for t in pd.date_range(start, periods=24, freq=name))}\n".replace(" ", "T"))
    # The same day of every month, or the last one of a shorter month: pandas counts from the first date.
    for day in (28, 29, 30, 31):
        first = pd.Timestamp(2019, 10, day)
        times = [first + pd.DateOffset(months=n) for n in range(24)]
        out.write(f"day {day},{','.join(t.isoformat() for t in times)}\n")
