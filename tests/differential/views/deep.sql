-- Views over views, three deep.

create view sums_by_key as select k, g, sum(i) as x, count(*) as n from t group by k, g;
create local view sums_by_size as select n, count(*) as c, max(x) as m from sums_by_key group by n;
create view sizes_joined as select a.k, a.g, b.c, b.m from sums_by_key a left join sums_by_size b on a.n = b.n and a.x = b.m;
create materialized view sizes_ranked as select k, g, c, rank() over (partition by g order by c desc nulls last) as r from sizes_joined;

create materialized view known as select distinct k from u where k is not null;
create view unknown as select id, k, v from p where k not in (select k from known);
create view unknown_totals as select count(*) as n, sum(v) as x from unknown;
create view unknown_told as select case when n > 0 then 'some' else 'none' end as t, x from unknown_totals;

create view joined_outer as select p.id, p.k, u.n, u.w from p full join u on p.k = u.k;
create view outer_groups as select k, count(id) as a, count(n) as b, sum(w) as c from joined_outer group by rollup (k);
create view outer_windows as select k, a, b, sum(a) over (order by k, a, b) as run from outer_groups;
create view outer_top as select k, a, run from outer_windows order by run desc, k, a limit 3;

create materialized view exploded_once as select id, x from nest lateral view outer explode(a) e as x;
create view exploded_counts as select x, count(*) as n, sort_array(collect_set(id)) as ids from (select x, id from exploded_once) group by x having count(*) > 0;
create view exploded_best as select x, n from exploded_counts where n = (select max(n) from exploded_counts);

create view united_keys as select k from t union select k from u union select k from p;
create view key_facts as select a.k, (select count(*) from t where t.k = a.k) as t, (select max(v) from p where p.k = a.k) as p, exists (select 1 from u where u.k = a.k) as u from united_keys a;
create view key_gaps as select k, t, p, lag(k) over (order by k) as before from key_facts where t > 0 or u;
create view key_sessions as select k, k - row_number() over (order by k) as island from key_gaps where k is not null;
create view islands as select min(k) as a, max(k) as b, count(*) as n from key_sessions group by island;

create view minutes as select window_start as w, g, count(*) as n from table(tumble(table t, descriptor(ts), interval '10' minute)) group by window_start, g;
-- spark: select window.start as w, g, count(*) as n from t group by window(ts, '10 minutes'), g
create view minute_changes as select w, g, n - lag(n, 1, 0) over (partition by g order by w) as d from minutes;
create view minute_totals as select w, sum(abs(d)) as x from minute_changes group by w having sum(abs(d)) > 0;
