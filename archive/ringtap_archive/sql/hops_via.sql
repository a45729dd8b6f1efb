-- SPDX-License-Identifier: BSD-3-Clause
-- Points between two others, of pairs with packets that all pass some.
SELECT v.pair, v.way, v.point
FROM (SELECT DISTINCT pair, way, point FROM hops_between) v
	JOIN (SELECT pair, way, count(*) AS senders FROM hops_paths GROUP BY pair, way) p ON p.pair = v.pair AND p.way = v.way
	JOIN (
		SELECT pair, way, count(*) AS senders
		FROM (SELECT DISTINCT pair, way, flow_id, up FROM hops_between) b
		GROUP BY pair, way
	) s ON s.pair = v.pair AND s.way = v.way AND s.senders = p.senders
ORDER BY 1, 2, 3
