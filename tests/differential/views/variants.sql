-- VARIANT: parsed, taken apart, cast, described.

create view variant_texts as
select id, to_json(parse_json(j)) as t from docs;

create view variant_paths as
select id, variant_get(parse_json(j), '$.a', 'string') as a, try_variant_get(parse_json(j), '$.a', 'int') as n, try_variant_get(parse_json(j), '$.b[1]', 'int') as b from docs;

create view variant_access as
select id, to_json(v['a']) as a, to_json(v['b']) as b from (select id, parse_json(j) as v from docs);
-- spark: select id, to_json(try_variant_get(v, '$.a', 'variant')) as a, to_json(try_variant_get(v, '$.b', 'variant')) as b
-- from (select id, parse_json(j) as v from docs)

create view variant_fields as
select id, try_cast(v.s as string) as s, try_cast(v.a as decimal(10,2)) as a from (select id, parse_json(j) as v from docs);
-- spark: select id, try_variant_get(v, '$.s', 'string') as s, try_variant_get(v, '$.a', 'decimal(10,2)') as a from (select id, parse_json(j) as v from docs)

create view variant_casts as
select id, try_cast(v as int) as i, try_cast(v as string) as s, try_cast(v as boolean) as b from (select id, parse_json(j) as v from docs);

create view variant_schemas as
select id, schema_of_variant(parse_json(j)) as s from docs;

create view variant_nulls as
select id, is_variant_null(parse_json(j)) as n, parse_json(j) is null as q from docs;

create view variant_schema_agg as
select k, schema_of_variant_agg(parse_json(j)) as s from docs where j not like '[%' group by k;

create view variant_grouped as
select try_variant_get(parse_json(j), '$.a', 'int') as a, count(*) as n from docs group by try_variant_get(parse_json(j), '$.a', 'int');

create view variant_filtered as
select id from docs where try_variant_get(parse_json(j), '$.a', 'int') > 1 or is_variant_null(parse_json(j));

create view variant_exploded as
select id, pos, key, to_json(value) as v from docs, lateral variant_explode(parse_json(j));

create view variant_exploded_outer as
select id, key, to_json(value) as v from docs, lateral variant_explode_outer(parse_json(j));

create view variant_joined as
select p.id, variant_get(parse_json(d.j), '$.s', 'string') as s from p left join docs d on d.id = p.k where d.j is null or d.j like '{%';

create view variant_from_struct as
select id, to_json(to_variant_object(st)) as s, to_json(to_variant_object(a)) as a from nest;

create view variant_schema_of_struct as
select id, schema_of_variant(to_variant_object(st)) as s, schema_of_variant(to_variant_object(m)) as m from nest;

create view variant_of_date as
select id, schema_of_variant(cast(dt as variant)) as s, to_json(cast(dt as variant)) as j, schema_of_variant(cast(cast(dt as string) as variant)) as t from times;

create view variant_of_decimal as
select id, schema_of_variant(cast(v as variant)) as s, schema_of_variant(cast(cast(v as decimal(5,2)) as variant)) as d from p;

create view variant_behind_window as
select id, to_json(v) as j, r from (select id, parse_json(j) as v, row_number() over (partition by k order by id) as r from docs);

create view variant_behind_join as
select p.id, schema_of_variant(d.v) as s from p left join (select id, parse_json(j) as v from docs) d on d.id = p.v;

create view variant_maximum as
select k, max(try_variant_get(parse_json(j), '$.a', 'double')) as m, count(try_variant_get(parse_json(j), '$.s', 'string')) as n from docs group by k;

create view variant_to_map as
select id, try_cast(parse_json(j) as map<string, string>) as m, try_cast(parse_json(j) as array<int>) as a from docs;

create view variant_to_struct as
select id, try_cast(parse_json(j) as struct<a: int, s: string>) as s from docs;

create view json_read as
select id, from_json(j, 'a string, s string').a as a, get_json_object(j, '$.b[0]') as b, json_array_length(j) as n from docs;

create view variant_types as
select id, typeof(v) as t, typeof(v['b'][1]) as e, typeof(id) as i from (select id, parse_json(j) as v from docs);
-- spark: select id, case when v is null then 'NULL' when is_variant_null(v) then 'VARIANT' when schema_of_variant(v) like 'OBJECT%' then 'MAP'
-- when schema_of_variant(v) like 'ARRAY%' then 'ARRAY' when schema_of_variant(v) = 'STRING' then 'VARCHAR' else 'BIGINT' end as t,
-- case when j like '%"b": [1%' then 'BIGINT' else 'NULL' end as e, 'int' as i from (select id, j, parse_json(j) as v from docs)

create view variant_elements as
select id, to_json(v['b'][1]) as a, to_json(v['b'][3]['c']) as b, to_json(v[2]) as c, to_json(v['b'][0]) as z from (select id, parse_json(j) as v from docs);
-- spark: select id, to_json(try_variant_get(v, '$.b[0]', 'variant')) as a, to_json(try_variant_get(v, '$.b[2].c', 'variant')) as b,
-- to_json(try_variant_get(v, '$[1]', 'variant')) as c, cast(null as string) as z from (select id, parse_json(j) as v from docs)

create view json_accessed as
select id, j ->> 's' as s, json_get_int(j, 'b', 0) as i, to_json(parse_json(j) -> 'b' -> 2) as o, json_contains(j, 'b') as h, json_as_text(parse_json(j), 'a') as a from docs;
-- spark: select id, try_variant_get(parse_json(j), '$.s', 'string') as s, try_variant_get(parse_json(j), '$.b[0]', 'bigint') as i,
-- to_json(try_variant_get(parse_json(j), '$.b[2]', 'variant')) as o, try_variant_get(parse_json(j), '$.b', 'variant') is not null as h,
-- try_variant_get(parse_json(j), '$.a', 'string') as a from docs
