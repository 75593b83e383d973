"""Nexmark in Flink SQL, as close to the benchmark's own text as the tables here allow.

Nothing here may import anything but the standard library: the module is also read by Flink's own environment.
"""

from __future__ import annotations

WATERMARK = "WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND"
"""How far events may be out of order, as the benchmark says it."""

TABLES = {
    "person": (
        "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING, date_time TIMESTAMP(3), "
        f"extra STRING, {WATERMARK}"
    ),
    "auction": (
        "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP(3), "
        f"expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING, {WATERMARK}"
    ),
    "bid": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3), extra STRING, "
        + WATERMARK
    ),
    "side_input": "`key` BIGINT, `value` STRING",
}

NOT_EXPRESSIBLE = {"q6": "Flink SQL has no OVER aggregate over a stream that retracts rows"}
"""Queries that Flink refuses, and why."""

_STATISTICS = """
    COUNT(*) AS total_bids,
    COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
    COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids
"""
_DISTINCT_STATISTICS = (
    _STATISTICS
    + """,
    COUNT(DISTINCT bidder) AS total_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
    COUNT(DISTINCT auction) AS total_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
"""
)

QUERIES = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id
        FROM auction AS a INNER JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')
    """,
    "q4": """
        SELECT q.category, AVG(q.final) AS average
        FROM (
            SELECT MAX(b.price) AS final, a.category
            FROM auction AS a, bid AS b
            WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
            GROUP BY a.id, a.category
        ) AS q
        GROUP BY q.category
    """,
    "q5": """
        SELECT bids.auction, bids.num
        FROM (
            SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
            FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
            GROUP BY auction, window_start, window_end
        ) AS bids
        JOIN (
            SELECT MAX(counts.num) AS maxn, counts.starttime, counts.endtime
            FROM (
                SELECT COUNT(*) AS num, window_start AS starttime, window_end AS endtime
                FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
                GROUP BY auction, window_start, window_end
            ) AS counts
            GROUP BY counts.starttime, counts.endtime
        ) AS most
        ON bids.starttime = most.starttime AND bids.endtime = most.endtime AND bids.num >= most.maxn
    """,
    "q7": """
        SELECT b.auction, b.bidder, b.price, b.date_time, b.extra
        FROM bid AS b
        JOIN (
            SELECT MAX(price) AS maxprice, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
            GROUP BY window_start, window_end
        ) AS m
        ON b.price = m.maxprice
        WHERE b.date_time BETWEEN m.endtime - INTERVAL '10' SECOND AND m.endtime
    """,
    "q8": """
        SELECT p.id, p.name, p.starttime
        FROM (
            SELECT id, name, window_start AS starttime, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
            GROUP BY id, name, window_start, window_end
        ) AS p
        JOIN (
            SELECT seller, window_start AS starttime, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
            GROUP BY seller, window_start, window_end
        ) AS a
        ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime
    """,
    "q9": """
        SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
            auction, bidder, price, bid_date_time, bid_extra
        FROM (
            SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
                ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC) AS place
            FROM auction AS a, bid AS b
            WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
        )
        WHERE place <= 1
    """,
    "q10": """
        SELECT auction, bidder, price, date_time, extra,
            DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt, DATE_FORMAT(date_time, 'HH:mm') AS hm
        FROM bid
    """,
    "q11": """
        SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
    """,
    "q12": """
        SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
    """,
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.date_time, s.`value`
        FROM bid AS b JOIN side_input AS s ON MOD(b.auction, 10000) = s.`key`
    """,
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price,
            CASE WHEN HOUR(date_time) >= 8 AND HOUR(date_time) <= 18 THEN 'dayTime'
                 WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime'
                 ELSE 'otherTime' END AS bid_time_type,
            date_time, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    "q15": f"""
        SELECT DATE_FORMAT(date_time, 'yyyy-MM-dd') AS `day`, {_DISTINCT_STATISTICS}
        FROM bid GROUP BY DATE_FORMAT(date_time, 'yyyy-MM-dd')
    """,
    "q16": f"""
        SELECT channel, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS `day`, MAX(DATE_FORMAT(date_time, 'HH:mm')) AS `minute`,
            {_DISTINCT_STATISTICS}
        FROM bid GROUP BY channel, DATE_FORMAT(date_time, 'yyyy-MM-dd')
    """,
    "q17": f"""
        SELECT auction, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS `day`, {_STATISTICS},
            MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
        FROM bid GROUP BY auction, DATE_FORMAT(date_time, 'yyyy-MM-dd')
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, date_time, extra
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid)
        WHERE place <= 1
    """,
    "q19": """
        SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid)
        WHERE place <= 10
    """,
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
            a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time, a.expires, a.seller, a.category,
            a.extra AS auction_extra
        FROM bid AS b INNER JOIN auction AS a ON b.auction = a.id
        WHERE a.category = 10
    """,
    "q21": """
        SELECT auction, bidder, price, channel,
            CASE WHEN LOWER(channel) = 'apple' THEN '0'
                 WHEN LOWER(channel) = 'google' THEN '1'
                 WHEN LOWER(channel) = 'facebook' THEN '2'
                 WHEN LOWER(channel) = 'baidu' THEN '3'
                 ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid
        WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
            OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
    """,
    "q22": """
        SELECT auction, bidder, price, channel,
            SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid
    """,
}
"""The queries that Flink runs."""
