-- SPDX-License-Identifier: BSD-3-Clause
-- How often a digest was recorded at the two points x and y of a pair, and when first and last.
SELECT s.pair, e.flow_id, e.up, e.digest,
	count(CASE WHEN s.side = 0 THEN 1 END) AS nx, count(CASE WHEN s.side = 1 THEN 1 END) AS ny,
	min(CASE WHEN s.side = 0 THEN e.at_ns END) AS tx, min(CASE WHEN s.side = 1 THEN e.at_ns END) AS ty,
	max(CASE WHEN s.side = 0 THEN e.at_ns END) AS last_tx, max(CASE WHEN s.side = 1 THEN e.at_ns END) AS last_ty
FROM hops_seen e
	JOIN ($sides) s ON s.point = e.point
	JOIN hops_flows f ON f.pair = s.pair AND f.flow_id = e.flow_id AND f.up = e.up
GROUP BY s.pair, e.flow_id, e.up, e.digest
