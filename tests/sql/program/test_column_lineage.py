from __future__ import annotations

import pytest

from airflow_pipelines.sql.program.column_lineage import ColumnOf, column_lineage, without

TABLES = """
create table orders (id bigint not null primary key, customer string, amount decimal(10, 2), tags array<string>, at timestamp);
create table customers (id string, "Full Name" string, city string);
"""
COLUMNS = {"orders": ["id", "customer", "amount", "tags", "at"], "customers": ["id", "Full Name", "city"]}


def lineage(query: str, *names: str, head: str = "v") -> dict[str, list[str]]:
    """What the columns of a view are made of, as texts."""
    found = column_lineage(f"{TABLES} create view {head} as {query};", {**COLUMNS, "v": names})
    return {column: [f"{one.relation}.{one.column}" for one in sorted(made)] for column, made in found.get("v", {}).items()}


@pytest.mark.parametrize(
    ("query", "made_of"),
    [
        ("select id, amount * 2 as twice, 1 as one from orders", {"id": ["orders.id"], "twice": ["orders.amount"], "one": []}),
        (
            "select customer, sum(amount) as s, count(*) as n from orders group by customer",
            {"customer": ["orders.customer"], "s": ["orders.amount"], "n": []},
        ),
        # What only chooses rows is not what a value is made of.
        ("select city from customers where id in (select customer from orders)", {"city": ["customers.city"]}),
        (
            'select o.id, c."Full Name" as name from orders o join customers c on o.customer = c.id',
            {"id": ["orders.id"], "name": ["customers.Full Name"]},
        ),
        ("select id from orders union all select amount from orders", {"id": ["orders.amount", "orders.id"]}),
        (
            "with x as (select * from orders), y as (select id, at from x) select y.* from y",
            {"id": ["orders.id"], "at": ["orders.at"]},
        ),
        (
            "select case when amount > 1 then customer else city end as c from orders cross join customers",
            {"c": ["customers.city", "orders.amount", "orders.customer"]},
        ),
        ("select id, tag from orders lateral view explode(tags) t as tag", {"id": ["orders.id"], "tag": ["orders.tags"]}),
        (
            "select id, (select max(city) from customers) as m from orders",
            {"id": ["orders.id"], "m": ["customers.city"]},
        ),
        (
            "select id, row_number() over (partition by customer order by at) as r from orders",
            {"id": ["orders.id"], "r": ["orders.at", "orders.customer"]},
        ),
    ],
)
def test_columns_are_followed(query: str, made_of: dict[str, list[str]]) -> None:
    assert lineage(query, *made_of) == made_of


def test_columns_that_a_view_names_itself_are_followed_by_their_places() -> None:
    assert lineage("select id, id as other from orders", "a", "b", head="v(a, b)") == {"a": ["orders.id"], "b": ["orders.id"]}
    # Spark names columns without an alias.
    assert lineage("select count(*), sum(amount) from orders", "count(1)", "sum(amount)") == {
        "count(1)": [],
        "sum(amount)": ["orders.amount"],
    }


def test_columns_of_a_window_come_from_its_table_and_its_own_are_not_known() -> None:
    query = """select window_start, sum(amount) as s from table(tumble(table orders, descriptor(at), interval 1 minute))
    group by window_start"""
    assert lineage(query, "window_start", "s") == {"s": ["orders.amount"]}


def test_nothing_is_said_where_the_columns_do_not_fit() -> None:
    assert lineage("select id, customer from orders", "id") == {}
    found = column_lineage(f"{TABLES} create view v as select id from orders;", {"v": ["id"]})
    assert found == {}


def test_hidden_relations_are_replaced_by_what_they_are_made_of() -> None:
    text = f"""{TABLES}
    create local view a as select id, amount + id as x from orders;
    create local view b as select x + 1 as y, id from a;
    create view v as select y, b.id, city from b cross join customers;
    """
    found = column_lineage(text, {**COLUMNS, "v": ["y", "id", "city"]})
    assert found["v"]["y"] == frozenset({ColumnOf("b", "y")})
    (visible,) = without(found, {"a", "b"}).items()
    assert visible == (
        "v",
        {
            "y": frozenset({ColumnOf("orders", "amount"), ColumnOf("orders", "id")}),
            "id": frozenset({ColumnOf("orders", "id")}),
            "city": frozenset({ColumnOf("customers", "city")}),
        },
    )


def test_what_a_hidden_relation_does_not_tell_is_not_known() -> None:
    found = {"v": {"a": frozenset({ColumnOf("hidden", "x")}), "b": frozenset({ColumnOf("t", "y")})}}
    assert without(found, {"hidden"}) == {"v": {"b": frozenset({ColumnOf("t", "y")})}}
