-- UNION, INTERSECT, EXCEPT, each DISTINCT and ALL, over rows with NULLs.

create view united as select k, g from t union select k, g from u;

create view united_all as select k, g from t union all select k, g from u;

create view intersected as select k, g from t intersect select k, g from u;

create view intersected_all as select k from t intersect all select k from u;

create view excepted as select k, g from t except select k, g from u;

create view excepted_all as select k from t except all select k from u;

create view union_of_three as select k from t union select k from u union select k from p;

create view union_mixed as select k from t union all select k from u union select v from p;

create view except_then_union as (select k from t except select k from u) union all (select k from u except select k from t);

create view intersect_binds_tighter as select k from t union select k from u intersect select k from p;

create view parenthesised as select k from t except all (select k from u union all select v from p);

create view widened as select k, d from t union select n, w * 1.000 from u;

create view union_of_groups as
select 't' as w, g, count(*) as n from t group by g union all select 'u', g, sum(n) from u group by g;

create view except_of_groups as
select g, count(*) as n from t group by g except select g, count(*) from u group by g;

create view intersect_of_joins as
select p.id from p join u on p.k = u.k intersect select id from q;

create view distinct_of_union as
select distinct k from (select k from t union all select k from u) where k is not null or k is null;

create view counted_union as
select k, count(*) as n from (select k from t union all select k from u union all select k from p) group by k;

create view union_with_constants as
select k, g from u union all select 1, 'a' union all select null, null;

create view intersect_with_values as
select k from t intersect select * from (values (1), (2), (cast(null as int))) v(k);

create view nan_union as
select f, d from t union select f, h from nums;

create view struct_union as
select struct(k, g) as x from t union select struct(k, g) from u;

create view array_intersect_rows as
select array(k, n) as x from u intersect select array(k, v) from p;
