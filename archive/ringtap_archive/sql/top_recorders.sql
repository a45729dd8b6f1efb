-- SPDX-License-Identifier: BSD-3-Clause
SELECT recorder, recorder AS recorded, count(*) AS packets_out, CAST(0 AS BIGINT) AS packets_back,
	CAST(sum(length) AS BIGINT) AS bytes_out, CAST(0 AS BIGINT) AS bytes_back
FROM packets
WHERE $chosen
GROUP BY recorder
