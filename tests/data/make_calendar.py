#!/usr/bin/env python3
"""Writes calendar_steps.csv and calendar_zones.csv: dates of pandas' offsets, the references of test_series_calendar.c
(pandas 3.1.1)."""
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

# Times with a zone, and the line after them: as they are to be written. Daylight saving begins or ends within twelve.
ZONES = {"D Asia/Kolkata": "2023-03-20", "B Asia/Kolkata": "2023-03-16", "MS Asia/Kolkata": "2022-06-01",
         "QS Asia/Tokyo": "2020-01-01", "ME America/Bogota": "2022-01-31", "W-MON UTC": "2023-01-02",
         "D Europe/Berlin": "2023-03-20", "B America/New_York": "2022-10-31", "W-SUN Europe/Berlin": "2022-09-04",
         "MS Europe/Berlin": "2022-06-01", "h Europe/Berlin": "2023-03-25 20:00", "h America/New_York": "2022-11-05 20:00",
         "30min Australia/Lord_Howe": "2023-04-01 23:00"}
with open(pathlib.Path(__file__).with_name("calendar_zones.csv"), "w") as out:
    for name, start in ZONES.items():
        step, zone = name.split()
        times = pd.date_range(start, periods=24, freq=step, tz=zone)
        if len({t.utcoffset() for t in times[:12]}) == 1:
            texts = [t.isoformat() for t in times]
        elif step[-1] in "hn":
            texts = [t.tz_convert(None).isoformat() + "Z" for t in times]
        else:
            texts = [t.tz_localize(None).isoformat() for t in times]
        out.write(f"{name},{','.join(map(str, times))}\n{name},{','.join(texts)}\n")
