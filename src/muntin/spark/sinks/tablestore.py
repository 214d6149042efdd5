"""What delta-rs calls a place, and how it gets there.

In: a place, and options of the user's. Out: the URI of a table, and delta-rs's storage options. Convention: delta-rs opens stores by
itself, and reads the environment as pyarrow does (`AWS_…`, `GOOGLE_…`, `AZURE_…`). What a URI of S3 says of credentials, endpoint and
region is said again; the user's own options come last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from muntin.errors import SinkError
from muntin.spark.place import Place


def table_uri(place: Place) -> str:
    """The URI that Spark has for the place, with S3's own name and its odd letters quoted."""
    scheme, _, rest = place.spark_uri.partition(":")
    if set(rest) & set("%\\"):  # delta-rs unquotes a path twice, and takes a backslash for a slash
        law, way_out = "the path of a table has neither % nor \\ in it", "choose another output directory"
        raise SinkError(law, values=str(place), way_out=way_out)
    if scheme == "file":
        return Path(rest).as_uri()
    authority, _, path = rest.removeprefix("//").partition("/")
    return f"{'s3' if scheme == 's3a' else scheme}://{authority}/{quote(path)}"


def storage_options(place: Place, own: Mapping[str, str]) -> dict[str, str]:
    derived = s3_options(place) if table_uri(place).startswith("s3://") else {}
    return derived | dict(own)


def s3_options(place: Place) -> dict[str, str]:
    """What the URI says, and the region that pyarrow found out."""
    parts = urlsplit(place.root.given)
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    region = asked.get("region") or getattr(getattr(place.root.store, "filesystem", None), "region", "")
    endpoint = asked.get("endpoint_override", "")
    if endpoint and "://" not in endpoint:
        endpoint = f"{asked.get('scheme', 'https')}://{endpoint}"
    told = {
        "AWS_ACCESS_KEY_ID": unquote(parts.username or ""),
        "AWS_SECRET_ACCESS_KEY": unquote(parts.password or ""),
        "AWS_REGION": region,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true" if (endpoint or os.environ.get("AWS_ENDPOINT_URL", "")).startswith("http://") else "",
    }
    return {name: value for name, value in told.items() if value}
