-- What is refused. tools/refusals.py asks the compiler about each example and writes what it answers to docs/refusals.md.
-- An example is a query of a view, or statements. What follows "-- instead" is accepted, as it stands.
CREATE TABLE orders (
    id BIGINT PRIMARY KEY, customer BIGINT, product VARCHAR, amount DECIMAL(10,2), rating DOUBLE, placed TIMESTAMP, tags VARCHAR ARRAY
);
CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR, manager BIGINT, extra VARIANT);
CREATE TABLE readings (sensor INT, value INT, at TIMESTAMP LATENESS INTERVAL '1' HOUR);

-- ## Values that change by themselves
-- random values: `rand`, `randn`, `random`, `randstr`, `uniform`
SELECT id, rand() AS r FROM orders;
-- instead
SELECT id, hash(id) AS r FROM orders;
-- `uuid`
SELECT uuid() AS u, id FROM orders;
-- instead
SELECT md5(CAST(id AS STRING)) AS u, id FROM orders;
-- `shuffle`
SELECT id, shuffle(tags) AS tags FROM orders;
-- instead
SELECT id, array_sort(tags) AS tags FROM orders;
-- `monotonically_increasing_id`, `spark_partition_id`
SELECT monotonically_increasing_id() AS n, id FROM orders;
-- instead
SELECT row_number() OVER (ORDER BY id) AS n, id FROM orders;
-- `TABLESAMPLE`
SELECT id FROM orders TABLESAMPLE (10 PERCENT);
-- instead
SELECT id FROM orders WHERE pmod(hash(id), 10) = 0;
-- who asks: `current_user`, `session_user`, `user`
SELECT id, current_user() AS u FROM orders;
-- where it runs: `current_catalog`, `current_database`, `current_schema`
SELECT id, current_database() AS d FROM orders;
-- where rows are stored: `input_file_name`, `input_file_block_start`, `input_file_block_length`
SELECT id, input_file_name() AS f FROM orders;

-- ## Doors out of the engine
-- Java by name: `java_method`, `reflect`, `try_reflect`
SELECT reflect('java.lang.System', 'getenv', product) AS e FROM orders;
-- formats whose options name files: `from_avro`, `to_avro`, `schema_of_avro`, `from_protobuf`, `to_protobuf`, `from_xml`, `schema_of_xml`
SELECT from_xml(product, 'a INT') AS e FROM orders;
-- what functions of other pipelines wrote: `python_worker_logs`
SELECT message FROM python_worker_logs();
-- programs of the operating system: `TRANSFORM`
SELECT TRANSFORM(id) USING 'cat' AS (id BIGINT) FROM orders;
-- any of these in DEFAULT, LATENESS and bodies of functions
CREATE TABLE t (a VARCHAR DEFAULT java_method('java.lang.System', 'getenv', 'HOME'));
-- queries in DEFAULT and LATENESS
CREATE TABLE t (a BIGINT DEFAULT (SELECT max(id) FROM orders));
-- names made at run time: `IDENTIFIER`
SELECT id FROM IDENTIFIER('orders');
-- instead
SELECT id FROM orders;
-- files as relations
SELECT * FROM parquet.`/data/orders`;

