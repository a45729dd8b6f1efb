-- SPDX-License-Identifier: BSD-3-Clause
-- The rows with most of it. A packet passes several recorders: each row counts at the recorder that has most of it.
WITH counted AS (
	SELECT $recorder AS recorder, $keys, CAST(sum(packets_out) AS BIGINT) AS packets_out,
		CAST(sum(packets_back) AS BIGINT) AS packets_back, CAST(sum(bytes_out) AS BIGINT) AS bytes_out,
		CAST(sum(bytes_back) AS BIGINT) AS bytes_back, CAST(sum(packets_out + packets_back) AS BIGINT) AS packets,
		CAST(sum(bytes_out + bytes_back) AS BIGINT) AS bytes
	FROM ($rows) r
	GROUP BY $recorder, $keys
), ranked AS (
	SELECT recorder, $keys, packets_out, packets_back, bytes_out, bytes_back, packets, bytes,
		CAST(sum(bytes) OVER (PARTITION BY recorder) AS BIGINT) AS recorder_bytes,
		CAST(sum(packets) OVER (PARTITION BY recorder) AS BIGINT) AS recorder_packets,
		row_number() OVER (PARTITION BY $keys ORDER BY $measure DESC, recorder) AS choice,
		count(*) OVER (PARTITION BY $keys) AS recorders
	FROM counted
)
SELECT recorder, recorders, $keys, packets_out, packets_back, bytes_out, bytes_back, packets, bytes, recorder_packets,
	recorder_bytes
FROM ranked
WHERE choice = 1
ORDER BY $measure DESC, $keys
LIMIT $limit
