# SPDX-License-Identifier: BSD-3-Clause
"""Flows of a running application: `ringtap flows` counts them, so that sampling, estimates and bounds are in one place.
This only reads what it prints."""

import json
import typing

from ._explain import _output


class Estimate(typing.NamedTuple):
    """The truth is within value ± bound in 95 of 100 cases; bound 0: exact; None: too few packets to say."""

    value: float
    bound: float | None


class FlowLatency(typing.NamedTuple):
    """From reception to sending. max_ns: None where it is not known, of a sample."""

    count: int
    p50_ns: Estimate
    p99_ns: Estimate
    max_ns: int | None


class Flow(typing.NamedTuple):
    """One entry. name: what its packets have in common; fields of a 5-tuple are None in other views. packets, bytes: since
    the beginning. share: of all packets of the interval, 0 to 1. latency: None without ids, or if none was observed."""

    name: str
    source: str | None
    destination: str | None
    source_port: int | None
    destination_port: int | None
    protocol: str | None
    vlan: int | None
    vni: int | None
    packets: Estimate
    bytes: Estimate
    packets_per_second: Estimate
    bits_per_second: Estimate
    share: Estimate
    counted: int
    forwarded: int
    rst: int
    syn_unanswered: int | None
    latency: FlowLatency | None


def _estimates(values: dict) -> dict:
    return {
        k: Estimate(**v) if isinstance(v, dict) and v.keys() == {"value", "bound"} else v for k, v in values.items()
    }


def _flow(f: dict) -> Flow:
    values = _estimates({name: f[name] for name in Flow._fields})
    return Flow(**values | {"latency": f["latency"] and FlowLatency(**_estimates(f["latency"]))})


def flows(
    app: str,
    expression: str | None = None,
    *,
    view: str = "5-tuple",
    by: str = "packets",
    limit: int = 20,
    ids: bool = False,
    sample: int | None = None,
    duration: float = 5.0,
    program: str = "ringtap",
) -> list[Flow]:
    """Counts the packets of an application for some seconds, and returns the largest flows, the largest first.

    app          APP or APP:PORT
    expression   a filter of libpcap; None: all packets
    view, by     what an entry is, and the order: see ringtap-flows(1)
    limit        of entries
    ids          a forwarded packet counts once, with its latency
    sample       one of this number of packets is counted, a power of two; None: by the rate
    duration     seconds
    program      the ringtap command
    Raises Error with its message, if there is no such program, or if the application cannot be examined.
    """
    argv = [program, "flows", "--json", "--once", "--duration", f"{duration:.9f}s", "--view", view, "--by", by]
    argv += ["--limit", str(limit), *(["--ids"] if ids else []), *(["-f", expression] if expression else [])]
    argv += ["--sample", str(sample)] if sample is not None else []
    (application,) = json.loads(_output([*argv, "--", app]))["applications"]
    return [_flow(f) for f in application["flows"]]
