-- SPDX-License-Identifier: BSD-3-Clause
-- Which way the packets of a sender go: where nothing else tells, by the offset of the clocks (one_way: 0), or as the caller
-- says of packets that go one way only (1, -1). Not at all where it cannot be told (2).
SELECT w.pair, w.flow_id, w.up,
	CASE WHEN w.way <> 0 THEN w.way WHEN p.one_way <> 0 THEN p.one_way WHEN w.middle_ns >= p.offset_ns THEN 1 ELSE -1 END AS way
FROM hops_known w JOIN ($pairs) p ON p.pair = w.pair
WHERE w.way <> 0 OR p.one_way <> 2
