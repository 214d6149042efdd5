"""The benchmarks: `python -m benchmarks`, or `make bench`. Answers are checked before anything is timed.

    workload_a               the paper's queries with different windows: plain Spark, unshared and shared, paned and paired
    workload_b               different predicates, one window: plain Spark, its careful user, and Muntin's strategies
    workload_c_regular       both differ, k of each
    workload_c_low_sharing   both differ, and none occurs twice
    queries                  12 M rows, 1 to 1,000 queries; what Spark compiles meanwhile
    churn                    1,000 joins and leaves over 256 standing queries
    long_windows             10,000 groups, a slide a minute, RANGE 1 h to 24 h: time per slide and group, memory per slice and group
    restart                  500 micro-batches on a checkpoint: what is kept on disk, and what a restart reads

Each writes a Markdown table, a plot (PNG and SVG) and its raw numbers (JSON) to `docs/benchmarks/`, with the machine and its load.
`workloads` says what is contested, `contest` runs it, `baselines` is plain Spark, `measuring` times, `answers` compares, `counting` and
`fragments` count aggregations without a machine, the `report` modules and `plots` write.
"""
