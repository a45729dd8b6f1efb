-- SPDX-License-Identifier: BSD-3-Clause
SELECT p.recorder, concat(p.recorder, ':', coalesce(i.name, CAST(p.interface AS STRING))) AS place, p.direction, p.packets_out,
	p.packets_back, p.bytes_out, p.bytes_back
FROM (
	SELECT recorder, part, interface, direction, count(*) AS packets_out, CAST(0 AS BIGINT) AS packets_back,
		CAST(sum(length) AS BIGINT) AS bytes_out, CAST(0 AS BIGINT) AS bytes_back
	FROM packets
	WHERE $chosen
	GROUP BY recorder, part, interface, direction
) p LEFT JOIN interfaces i ON i.part = p.part AND i.interface = p.interface
