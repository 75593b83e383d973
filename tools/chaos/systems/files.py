"""Files: orders in files that are followed, views in files of changes. One of the views is a folder in an object store."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tools.chaos.systems.base import ChangedSums, GoneError, Order, Orders, Sums
from tools.chaos.systems.objects import BUFFERED, Bucket


class FileSystem:
    """Files in a folder and in a bucket. Only the bucket can be away.

    :param folder: the folder of the files
    :param bucket: the bucket for one view
    :param remote: the name of that view
    """

    name = "files"

    def __init__(self, folder: Path, bucket: Bucket, remote: str) -> None:
        self._folder = folder
        self._bucket = bucket
        self._remote = remote
        self._orders = Orders()
        self._files = 0
        (folder / "in").mkdir(parents=True)

    def source(self) -> dict[str, Any]:
        """Return the declaration of the connector that reads the orders."""
        config = {"path": str(self._folder / "in" / "*.json"), "follow": True}
        return {"transport": {"name": "file_input", "config": config}, "format": {"name": "json"}}

    def target(self, view: str) -> dict[str, Any]:
        """Return the declaration of the connector that writes a view."""
        if view != self._remote:
            config: dict[str, Any] = {"path": str(self._folder / f"{view}.json")}
        else:
            config = {"path": f"{self._bucket.url}/files/{view}/", "storage_options": self._bucket.fsspec_options()}
        encoding = {"name": "json", "config": {"update_format": "debezium"}}
        declared = {"transport": {"name": "file_output", "config": config}, "format": encoding}
        return {**declared, **BUFFERED} if view == self._remote else declared

    def change(self, dice: random.Random) -> None:
        """Append lines to the newest file, or begin another one."""
        gone, come = self._orders.some(dice), self._orders.new(dice)
        lines = [{"delete": order.to_json()} for order in gone] + [{"insert": order.to_json()} for order in come]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        if self._files == 0 or dice.random() < 0.1:
            self._files += 1
        with (self._folder / "in" / f"{self._files:06}.json").open("a") as file:
            # Readers may see an incomplete last line.
            half = len(text) // 2
            file.write(text[:half])
            file.flush()
            file.write(text[half:])
        self._orders.replace(gone, come)

    def orders(self) -> list[Order]:
        """Return the sum of the changes in the lines."""
        found: dict[int, Order] = {}
        for path in sorted((self._folder / "in").iterdir()):
            for line in path.read_text().splitlines():
                ((kind, row),) = json.loads(line).items()
                order = Order.of(row)
                if kind == "insert":
                    found[order.id] = order
                else:
                    del found[order.id]
        return list(found.values())

    def sums(self, view: str) -> Sums:
        """Return the sum of the changes in a view's file, or in the files that its manifest names."""
        log = ChangedSums(f"files of {view}")
        for line in self._remote_lines(view) if view == self._remote else self._lines(view):
            change = json.loads(line, parse_float=Decimal)["payload"]
            log.change(change["before"], change["after"])
        return log.sums

    def stop(self) -> None:
        """Stop the object store."""
        self._bucket.store.stop()

    def start(self) -> None:
        """Start the object store."""
        self._bucket.store.start()

    def _lines(self, view: str) -> list[str]:
        path = self._folder / f"{view}.json"
        # The text after the last line feed is incomplete.
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def _remote_lines(self, view: str) -> Iterator[str]:
        prefix = f"files/{view}"
        try:
            for name in self._bucket.names(f"{prefix}/_commits/"):
                for file in json.loads(self._bucket.read(name))["files"]:
                    yield from self._bucket.read(f"{prefix}/{file['name']}").decode().splitlines()
        except (BotoCoreError, ClientError) as error:
            raise GoneError(str(error)) from error
