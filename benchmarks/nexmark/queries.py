"""The tables and queries of Nexmark as a program of ours: each query is one view.

The queries say what the benchmark says, in Spark's words. Where two rows may tie for a place, the columns that decide are written
out, because a view must follow from its inputs. Query 12 counts by processing time in the original, which is not a function of the
events; here, as for every system that it is compared with, it counts by event time. Query 10 writes partitioned files in the
original; its view gives the rows with the columns to partition them by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

COLUMNS = {
    "person": (
        "id BIGINT, name VARCHAR, email_address VARCHAR, credit_card VARCHAR, city VARCHAR, state VARCHAR, date_time TIMESTAMP, "
        "extra VARCHAR"
    ),
    "auction": (
        "id BIGINT, item_name VARCHAR, description VARCHAR, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, "
        "expires TIMESTAMP, seller BIGINT, category BIGINT, extra VARCHAR"
    ),
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, date_time TIMESTAMP, extra VARCHAR",
    "side_input": "`key` BIGINT, value VARCHAR",
}
"""The columns of the tables; ``side_input`` is the bounded one."""


@dataclass(frozen=True)
class Query:
    """One query: its name, what it asks, the tables it reads, and its text in Spark SQL."""

    name: str
    title: str
    reads: tuple[str, ...]
    text: str


QUERIES = (
    Query("q0", "pass through", ("bid",), "SELECT auction, bidder, price, date_time, extra FROM bid"),
    Query("q1", "currency conversion", ("bid",), "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid"),
    Query("q2", "selection", ("bid",), "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"),
    Query(
        "q3",
        "local item suggestion",
        ("auction", "person"),
        """
        SELECT p.name, p.city, p.state, a.id
        FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
        """,
    ),
    Query(
        "q4",
        "average price for a category",
        ("auction", "bid"),
        """
        SELECT category, AVG(final) AS average
        FROM (
            SELECT MAX(b.price) AS final, a.category
            FROM auction AS a JOIN bid AS b ON a.id = b.auction
            WHERE b.date_time BETWEEN a.date_time AND a.expires
            GROUP BY a.id, a.category
        ) AS q
        GROUP BY category
        """,
    ),
    Query(
        "q5",
        "hot items",
        ("bid",),
        """
        WITH counts AS (
            SELECT auction, COUNT(*) AS num, window.start AS starttime, window.end AS endtime
            FROM bid GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
        )
        SELECT counts.auction, counts.num
        FROM counts
        JOIN (SELECT MAX(num) AS maxn, starttime, endtime FROM counts GROUP BY starttime, endtime) AS most
        ON counts.starttime = most.starttime AND counts.endtime = most.endtime AND counts.num >= most.maxn
        """,
    ),
    Query(
        "q6",
        "average selling price by seller",
        ("auction", "bid"),
        """
        SELECT seller, id,
            AVG(final) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
        FROM (
            SELECT MAX(b.price) AS final, a.seller, a.id, a.expires
            FROM auction AS a JOIN bid AS b ON a.id = b.auction
            WHERE b.date_time BETWEEN a.date_time AND a.expires
            GROUP BY a.seller, a.id, a.expires
        ) AS q
        """,
    ),
    Query(
        "q7",
        "highest bid",
        ("bid",),
        """
        SELECT b.auction, b.bidder, b.price, b.date_time, b.extra
        FROM bid AS b
        JOIN (
            SELECT MAX(price) AS maxprice, window.end AS endtime FROM bid GROUP BY window(date_time, '10 seconds')
        ) AS m
        ON b.price = m.maxprice
        WHERE b.date_time BETWEEN m.endtime - INTERVAL '10' SECOND AND m.endtime
        """,
    ),
    Query(
        "q8",
        "monitor new users",
        ("person", "auction"),
        """
        SELECT p.id, p.name, p.starttime
        FROM (
            SELECT id, name, window.start AS starttime, window.end AS endtime
            FROM person GROUP BY id, name, window(date_time, '10 seconds')
        ) AS p
        JOIN (
            SELECT seller, window.start AS starttime, window.end AS endtime
            FROM auction GROUP BY seller, window(date_time, '10 seconds')
        ) AS a
        ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime
        """,
    ),
    Query(
        "q9",
        "winning bids",
        ("auction", "bid"),
        """
        SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
            auction, bidder, price, bid_date_time, bid_extra
        FROM (
            SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
                ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC, b.bidder, b.extra) AS place
            FROM auction AS a JOIN bid AS b ON a.id = b.auction
            WHERE b.date_time BETWEEN a.date_time AND a.expires
        ) AS q
        WHERE place <= 1
        """,
    ),
    Query(
        "q10",
        "log to file system",
        ("bid",),
        """
        SELECT auction, bidder, price, date_time, extra,
            DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt, DATE_FORMAT(date_time, 'HH:mm') AS hm
        FROM bid
        """,
    ),
    Query(
        "q11",
        "user sessions",
        ("bid",),
        """
        SELECT bidder, COUNT(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
        FROM bid GROUP BY bidder, session_window(date_time, '10 seconds')
        """,
    ),
    Query(
        "q12",
        "windows per bidder",
        ("bid",),
        """
        SELECT bidder, COUNT(*) AS bid_count, window.start AS starttime, window.end AS endtime
        FROM bid GROUP BY bidder, window(date_time, '10 seconds')
        """,
    ),
    Query(
        "q13",
        "bounded side input join",
        ("bid", "side_input"),
        """
        SELECT b.auction, b.bidder, b.price, b.date_time, s.value
        FROM bid AS b JOIN side_input AS s ON MOD(b.auction, 10000) = s.`key`
        """,
    ),
    Query(
        "q14",
        "calculation",
        ("bid",),
        """
        SELECT auction, bidder, 0.908 * price AS price,
            CASE WHEN HOUR(date_time) BETWEEN 8 AND 18 THEN 'dayTime'
                 WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime'
                 ELSE 'otherTime' END AS bid_time_type,
            date_time, extra, LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
        """,
    ),
    Query(
        "q15",
        "bidding statistics report",
        ("bid",),
        """
        SELECT DATE_FORMAT(date_time, 'yyyy-MM-dd') AS day,
            COUNT(*) AS total_bids,
            COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
            COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
            COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
            COUNT(DISTINCT bidder) AS total_bidders,
            COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
            COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
            COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
            COUNT(DISTINCT auction) AS total_auctions,
            COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
            COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
            COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
        FROM bid GROUP BY DATE_FORMAT(date_time, 'yyyy-MM-dd')
        """,
    ),
    Query(
        "q16",
        "channel statistics report",
        ("bid",),
        """
        SELECT channel, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS day, MAX(DATE_FORMAT(date_time, 'HH:mm')) AS minute,
            COUNT(*) AS total_bids,
            COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
            COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
            COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
            COUNT(DISTINCT bidder) AS total_bidders,
            COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
            COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
            COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
            COUNT(DISTINCT auction) AS total_auctions,
            COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
            COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
            COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
        FROM bid GROUP BY channel, DATE_FORMAT(date_time, 'yyyy-MM-dd')
        """,
    ),
    Query(
        "q17",
        "auction statistics report",
        ("bid",),
        """
        SELECT auction, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS day,
            COUNT(*) AS total_bids,
            COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
            COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
            COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
            MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
        FROM bid GROUP BY auction, DATE_FORMAT(date_time, 'yyyy-MM-dd')
        """,
    ),
    Query(
        "q18",
        "last bid of a bidder on an auction",
        ("bid",),
        """
        SELECT auction, bidder, price, channel, url, date_time, extra
        FROM (
            SELECT *, ROW_NUMBER() OVER (
                PARTITION BY bidder, auction ORDER BY date_time DESC, price DESC, channel, url, extra) AS place
            FROM bid
        ) AS q
        WHERE place <= 1
        """,
    ),
    Query(
        "q19",
        "ten highest bids of an auction",
        ("bid",),
        """
        SELECT auction, bidder, price, channel, url, date_time, extra, place
        FROM (
            SELECT *, ROW_NUMBER() OVER (
                PARTITION BY auction ORDER BY price DESC, date_time, bidder, channel, url, extra) AS place
            FROM bid
        ) AS q
        WHERE place <= 10
        """,
    ),
    Query(
        "q20",
        "bids with their auctions",
        ("bid", "auction"),
        """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
            a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time, a.expires, a.seller, a.category,
            a.extra AS auction_extra
        FROM bid AS b JOIN auction AS a ON b.auction = a.id
        WHERE a.category = 10
        """,
    ),
    Query(
        "q21",
        "add channel id",
        ("bid",),
        """
        SELECT auction, bidder, price, channel,
            CASE WHEN LOWER(channel) = 'apple' THEN '0'
                 WHEN LOWER(channel) = 'google' THEN '1'
                 WHEN LOWER(channel) = 'facebook' THEN '2'
                 WHEN LOWER(channel) = 'baidu' THEN '3'
                 ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid
        WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) <> '' OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
        """,
    ),
    Query(
        "q22",
        "directories of the address",
        ("bid",),
        """
        SELECT auction, bidder, price, channel, SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2,
            SPLIT_PART(url, '/', 6) AS dir3
        FROM bid
        """,
    ),
)


def program(queries: Iterable[Query], append_only: bool) -> str:
    """Return the program whose views are ``queries``, with the tables they read.

    :param append_only: True if the tables refuse deletions, which a stream of events never has
    """
    chosen = tuple(queries)
    tables = sorted({name for query in chosen for name in query.reads})
    properties = " WITH ('append_only' = 'true')" if append_only else ""
    statements = [f"CREATE TABLE {name} ({COLUMNS[name]}){properties};" for name in tables]
    statements += [f"CREATE VIEW {query.name} AS {query.text};" for query in chosen]
    return "\n".join(statements)
