-- Recursion over edges that come and go: views that are declared recursive, and WITH RECURSIVE.

declare recursive view reachable (x int, y int);
create view reachable as
select x, y from edges union select r.x, e.y from reachable r join edges e on r.y = e.x;

declare recursive view squared (x int, y int);
create view squared as
select x, y from edges union select a.x, b.y from squared a join squared b on a.y = b.x;

declare recursive view hops (x int, y int, n int);
create view hops as
select x, y, 1 as n from edges union all select h.x, e.y, h.n + 1 from hops h, edges e where h.y = e.x and h.n < 4;

declare recursive view odd_ways (x int, y int);
declare recursive view even_ways (x int, y int);
create view odd_ways as
select x, y from edges union select e.x, s.y from even_ways e join edges s on e.y = s.x;
create view even_ways as
select o.x, s.y from odd_ways o join edges s on o.y = s.x;

declare recursive view same_component (x int, y int);
create view same_component as
select x, y from edges where x is not null and y is not null
union select y, x from same_component
union select a.x, e.y from same_component a join edges e on a.y = e.x where e.y is not null;

declare recursive view without_stops (x int, y int);
create view without_stops as
select x, y from edges where not exists (select 1 from u where u.k = edges.y)
union select r.x, e.y from without_stops r join edges e on r.y = e.x where not exists (select 1 from u where u.k = e.y);

declare recursive view digits (n int, d int);
create view digits as
select id as n, 0 as d from p union select n, x from digits lateral view explode(sequence(d, least(d + 1, 4))) e as x;

create view shortest as
select x, y, min(n) as n from hops group by x, y;

create view unreachable as
select a.x, b.y from (select distinct x from edges) a cross join (select distinct y from edges) b
where not exists (select 1 from reachable r where r.x = a.x and r.y = b.y);

create view on_circles as
select distinct x from reachable where x = y;

create view both_ways as
select o.x, o.y from odd_ways o join even_ways e on o.x = e.x and o.y = e.y;

create view path_texts as
with recursive path as (
    select x, y, concat(x, '-', y) as way from edges where x = 1
    union all select p.x, e.y, concat(p.way, '-', e.y) from path p join edges e on p.y = e.x where length(p.way) < 9
) select way, count(*) as n from path group by way;

create view counted_down as
with recursive c(id, n) as (select id, v from p where v > 0 union all select id, n - 1 from c where n > 1) select id, n from c;

create view descendants as
with recursive d(root, id, depth) as (
    select id, id, 0 from p where k is null
    union all select d.root, p.id, d.depth + 1 from d join p on p.k = d.id and p.id > d.id where d.depth < 5
) select root, count(*) as n, max(depth) as depth from d group by root;

create view recursion_joined as
with recursive r(x, n) as (select x, 0 from edges where x is not null union all select e.y, r.n + 1 from r join edges e on e.x = r.x where r.n < 2)
select r.n, count(*) as c, sum(u.n) as s from r left join u on u.k = r.x group by r.n;
