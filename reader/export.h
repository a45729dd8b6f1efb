/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_READER_EXPORT_H
#define RINGTAP_READER_EXPORT_H
#define EXPORT __attribute__((visibility("default")))
#endif
