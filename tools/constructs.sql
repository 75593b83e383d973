-- Examples of every construct: a heading per group, a line with the construct's name, and the view's query (or statements).

-- ## Tables

CREATE TABLE orders (
    id BIGINT PRIMARY KEY, customer BIGINT, product VARCHAR, amount DECIMAL(10,2), quantity INT, rating DOUBLE,
    placed TIMESTAMP, day DATE, paid BOOLEAN, tags VARCHAR ARRAY, properties MAP<VARCHAR, VARCHAR>
);
CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR, country VARCHAR, manager BIGINT, extra VARIANT);
CREATE TABLE prices (product VARCHAR, price DECIMAL(10,2), since TIMESTAMP);
CREATE TABLE readings (sensor INT, value INT, at TIMESTAMP LATENESS INTERVAL '1' HOUR) WITH ('append_only' = 'true');
CREATE FUNCTION net(gross DECIMAL(10,2)) RETURNS DECIMAL(10,2) AS CAST(gross / 1.2 AS DECIMAL(10,2));

-- ## Rows one by one

-- filter, projection, any scalar expression
SELECT id, amount * 2 AS twice FROM orders WHERE paid AND quantity > 1;

-- lateral column alias
SELECT amount * 2 AS twice, twice + 1 AS more FROM orders;

-- `LATERAL VIEW explode`
SELECT id, tag FROM orders LATERAL VIEW explode(tags) x AS tag;

-- `LATERAL VIEW` without a table's name
SELECT id, tag FROM orders LATERAL VIEW explode(tags) AS tag;

-- `LATERAL VIEW OUTER posexplode`
SELECT id, at, tag FROM orders LATERAL VIEW OUTER posexplode(tags) x AS at, tag;

-- generator in the SELECT list
SELECT id, explode(properties) FROM orders;

-- generator in the SELECT list, with names
SELECT id, posexplode(tags) AS (at, tag) FROM orders;

-- `LIKE ANY`
SELECT id FROM customers WHERE name LIKE ANY ('A%', 'B%');

-- `LATERAL` generator
SELECT id, tag FROM orders, LATERAL explode(tags) AS x(tag);

-- `UNNEST`
SELECT id, tag FROM orders, UNNEST(tags) AS x(tag);

-- `UNNEST ... WITH ORDINALITY`
SELECT id, tag, place FROM orders, UNNEST(tags) WITH ORDINALITY AS x(tag, place);

-- `inline`
SELECT o.id, x.at, x.what FROM orders o LATERAL VIEW inline(array(struct('placed', o.placed), struct('read', o.placed))) x
    AS what, at;

-- `UNPIVOT`
SELECT id, name, value FROM orders UNPIVOT (value FOR name IN (amount, quantity));

-- `UNION ALL`
SELECT id FROM orders UNION ALL SELECT id FROM customers;

-- `VALUES`
SELECT o.id, v.label FROM orders o JOIN (VALUES (1, 'one'), (2, 'two')) AS v(n, label) ON o.quantity = v.n;

-- `SELECT` without `FROM`
SELECT 1 AS one;

-- SQL function
SELECT id, net(amount) AS amount FROM orders;

-- VARIANT
SELECT id, CAST(extra['vip'] AS BOOLEAN) AS vip FROM customers;

-- ## Joins

-- `JOIN`
SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id;

-- `JOIN` without equality
SELECT o.id, p.price FROM orders o JOIN prices p ON o.placed >= p.since;

-- `CROSS JOIN`, comma
SELECT o.id, p.price FROM orders o, prices p WHERE o.product = p.product;

-- self join
SELECT c.name, m.name AS manager FROM customers c JOIN customers m ON c.manager = m.id;

-- `NATURAL JOIN`
SELECT id, product, price FROM orders NATURAL JOIN prices;

-- `JOIN USING`
SELECT id, product, price FROM orders JOIN prices USING (product);

-- chained `JOIN USING`
SELECT product, o.id, p.price, r.since FROM orders o JOIN prices p USING (product) LEFT JOIN prices r USING (product);

-- chained `FULL JOIN USING`
SELECT product, p.price, r.since FROM orders FULL JOIN prices p USING (product) FULL JOIN prices r USING (product);

-- `LEFT JOIN`
SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id;

-- `RIGHT JOIN`
SELECT o.id, c.name FROM orders o RIGHT JOIN customers c ON o.customer = c.id;

-- `FULL JOIN`
SELECT o.id, c.name FROM orders o FULL JOIN customers c ON o.customer = c.id;

-- join by values of two types
SELECT o.id, p.price FROM orders o LEFT JOIN prices p ON p.since = date_trunc('hour', o.placed);

-- `LEFT JOIN`, `RIGHT JOIN` without equality
SELECT o.id, p.price FROM orders o LEFT JOIN prices p ON o.placed >= p.since;

