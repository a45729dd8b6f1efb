-- SPDX-License-Identifier: BSD-3-Clause
-- Packets that can be followed. up: which of the two ends of the flow sent it. at_ns: by the recorder's clock, less what
-- the caller says it is ahead.
SELECT w.point, p.flow_id, p.src < p.dst OR (p.src = p.dst AND p.src_port < p.dst_port) AS up, p.digest,
	p.time_ns - w.ahead_ns AS at_ns
FROM (
	SELECT *
	FROM packets
	WHERE ($filter
	)
) p
	JOIN ($points) w ON w.part = p.part AND w.interface = p.interface AND w.direction = coalesce(p.direction, '')
WHERE p.digest IS NOT NULL AND p.flow_id IS NOT NULL
