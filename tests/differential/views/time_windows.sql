-- Tumbling, hopping and session windows.

create view tumbled as
select window_start, window_end, count(*) as n, sum(i) as x
from table(tumble(table t, descriptor(ts), interval '10' minute)) group by window_start, window_end;
-- spark: select window.start, window.end, count(*), sum(i) from t group by window(ts, '10 minutes')

create view tumbled_rows as
select k, i, ts, window_start from table(tumble(table t, descriptor(ts), interval '1' hour));
-- spark: select k, i, ts, w.start as window_start from (select window(ts, '1 hour') as w, * from t where ts is not null)

create view tumbled_with_offset as
select g, window_start, count(*) as n from table(tumble(table t, descriptor(ts), interval '15' minute, interval '5' minute)) group by g, window_start;
-- spark: select g, window.start as window_start, count(*) as n from t group by g, window(ts, '15 minutes', '15 minutes', '5 minutes')

create view old_tumble as
select tumble_start(ts, interval '10' minute) as a, tumble_end(ts, interval '10' minute) as b, max(i) as m from t group by tumble(ts, interval '10' minute);
-- spark: select window.start, window.end, max(i) from t group by window(ts, '10 minutes')

create view hopped as
select window_start, window_end, count(*) as n
from table(hop(table t, descriptor(ts), interval '5' minute, interval '15' minute)) group by window_start, window_end;
-- spark: select window.start, window.end, count(*) from t group by window(ts, '15 minutes', '5 minutes')

create view hopped_by_key as
select g, window_end, sum(d) as x from table(hop(table t, descriptor(ts), interval '30' minute, interval '1' hour)) group by g, window_end;
-- spark: select g, window.end as window_end, sum(d) as x from t group by g, window(ts, '1 hour', '30 minutes')

create view old_hop as
select hop_start(ts, interval '5' minute, interval '10' minute) as a, count(*) as n from t group by hop(ts, interval '5' minute, interval '10' minute);
-- spark: select window.start, count(*) as n from t group by window(ts, '10 minutes', '5 minutes')

create view spark_window as
select window.start, window.end as e, g, count(*) as n, max(s) as m from t group by window(ts, '20 minutes'), g;

create view spark_sliding as
select window.start, count(distinct k) as n from t group by window(ts, '20 minutes', '10 minutes');

create view window_times as
select window_time(w) as at, n from (select window(ts, '10 minutes') as w, count(*) as n from t group by window(ts, '10 minutes'));

create view sessions_by_key as
select g, session_window.start, session_window.end as e, count(*) as n from t group by g, session_window(ts, '10 minutes');

create view sessions_of_all as
select session_window.start, count(*) as n, sum(i) as x from t group by session_window(ts, '5 minutes');

create view old_sessions as
select g, session_start(ts, interval '6' minute) as a, session_end(ts, interval '6' minute) as b, count(*) as n from t group by g, session(ts, interval '6' minute);
-- spark: select g, session_window.start, session_window.end, count(*) from t group by g, session_window(ts, '6 minutes')

create view session_rows as
select k, i, window_start, window_end from table(session(table t partition by k, descriptor(ts), interval '15' minute));
-- spark: select t.k, t.i, s.w.start as window_start, s.w.end as window_end from t join
-- (select k, session_window(ts, '15 minutes') as w, count(*) as n from t group by k, session_window(ts, '15 minutes')) s
-- on t.k <=> s.k and t.ts >= s.w.start and t.ts < s.w.end

create view session_rows_of_all as
select i, ts, window_start, window_end from table(session(data => table t, timecol => descriptor(ts), gap => interval '20' minute));
-- spark: select t.i, t.ts, s.w.start as window_start, s.w.end as window_end from t join
-- (select session_window(ts, '20 minutes') as w, count(*) as n from t group by session_window(ts, '20 minutes')) s
-- on t.ts >= s.w.start and t.ts < s.w.end

create view windows_of_a_query as
select window_start, count(*) as n from table(tumble(table (select ts, k from t where k > 0), descriptor(ts), interval '1' hour)) group by window_start;
-- spark: select window.start as window_start, count(*) as n from t where k > 0 group by window(ts, '1 hour')

create view windows_joined as
select a.window_start, a.n, b.n as m from
(select window_start, count(*) as n from table(tumble(table t, descriptor(ts), interval '10' minute)) group by window_start) a
left join (select window_start, count(*) as n from table(tumble(table t, descriptor(ts), interval '1' hour)) group by window_start) b
on a.window_start = b.window_start;
-- spark: select a.w.start as window_start, a.n, b.n as m from (select window(ts, '10 minutes') as w, count(*) as n from t group by window(ts, '10 minutes')) a
-- left join (select window(ts, '1 hour') as w, count(*) as n from t group by window(ts, '1 hour')) b on a.w.start = b.w.start

create view windows_ranked as
select window_start, n, rank() over (order by n desc) as r from
(select window_start, count(*) as n from table(tumble(table t, descriptor(ts), interval '10' minute)) group by window_start);
-- spark: select w.start as window_start, n, rank() over (order by n desc) as r from (select window(ts, '10 minutes') as w, count(*) as n from t group by window(ts, '10 minutes'))

create view sessions_having as
select g, session_window.start, count(*) as n from t group by g, session_window(ts, '10 minutes') having count(*) > 1;

create view window_days as
select window.start, count(*) as n from t group by window(ts, '1 day');

create view window_distinct as
select window.start, count(distinct g) as n, sum(i) filter (where o) as x from t group by window(ts, '30 minutes');

create view sliding_distinct as
select window.start, count(distinct g) as n, count(distinct k) as m, count(*) as c from t group by window(ts, '20 minutes', '10 minutes');
