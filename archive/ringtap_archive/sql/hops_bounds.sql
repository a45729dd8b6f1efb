-- SPDX-License-Identifier: BSD-3-Clause
-- Between which values the offset of two clocks lies: a packet is later by the offset and its delay one way, by the offset
-- less its delay the other way, and no delay is negative.
SELECT p.clocks, CAST(floor((k.tx - $zero) / $slice) AS BIGINT) AS slice,
	min(CASE WHEN w.way = 1 THEN k.ty - k.tx - p.coarse_ns END) AS most_ns,
	max(CASE WHEN w.way = -1 THEN k.ty - k.tx - p.coarse_ns END) AS least_ns,
	count(CASE WHEN w.way = 1 THEN 1 END) AS forth, count(CASE WHEN w.way = -1 THEN 1 END) AS back
FROM hops_keys k
	JOIN hops_known w ON w.pair = k.pair AND w.flow_id = k.flow_id AND w.up = k.up
	JOIN ($pairs) p ON p.pair = k.pair
WHERE k.nx = 1 AND k.ny = 1 AND w.certain = 2 AND w.way <> 0 AND p.clocks >= 0
	AND k.ty - k.tx - p.coarse_ns BETWEEN -$apart AND $apart
GROUP BY p.clocks, CAST(floor((k.tx - $zero) / $slice) AS BIGINT)
