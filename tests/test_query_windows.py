"""The spellings of a window: those that mean the same give the same one; `str()` gives a spelling back; the rest is refused."""

from __future__ import annotations

import pytest

from muntin.aggregates import AGGREGATES
from muntin.errors import QueryError
from muntin.expression.tree import Column
from muntin.query.check import check_pipeline
from muntin.query.model import GENEROUS, GroupColumn, Lateness, LatePolicy
from muntin.schema import BIGINT, DOUBLE, STRING, TIMESTAMP, decimal
from muntin.semantics import ROWS, Alignment, LandmarkWindow, Measure, SlideOrder, TimeWindow, TupleSlide, Unit, Window
from muntin.timeline import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Duration
from queries_over_trades import CREATE_TRADES, Refused, checked, refusals

ENDS = TimeWindow(12 * MINUTE, 5 * MINUTE, 0, Alignment.ENDS, "ts")
STARTS = TimeWindow(12 * MINUTE, 5 * MINUTE, 0, Alignment.STARTS, "ts")
SHIFTED = TimeWindow(12 * MINUTE, 5 * MINUTE, 30 * SECOND, Alignment.STARTS, "ts")
TUMBLING = TimeWindow(HOUR, HOUR, 0, Alignment.STARTS, "ts")
EARLIER = TimeWindow(HOUR, HOUR, -5 * MINUTE, Alignment.STARTS, "ts")
PARTITIONED = TimeWindow(1000, 10, wattr="row_num", measure=ROWS, pattr=("symbol",))
HOPPING = TimeWindow(MINUTE, HOUR, 0, Alignment.STARTS, "ts")

SPELLINGS: dict[str, Window] = {
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
    "FROM trades [RANGE 12 minutes SLIDE 5 minutes ALIGN STARTS OFFSET 30 seconds]": SHIFTED,
    "FROM trades [RANGE 12 minutes RATTR ts SLIDE 5 minutes SATTR t.ts] AS t": ENDS,
    "FROM trades [RANGE 1 h SLIDE 1 h WATTR seen]": TimeWindow(HOUR, HOUR, wattr="seen"),
    "FROM trades [RANGE 1 h SLIDE 1 h WATTR Arrival_TS]": TimeWindow(HOUR, HOUR, wattr="arrival_ts"),
    "FROM TUMBLE(trades, seen, INTERVAL 1 HOUR)": TimeWindow(HOUR, HOUR, 0, Alignment.STARTS, "seen"),
    "FROM trades [RANGE 1000 rows SLIDE 10 rows WATTR row_num]": TimeWindow(1000, 10, wattr="row_num", measure=ROWS),
    "FROM trades [RANGE 1000 rows SLIDE 1 ROW OFFSET -3 rows]": TimeWindow(1000, 1, -3, wattr="row_num", measure=ROWS),
    "FROM trades [RANGE 1000 rows SLIDE 10 rows WATTR row_num PATTR symbol]": PARTITIONED,
    "FROM trades T [RANGE 1000 rows SLIDE 10 rows PATTR T.symbol]": PARTITIONED,
    "FROM trades [RANGE 1 h SLIDE 1 h PATTR symbol, flag]": TimeWindow(HOUR, HOUR),
    "FROM trades [RANGE 100 SLIDE 5 WATTR vol]": TimeWindow(100, 5, wattr="vol", measure=Measure(Unit.NUMBER)),
    "FROM trades [RANGE 2.5 SLIDE 0.05 OFFSET -1 WATTR fee]": TimeWindow(250, 5, -100, wattr="fee", measure=Measure(Unit.NUMBER, 2)),
    "FROM trades [RANGE 0.000001 SLIDE .5 WATTR price]": TimeWindow(1, 500_000, wattr="price", measure=Measure(Unit.DOUBLE, 6)),
    "FROM trades [RANGE 300 seconds RATTR ts SLIDE 1 row SATTR row_num]": TupleSlide(300 * SECOND),
    "FROM trades [RANGE 300 seconds RATTR ts SLIDE 5 rows SATTR rank(ts)]": TupleSlide(300 * SECOND, 5, order=SlideOrder.RANK),
    "FROM trades T [RANGE 300 seconds RATTR T.ts SLIDE 5 rows SATTR rank( T.ts )]": TupleSlide(300 * SECOND, 5, order=SlideOrder.RANK),
    "FROM trades [RANGE 7 RATTR vol SLIDE 2 rows SATTR row_num PATTR symbol]": TupleSlide(
        7, 2, "vol", measure=Measure(Unit.NUMBER), pattr=("symbol",)
    ),
    "FROM trades [RANGE UNBOUNDED SLIDE 1 hour WATTR ts]": LandmarkWindow(HOUR),
    "FROM trades [RANGE unbounded SLIDE 10 rows]": LandmarkWindow(10, wattr="row_num", measure=ROWS),
    "FROM trades [RANGE UNBOUNDED SLIDE 1 hour LANDMARK 1 day OFFSET 6 hours]": LandmarkWindow(HOUR, DAY, 6 * HOUR),
    "FROM TABLE(CUMULATE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY))": LandmarkWindow(HOUR, DAY),
}


