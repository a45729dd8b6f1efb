-- SPDX-License-Identifier: BSD-3-Clause
SELECT recorder, src AS address, packets_out, packets_back, bytes_out, bytes_back FROM ($traffic) t
UNION ALL
SELECT recorder, dst, packets_back, packets_out, bytes_back, bytes_out FROM ($traffic) t
