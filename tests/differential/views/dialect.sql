-- What other dialects write: the statements, types and functions that are translated, each over changing tables.

create view dialect_texts as
select k, s || '!' as a, substring(s from 2 for 2) as b, position('a' in s) as c, overlay(s placing 'X' from 1 for 1) as d, trim(both 'a' from s) as e,
    chr(65 + k) as f, to_hex(cast(s as binary)) as g, bin2utf8(cast(s as binary)) as h, strpos(s, 'b') as i, regexp_replace(s, 'a+') as j, cast(s as varchar(2)) as l, cast(s as char(3)) as m from t;
-- spark: select k, concat(s, '!') as a, substring(s, 2, 2) as b, locate('a', s) as c, overlay(s, 'X', 1, 1) as d, trim(both 'a' from s) as e,
-- chr(65 + k) as f, lower(hex(cast(s as binary))) as g, decode(cast(s as binary), 'utf-8') as h, instr(s, 'b') as i, regexp_replace(s, 'a+', '') as j, left(s, 2) as l, rpad(s, 3, ' ') as m from t

create view dialect_numbers as
select i, i div 2 as a, i % 3 as b, truncate(d) as c, truncate(d, 1) as e, is_nan(f) as g, is_inf(f) as h, greatest_ignore_nulls(i, k) as j, least_ignore_nulls(i, k, 1) as l,
    safe_cast(s as int) as m, i::bigint as n, cast(abs(k) as int unsigned) as o, cast(d as decimal) as p, 1e0 + i as q, bround(d, 1) as r from t;
-- spark: select i, i div 2 as a, i % 3 as b, case when d < 0 then ceil(d) else floor(d) end as c, case when d < 0 then ceil(d, 1) else floor(d, 1) end as e, isnan(f) as g,
-- abs(f) = double('Infinity') as h, greatest(i, k) as j, least(i, k, 1) as l, try_cast(s as int) as m, cast(i as bigint) as n, cast(abs(k) as bigint) as o,
-- cast(d as decimal(38,0)) as p, 1e0 + i as q, bround(d, 1) as r from t

create view dialect_dates as
select ts, extract(century from ts) as a, extract(decade from dt) as b, extract(isodow from dt) as c, extract(dow from dt) as d, date_part('epoch', ts) as e, extract(millisecond from ts) as f,
    floor(ts to hour) as g, ceil(ts to day) as h, timestamp_trunc(ts, minute) as i, date_trunc(dt, month) as j, format_date('%Y/%j', dt) as k, parse_date('%Y-%m-%d', cast(dt as varchar)) as l,
    date_add(dt, interval 1 month) as m, timestampadd(day, 2, ts) as n, timestampdiff(month, timestamp '2024-01-31 00:00:00', ts) as o, datediff(day, dt, ts) as p from t;
-- spark: select ts, cast(ceil(year(ts) / 100) as bigint) as a, cast(floor(year(dt) / 10) as bigint) as b, extract(dayofweek_iso from dt) as c, dayofweek(dt) as d,
-- unix_seconds(cast(ts as timestamp_ltz)) as e, cast(floor(extract(second from ts) * 1000) as bigint) as f, cast(date_trunc('hour', ts) as timestamp_ntz) as g,
-- cast(case when date_trunc('day', ts) = ts then ts else date_trunc('day', ts) + interval 1 day end as timestamp_ntz) as h, cast(date_trunc('minute', ts) as timestamp_ntz) as i,
-- trunc(dt, 'month') as j, date_format(dt, 'yyyy/DDD') as k, dt as l, dt + interval 1 month as m, ts + interval 2 days as n,
-- timestampdiff(month, timestamp_ntz '2024-01-31 00:00:00', ts) as o, datediff(day, dt, ts) as p from t

create view dialect_times as
select id, time_trunc(tm, minute) as a, extract(hour from tm) as b, format_time('%H-%M', tm) as c, (nt - timestamp '2025-01-01 00:00:00') hours to minutes as d, (dt - date '2024-01-01') days as e,
    (nt, nt) overlaps (timestamp '2025-01-01 00:00:00', timestamp '2025-12-31 00:00:00') as f, nt between symmetric timestamp '2025-12-31 00:00:00' and timestamp '2025-01-01 00:00:00' as g from times;
