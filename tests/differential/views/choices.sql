-- The value of the row with the greatest or least key: NULL keys are passed over; of ties the greatest or the least value.

create view argument_extremes as
select g, arg_max(k, i) as a, arg_min(k, i) as b, max_by(s, i) as c, min_by(s, i) as d from t group by g;
-- spark: select g, max(struct(i, k)) filter (where i is not null).k as a, min(struct(i, k)) filter (where i is not null).k as b,
-- max(struct(i, s)) filter (where i is not null).s as c, min(struct(i, s)) filter (where i is not null).s as d from t group by g

create view argument_filters as
select g, arg_max(k, i) filter (where o) as a, arg_min(s, b) filter (where k > 0) as b from t group by g;
-- spark: select g, max(struct(i, k)) filter (where o and i is not null).k as a,
-- min(struct(b, s)) filter (where k > 0 and b is not null).s as b from t group by g

create view argument_beside_distinct as
select g, arg_max(k, i) as a, min_by(k, i) as b, count(distinct s) as n from t group by g;
-- spark: select g, max(struct(i, k)) filter (where i is not null).k as a, min(struct(i, k)) filter (where i is not null).k as b,
-- count(distinct s) as n from t group by g

create view argument_over as
select k, i, arg_max(s, i) over (partition by g) as a, min_by(k, i) over (partition by g) as b from t;
-- spark: select k, i, max(struct(i, s)) filter (where i is not null) over (partition by g).s as a,
-- min(struct(i, k)) filter (where i is not null) over (partition by g).k as b from t

create view average_of_decimals as
select g, avg(d) as a, avg(distinct d) as b, avg(d) filter (where o) as c, avg(i) as e from t group by g;
