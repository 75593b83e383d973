-- What comes into the store and goes out of it. A connector makes the first ones up.
create table movements (
    product varchar,
    pieces bigint
) with ('append_only' = 'true', 'materialized' = 'true', 'connectors' = '[{
    "name": "movements",
    "transport": {"name": "datagen", "config": {"plan": [{"limit": 6, "fields": {
        "product": {"values": ["lamp", "desk", "lamp", "book", "desk", "book"]},
        "pieces": {"values": [20, 5, -18, 50, -1, -10]}
    }}]}}
}]');

-- What the stream program reads: a row of it changes when something of the product moves.
create view stock as
select product, sum(pieces) as pieces from movements group by product;

-- What is made of the relation that the stream program gives.
create materialized view purchases as
select product, 10 - pieces as to_buy from shortages;