-- spark: select id, time_trunc('minute', tm) as a, extract(hour from tm) as b, date_format(timestamp_ntz '1970-01-01 00:00:00' + (tm - time '00:00:00'), 'HH-mm') as c,
-- cast(nt - timestamp_ntz '2025-01-01 00:00:00' as interval hour to minute) as d, cast(dt - date '2024-01-01' as interval day) as e,
-- nt between timestamp_ntz '2025-01-01 00:00:00' and timestamp_ntz '2025-12-31 00:00:00' as f, nt between timestamp_ntz '2025-01-01 00:00:00' and timestamp_ntz '2025-12-31 00:00:00' as g from times

create view dialect_nested as
select id, array[id, 1] as a, map['k', id]['k'] as b, map {'x': id} as c, row(id, 'r') as d, a[safe_offset(1)] as e, array_length(a) as f, array_concat(a, array[0]) as g,
    array_to_string(l, '-', '?') as h, array_exists(a, x -> x > 2) as i, array_reverse(a) as j, transform(a, x -> x + 1) as m, array[null] = array[null] as n, cast(a as varchar array) as o from nest;
-- spark: select id, array(id, 1) as a, id as b, map('x', id) as c, struct(id, 'r') as d, get(a, 1) as e, size(a) as f, concat(a, array(0)) as g,
-- array_join(l, '-', '?') as h, exists(a, x -> x > 2) as i, reverse(a) as j, transform(a, x -> x + 1) as m, true as n, cast(a as array<string>) as o from nest where a is not null
-- union all select id, array(id, 1), id, map('x', id), struct(id, 'r'), null, null, null, array_join(l, '-', '?'), null, null, null, true, null from nest where a is null

create view dialect_element as
select id, element(a) as e from nest where array_length(a) < 2;
-- spark: select id, get(a, 0) as e from nest where size(a) < 2

create view dialect_aggregates as
select k, countif(i > 1) as a, logical_and(o) as b, logical_or(o) as c, every(o) as d, some(o) as e, arg_max(i, b) as f, arg_min(distinct i, b) as g, count(i, b) as h,
    sum(i) filter (where o) as j, bit_xor(b) as l, array_agg(i) as m from t group by k;
-- spark: select k, count_if(i > 1) as a, bool_and(o) as b, bool_or(o) as c, bool_and(o) as d, bool_or(o) as e, max(case when b = mb then i end) as f,
-- case when max(b) is not null and count_if(b = sb and i is null) > 0 then null else min(case when b = sb then i end) end as g, count(i, b) as h,
-- sum(i) filter (where o) as j, bit_xor(b) as l, sort_array(array_agg(i)) as m from (select *, max(b) over (partition by k) as mb, min(b) over (partition by k) as sb from t) group by k

create view dialect_unnested as
select n.id, u.x, u.place, e.x as y from nest n, unnest(n.a) with ordinality as u(x, place), unnest(n.a) as e(x) where e.x > 1;
-- spark: select n.id, u.x, u.p + 1 as place, e.x as y from nest n lateral view posexplode(a) u as p, x lateral view explode(a) e as x where e.x > 1

create view dialect_entries as
select id, m.k, m.v, m.place from nest, unnest(nest.m) with ordinality as m(k, v, place);
-- spark: select id, m.e.key as k, m.e.value as v, m.p + 1 as place from nest lateral view posexplode(sort_array(map_entries(nest.m))) m as p, e

create view dialect_stars as
select * exclude (s, ts) from (select k, s, ts, i from t) union all select * replace (i + 1 as i) from (select k, i from t);
-- spark: select k, i from t union all select k, i + 1 as i from t

create view dialect_rows as
select row(u.*) as r, k as kk, kk + 1 as next from u;
-- spark: select struct(u.*) as r, k as kk, k + 1 as next from u

create view dialect_first as
select distinct on (k) k, n, g from u order by k, n desc, g, w;
-- spark: select k, n, g from (select *, row_number() over (partition by k order by n desc, g, w) as r from u) where r = 1

