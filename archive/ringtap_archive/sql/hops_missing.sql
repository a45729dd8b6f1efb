-- SPDX-License-Identifier: BSD-3-Clause
-- Flows of which nothing came out: routed elsewhere, or lost altogether. Only where other packets of the same two addresses
-- went this way, and each flow where it was recorded last.
WITH flows_at AS (
	SELECT w.point, p.src, p.dst, p.protocol, p.src_port, p.dst_port, p.flow_id,
		p.src < p.dst OR (p.src = p.dst AND p.src_port < p.dst_port) AS up, count(*) AS packets, CAST(sum(p.length) AS BIGINT) AS bytes,
		min(p.time_ns - w.ahead_ns) AS first_ns, max(p.time_ns - w.ahead_ns) AS last_ns
	FROM (
		SELECT *
		FROM packets
		WHERE ($filter
		)
	) p
		JOIN ($points) w ON w.part = p.part AND w.interface = p.interface AND w.direction = coalesce(p.direction, '')
	WHERE p.digest IS NOT NULL AND p.flow_id IS NOT NULL
	GROUP BY w.point, p.src, p.dst, p.protocol, p.src_port, p.dst_port, p.flow_id,
		p.src < p.dst OR (p.src = p.dst AND p.src_port < p.dst_port)
), ways AS (
	SELECT DISTINCT g.pair, g.way, g.in_point, g.out_point, g.out_recorder, g.ahead_ns, g.least_ns, g.most_ns, a.src, a.dst
	FROM flows_at a
		JOIN ($legs) g ON g.in_point = a.point
		JOIN hops_ways h ON h.pair = g.pair AND h.way = g.way AND h.flow_id = a.flow_id AND h.up = a.up
), gone AS (
	SELECT v.pair, v.way, v.in_point, v.out_point, a.src, a.src_port, a.dst, a.dst_port, a.protocol, a.flow_id, a.up, a.packets,
		a.bytes, a.first_ns, a.last_ns
	FROM ways v
		JOIN flows_at a ON a.point = v.in_point AND a.src = v.src AND a.dst = v.dst
		LEFT JOIN flows_at o ON o.point = v.out_point AND o.flow_id = a.flow_id AND o.up = a.up
		JOIN ($spans) r ON r.point = v.out_point AND r.first_ns <= a.first_ns + v.ahead_ns + v.least_ns
			AND r.last_ns >= a.last_ns + v.ahead_ns + v.most_ns
	WHERE o.flow_id IS NULL
)
SELECT g.pair, g.way, ip_text(g.src) AS src, g.src_port, ip_text(g.dst) AS dst, g.dst_port, g.protocol, g.flow_id, g.packets,
	g.bytes, g.first_ns, g.last_ns
FROM gone g
	LEFT JOIN (
		SELECT DISTINCT p.flow_id, p.up, p.in_point, o.out_point
		FROM hops_paths p JOIN gone o ON o.flow_id = p.flow_id AND o.up = p.up AND o.in_point = p.out_point
	) n ON n.flow_id = g.flow_id AND n.up = g.up AND n.in_point = g.in_point AND n.out_point = g.out_point
WHERE n.flow_id IS NULL
ORDER BY g.first_ns, g.pair, g.way, g.flow_id, g.src_port
