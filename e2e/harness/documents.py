# SPDX-License-Identifier: BSD-3-Clause
"""Every JSON document of ringtap that a test reads is validated by its schema in docs/schemas: json.loads() is the one
place where tests read JSON, so no test can leave that out."""

import calendar
import datetime
import functools
import json
import sys

from .paths import REPO

sys.path.insert(0, str(REPO / "devtools"))
import schemas


def _validated(value):
    """Also the documents of which this one consists."""
    if schemas.is_document(value):
        schemas.validate(value)
    return value


@functools.lru_cache(maxsize=10000)
def ns_of(time):
    """Nanoseconds since the epoch of a point in time of a document."""
    whole, fraction = time.removesuffix("Z").split(".")
    return calendar.timegm(datetime.datetime.fromisoformat(whole).timetuple()) * 10**9 + int(fraction)


def only(document):
    """The only application of a document."""
    (application,) = document["applications"]
    return application


def install():
    """Once for each process."""
    read = json.loads
    if hasattr(read, "__wrapped__"):
        return

    @functools.wraps(read)
    def loads(*args, **kwargs):
        return _validated(read(*args, **kwargs))

    json.loads = loads