create view dialect_minus as
select k, g from t minus select k, g from u;
-- spark: select distinct k, g from t except select k, g from u

create view dialect_grouped as
select k, g, grouping_id(k, g) as l, count(*) as n from u group by cube(k, g) having count(*) > 0;

create view dialect_all as
select k, g, count(*) as n from u group by all;

create view dialect_applied as
select u.k, l.v from u cross apply (select p.v from p where p.k = u.k) as l union all select u.n, l.v from u outer apply (select p.v from p where p.k = u.k) as l;
-- spark: select u.k, p.v from u join p on p.k = u.k union all select u.n, p.v from u left join p on p.k = u.k

create view dialect_tumbled as
select window_start, count(*) as n from table(tumble(table t, descriptor(ts), interval '1' hour)) group by window_start;
-- spark: select cast(window(ts, '1 hour').start as timestamp_ntz) as window_start, count(*) as n from t where ts is not null group by 1

create view dialect_hops as
select k, window_start, window_end from table(hop(data => table t, timecol => descriptor(ts), slide => interval '30' minute, size => interval '1' hour));
-- spark: select k, w.start as window_start, w.end as window_end from (select k, window(ts, '1 hour', '30 minutes') as w from t where ts is not null)

create view dialect_group_windows as
select tumble_start(ts, interval '1' day) as a, max(i) as m from t group by tumble(ts, interval '1' day);
-- spark: select window(ts, '1 day').start as a, max(i) as m from t where ts is not null group by window(ts, '1 day')

create view dialect_asof as
select p.id, a.n from p left asof join (select k, n from u where n is not null) a match_condition (p.v >= a.n) on p.k = a.k;
-- spark: select p.id, (select max(n) from u where u.k = p.k and u.n <= p.v) as n from p

create view dialect_windows as
select k, i, row_number() over w as r, lag(i) over w as l, sum(i) over (partition by k order by i range between 1 preceding and current row) as s from (select distinct k, i from t) window w as (partition by k order by i) qualify r < 3;
-- spark: select * from (select k, i, row_number() over (partition by k order by i) as r, lag(i) over (partition by k order by i) as l,
-- sum(i) over (partition by k order by i range between 1 preceding and current row) as s from (select distinct k, i from t)) where r < 3

create view dialect_hinted as
select /*+ broadcast(u) */ t.k, u.n from t join u on t.k = u.k where t.i is not distinct from u.n;

create view dialect_values as
select * from (values (1, 'a'), (2, 'b')) as v(x, y) where x in (select k from t);

create view dialect_unnamed as
select k, k, k + 1, count(*) as 'how many' from u group by k;
-- spark: select k, k as k0, k + 1 as x, count(*) as n from u group by k

create view dialect_subqueries as
select id, array(select n from u) as a, map(select distinct k, k + 1 from u where k is not null) as m from p;
-- spark: select id, (select transform(sort_array(collect_list(struct(n))), r -> r.n) from u) as a,
-- (select map_from_entries(sort_array(collect_set(struct(k, k + 1)))) from u where k is not null) as m from p

create view dialect_div_null as
select k, div_null(i, k) as a, div_null(d, k) as b, div_null(i, div_null(b, k)) as c, sum(div_null(i, k)) over (partition by g) as s from t;
-- spark: select k, i div nullif(k, 0) as a, d / nullif(k, 0) as b, i div nullif(b div nullif(k, 0), 0) as c, sum(i div nullif(k, 0)) over (partition by g) as s from t

create view dialect_lists as
select k, array_agg(i order by b desc, i) as a, array_agg(i respect nulls) as c, array_agg(distinct i ignore nulls) as e, array_agg(s order by i desc nulls first) filter (where o) as f from t group by k;
-- spark: select k, filter(transform(sort_array(collect_list(struct(b is null, -b, i as z))), r -> r.z), r -> r is not null) as a, transform(sort_array(collect_list(struct(i))), r -> r.i) as c,
-- sort_array(collect_set(i)) as e, filter(transform(sort_array(collect_list(struct(i is not null, -i, s as z)) filter (where o)), r -> r.z), r -> r is not null) as f from t group by k

