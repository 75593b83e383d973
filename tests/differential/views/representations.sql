-- Values with two representations that one view makes and another one looks at.

create view negated as select i, -f as f, m from (select i, f, k as m from t);
create view negated_texts as select a.i, cast(a.f as string) as f from negated a left join u b on a.m = b.k;
create view negated_counts as select f, count(*) as n from negated_texts group by f;

create materialized view parsed_maps as select id, from_json(j, 'map<string,string>') as m from (select id, j from docs where j like '{%');
create view map_texts as select a.id, to_json(a.m) as j from parsed_maps a left join p on p.id = a.id;
create view map_texts_numbered as select j, row_number() over (order by j, id) as r from map_texts;

create view zeros as select i, struct(-f as z) as s, array(f * 0, -f) as l from t where f = 0;
create view zero_texts as select a.i, cast(a.s.z as string) as z, cast(a.l[1] as string) as y from zeros a left join p on p.id = a.i;

create view map_made as select id, map('b', k, 'a', v) as m from p;
create view map_made_texts as select m, to_json(m) as j, row_number() over (partition by map_keys(m) order by id) as r from map_made;

create view map_text as
select id, to_json(m) as j, cast(m as string) as s from nest;
