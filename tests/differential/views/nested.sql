-- Arrays, structs, maps, lambdas and generators.

create view array_elements as
select id, a[0] as x, get(a, 1) as y, try_element_at(a, -1) as z from nest where size(a) > 0;

create view array_facts as
select id, size(a) as n, cardinality(l) as c, array_contains(a, 2) as h, array_position(a, 3) as p, array_max(a) as m from nest;

create view array_functions as
select id, array_sort(a) as s, array_distinct(a) as d, reverse(a) as r, slice(a, 1, 2) as p, array_remove(a, 1) as x from nest;

create view array_sets as
select id, array_union(a, array(9)) as u, array_intersect(a, array(1, 2)) as i, array_except(a, array(1)) as e, arrays_overlap(a, array(3)) as o from nest;

create view array_keys as
select a, count(*) as n from nest group by a;

create view array_join_key as
select x.id, y.id as other from nest x join nest y on x.a = y.a and x.id < y.id;

create view flattened as
select id, flatten(aa) as f, size(aa) as n, aa[0][0] as z from nest where size(aa) > 0 and aa[0] is not null and size(aa[0]) > 0;

create view transformed as
select id, transform(a, x -> x * 2) as t, filter(a, x -> x > 1) as f, exists(a, x -> x = 3) as e, forall(a, x -> x > 0) as o from nest;

create view aggregated as
select id, aggregate(a, 0, (acc, x) -> acc + coalesce(x, 0)) as s, reduce(a, 1, (acc, x) -> acc * coalesce(x, 1), acc -> acc + 1) as r from nest;

create view zipped as
select id, arrays_zip(a, l) as z, zip_with(a, l, (x, y) -> concat(x, y)) as w, transform(a, (x, i) -> x + i) as t from nest;

create view exploded as
select id, x from nest lateral view explode(a) e as x;

create view exploded_outer as
select id, x from nest lateral view outer explode(a) e as x;

create view exploded_without_alias as
select id, x from nest lateral view explode(l) as x;

create view with_positions as
select id, at, x from nest lateral view posexplode(l) e as at, x;

create view exploded_map as
select id, key, value from nest lateral view explode(m) e as key, value;

create view exploded_structs as
select id, n, w from nest lateral view outer inline(ls) e as n, w;

create view exploded_twice as
select id, x, y from nest lateral view explode(aa) e as x lateral view outer explode(x) f as y;

create view exploded_and_grouped as
select x, count(*) as n, sum(id) as s from nest lateral view explode(a) e as x group by x;

create view unnested as
select id, x from nest, unnest(a) as e(x);
-- spark: select id, x from nest lateral view explode(a) e as x

create view lateral_generator as
select id, x from nest, lateral explode(l) as e(x);

create view exploded_in_select as
select id, explode(a) as x from nest;

create view exploded_left as
select nest.id, e.x from nest left join lateral explode(a) as e(x) on true;

create view structs as
select id, st.x, st.y, st is null as n, ls[0].w as w from nest where size(ls) > 0 or ls is null;

create view struct_keys as
select st, count(*) as n, max(id) as m from nest group by st;

create view struct_made as
select named_struct('k', k, 'g', g) as s, count(*) as n from t group by named_struct('k', k, 'g', g);

create view struct_maximum as
select max(st) as m, min(struct(id, st)).st as l from nest;

create view struct_compared as
select x.id, y.id as other from nest x join nest y on x.st = y.st and x.id < y.id;

create view map_facts as
select id, m['a'] as a, map_contains_key(m, 'b') as b, size(m) as n, array_sort(map_keys(m)) as k, array_sort(map_values(m)) as v from nest;

create view map_keys_group as
select m, count(*) as n from nest group by m;

create view map_functions as
select id, map_filter(m, (k, v) -> v > 1) as f, transform_values(m, (k, v) -> v + 1) as t, map_concat(m, map('z', 9)) as c from nest;

create view map_entries_sorted as
select id, array_sort(map_entries(m)) as e, map_from_arrays(array('p', 'q'), array(id, 2)) as f from nest;

create view map_made_text as
select id, to_json(map('b', id, 'a', 1)) as j from nest;

create view nested_json as
select id, to_json(st) as s, to_json(ls) as l, to_json(aa) as a from nest;

create view collected as
select k, sort_array(collect_list(i)) as l, sort_array(collect_set(g)) as s, array_size(collect_list(i)) as n from t group by k;

create view collected_structs as
select k, sort_array(collect_list(struct(i, s))) as l from t group by k;

create view collected_map as
select k, map_from_entries(array_sort(collect_list(struct(id, s)))) as m from p group by k;

create view nested_windows as
select id, a, row_number() over (partition by a order by id) as r, max(st) over (partition by size(a)) as m from nest;

create view nested_union as
select a from nest union select array(k, v) from p;
