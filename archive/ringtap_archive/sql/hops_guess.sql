-- SPDX-License-Identifier: BSD-3-Clause
-- Delays where each digest occurs more than once: between the first ones or the last ones, which a loss makes longer.
SELECT pair, way, CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY delay_ns) AS BIGINT) AS least_ns
FROM (
	SELECT k.pair, w.way, least(w.way * (k.ty - k.tx - p.coarse_ns - p.offset_ns),
		w.way * (k.last_ty - k.last_tx - p.coarse_ns - p.offset_ns)) AS delay_ns
	FROM hops_keys k
		JOIN hops_ways w ON w.pair = k.pair AND w.flow_id = k.flow_id AND w.up = k.up
		JOIN ($pairs) p ON p.pair = k.pair
	WHERE k.nx > 0 AND k.ny > 0 AND k.nx + k.ny > 2
) d
WHERE delay_ns BETWEEN -$apart AND $apart
GROUP BY pair, way
