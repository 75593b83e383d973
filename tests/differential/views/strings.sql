-- Text: Unicode, the empty text beside NULL, patterns.

create view by_text as
select s, count(*) as n from t group by s;

create view empty_or_null as
select s = '' as e, s is null as n, coalesce(s, '') = '' as b, count(*) as c from t group by s = '', s is null, coalesce(s, '') = '';

create view lengths as
select s, length(s) as a, octet_length(s) as b, bit_length(s) as c, char_length(concat(s, g)) as d from t;

create view letter_case as
select upper(s) as a, lower(s) as b, initcap(s) as c, reverse(s) as d, ascii(s) as e from t;

create view joined_text as
select s || g as a, concat(s, '-', g) as b, concat_ws('-', s, g, k) as c, repeat(s, 2) as d from t;

create view parts as
select substring(s, 2, 2) as a, left(s, 1) as b, right(s, 2) as c, substr(s, -1) as d, split_part(s, ' ', 1) as e, substring(s from 2 for 1) as f from t;

create view trimmed as
select trim(concat(' ', s, ' ')) as a, ltrim('x', s) as b, rtrim(s) as c, lpad(s, 4, '*') as d, rpad(s, 4, 'ü') as e, btrim(s, 'x') as f from t;

create view searched as
select position('x' in s) as a, instr(s, '''') as b, locate('c', s) as c, contains(s, 'b') as d, startswith(s, 'x') as e, endswith(s, '') as f from t;

create view likes as
select s, s like '%x%' as a, s like '_' as b, s ilike 'X%' as c, s not like 'a%' as d, s rlike '^[a-z]+$' as e, s like any ('a%', '%y') as f from t;

create view replaced as
select replace(s, 'x', 'yy') as a, translate(s, 'abx', 'AB') as b, overlay(s placing '__' from 1 for 1) as c, regexp_replace(s, '[aeiou]', '.') as d from t;

create view matched as
select regexp_extract(s, '([a-z])(.*)', 2) as a, regexp_count(s, '[a-z]') as b, regexp_substr(s, '[b-z]+') as c, regexp_extract_all(s, '([a-z])', 1) as d from t;

create view text_order as
select s, g, rank() over (order by s desc) as r from t where k > 0;

create view text_top as
select s, i from t order by s nulls last, i limit 5;

create view text_joins as
select a.i, b.n from t a join u b on a.g = b.g and a.s > b.g;

create view exploded_words as
select w, count(*) as n from t lateral view explode(split(s, ' ')) e as w group by w;

create view formatted_text as
select format_string('%s:%d', s, k) as a, printf('%05d', i) as b, concat('"', s, '"') as c, 'it''s' as d, char(65 + k) as e from t where s is not null and k is not null and i is not null;

create view distinct_text as
select distinct g, upper(s) as u from t;

create view numbers_in_text as
select try_cast(s as int) as a, try_to_number(s, '999') as b, cast(k as string) = '1' as c from t;
