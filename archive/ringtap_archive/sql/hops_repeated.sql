-- SPDX-License-Identifier: BSD-3-Clause
-- Which of repeated packets came out. As brackets: one that comes out closes the last one open; those that stay open are
-- lost, for with the least delay added, whatever comes out between two entries belongs to an earlier one. Brackets at one
-- depth follow each other in turn, so that the next one is the partner. Then, in order, the n-th that entered and was
-- not lost is the n-th that came out.
WITH deep AS (
	SELECT pair, way, flow_id, up, digest, side, at_ns, on_ns, shift_ns,
		sum(1 - 2 * side) OVER (PARTITION BY pair, way, flow_id, up, digest ORDER BY on_ns, side, at_ns
			ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) + side AS depth
	FROM hops_events
), near AS (
	SELECT pair, way, flow_id, up, digest, side, at_ns, on_ns, shift_ns,
		CASE WHEN side = 0
			THEN lead(on_ns) OVER (PARTITION BY pair, way, flow_id, up, digest, depth ORDER BY on_ns, side) - on_ns
			ELSE on_ns - lag(on_ns) OVER (PARTITION BY pair, way, flow_id, up, digest, depth ORDER BY on_ns, side) END AS gap_ns,
		CASE WHEN side = 0
			THEN lead(side) OVER (PARTITION BY pair, way, flow_id, up, digest, depth ORDER BY on_ns, side)
			ELSE lag(side) OVER (PARTITION BY pair, way, flow_id, up, digest, depth ORDER BY on_ns, side) END AS other
	FROM deep
), told AS (
	SELECT pair, way, flow_id, up, digest, side, at_ns, on_ns, shift_ns,
		CASE WHEN other = 1 - side AND gap_ns <= $apart THEN 1 ELSE 0 END AS passed
	FROM near
), numbered AS (
	SELECT pair, way, flow_id, up, digest, side, at_ns, on_ns - CASE WHEN side = 0 THEN shift_ns ELSE 0 END AS on_ns, passed,
		CASE WHEN passed = 1 THEN 0 ELSE side + 1 END AS kind,
		row_number() OVER (PARTITION BY pair, way, flow_id, up, digest, side, passed ORDER BY on_ns, at_ns) AS number
	FROM told
)
SELECT pair, way, flow_id, up, digest, min(CASE WHEN side = 0 THEN at_ns END) AS in_ns,
	min(CASE WHEN side = 1 THEN at_ns END) AS out_ns,
	min(CASE WHEN side = 1 THEN on_ns END) - min(CASE WHEN side = 0 THEN on_ns END) AS delay_ns
FROM numbered
GROUP BY pair, way, flow_id, up, digest, kind, number