-- `FULL JOIN` without equality
SELECT o.id, p.price FROM orders o FULL JOIN prices p ON o.placed >= p.since;

-- `LEFT SEMI JOIN`
SELECT o.id FROM orders o LEFT SEMI JOIN customers c ON o.customer = c.id;

-- `LEFT ANTI JOIN`
SELECT o.id FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.id;

-- join of aggregates
SELECT c.name, s.total FROM customers c JOIN (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) s ON
    s.customer = c.id;

-- `LEFT ASOF JOIN`
SELECT o.id, p.price FROM orders o LEFT ASOF JOIN prices p MATCH_CONDITION (o.placed >= p.since) ON o.product =
    p.product;

-- ## Subqueries

-- `EXISTS`
SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.paid);

-- `NOT EXISTS`
SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id);

-- `IN`
SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE paid);

-- `NOT IN`
SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders);

-- `IN` of several columns
SELECT id FROM orders WHERE (product, amount) IN (SELECT product, price FROM prices);

-- `EXISTS` beside `OR`
SELECT name FROM customers c WHERE country = 'CH' OR EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id);

-- scalar subquery
SELECT id FROM orders WHERE amount > (SELECT AVG(amount) FROM orders);

-- correlated scalar subquery
SELECT id FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders i WHERE i.customer = o.customer);

-- scalar subquery in the SELECT list
SELECT name, (SELECT COUNT(*) FROM orders o WHERE o.customer = c.id) AS n FROM customers c;

-- a constant `IN` a subquery
SELECT name FROM customers WHERE 'CH' IN (SELECT product FROM orders);

-- correlation without equality
SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer < c.id);

-- lateral subquery
SELECT c.name, l.id FROM customers c JOIN LATERAL (SELECT id FROM orders o WHERE o.customer = c.id ORDER BY amount DESC
    LIMIT 2) AS l;

-- CTE used once
WITH p AS (SELECT * FROM orders WHERE paid) SELECT id FROM p;

-- CTE used twice
WITH s AS (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) SELECT a.customer, b.customer AS other FROM s a
    JOIN s b ON a.n = b.n;

-- ## Aggregates

-- `COUNT`, `SUM`, `AVG` of integers and decimals
SELECT customer, COUNT(*) AS n, SUM(amount) AS total, AVG(quantity) AS average FROM orders GROUP BY customer;

-- `COUNT_IF`, `BOOL_AND`, `BOOL_OR`
SELECT customer, COUNT_IF(paid) AS n, BOOL_AND(paid) AS a, BOOL_OR(paid) AS o FROM orders GROUP BY customer;

-- `STDDEV`, `VARIANCE` of integers and decimals
SELECT customer, STDDEV(quantity) AS s, VAR_POP(amount) AS v FROM orders GROUP BY customer;

-- `SUM`, `AVG` of floats
SELECT customer, SUM(rating) AS s FROM orders GROUP BY customer;

-- `MIN`, `MAX`
SELECT customer, MIN(amount) AS least, MAX(day) AS newest FROM orders GROUP BY customer;

-- `MIN`, `MAX` of append-only tables
SELECT sensor, MIN(value) AS least, MAX(value) AS most FROM readings GROUP BY sensor;

-- `COUNT`, `SUM` with `DISTINCT`
SELECT customer, COUNT(DISTINCT product) AS n, SUM(DISTINCT quantity) AS s FROM orders GROUP BY customer;

-- several `COUNT(DISTINCT ...)` of different expressions
SELECT customer, COUNT(DISTINCT product) AS n, COUNT(DISTINCT CASE WHEN paid THEN day END) AS days FROM orders
    GROUP BY customer;

-- `FILTER`
SELECT customer, SUM(amount) FILTER (WHERE paid) AS paid FROM orders GROUP BY customer;

-- `HAVING`
SELECT customer FROM orders GROUP BY customer HAVING COUNT(*) > 3;

-- `FIRST`, `LAST`, `ANY_VALUE`, lists
SELECT customer, FIRST(product) AS product, ANY_VALUE(day) IGNORE NULLS AS day, COLLECT_LIST(quantity) AS quantities
    FROM orders GROUP BY customer;

-- `SUM`, `AVG` of intervals
SELECT customer, SUM(placed - TIMESTAMP '2020-01-01 00:00:00') AS total FROM orders GROUP BY customer;

-- `HAVING` of a number
SELECT customer FROM orders GROUP BY customer HAVING SUM(quantity);

-- others: `percentile`, `max_by`, `listagg`, collections ...
SELECT customer, PERCENTILE(quantity, 0.5) AS p, MAX_BY(product, placed) AS last, SORT_ARRAY(COLLECT_LIST(product)) AS
    products FROM orders GROUP BY customer;

-- the latest row: a struct without names
SELECT customer, MAX(STRUCT(placed, id, amount)).amount AS amount FROM orders GROUP BY customer;

