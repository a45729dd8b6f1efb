-- SPDX-License-Identifier: BSD-3-Clause
-- A packet is reordered if one of its flow that entered later came out earlier (RFC 4737, Type-P-Reordered).
SELECT pair, way, count(CASE WHEN fate = 0 THEN 1 END) AS arrived, count(CASE WHEN fate = 1 THEN 1 END) AS lost,
	count(CASE WHEN fate = 2 THEN 1 END) AS appeared, count(CASE WHEN fate IN (3, 4) THEN 1 END) AS not_judged,
	count(CASE WHEN fate = 0 AND repeated = 1 THEN 1 END) AS repeated,
	count(CASE WHEN before_ns > in_ns THEN 1 END) AS reordered, max(CASE WHEN before_ns > in_ns THEN before_ns - in_ns END) AS reordered_ns,
	min(delay_ns) AS min_ns, CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS p50_ns,
	CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS p90_ns,
	CAST(percentile_disc(0.99) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS p99_ns, max(delay_ns) AS max_ns,
	min(coalesce(in_ns, out_ns)) AS first_ns, max(coalesce(in_ns, out_ns)) AS last_ns
FROM (
	SELECT pair, way, fate, repeated, in_ns, out_ns, delay_ns,
		CASE WHEN fate = 0 THEN max(in_ns) OVER (PARTITION BY pair, way, flow_id, up, fate ORDER BY out_ns, in_ns
			ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) END AS before_ns
	FROM hops_packets
) p
GROUP BY pair, way
