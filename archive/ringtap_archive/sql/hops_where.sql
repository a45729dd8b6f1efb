-- SPDX-License-Identifier: BSD-3-Clause
-- What was recorded where, and when.
SELECT p.recorder, p.part, p.interface, coalesce(p.direction, '') AS direction, min(i.name) AS name,
	count(*) AS packets, min(p.first_ns) AS first_ns, max(p.last_ns) AS last_ns
FROM (
	SELECT recorder, part, interface, direction, count(*) AS packets, min(time_ns) AS first_ns, max(time_ns) AS last_ns
	FROM packets
	GROUP BY recorder, part, interface, direction
) p LEFT JOIN interfaces i ON i.part = p.part AND i.interface = p.interface
GROUP BY p.recorder, p.part, p.interface, coalesce(p.direction, '')
ORDER BY 1, 2, 3, 4