-- ## Recursion that could take rows away
-- EXCEPT of what is being computed
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT id FROM customers EXCEPT SELECT id FROM v;
-- instead
DECLARE RECURSIVE VIEW w (id BIGINT); CREATE VIEW w AS SELECT id FROM customers WHERE manager IS NULL UNION SELECT c.id FROM customers c JOIN w ON c.manager = w.id; CREATE VIEW v AS SELECT id FROM customers EXCEPT SELECT id FROM w;
-- `NOT IN`
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT id FROM customers WHERE manager NOT IN (SELECT id FROM v);
-- `NOT EXISTS`
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.id = c.manager);
-- anti join
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT c.id FROM customers c LEFT ANTI JOIN v ON v.id = c.manager;
-- optional side of an outer join
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT c.id FROM customers c LEFT JOIN v ON v.id = c.manager;
-- a subquery that gives a value
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT id FROM customers WHERE id > (SELECT MAX(id) FROM v);
-- aggregates
DECLARE RECURSIVE VIEW v (id BIGINT, n BIGINT); CREATE VIEW v AS SELECT id, COUNT(*) AS n FROM v GROUP BY id;
-- instead
DECLARE RECURSIVE VIEW w (id BIGINT); CREATE VIEW w AS SELECT id FROM customers WHERE manager IS NULL UNION SELECT c.id FROM customers c JOIN w ON c.manager = w.id; CREATE VIEW v AS SELECT COUNT(*) AS n FROM w;
-- window functions
DECLARE RECURSIVE VIEW v (id BIGINT, n INT); CREATE VIEW v AS SELECT id, row_number() OVER (ORDER BY id) AS n FROM v;
-- `LIMIT`
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS (SELECT id FROM customers) UNION (SELECT id + 1 FROM v LIMIT 3);
-- a circle without a declaration
CREATE VIEW v AS SELECT id FROM customers UNION SELECT id + 1 FROM v WHERE id < 5;
-- instead
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT id FROM customers UNION SELECT id + 1 FROM v WHERE id < 5;
-- `CREATE RECURSIVE VIEW`
CREATE RECURSIVE VIEW v (id) AS SELECT id FROM customers;
-- columns that are no columns of the declaration
DECLARE RECURSIVE VIEW v (id INT); CREATE VIEW v AS SELECT id FROM customers UNION SELECT id + 1 FROM v WHERE id < 5;
-- instead
DECLARE RECURSIVE VIEW v (id BIGINT); CREATE VIEW v AS SELECT id FROM customers UNION SELECT id + 1 FROM v WHERE id < 5;
-- `UNION` in `WITH RECURSIVE`
WITH RECURSIVE r(id) AS (SELECT id FROM customers UNION SELECT id + 1 FROM r WHERE id < 5) SELECT id FROM r;
-- instead
WITH RECURSIVE r(id) AS (SELECT id FROM customers UNION ALL SELECT id + 1 FROM r WHERE id < 5) SELECT id FROM r;

-- ## Subqueries
-- a correlation with a query further out than the next one
SELECT c.id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND EXISTS (SELECT 1 FROM readings r WHERE r.sensor = o.id AND r.value = c.manager));
-- instead
SELECT c.id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o JOIN readings r ON r.sensor = o.id WHERE o.customer = c.id AND r.value = c.manager);
-- two columns where one value is needed
SELECT id, (SELECT MAX(id), MIN(id) FROM customers) AS c FROM orders;
-- instead
SELECT id, (SELECT struct(MAX(id), MIN(id)) FROM customers) AS c FROM orders;

-- ## Text in any order
-- `listagg`, `string_agg` without an order
SELECT customer, listagg(product, ',') AS products FROM orders GROUP BY customer;
-- instead
SELECT customer, listagg(product, ',') WITHIN GROUP (ORDER BY product) AS products FROM orders GROUP BY customer;

-- ## Columns of views
-- no type
CREATE VIEW v AS SELECT id, NULL AS nothing FROM orders;
-- instead
SELECT id, CAST(NULL AS INT) AS nothing FROM orders;
-- a collation
CREATE VIEW v AS SELECT product COLLATE UTF8_LCASE AS product FROM orders;
-- instead
SELECT CAST(lower(product) AS STRING) AS product FROM orders;
-- an interval that mixes months with days or times: `make_interval`
CREATE VIEW v AS SELECT id, make_interval(0, 1, 0, 2) AS i FROM orders;
-- instead
SELECT id, make_ym_interval(0, 1) AS months, make_dt_interval(2) AS days FROM orders;
-- a name that belongs to the engine
CREATE VIEW v AS SELECT id AS __id FROM orders;
-- another number of names than columns
CREATE VIEW v (a, b) AS SELECT id FROM orders;

-- ## Types
-- grouping by a VARIANT
SELECT extra, COUNT(*) AS n FROM customers GROUP BY extra;
-- instead
SELECT to_json(extra) AS extra, COUNT(*) AS n FROM customers GROUP BY to_json(extra);

