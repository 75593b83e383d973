-- TIME, and intervals within expressions.

create view time_parts as
select id, hour(tm) as h, minute(tm) as m, second(tm) as s, extract(hour from tm) as e from times;

create view time_order as
select id, tm, rank() over (order by tm) as r, max(tm) over (partition by zone) as m from times;

create view time_groups as
select tm, count(*) as n, min(id) as l from times group by tm;

create view time_extremes as
select zone, max(tm) as a, min(tm) as b from times group by zone;

create view time_texts as
select id, cast(tm as string) as a, to_time(cast(tm as string)) = tm as b, make_time(12, id % 60, 1.5) as c from times;

create view time_filter as
select id, tm from times where tm >= time '12:00:00' or tm is null;

create view time_joined as
select a.id, b.id as other from times a join times b on a.tm = b.tm and a.id < b.id;

create view time_truncated as
select id, time_trunc('HOUR', tm) as a, time_trunc('SECOND', tm) as b from times;

create view time_distance as
select id, time_diff('MINUTE', time '00:00:00', tm) as a from times;

create view time_and_interval as
select id, tm + interval '1' second as a from times where tm < time '23:00:00';

create view plus_days as
select id, nt + interval '1' day as a, nt - interval '36' hour as b, lt + interval '1' hour as c, dt + interval '2' day as d from times where nt > timestamp '0002-01-01 00:00:00' or nt is null;

create view plus_months as
select id, nt + interval '1' month as a, dt + interval '1' year as b, dt - interval '13' month as c, lt + interval '1-2' year to month as d from times where dt > date '0003-01-01' or dt is null;

create view plus_columns as
select id, nt + make_dt_interval(id, 1, 2, 3.5) as a, dt + make_ym_interval(0, id) as b, nt + id * interval '1' minute as c from times;

create view interval_parts as
select id, extract(day from (timestamp '2025-03-30 12:00:00' - nt)) as d, extract(hour from (timestamp '2025-03-30 12:00:00' - nt)) as h from times;

create view interval_comparisons as
select id, timestamp '2025-03-30 12:00:00' - nt > interval '1' day as a, lt - timestamp_ltz '2025-01-01 00:00:00' < interval '100' day as b, (dt - date '2024-01-01') = interval '59' day as c from times;

create view interval_texts as
select id, cast(timestamp '2025-03-30 12:00:00' - nt as string) as a, cast(dt - date '2024-01-01' as string) as b from times;

create view interval_sums as
select zone, cast(sum(timestamp '2025-03-30 12:00:00' - nt) as string) as a, cast(max(dt - date '2024-01-01') as string) as b, cast(avg(dt - date '2024-01-01') as string) as c from times where nt > timestamp '1900-01-01 00:00:00' group by zone;

create view interval_arithmetic as
select id, cast(interval '1' day * id as string) as a, cast(interval '3' hour / 2 as string) as b, cast(interval '1-1' year to month * 2 as string) as c, cast(-interval '5' minute as string) as d from times;
