-- SPDX-License-Identifier: BSD-3-Clause
-- Which sender's packets go from which point to which.
SELECT w.pair, w.way, w.flow_id, w.up, CASE WHEN w.way = 1 THEN p.x ELSE p.y END AS in_point,
	CASE WHEN w.way = 1 THEN p.y ELSE p.x END AS out_point
FROM hops_ways w JOIN ($pairs) p ON p.pair = w.pair
