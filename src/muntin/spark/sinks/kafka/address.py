"""Where results go in Kafka: servers and topics, as a user names them.

In: `kafka://host:9092,host2:9092/topic`, names of queries. Out: an `Address`, which tells the topic of each query.
Convention: `{query}` in the topic stands for the query's name. A name that Kafka does not take is refused here, before anything is asked
of a broker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from muntin.errors import SinkError

SCHEME = "kafka://"
QUERY = "{query}"
DEFAULT_TOPIC = f"muntin-{QUERY}"

#: Kafka's law for names of topics.
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def check_topic(name: str, way_out: str = "rename the topic") -> str:
    """The name, if Kafka takes it.

    >>> check_topic("results-by_user")
    'results-by_user'
    """
    if not _LEGAL.fullmatch(name) or name in (".", ".."):
        law = "a topic has 1 to 249 letters, digits, dots, underscores and hyphens"
        raise SinkError(law, values=repr(name), way_out=way_out)
    return name


@dataclass(frozen=True)
class Address:
    """`servers` are some of the cluster's, with commas in between; `topic` is that of all queries, or one for each.

    >>> Address.parse("kafka://a:9092,b:9092/results-{query}").topic_of("big")
    'results-big'
    >>> Address.parse("kafka://a:9092")
    Address(servers='a:9092', topic='muntin-{query}')
    """

    servers: str
    topic: str = DEFAULT_TOPIC

    def __post_init__(self) -> None:
        if not self.servers or "@" in self.servers or not all(self.servers.split(",")):
            found = "no server" if "@" not in self.servers else "a user or password among the servers"
            way_out = "name host:port, several with commas in between; credentials are settings (--kafka sasl.username=…)"
            raise SinkError("a topic is named kafka://host:port/topic", values=found, way_out=way_out)
        check_topic(self.topic.replace(QUERY, "q"))

    @classmethod
    def parse(cls, uri: str) -> Address:
        servers, _, topic = uri.removeprefix(SCHEME).partition("/")
        return cls(servers, topic or DEFAULT_TOPIC)

    def topic_of(self, query: str) -> str:
        return check_topic(self.topic.replace(QUERY, query), f"rename the query {query!r}, or give a topic without {QUERY}")

    @property
    def file_name(self) -> str:
        """The topic as the name of a directory; two topics never share one."""
        return self.topic.replace(QUERY, "=")

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.topic}"