-- `DISTINCT`, `UNION`, `INTERSECT` and `EXCEPT` of MAPs
SELECT DISTINCT MAP(product, customer) AS m FROM orders;
-- instead
SELECT m FROM (SELECT MAP(product, customer) AS m FROM orders) GROUP BY m;
-- MAPs in what compares them but for `=`, `<>`, `<`, `<=`, `>`, `>=`, `IN` a list, `IS DISTINCT FROM`, `ORDER BY`, `MAX`, `MIN`, `MAX_BY` and `MIN_BY`
SELECT id FROM orders WHERE MAP(product, customer) IN (SELECT MAP(name, id) FROM customers);
-- instead
SELECT o.id FROM orders o LEFT SEMI JOIN customers c ON MAP(o.product, o.customer) = MAP(c.name, c.id);
-- a cast of a TIME to a TIMESTAMP or DATE
SELECT id, CAST(TIME '10:00:00' AS TIMESTAMP) AS at FROM orders;
-- instead
SELECT id, MAKE_TIMESTAMP_NTZ(CAST(placed AS DATE), TIME '10:00:00') AS at FROM orders;
-- a place that no field of a ROW has
SELECT STRUCT(id, product)[0] AS id FROM orders;
-- instead
SELECT STRUCT(id, product)[1] AS id FROM orders;

-- an `INTERVAL` without units
CREATE TABLE t (a INTERVAL);
-- instead
CREATE TABLE t (a INTERVAL DAY TO SECOND);
-- ## Functions and forms of other systems
-- `DIV_NULL` within a lambda function
SELECT TRANSFORM(tags, x -> DIV_NULL(LENGTH(x), 2)) AS shares FROM orders;
-- instead
SELECT TRANSFORM(tags, x -> LENGTH(x) DIV NULLIF(2, 0)) AS shares FROM orders;
-- `JSON_EACH_` of other types: `JSON_EACH_DECIMAL`
SELECT JSON_EACH_DECIMAL(extra) AS m FROM customers;
-- instead
SELECT JSON_EACH_DOUBLE(extra) AS m FROM customers;
-- comparisons with all or any values of a query, but for `= ANY`, `= SOME` and `<> ALL`
SELECT id FROM orders WHERE amount >= ALL (SELECT amount FROM orders);
-- instead
SELECT id FROM orders WHERE amount >= (SELECT MAX(amount) FROM orders);
-- `JSON_KEYS`
SELECT JSON_KEYS(extra) AS keys FROM customers;
-- instead
SELECT MAP_KEYS(CAST(extra AS MAP<STRING, VARIANT>)) AS keys FROM customers;
-- `VARIANT_DEEP_FILTER`
SELECT VARIANT_DEEP_FILTER(extra, (k, x) -> k = 'a') AS part FROM customers;
-- instead
SELECT VARIANT_FILTER(extra, (k, x) -> k = 'a') AS part FROM customers;
-- `VARIANT_DEEP_MAP`
SELECT VARIANT_DEEP_MAP(extra, (k, x) -> 1) AS part FROM customers;
-- instead
SELECT VARIANT_MAP(extra, (k, x) -> 1) AS part FROM customers;
-- `VARIANT_MERGE`
SELECT VARIANT_MERGE(extra, extra) AS both FROM customers;
-- `XXHASH`
SELECT XXHASH(CAST(product AS BINARY), 1) AS h FROM orders;
-- instead
SELECT XXHASH64(product) AS h FROM orders;
-- `BLACKBOX`
SELECT BLACKBOX(id) AS id FROM orders;
-- distances of `RANGE` in a window without `ORDER BY`
SELECT id, SUM(amount) OVER (RANGE 1 PRECEDING) AS s FROM orders;
-- instead
SELECT id, SUM(amount) OVER (ORDER BY id RANGE 1 PRECEDING) AS s FROM orders;
-- `WITHIN DISTINCT`
SELECT SUM(amount) WITHIN DISTINCT (customer) AS s FROM orders;
-- instead
SELECT SUM(amount) AS s FROM (SELECT DISTINCT customer, amount FROM orders);
-- specifiers of a format that Spark cannot write
SELECT FORMAT_TIMESTAMP('%Y week %U', placed) AS week FROM orders;
-- instead
SELECT FORMAT_TIMESTAMP('%G week %V', placed) AS week FROM orders;
-- strings in double quotes
SELECT id FROM orders WHERE product = "abc";
-- instead
SELECT id FROM orders WHERE product = 'abc';

