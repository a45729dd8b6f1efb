-- SPDX-License-Identifier: BSD-3-Clause
-- The packets that entered and never came out, each where it was recorded last. Of packets of a flow with equal digests and
-- equal time, all are listed.
SELECT l.pair, l.way, l.in_ns, p.recorder, ip_text(p.src) AS src, p.src_port, ip_text(p.dst) AS dst, p.dst_port, p.protocol,
	p.length, p.ip_id, p.tcp_seq, p.flow_id, p.digest, p.part, p.file_offset
FROM (
	SELECT h.pair, h.way, h.in_ns, h.flow_id, h.digest, g.in_point
	FROM hops_packets h
		JOIN ($legs) g ON g.pair = h.pair AND g.way = h.way
		LEFT JOIN (SELECT DISTINCT pair, way, flow_id, up FROM hops_between) b
			ON b.pair = h.pair AND b.way = h.way AND b.flow_id = h.flow_id AND b.up = h.up
	WHERE h.fate = 1 AND b.pair IS NULL
	ORDER BY h.in_ns, h.pair, h.way, h.flow_id, h.digest
	LIMIT $limit
) l
	JOIN ($points) w ON w.point = l.in_point
	JOIN packets p ON p.part = w.part AND p.interface = w.interface AND coalesce(p.direction, '') = w.direction
		AND p.flow_id = l.flow_id AND p.digest = l.digest AND p.time_ns - w.ahead_ns = l.in_ns
ORDER BY l.in_ns, l.pair, l.way, p.part, p.file_offset
