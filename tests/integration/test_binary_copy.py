"""Rows written by binary COPY are what PostgreSQL reads back."""

import numpy as np
import pytest
from django.db import connection

from webapp.ops import binary_copy

pytestmark = pytest.mark.django_db


def test_every_kind_of_value_comes_back_as_it_went_in() -> None:
    rows = [
        (1, 1.5, "naïve\t\n", np.array([0.1, np.inf]), np.array([1, -7], np.int32), np.array([3], np.uint8)),
        (
            -(2**62),
            float("-inf"),
            "",
            np.array([], np.float64),
            np.array([], np.int32),
            np.array([], np.uint8),
        ),
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE sample "
            "(a bigint, b double precision, c text, d double precision[], e int[], f smallint[])"
        )
        with cursor.copy("COPY sample FROM STDIN (FORMAT binary)") as copy:
            copy.write(binary_copy.HEADER)
            for row in rows:
                copy.write(binary_copy.row(row))
            copy.write(binary_copy.TRAILER)
        cursor.execute("SELECT * FROM sample ORDER BY a DESC")
        found = cursor.fetchall()
    assert found == [tuple(v.tolist() if isinstance(v, np.ndarray) else v for v in row) for row in rows]
