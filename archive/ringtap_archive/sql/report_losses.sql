-- SPDX-License-Identifier: BSD-3-Clause
SELECT recorder, CAST(floor((time_ns - $zero) / $bucket) AS BIGINT) AS bucket, CAST(sum(packets) AS BIGINT) AS packets
FROM losses
WHERE packets > 0
GROUP BY recorder, CAST(floor((time_ns - $zero) / $bucket) AS BIGINT)
ORDER BY 1, 2
