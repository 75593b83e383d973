-- CASE, COALESCE, comparisons that know NULL, lateral aliases, and other expressions row by row.

create view cases as
select id, case when v > 5 then 'high' when v is null then 'none' when v = 5 then 'five' else 'low' end as c, case k when 1 then 'one' when null then 'never' end as d from p;

create view coalesced as
select id, coalesce(s, 'none') as a, ifnull(v, -1) as b, nvl2(k, 'k', 'no k') as c, nullif(v, 5) as d, nullifzero(v) as e, zeroifnull(v) as f from p;

create view null_safe as
select id, k <=> null as a, k <=> v as b, k is distinct from v as c, k is not distinct from v as d from p;

create view three_valued as
select id, k = 1 and v = 5 as a, k = 1 or v = 5 as b, not (k = 1) as c, (k = 1) is true as d, (k = 1) is not false as e, (k = 1) is unknown as f from p where k is null or v is null or k > 0;

create view between_and_in as
select id, v between 1 and 5 as a, v not between 1 and 5 as b, v in (0, 5, null) as c, v not in (9) as d from p;

create view conditional as
select id, if(v > 5, 'a', 'b') as a, if(k = 1, 1, 0) as b, decode(v, 5, 'five', 9, 'nine', 'other') as c, greatest(k, v, 3) as d, least(k, v) as e from p;

create view lateral_aliases as
select id, v * 2 as twice, twice + 1 as more, more - coalesce(k, 0) as less from p;

create view arithmetic as
select id, v + k as a, v - k as b, v * k as c, try_divide(v, k) as d, v % 3 as e, v div 2 as f, -v as g, pmod(k - 3, 2) as h from p;

create view mathematics as
select id, round(sqrt(v), 6) as a, round(ln(v + 1), 6) as b, power(v, 2) as c, abs(k - 2) as d, sign(k - 2) as e, ceil(v / 2) as f, cbrt(27.0) as g from p;

create view casts as
select id, cast(v as string) as a, cast(v as double) as b, try_cast(s as int) as c, cast(v as boolean) as d, cast(v as decimal(5,1)) as e, v::bigint as f from p;

create view where_conditions as
select id from p where (v > 0 and s like 'm%') or (k is null and v is not null) or not (s <> 'n');

create view where_never as
select id from p where 1 = 0;

create view star_except as
select * except (s, k) from p;

create view constants_only as
select 1 as a, 'x' as b, cast(null as int) as c, 1.50 as d;

create view values_only as
select * from (values (1, 'a'), (2, null), (1, 'a')) as v(n, l);

create view values_joined as
select p.id, v.l from p join (values (1, 'one'), (3, 'three'), (null, 'null')) as v(k, l) on p.k <=> v.k;

create view hashed as
select id, hash(k, s) as a, xxhash64(v) as b, crc32(cast(s as binary)) as c, md5(s) as d from p;

create view composite_keys as
select id, r, c, concat_ws('-', id, r, c) as t from q where r > 0 or c is null;

create view nested_selects as
select z from (select y + 1 as z from (select x * 2 as y from (select v as x from p where v is not null) a) b where y > 0) c where z < 100;