@pytest.mark.parametrize("clauses", SPELLINGS)
def test_spellings_of_one_window_agree(clauses: str) -> None:
    assert checked(f"SELECT count(*) {clauses}").window == SPELLINGS[clauses]


@pytest.mark.parametrize("window", dict.fromkeys(SPELLINGS.values()), ids=str)
def test_a_window_prints_as_a_clause_that_means_it(window: Window) -> None:
    assert checked(f"SELECT count(*) FROM trades [{window}]").window == window


@pytest.mark.parametrize(
    ("clause", "type"),
    [
        ("[RANGE 1 h SLIDE 1 h]", TIMESTAMP),
        ("[RANGE 9 rows SLIDE 1 row]", BIGINT),
        ("[RANGE 9 SLIDE 1 WATTR fee]", decimal(20, 2)),
        ("[RANGE 9 RATTR price SLIDE 1 row SATTR row_num]", DOUBLE),
    ],
)
def test_bounds_have_the_type_of_their_attribute(clause: str, type: object) -> None:
    assert checked(f"SELECT window_end AS e, count(*) FROM trades {clause}").outputs[0].expression.type == type


def test_the_columns_of_pattr_can_be_selected_and_divide_the_results() -> None:
    """Q4 of the paper, which has no GROUP BY."""
    query = checked("SELECT symbol, count(*) AS n FROM trades [RANGE 1000 rows SLIDE 10 rows PATTR symbol] GROUP BY vol, symbol")
    assert query.group_by == (GroupColumn("symbol", Column("symbol", STRING)), GroupColumn("vol", Column("vol", BIGINT)))


EMISSIONS = {
    "": (False, None, GENEROUS),
    "EMIT EMPTY": (True, None, GENEROUS),
    "LATE GENEROUS EMIT EVERY '10 seconds'": (False, Duration(10 * SECOND), GENEROUS),
    "emit every 1 minute emit empty late consistent": (True, Duration(MINUTE), LatePolicy(Lateness.CONSISTENT)),
    "LATE REEMIT FOR INTERVAL '1' HOUR": (False, None, LatePolicy(Lateness.REEMIT, HOUR)),
    "AS T LATE REEMIT FOR 1 hour EMIT EVERY 250 ms": (False, Duration(250 * MILLISECOND), LatePolicy(Lateness.REEMIT, HOUR)),
    "WHERE vol > 1 LATE CONSISTENT": (False, None, LatePolicy(Lateness.CONSISTENT)),
}


@pytest.mark.parametrize("clauses", EMISSIONS)
def test_a_query_says_when_it_emits(clauses: str) -> None:
    query = checked(f"SELECT count(*) FROM trades [RANGE 1 h SLIDE 1 h] {clauses}")
    assert (query.emit_empty, query.emit_every, query.late) == EMISSIONS[clauses]


@pytest.mark.parametrize(
    ("rest", "law"),
    [
        ("[RANGE 9 rows SLIDE 1 row PATTR symbol]", "counts by PATTR are not supported"),
        ("[RANGE 1 h RATTR ts SLIDE 2 rows SATTR row_num PATTR symbol]", "counts by PATTR are not supported"),
    ],
)
def test_what_the_engine_does_not_run_yet_is_refused_when_it_is_registered(rest: str, law: str) -> None:
    with pytest.raises(QueryError, match=law):
        check_pipeline(f"{CREATE_TRADES}; CREATE QUERY a AS SELECT count(*) FROM trades {rest}", AGGREGATES)


@pytest.mark.parametrize("case", refusals("refused_windows"), ids=str)
def test_a_window_that_cannot_be_is_refused_with_its_place(case: Refused) -> None:
    case.check(checked)
