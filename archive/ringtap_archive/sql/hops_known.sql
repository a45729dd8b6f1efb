-- SPDX-License-Identifier: BSD-3-Clause
-- Which way the packets of a sender go, 1 from x to y, -1 from y to x, 0 unknown, by what no offset between clocks changes:
-- there is one clock (at equal times, marked is 1 if x receives and y sends); or of two senders of a flow, packets from x to
-- y are later at y by the offset and a delay, those from y to x by the offset less a delay.
SELECT s.pair, s.flow_id, s.up, s.certain, s.middle_ns,
	CASE WHEN p.clocks < 0 AND s.middle_ns <> 0 THEN CASE WHEN s.middle_ns > 0 THEN 1 ELSE -1 END
		WHEN p.clocks < 0 THEN p.marked
		WHEN m.twice_ns > o.twice_ns THEN 1
		WHEN m.twice_ns < o.twice_ns THEN -1
		ELSE 0 END AS way
FROM hops_senders s
	JOIN ($pairs) p ON p.pair = s.pair
	LEFT JOIN hops_hosts m ON m.clocks = p.clocks AND m.flow_id = s.flow_id AND m.up = s.up
	LEFT JOIN hops_hosts o ON o.clocks = p.clocks AND o.flow_id = s.flow_id AND o.up <> s.up
