-- SPDX-License-Identifier: BSD-3-Clause
-- Delays and losses of each interval.
SELECT pair, way, CAST(floor((in_ns - $zero) / $bucket) AS BIGINT) AS bucket, count(CASE WHEN fate = 0 THEN 1 END) AS arrived,
	count(CASE WHEN fate = 1 THEN 1 END) AS lost, min(delay_ns) AS min_ns,
	CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS p50_ns,
	CAST(percentile_disc(0.99) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS p99_ns
FROM hops_packets
WHERE in_ns IS NOT NULL AND fate IN (0, 1)
GROUP BY pair, way, CAST(floor((in_ns - $zero) / $bucket) AS BIGINT)
ORDER BY 1, 2, 3
