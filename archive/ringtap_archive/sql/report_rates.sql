-- SPDX-License-Identifier: BSD-3-Clause
-- What an application forwards was recorded twice, received and sent, and counts once.
SELECT recorder, bucket, CAST(sum(CASE WHEN way = '' THEN packets ELSE 0 END)
		+ greatest(sum(CASE WHEN way = 'rx' THEN packets ELSE 0 END), sum(CASE WHEN way = 'tx' THEN packets ELSE 0 END))
		AS BIGINT) AS packets,
	CAST(sum(CASE WHEN way = '' THEN bytes ELSE 0 END)
		+ greatest(sum(CASE WHEN way = 'rx' THEN bytes ELSE 0 END), sum(CASE WHEN way = 'tx' THEN bytes ELSE 0 END))
		AS BIGINT) AS bytes
FROM (
	SELECT recorder, CAST(floor((time_ns - $zero) / $bucket) AS BIGINT) AS bucket, coalesce(direction, '') AS way,
		count(*) AS packets, sum(length) AS bytes
	FROM packets
	GROUP BY recorder, CAST(floor((time_ns - $zero) / $bucket) AS BIGINT), coalesce(direction, '')
) b
GROUP BY recorder, bucket
ORDER BY 1, 2
