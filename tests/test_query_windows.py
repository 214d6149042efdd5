"""The spellings of a window: those that mean the same give the same `TimeWindow`; those to come are refused by name."""

from __future__ import annotations

import pytest

from muntin.semantics import Alignment, TimeWindow
from muntin.timeline import HOUR, MILLISECOND, MINUTE, SECOND
from queries_over_trades import Refused, checked, refusals

ENDS = TimeWindow(12 * MINUTE, 5 * MINUTE, 0, Alignment.ENDS, "ts")
STARTS = TimeWindow(12 * MINUTE, 5 * MINUTE, 0, Alignment.STARTS, "ts")
SHIFTED = TimeWindow(12 * MINUTE, 5 * MINUTE, 30 * SECOND, Alignment.STARTS, "ts")
TUMBLING = TimeWindow(HOUR, HOUR, 0, Alignment.STARTS, "ts")
EARLIER = TimeWindow(HOUR, HOUR, -5 * MINUTE, Alignment.STARTS, "ts")
HOPPING = TimeWindow(MINUTE, HOUR, 0, Alignment.STARTS, "ts")

SPELLINGS = {
    "FROM trades [RANGE 12 minutes SLIDE 5 minutes]": ENDS,
    "FROM trades[SLIDE 5 min WATTR ts RANGE 12 MINUTE]": ENDS,
    "FROM TRADES [RANGE '12 min' SLIDE \"300 s\" WATTR `ts` OFFSET 0 seconds]": ENDS,
    "FROM trades T [RANGE INTERVAL '12' MINUTES SLIDE INTERVAL 5 MINUTES WATTR T.ts]": ENDS,
    "FROM trades AS T [RANGE 12 minutes SLIDE 5 minutes] WHERE T.vol > 1": ENDS,
    "FROM trades [RANGE 12m SLIDE 4 minutes 60 seconds] AS T EMIT EMPTY": ENDS,
    "FROM trades [RANGE 3.01 seconds SLIDE 5s OFFSET -30 seconds]": TimeWindow(3010 * MILLISECOND, 5 * SECOND, -30 * SECOND),
    "FROM trades [RANGE 1 minute SLIDE 1 hour OFFSET - INTERVAL '1 hour 5 minutes']": TimeWindow(MINUTE, HOUR, -65 * MINUTE),
    "FROM HOP(trades, ts, INTERVAL 5 MINUTES, INTERVAL 12 MINUTES)": STARTS,
    "FROM hop(trades, ts, INTERVAL '5 minutes', '12 minutes') AS t": STARTS,
    "FROM TABLE(HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '12' MINUTES))": STARTS,
    "FROM TABLE(HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '12' MINUTES)) GROUP BY window_start, window_end": STARTS,
    "FROM trades GROUP BY window(ts, '12 minutes', '5 minutes')": STARTS,
    "FROM trades t GROUP BY symbol, WINDOW(t.ts, '12 minutes', INTERVAL 5 MINUTES)": STARTS,
    "FROM HOP(trades, ts, INTERVAL 5 MINUTES, INTERVAL 12 MINUTES, INTERVAL 30 SECONDS)": SHIFTED,
    "FROM TABLE(HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '12' MINUTES, INTERVAL '30' SECONDS))": SHIFTED,
    "FROM trades GROUP BY window(ts, '12 minutes', '5 minutes', '30 seconds')": SHIFTED,
    "FROM TUMBLE(trades, ts, INTERVAL 1 HOUR)": TUMBLING,
    "FROM TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '60' MINUTES))": TUMBLING,
    "FROM trades GROUP BY window(ts, '1 hour')": TUMBLING,
    "FROM trades GROUP BY window(ts, '1 hour', '60 minutes')": TUMBLING,
    "FROM TUMBLE(trades, ts, INTERVAL 1 HOUR, INTERVAL -5 MINUTES)": EARLIER,
    "FROM TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '-5' MINUTES))": EARLIER,
    "FROM trades GROUP BY window(ts, '1 hour', '1 hour', '-5 minutes')": EARLIER,
    "FROM HOP(trades, ts, INTERVAL 1 HOUR, INTERVAL 1 MINUTE)": HOPPING,
    "FROM trades GROUP BY window(ts, '1 minute', '1 hour')": HOPPING,
}


@pytest.mark.parametrize("clauses", SPELLINGS)
def test_spellings_of_one_window_agree(clauses: str) -> None:
    assert checked(f"SELECT count(*) {clauses}").window == SPELLINGS[clauses]


@pytest.mark.parametrize("case", refusals("refused_windows"), ids=str)
def test_a_window_that_cannot_be_is_refused_with_its_place(case: Refused) -> None:
    case.check(checked)
