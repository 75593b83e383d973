-- Time zones, the hours that summer time adds and takes, and parts of dates.

create view from_utc as
select id, from_utc_timestamp(lt, zone) as a, from_utc_timestamp(nt, 'Europe/Zurich') as b from times;

create view to_utc as
select id, to_utc_timestamp(lt, zone) as a, to_utc_timestamp(nt, 'America/New_York') as b from times;

create view converted as
select id, convert_timezone('Europe/Zurich', 'America/New_York', nt) as a, convert_timezone('UTC', zone, nt) as b from times;

create view cast_zones as
select id, cast(lt as timestamp_ntz) as a, cast(nt as timestamp_ltz) as b, cast(lt as date) as d, cast(lt as string) as s, cast(nt as string) as n from times;

create view truncated as
select id, date_trunc('hour', lt) as h, date_trunc('day', nt) as d, date_trunc('week', lt) as w, date_trunc('quarter', nt) as q, date_trunc('millisecond', lt) as m from times;

create view truncated_dates as
select id, trunc(dt, 'month') as m, trunc(dt, 'year') as y, trunc(dt, 'week') as w from times;

create view extracted as
select id, extract(year from nt) as y, extract(month from nt) as m, extract(day from lt) as d, extract(hour from lt) as h, extract(minute from nt) as i, extract(second from nt) as s from times;

create view extracted_rarely as
select id, extract(week from dt) as w, extract(dow from dt) as d, extract(doy from dt) as y, extract(quarter from dt) as q, extract(yearofweek from dt) as o from times;

create view date_functions as
select id, dayofweek(dt) as a, weekofyear(dt) as b, last_day(dt) as c, next_day(dt, 'MON') as d, add_months(dt, 12) as e, dayname(dt) as f, monthname(dt) as g from times;

create view date_arithmetic as
select id, date_add(dt, 30) as a, date_sub(dt, 1) as b, datediff(dt, date '2024-12-31') as c, months_between(dt, date '2024-03-31') as d from times where dt > date '0001-02-01' or dt is null;

create view unix_times as
select id, unix_seconds(lt) as a, unix_millis(lt) as b, unix_micros(lt) as c, unix_date(dt) as d from times;

create view formatted as
select id, date_format(lt, 'yyyy-MM-dd HH:mm:ss.SSS') as a, date_format(nt, 'EEE d MMM yyyy') as b, date_format(dt, 'yyyyMMdd') as c from times;

create view parsed as
select id, to_date(date_format(dt, 'dd/MM/yyyy'), 'dd/MM/yyyy') as a, cast(try_to_timestamp(cast(nt as string)) as timestamp_ntz) as b from times;

create view made as
select id, make_date(2024, 1 + id % 12, 28) as a, make_timestamp_ntz(2025, 3, 30, 2, 30, id % 60) as b, make_timestamp_ltz(2025, 3, 30, 2, 30, id % 60, 'Europe/Zurich') as c from times;

create view local_days as
select date_trunc('day', from_utc_timestamp(lt, 'Europe/Zurich')) as d, count(*) as n, min(lt) as l from times group by date_trunc('day', from_utc_timestamp(lt, 'Europe/Zurich'));

create view local_hours as
select extract(hour from convert_timezone('UTC', 'America/New_York', nt)) as h, count(*) as n from times group by extract(hour from convert_timezone('UTC', 'America/New_York', nt));

create view by_zone as
select zone, count(*) as n, max(lt) as m, min(nt) as l, max(dt) as d from times group by zone;

create view time_comparisons as
select id, lt < timestamp_ltz '2025-06-01 00:00:00' as a, nt >= timestamp '2024-12-30 00:00:00' as b, dt = cast(nt as date) as c, cast(lt as timestamp_ntz) = nt as d from times;

create view zoned_literals as
select id, lt from times where lt > timestamp_ltz '2025-03-30 02:59:59 Europe/Zurich' and lt <= timestamp_ltz '2025-10-26 01:30:00 UTC';

create view time_differences as
select id, timestampdiff(hour, nt, timestamp '2025-03-30 12:00:00') as h, timestampdiff(month, nt, timestamp '2025-03-30 12:00:00') as m, datediff(cast(nt as date), dt) as d from times;

create view times_joined as
select a.id, b.id as other from times a join times b on date_trunc('day', a.nt) = date_trunc('day', b.nt) and a.id < b.id;

create view mixed_times as
select lt as x from times union select cast(nt as timestamp_ltz) from times;
