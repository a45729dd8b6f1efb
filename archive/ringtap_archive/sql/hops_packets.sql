-- SPDX-License-Identifier: BSD-3-Clause
-- What became of each packet between two points. fate 0: passed; 1: lost; 2: came out without having entered; 3 and 4: not
-- recorded at the other point when it should have been there.
SELECT m.pair, m.way, m.flow_id, m.up, m.digest, m.in_ns, m.out_ns, m.delay_ns, m.repeated,
	CASE WHEN m.delay_ns IS NOT NULL THEN 0
		WHEN m.in_ns IS NOT NULL THEN CASE WHEN r.point IS NULL THEN 3 ELSE 1 END
		ELSE CASE WHEN r.point IS NULL THEN 4 ELSE 2 END END AS fate
FROM (
	SELECT pair, way, flow_id, up, digest, in_ns, out_ns, delay_ns, 0 AS repeated
	FROM hops_simple
	WHERE delay_ns BETWEEN -$apart AND $apart
	UNION ALL
	SELECT pair, way, flow_id, up, digest, in_ns, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), 0
	FROM hops_simple
	WHERE in_ns IS NOT NULL AND (delay_ns IS NULL OR delay_ns NOT BETWEEN -$apart AND $apart)
	UNION ALL
	SELECT pair, way, flow_id, up, digest, CAST(NULL AS BIGINT), out_ns, CAST(NULL AS BIGINT), 0
	FROM hops_simple
	WHERE out_ns IS NOT NULL AND (delay_ns IS NULL OR delay_ns NOT BETWEEN -$apart AND $apart)
	UNION ALL
	SELECT pair, way, flow_id, up, digest, in_ns, out_ns, delay_ns, 1
	FROM hops_repeated
) m
	JOIN ($legs) l ON l.pair = m.pair AND l.way = m.way
	LEFT JOIN ($spans) r ON m.delay_ns IS NULL
		AND r.point = CASE WHEN m.in_ns IS NOT NULL THEN l.out_point ELSE l.in_point END
		AND r.first_ns <= CASE WHEN m.in_ns IS NOT NULL THEN m.in_ns + l.ahead_ns + l.least_ns
			ELSE m.out_ns - l.ahead_ns - l.most_ns END
		AND r.last_ns >= CASE WHEN m.in_ns IS NOT NULL THEN m.in_ns + l.ahead_ns + l.most_ns
			ELSE m.out_ns - l.ahead_ns - l.least_ns END