-- `PERCENTILE_CONT`, `PERCENTILE_DISC`
SELECT customer, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY rating) AS median FROM orders GROUP BY customer;

-- over everything
SELECT COUNT(*) AS n, SUM(amount) AS total FROM orders;

-- `GROUP BY` expressions, ordinals, `ALL`
SELECT date_trunc('month', placed) AS month, COUNT(*) AS n FROM orders GROUP BY 1;

-- `ROLLUP`
SELECT customer, product, SUM(amount) AS total FROM orders GROUP BY ROLLUP (customer, product);

-- `CUBE`
SELECT customer, product, COUNT(*) AS n FROM orders GROUP BY CUBE (customer, product);

-- `GROUPING SETS`, `GROUPING`
SELECT customer, product, GROUPING(product) AS g, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((customer),
    (product), ());

-- `PIVOT`
SELECT * FROM (SELECT customer, quantity, amount FROM orders) PIVOT (SUM(amount) FOR quantity IN (1 AS one, 2 AS two));

-- ## Sets

-- `DISTINCT`
SELECT DISTINCT country FROM customers;

-- `UNION`
SELECT id FROM orders UNION SELECT id FROM customers;

-- `INTERSECT`
SELECT id FROM orders INTERSECT SELECT id FROM customers;

-- `INTERSECT ALL`
SELECT customer FROM orders INTERSECT ALL SELECT id FROM customers;

-- `EXCEPT`
SELECT id FROM customers EXCEPT SELECT customer FROM orders;

-- `EXCEPT ALL`
SELECT customer FROM orders EXCEPT ALL SELECT id FROM customers;

-- ## Windows and order

-- aggregate `OVER (PARTITION BY)`
SELECT id, SUM(amount) OVER (PARTITION BY customer) AS total FROM orders;

-- ranking
SELECT id, RANK() OVER (PARTITION BY customer ORDER BY amount DESC) AS r FROM orders;

-- `LAG`, `LEAD`, frames
SELECT id, LAG(amount) OVER (PARTITION BY customer ORDER BY placed) AS before, AVG(rating) OVER (PARTITION BY customer
    ORDER BY placed ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a FROM orders;

-- different partitions
SELECT id, SUM(amount) OVER (PARTITION BY customer) AS c, COUNT(*) OVER (PARTITION BY product) AS p FROM orders;

-- window over everything
SELECT id, RANK() OVER (ORDER BY amount DESC) AS r FROM orders;

-- top k per key
SELECT * FROM (SELECT id, customer, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS n FROM orders)
    WHERE n <= 3;

-- `QUALIFY`
SELECT id, customer FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY placed) = 1;

-- top k per key of an append-only table
SELECT sensor, value FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sensor ORDER BY value DESC) AS n FROM readings)
    WHERE n <= 3;

-- window over groups
SELECT customer, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM orders GROUP BY customer;

-- `ORDER BY ... LIMIT`
SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 10;

-- `LIMIT ... OFFSET`
SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 10 OFFSET 5;

-- `ORDER BY` alone
SELECT id FROM orders ORDER BY amount;

-- ## Windows of time

-- `TUMBLE` table function
SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '1' HOUR)) GROUP BY
    window_start;

-- `HOP` table function
SELECT window_start, window_end, SUM(amount) AS total FROM TABLE(HOP(TABLE orders, DESCRIPTOR(placed), INTERVAL '15'
    MINUTE, INTERVAL '1' HOUR)) GROUP BY window_start, window_end;

-- `GROUP BY TUMBLE`
SELECT TUMBLE_START(placed, INTERVAL '1' HOUR) AS start, COUNT(*) AS n FROM orders GROUP BY TUMBLE(placed, INTERVAL '1'
    HOUR);

-- `window`
SELECT window(placed, '1 hour') AS w, COUNT(*) AS n FROM orders GROUP BY window(placed, '1 hour');

-- sliding `window`
SELECT window(placed, '1 hour', '15 minutes').start AS start, COUNT(*) AS n FROM orders GROUP BY window(placed, '1
    hour', '15 minutes');

-- `session_window`
SELECT customer, session_window(placed, '10 minutes').start AS start, COUNT(*) AS n FROM orders GROUP BY customer,
    session_window(placed, '10 minutes');

-- `NOW()` in a filter
SELECT id FROM orders WHERE placed >= NOW() - INTERVAL '1' DAY;

-- ## Recursion

-- `DECLARE RECURSIVE VIEW`
DECLARE RECURSIVE VIEW v (manager BIGINT, member BIGINT); CREATE VIEW v AS SELECT manager, id AS member FROM customers
    WHERE manager IS NOT NULL UNION ALL SELECT v.manager, c.id FROM v JOIN customers c ON c.manager = v.member;

-- `WITH RECURSIVE`
WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM customers WHERE manager IS NULL UNION ALL SELECT c.id, r.depth + 1
    FROM r JOIN customers c ON c.manager = r.id) SELECT id, depth FROM r;
