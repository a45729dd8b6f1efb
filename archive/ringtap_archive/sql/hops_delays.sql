-- SPDX-License-Identifier: BSD-3-Clause
-- Delays of packets that cannot be confused with others.
SELECT pair, way, count(*) AS packets, min(delay_ns) AS least_ns,
	CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS middle_ns,
	CAST(percentile_disc(0.99) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS most_ns
FROM hops_simple
WHERE delay_ns BETWEEN -$apart AND $apart
GROUP BY pair, way
