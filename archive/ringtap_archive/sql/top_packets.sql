-- SPDX-License-Identifier: BSD-3-Clause
-- What an application forwards was recorded twice, received and sent, and counts once.
SELECT $columns,
	count(CASE WHEN direction IS NULL THEN 1 END)
		+ greatest(count(CASE WHEN direction = 'rx' THEN 1 END), count(CASE WHEN direction = 'tx' THEN 1 END)) AS packets_out,
	CAST(0 AS BIGINT) AS packets_back,
	CAST(sum(CASE WHEN direction IS NULL THEN length ELSE 0 END)
		+ greatest(sum(CASE WHEN direction = 'rx' THEN length ELSE 0 END), sum(CASE WHEN direction = 'tx' THEN length ELSE 0 END))
		AS BIGINT) AS bytes_out,
	CAST(0 AS BIGINT) AS bytes_back
FROM packets
WHERE $chosen
GROUP BY $columns
