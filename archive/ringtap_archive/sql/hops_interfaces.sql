-- SPDX-License-Identifier: BSD-3-Clause
-- What each file could have recorded.
SELECT DISTINCT recorder, part, interface, name
FROM interfaces
