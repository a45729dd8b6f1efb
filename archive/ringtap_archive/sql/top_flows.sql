-- SPDX-License-Identifier: BSD-3-Clause
-- The end with the greater port, which clients have, first.
SELECT recorder, CASE WHEN forth THEN src ELSE dst END AS a, CASE WHEN forth THEN src_port ELSE dst_port END AS a_port,
	CASE WHEN forth THEN dst ELSE src END AS b, CASE WHEN forth THEN dst_port ELSE src_port END AS b_port, protocol,
	CASE WHEN forth THEN packets_out ELSE packets_back END AS packets_out,
	CASE WHEN forth THEN packets_back ELSE packets_out END AS packets_back,
	CASE WHEN forth THEN bytes_out ELSE bytes_back END AS bytes_out,
	CASE WHEN forth THEN bytes_back ELSE bytes_out END AS bytes_back
FROM (
	SELECT recorder, src, dst, protocol, src_port, dst_port, packets_out, packets_back, bytes_out, bytes_back,
		coalesce(src_port > dst_port OR (src_port = dst_port AND src <= dst), src <= dst) AS forth
	FROM ($traffic) t
) f