-- ## Time
-- final rows of a column without a waterline
CREATE VIEW v WITH ('emit_final' = 'sensor') AS SELECT sensor, COUNT(*) AS n FROM readings GROUP BY sensor;
-- instead
CREATE VIEW v WITH ('emit_final' = 'at') AS SELECT sensor, at FROM readings;
-- a bound that is not constant
CREATE TABLE t (a INT, at TIMESTAMP LATENESS a);

-- ## Declarations
-- `WATERMARK`
CREATE TABLE t (at TIMESTAMP WATERMARK INTERVAL '1' HOUR);
-- instead
CREATE TABLE t (at TIMESTAMP LATENESS INTERVAL '1' HOUR);
-- `UNIQUE`
CREATE TABLE t (a INT, UNIQUE (a));
-- instead
CREATE TABLE t (a INT); CREATE VIEW twice AS SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING COUNT(*) > 1;
-- `CHECK`
CREATE TABLE t (a INT, CHECK (a > 0));
-- instead
CREATE TABLE t (a INT); CREATE VIEW broken AS SELECT a FROM t WHERE a <= 0;
-- streaming tables: `CREATE STREAMING TABLE`
CREATE STREAMING TABLE t (a INT);
-- instead
CREATE TABLE t (a INT) WITH ('append_only' = 'true');
-- `CREATE TABLE ... AS`
CREATE TABLE t AS SELECT * FROM orders;
-- instead
CREATE MATERIALIZED VIEW t AS SELECT * FROM orders;
-- generated columns
CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1));
-- instead
CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a, a + 1 AS b FROM t;
-- an unknown property
CREATE TABLE t (a INT) WITH ('materialised' = 'true');
-- a name declared twice
CREATE TABLE t (a INT); CREATE VIEW t AS SELECT 1 AS one;
-- functions in Rust: `CREATE AGGREGATE`, `CREATE LINEAR AGGREGATE`
CREATE AGGREGATE f(x INT) RETURNS INT;
-- `CREATE UNIQUE INDEX`
CREATE UNIQUE INDEX i ON orders(customer);
-- instead
CREATE INDEX i ON orders(customer);

-- ## Statements that are no declarations
-- settings: `SET`, `RESET`
SET spark.sql.ansi.enabled = false;
-- new rows: `INSERT`
INSERT INTO orders VALUES (1);
-- new rows: `LOAD`, `COPY`
COPY INTO orders FROM 'folder';
-- changed rows: `UPDATE`, `MERGE`
UPDATE orders SET amount = 0;
-- rows that go: `DELETE`, `TRUNCATE`
TRUNCATE TABLE orders;
-- `DROP`
DROP TABLE orders;
-- `ALTER`
ALTER TABLE orders ADD COLUMN a INT;
-- `COMMENT ON`
COMMENT ON TABLE orders IS 'text';
-- name spaces: `CREATE DATABASE`, `CREATE SCHEMA`, `USE`
CREATE DATABASE d;
-- a query of its own: `SELECT`, `WITH`, `VALUES`
VALUES (1, 2);
-- instead
CREATE VIEW v AS VALUES (1, 2);
-- what a program has: `SHOW`, `DESCRIBE`, `DESC`, `EXPLAIN`, `ANALYZE`
DESCRIBE orders;
-- `CACHE`
CACHE TABLE orders;
-- `REFRESH`
REFRESH TABLE orders;
-- rights: `GRANT`, `REVOKE`
GRANT SELECT ON orders TO someone;
-- transactions: `BEGIN`, `COMMIT`, `ROLLBACK`
COMMIT;
