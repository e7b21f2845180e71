"""Events of an auction house, as Nexmark has them: persons, auctions and bids in one stream, out of order.

Of every fifty events one is a person, three are auctions and the rest are bids. Half of the bids are for the one
auction of the last hundred that is hot, the others for any that is open or about to be; likewise most bids are made,
and most auctions opened, by the person of the last hundred who is. Times go up by an even step, and each group of a
thousand events comes in an order of its own. What a kind of event does not have is null.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

START = 1_436_918_400_000
"""Milliseconds: 2015-07-15, when the reference generator has its first event."""
RATE = 1000
"""Events in a second."""
GROUP = 1000
"""So many events come in an order of their own."""
EPOCH, PERSONS, AUCTIONS = 50, 1, 3
FIRST_ID = 1000
OPEN_AUCTIONS = 100
ACTIVE_PERSONS = 1000
AHEAD = 10
"""So many ids beyond the last are named too: their event is still on its way."""
HOT = 100
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNEL_NUMBERS = 10_000
ITEMS = ("lamp", "vase", "clock", "chair", "stamp", "coin", "atlas")
SCHEMA = pa.schema(
    [("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())]
    + [(name, pa.string()) for name in ("name", "email", "city", "state", "itemName")]
    + [(name, pa.int64()) for name in ("initialBid", "reserve", "expires", "seller", "category")]
    + [(name, pa.int64()) for name in ("auction", "bidder", "price")]
    + [("channel", pa.string())]
)
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Random = np.random.Generator


def make_events(count: int, seed: int = 1, rate: int = RATE) -> pa.Table:
    """So many events in the order in which they come; times and expiries are milliseconds."""
    random = np.random.default_rng(seed)
    number = np.arange(count)
    ts = START + number * 1000 // rate
    kind, epoch = number % EPOCH, number // EPOCH
    person, auction = kind < PERSONS, (kind >= PERSONS) & (kind < PERSONS + AUCTIONS)
    last_person = epoch * PERSONS + np.minimum(kind, PERSONS - 1)
    last_auction = np.maximum(epoch * AUCTIONS + np.clip(kind - PERSONS, -1, AUCTIONS - 1), 0)
    columns = {
        "ts": pa.array(ts),
        "type": _text(("person", "auction", "bid"), np.where(person, 0, np.where(auction, 1, 2))),
        "id": _ints(FIRST_ID + np.where(person, last_person, last_auction), person | auction),
        **_persons(random, person),
        **_auctions(random, auction, last_person, ts, rate),
        **_bids(random, ~person & ~auction, last_person, last_auction),
    }
    order = np.argsort(number // GROUP * GROUP + random.random(count) * GROUP, kind="stable")
    return pa.table(columns, SCHEMA).take(pa.array(order))


def _persons(random: Random, here: Flags) -> dict[str, pa.Array]:
    names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    emails = [f"{name.replace(' ', '.').lower()}@example.com" for name in names]
    who = random.integers(0, len(names), len(here))
    return {
        "name": _text(names, who, here),
        "email": _text(emails, who, here),
        "city": _text(CITIES, random.integers(0, len(CITIES), len(here)), here),
        "state": _text(STATES, random.integers(0, len(STATES), len(here)), here),
    }


def _auctions(random: Random, here: Flags, last_person: Ints, ts: Ints, rate: int) -> dict[str, pa.Array]:
    size = len(here)
    initial = _prices(random, size)
    # As many auctions are open at a time as bids choose from.
    longest = 2 * OPEN_AUCTIONS * EPOCH * 1000 // (AUCTIONS * rate)
    seller = _mostly(random, 4, last_person // HOT * HOT, _recent(random, last_person, ACTIVE_PERSONS))
    return {
        "itemName": _text(ITEMS, random.integers(0, len(ITEMS), size), here),
        "initialBid": _ints(initial, here),
        "reserve": _ints(initial + _prices(random, size), here),
        "expires": _ints(ts + 1 + random.integers(0, longest, size), here),
        "seller": _ints(FIRST_ID + seller, here),
        "category": _ints(random.integers(10, 15, size), here),
    }


def _bids(random: Random, here: Flags, last_person: Ints, last_auction: Ints) -> dict[str, pa.Array]:
    size = len(here)
    auction = _mostly(random, 2, last_auction // HOT * HOT, _recent(random, last_auction, OPEN_AUCTIONS))
    bidder = _mostly(random, 4, last_person // HOT * HOT + 1, _recent(random, last_person, ACTIVE_PERSONS))
    channels = [*CHANNELS, *(f"channel-{number}" for number in range(CHANNEL_NUMBERS))]
    few = random.integers(0, len(CHANNELS), size)
    many = random.integers(len(CHANNELS), len(channels), size)
    return {
        "auction": _ints(FIRST_ID + auction, here),
        "bidder": _ints(FIRST_ID + bidder, here),
        "price": _ints(_prices(random, size), here),
        "channel": _text(channels, _mostly(random, 2, few, many), here),
    }


def _mostly(random: Random, ratio: int, hot: Ints, others: Ints) -> Ints:
    """The others once in so many times."""
    return np.where(random.integers(0, ratio, len(hot)) > 0, hot, others)


def _recent(random: Random, last: Ints, size: int) -> Ints:
    """One of so many up to the last, or a few beyond."""
    first = np.maximum(last - size, 0)
    return first + (random.random(len(last)) * (last - first + 1 + AHEAD)).astype(np.int64)


def _prices(random: Random, size: int) -> Ints:
    """From one to a million, in cents, as many of each order of magnitude."""
    return np.round(10.0 ** (random.random(size) * 6) * 100).astype(np.int64)


def _ints(values: Ints, here: Flags) -> pa.Array:
    return pa.array(values, pa.int64(), mask=~here)


def _text(choice: Sequence[str], which: Ints, here: Flags | None = None) -> pa.Array:
    codes = pa.array(which, pa.int32(), mask=None if here is None else ~here)
    return pa.DictionaryArray.from_arrays(codes, pa.array(choice)).cast(pa.string())
