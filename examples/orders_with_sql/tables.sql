-- Orders and customers. A connector makes them up; any connector that reads files, URLs or HTTP requests does as well.
create table customers (
    name varchar primary key,
    country varchar
) with ('materialized' = 'true', 'connectors' = '[{
    "name": "customers",
    "transport": {"name": "datagen", "config": {"plan": [{"limit": 3, "fields": {
        "name": {"values": ["ann", "bob", "eva"]},
        "country": {"values": ["NL", "NL", "PT"]}
    }}]}}
}]');

create table orders (
    id bigint,
    customer varchar,
    amount decimal(10, 2),
    minute bigint,
    status varchar
) with ('append_only' = 'true', 'materialized' = 'true', 'connectors' = '[{
    "name": "orders",
    "transport": {"name": "datagen", "config": {"plan": [{"limit": 8, "fields": {
        "id": {"range": [1, 9]},
        "customer": {"values": ["ann", "bob", "ann", "eva", "ann", "bob", "eva", "ann"]},
        "amount": {"values": [10, 25, 7.5, 40, 12, 5, 30, 99]},
        "minute": {"values": [3, 14, 31, 42, 65, 70, 95, 130]},
        "status": {"values": ["paid", "paid", "paid", "paid", "paid", "cancelled", "paid", "paid"]}
    }}]}}
}]');

-- What the stream program reads: as it only filters a table that loses no rows, it loses none itself.
create view paid_orders as
select customer, amount, minute from orders where status = 'paid';

-- What is made of the relation that the stream program gives.
create materialized view revenue_by_country as
select c.country, r.hour, sum(r.revenue) as revenue, sum(r.orders) as orders
from hourly_revenue r join customers c on c.name = r.customer
group by c.country, r.hour;
