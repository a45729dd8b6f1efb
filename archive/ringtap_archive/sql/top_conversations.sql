-- SPDX-License-Identifier: BSD-3-Clause
SELECT recorder, least(src, dst) AS a, greatest(src, dst) AS b,
	CASE WHEN src <= dst THEN packets_out ELSE packets_back END AS packets_out,
	CASE WHEN src <= dst THEN packets_back ELSE packets_out END AS packets_back,
	CASE WHEN src <= dst THEN bytes_out ELSE bytes_back END AS bytes_out,
	CASE WHEN src <= dst THEN bytes_back ELSE bytes_out END AS bytes_back
FROM ($traffic) t
