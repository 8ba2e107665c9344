"""Small tables for tests."""

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from .wire import reason


def numbers(start: int, stop: int) -> pa.Table:
    """Rows that are all different: id, word."""
    ids = np.arange(start, stop, dtype=np.int64)
    return pa.table({"id": ids, "word": [f"w{i}" for i in ids]})


# pyarrow gives errors of the gateway as one or the other, by their code.
FLIGHT_ERRORS = (flight.FlightError, pa.ArrowException)


def refused(call, *args, **kwargs) -> tuple[str, str]:
    """Reason and message of the refusal that the call must meet over Flight."""
    with pytest.raises(FLIGHT_ERRORS) as caught:
        call(*args, **kwargs)
    return reason(caught.value), str(caught.value)
