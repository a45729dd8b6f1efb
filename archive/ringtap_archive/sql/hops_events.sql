-- SPDX-License-Identifier: BSD-3-Clause
-- Digests that occur more than once at a point: each occurrence, side 0 where the packet enters and 1 where it comes out.
-- on_ns: by the clock of x; at the entry plus the least delay, so that a packet comes out at this time or later.
SELECT s.pair, w.way, e.flow_id, e.up, e.digest, CASE WHEN w.way = 1 THEN s.side ELSE 1 - s.side END AS side, e.at_ns,
	e.at_ns - s.side * (p.coarse_ns + coalesce(c.offset_ns, p.offset_ns))
		+ CASE WHEN (s.side = 0) = (w.way = 1) THEN coalesce(l.shift_ns, 0) ELSE 0 END AS on_ns,
	coalesce(l.shift_ns, 0) AS shift_ns
FROM hops_seen e
	JOIN ($sides) s ON s.point = e.point
	JOIN ($pairs) p ON p.pair = s.pair
	JOIN (SELECT pair, flow_id, up, digest FROM hops_keys WHERE nx > 1 OR ny > 1) k
		ON k.pair = s.pair AND k.flow_id = e.flow_id AND k.up = e.up AND k.digest = e.digest
	JOIN hops_ways w ON w.pair = k.pair AND w.flow_id = k.flow_id AND w.up = k.up
	LEFT JOIN ($slices) c ON c.clocks = p.clocks
		AND c.slice = CAST(floor((e.at_ns - s.side * p.coarse_ns - $zero) / $slice) AS BIGINT)
	LEFT JOIN ($shifts) l ON l.pair = w.pair AND l.way = w.way
