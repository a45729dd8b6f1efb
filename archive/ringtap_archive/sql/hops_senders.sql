-- SPDX-License-Identifier: BSD-3-Clause
-- By how much the packets of one sender were recorded later at y than at x. certain: from digests that occur once at each
-- point; else first occurrences are compared, which tells the way, but no time.
SELECT pair, flow_id, up, certain, packets, middle_ns
FROM (
	SELECT pair, flow_id, up, certain, packets, middle_ns,
		row_number() OVER (PARTITION BY pair, flow_id, up ORDER BY certain DESC) AS choice
	FROM (
		SELECT pair, flow_id, up, certain, count(*) AS packets,
			CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY later_ns) AS BIGINT) AS middle_ns
		FROM (
			SELECT k.pair, k.flow_id, k.up, k.ty - k.tx - p.coarse_ns AS later_ns,
				CASE WHEN k.nx = 1 AND k.ny = 1 THEN 2 WHEN k.nx = k.ny THEN 1 ELSE 0 END AS certain
			FROM hops_keys k JOIN ($pairs) p ON p.pair = k.pair
			WHERE k.nx > 0 AND k.ny > 0
		) d
		WHERE later_ns BETWEEN -$apart AND $apart
		GROUP BY pair, flow_id, up, certain
	) m
) c
WHERE choice = 1
