"""The benchmarks: `python -m benchmarks`, or `make bench`. Answers are checked before anything is timed.

    workload_a     the paper's 256 queries with different windows: plain Spark, unshared and shared, paned and paired
    long_windows   10,000 groups, a slide a minute, RANGE 1 h to 24 h: time per slide and group, memory per slice and group
    restart        500 micro-batches on a checkpoint: what is kept on disk, and what a restart reads

Each writes a Markdown table, a plot (PNG and SVG) and its raw numbers (JSON) to `docs/benchmarks/`, with the machine and its load.
`measuring` times, `answers` compares, `counting` counts aggregations without a machine, `report` and the `plot_` modules write.
"""