create view dialect_running_lists as
select id, array_agg(v order by v desc) over (partition by k order by id) as a from p;
-- spark: select id, sort_array(array_agg(v) over (partition by k order by id), false) as a from p

create view dialect_unnested_rows as
select id, q.n, q.w from nest, unnest(ls) as q(n, w) union all select x.id, x.y, null from (select n.id, e.y from nest n cross join unnest(a) as e(y)) x union all select a, b, 'c' from unnest(map[1, 2]) as q(a, b);
-- spark: select id, n, w from nest lateral view inline(ls) e as n, w union all select id, y, null from nest lateral view explode(a) e as y union all select 1, 2, 'c'

create view dialect_variant_objects as
select id, to_json(cast(st as variant)) as a, to_json(cast(m as variant)) as b, to_json(cast(ls as variant)) as c from nest;
-- spark: select id, to_json(to_variant_object(st)) as a, to_json(to_variant_object(m)) as b, to_json(to_variant_object(ls)) as c from nest

create view dialect_long_units as
select ts, dt, floor(ts to decade) as a, ceil(ts to century) as b, date_trunc(dt, millennium) as c, timestamp_trunc(ts, isoweek) as d, date_part(month, ts) as e, week(ts) as f from t;
-- spark: select ts, dt, cast(concat(left(cast(year(ts) as string), 3), '0-01-01') as timestamp_ntz) as a, if(ts is null, null, timestamp_ntz '2101-01-01 00:00:00') as b,
-- if(dt is null, null, date '2001-01-01') as c, cast(date_trunc('week', ts) as timestamp_ntz) as d, month(ts) as e, weekofyear(ts) as f from t

create view dialect_time_of_day as
select id, cast(nt as time) as a, try_cast(nt as time) as b, cast(lt as time) as c from times;
-- spark: select id, cast(date_format(nt, 'HH:mm:ss.SSSSSS') as time) as a, cast(date_format(nt, 'HH:mm:ss.SSSSSS') as time) as b, cast(date_format(lt, 'HH:mm:ss.SSSSSS') as time) as c from times

create view dialect_quantified as
select k, i from t where i = any (select n from u) and k <> all (select n from u where n > 2);
-- spark: select k, i from t where i in (select n from u) and k not in (select n from u where n > 2)

create view dialect_statistics as
select k, regr_count(i, b) as e, bit_and(b) as f, bit_or(b) as h, mode(g) as j from (select k, g, cast(i as bigint) as i, i % 3 as b from t) group by k;
-- spark: select k, regr_count(i, b) as e, bit_and(b) as f, bit_or(b) as h, mode() within group (order by g) as j from (select k, g, cast(i as bigint) as i, i % 3 as b from t) group by k

create view dialect_asof_names as
select p.id, a.n, a.p from p left asof join (select k, n, n + 1 as p from u where n is not null) a match_condition (p.v >= a.n) on p.k = a.k;
-- spark: select id, n, n + 1 as p from (select p.id, (select max(n) from u where u.k = p.k and u.n <= p.v) as n from p)

create view dialect_group_of_all as
select count(*) as n, max(i) as m from t where k > 1 group by () union all select 7 as n, 8 as m from t where k > 1 group by () having count(*) > 1;
-- spark: select count(*) as n, max(i) as m from t where k > 1 union all select 7 as n, 8 as m from (select count(*) as c from t where k > 1) where c > 1

create view dialect_tables_in_brackets as
select e.x, f.y from (table edges) e join (table edges) as f on e.y = f.x where exists (table edges);
-- spark: select e.x, f.y from edges e join edges f on e.y = f.x

create view dialect_places as
select id, a[ordinal(1)] as b, a[offset(0)] as c, a[safe_ordinal(3)] as d, transform(a, x -> x)[safe_ordinal(2)] as e from nest where array_length(a) > 0;
-- spark: select id, a[0] as b, a[0] as c, get(a, 2) as d, get(a, 1) as e from nest where size(a) > 0

