-- SPDX-License-Identifier: BSD-3-Clause
-- The lesser port of the two, which is that of the service as a rule. Out: to it.
SELECT recorder, protocol, least(src_port, dst_port) AS port,
	CASE WHEN dst_port <= src_port THEN packets_out ELSE packets_back END AS packets_out,
	CASE WHEN dst_port <= src_port THEN packets_back ELSE packets_out END AS packets_back,
	CASE WHEN dst_port <= src_port THEN bytes_out ELSE bytes_back END AS bytes_out,
	CASE WHEN dst_port <= src_port THEN bytes_back ELSE bytes_out END AS bytes_back
FROM ($traffic) t
WHERE src_port IS NOT NULL AND dst_port IS NOT NULL AND protocol IN (6, 17, 132)
