/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <ftw.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pcapng.h"
#include "test_util.h"

static char folder[64];

void test_folder_enter(void)
{
	strcpy(folder, "ringtap-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return at->level ? remove(path) : 0;
}

void test_folder_leave(void)
{
	assert_int_equal(nftw(".", remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(chdir(".."), 0);
	assert_int_equal(rmdir(folder), 0);
}

unsigned test_count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

static int out = -1, out_saved;

void test_stdout_begin(void)
{
	out = memfd_create("stdout", MFD_CLOEXEC);
	fflush(stdout);
	out_saved = dup(STDOUT_FILENO);
	assert_true(out >= 0 && out_saved >= 0);
	assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
}

const char *test_stdout_end(void)
{
	static char text[1 << 16];
	ssize_t len;

	fflush(stdout);
	assert_int_equal(dup2(out_saved, STDOUT_FILENO), STDOUT_FILENO);
	close(out_saved);
	len = pread(out, text, sizeof(text) - 1, 0);
	close(out);
	assert_in_range(len, 0, sizeof(text) - 2);
	text[len] = 0;
	return text;
}

uint8_t *test_read(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint8_t *data;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size + 1);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	*len = (size_t)st.st_size;
	return data;
}

void test_write(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

size_t test_epbs(uint8_t *dst, unsigned count, uint32_t len, uint64_t first)
{
	uint32_t total = RT_EPB_MIN + ((len + 3) & ~3u);

	for (unsigned i = 0; i < count; i++, dst += total) {
		uint64_t k = first + i;
		const struct rt_epb epb = {.type = RT_EPB_TYPE,
			.total_len = total,
			.ts_low = (uint32_t)k,
			.ts_high = 400000000,
			.cap_len = len,
			.orig_len = len};

		memset(dst, (int)k, total);
		memcpy(dst, &epb, sizeof(epb));
		memcpy(dst + sizeof(epb), &k, sizeof(k));
		memcpy(dst + total - 4, &total, 4);
	}
	return (size_t)count * total;
}

struct test_pcap test_pcap_read(const char *path)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	struct test_pcap t = {0};
	struct pcap_pkthdr *h;
	const u_char *data;
	int ret;

	if (!p)
		fail_msg("%s: %s", path, err);
	t.linktype = pcap_datalink(p);
	t.snaplen = pcap_snapshot(p);
	while ((ret = pcap_next_ex(p, &h, &data)) == 1) {
		uint64_t k;

		assert_true(h->caplen >= sizeof(k));
		memcpy(&k, data, sizeof(k));
		if (!t.packets) {
			t.first = k;
			t.first_ns = (uint64_t)h->ts.tv_sec * 1000000000 + (uint64_t)h->ts.tv_usec;
		} else if (k != t.last + 1) {
			t.gaps++;
		}
		t.last = k;
		t.packets++;
	}
	if (ret != PCAP_ERROR_BREAK)
		fail_msg("%s: %s", path, pcap_geterr(p));
	pcap_close(p);
	return t;
}

static void read_isb(struct test_blocks *t, const uint8_t *block, uint32_t len)
{
	uint32_t id;

	memcpy(&id, block + 8, 4);
	assert_true(id < 8);
	t->isb++;
	memset(t->stat_of[id], 0xff, sizeof(t->stat_of[id]));
	t->ended[id] = 0;
	for (uint32_t at = 20; at + 4 < len;) {
		uint16_t option[2];

		memcpy(option, block + at, 4);
		if (option[0] >= 4 && option[0] <= 8) {
			assert_int_equal(option[1], 8);
			memcpy(&t->stat_of[id][option[0]], block + at + 4, 8);
		}
		if (option[0] == 3)
			t->ended[id] = 1;
		if (!option[0])
			break;
		at += 4 + ((option[1] + 3u) & ~3u);
	}
}

struct test_blocks test_blocks_read(const char *path)
{
	struct test_blocks t = {0};
	size_t len;
	uint8_t *data = test_read(path, &len);

	for (size_t at = 0; at < len;) {
		uint32_t head[3], end;

		assert_true(len - at >= 12);
		memcpy(head, data + at, 12);
		assert_true(head[1] >= 12 && head[1] % 4 == 0 && head[1] <= len - at);
		memcpy(&end, data + at + head[1] - 4, 4);
		assert_int_equal(head[1], end);
		t.shb += head[0] == RT_PCAPNG_SHB;
		t.idb += head[0] == RT_PCAPNG_IDB;
		if (head[0] == RT_EPB_TYPE) {
			/* Its interface stands before it. */
			assert_true(head[2] < t.idb && head[2] < 8);
			t.packets_of[head[2]]++;
			t.epb++;
		}
		if (head[0] == RT_PCAPNG_ISB)
			read_isb(&t, data + at, head[1]);
		at += head[1];
	}
	free(data);
	return t;
}
