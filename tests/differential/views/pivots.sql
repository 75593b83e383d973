-- PIVOT and UNPIVOT.

create view pivoted as
select * from (select shop, year, amount from sales) pivot (sum(amount) for year in (2023, 2024, 2025));

create view pivoted_named as
select * from (select shop, quarter, n from sales) pivot (sum(n) as total, count(*) as c for quarter in (1 as first, 2 as second, 3 as third));

create view pivoted_on_two as
select * from (select shop, year, quarter, amount from sales) pivot (max(amount) for (year, quarter) in ((2023, 1) as a, (2024, 2) as b, (2025, 3) as c));

create view pivoted_without_keys as
select * from (select year, n from sales) pivot (sum(n) for year in (2023 as y23, 2024 as y24));

create view pivoted_texts as
select * from (select year, shop, n from sales) pivot (count(n) for shop in ('north' as north, 'south' as south));

create view pivoted_average as
select * from (select shop, year, n from sales) pivot (avg(n) as a, min(n) as l for year in (2023 as y23, 2025 as y25));

create view pivoted_and_filtered as
select shop, y23 from (select shop, year, amount from sales) pivot (sum(amount) for year in (2023 as y23, 2024 as y24)) where y24 is not null;

create view pivoted_join as
select x.shop, x.y23, s.n from (select * from (select shop, year, n from sales) pivot (sum(n) for year in (2023 as y23))) x join sales s on s.shop = x.shop where s.quarter = 1;

create view pivoted_first as
select * from (select shop, year, quarter, n from sales) pivot (max(n) for quarter in (1 as q1, 4 as q4)) where year > 2023;

create view unpivoted as
select * from (select id, k, v from p) unpivot (value for name in (k, v));

create view unpivoted_with_nulls as
select * from (select id, k, v from p) unpivot include nulls (value for name in (k as key, v as number));

create view unpivoted_sets as
select * from (select id, k, v, id + 1 as k2, id + 2 as v2 from p) unpivot ((a, b) for which in ((k, v) as one, (k2, v2) as two));

create view unpivoted_and_grouped as
select name, count(*) as n, sum(value) as x from (select id, k, v from p) unpivot (value for name in (k, v)) group by name;

create view pivot_by_hand as
select shop, sum(amount) filter (where year = 2023) as a, sum(case when year = 2024 then amount end) as b from sales group by shop;

create view pivoted_and_unpivoted as
select * from (select * from (select shop, year, n from sales) pivot (sum(n) for year in (2023 as y23, 2024 as y24))) unpivot (x for y in (y23, y24));
