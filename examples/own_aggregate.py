"""An aggregate of your own: the geometric mean, written as lift, combine and lower."""

import math

import penstock as pk


class GeometricMean:
    """Keeps the number of values and the sum of their logarithms."""

    def lift(self, value: float) -> tuple[int, float]:
        return 1, math.log(value)

    def combine(self, left: tuple[int, float], right: tuple[int, float]) -> tuple[int, float]:
        return left[0] + right[0], left[1] + right[1]

    def lower(self, partial: tuple[int, float]) -> float:
        return math.exp(partial[1] / partial[0])


rates = [{"day": day, "rate": rate} for day, rate in enumerate([1.0, 2.0, 4.0, None, 8.0, 1.0, 1.0])]

flow = pk.Flow()
flow.stream("rates", rates, time="day")  # time may be an integer: windows are then lengths of it
flow.aggregate("geometric_mean", GeometricMean, returns="double")
flow.function("growth", lambda mean: None if mean is None else round((mean - 1) * 100), returns="bigint")
query = flow.query(
    "SELECT geometric_mean(rate) AS mean, growth(geometric_mean(rate)) AS growth [RANGE 3, SLIDE 1, WA day] FROM rates"
)

print(query.collect().to_pandas().to_string(index=False))