create view dialect_names_in_strings as
select k 'a key', count(*) 'how many', max(i) "the greatest", case when k > 1 then 2 end 'c', 5 'd' from t group by k;
-- spark: select k, count(*) as n, max(i) as m, case when k > 1 then 2 end as c, 5 as d from t group by k

create view dialect_treated_nulls as
select id, first_value(v ignore nulls) over (partition by k order by id) as a, lag(v ignore nulls, 1) over (partition by k order by id) as b, lead(v, 1 respect nulls) over (partition by k order by id) as c,
    last_value(v ignore nulls) over (partition by k order by id rows between unbounded preceding and unbounded following) as d, nth_value(v ignore nulls, 2) over (partition by k order by id) as e from p;
-- spark: select id, first_value(v) ignore nulls over (partition by k order by id) as a, lag(v, 1) ignore nulls over (partition by k order by id) as b, lead(v, 1) over (partition by k order by id) as c,
-- last_value(v) ignore nulls over (partition by k order by id rows between unbounded preceding and unbounded following) as d, nth_value(v, 2) ignore nulls over (partition by k order by id) as e from p

create view dialect_least_but_null as
select k, first_value(i ignore nulls) as a, last_value(i ignore nulls) as b from t group by k;
-- spark: select k, min(i) as a, max(i) as b from t group by k

create view dialect_unnested_without_columns as
select n.id, e, r.w, z.x, z.y from nest n, unnest(n.a) as e, unnest(n.ls) r, unnest(n.a, n.l) as z(x, y);
-- spark: select n.id, e, r.w, x, y from nest n lateral view explode(n.a) q as e lateral view explode(n.ls) q as r lateral view inline(arrays_zip(n.a, n.l)) q as x, y

create view dialect_hidden_tables as
select g.id, (select max(u.n) from u where u.k = g.k and u.g <> 'c') as n, f.c from p g, lateral (select count(*) as c from t where t.k = g.k) f where g.v > 0 or not exists (select 1 from t where t.k = g.k and g = 'a');
-- spark: select z.id, (select max(u.n) from u where u.k = z.k and u.g <> 'c') as n, f.c from p z, lateral (select count(*) as c from t where t.k = z.k) f where z.v > 0 or not exists (select 1 from t where t.k = z.k and g = 'a')

create view dialect_frames as
select k, ts, sum(i) over (partition by k order by ts range between interval '1' hour preceding and interval 10 minutes following) as a, count(*) over (partition by k order by ts range between interval '6' hours preceding and interval '1' second preceding) as b from t;
-- spark: select k, ts, sum(i) over (partition by k order by ts range between interval '60' minute preceding and interval '10' minute following) as a,
-- count(*) over (partition by k order by ts range between interval '21600' second preceding and interval '1' second preceding) as b from t

create view dialect_stars_without as
select * exclude (s, ts) replace (i + 1 as i) from (select k, s, ts, i from t) union all select x.* except (g) replace (n * 2 as n) from (select k, g, n from u) x;
-- spark: select k, i + 1 as i from t union all select k, n * 2 as n from u

create view dialect_outer_unnest as
select n.id, e.k, e.v, f.x, n.m['a'] as a from nest n left join unnest(n.m) as e(k, v) on true left outer join unnest(n.a) f(x) on true where n.id < 12;
-- spark: select n.id, e.k, e.v, x, n.m['a'] as a from nest n lateral view outer explode(n.m) e as k, v lateral view outer explode(n.a) f as x where n.id < 12

create view dialect_refined_windows as
select id, sum(v) over (w rows between 1 preceding and current row) as a, count(*) over (x order by id) as b, row_number() over w as c from p window x as (partition by k), w as (partition by k order by id);
-- spark: select id, sum(v) over (partition by k order by id rows between 1 preceding and current row) as a, count(*) over (partition by k order by id) as b, row_number() over (partition by k order by id) as c from p

create view dialect_qualified_groups as
select k, g, sum(i) as s from t group by k, g qualify row_number() over (partition by k order by count(*) desc, g) = 1;
-- spark: select k, g, s from (select k, g, sum(i) as s, row_number() over (partition by k order by count(*) desc, g) as r from t group by k, g) where r = 1
