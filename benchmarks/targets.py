"""What a workload's figures have to show, whether they do, and the paper's figures beside them.

In: a `Workload` and its `Outcome`. Out: claims, and a section for the page. Convention: a target that is missed is a claim that fails;
figures of the paper appear only where its numbers of rows and queries were run.
"""

from __future__ import annotations

from benchmarks import paper
from benchmarks.counting import SETS, SPAN, Aggregations, Scheme, mean_counted, most_final
from benchmarks.outcome import Outcome
from benchmarks.report import Claim, seconds, table, times, whole
from benchmarks.workloads import PLAIN, Form, Workload
from muntin.plan.slices import Slicing
from muntin.spark.generator import ROWS
from muntin.timeline import END


def claims(workload: Workload, outcome: Outcome) -> list[Claim]:
    own = claims_about_careful_users(workload, outcome) if workload.forms else claims_about_slices(workload, outcome)
    compared = f"{whole(outcome.rows_compared)} windows compared, then timed"
    return [faster_than_plain(workload, outcome), *own, Claim("every strategy gives the same answers", outcome.rows_compared > 0, compared)]


def faster_than_plain(workload: Workload, outcome: Outcome) -> Claim:
    most = outcome.most
    took, plain = outcome.seconds(workload.main, most), outcome.seconds(PLAIN, most)
    text = f"{workload.main}, {most} queries take at least {workload.gain:.0f} times less than {most} plain Spark jobs"
    return Claim(text, plain >= workload.gain * took, f"{times(plain / took)} less, {seconds(took)} against {seconds(plain)}")


def claims_about_slices(workload: Workload, outcome: Outcome) -> list[Claim]:
    """Workload A alone: a plain query's time for all of them, and Theorem 1."""
    ratios = {queries: outcome.seconds(workload.main, queries) / outcome.one_plain for queries in outcome.setup.queries}
    slices = {(one.strategy, one.queries): one.counted.slices for one in outcome.work}
    pairs = [(paired, slices[name.replace("paired", "paned"), queries]) for (name, queries), paired in slices.items() if "paired" in name]
    return [
        Claim(
            "no number of queries shared takes longer than one plain Spark query",
            max(ratios.values()) <= 1,
            ", ".join(f"{queries}: {times(ratio)}" for queries, ratio in ratios.items()),
        ),
        Claim(
            "paired never has more slices than paned",
            all(paired <= paned for paired, paned in pairs),
            "; ".join(f"{whole(paired)} ≤ {whole(paned)}" for paired, paned in pairs),
        ),
    ]


def claims_about_careful_users(workload: Workload, outcome: Outcome) -> list[Claim]:
    """Workloads B and C: the best single job in plain Spark, and the paper's totals."""
    most = outcome.most
    took = outcome.seconds(workload.main, most)
    best = min((outcome.seconds(form.value, most), form.value) for form in workload.careful)
    figures = [f"{times(outcome.seconds(form.value, most) / took)} less than {form.value}" for form in workload.forms]
    text = f"at least {workload.careful_gain:.0f} times less than the best single job, {best[1]}"
    found = [Claim(text, best[0] >= workload.careful_gain * took, ", ".join(figures) + by_hand(workload))]
    return found + (claims_about_totals(workload, outcome) if as_in_the_paper(outcome) else [])


def by_hand(workload: Workload) -> str:
    return " (panes by hand, no part of the target)" if Form.BY_SECONDS in workload.forms else ""


def as_in_the_paper(outcome: Outcome) -> bool:
    return outcome.setup.rows == ROWS and outcome.most == paper.QUERIES


def claims_about_totals(workload: Workload, outcome: Outcome) -> list[Claim]:
    """As performed: shards are folded into queries as the definition has it; the combines that windows took come on top of all."""
    allowed, work = paper.shared_total(workload.figures), outcome.work_of(workload.main, paper.QUERIES)
    by_definition = total(work.counted)
    performed = by_definition + work.performed
    text = "fewer aggregations than the paper's shared total"
    return [
        Claim(f"{text}, by its definition", by_definition < allowed, below(by_definition, allowed)),
        Claim(f"{text}, as performed", performed < allowed, f"at most {below(performed, allowed)}"),
    ]


def below(ours: float, theirs: float) -> str:
    return f"{whole(ours)} against {whole(theirs)}"


def total(one: Aggregations) -> float:
    return one.partial + one.final


def beside_the_paper(workload: Workload, outcome: Outcome) -> list[str]:
    """Its figures, and what its schemes do with our rows and queries."""
    if not as_in_the_paper(outcome):
        return []
    rows = []
    for figure in workload.figures:
        ours = outcome.definition[scheme_of(figure).value] if outcome.definition else averaged(figure)
        partial = whole(figure.partial) if figure.partial else "not given"
        cells = [f"{figure.seconds} s", seconds(outcome.seconds(figure.ours, paper.QUERIES)), partial, whole(ours.partial)]
        rows.append([figure.scheme, *cells, whole(figure.final), whole(ours.final)])
    head = ["the paper's scheme", "its time", "ours", "its partial", "on our data", "its final", "on our data"]
    title = f"## Beside the paper (on-the-fly-sharing-2006, section {workload.section})"
    return [title, table(head, rows), note_on_fragments(outcome) if outcome.fragments else note_on_windows()]


def scheme_of(figure: paper.PaperFigure) -> Scheme:
    return Scheme.UNSHARED if figure.scheme.startswith(Scheme.UNSHARED.value) else Scheme.SHARED


def averaged(figure: paper.PaperFigure, upto: int = END) -> Aggregations:
    """Workload A is counted without rows, so that it can be averaged over as many sets of queries as the paper's."""
    slicing = next(slicing for slicing in Slicing if figure.scheme.endswith(slicing.value))
    return mean_counted(paper.QUERIES, scheme_of(figure), slicing, rows=ROWS, upto=upto)


def note_on_windows() -> str:
    closed = averaged(paper.A[-1], upto=SPAN.end)
    return (
        f"Averages over {SETS} sets of {paper.QUERIES} queries, as the paper's; the times are of the first set, on machines twenty years "
        f"apart. Partial aggregations are equal. Shared final ones are fewer here ({whole(closed.final)} paired, for windows that end in "
        f"the hour): the paper does not give its sets, and with windows on whole seconds, as here, no slicing can need more than "
        f"{whole(most_final(paper.QUERIES))}, less than its figure for panes."
    )


def note_on_fragments(outcome: Outcome) -> str:
    found = outcome.fragments
    assert found is not None
    return (
        f"The paper's schemes on our data: every predicate on every row, rows of a slice with the same bitmap aggregated together; for one "
        f"set of {paper.QUERIES} queries, where the paper averages ten. There are {whole(found.per_window)} fragments in ten minutes and "
        f"{whole(found.altogether)} in the hour; the paper has {whole(paper.FRAGMENTS_PER_WINDOW)} and "
        f"{whole(paper.FRAGMENTS_PER_HOUR)} in workload B. What Muntin does instead is in the table above."
    )
