/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "ringtap/reader.h"
#include "base/util.h"

/* Sources: packet sockets, or AF_XDP. */
static int check_type(const struct host_config *h, unsigned i)
{
	const struct netdev *d = &h->devs[i];

	if (!d->linktype)
		return message_fail(-ENOTSUP,
			"host: %s: packets of its type (ARPHRD %u, see 'ip link') are not "
			"supported; use tcpdump or dumpcap",
			h->ifaces[i], d->arphrd);
	if (h->driver != HOST_AF_XDP || d->linktype == NETDEV_ETHERNET)
		return 0;
	return message_fail(-EINVAL,
		"host: %s: AF_XDP receives from Ethernet interfaces only; leave out --driver",
		h->ifaces[i]);
}

static int check_interface(struct host_config *h, unsigned i)
{
	const char *name = h->ifaces[i];
	int ret = netdev_get(name, &h->devs[i]);

	if (ret == -ENAMETOOLONG)
		message_print(
			"host: %s: longer than an interface's name can be; see 'ip link'", name);
	else if (ret == -ENODEV)
		message_print("host: %s: no such interface; see 'ip link'", name);
	else if (ret)
		message_print("host: %s: %s", name, strerror(-ret));
	else if (strpbrk(name, ",=:+"))
		message_print(
			"host: %s: DPDK does not accept this name; rename it, or give it an 'ip link "
			"property add altname'",
			name);
	else if (!h->devs[i].up)
		message_print(
			"host: %s: it is down: no packets until 'ip link set %s up'", name, name);
	if (ret)
		return ret;
	return strpbrk(name, ",=:+") ? -EINVAL : check_type(h, i);
}

/* Folder, part of interface names and of sockets' paths: no surprises in there. */
static int check_name(struct host_config *h)
{
	size_t at = 0;

	at = (size_t)snprintf(h->own_name, sizeof(h->own_name), "%s", h->name ? h->name : "host");
	for (unsigned i = 0; i < h->iface_count && !h->name && at < sizeof(h->own_name); i++)
		at += (size_t)snprintf(
			h->own_name + at, sizeof(h->own_name) - at, "-%s", h->ifaces[i]);
	if (at >= sizeof(h->own_name))
		return message_fail(-EINVAL,
			"host: %s...: too long a name; give one of at most %zu characters by --name",
			h->own_name, sizeof(h->own_name) - 1);
	for (const char *p = h->own_name; *p; p++) {
		if (isalnum((unsigned char)*p) || (strchr("-_.", *p) && p > h->own_name))
			continue;
		return message_fail(-EINVAL,
			"host: --name '%s': give letters, digits, and -, _ or . after them",
			h->own_name);
	}
	if (*h->own_name)
		return 0;
	return message_fail(-EINVAL, "host: --name: empty; leave it out or give one");
}

static int check_unused(const struct host_config *h)
{
	struct ringtap_apps *apps;
	int ret = ringtap_apps_find(&apps);
	bool used = false;

	if (ret)
		return 0; /* EAL reports it then */
	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		used = used || !strcmp(ringtap_apps_name(apps, i), h->own_name);
	ringtap_apps_free(apps);
	if (!used)
		return 0;
	return message_fail(-EEXIST,
		"host: an application called %s runs already; end it, or give another --name",
		h->own_name);
}

static int add_cpus(struct host_config *h, unsigned first, unsigned last)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	for (unsigned c = first; c <= last; c++) {
		if (c >= CPU_SETSIZE || !CPU_ISSET(c, &allowed) || h->cpu_count == HOST_CPUS_MAX)
			return -EINVAL;
		h->cpu_list[h->cpu_count++] = c;
	}
	return first <= last ? 0 : -EINVAL;
}

static int check_cpus(struct host_config *h)
{
	const char *p = h->cpus;
	unsigned first, last;
	int n, ret = 0;

	while (p && !ret) {
		ret = -EINVAL;
		n = 0;
		if (isdigit((unsigned char)*p) && sscanf(p, "%4u%n", &first, &n) == 1) {
			last = first;
			p += n;
			n = 0;
			if (*p == '-' && isdigit((unsigned char)p[1]) &&
				sscanf(p, "-%4u%n", &last, &n) == 1)
				p += n;
			ret = add_cpus(h, first, last);
		}
		if (!ret && !*p)
			break;
		if (!ret && *p++ != ',')
			ret = -EINVAL;
	}
	if (ret)
		message_print("host: --cpus %s: not a list of usable CPUs; give some, as in 0,2-3",
			h->cpus);
	return ret;
}

static int check_rights(void)
{
	int ret = netdev_allowed();

	if (ret)
		message_print("host: opening a packet socket: %s; run it as root", strerror(-ret));
	return ret;
}

/* Free huge pages of all sizes, in bytes. */
static uint64_t huge_bytes(void)
{
	uint64_t sum = 0;
	glob_t g;

	if (glob("/sys/kernel/mm/hugepages/hugepages-*kB/free_hugepages", 0, NULL, &g))
		return 0;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		FILE *f = fopen(g.gl_pathv[i], "re");
		uint64_t kib = 0, count = 0;

		if (f && fscanf(f, "%" SCNu64, &count) == 1 &&
			sscanf(strrchr(strstr(g.gl_pathv[i], "hugepages-"), '-'), "-%" SCNu64,
				&kib) == 1)
			sum += count * kib << 10;
		if (f)
			fclose(f);
	}
	globfree(&g);
	return sum;
}

static bool huge_mounted(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	bool found = false;

	while (f && !found && (m = getmntent(f)))
		found = !strcmp(m->mnt_type, "hugetlbfs");
	if (f)
		endmntent(f);
	return found;
}

static int check_huge_pages(const struct host_config *h)
{
	if (!h->huge_pages)
		return 0;
	if (!huge_mounted())
		return message_fail(-ENOENT,
			"host: --huge-pages: no hugetlbfs is mounted; 'mount -t hugetlbfs none "
			"/dev/hugepages', or leave it out");
	if (huge_bytes() >= host_memory(h))
		return 0;
	return message_fail(-ENOMEM,
		"host: --huge-pages: %" PRIu64 " MiB needed, %" PRIu64 " MiB free; raise "
		"vm.nr_hugepages, or leave it out",
		host_memory(h) >> 20, huge_bytes() >> 20);
}

int host_check(struct host_config *h)
{
	size_t at = 0;
	int ret = check_name(h);

	if (!ret)
		ret = check_cpus(h);
	for (unsigned i = 0; i < h->iface_count && !ret; i++) {
		ret = check_interface(h, i);
		if (!ret)
			at += (size_t)snprintf(h->all + at, sizeof(h->all) - at, "%s%s",
				i ? ", " : "", h->ifaces[i]);
	}
	if (!ret)
		ret = check_rights();
	if (!ret)
		ret = check_huge_pages(h);
	return ret ? ret : check_unused(h);
}
