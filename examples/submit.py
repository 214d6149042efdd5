"""The command line under `spark-submit`, which starts a file and not a command:

spark-submit --master spark://host:7077 --py-files muntin.zip submit.py run pipeline.sql --out PLACE --checkpoint PLACE

`muntin.zip` is the folder `muntin` of the installed package: `cd site-packages && zip -r muntin.zip muntin`.
"""

from muntin.cli import app

app()
